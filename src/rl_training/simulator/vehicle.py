"""The car between two instants: tyres, drive, brake, slope. One row of the state array is one car.

A dynamic single-track model at the centre of mass, in body axes (forward, right, yaw clockwise):

    u, v, r     FORWARD, LATERAL [u/s], YAW_RATE [rad/s] of the centre of mass, which lies `MASS_AHEAD` of the origin
    a, b        distance of the front and rear axle from the centre of mass [u]
    c, s        cosine and sine of the steering angle
    force       of one axle [kg·u/s²]; lateral forces act across the wheels, traction along them

Lateral tyre forces and the brake are solved implicitly: each is a damper whose strength is the secant of its
friction curve, (force at the present slip) / (present slip velocity). Damping of any strength only takes energy out,
so the step is stable at every speed and friction, and where the strength grows without bound, at standstill, it turns
into the constraint "no slip" or "no rolling" by itself. The solution is cut to the friction limit, which is what
makes a parked car break away. Wheels roll without longitudinal slip as long as the grip carries the torque; beyond
it they spin or lock and keep the asymptote of the forward friction curve.
"""

from __future__ import annotations

import math

from rl_training.simulator.bank import Bank
from rl_training.simulator.collision import alone, touch
from rl_training.simulator.ground import friction_at, height_at, slope_at
from rl_training.simulator.jit import kernel
from rl_training.simulator.state import (
    ACCEL_FORWARD,
    ACCEL_LATERAL,
    BRAKE,
    FORWARD,
    LATERAL,
    MASS_AHEAD,
    ODOM_FL,
    ODOM_FR,
    ODOM_RL,
    ODOM_RR,
    PITCH,
    PITCH_RATE,
    RIDE_HEIGHT,
    ROLL,
    ROLL_RATE,
    STEER,
    SUBSTEP,
    THROTTLE,
    TIME,
    VERTICAL,
    YAW,
    YAW_RATE,
    CarParams,
    X,
    Y,
    Z,
)
from rl_training.simulator.track import Floats

# Torque over speed / TORQUE_SPEED: a Hermite spline through three keys, constant beyond the last one.
TORQUE_SPEED = 40.0
TORQUE_KNEE, TORQUE_START, TORQUE_MIDDLE, TORQUE_END = 0.62, 0.9996, 0.8962, 0.5012
TANGENT_START, TANGENT_MIDDLE, TANGENT_END = 0.0164, -0.6198, -0.5926

# Sideways friction: rises to 1 at the extremum, falls to the asymptote. Forward: only the asymptote matters here.
EXTREMUM_SLIP, ASYMPTOTE_SLIP, ASYMPTOTE_SIDE = 0.2, 0.5, 0.75
ASYMPTOTE_SPIN = 0.5

CREEP = 0.05  # [u/s] below which a locked wheel counts as standing
LEAST_FRICTION = 1e-3  # keeps the solve regular where a zone asks for none at all
BODY_FREQUENCY = 56.5  # of the springs, 9 Hz [rad/s]
BODY_DAMPING = 0.35
SPRING = 40000.0  # of one wheel [N/u]
MAX_SPIN = 50.0  # [rad/s]
MAX_TRAVEL = 0.25  # [u] between two looks at the walls
CORNER_REACH = 1.01  # from the origin to a corner of the box [u]


@kernel
def clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


@kernel
def nothing_if_tiny(value: float) -> float:
    """Zero instead of a dying remainder, which would end among the slow denormal numbers."""
    return value if abs(value) > 1e-12 else 0.0


@kernel
def small_rotation(angle: float) -> tuple[float, float]:
    """(sine, cosine) of an angle of at most MAX_SPIN · SUBSTEP, to 1e-9; several times cheaper than libm."""
    q = angle * angle
    sine = angle * (1.0 - q / 6.0 * (1.0 - q / 20.0 * (1.0 - q / 42.0 * (1.0 - q / 72.0))))
    cosine = 1.0 - q / 2.0 * (1.0 - q / 12.0 * (1.0 - q / 30.0 * (1.0 - q / 56.0)))
    return sine, cosine


@kernel
def hermite(t: float, width: float, y0: float, y1: float, slope0: float, slope1: float) -> float:
    """Cubic over t in 0..1 with end values and end slopes (per unit of x, the segment being `width` wide)."""
    rise = y1 - y0
    from0 = width * slope0 - rise
    from1 = rise - width * slope1
    return y0 + t * (rise + (1.0 - t) * (from0 * (1.0 - t) + from1 * t))


