"""Columns of the arrays that hold the cars, and the car's constants. Units: u, s, rad, kg; signs as in `track`."""

from __future__ import annotations

from typing import NamedTuple

# Columns of the state array, one row a car. Body axes: forward, right. Everything a saved world needs is here.
(
    X,  # car origin
    Y,  # car origin: ground height + RIDE_HEIGHT at rest
    Z,
    YAW,  # clockwise from +z, not wrapped
    PITCH,  # + = nose down
    ROLL,  # + = as Unity's z Euler angle: left side down (counter-clockwise seen from behind)
    FORWARD,  # velocity along the nose [u/s]
    LATERAL,  # velocity to the right [u/s]
    YAW_RATE,  # + = turning right [rad/s]
    ACCEL_FORWARD,  # change of the body-frame velocity over the last substep [u/s²]
    ACCEL_LATERAL,
    STEER,  # requested, -1..1, + = right
    THROTTLE,  # requested, -1..1
    BRAKE,  # requested, 0..1 (reset holds 10)
    ODOM_FL,  # wheel revolutions, cumulative, never falling
    ODOM_FR,
    ODOM_RL,
    ODOM_RR,
    TIME,  # simulated seconds since the scene was loaded
    HIT,  # index into the bank's names of the last thing touched anew since the last telemetry, -1 = none
    TOUCHING,  # index of the thing in contact at present, -1 = none
    NODE,  # active node, moves as Unity's does
    CTE,  # as Unity computes it at NODE [u]
    PROGRESS,  # signed arc length driven along the line since reset, by continuous tracking [u]
    FURTHEST,  # the greatest PROGRESS so far [u]
    ARC,  # arc-length coordinate of the car's projection on the line, in [0, length)
    OFFSET,  # distance from the line at ARC, + = right [u]; unlike CTE never measured to a stale segment
    PITCH_RATE,
    ROLL_RATE,
    VERTICAL,  # vertical speed [u/s]
    LAPS,  # full lengths of the line driven since reset; only new furthest progress counts
    LAP_STARTED,  # TIME at which the present lap began
    LAST_LAP,  # duration of the last full lap [s], 0 before the first
    LINES_INSIDE,  # bit k set: the car's body overlaps start line k
    LINE_EVENT,  # row of the start line entered during this control step, -1 = none
    LINE_TIME,  # TIME of that event
    TOUCHING_TOO,  # a second thing in contact at the same time, -1 = none
) = range(37)
STATE_COLUMNS = 37

SUBSTEP = 0.01  # [s]
SUBSTEPS = 5  # per control step: 20 Hz
RIDE_HEIGHT = 0.566  # car origin above the ground at rest [u]
METRE = 8.0  # [u] per metre of telemetry
MASS_AHEAD = 0.1  # the centre of mass lies this far before the car origin; FORWARD and LATERAL are its velocity [u]
BOX_HALF_HEIGHT = 0.25  # of the collision box about the origin
OTHER_CARS = 100_000  # names in HIT and TOUCHING from here on are cars: OTHER_CARS + row of the car


class CarParams(NamedTuple):
    """The Unity car. Randomisation replaces `friction_scale` and `torque_scale` and leaves the rest."""

    mass: float = 50.0
    effective_mass: float = 60.0  # with the spinning wheels, along the nose
    yaw_inertia: float = 18.5
    gravity: float = 78.48
    max_torque: float = 100.0  # per wheel [N·m]
    max_brake: float = 100.0  # per wheel [N·m]
    wheel_radius: float = 0.32
    wheel_damping: float = 0.25
    linear_drag: float = 0.05  # [1/s]
    angular_drag: float = 0.05
    max_steer: float = 0.27925268031909273  # 16°
    front_axle: float = 0.737  # from the centre of mass, which lies 0.1 before the origin
    rear_axle: float = 0.865
    half_track: float = 0.69
    mass_height: float = 0.316  # centre of mass above the ground
    half_width: float = 0.5  # of the collision box
    half_length: float = 0.875
    friction_scale: float = 1.0
    torque_scale: float = 1.0
