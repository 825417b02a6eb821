"""Where a car is along its track: Unity's node and cte, and a progress that cannot be cheated.

Unity's cte is measured to the infinite line through the active node and the next; the node advances by at most one per
telemetry packet and never goes back. Progress is our own: the car's projection on the line is followed from step to
step, never searched for anew, and counts only while the car is on the road or near it; so cutting the infield, driving
backwards or circling on the spot gains nothing.
"""

from __future__ import annotations

import math

from rl_training.simulator.bank import Bank
from rl_training.simulator.jit import kernel
from rl_training.simulator.state import (
    ARC,
    CTE,
    FORWARD,
    FURTHEST,
    LAP_STARTED,
    LAPS,
    LAST_LAP,
    LATERAL,
    LINE_EVENT,
    LINE_TIME,
    LINES_INSIDE,
    NODE,
    OFFSET,
    PROGRESS,
    SUBSTEP,
    SUBSTEPS,
    TIME,
    YAW,
    X,
    Z,
)
from rl_training.simulator.track import LINE_HALF_DEPTH, LINE_HALF_WIDTH, LINE_X, LINE_YAW, LINE_Z, Floats

LEAP = 3.0  # on the inside of a tight bend the projection runs ahead of the car, but never by more than this factor
BODY_REACH = 0.875  # half length of the body: what enters a start line's trigger box first


@kernel
def nearest_node(bank: Bank, slot: int, x: float, z: float) -> int:
    """Index of the node nearest to (x, z)."""
    best = 0
    best_square = math.inf
    for i in range(bank.node_count[slot]):
        dx = bank.nodes[slot, i, 0] - x
        dz = bank.nodes[slot, i, 2] - z
        square = dx * dx + dz * dz
        if square < best_square:
            best_square = square
            best = i
    return best


@kernel
def node_cte(bank: Bank, slot: int, node: int, x: float, z: float) -> float:
    """Signed distance to the infinite line through `node` and its successor, + = right of it."""
    count = bank.node_count[slot]
    after = (node + 1) % count
    ax = bank.nodes[slot, node, 0]
    az = bank.nodes[slot, node, 2]
    tx = bank.nodes[slot, after, 0] - ax
    tz = bank.nodes[slot, after, 2] - az
    norm = math.sqrt(tx * tx + tz * tz)
    if norm < 1e-9:  # two nodes in one place: as Unity, the unsigned distance to the point
        return math.sqrt((x - ax) ** 2 + (z - az) ** 2)
    cte: float = ((x - ax) * tz - (z - az) * tx) / norm
    return cte


@kernel
def follow_nodes(bank: Bank, slot: int, car: Floats) -> None:
    """One telemetry packet of Unity's path tracking: cte first, then at most one node forward."""
    node = int(car[NODE])
    after = (node + 1) % bank.node_count[slot]
    x = car[X]
    z = car[Z]
    car[CTE] = node_cte(bank, slot, node, x, z)
    to_node = (bank.nodes[slot, node, 0] - x) ** 2 + (bank.nodes[slot, node, 2] - z) ** 2
    to_next = (bank.nodes[slot, after, 0] - x) ** 2 + (bank.nodes[slot, after, 2] - z) ** 2
    if to_node > to_next:
        car[NODE] = after


@kernel
def _square_to(bank: Bank, slot: int, i: int, x: float, z: float) -> float:
    dx = bank.line[slot, i, 0] - x
    dz = bank.line[slot, i, 1] - z
    square: float = dx * dx + dz * dz
    return square


@kernel
def nearest_point(bank: Bank, slot: int, x: float, z: float) -> int:
    """Index of the line's point nearest to (x, z), searched over the whole line."""
    best = 0
    best_square = math.inf
    for i in range(bank.line_count[slot]):
        square = _square_to(bank, slot, i, x, z)
        if square < best_square:
            best_square = square
            best = i
    return best


@kernel
def _neighbour(bank: Bank, slot: int, i: int, step: int) -> int:
    """The point `step` further on, round the loop of a closed track, or the end of an open one."""
    count = int(bank.line_count[slot])
    j = i + step
    if bank.closed[slot]:
        return j % count
    return min(max(j, 0), count - 1)


@kernel
def _descend(bank: Bank, slot: int, start: int, x: float, z: float, reach: int) -> int:
    """From point `start`, walk to the nearest point within `reach` points to either side."""
    best = start
    best_square = _square_to(bank, slot, start, x, z)
    for step in (1, -1):
        i = start
        for _ in range(reach):
            i = _neighbour(bank, slot, i, step)
            square = _square_to(bank, slot, i, x, z)
            if square >= best_square:
                break
            best_square = square
            best = i
    return best


