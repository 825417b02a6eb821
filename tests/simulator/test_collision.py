"""Contacts: nothing tunnels, nothing jitters, nothing gains energy, and every contact is reported once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

from rl_training.simulator import state as st
from rl_training.simulator.collision import GRID_REACH, build_grid, collide_pair
from rl_training.simulator.state import OTHER_CARS, CarParams
from rl_training.simulator.track import SOLID_COLUMNS, WALL_COLUMNS, Shape
from tests.simulator.worlds import drive, energy, flat_bank, make_car, solid, wall, world_velocity

PARAMS = CarParams()
AHEAD = flat_bank([wall(-1000.0, 10.0, 1000.0, 10.0, name=7)])  # across the way; nobody slides past its ends
NOSE = 0.875


def corners(car: Any) -> Any:
    """World (x, z) of the four corners of the box."""
    sine, cosine = math.sin(car[st.YAW]), math.cos(car[st.YAW])
    ahead, right = np.array([1, 1, -1, -1]) * 0.875, np.array([1, -1, 1, -1]) * 0.5
    return np.column_stack((car[st.X] + ahead * sine + right * cosine, car[st.Z] + ahead * cosine - right * sine))


@settings(max_examples=60, deadline=None)
@example(speed=500.0, course=1.1875, yaw=0.0, turning=19.0, start=0.0, throttle=0.0, both=False)
@given(
    speed=some.sampled_from([1.0, 8.0, 51.0, 120.0, 500.0]),
    course=some.floats(-1.2, 1.2),
    yaw=some.floats(-math.pi, math.pi),
    turning=some.floats(-50.0, 50.0),
    start=some.floats(0.0, 8.0),
    throttle=some.floats(-1.0, 1.0),
    both=some.booleans(),
)
def test_nothing_passes_a_wall(
    speed: float, course: float, yaw: float, turning: float, start: float, throttle: float, both: bool
) -> None:
    """From either side, whatever the direction of travel and of the nose."""
    side = -1.0 if both else 1.0
    car = make_car(z=10.0 + side * (start - 10.0), yaw=yaw)
    vx, vz = speed * math.sin(course), side * speed * math.cos(course)
    car[st.FORWARD] = vx * math.sin(yaw) + vz * math.cos(yaw)
    car[st.LATERAL] = vx * math.cos(yaw) - vz * math.sin(yaw)
    car[st.YAW_RATE] = turning
    for _ in range(100):
        drive(AHEAD, car, 1, throttle=throttle)
        assert (side * (corners(car)[:, 1] - 10.0)).max() < 0.02


@pytest.mark.parametrize("throttle", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("yaw", [0.0, 0.02])
def test_pressed_against_a_wall(throttle: float, yaw: float) -> None:
    """Nose first it stops there, keeps still, does not climb, and was reported once."""
    car = make_car(yaw=yaw, forward=10.0)
    drive(AHEAD, car, 300, throttle=throttle)
    assert car[st.HIT] == 7.0
    car[st.HIT] = -1.0
    before = car.copy()
    poses = []
    for _ in range(200):
        drive(AHEAD, car, 1, throttle=throttle)
        poses.append(car[[st.X, st.Y, st.Z, st.YAW, st.FORWARD, st.LATERAL, st.YAW_RATE]].copy())
    if throttle > 0.0:
        assert car[st.TOUCHING] == 7.0
        assert corners(car)[:, 1].max() == pytest.approx(10.0, abs=0.01)
        assert np.ptp(poses, axis=0).max() < (1e-9 if yaw == 0.0 else 0.01)  # a corner creeps until the nose is flush
        assert abs(car[st.ACCEL_FORWARD]) < 0.05
    assert car[st.HIT] == -1.0
    assert car[st.Y] == before[st.Y] == st.RIDE_HEIGHT
    assert np.ptp(np.array(poses)[:, 1]) == 0.0


def test_a_square_hit_stops_the_car_dead() -> None:
    car = make_car(forward=20.0)
    drive(AHEAD, car, 100)
    assert abs(car[st.FORWARD]) < 1e-9
    assert car[st.Z] == pytest.approx(10.0 - NOSE, abs=0.01)
    assert car[st.YAW] == pytest.approx(0.0, abs=1e-9)


def test_reversing_into_a_wall() -> None:
    car = make_car(yaw=math.pi)
    drive(AHEAD, car, 400, throttle=-0.5)
    assert car[st.Z] == pytest.approx(10.0 - NOSE, abs=0.01)
    assert car[st.TOUCHING] == 7.0


def test_a_scrape_turns_the_nose_along_the_wall() -> None:
    """Coming in from the left the front right corner is pushed back and out: the car turns left."""
    fence = flat_bank([wall(2.0, -100.0, 2.0, 100.0, name=3)])
    car = make_car(yaw=0.5, forward=10.0)
    drive(fence, car, 60)
    assert car[st.TOUCHING] == 3.0
    assert car[st.YAW] < 0.45
    assert world_velocity(car)[0] < 0.6


def test_sliding_along_a_guard_wall() -> None:
    """Held lightly against a fence of many pieces the car keeps going, and one contact is reported."""
    angle = np.linspace(0.0, 0.6, 25)
    x, z = 1.2 + 60.0 * (1.0 - np.cos(angle)), 60.0 * np.sin(angle)
    x, z = np.concatenate(([1.2], x)), np.concatenate(([-20.0], z))  # bends away to the right, then straight
    fence = flat_bank([wall(x[i], z[i], x[i + 1], z[i + 1], name=3) for i in range(len(x) - 1)])
    car = make_car(z=-15.0, forward=12.0)
    hits = 0
    for _ in range(250):
        drive(fence, car, 1, steer=0.3, throttle=0.2)
        hits += car[st.HIT] >= 0.0
        car[st.HIT] = -1.0
    assert hits == 1
    assert car[st.Z] > 5.0
    assert math.hypot(*world_velocity(car)) > 8.0


@pytest.mark.parametrize("bend", [-0.15, -0.05, 0.0, 0.05])
def test_a_joint_does_not_catch_the_nose(bend: float) -> None:
    """Flush along one piece of fence, over the joint to the next that bends towards the car or away from it."""
    fence = flat_bank([wall(0.5, -50.0, 0.5, 0.0), wall(0.5, 0.0, 0.5 + 50.0 * math.sin(bend), 50.0 * math.cos(bend))])
    car = make_car(z=-10.0, forward=15.0)
    drive(fence, car, 100, throttle=0.15)
    assert math.hypot(*world_velocity(car)) > 15.0 * math.cos(bend) - 15.0 * abs(math.sin(bend)) - 0.5
    assert car[st.Z] > 2.0


def test_friction_of_the_wall() -> None:
    """Thrown sideways against a wall, a rough one takes more of the speed along it."""
    speeds = []
    for friction in (0.0, 0.1, 1.0):
        fence = flat_bank([wall(1.0, -100.0, 1.0, 100.0, friction=friction)])
        car = make_car(forward=10.0)
        car[st.LATERAL] = 10.0
        drive(fence, car, 6)
        assert car[st.HIT] == 0.0
        speeds.append(world_velocity(car)[1])
    assert speeds[0] > speeds[1] + 0.3 > speeds[2] + 0.6


def test_the_end_of_a_wall_meets_the_nose() -> None:
    """A wall seen end on stops the car when it is in the way, and lets it pass when it is not."""
    for x, stopped in ((0.0, True), (0.3, True), (0.8, False)):
        bank = flat_bank([wall(x, 10.0, x, 30.0)])
        car = make_car(forward=15.0)
        drive(bank, car, 80)
        assert bool(car[st.Z] < 9.6) is stopped
        assert bool(car[st.HIT] == 0.0) is stopped


@pytest.mark.parametrize(
    ("shape", "near"),
    [
        *((shape, 9.0) for shape in (Shape.BOX, Shape.CHAIR, Shape.TABLE)),
        *((shape, 9.5) for shape in (Shape.CYLINDER, Shape.CONE, Shape.TREE, Shape.PERSON)),
    ],
)
@pytest.mark.parametrize("speed", [5.0, 50.0, 400.0])
def test_solids_stop_the_car(shape: Shape, near: float, speed: float) -> None:
    """A round one is half_x = 0.5 deep, a square one half_z = 1."""
    bank = flat_bank(solids=[solid(shape, 0.0, 10.0, half_x=0.5, half_z=1.0, name=4)])
    car = make_car(forward=speed)
    drive(bank, car, 150, throttle=0.2)
    assert car[st.HIT] == 4.0
    assert car[st.Z] == pytest.approx(near - NOSE, abs=0.02)


@pytest.mark.parametrize("radius", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("offset", [0.0, 0.3, 0.48])
@pytest.mark.parametrize("sideways", [False, True])
def test_a_thin_pole_is_never_inside(radius: float, offset: float, sideways: bool) -> None:
    bank = flat_bank(solids=[solid(Shape.CYLINDER, offset, 10.0, half_x=radius)])
    car = make_car(forward=0.0 if sideways else 60.0, yaw=math.pi / 2.0 if sideways else 0.0)
    car[st.LATERAL] = -60.0 if sideways else 0.0
    for _ in range(60):
        drive(bank, car, 1, throttle=0.5)
        f = (offset - car[st.X]) * math.sin(car[st.YAW]) + (10.0 - car[st.Z]) * math.cos(car[st.YAW])
        r = (offset - car[st.X]) * math.cos(car[st.YAW]) - (10.0 - car[st.Z]) * math.sin(car[st.YAW])
        outside = math.hypot(max(abs(f) - 0.875, 0.0), max(abs(r) - 0.5, 0.0))
        assert outside > radius - 0.01
    assert car[st.HIT] == 0.0


@settings(max_examples=60, deadline=None)
@given(some.floats(-math.pi, math.pi), some.floats(-1.5, 1.5), some.floats(5.0, 80.0), some.floats(0.05, 2.0))
def test_a_turned_box_is_never_entered(yaw: float, offset: float, speed: float, half_x: float) -> None:
    bank = flat_bank(solids=[solid(Shape.BOX, offset, 10.0, yaw=yaw, half_x=half_x, half_z=0.8)])
    car = make_car(forward=speed)
    for _ in range(60):
        drive(bank, car, 1)
        dx, dz = corners(car).T - np.array([[offset], [10.0]])
        across, along = dx * math.cos(yaw) - dz * math.sin(yaw), dx * math.sin(yaw) + dz * math.cos(yaw)
        depth = np.minimum(half_x - np.abs(across), 0.8 - np.abs(along))
        assert depth.max() < 0.06


def test_an_off_centre_hit_spins_the_car_about_it() -> None:
    for x, turn in ((0.45, 1.0), (-0.45, -1.0)):
        bank = flat_bank(solids=[solid(Shape.CYLINDER, x, 5.0, half_x=0.1)])
        car = make_car(forward=20.0)
        drive(bank, car, 25)
        assert car[st.YAW] * turn > 0.02


@pytest.mark.parametrize(
    ("walls", "solids"),
    [
        ([wall(-9.0, 5.0, 9.0, 5.0, height=0.3)], []),  # lower than the car's bottom, 0.316 above the ground
        ([wall(-9.0, 5.0, 9.0, 5.0, base=1.0)], []),  # a bridge
        ([], [solid(Shape.CONE, 0.0, 5.0, blocks=False)]),
        ([], [solid(Shape.ARCH, 0.0, 5.0, half_x=3.0)]),
        ([], [solid(Shape.BOX, 0.0, 5.0, height=0.2)]),
    ],
)
def test_what_does_not_stop_a_car(walls: list[list[float]], solids: list[list[float]]) -> None:
    bank = flat_bank(walls, solids)
    car, alone = make_car(forward=10.0), make_car(forward=10.0)
    drive(bank, car, 100)
    drive(flat_bank(), alone, 100)
    np.testing.assert_array_equal(car, alone)


def test_walls_stand_on_hills() -> None:
    """The same wall at z = 10 stops a car when it stands on the slope, not when it is sunk in it."""
    slope = (0.0, 0.2)
    for base, stopped in ((2.0, True), (0.5, True), (0.0, False)):
        bank = flat_bank([wall(-9.0, 10.0, 9.0, 10.0, base=base)], slope=slope)
        car = make_car(bank=bank, forward=10.0)
        drive(bank, car, 200, throttle=1.0)
        assert bool(car[st.Z] < 9.5) is stopped, base


def test_a_contact_is_reported_again_only_after_a_separation() -> None:
    car = make_car(forward=5.0, z=7.0)
    reports = []
    for throttle in (0.3, 0.3, -0.3, -0.3, 0.6, 0.6, 0.6, 0.6):
        drive(AHEAD, car, 70, throttle=throttle)
        reports.append(car[st.HIT])
        car[st.HIT] = -1.0
        if throttle < 0.0:
            assert car[st.TOUCHING] == -1.0
    assert reports[:4] == [7.0, -1.0, -1.0, -1.0]
    assert sorted(reports[4:]) == [-1.0, -1.0, -1.0, 7.0]


def test_two_things_at_once_are_reported_once_each() -> None:
    """Into a corner of two walls: both names come up, none of them twice, though both go on touching."""
    bank = flat_bank([wall(-20.0, 10.0, 20.0, 10.0, name=1), wall(0.8, -20.0, 0.8, 20.0, name=2)])
    car = make_car(forward=8.0, yaw=0.2)
    seen = []
    for _ in range(300):
        drive(bank, car, 1, throttle=0.5, steer=0.5)
        if car[st.HIT] >= 0.0:
            seen.append(car[st.HIT])
        car[st.HIT] = -1.0
    assert sorted(seen) == [1.0, 2.0]
    assert {car[st.TOUCHING], car[st.TOUCHING_TOO]} == {1.0, 2.0}


@settings(max_examples=40, deadline=None)
@given(
    forward=some.floats(-60.0, 60.0),
    lateral=some.floats(-30.0, 30.0),
    turning=some.floats(-20.0, 20.0),
    yaw=some.floats(-3.2, 3.2),
    friction=some.sampled_from([0.0, 0.1, 1.0]),
)
def test_contacts_give_no_energy(forward: float, lateral: float, turning: float, yaw: float, friction: float) -> None:
    """Thrown about in a cluttered room."""
    rng = np.random.default_rng(3)
    sides = [(-6, -6, 6, -6), (6, -6, 6, 6), (6, 6, -6, 6), (-6, 6, -6, -6)]
    room = [wall(*side, friction=friction) for side in sides]
    clutter = []
    for shape in (Shape.BOX, Shape.BOX, Shape.CYLINDER, Shape.CONE):
        x, z = rng.uniform(2.0, 5.0, 2) * rng.choice([-1, 1], 2)
        clutter.append(solid(shape, x, z, yaw=rng.uniform(0, 3), half_x=0.4, half_z=0.3, friction=friction))
    bank = flat_bank(room, clutter)
    car = make_car(yaw=yaw, forward=forward)
    car[st.LATERAL], car[st.YAW_RATE] = lateral, turning
    before = energy(car)
    for _ in range(80):
        drive(bank, car, 1)
        now = energy(car)
        assert now <= before * (1.0 + 1e-9)
        before = now
    assert np.abs(corners(car)).max() < 6.1


def test_a_hit_mirrors() -> None:
    left, right = flat_bank([wall(-5.0, 0.0, 1.0, 12.0)]), flat_bank([wall(5.0, 0.0, -1.0, 12.0)])
    car, mirror = make_car(forward=15.0), make_car(forward=15.0)
    drive(left, car, 150, steer=-0.05, throttle=0.4)
    drive(right, mirror, 150, steer=0.05, throttle=0.4)
    assert car[st.HIT] == 0.0
    assert (car[st.X], car[st.YAW]) == (
        pytest.approx(-mirror[st.X], abs=1e-7),
        pytest.approx(-mirror[st.YAW], abs=1e-7),
    )
    assert car[st.Z] == pytest.approx(mirror[st.Z], abs=1e-7)


# ---- two cars


def momentum(*cars: Any) -> Any:
    return sum(PARAMS.mass * np.array(world_velocity(car)) for car in cars)


def spin(*cars: Any) -> float:
    """Angular momentum about the world's origin, clockwise."""
    total = 0.0
    for car in cars:
        vx, vz = world_velocity(car)
        x = car[st.X] + st.MASS_AHEAD * math.sin(car[st.YAW])
        z = car[st.Z] + st.MASS_AHEAD * math.cos(car[st.YAW])
        total += PARAMS.mass * (z * vx - x * vz) + PARAMS.yaw_inertia * car[st.YAW_RATE]
    return total


