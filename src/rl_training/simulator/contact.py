"""The box of the car against one thing: impulses at points, and the shapes a track can put in its way.

Everything happens on the ground plane, in the body axes of the car (forward f, right r, from its origin); heights only
decide whether two things can meet at all. A contact takes away the approach velocity at a point (restitution 0) and a
part of the sliding by Coulomb friction, both as impulses with their torque, then moves the car out by the overlap.
Nothing is ever added to the motion, so contacts cannot feed energy to a car.

    gap     distance between the box and a thing along the axis of least overlap; below 0 they overlap [u]
    n       unit normal (f, r), from the thing to the car

A wall has no thickness: it pushes to the side on which the car's origin is. That is right as long as the origin never
crosses it between two looks, which `vehicle` guarantees with steps much shorter than the box is wide.
"""

from __future__ import annotations

import math

from rl_training.simulator.jit import kernel
from rl_training.simulator.state import (
    BOX_HALF_HEIGHT,
    FORWARD,
    LATERAL,
    MASS_AHEAD,
    YAW_RATE,
    CarParams,
    X,
    Y,
    Z,
)
from rl_training.simulator.track import (
    SOLID_BASE,
    SOLID_BLOCKS,
    SOLID_HALF_X,
    SOLID_HALF_Z,
    SOLID_HEIGHT,
    SOLID_SHAPE,
    SOLID_X,
    SOLID_YAW,
    SOLID_Z,
    WALL_BASE0,
    WALL_BASE1,
    WALL_HEIGHT,
    WALL_X0,
    WALL_X1,
    WALL_Z0,
    WALL_Z1,
    Floats,
    Shape,
)

SKIN = 0.005  # a gap up to here is a contact [u]
RELEASE = 0.05  # and it ends when the gap grows beyond this one: no chatter while sliding along a wall
FAR = 1e9  # a gap too large to matter
EDGE_BIAS = 0.05  # how much deeper a wall's end must poke through a face than its side, to count as a blow on that face

BOX, ARCH, CHAIR, TABLE = int(Shape.BOX), int(Shape.ARCH), int(Shape.CHAIR), int(Shape.TABLE)
SQUARE = (BOX, CHAIR, TABLE)  # shapes with four sides in a car's way; others are round

