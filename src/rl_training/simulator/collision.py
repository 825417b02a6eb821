"""Which contacts a car has: with the walls and solids of its track, found by a grid, and with another car.

A contact is reported once, when it begins (HIT), and again only after a separation (TOUCHING, TOUCHING_TOO hold what
is being touched). Touching and separating are told by name, so the segments of one fence are one thing.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.bank import Bank
from rl_training.simulator.contact import (
    FAR,
    RELEASE,
    SKIN,
    approach,
    body_point,
    circle_contact,
    outlines,
    push,
    resolve,
    segment_contact,
    shift,
    side_of_box,
    two_blows,
    wall_in_the_way,
)
from rl_training.simulator.jit import kernel
from rl_training.simulator.state import (
    BOX_HALF_HEIGHT,
    FORWARD,
    HIT,
    LATERAL,
    MASS_AHEAD,
    OTHER_CARS,
    TOUCHING,
    TOUCHING_TOO,
    YAW,
    CarParams,
    X,
    Y,
    Z,
)
from rl_training.simulator.track import (
    SOLID_FRICTION,
    SOLID_HALF_X,
    SOLID_HALF_Z,
    SOLID_NAME,
    SOLID_X,
    SOLID_Z,
    WALL_FRICTION,
    WALL_FRICTION_DEFAULT,
    WALL_NAME,
    WALL_X0,
    WALL_X1,
    WALL_Z0,
    WALL_Z1,
    Floats,
    Ints,
)

GRID_REACH = 2.0  # everything within this distance of a cell is listed there [u]
FREE_SPEED = 80.0  # a car whose cell lists nothing cannot reach a thing within a substep below this speed [u/s]
MOST_CELLS = 1 << 18


@kernel
def alone(bank: Bank, slot: int, car: Floats) -> bool:
    """Whether the car touches nothing and cannot touch anything within a substep."""
    first, last = items_near(bank, slot, car[X], car[Z])
    slow = abs(car[FORWARD]) + abs(car[LATERAL]) < FREE_SPEED
    return first == last and slow and car[TOUCHING] < 0.0 and car[TOUCHING_TOO] < 0.0


@kernel
def touch(bank: Bank, slot: int, car: Floats, params: CarParams, head: tuple[float, float]) -> None:
    """Resolve every contact of the car where it stands, and keep HIT and TOUCHING; `head` is (sine, cosine) of YAW."""
    first, last = items_near(bank, slot, car[X], car[Z])
    held, held_too = car[TOUCHING] >= OTHER_CARS, car[TOUCHING_TOO] >= OTHER_CARS
    walls = bank.wall_count[slot]
    for k in range(first, last):
        item = bank.grid_items[slot, k]
        if item < walls:
            row = bank.walls[slot, item]
            sides = 1 if wall_in_the_way(car, row) else 0
            name, friction = row[WALL_NAME], row[WALL_FRICTION]
        else:
            row = bank.solids[slot, item - walls]
            sides = outlines(car, row)
            name, friction = row[SOLID_NAME], row[SOLID_FRICTION]
        gap = FAR
        for side in range(sides):
            if item >= walls and sides == 1:
                contact = circle_contact(car, params, head, row)
            else:
                segment = (row[WALL_X0], row[WALL_Z0], row[WALL_X1], row[WALL_Z1])
                if item >= walls:
                    segment = side_of_box(row, side)
                contact = segment_contact(car, params, head, segment, item >= walls)
            if contact[0] <= SKIN:
                resolve(car, params, head, contact, friction)
            gap = min(gap, contact[0])
        if gap <= RELEASE:
            if gap <= SKIN:
                begin(car, name)
            held = held or name == car[TOUCHING]
            held_too = held_too or name == car[TOUCHING_TOO]
    if not held_too:
        car[TOUCHING_TOO] = -1.0
    if not held:
        end(car, car[TOUCHING])


@kernel
def begin(car: Floats, name: float) -> None:
    """Report a contact, unless it goes on already; a third thing at once waits until another lets go."""
    if name in (car[TOUCHING], car[TOUCHING_TOO]):
        return
    if car[TOUCHING] < 0.0:
        car[TOUCHING] = car[HIT] = name
    elif car[TOUCHING_TOO] < 0.0:
        car[TOUCHING_TOO] = car[HIT] = name


@kernel
def end(car: Floats, name: float) -> None:
    """Forget a contact."""
    if car[TOUCHING] == name:
        car[TOUCHING], car[TOUCHING_TOO] = car[TOUCHING_TOO], -1.0
    elif car[TOUCHING_TOO] == name:
        car[TOUCHING_TOO] = -1.0


@kernel
def turned(relative: tuple[float, float], f: float, r: float) -> tuple[float, float]:
    """A vector of car b's axes in those of car a; `relative` is (sine, cosine) of b's yaw as seen from a."""
    return f * relative[1] - r * relative[0], f * relative[0] + r * relative[1]


@kernel
def push_pair(
    car_a: Floats,
    car_b: Floats,
    params: CarParams,
    relative: tuple[float, float],
    points: tuple[float, float, float, float],
    n: tuple[float, float],
    blow: float,
) -> None:
    """Equal and opposite impulses along n (in a's axes) at one place, given in a's axes and then in b's."""
    m = turned((-relative[0], relative[1]), n[0], n[1])
    push(car_a, params, points[0], points[1], blow * n[0], blow * n[1])
    push(car_b, params, points[2], points[3], -blow * m[0], -blow * m[1])


@kernel
def approach_pair(
    car_a: Floats,
    car_b: Floats,
    relative: tuple[float, float],
    points: tuple[float, float, float, float],
    n: tuple[float, float],
) -> float:
    """Velocity of a's point against b's along n."""
    m = turned((-relative[0], relative[1]), n[0], n[1])
    return approach(car_a, points[0], points[1], n[0], n[1]) - approach(car_b, points[2], points[3], m[0], m[1])


@kernel
def give_pair(
    params: CarParams,
    relative: tuple[float, float],
    points: tuple[float, float, float, float],
    others: tuple[float, float, float, float],
    n: tuple[float, float],
) -> float:
    """Change of the approach at `points` by a unit impulse at `others`."""
    m = turned((-relative[0], relative[1]), n[0], n[1])
    arm_a = (points[0] - MASS_AHEAD) * n[1] - points[1] * n[0]
    arm_b = (points[2] - MASS_AHEAD) * m[1] - points[3] * m[0]
    other_a = (others[0] - MASS_AHEAD) * n[1] - others[1] * n[0]
    other_b = (others[2] - MASS_AHEAD) * m[1] - others[3] * m[0]
    return 2.0 / params.mass + (arm_a * other_a + arm_b * other_b) / params.yaw_inertia


@kernel
def least_overlap(params: CarParams, relative: tuple[float, float], f: float, r: float) -> tuple[float, float, float]:
    """Overlap of two car boxes, b's centre at (f, r) in a's axes, and the direction (f, r) in which a leaves."""
    sine, cosine = relative
    length, width = params.half_length, params.half_width
    best, best_f, best_r = FAR, 0.0, 0.0
    for axis in range(4):
        n_f, n_r = 1.0, 0.0
        if axis == 1:
            n_f, n_r = 0.0, 1.0
        elif axis == 2:
            n_f, n_r = cosine, sine
        elif axis == 3:
            n_f, n_r = -sine, cosine
        away = f * n_f + r * n_r
        reach = length * abs(n_f) + width * abs(n_r)
        reach += length * abs(n_f * cosine + n_r * sine) + width * abs(n_r * cosine - n_f * sine)
        if reach - abs(away) < best:
            sign = -1.0 if away > 0.0 else 1.0
            best, best_f, best_r = reach - abs(away), sign * n_f, sign * n_r
    return best, best_f, best_r


@kernel
def corner_of_pair(
    params: CarParams, relative: tuple[float, float], f: float, r: float, corner: int
) -> tuple[bool, tuple[float, float, float, float]]:
    """Corners 0-3 of a, 4-7 of b: whether it lies inside the other box, and where in a's and in b's axes."""
    u = params.half_length * (1.0 if corner & 1 else -1.0)
    w = params.half_width * (1.0 if corner & 2 else -1.0)
    if corner < 4:
        other_f, other_r = turned((-relative[0], relative[1]), u - f, w - r)
        points = (u, w, other_f, other_r)
    else:
        other_f, other_r = turned(relative, u, w)
        other_f, other_r = other_f + f, other_r + r
        points = (other_f, other_r, u, w)
    inside = abs(other_f) <= params.half_length + SKIN and abs(other_r) <= params.half_width + SKIN
    return inside, points


@kernel
def strike(
    car_a: Floats,
    car_b: Floats,
    params: CarParams,
    relative: tuple[float, float],
    place: tuple[float, float],
    n: tuple[float, float],
) -> None:
    """End the approach of two boxes at the two ends of what they share, with friction between; b stands at `place`."""
    low, high = np.inf, -np.inf
    points, others = (0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)
    for corner in range(8):
        inside, found = corner_of_pair(params, relative, place[0], place[1], corner)
        along = found[1] * n[0] - found[0] * n[1]
        if inside and along < low:
            low, points = along, found
        if inside and along > high:
            high, others = along, found
    if high < low:
        return
    blow0, blow1 = two_blows(
        approach_pair(car_a, car_b, relative, points, n),
        approach_pair(car_a, car_b, relative, others, n),
        give_pair(params, relative, points, points, n),
        give_pair(params, relative, points, others, n),
        give_pair(params, relative, others, others, n),
    )
    push_pair(car_a, car_b, params, relative, points, n, blow0)
    push_pair(car_a, car_b, params, relative, others, n, blow1)
    across = (-n[1], n[0])
    for k in range(2):
        spot, blow = (points, blow0) if k == 0 else (others, blow1)
        most = WALL_FRICTION_DEFAULT * blow
        stop = -approach_pair(car_a, car_b, relative, spot, across) / give_pair(params, relative, spot, spot, across)
        push_pair(car_a, car_b, params, relative, spot, across, min(max(stop, -most), most))


@kernel
def collide_pair(car_a: Floats, car_b: Floats, params: CarParams, name_a: float, name_b: float) -> None:
    """Contact of two cars; a's HIT becomes `name_b` and the other way round (names from OTHER_CARS on)."""
    reach = 2.0 * (params.half_length + params.half_width)
    dx, dz = car_b[X] - car_a[X], car_b[Z] - car_a[Z]
    apart = dx * dx + dz * dz > reach * reach or abs(car_a[Y] - car_b[Y]) > 2.0 * BOX_HALF_HEIGHT
    if apart:
        end(car_a, name_b)
        end(car_b, name_a)
        return
    head_a = (math.sin(car_a[YAW]), math.cos(car_a[YAW]))
    head_b = (math.sin(car_b[YAW]), math.cos(car_b[YAW]))
    relative = (head_b[0] * head_a[1] - head_b[1] * head_a[0], head_b[1] * head_a[1] + head_b[0] * head_a[0])
    f, r = body_point(car_a, head_a, car_b[X], car_b[Z])
    overlap, n_f, n_r = least_overlap(params, relative, f, r)
    if overlap < -RELEASE:
        end(car_a, name_b)
        end(car_b, name_a)
    if overlap < -SKIN:
        return
    begin(car_a, name_b)
    begin(car_b, name_a)
    strike(car_a, car_b, params, relative, (f, r), (n_f, n_r))
    out = 0.5 * max(overlap, 0.0)
    shift(car_a, head_a, out * n_f, out * n_r)
    shift(car_b, head_a, -out * n_f, -out * n_r)


@kernel
def items_near(bank: Bank, slot: int, x: float, z: float) -> tuple[int, int]:
    """Range of `grid_items` that lists everything a car at (x, z) can touch."""
    cell = bank.grid_origin[slot, 2]
    column = math.floor((x - bank.grid_origin[slot, 0]) / cell)
    row = math.floor((z - bank.grid_origin[slot, 1]) / cell)
    if not (0 <= column < bank.grid_shape[slot, 1] and 0 <= row < bank.grid_shape[slot, 0]):
        return 0, 0
    index = row * bank.grid_shape[slot, 1] + column
    return bank.grid_start[slot, index], bank.grid_start[slot, index + 1]


def build_grid(
    walls: Floats, solids: Floats, cell: float = 8.0
) -> tuple[tuple[int, int], tuple[float, float, float], NDArray[np.int32], NDArray[np.int32]]:
    """Shape, origin, start and items of a `Bank`'s collision grid.

    A cell lists what comes within `GRID_REACH` of it, so the cell of the car's origin is all a contact test needs.
    """
    spans = np.concatenate((wall_spans(walls), solid_spans(solids)))
    if len(spans) == 0:
        return (0, 0), (0.0, 0.0, cell), np.zeros(1, np.int32), np.zeros(0, np.int32)
    low = (spans[:, 0:2] - np.abs(spans[:, 2:4]) - spans[:, 4:5]).min(axis=0) - GRID_REACH
    high = (spans[:, 0:2] + np.abs(spans[:, 2:4]) + spans[:, 4:5]).max(axis=0) + GRID_REACH
    while np.prod(np.ceil((high - low) / cell)) > MOST_CELLS:  # a thing at the other end of the world
        cell *= 2.0
    columns, rows = (int(count) for count in np.maximum(np.ceil((high - low) / cell), 1.0))
    origin = (float(low[0]), float(low[1]), cell)
    start = np.zeros(rows * columns + 1, np.int32)
    sort_into_cells(spans, origin, rows, columns, start, np.zeros(0, np.int32))
    start[1:] = np.cumsum(start[:-1])
    start[0] = 0
    items = np.empty(start[-1], np.int32)
    sort_into_cells(spans, origin, rows, columns, start[:-1].copy(), items)
    return (rows, columns), origin, start, items


def wall_spans(walls: Floats) -> Floats:
    """Columns middle x, middle z, half extent x, half extent z, radius: a segment with a round brush."""
    begin, end = walls[:, [WALL_X0, WALL_Z0]], walls[:, [WALL_X1, WALL_Z1]]
    return np.column_stack(((begin + end) / 2.0, (end - begin) / 2.0, np.zeros(len(walls))))


def solid_spans(solids: Floats) -> Floats:
    """As `wall_spans`: a point whose brush covers the solid."""
    radius = np.hypot(solids[:, SOLID_HALF_X], solids[:, SOLID_HALF_Z])
    zero = np.zeros(len(solids))
    return np.column_stack((solids[:, SOLID_X], solids[:, SOLID_Z], zero, zero, radius))


@kernel
def sort_into_cells(
    spans: Floats, origin: tuple[float, float, float], rows: int, columns: int, cursor: Ints, items: Ints
) -> None:
    """Count the items of every cell in `cursor`, or, given room for them, write them from `cursor` on."""
    cell = origin[2]
    for item in range(len(spans)):
        x, z, half_x, half_z, radius = spans[item]
        reach = radius + GRID_REACH
        half = 0.5 * cell + reach
        left = max(int((x - abs(half_x) - reach - origin[0]) / cell), 0)
        right = min(int((x + abs(half_x) + reach - origin[0]) / cell), columns - 1)
        near = max(int((z - abs(half_z) - reach - origin[1]) / cell), 0)
        far = min(int((z + abs(half_z) + reach - origin[1]) / cell), rows - 1)
        for row in range(near, far + 1):
            for column in range(left, right + 1):
                dx, dz = origin[0] + (column + 0.5) * cell - x, origin[1] + (row + 0.5) * cell - z
                if abs(dx * half_z - dz * half_x) <= half * (abs(half_x) + abs(half_z)):
                    index = row * columns + column
                    if len(items):
                        items[cursor[index]] = item
                    cursor[index] += 1
