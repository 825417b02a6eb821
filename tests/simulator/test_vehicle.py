"""The car against the numbers of the Unity car, and against physics itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from rl_training.simulator import state as st
from rl_training.simulator.state import CarParams
from rl_training.simulator.vehicle import small_rotation, torque_curve
from tests.simulator.worlds import drive, energy, flat_bank, make_car, world_velocity

FLAT = flat_bank()
ICE = flat_bank(zones=[(0.0, 0.0, 0.0, 1e6, 1e6, 0.03)])
HILL = flat_bank(slope=(0.0, 0.1))  # rises along +z
WHEELBASE = 1.602


@pytest.mark.parametrize(
    ("throttle", "top", "telemetry"),
    [
        (0.1, 10.2, (0.24, 0.43, 0.58)),
        (0.2, 19.6, (0.47, 0.86, 1.17)),
        (0.3, 26.4, (0.71, 1.28, 1.75)),
        (0.5, 33.6, (1.18, 2.13, 2.86)),
        (0.7, 38.2, (1.65, 2.93, 3.78)),
        (1.0, 51.0, (2.34, 3.93, 4.67)),
    ],
)
def test_speeds_of_the_unity_car(throttle: float, top: float, telemetry: tuple[float, ...]) -> None:
    car = make_car()
    for expected in telemetry:
        drive(FLAT, car, 100, throttle=throttle)
        assert car[st.FORWARD] / st.METRE == pytest.approx(expected, rel=0.03)
    drive(FLAT, car, 6000, throttle=throttle)
    assert car[st.FORWARD] == pytest.approx(top, rel=0.01)
    assert car[st.X] == 0.0
    assert car[st.LATERAL] == 0.0


@pytest.mark.parametrize(
    ("share", "torque"),
    [
        (0.0, 0.9996),
        (0.5, 0.955),
        (0.62, 0.8962),
        (0.7, 0.828),
        (0.8, 0.710),
        (0.9, 0.589),
        (1.0, 0.5012),
        (3.0, 0.5012),
    ],
)
def test_torque_curve(share: float, torque: float) -> None:
    assert torque_curve(40.0 * share) == pytest.approx(torque, abs=5e-4)


@given(some.floats(-0.5, 0.5))
def test_small_rotation_is_a_rotation(angle: float) -> None:
    sine, cosine = small_rotation(angle)
    assert sine == pytest.approx(math.sin(angle), abs=1e-9)
    assert cosine == pytest.approx(math.cos(angle), abs=1e-9)


def test_coasting_down_and_full_brake() -> None:
    car = make_car(forward=10.0)
    drive(FLAT, car, 490)
    assert car[st.FORWARD] == pytest.approx(10.0 / math.e, rel=0.01)
    car = make_car(forward=10.0)
    drive(FLAT, car, 10, brake=1.0)
    # 4 wheels x 100 N.m / 0.32 u / 60 kg, and the rolling resistance of 9 u/s, e-folding in 4.9 s
    assert (10.0 - car[st.FORWARD]) / 0.1 == pytest.approx(20.83 + 9.0 / 4.9, rel=0.01)


@pytest.mark.parametrize("speed", [0.3, 1.0, 3.0, -2.0])
def test_tightest_turn(speed: float) -> None:
    """At full lock the middle of the rear axle goes round with wheelbase / tan 16 degrees."""
    car = make_car(forward=speed)
    throttle = speed / 102.0
    drive(FLAT, car, 300, steer=1.0, throttle=throttle)
    assert abs(car[st.FORWARD] / car[st.YAW_RATE]) == pytest.approx(5.587, rel=0.02)
    rear_slip = car[st.LATERAL] - CarParams().rear_axle * car[st.YAW_RATE]
    assert abs(rear_slip) < 0.012 * abs(speed)
    assert np.sign(car[st.YAW_RATE]) == np.sign(speed)


def test_path_closes_on_itself() -> None:
    """Integrated positions agree with the radius: a full turn ends where it began."""
    car = make_car(forward=2.0)
    drive(FLAT, car, 300, steer=1.0, throttle=0.03)
    start = car.copy()
    xs = []
    while car[st.YAW] < start[st.YAW] + 2.0 * math.pi:
        drive(FLAT, car, 1, steer=1.0, throttle=0.03)
        xs.append(car[st.X])
    assert math.hypot(car[st.X] - start[st.X], car[st.Z] - start[st.Z]) < 0.1
    # the origin lies 0.765 ahead of the rear axle
    assert (max(xs) - min(xs)) / 2.0 == pytest.approx(math.hypot(5.587, 0.765), rel=0.02)


def _cornering(speed: float) -> float:
    """Lateral acceleration held at full lock and constant speed."""
    car = make_car(forward=speed)
    for _ in range(400):
        drive(FLAT, car, 1, steer=1.0)
        car[st.FORWARD] = speed
    return float(car[st.YAW_RATE] * speed)


def test_full_lock_slides_near_16() -> None:
    limit = 0.6 * 78.48
    assert _cornering(13.0) == pytest.approx(13.0**2 / 5.59, rel=0.04)  # still follows the wheels
    for speed in (17.0, 20.0, 25.0):  # beyond, the grip decides
        assert 0.8 * limit < _cornering(speed) < limit
        assert _cornering(speed) < 0.9 * speed**2 / 5.59


def test_less_friction_slides_earlier() -> None:
    car = make_car(forward=14.0)
    drive(FLAT, car, 100, steer=1.0, params=CarParams(friction_scale=0.4))
    assert car[st.YAW_RATE] * car[st.FORWARD] < 0.4 * 0.6 * 78.48


controls = some.tuples(some.floats(-1.0, 1.0), some.floats(-1.0, 1.0), some.floats(0.0, 1.0))


@settings(max_examples=30, deadline=None)
@given(
    some.lists(controls, min_size=1, max_size=6), some.floats(-20.0, 40.0), some.floats(-10.0, 10.0), some.booleans()
)
def test_left_and_right_are_alike(
    plan: list[tuple[float, float, float]], forward: float, lateral: float, ice: bool
) -> None:
    bank = ICE if ice else FLAT
    car, mirror = make_car(forward=forward), make_car(forward=forward)
    car[st.LATERAL], mirror[st.LATERAL] = lateral, -lateral
    for steer, throttle, brake in plan:
        drive(bank, car, 20, steer=steer, throttle=throttle, brake=brake)
        drive(bank, mirror, 20, steer=-steer, throttle=throttle, brake=brake)
    for column in (st.X, st.YAW, st.LATERAL, st.YAW_RATE, st.ROLL, st.ACCEL_LATERAL):
        assert car[column] == pytest.approx(-mirror[column], abs=1e-9)
    for column in (st.Z, st.FORWARD, st.PITCH, st.ACCEL_FORWARD):
        assert car[column] == pytest.approx(mirror[column], abs=1e-9)
    assert car[st.ODOM_FL] == pytest.approx(mirror[st.ODOM_FR], abs=1e-9)
    assert car[st.ODOM_RL] == pytest.approx(mirror[st.ODOM_RR], abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(
    forward=some.floats(-60.0, 60.0),
    lateral=some.floats(-40.0, 40.0),
    turning=some.floats(-40.0, 40.0),
    steer=some.floats(-1.0, 1.0),
    brake=some.sampled_from([0.0, 0.3, 1.0, 10.0]),
    friction=some.sampled_from([0.03, 0.1, 0.6, 2.0]),
)
def test_energy_never_grows_without_throttle(
    forward: float, lateral: float, turning: float, steer: float, brake: float, friction: float
) -> None:
    params = CarParams(friction_scale=friction / 0.6)
    car = make_car(forward=forward)
    car[st.LATERAL], car[st.YAW_RATE] = lateral, turning
    before = energy(car)
    for _ in range(60):
        drive(FLAT, car, 1, steer=steer, brake=brake, params=params)
        now = energy(car)
        assert now <= before * (1.0 + 1e-9)
        before = now


def test_a_parked_car_stays() -> None:
    for steer in (0.0, 1.0):
        car = make_car(x=3.0, z=-2.0, yaw=0.7)
        before = car.copy()
        drive(FLAT, car, 200, steer=steer)
        before[[st.STEER, st.TIME]] = steer, car[st.TIME]
        np.testing.assert_array_equal(car, before)
        assert car[st.TIME] == pytest.approx(2.0)


def test_the_brake_stops_and_never_reverses() -> None:
    for forward in (5.0, -5.0):
        for steer in (0.0, 1.0):
            car = make_car(forward=forward)
            for _ in range(100):
                drive(FLAT, car, 1, steer=steer, brake=1.0)
                assert car[st.FORWARD] * forward >= 0.0
            assert abs(car[st.FORWARD]) < 1e-6
            assert energy(car) < 1e-9


def test_brake_beats_a_little_throttle_and_loses_to_none() -> None:
    car = make_car()
    drive(FLAT, car, 100, throttle=0.5, brake=1.0)
    assert abs(car[st.FORWARD]) < 1e-6
    drive(FLAT, car, 100, throttle=1.0, brake=0.5)
    assert car[st.FORWARD] == pytest.approx(9.5, abs=1.0)  # half of the torque is left


def test_reverse_mirrors_forward() -> None:
    ahead, back = make_car(), make_car()
    drive(FLAT, ahead, 100, throttle=0.4)
    drive(FLAT, back, 100, throttle=-0.4)
    assert back[st.FORWARD] == pytest.approx(-ahead[st.FORWARD], rel=1e-12)
    assert back[st.Z] == pytest.approx(-ahead[st.Z], rel=1e-12)


@pytest.mark.parametrize("yaw", [0.0, math.pi / 2.0, math.pi, 1.0])
@pytest.mark.parametrize("steer", [0.0, 1.0])
def test_the_brake_holds_on_a_slope(yaw: float, steer: float) -> None:
    bank = flat_bank(slope=(0.0, 0.2))
    car = make_car(yaw=yaw, bank=bank)
    drive(bank, car, 500, steer=steer, brake=10.0)
    assert math.hypot(car[st.X], car[st.Z]) < 1e-6
    assert car[st.PITCH] == pytest.approx(-math.atan(0.2 * math.cos(yaw)), abs=0.005)  # leaning on its springs
    assert car[st.ROLL] == pytest.approx(-math.atan(0.2 * math.sin(yaw)), abs=0.005)


def test_a_car_across_a_slope_does_not_creep() -> None:
    bank = flat_bank(slope=(0.3, 0.0))
    car = make_car(bank=bank)
    drive(bank, car, 1000)
    assert abs(car[st.X]) < 1e-6
    assert car[st.ROLL] == pytest.approx(math.atan(0.3), abs=0.01)  # the right side is up


def test_too_steep_and_too_slippery_slides() -> None:
    bank = flat_bank(slope=(0.0, 0.2), zones=[(0.0, 0.0, 0.0, 1e6, 1e6, 0.03)])
    car = make_car(bank=bank)
    drive(bank, car, 100, brake=1.0)
    assert car[st.Z] < -1.0
    across = make_car(yaw=math.pi / 2.0, bank=bank)
    drive(bank, across, 100)
    assert across[st.Z] < -1.0


def test_rolling_down_a_hill() -> None:
    """Down a slope of 10 %: g sin / (60 kg / 50 kg) at first, and what it gains in speed it has lost in height."""
    car = make_car(bank=HILL)
    drive(HILL, car, 10)
    assert car[st.FORWARD] / 0.1 == pytest.approx(-78.48 * 0.0995 * 50.0 / 60.0, rel=0.02)
    frictionless = CarParams(wheel_damping=0.0, linear_drag=0.0)
    car = make_car(bank=HILL)
    drive(HILL, car, 200, params=frictionless)
    fall = 0.1 * -car[st.Z]
    assert car[st.Y] == pytest.approx(st.RIDE_HEIGHT - fall, abs=1e-4)
    assert 0.5 * 60.0 * car[st.FORWARD] ** 2 == pytest.approx(50.0 * 78.48 * fall, rel=0.02)
    assert car[st.VERTICAL] == pytest.approx(car[st.FORWARD] * 0.0995, rel=0.02)
    assert car[st.PITCH] == pytest.approx(-math.atan(0.1), abs=0.002)  # backwards down the hill: the nose points up


def test_throttle_that_balances_a_hill() -> None:
    """Standing still needs 4 x 100 N.m x T / 0.32 = 50 kg x g sin: T = 0.3125 at 10 %."""
    for throttle, climbs in ((0.30, False), (0.33, True)):
        car = make_car(bank=HILL)
        drive(HILL, car, 100, throttle=throttle)
        assert bool(car[st.Z] > 0.0) is climbs


def test_ice() -> None:
    """Friction 0.03: spinning wheels keep half of it, so does a locked brake, and steering hardly works."""
    car = make_car()
    drive(ICE, car, 100, throttle=1.0)
    assert 0.5 * 0.03 * 78.48 * 0.7 < car[st.FORWARD] < 0.03 * 78.48
    car = make_car(forward=20.0)
    drive(ICE, car, 100, brake=1.0)
    assert 15.0 < car[st.FORWARD] < 19.0
    car = make_car(forward=20.0)
    drive(ICE, car, 100, steer=1.0)
    vx, vz = world_velocity(car)
    assert abs(vx) < 0.03 * 78.48
    assert vz > 15.0


def test_a_spinning_car_on_no_grip_flies_straight() -> None:
    params = CarParams(friction_scale=0.0, linear_drag=0.0, angular_drag=0.0, wheel_damping=0.0)
    car = make_car(forward=20.0)
    car[st.YAW_RATE] = 10.0
    drive(FLAT, car, 100, params=params)
    vx, vz = world_velocity(car)
    assert (vx, vz) == (pytest.approx(0.0, abs=0.1), pytest.approx(20.0, rel=0.01))
    assert car[st.Z] == pytest.approx(20.0, abs=0.3)
    assert car[st.YAW] == pytest.approx(10.0, rel=0.01)


def test_a_slide_is_caught() -> None:
    """Thrown sideways at 15 u/s the tyres turn the motion back along the nose within about a second."""
    car = make_car(forward=15.0)
    car[st.LATERAL], car[st.YAW_RATE] = 8.0, 2.0
    drive(FLAT, car, 150)
    assert abs(car[st.LATERAL]) < 0.05
    assert abs(car[st.YAW_RATE]) < 0.05
    assert car[st.FORWARD] > 5.0


def test_grip_is_shared_between_drive_and_cornering() -> None:
    """Full throttle needs nearly half of the grip: the same corner is held less well."""
    rolling, pulling = make_car(forward=18.0), make_car(forward=18.0)
    slippery = CarParams(friction_scale=0.5)
    drive(FLAT, rolling, 40, steer=1.0, params=slippery)
    drive(FLAT, pulling, 40, steer=1.0, throttle=1.0, params=slippery)
    assert pulling[st.YAW] < 0.97 * rolling[st.YAW]


def test_body_leans_on_its_springs() -> None:
    car = make_car()
    drive(FLAT, car, 100, throttle=1.0)
    assert -0.01 < car[st.PITCH] < -0.001  # nose up when pulling away
    car = make_car(forward=10.0)
    drive(FLAT, car, 60, steer=1.0, throttle=0.1)
    assert 0.002 < car[st.ROLL] < 0.02  # turning right, the left side sinks


def test_wheel_revolutions() -> None:
    """One revolution is 2 pi 0.32 u; in a curve the outer wheels make more of them, backwards they still count up."""
    car = make_car(forward=5.0)
    drive(FLAT, car, 200, throttle=0.05)
    for column in (st.ODOM_FL, st.ODOM_FR, st.ODOM_RL, st.ODOM_RR):
        assert car[column] * 2.0 * math.pi * 0.32 == pytest.approx(car[st.Z], rel=1e-6)
    drive(FLAT, car, 100, steer=1.0)
    assert car[st.ODOM_RL] > car[st.ODOM_RR]
    car = make_car(forward=-5.0)
    drive(FLAT, car, 100)
    assert car[st.ODOM_RL] > 0.0


def test_accelerometer_is_the_change_of_body_velocity() -> None:
    car = make_car(forward=10.0)
    drive(FLAT, car, 30, steer=0.5, throttle=0.5)
    before = car.copy()
    drive(FLAT, car, 1, steer=-1.0, throttle=0.5)
    assert car[st.ACCEL_FORWARD] == pytest.approx((car[st.FORWARD] - before[st.FORWARD]) / 0.01)
    assert car[st.ACCEL_LATERAL] == pytest.approx((car[st.LATERAL] - before[st.LATERAL]) / 0.01)


@settings(max_examples=50, deadline=None)
@given(
    some.lists(controls, min_size=1, max_size=10),
    some.sampled_from([0.001, 0.03, 0.6, 3.0]),
    some.floats(-60.0, 60.0),
    some.floats(-60.0, 60.0),
    some.floats(-50.0, 50.0),
)
def test_stable_whatever_comes(
    plan: list[tuple[float, float, float]], friction: float, forward: float, lateral: float, turning: float
) -> None:
    params = CarParams(friction_scale=friction / 0.6)
    car = make_car(forward=forward)
    car[st.LATERAL], car[st.YAW_RATE] = lateral, turning
    start = energy(car)
    for steer, throttle, brake in plan:
        drive(FLAT, car, 50, steer=steer, throttle=throttle, brake=brake, params=params)
        assert np.isfinite(car).all()
        # what the motors can have added: 1250 N over the way of half a second, at no more than their top speed
        start += 1250.0 * 60.0 * 0.5
        assert energy(car) < start


def test_controls_beyond_their_range_are_cut() -> None:
    car, wild = make_car(forward=3.0), make_car(forward=3.0)
    drive(FLAT, car, 50, steer=1.0, throttle=-1.0)
    drive(FLAT, wild, 50, steer=7.0, throttle=-9.0)
    for column in (st.X, st.Z, st.YAW, st.FORWARD):
        assert wild[column] == car[column]