Segment = tuple[float, float, float, float]  # x0, z0, x1, z1
Contact = tuple[float, float, float, float, float, float, float]  # gap, n, and two points (f, r), equal if there is one
NO_CONTACT: Contact = (FAR, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@kernel
def push(car: Floats, params: CarParams, point_f: float, point_r: float, impulse_f: float, impulse_r: float) -> None:
    """Apply an impulse at a point of the body."""
    car[FORWARD] += impulse_f / params.mass
    car[LATERAL] += impulse_r / params.mass
    car[YAW_RATE] += ((point_f - MASS_AHEAD) * impulse_r - point_r * impulse_f) / params.yaw_inertia


@kernel
def approach(car: Floats, point_f: float, point_r: float, n_f: float, n_r: float) -> float:
    """Velocity of a point of the body along n."""
    along = car[FORWARD] - car[YAW_RATE] * point_r
    across = car[LATERAL] + car[YAW_RATE] * (point_f - MASS_AHEAD)
    speed: float = along * n_f + across * n_r
    return speed


@kernel
def give(params: CarParams, point_f: float, point_r: float, n_f: float, n_r: float) -> float:
    """Change of a point's velocity along n by a unit impulse along n: an inverse mass."""
    arm = (point_f - MASS_AHEAD) * n_r - point_r * n_f
    return 1.0 / params.mass + arm * arm / params.yaw_inertia


@kernel
def two_blows(speed0: float, speed1: float, give00: float, give01: float, give11: float) -> tuple[float, float]:
    """Impulses along one normal at two points, neither of them pulling, that end the approach at both.

    `give01` is the change of velocity at one point by a unit impulse at the other.
    """
    determinant = give00 * give11 - give01 * give01
    if determinant > 1e-6 * give00 * give11:
        blow0 = (speed1 * give01 - speed0 * give11) / determinant
        blow1 = (speed0 * give01 - speed1 * give00) / determinant
        if blow0 >= 0.0 and blow1 >= 0.0:
            return blow0, blow1
    blow0 = max(-speed0 / give00, 0.0)
    if speed1 + give01 * blow0 >= -1e-12:
        return blow0, 0.0
    return 0.0, max(-speed1 / give11, 0.0)


@kernel
def shift(car: Floats, head: tuple[float, float], ahead: float, right: float) -> None:
    """Move the car without changing its motion."""
    car[X] += ahead * head[0] + right * head[1]
    car[Z] += ahead * head[1] - right * head[0]


@kernel
def resolve(car: Floats, params: CarParams, head: tuple[float, float], contact: Contact, friction: float) -> None:
    """End the approach at both points of a contact at once, so that a square hit stays square, and move the car out."""
    gap, n_f, n_r, f0, r0, f1, r1 = contact
    arm0 = (f0 - MASS_AHEAD) * n_r - r0 * n_f
    arm1 = (f1 - MASS_AHEAD) * n_r - r1 * n_f
    blow0, blow1 = two_blows(
        approach(car, f0, r0, n_f, n_r),
        approach(car, f1, r1, n_f, n_r),
        give(params, f0, r0, n_f, n_r),
        1.0 / params.mass + arm0 * arm1 / params.yaw_inertia,
        give(params, f1, r1, n_f, n_r),
    )
    blow = blow0 + blow1
    if blow > 0.0:
        share = blow1 / blow
        f, r = f0 + share * (f1 - f0), r0 + share * (r1 - r0)
        push(car, params, f, r, blow * n_f, blow * n_r)
        sliding = approach(car, f, r, -n_r, n_f)
        rub = min(max(-sliding / give(params, f, r, -n_r, n_f), -friction * blow), friction * blow)
        push(car, params, f, r, -rub * n_r, rub * n_f)
    out = max(-gap, 0.0)
    shift(car, head, out * n_f, out * n_r)


@kernel
def body_point(car: Floats, head: tuple[float, float], x: float, z: float) -> tuple[float, float]:
    """A world point in body axes."""
    dx, dz = x - car[X], z - car[Z]
    return dx * head[0] + dz * head[1], dx * head[1] - dz * head[0]


@kernel
def face_contact(
    params: CarParams, ends: tuple[float, float, float, float], n_f: float, n_r: float, side: float
) -> Contact:
    """A side of the box against the face of a segment: its nearest corner, and the next one if that touches too.

    `ends` is (f0, r0, f1, r1) of the segment, `side` the distance of the car's origin from its line.
    """
    length, width = params.half_length, params.half_width
    corner_f, corner_r = -math.copysign(length, n_f), -math.copysign(width, n_r)
    gap = side + corner_f * n_f + corner_r * n_r
    other_f, other_r = corner_f, -corner_r
    if length * abs(n_f) < width * abs(n_r):
        other_f, other_r = -corner_f, corner_r
    if side + other_f * n_f + other_r * n_r > SKIN:
        other_f, other_r = corner_f, corner_r
    edge_f, edge_r = ends[2] - ends[0], ends[3] - ends[1]
    inverse = 1.0 / (edge_f * edge_f + edge_r * edge_r)
    at = min(max(((corner_f - ends[0]) * edge_f + (corner_r - ends[1]) * edge_r) * inverse, 0.0), 1.0)
    to = min(max(((other_f - ends[0]) * edge_f + (other_r - ends[1]) * edge_r) * inverse, 0.0), 1.0)
    f, r = ends[0], ends[1]
    return gap, n_f, n_r, f + at * edge_f, r + at * edge_r, f + to * edge_f, r + to * edge_r


@kernel
def segment_contact(
    car: Floats, params: CarParams, head: tuple[float, float], segment: Segment, one_sided: bool
) -> Contact:
    """Box against the segment (x0, z0, x1, z1). One-sided: solid to the right of its direction."""
    f0, r0 = body_point(car, head, segment[0], segment[1])
    f1, r1 = body_point(car, head, segment[2], segment[3])
    length, width = params.half_length, params.half_width
    # Overlaps along the box's own axes, by the direction in which the car would leave: back, ahead, left, right.
    back, ahead = length - min(f0, f1), length + max(f0, f1)
    left, right = width - min(r0, r1), width + max(r0, r1)
    end = min(min(back, ahead), min(left, right))
    span = math.sqrt((f1 - f0) * (f1 - f0) + (r1 - r0) * (r1 - r0))
    if end < -RELEASE or span < 1e-9:
        return NO_CONTACT
    n_f, n_r = (r1 - r0) / span, (f0 - f1) / span
    side = -(f0 * n_f + r0 * n_r)
    if side < 0.0:
        if one_sided:
            return NO_CONTACT
        n_f, n_r, side = -n_f, -n_r, -side
    overlap = length * abs(n_f) + width * abs(n_r) - side
    if overlap < -RELEASE:
        return NO_CONTACT
    lengthwise = end in (back, ahead)
    bias = EDGE_BIAS * (1.0 - abs(n_f if lengthwise else n_r))
    if end + bias >= overlap:
        return face_contact(params, (f0, r0, f1, r1), n_f, n_r, side)
    # an end of the segment pokes into a side of the box
    if lengthwise:
        n_f, n_r = (-1.0 if end == back else 1.0), 0.0
    else:
        n_f, n_r = 0.0, (-1.0 if end == left else 1.0)
    nearer = f0 * n_f + r0 * n_r >= f1 * n_f + r1 * n_r
    f, r = (f0, r0) if nearer else (f1, r1)
    f, r = min(max(f, -length), length), min(max(r, -width), width)
    return -end, n_f, n_r, f, r, f, r


@kernel
def circle_contact(car: Floats, params: CarParams, head: tuple[float, float], solid: Floats) -> Contact:
    """Box against an upright cylinder."""
    f, r = body_point(car, head, solid[SOLID_X], solid[SOLID_Z])
    radius = solid[SOLID_HALF_X]
    point_f = min(max(f, -params.half_length), params.half_length)
    point_r = min(max(r, -params.half_width), params.half_width)
    n_f, n_r = point_f - f, point_r - r
    away = math.sqrt(n_f * n_f + n_r * n_r)
    if away > radius + RELEASE:
        return NO_CONTACT
    if away > 1e-9:
        n_f, n_r = n_f / away, n_r / away
    elif params.half_length - abs(f) < params.half_width - abs(r):  # its axis stands inside the box: out the near side
        away, n_f, n_r = abs(f) - params.half_length, -math.copysign(1.0, f), 0.0
    else:
        away, n_f, n_r = abs(r) - params.half_width, 0.0, -math.copysign(1.0, r)
    return away - radius, n_f, n_r, point_f, point_r, point_f, point_r


@kernel
def side_of_box(solid: Floats, k: int) -> Segment:
    """Side k of a box, with the outside to the left of its direction."""
    sine, cosine = math.sin(solid[SOLID_YAW]), math.cos(solid[SOLID_YAW])
    # corner (a, b) to corner (b, -a), in half extents: (-, -), (-, +), (+, +), (+, -)
    a, b = (1.0 if k > 1 else -1.0), (1.0 if k in (1, 2) else -1.0)
    a0, b0 = a * solid[SOLID_HALF_X], b * solid[SOLID_HALF_Z]
    a1, b1 = b * solid[SOLID_HALF_X], -a * solid[SOLID_HALF_Z]
    x, z = solid[SOLID_X], solid[SOLID_Z]
    return (
        x + a0 * cosine + b0 * sine,
        z + b0 * cosine - a0 * sine,
        x + a1 * cosine + b1 * sine,
        z + b1 * cosine - a1 * sine,
    )


@kernel
def apart_in_height(car: Floats, base: float, top: float) -> bool:
    """Whether a thing from `base` to `top` lies wholly below or above the car's box."""
    y: float = car[Y]
    return top < y - BOX_HALF_HEIGHT or base > y + BOX_HALF_HEIGHT


@kernel
def wall_in_the_way(car: Floats, wall: Floats) -> bool:
    """Whether a row of `Track.walls` stands at the height of the car."""
    base = wall[WALL_BASE0]
    if wall[WALL_BASE1] != base:
        ex, ez = wall[WALL_X1] - wall[WALL_X0], wall[WALL_Z1] - wall[WALL_Z0]
        along = (car[X] - wall[WALL_X0]) * ex + (car[Z] - wall[WALL_Z0]) * ez
        base += min(max(along / max(ex * ex + ez * ez, 1e-9), 0.0), 1.0) * (wall[WALL_BASE1] - base)
    return not apart_in_height(car, base, base + wall[WALL_HEIGHT])


@kernel
def outlines(car: Floats, solid: Floats) -> int:
    """How many outlines a solid has to meet: a square one 4 sides, a round one 1, what is not in its way none."""
    shape = int(solid[SOLID_SHAPE])
    if solid[SOLID_BLOCKS] == 0.0 or shape == ARCH:
        return 0
    if apart_in_height(car, solid[SOLID_BASE], solid[SOLID_BASE] + solid[SOLID_HEIGHT]):
        return 0
    return 4 if shape in SQUARE else 1
