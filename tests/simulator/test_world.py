"""The world: tracks shared and replaced, cars that see and hit each other, latency, randomisation."""

from __future__ import annotations

import numpy as np
import pytest

from rl_training.envs.cameras import StackedCamera
from rl_training.envs.spec import CameraSpec, ObservationSpec
from rl_training.errors import UsageError
from rl_training.simulator import state as s
from rl_training.simulator.packing import prepare
from rl_training.simulator.random_road import random_road
from rl_training.simulator.randomize import Appearance, DomainRandomization, faithful, sample
from rl_training.simulator.world import World, named_track
from tests.simulator.arenas import along, drive, world_on

SMALL = ObservationSpec(64, 48, camera_width=64, camera_height=48)


# ---- tracks


def test_arenas_on_one_track_share_its_memory() -> None:
    one, many = World(1), World(16)
    for world in (one, many):
        for arena in range(world.arenas):
            world.load(arena, named_track("generated_track"))
    assert len(set(many.slots.tolist())) == 1
    assert many.bank.tiles.nbytes == one.bank.tiles.nbytes


def test_replacing_a_track_leaves_the_others_as_they_were() -> None:
    world = World(3)
    roads = [prepare(random_road(seed, 0.8)) for seed in range(8)]
    for arena in range(3):
        world.load(arena, roads[arena])
        world.dress(arena)
        world.place_at_start(arena)
    camera = StackedCamera(world, SMALL, CameraSpec())
    for arena in range(3):
        camera.dress(arena, faithful(world.track(arena)))
    before = camera.observe()
    for road in roads[3:]:  # of other sizes: the bank grows and reuses its blocks
        world.load(1, road)
    after = camera.observe()
    np.testing.assert_array_equal(after[[0, 2]], before[[0, 2]])
    world.load(1, roads[1])
    world.place_at_start(1)
    np.testing.assert_array_equal(camera.observe(), before)


def test_a_world_without_cars_is_refused() -> None:
    with pytest.raises(UsageError, match="1 to 8"):
        World(1, 9)


def test_a_saved_world_goes_on_bit_for_bit() -> None:
    world = world_on("generated_track")
    drive(world, 20, 0.2, 0.3)
    saved = world.save_state()
    drive(world, 20, -0.3, 0.4)
    expected = world.state.copy()
    world.load_state(saved)
    drive(world, 20, -0.3, 0.4)
    np.testing.assert_array_equal(world.state, expected)


# ---- several cars


def test_cars_start_on_the_grid_behind_the_first() -> None:
    world = world_on("generated_track", cars=4)
    x, z = world.state[:, s.X], world.state[:, s.Z]
    np.testing.assert_allclose(x - x[0], [0.0, -4.5, 0.0, -4.5], atol=1e-9)  # heading +z: right is +x
    np.testing.assert_allclose(z - z[0], [0.0, 0.0, -5.0, -5.0], atol=1e-9)


def test_a_rear_end_shunt_is_felt_by_both() -> None:
    world = world_on("generated_track", cars=2)
    x, z, yaw = along(world, 5.0)
    world.place(0, x, z + 6.0, yaw)
    world.place(1, x, z, yaw)
    hits = ["none", "none"]
    for _ in range(60):
        world.step(np.array([[0.0, 0.0, 0.0], [0.0, 0.6, 0.0]]))
        hits = [new if new != "none" else old for old, new in zip(hits, (world.hit_name(0), world.hit_name(1)))]
        if "none" not in hits:
            break
    assert hits == [world.car_name(1), world.car_name(0)]
    assert world.state[0, s.FORWARD] > 0.5
    assert world.state[1, s.Z] < world.state[0, s.Z] - 1.6  # nobody drove through anybody


def test_a_car_is_seen_by_the_one_behind_it_only() -> None:
    world = world_on("generated_track", cars=2)
    camera = StackedCamera(world, SMALL, CameraSpec())
    for car in range(2):
        camera.dress(car, faithful(world.track(0)))
    x, z, yaw = along(world, 5.0)
    world.place(0, x, z + 5.0, yaw)
    world.place(1, x, z, yaw)
    near = camera.observe()
    world.place(0, x, z + 400.0, yaw)
    world.place(1, x, z, yaw)
    far = camera.observe()
    assert (near[1] != far[1]).mean() > 0.01


def test_arenas_know_nothing_of_each_other() -> None:
    alone, crowd = world_on("generated_track"), World(3)
    for arena in range(3):
        crowd.load(arena, named_track("generated_track"))
        crowd.dress(arena)
        crowd.place_at_start(arena)  # all three stand in one place, each in its own arena
    drive(alone, 40, 0.1, 0.4)
    drive(crowd, 40, 0.1, 0.4)
    for arena in range(3):
        np.testing.assert_array_equal(crowd.state[arena], alone.state[0])


# ---- latency


def test_latency_delays_a_command_by_so_much() -> None:
    prompt, late = world_on("generated_track"), world_on("generated_track")
    look = faithful(late.track(0))
    late.dress(0, Appearance(look.colors, look.light, latency=0.05))
    for world in (prompt, late):
        drive(world, 4, 0.0, 0.0)  # lets go of the reset's brake
    drive(prompt, 1, 0.0, 0.5)
    drive(late, 2, 0.0, 0.5)
    assert late.state[0, s.FORWARD] == pytest.approx(prompt.state[0, s.FORWARD], rel=1e-9)


# ---- randomisation


def test_no_randomisation_is_the_track_itself() -> None:
    track = named_track("warren").track
    assert sample(DomainRandomization(), track, np.random.default_rng(0)) == faithful(track)


def test_presets_stay_within_their_ranges() -> None:
    track = named_track("warren").track
    rng = np.random.default_rng(0)
    ranges = DomainRandomization.preset("strong")
    draws = [sample(ranges, track, rng) for _ in range(300)]
    friction = np.array([draw.friction for draw in draws])
    assert friction.min() > 0.85 - 1e-9
    assert friction.max() < 1.15 + 1e-9
    assert friction.std() > 0.05
    assert max(draw.latency for draw in draws) <= 0.05
    assert all(draw.light.direction[1] < -0.1 for draw in draws), "the sun stays above the horizon"
    light = DomainRandomization.preset("light")
    moved = np.array([sample(light, track, rng).colors.astype(int) - track.colors for _ in range(50)])
    assert 5 < np.abs(moved).max() <= 15


def test_a_randomised_look_changes_the_picture() -> None:
    world = world_on("warren")
    camera = StackedCamera(world, SMALL, CameraSpec())
    looks = [faithful(world.track(0))]
    looks += [sample(DomainRandomization.preset("strong"), world.track(0), np.random.default_rng(k)) for k in range(3)]
    frames = []
    for look in looks:
        camera.dress(0, look)
        frames.append(camera.observe()[0])
    for k in range(1, 4):
        assert (frames[k] != frames[0]).mean() > 0.5