@settings(max_examples=100, deadline=None)
@given(
    x=some.floats(-0.9, 0.9),
    z=some.floats(1.0, 1.8),
    yaw_a=some.floats(-3.2, 3.2),
    yaw_b=some.floats(-3.2, 3.2),
    speed_a=some.floats(-40.0, 40.0),
    speed_b=some.floats(-40.0, 40.0),
)
def test_two_cars_exchange_momentum(
    x: float, z: float, yaw_a: float, yaw_b: float, speed_a: float, speed_b: float
) -> None:
    a, b = make_car(yaw=yaw_a, forward=speed_a), make_car(x, z, yaw_b, forward=speed_b)
    push, turn, power = momentum(a, b), spin(a, b), energy(a) + energy(b)
    place = a[[st.X, st.Z]] + b[[st.X, st.Z]]
    velocities = [world_velocity(a), world_velocity(b)]
    collide_pair(a, b, PARAMS, OTHER_CARS + 0, OTHER_CARS + 1)
    np.testing.assert_allclose(momentum(a, b), push, atol=1e-6)
    assert energy(a) + energy(b) <= power * (1.0 + 1e-9) + 1e-9
    np.testing.assert_allclose(a[[st.X, st.Z]] + b[[st.X, st.Z]], place, atol=1e-12)
    if [world_velocity(a), world_velocity(b)] != velocities:
        assert (a[st.HIT], b[st.HIT]) == (OTHER_CARS + 1, OTHER_CARS + 0)
    a[[st.X, st.Z]], b[[st.X, st.Z]] = (0.0, 0.0), (x, z)  # undo the separation: the blows alone keep the spin
    assert spin(a, b) == pytest.approx(turn, abs=1e-6 + 1e-9 * abs(turn))