@kernel
def torque_curve(speed: float) -> float:
    """Share of the motor torque left at a speed [u/s]."""
    x = min(abs(speed) * (1.0 / TORQUE_SPEED), 1.0)
    if x < TORQUE_KNEE:
        return hermite(x / TORQUE_KNEE, TORQUE_KNEE, TORQUE_START, TORQUE_MIDDLE, TANGENT_START, TANGENT_MIDDLE)
    width = 1.0 - TORQUE_KNEE
    return hermite((x - TORQUE_KNEE) / width, width, TORQUE_MIDDLE, TORQUE_END, TANGENT_MIDDLE, TANGENT_END)


@kernel
def side_yield(side: float, along: float, peak: float) -> float:
    """Slip velocity per lateral force, |side| / force: the inverse of the secant; 0 for a wheel that stands."""
    side = abs(side)
    extremum = EXTREMUM_SLIP * abs(along)
    if side < extremum:
        return extremum * extremum / (peak * (2.0 * extremum - side))  # force = peak · x (2 - x)
    falling = ASYMPTOTE_SLIP * abs(along)
    if side >= falling:
        return side / (peak * ASYMPTOTE_SIDE)
    t = (side - extremum) / (falling - extremum)
    return side / (peak * (1.0 - (1.0 - ASYMPTOTE_SIDE) * t * t * (3.0 - 2.0 * t)))


@kernel
def side_limit(traction: float, peak: float, side: float, along: float) -> float:
    """What the friction circle leaves for lateral force beside a traction; a locked wheel slides where it is pushed."""
    left = math.sqrt(max(peak * peak - traction * traction, 0.0))
    if traction < 0.5 * peak:
        return left
    return max(left, peak * (abs(side) + CREEP) / (abs(side) + abs(along) + CREEP))


@kernel
def gripped(force: float, peak: float) -> float:
    """The part of a wheel's force that reaches the ground: all of it, or what a spinning or locked wheel keeps."""
    if abs(force) <= peak:
        return force
    return math.copysign(ASYMPTOTE_SPIN * peak, force)


@kernel
def tyre_solve(
    params: CarParams,
    start: tuple[float, float, float],
    free: tuple[float, float, float],
    steer: tuple[float, float],
    peaks: tuple[float, float],
    brake: float,
) -> tuple[float, float, float]:
    """Velocities (u, v, r) after a substep.

    `start` are the velocities before it, `free` those that traction and gravity alone would give, `peaks` the
    lateral limits of the axles, `brake` the most the brakes can take from u in this substep [u/s].
    The secants are taken at `start`, then once more at the first answer: one pass alone would lag a cornering car.
    """
    u, v, r = start
    sine, cosine = steer
    a, b = params.front_axle, params.rear_axle
    by_mass, by_inertia = SUBSTEP / params.mass, SUBSTEP / params.yaw_inertia
    u0, v0, r0 = free
    for _ in range(2):
        hold = 1.0
        if brake > 0.0:
            hold = abs(u) / (abs(u) + brake)  # 0 at standstill: the brake is then a constraint
        front_along = cosine * u + sine * (v + a * r)
        front_yield = side_yield(cosine * (v + a * r) - sine * u, front_along, peaks[0])
        rear_yield = side_yield(v - b * r, u, peaks[1])
        front_slip = cosine * (v0 + a * r0) - sine * hold * u0
        rear_slip = v0 - b * r0
        front_front = (
            front_yield + by_mass * (sine * sine * hold + cosine * cosine) + by_inertia * a * a * cosine * cosine
        )
        rear_rear = rear_yield + by_mass + by_inertia * b * b
        front_rear = cosine * (by_mass - by_inertia * a * b)
        inverse = 1.0 / (front_front * rear_rear - front_rear * front_rear)
        front = clamp((front_slip * rear_rear - rear_slip * front_rear) * inverse, -peaks[0], peaks[0])
        rear = clamp((rear_slip * front_front - front_slip * front_rear) * inverse, -peaks[1], peaks[1])
        rolling = u0 + by_mass * sine * front
        u = rolling - clamp(rolling * (1.0 - hold), -brake, brake)
        v = v0 - by_mass * (cosine * front + rear)
        r = r0 - by_inertia * (a * cosine * front - b * rear)
    return u, v, r


@kernel
def weigh(params: CarParams, uphill: tuple[float, float]) -> tuple[float, float, float]:
    """Acceleration by gravity along the nose and to the right, and the load on the wheels."""
    if uphill[0] == 0.0 and uphill[1] == 0.0:
        return 0.0, 0.0, params.mass * params.gravity
    ahead, right = uphill[0] * uphill[0], uphill[1] * uphill[1]
    load = params.mass * params.gravity / math.sqrt(1.0 + ahead + right)
    pull = -params.gravity * uphill[0] / math.sqrt(1.0 + ahead)
    return pull, -params.gravity * uphill[1] / math.sqrt(1.0 + right), load


