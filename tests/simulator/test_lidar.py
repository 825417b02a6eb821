"""Lidar distances worked by hand, and against a ray that looks at everything."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rl_training.simulator import state as st
from rl_training.simulator.lidar import NO_HIT, LidarConfig, hit_solid, hit_wall, scan
from rl_training.simulator.state import CarParams
from rl_training.simulator.track import Shape
from tests.simulator.worlds import flat_bank, make_car, solid, wall

LEVEL = LidarConfig(offset_y=0.0, offset_z=0.0, deg_ang_down=0.0, num_sweeps_levels=1)
NOBODY = np.zeros((0, st.STATE_COLUMNS))


def look(bank: Any, car: Any, config: LidarConfig = LEVEL, others: Any = NOBODY) -> Any:
    out = np.full(config.shape, 123.0)
    scan(bank, 0, car, others, CarParams(), config, out)
    return out


def at(row: Any, bearing: float) -> float:
    """The distance at a bearing of the first level [degrees clockwise from ahead]."""
    return float(row[0, int(bearing / 2.0)])


def test_a_square_room() -> None:
    """Walls 10 ahead, 6 to the right, 4 behind, none to the left; at 30 degrees 10 / cos 30 < 6 / sin 30."""
    bank = flat_bank([wall(-40, 10, 6, 10), wall(6, 10, 6, -4), wall(6, -4, -40, -4)])
    got = look(bank, make_car())
    assert got.shape == (1, 180)
    expected = {0.0: 10.0, 90.0: 6.0, 180.0: 4.0, 270.0: NO_HIT, 30.0: 11.55, 60.0: 6.93, 330.0: 11.55, 136.0: 5.56}
    for bearing, distance in expected.items():
        assert at(got, bearing) == pytest.approx(distance, abs=0.006), bearing


def test_bearings_turn_with_the_car() -> None:
    bank = flat_bank([wall(-40, 10, 40, 10)])
    got = look(bank, make_car(yaw=math.radians(40.0)))
    assert at(got, 320.0) == 10.0
    assert at(got, 0.0) == pytest.approx(10.0 / math.cos(math.radians(40.0)), abs=0.006)


def test_distances_are_rounded_and_cut_at_the_range() -> None:
    for z, expected in ((10.123, 10.12), (49.99, 49.99), (50.01, NO_HIT)):
        assert at(look(flat_bank([wall(-5, z, 5, z)]), make_car()), 0.0) == pytest.approx(expected, abs=1e-9)


def test_levels_look_down_and_see_the_ground() -> None:
    """The prefab's 25 levels from 25 degrees down see the ground at height / sin; the last one beyond the range."""
    config = LidarConfig()
    got = look(flat_bank(), make_car(), config)
    assert got.shape == (25, 180)
    height = st.RIDE_HEIGHT + 0.5
    for level in (0, 10, 20):
        distance = height / math.sin(math.radians(25.0 - level))
        assert got[level] == pytest.approx(distance, abs=0.006)
    assert (got[24] == NO_HIT).all()


def test_offset_and_tilt() -> None:
    bank = flat_bank([wall(-40, 10, 40, 10, height=30.0)])
    forward = look(bank, make_car(), LEVEL._replace(offset_z=0.5, offset_x=0.25))
    assert at(forward, 0.0) == 9.5
    tilted = look(bank, make_car(), LEVEL._replace(rot_x=-20.0))  # nose up: farther ahead, the ground behind
    assert at(tilted, 0.0) == pytest.approx(10.0 / math.cos(math.radians(20.0)), abs=0.006)
    assert at(tilted, 180.0) == pytest.approx(st.RIDE_HEIGHT / math.sin(math.radians(20.0)), abs=0.006)


def test_pitch_and_roll_tilt_the_rays() -> None:
    car = make_car()
    car[st.PITCH] = math.radians(10.0)  # nose down
    got = look(flat_bank(), car)
    assert at(got, 0.0) == pytest.approx(st.RIDE_HEIGHT / math.sin(math.radians(10.0)), abs=0.006)
    assert at(got, 180.0) == NO_HIT
    car[[st.PITCH, st.ROLL]] = 0.0, math.radians(10.0)  # left side down
    got = look(flat_bank(), car)
    assert at(got, 270.0) == pytest.approx(st.RIDE_HEIGHT / math.sin(math.radians(10.0)), abs=0.006)
    assert at(got, 90.0) == NO_HIT


def test_rays_pass_over_low_walls_and_under_bridges() -> None:
    low, bridge, high = wall(-5, 5, 5, 5, height=0.4), wall(-5, 7, 5, 7, base=1.0), wall(-5, 9, 5, 9)
    assert at(look(flat_bank([low, bridge, high]), make_car()), 0.0) == 9.0


@pytest.mark.parametrize(
    ("shape", "distance"),
    [
        (Shape.BOX, 9.0),
        (Shape.CYLINDER, 9.5),
        (Shape.CONE, 9.5),
        (Shape.TREE, 9.5),
        (Shape.ARCH, NO_HIT),
        (Shape.TABLE, 9.0),
    ],
)
def test_solids(shape: Shape, distance: float) -> None:
    """Also those a car drives through."""
    bank = flat_bank(solids=[solid(shape, 0.0, 10.0, half_x=0.5, half_z=1.0, blocks=False)])
    got = look(bank, make_car())
    assert at(got, 0.0) == distance
    assert at(got, 90.0) == NO_HIT


def test_hills() -> None:
    """Up a slope of 20 degrees seen from a level sensor at its foot: at height / tan 20 ahead."""
    bank = flat_bank(slope=(0.0, math.tan(math.radians(20.0))))
    car = make_car()
    got = look(bank, car)
    assert at(got, 0.0) == pytest.approx(st.RIDE_HEIGHT / math.tan(math.radians(20.0)), abs=0.006)
    assert at(got, 180.0) == NO_HIT


def test_other_cars_are_seen_and_oneself_is_not() -> None:
    car, ahead, beside = make_car(), make_car(z=8.0), make_car(x=5.0, yaw=math.pi / 2.0)
    got = look(flat_bank(), car, others=np.stack((car, ahead, beside)))
    assert at(got, 0.0) == pytest.approx(8.0 - 0.875, abs=0.006)
    assert at(got, 90.0) == pytest.approx(5.0 - 0.875, abs=0.006)
    assert at(got, 180.0) == NO_HIT


@pytest.mark.parametrize("seed", range(4))
def test_the_grid_finds_what_looking_at_everything_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    walls = [wall(*rng.uniform(-60.0, 60.0, 4)) for _ in range(20)]
    shapes = (Shape.BOX, Shape.CYLINDER)
    solids = [solid(shapes[k % 2], *rng.uniform(-60, 60, 2), yaw=k, half_x=0.3 + 0.1 * k) for k in range(20)]
    bank = flat_bank(walls, solids)
    for _ in range(5):
        car = make_car(*rng.uniform(-70.0, 70.0, 2), yaw=rng.uniform(-3.0, 3.0))
        got = look(bank, car)
        for k in range(0, 180, 3):
            bearing = car[st.YAW] + math.radians(2.0 * k)
            ray = (car[st.X], car[st.Y], car[st.Z], math.sin(bearing), 0.0, math.cos(bearing))
            near = min([hit_wall(ray, row) for row in bank.walls[0]] + [hit_solid(ray, row) for row in bank.solids[0]])
            assert got[0, k] == pytest.approx(near if near < 50.0 else NO_HIT, abs=0.006)