@kernel
def project(bank: Bank, slot: int, i: int, x: float, z: float) -> tuple[float, float]:
    """(arc length, signed offset) of (x, z) on the line around its point `i`; + = right."""
    before = _neighbour(bank, slot, i, -1)
    after = _neighbour(bank, slot, i, 1)
    px = bank.line[slot, i, 0]
    pz = bank.line[slot, i, 1]
    tx = bank.line[slot, after, 0] - bank.line[slot, before, 0]
    tz = bank.line[slot, after, 1] - bank.line[slot, before, 1]
    norm = math.sqrt(tx * tx + tz * tz)
    tx /= norm
    tz /= norm
    along = (x - px) * tx + (z - pz) * tz
    offset = (x - px) * tz - (z - pz) * tx
    gap = bank.length[slot] / bank.line_count[slot]
    along = min(max(along, -gap), gap)
    arc = bank.line[slot, i, 2] + along
    if bank.closed[slot]:
        length = bank.length[slot]
        if arc < 0.0:
            arc += length
        elif arc >= length:
            arc -= length
    return arc, offset


@kernel
def follow_line(bank: Bank, slot: int, car: Floats) -> None:
    """Advance ARC, OFFSET, PROGRESS, FURTHEST and the lap count after one control step."""
    x = car[X]
    z = car[Z]
    count = bank.line_count[slot]
    gap = bank.length[slot] / count
    travelled = math.sqrt(car[FORWARD] ** 2 + car[LATERAL] ** 2) * SUBSTEP * SUBSTEPS
    reach = int(LEAP * travelled / gap) + 1
    start = min(int(car[ARC] / gap + 0.5), count - 1)
    if bank.closed[slot]:
        start %= count
    arc, offset = project(bank, slot, _descend(bank, slot, start, x, z, reach), x, z)
    moved = arc - car[ARC]
    if bank.closed[slot]:
        length = bank.length[slot]
        if moved > 0.5 * length:
            moved -= length
        elif moved < -0.5 * length:
            moved += length
    on_road = abs(offset) <= bank.reach[slot] and abs(car[OFFSET]) <= bank.reach[slot]
    car[ARC] = arc
    car[OFFSET] = offset
    if on_road or moved < 0.0:
        car[PROGRESS] += min(moved, LEAP * travelled)
    if car[PROGRESS] > car[FURTHEST]:
        _count_laps(bank, slot, car, moved)
        car[FURTHEST] = car[PROGRESS]


@kernel
def _count_laps(bank: Bank, slot: int, car: Floats, moved: float) -> None:
    """A lap is one more full length of new furthest progress; its time is interpolated within the step."""
    if not bank.closed[slot]:
        return
    goal = (car[LAPS] + 1.0) * bank.length[slot]
    if car[PROGRESS] < goal:
        return
    late = 0.0
    if moved > 1e-9:
        late = min((car[PROGRESS] - goal) / moved, 1.0) * SUBSTEP * SUBSTEPS
    finished = car[TIME] - late
    car[LAPS] += 1.0
    car[LAST_LAP] = finished - car[LAP_STARTED]
    car[LAP_STARTED] = finished


@kernel
def cross_start_lines(bank: Bank, slot: int, car: Floats) -> None:
    """Note the start line whose trigger box the body entered; staying inside is no new event."""
    inside = int(car[LINES_INSIDE])
    nose_x = math.sin(car[YAW]) * BODY_REACH
    nose_z = math.cos(car[YAW]) * BODY_REACH
    for k in range(bank.start_line_count[slot]):
        line = bank.start_lines[slot, k]
        sine = math.sin(line[LINE_YAW])
        cosine = math.cos(line[LINE_YAW])
        touches = False
        for end in (-1.0, 0.0, 1.0):
            dx = car[X] + end * nose_x - line[LINE_X]
            dz = car[Z] + end * nose_z - line[LINE_Z]
            across = abs(dx * cosine - dz * sine)
            along = abs(dx * sine + dz * cosine)
            touches = touches or (across <= line[LINE_HALF_WIDTH] and along <= line[LINE_HALF_DEPTH])
        bit = 1 << k
        if touches and not inside & bit:
            car[LINE_EVENT] = k
            car[LINE_TIME] = car[TIME]
        inside = (inside | bit) if touches else (inside & ~bit)
    car[LINES_INSIDE] = inside