@kernel
def accelerate(car: Floats, params: CarParams, friction: float, uphill: tuple[float, float]) -> tuple[float, float]:
    """Change the velocities over one substep; returns what the tyres did: acceleration (forward, right) [u/s²]."""
    u, v, r = car[FORWARD], car[LATERAL], car[YAW_RATE]
    pull, pull_right, weight = weigh(params, uphill)
    # Torques and gravity along the nose also turn the wheels, so the ground carries only `ground_part` of them.
    ground_part = params.mass / params.effective_mass
    torque = params.max_torque * params.torque_scale * clamp(car[THROTTLE], -1.0, 1.0)
    torque *= torque_curve(math.sqrt(u * u + v * v))
    per_axle = 2.0 * ground_part / params.wheel_radius
    traction = per_axle * (torque - params.wheel_damping * u / params.wheel_radius)
    braking = per_axle * params.max_brake * max(car[BRAKE], 0.0)

    base = 1.0 / (params.front_axle + params.rear_axle)
    limit = friction * weight
    slowing = math.copysign(braking, u) if u != 0.0 else 0.0
    pushed = clamp(2.0 * (traction - slowing), -limit, limit)
    shift = pushed * params.mass_height * base
    front_peak = friction * max(weight * params.rear_axle * base - shift, 0.05 * weight)
    rear_peak = friction * max(weight * params.front_axle * base + shift, 0.05 * weight)

    steer = small_rotation(params.max_steer * clamp(car[STEER], -1.0, 1.0))
    front_traction, rear_traction = gripped(traction, front_peak), gripped(traction, rear_peak)
    brake = (gripped(braking, front_peak) + gripped(braking, rear_peak)) * SUBSTEP / params.mass
    wanted = abs(traction) + braking
    front_slip = steer[1] * (v + params.front_axle * r) - steer[0] * u
    front_side = side_limit(wanted, front_peak, front_slip, u)
    rear_side = side_limit(wanted, rear_peak, v - params.rear_axle * r, u)

    push = (front_traction * steer[1] + rear_traction) / params.mass + ground_part * (pull - params.linear_drag * u)
    push_right = front_traction * steer[0] / params.mass + pull_right - params.linear_drag * v
    turn = params.front_axle * front_traction * steer[0] / params.yaw_inertia - params.angular_drag * r
    free = (u + SUBSTEP * push, v + SUBSTEP * push_right, r + SUBSTEP * turn)
    u1, v1, r1 = tyre_solve(params, (u, v, r), free, steer, (front_side, rear_side), brake)
    car[FORWARD], car[LATERAL] = nothing_if_tiny(u1), nothing_if_tiny(v1)
    car[YAW_RATE] = clamp(nothing_if_tiny(r1), -MAX_SPIN, MAX_SPIN)
    return (u1 - u) / SUBSTEP - ground_part * pull, (v1 - v) / SUBSTEP - pull_right


@kernel
def heading(car: Floats) -> tuple[float, float]:
    """(sine, cosine) of the yaw."""
    return math.sin(car[YAW]), math.cos(car[YAW])


@kernel
def uphill_at(bank: Bank, slot: int, car: Floats, head: tuple[float, float]) -> tuple[float, float]:
    """Rise of the ground per unit of way (ahead, to the right) under the car."""
    slope_x, slope_z = slope_at(bank, slot, car[X], car[Z])
    return slope_x * head[0] + slope_z * head[1], slope_x * head[1] - slope_z * head[0]


@kernel
def move(car: Floats, head: tuple[float, float], uphill: tuple[float, float], dt: float) -> tuple[float, float]:
    """Carry the car along for dt; returns its new heading.

    The centre of mass goes straight and the body turns about it, so the world velocity stays what it is while its
    body components turn. On a slope a car covers less ground than it drives.
    """
    sine, cosine = head
    u, v = car[FORWARD], car[LATERAL]
    ahead, across = u * dt, v * dt
    if uphill[0] != 0.0 or uphill[1] != 0.0:
        ahead /= math.sqrt(1.0 + uphill[0] * uphill[0])
        across /= math.sqrt(1.0 + uphill[1] * uphill[1])
    turn = car[YAW_RATE] * dt
    turn_sine, turn_cosine = small_rotation(turn)
    new_sine, new_cosine = sine * turn_cosine + cosine * turn_sine, cosine * turn_cosine - sine * turn_sine
    car[X] += ahead * sine + across * cosine + MASS_AHEAD * (sine - new_sine)
    car[Z] += ahead * cosine - across * sine + MASS_AHEAD * (cosine - new_cosine)
    car[YAW] += turn
    car[FORWARD] = u * turn_cosine + v * turn_sine
    car[LATERAL] = v * turn_cosine - u * turn_sine
    return new_sine, new_cosine