def test_running_into_a_parked_car() -> None:
    """Equal masses, no bounce: both go on with half of the speed; told once, until they part."""
    a, b = make_car(forward=10.0), make_car(z=1.7)
    collide_pair(a, b, PARAMS, OTHER_CARS + 0, OTHER_CARS + 1)
    assert a[st.FORWARD] == pytest.approx(5.0)
    assert b[st.FORWARD] == pytest.approx(5.0)
    assert (a[st.HIT], b[st.HIT]) == (OTHER_CARS + 1, OTHER_CARS + 0)
    assert b[st.Z] - a[st.Z] == pytest.approx(1.75)
    a[st.HIT] = b[st.HIT] = -1.0
    collide_pair(a, b, PARAMS, OTHER_CARS + 0, OTHER_CARS + 1)
    drive(flat_bank(), a, 1)  # the track's contacts do not forget the other car
    assert (a[st.HIT], a[st.TOUCHING]) == (-1.0, OTHER_CARS + 1)
    b[st.Z] += 0.2
    collide_pair(a, b, PARAMS, OTHER_CARS + 0, OTHER_CARS + 1)
    assert (a[st.TOUCHING], b[st.TOUCHING]) == (-1.0, -1.0)


def test_cars_on_two_levels_do_not_meet() -> None:
    a, b = make_car(forward=10.0), make_car(z=1.0)
    b[st.Y] += 3.0
    collide_pair(a, b, PARAMS, OTHER_CARS + 0, OTHER_CARS + 1)
    assert (a[st.HIT], a[st.FORWARD]) == (-1.0, 10.0)


