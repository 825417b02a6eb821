"""The embedded world as a server's scene: cars come, go, meet and are moved, and each client sees its own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rl_training.envs.scene_host import SCENE_NAMES, WorldHost
from rl_training.errors import SimulatorError, TrackError
from rl_training.protocol import messages as m
from rl_training.protocol.camera import CameraSettings
from rl_training.protocol.client import SimClient
from rl_training.protocol.scenes import NODES_OF_SCENE
from rl_training.protocol.server import connect_in_memory
from rl_training.protocol.sessions import ServerOptions, SimEngine
from rl_training.simulator.world import MAX_CARS, named_track


@pytest.fixture
def host() -> WorldHost:
    host = WorldHost()
    host.load("waveshare", seed=None)
    return host


def drive(host: WorldHost, car: int, steps: int, throttle: float = 0.5, steering: float = 0.0) -> None:
    host.control(car, steering, throttle, 0.0)
    for _ in range(steps):
        host.advance([car])


def test_scenes_are_unitys_with_unitys_nodes() -> None:
    assert set(SCENE_NAMES) == set(NODES_OF_SCENE)
    for name in ("waveshare", "warren", "mini_monaco", "circuit_launch"):
        assert len(named_track(name).track.nodes) == NODES_OF_SCENE[name]
    with pytest.raises(TrackError, match="Did you mean 'warren'"):
        WorldHost().load("waren", seed=None)


def test_a_packet_is_in_the_wires_units(host: WorldHost) -> None:
    car = host.add_car()
    first = host.telemetry(car)
    assert (first.pos_x, first.pos_z, first.yaw) == pytest.approx((0.0, -7.70 / 8.0, 90.0), abs=0.02)
    assert first.image.shape == (120, 160, 3)
    drive(host, car, 10)
    packet = host.telemetry(car)
    assert packet.time == pytest.approx(0.5)
    assert packet.vel_z is not None
    assert packet.speed == pytest.approx(packet.vel_z, rel=1e-3)
    assert packet.pos_x is not None
    # From rest with half throttle: 10.4 u/s² less rolling losses for half a second.
    assert 8.0 * packet.speed == pytest.approx(5.0, abs=0.4)
    assert 8.0 * packet.pos_x == pytest.approx(0.5 * 10.2 * 0.5**2, abs=0.15)
    assert packet.progress == pytest.approx(packet.pos_x, abs=0.02)


def test_others_drive_on_when_a_car_comes_and_goes(host: WorldHost) -> None:
    """The world behind them is made anew; nobody may notice. A lone car in another host is the measure."""
    lone = WorldHost()
    lone.load("waveshare", seed=None)
    alone, first = lone.add_car(), host.add_car()
    drive(lone, alone, 5)
    drive(host, first, 5)
    second = host.add_car()
    drive(lone, alone, 5)
    drive(host, first, 5)
    host.remove_car(second)
    drive(lone, alone, 5)
    drive(host, first, 5)
    expected, packet = lone.telemetry(alone), host.telemetry(first)
    for name in ("time", "pos_x", "pos_z", "vel_z", "yaw", "cte", "front_left_odom", "progress", "active_node"):
        assert getattr(packet, name) == getattr(expected, name), name
    np.testing.assert_array_equal(packet.image, expected.image)


def test_only_the_asked_car_moves_but_it_meets_the_others(host: WorldHost) -> None:
    resting = host.add_car()
    host.set_body(resting, m.CarConfig(car_name="Zoe", body_r=255, body_g=0, body_b=0))
    moving = host.add_car()
    behind = host.telemetry(resting)
    assert behind.pos_x is not None
    assert behind.pos_z is not None
    host.set_position(
        moving, m.SetPosition(8.0 * behind.pos_x - 3.0, 0.5, 8.0 * behind.pos_z, qy=math.sqrt(0.5), qw=math.sqrt(0.5))
    )
    before = host.telemetry(resting)
    hits = []
    for _ in range(30):
        drive(host, moving, 1, throttle=1.0)
        hits.append(host.telemetry(moving).hit)
    assert "Zoe" in hits, "a name of more than one letter is what others report"
    after = host.telemetry(resting)
    assert (after.pos_x, after.time, after.speed) == (before.pos_x, before.time, before.speed)
    assert hits[-1] == "none", "a contact that lasts is reported once"


def test_cars_start_side_by_side_and_reset_to_their_own_place(host: WorldHost) -> None:
    cars = [host.add_car() for _ in range(3)]
    places = [(packet.pos_x, packet.pos_z) for packet in map(host.telemetry, cars)]
    assert len(set(places)) == 3
    drive(host, cars[1], 20)
    assert host.telemetry(cars[1]).pos_x != places[1][0]
    host.reset_car(cars[1])
    packet = host.telemetry(cars[1])
    assert (packet.pos_x, packet.pos_z) == places[1]
    assert (packet.speed, packet.throttle, packet.active_node, packet.progress) == (0.0, 0.0, 0, 0.0)
    host.remove_car(cars[0])
    newcomer = host.add_car()
    packet = host.telemetry(newcomer)
    assert (packet.pos_x, packet.pos_z) == places[0], "the first free place"


def test_a_full_scene_refuses_the_next_car_and_its_client(host: WorldHost) -> None:
    for _ in range(MAX_CARS):
        host.add_car()
    with pytest.raises(SimulatorError, match=f"All {MAX_CARS} places"):
        host.add_car()
    engine = SimEngine(WorldHost(), ServerOptions(lockstep=True))
    sessions = [engine.open(f"client {k}") for k in range(MAX_CARS + 1)]
    engine.load("waveshare")
    assert [session.is_open for session in sessions] == [True] * MAX_CARS + [False]


def test_cars_apart_start_in_one_place_and_never_meet() -> None:
    host = WorldHost(apart=True)
    host.load("waveshare", seed=None)
    cars = [host.add_car() for _ in range(MAX_CARS + 2)]
    packets = [host.telemetry(car) for car in cars]
    assert len({(packet.pos_x, packet.pos_z) for packet in packets}) == 1
    np.testing.assert_array_equal(packets[0].image, packets[-1].image)
    for car in cars:
        host.control(car, 0.0, 0.1 * car / len(cars), 0.0)
    for _ in range(20):
        host.advance(cars)
    packets = [host.telemetry(car) for car in cars]
    assert {packet.hit for packet in packets} == {"none"}
    speeds = [packet.speed for packet in packets]
    assert speeds == sorted(set(speeds)), "each by its own throttle"


def test_moving_a_car_by_hand_keeps_its_speed(host: WorldHost) -> None:
    car = host.add_car()
    drive(host, car, 10)
    before = host.telemetry(car)
    host.set_position(car, m.SetPosition(4.0, 0.5, 7.0, qy=1.0, qw=0.0))
    after = host.telemetry(car)
    assert (after.pos_x, after.pos_z, after.yaw) == pytest.approx((0.5, 7.0 / 8.0, 180.0))
    assert (after.speed, after.vel_z, after.time) == (before.speed, before.vel_z, before.time)
    # Without a rotation the message means the identity: looking along +z.
    host.set_position(car, m.SetPosition(0.0, 0.5, 0.0))
    assert host.telemetry(car).yaw == 0.0


def test_nodes_tell_where_they_stand_and_look(host: WorldHost) -> None:
    nodes = named_track("waveshare").track.nodes
    node = host.node_position(5)
    assert node is not None
    assert (node.pos_x, node.pos_y, node.pos_z) == pytest.approx(tuple(nodes[5]))
    q = node
    forward = (2 * (q.qx * q.qz + q.qw * q.qy), 2 * (q.qy * q.qz - q.qw * q.qx), 1 - 2 * (q.qx**2 + q.qy**2))
    along = nodes[6] - nodes[4]
    np.testing.assert_allclose(forward, along / np.linalg.norm(along), atol=1e-9)
    assert host.node_position(-1) is None
    assert host.node_position(len(nodes)) is None


def test_a_road_is_made_anew_by_its_seed_only_where_roads_are_random(host: WorldHost) -> None:
    assert not host.regen_road(m.RegenRoad(rand_seed=3))
    host.load("generated_road", seed=1)
    car = host.add_car()
    drive(host, car, 10)

    def far_node(seed: int) -> m.NodePosition | None:
        assert host.regen_road(m.RegenRoad(rand_seed=seed))
        return host.node_position(200)

    third = far_node(3)
    assert far_node(4) != third
    assert far_node(3) == third
    packet = host.telemetry(car)
    assert (packet.speed, packet.progress) == (0.0, 0.0), "the car is put back"
    assert packet.time == pytest.approx(0.5), "the scene's clock goes on"


def test_unseeded_generated_roads_differ_and_other_scenes_do_not() -> None:
    def far_node(scene: str) -> m.NodePosition | None:
        host = WorldHost()
        host.load(scene, seed=None)
        return host.node_position(20)

    assert far_node("generated_road") != far_node("generated_road")
    assert far_node("waveshare") == far_node("waveshare")


def test_cameras_are_each_clients_own(host: WorldHost) -> None:
    first, second = host.add_car(), host.add_car()
    host.set_camera(first, CameraSettings(width=80, height=60, y=3.0))
    host.set_second_camera(first, CameraSettings(width=32, height=24, fish_eye=(0.4, 0.7)))
    packet = host.telemetry(first)
    assert packet.image.shape == (60, 80, 3)
    assert packet.image_b is not None
    assert packet.image_b.shape == (24, 32, 3)
    assert host.telemetry(second).image.shape == (120, 160, 3)
    assert host.telemetry(second).image_b is None


def test_lidar_sees_the_car_beside(host: WorldHost) -> None:
    first, second = host.add_car(), host.add_car()
    config = m.LidarConfig(
        offset_x=0.0, offset_y=0.0, offset_z=0.0, deg_per_sweep=5.0, deg_down=0.0, levels=1, max_range=10.0
    )
    host.set_lidar(first, config)
    one, two = host.telemetry(first), host.telemetry(second)
    assert two.lidar is None
    assert one.lidar
    distance = 8.0 * math.dist((one.pos_x or 0, one.pos_z or 0), (two.pos_x or 0, two.pos_z or 0))
    nearest = min(point.d for point in one.lidar)
    assert distance - 1.1 < nearest < distance - 0.4, "to its near side, half a car before its middle"
    assert all(0.0 <= point.rx < 360.0 and point.ry == 0.0 for point in one.lidar)


def test_start_lines_are_reported_with_their_time() -> None:
    engine = SimEngine(WorldHost(), ServerOptions(lockstep=True))
    client = SimClient(dial=lambda deadline: connect_in_memory(engine))
    client.connect()
    client.load_scene("warren")
    client.reset()
    for _ in range(60):
        frame = client.step(0.0, 0.5)
        if client.crossings:
            break
    (crossing,) = client.crossings
    assert crossing.starting_line_index == 0
    assert frame.time - 0.05 <= crossing.time_stamp <= frame.time
    client.close()