@kernel
def settle(
    car: Floats, params: CarParams, ground: float, uphill: tuple[float, float], tyres: tuple[float, float]
) -> None:
    """What follows from the motion: height, pitch and roll on the springs, wheel revolutions, clock.

    `tyres` is the acceleration that leans the body.
    """
    car[VERTICAL] = (ground + RIDE_HEIGHT - car[Y]) / SUBSTEP
    car[Y] = ground + RIDE_HEIGHT

    lean = params.mass * params.mass_height / (2.0 * SPRING)
    arms = params.front_axle * params.front_axle + params.rear_axle * params.rear_axle
    pitch = -lean * tyres[0] / arms
    roll = lean * tyres[1] / (2.0 * params.half_track * params.half_track)
    if uphill[0] != 0.0 or uphill[1] != 0.0:
        pitch -= math.atan(uphill[0])
        roll += math.atan(uphill[1])
    car[PITCH], car[PITCH_RATE] = spring(car[PITCH], car[PITCH_RATE], pitch)
    car[ROLL], car[ROLL_RATE] = spring(car[ROLL], car[ROLL_RATE], roll)

    u, v, r = car[FORWARD], car[LATERAL], car[YAW_RATE]
    steer_sine, steer_cosine = small_rotation(params.max_steer * clamp(car[STEER], -1.0, 1.0))
    across = steer_sine * (v + params.front_axle * r)
    revolutions = SUBSTEP / (2.0 * math.pi * params.wheel_radius)
    left, right = u + r * params.half_track, u - r * params.half_track
    car[ODOM_FL] += abs(steer_cosine * left + across) * revolutions
    car[ODOM_FR] += abs(steer_cosine * right + across) * revolutions
    car[ODOM_RL] += abs(left) * revolutions
    car[ODOM_RR] += abs(right) * revolutions
    car[TIME] += SUBSTEP


@kernel
def spring(angle: float, rate: float, target: float) -> tuple[float, float]:
    """One substep of the sprung body on its way to `target`."""
    rate += SUBSTEP * BODY_FREQUENCY * (BODY_FREQUENCY * (target - angle) - 2.0 * BODY_DAMPING * rate)
    return angle + SUBSTEP * rate, rate


@kernel
def grip(bank: Bank, slot: int, car: Floats, params: CarParams) -> float:
    """Friction of the tyres where the car stands."""
    return max(friction_at(bank, slot, car[X], car[Z]) * params.friction_scale, LEAST_FRICTION)


@kernel
def looks(car: Floats) -> int:
    """How often to look for contacts on the way of one substep, so that nothing can be jumped over."""
    travel = abs(car[FORWARD]) + abs(car[LATERAL]) + abs(car[YAW_RATE]) * CORNER_REACH
    return int(travel * (SUBSTEP / MAX_TRAVEL)) + 1


@kernel
def advance(bank: Bank, slot: int, car: Floats, params: CarParams) -> None:
    """One substep of free motion: no walls, no solids."""
    drive_on(bank, slot, car, params, True)


@kernel
def substep(bank: Bank, slot: int, car: Floats, params: CarParams) -> None:
    """One substep with contacts."""
    drive_on(bank, slot, car, params, alone(bank, slot, car))


@kernel
def drive_on(bank: Bank, slot: int, car: Floats, params: CarParams, free: bool) -> None:
    """One substep; unless it is free of things to meet, a fast car looks for them several times on its way."""
    before, before_right = car[FORWARD], car[LATERAL]
    head = heading(car)
    uphill = uphill_at(bank, slot, car, head)
    tyres = accelerate(car, params, grip(bank, slot, car, params), uphill)
    pieces = 1 if free else looks(car)
    for _ in range(pieces):
        head = move(car, head, uphill, SUBSTEP / pieces)
        if not free:
            touch(bank, slot, car, params, head)
    settle(car, params, height_at(bank, slot, car[X], car[Z]), uphill, tyres)
    car[ACCEL_FORWARD] = (car[FORWARD] - before) / SUBSTEP
    car[ACCEL_LATERAL] = (car[LATERAL] - before_right) / SUBSTEP