# ---- the grid


@settings(max_examples=20, deadline=None)
@given(some.integers(0, 1000), some.integers(0, 40), some.integers(0, 40))
def test_grid_lists_everything_in_reach(seed: int, n_walls: int, n_solids: int) -> None:
    """Sampled points of every thing are listed in the cells of all places within reach of them."""
    rng = np.random.default_rng(seed)
    walls, solids = np.zeros((n_walls, WALL_COLUMNS)), np.zeros((n_solids, SOLID_COLUMNS))
    walls[:, :4] = rng.uniform(-60.0, 60.0, (n_walls, 4))
    solids[:, 1:3] = rng.uniform(-60.0, 60.0, (n_solids, 2))
    solids[:, 4:6] = rng.uniform(0.1, 3.0, (n_solids, 2))
    (rows, columns), (x0, z0, cell), start, items = build_grid(walls, solids)
    assert start.shape == (rows * columns + 1,)
    assert start[-1] == len(items)
    for item in range(n_walls + n_solids):
        if item < n_walls:
            share = rng.uniform(size=(20, 1))
            points = walls[item, 0:2] * (1.0 - share) + walls[item, 2:4] * share
        else:
            points = np.repeat(solids[None, item - n_walls, 1:3], 20, axis=0)
        bearing, reach = rng.uniform(0.0, 2.0 * math.pi, 20), rng.uniform(0.0, GRID_REACH - 1e-9, 20)
        places = points + reach[:, None] * np.column_stack((np.sin(bearing), np.cos(bearing)))
        for x, z in places:
            column, row = int((x - x0) // cell), int((z - z0) // cell)
            assert 0 <= column < columns
            assert 0 <= row < rows
            index = row * columns + column
            assert item in items[start[index] : start[index + 1]]


def test_grid_leaves_out_what_is_far() -> None:
    walls = np.array([wall(0.0, 0.0, 80.0, 80.0)])
    (rows, columns), _, start, _ = build_grid(walls, np.zeros((0, SOLID_COLUMNS)))
    assert start[-1] < 0.4 * rows * columns


def test_grid_of_nothing() -> None:
    shape, _, start, items = build_grid(np.zeros((0, WALL_COLUMNS)), np.zeros((0, SOLID_COLUMNS)))
    assert (shape, len(start), len(items)) == ((0, 0), 1, 0)


def test_grid_of_a_thing_at_the_end_of_the_world() -> None:
    walls = np.array([wall(0.0, 0.0, 1.0, 0.0), wall(1e7, 1e7, 1e7 + 1.0, 1e7)])
    (rows, columns), _, _, items = build_grid(walls, np.zeros((0, SOLID_COLUMNS)))
    assert rows * columns < 1_000_000
    assert set(items) == {0, 1}
