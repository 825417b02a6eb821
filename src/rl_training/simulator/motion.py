"""One control step of a batch: substeps of every car with its latency, contacts between cars, then path and events."""

from __future__ import annotations

import math

from rl_training.simulator.bank import Bank
from rl_training.simulator.collision import collide_pair
from rl_training.simulator.ground import height_at, slope_at
from rl_training.simulator.jit import kernel
from rl_training.simulator.path import (
    cross_start_lines,
    follow_line,
    follow_nodes,
    nearest_node,
    nearest_point,
    node_cte,
    project,
)
from rl_training.simulator.state import (
    ARC,
    BRAKE,
    CTE,
    HIT,
    LAP_STARTED,
    LINE_EVENT,
    NODE,
    OFFSET,
    OTHER_CARS,
    PITCH,
    RIDE_HEIGHT,
    ROLL,
    STATE_COLUMNS,
    STEER,
    SUBSTEPS,
    THROTTLE,
    TIME,
    TOUCHING,
    TOUCHING_TOO,
    YAW,
    CarParams,
    X,
    Y,
    Z,
)
from rl_training.simulator.track import Floats, Ints
from rl_training.simulator.vehicle import substep

HISTORY = 4  # commands kept for latency: the newest first
RESET_BRAKE = 10.0  # what Unity holds after a reset until the next control message


# Columns of the per-car array `traits`.
FRICTION_SCALE, TORQUE_SCALE, LATENCY = range(3)
TRAITS = 3


@kernel
def place_car(bank: Bank, slot: int, car: Floats, x: float, z: float, yaw: float, node: int) -> None:
    """Put a car at rest on the ground; a negative `node` means the nearest. Time and start-line state are kept."""
    time = car[TIME]
    for column in range(STATE_COLUMNS):
        car[column] = 0.0
    car[TIME] = time
    car[LAP_STARTED] = time
    car[X] = x
    car[Y] = height_at(bank, slot, x, z) + RIDE_HEIGHT
    car[Z] = z
    car[YAW] = yaw
    slope_x, slope_z = slope_at(bank, slot, x, z)
    sine = math.sin(yaw)
    cosine = math.cos(yaw)
    car[PITCH] = -math.atan(slope_x * sine + slope_z * cosine)
    car[ROLL] = math.atan(slope_x * cosine - slope_z * sine)
    car[BRAKE] = RESET_BRAKE
    car[HIT] = -1.0
    car[TOUCHING] = -1.0
    car[TOUCHING_TOO] = -1.0
    car[LINE_EVENT] = -1.0
    active = node if node >= 0 else nearest_node(bank, slot, x, z)
    car[NODE] = active
    car[CTE] = node_cte(bank, slot, active, x, z)
    arc, offset = project(bank, slot, nearest_point(bank, slot, x, z), x, z)
    car[ARC] = arc
    car[OFFSET] = offset
    cross_start_lines(bank, slot, car)  # standing in a start line's box is no crossing
    car[LINE_EVENT] = -1.0


@kernel
def _remember(commands: Floats, control: Floats) -> None:
    """Put a car's newest command before its older ones."""
    for age in range(HISTORY - 1, 0, -1):
        for k in range(3):
            commands[age, k] = commands[age - 1, k]
    for k in range(3):
        commands[0, k] = control[k]


@kernel
def _apply_control(car: Floats, commands: Floats, latency: int, j: int) -> None:
    """The command in force at substep `j`: the newest that is at least `latency` substeps old."""
    age = 0
    if latency > j:
        age = min((latency - j + SUBSTEPS - 1) // SUBSTEPS, HISTORY - 1)
    car[STEER] = commands[age, 0]
    car[THROTTLE] = commands[age, 1]
    car[BRAKE] = commands[age, 2]


@kernel
def _with_traits(params: CarParams, traits: Floats) -> CarParams:
    """The car with this episode's grip and motor; both are the last fields."""
    return CarParams(*(params[:17] + (traits[FRICTION_SCALE], traits[TORQUE_SCALE])))  # noqa: RUF005 (numba's form)


@kernel
def step_arenas(
    bank: Bank,
    state: Floats,
    slots: Ints,
    controls: Floats,
    commands: Floats,
    traits: Floats,
    params: CarParams,
    cars: int,
    first: int,
    last: int,
) -> None:
    """Advance arenas first..last-1 by one control step; arena a holds cars a·cars … (a+1)·cars - 1."""
    for arena in range(first, last):
        start = arena * cars
        slot = slots[arena]
        for i in range(start, start + cars):
            _remember(commands[i], controls[i])
            state[i, HIT] = -1.0
            state[i, LINE_EVENT] = -1.0
        for j in range(SUBSTEPS):
            for i in range(start, start + cars):
                _apply_control(state[i], commands[i], int(traits[i, LATENCY]), j)
                substep(bank, slot, state[i], _with_traits(params, traits[i]))
            for i in range(start, start + cars):
                for k in range(i + 1, start + cars):
                    collide_pair(state[i], state[k], params, OTHER_CARS + i, OTHER_CARS + k)
        for i in range(start, start + cars):
            follow_line(bank, slot, state[i])
            follow_nodes(bank, slot, state[i])
            cross_start_lines(bank, slot, state[i])
