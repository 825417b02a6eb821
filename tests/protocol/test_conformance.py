"""The server against the fact sheet: handshakes, every message in every state, timing, several clients, over TCP."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rl_training.protocol import images
from rl_training.protocol.server import SimServer
from tests.protocol.fake_host import SCENES, FakeHost, Wire, control, eventually, running

CAMERA = {"msg_type": "cam_config", "fov": "0", "img_w": "0", "img_h": "0", "img_d": "0", "img_enc": "0"}


@pytest.fixture
def host() -> FakeHost:
    return FakeHost()


@pytest.fixture
def server(host: FakeHost) -> Iterator[SimServer]:
    """Twenty times real time: a packet every 2.5 ms."""
    with running(host, speed=20.0) as server:
        yield server


@pytest.fixture
def wire(server: SimServer) -> Iterator[Wire]:
    with Wire(server.address) as wire:
        yield wire


def image_of(packet: dict[str, Any], name: str = "image") -> np.ndarray:
    return images.decode(base64.b64decode(packet[name]))


# --- Menu -------------------------------------------------------------------------------------------------------------


def test_the_menu_greets_and_lists_all_scenes_in_order(wire: Wire) -> None:
    assert wire.line() == '{"msg_type":"scene_selection_ready","loaded":"1"}\n'
    wire.send({"msg_type": "get_scene_names"})
    assert (
        wire.line()
        == json.dumps({"scene_names": list(SCENES), "msg_type": "scene_names"}, separators=(",", ":")) + "\n"
    )
    wire.send({"msg_type": "get_protocol_version"})
    version = wire.message()
    assert (version["msg_type"], version["version"]) == ("protocol_version", "2")


def test_the_classic_handshake(wire: Wire, host: FakeHost) -> None:
    assert wire.message()["msg_type"] == "scene_selection_ready"
    wire.send({"msg_type": "get_scene_names"})
    name = wire.message()["scene_names"][3]
    wire.send({"msg_type": "load_scene", "scene_name": name})
    assert wire.message()["msg_type"] == "car_loaded"
    wire.send(control(brake="1.0"), {"msg_type": "car_config", "body_style": "car01", "car_name": "me"}, CAMERA)
    assert wire.message()["msg_type"] == "telemetry"
    assert ("load", "generated_track", None) in host.calls


def test_an_unknown_scene_is_ignored_and_so_is_driving_in_the_menu(wire: Wire, host: FakeHost) -> None:
    wire.until("scene_selection_ready")
    wire.send({"msg_type": "load_scene", "scene_name": "moon"}, control("1", "1", "0"), {"msg_type": "reset_car"})
    wire.send({"msg_type": "node_position", "index": "0"}, {"msg_type": "get_protocol_version"})
    assert wire.message()["msg_type"] == "protocol_version"
    assert host.calls == []


# --- Track ------------------------------------------------------------------------------------------------------------


def test_who_connects_to_a_loaded_track_gets_a_car_at_once(server: SimServer, wire: Wire, host: FakeHost) -> None:
    wire.load("warren")
    with Wire(server.address) as second:
        first = second.message()
        assert first["msg_type"] == "car_loaded"
        second.send({"msg_type": "load_scene", "scene_name": "waveshare"}, {"msg_type": "get_scene_names"})
        second.send({"msg_type": "get_protocol_version"})
        kinds = [second.message()["msg_type"] for _ in range(10)]
        assert "scene_names" not in kinds
        assert "protocol_version" in kinds
        assert host.scene == "warren"
        assert len(host.cars) == 2


def test_telemetry_comes_at_20_hz_of_simulated_time(wire: Wire) -> None:
    wire.load()
    times = [wire.until("telemetry")["time"] for _ in range(20)]
    np.testing.assert_allclose(np.diff(times), 0.05, atol=1e-9)
    assert times[0] == pytest.approx(0.05)


def test_control_values_are_clamped_held_and_echoed(wire: Wire, host: FakeHost) -> None:
    wire.load()
    wire.send(control("-7", "3", "9"))
    (car,) = host.cars.values()
    assert eventually(lambda: (car.steering, car.throttle, car.brake) == (-1.0, 1.0, 1.0))
    wire.send(control(steering=0.25, throttle="0,5", brake=0))
    assert eventually(lambda: (car.steering, car.throttle, car.brake) == (0.25, 0.5, 0.0))
    for _ in range(3):
        packet = wire.until("telemetry")
    assert (packet["steering_angle"], packet["throttle"]) == (0.25, 0.5)


@pytest.mark.parametrize("bad", [{"steering": "fast"}, {"throttle": None}, {"brake": "nan"}, {"steering": []}])
def test_a_bad_value_is_ignored_and_the_connection_kept(wire: Wire, host: FakeHost, bad: dict[str, Any]) -> None:
    wire.load()
    (car,) = host.cars.values()
    wire.send(control("0.5"), {**control("0.9"), **bad}, {"msg_type": "control", "steering": "0.9"})
    wire.send({"msg_type": "warp"}, {"no_type": "at all"}, {"msg_type": "get_protocol_version"})
    wire.until("protocol_version")
    assert car.steering == 0.5


@pytest.mark.parametrize("separator", [b"", b"\n", b"\r\n\r\n", b"{}\n"])
def test_objects_may_be_bare_or_on_lines(wire: Wire, host: FakeHost, separator: bytes) -> None:
    wire.load()
    (car,) = host.cars.values()
    name = {"msg_type": "car_config", "body_style": "f1", "car_name": "{odd} }{ name"}
    wire.send(
        separator.join(json.dumps(message).encode() for message in (name, control("0.1"), control("0.2"))) + separator
    )
    assert eventually(lambda: car.steering == 0.2)
    assert car.name == "{odd} }{ name"


def test_reset_car_holds_the_brake_until_the_next_control(wire: Wire, host: FakeHost) -> None:
    wire.load()
    (car,) = host.cars.values()
    wire.send(control("0.5", "1"))
    assert eventually(lambda: car.z > 1.0)
    wire.send({"msg_type": "reset_car"})
    assert eventually(lambda: car.brake == 10.0)
    wire.until("telemetry")
    assert (car.z, car.steering, car.throttle) == (0.0, 0.0, 0.0)
    wire.send(control("0", "1"))
    assert eventually(lambda: car.z > 0.0)


def test_exit_scene_takes_everybody_to_the_menu_and_tells_nobody(server: SimServer, wire: Wire, host: FakeHost) -> None:
    wire.load()
    with Wire(server.address) as second:
        second.until("car_loaded")
        second.send({"msg_type": "exit_scene"})
        assert eventually(lambda: host.calls[-1] == ("exit",))
        wire.send({"msg_type": "get_scene_names"})
        seen = []
        while not seen or seen[-1] != "scene_names":
            seen.append(wire.message()["msg_type"])
        assert set(seen) <= {"telemetry", "scene_names"}
        wire.send({"msg_type": "load_scene", "scene_name": "warren"})
        assert wire.message()["msg_type"] == "car_loaded"
        assert second.until("car_loaded")


def test_car_config_ignores_the_default_name(wire: Wire, host: FakeHost) -> None:
    wire.load()
    wire.send({"msg_type": "car_config", "body_style": "bare", "car_name": "Racer Name"})
    wire.send(
        {
            "msg_type": "car_config",
            "body_style": "f1",
            "body_r": "10",
            "body_g": "20",
            "body_b": "30",
            "car_name": "Zoe",
        }
    )
    assert eventually(lambda: any(call[0] == "body" for call in host.calls))
    bodies = [call[1] for call in host.calls if call[0] == "body"]
    assert [(body.car_name, body.body_style, body.body_g, body.font_size) for body in bodies] == [
        ("Zoe", "f1", 20, 100)
    ]


def test_cam_config_changes_the_image(wire: Wire) -> None:
    wire.load()
    assert image_of(wire.until("telemetry")).shape == (120, 160, 3)
    wire.send({**CAMERA, "img_w": "64", "img_h": "48", "img_enc": "PNG"})
    while (packet := wire.until("telemetry"))["image"][:8] == "/9j/4AAQ":
        pass
    assert base64.b64decode(packet["image"]).startswith(b"\x89PNG")
    assert image_of(packet).shape == (48, 64, 3)
    assert "imageb" not in packet
    wire.send({**CAMERA, "img_w": "100000"}, CAMERA)
    assert image_of(wire.until("telemetry")).shape == (48, 64, 3)


def test_the_second_camera_goes_under_both_names(wire: Wire, host: FakeHost) -> None:
    wire.load()
    wire.send({**CAMERA, "msg_type": "cam_config_b", "img_w": "32", "img_h": "16", "img_enc": "PNG"})
    while "imageb" not in (packet := wire.until("telemetry")):
        pass
    assert packet["imageb"] == packet["image_b"]
    assert (image_of(packet, "image_b") == np.full((16, 32, 3), 77)).all()
    (car,) = host.cars.values()
    assert car.second is not None
    assert car.second.x == 0.452


def test_lidar_appears_when_it_is_configured(wire: Wire, host: FakeHost) -> None:
    wire.load()
    assert "lidar" not in wire.until("telemetry")
    lidar = {
        "msg_type": "lidar_config",
        "degPerSweepInc": "2",
        "degAngDown": "0",
        "degAngDelta": "-1",
        "maxRange": "50",
    }
    wire.send({**lidar, "degPerSweepInc": "0"}, {**lidar, "numSweepsLevels": "100000"})
    wire.send({**lidar, "numSweepsLevels": "1", "noise": "0.5", "offset_x": "0", "offset_y": "0.5", "offset_z": "0.5"})
    while "lidar" not in (packet := wire.until("telemetry")):
        pass
    assert packet["lidar"][0] == {"d": 3.25, "rx": 0.0, "ry": -1.0}
    (car,) = host.cars.values()
    assert car.lidar is not None
    assert (car.lidar.levels, car.lidar.deg_per_sweep) == (1, 2.0)


def test_positions_and_nodes_are_in_world_units(wire: Wire, host: FakeHost) -> None:
    wire.load()
    wire.send({"msg_type": "set_position", "pos_x": "8", "pos_y": "0.5", "pos_z": "-16", "Qy": "1", "Qw": "0"})
    assert eventually(lambda: any(call[0] == "position" for call in host.calls))
    (position,) = [call[1] for call in host.calls if call[0] == "position"]
    assert (position.pos_x, position.qy, position.qw, position.qx) == (8.0, 1.0, 0.0, 0.0)
    wire.until("telemetry")
    packet = wire.until("telemetry")
    assert (packet["pos_x"], packet["pos_z"]) == (1.0, -2.0), "telemetry divides by 8"
    wire.send({"msg_type": "node_position", "index": "9999"}, {"msg_type": "node_position", "index": "4"})
    node = wire.until("node_position")
    assert {name: node[name] for name in ("index", "pos_x", "pos_z", "Qw")} == {
        "index": 4,
        "pos_x": 1.5,
        "pos_z": 8.0,
        "Qw": 1.0,
    }
    nowhere = {"msg_type": "set_position", "pos_x": "1e30", "pos_y": "0", "pos_z": "0"}
    wire.send(nowhere, {**nowhere, "pos_x": "1", "Qw": "1e200"}, {**nowhere, "pos_x": "1", "Qw": "0"})
    wire.send({"msg_type": "get_protocol_version"})
    wire.until("protocol_version")
    assert len([call for call in host.calls if call[0] == "position"]) == 1


def test_regen_road_reaches_the_host(wire: Wire, host: FakeHost) -> None:
    wire.load("generated_road")
    wire.send({"msg_type": "regen_road", "road_style": "1", "rand_seed": "42", "turn_increment": "0"})
    assert eventually(lambda: host.calls[-1][0] == "regen")
    assert (host.calls[-1][1].rand_seed, host.calls[-1][1].road_style) == (42, 1)


def test_start_lines_are_told_to_the_car_that_crossed(server: SimServer, wire: Wire) -> None:
    wire.load()
    with Wire(server.address) as bystander:
        bystander.until("car_loaded")
        wire.send(control("0", "1"))
        event = wire.until("collision_with_starting_line")
        assert event["starting_line_index"] == 7
        assert wire.message()["time"] == event["timeStamp"], "the event precedes the packet of its moment"
        assert all(bystander.message()["msg_type"] == "telemetry" for _ in range(10))


def test_a_collision_is_reported_once(wire: Wire, host: FakeHost) -> None:
    wire.load()
    (car,) = host.cars.values()
    wire.until("telemetry")
    car.hit = "Line01"
    while (hit := wire.until("telemetry")["hit"]) == "none":
        pass  # sent before
    assert hit == "Line01"
    assert [wire.until("telemetry")["hit"] for _ in range(5)] == ["none"] * 5


def test_racer_info_and_unknown_messages_do_nothing(wire: Wire, host: FakeHost) -> None:
    wire.load()
    calls = len(host.calls)
    wire.send({"msg_type": "racer_info", "racer_name": "a", "car_name": "b", "bio": "c", "country": "d", "guid": "e"})
    wire.send(
        {"msg_type": "connected"}, {"msg_type": "verify", "private_key": "1"}, {"msg_type": "get_protocol_version"}
    )
    wire.until("protocol_version")
    assert len(host.calls) == calls


# --- Time, life and death ---------------------------------------------------------------------------------------------


def test_a_silent_client_is_probed(host: FakeHost) -> None:
    with running(host, probe_after=0.05) as server, Wire(server.address) as wire:
        wire.until("scene_selection_ready")
        assert wire.line() == "{}\n"
        assert wire.line() == "{}\n"


def test_a_car_that_does_not_move_is_sent_away(host: FakeHost) -> None:
    """300 s of simulated time; a car that rolls stays."""
    with (
        running(host, speed=400.0, idle_limit=30.0) as server,
        Wire(server.address) as idle,
        Wire(server.address) as busy,
    ):
        idle.until("scene_selection_ready")
        busy.load()
        busy.send(control("0", "0.2"))
        idle.until_closed()
        assert busy.until("telemetry")
        assert len(host.cars) == 1
        busy.send(control("0", "0"))
        busy.until_closed()
        assert host.scene, "the scene stays loaded"


def test_a_client_that_leaves_takes_its_car_with_it(server: SimServer, wire: Wire, host: FakeHost) -> None:
    wire.load()
    with Wire(server.address) as second:
        second.until("car_loaded")
        assert len(host.cars) == 2
    assert eventually(lambda: len(host.cars) == 1)
    assert wire.until("telemetry")


def test_speed_times_real_time(host: FakeHost) -> None:
    """At speed 10, five seconds of simulated time take half a second, not less; a late clock catches up 0.1 s."""
    with running(host, speed=10.0) as server, Wire(server.address) as wire:
        wire.load()
        first, start = wire.until("telemetry")["time"], time.monotonic()
        while wire.until("telemetry")["time"] < first + 5.0 - 1e-6:
            pass
        assert time.monotonic() - start > 0.3


def test_quit_app_ends_the_server_for_a_local_client() -> None:
    with running() as server, Wire(server.address) as wire:
        wire.until("scene_selection_ready")
        wire.send({"msg_type": "quit_app"})
        wire.until_closed()


def test_it_listens_on_loopback_only_unless_told(server: SimServer) -> None:
    assert server.address[0] == "127.0.0.1"


# --- Lockstep ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def lockstep(host: FakeHost) -> Iterator[SimServer]:
    with running(host, lockstep=True, seed=5) as server:
        yield server


def test_each_control_is_answered_by_exactly_one_packet(lockstep: SimServer, host: FakeHost) -> None:
    with Wire(lockstep.address) as wire:
        wire.load("warehouse")
        assert host.calls == [("load", "warehouse", 5)]
        assert wire.silent_for(0.15), "time stands until a control comes"
        for step in range(1, 30):
            wire.send(control("0", "0.5"))
            packet = wire.until("telemetry")
            assert packet["time"] == pytest.approx(0.05 * step)
        wire.send(*[control("0", "0.1")] * 500)
        times = [wire.until("telemetry")["time"] for _ in range(500)]
        np.testing.assert_allclose(np.diff(times), 0.05, atol=1e-9)
        wire.send({"msg_type": "reset_car"}, {"msg_type": "get_protocol_version"})
        assert wire.message()["msg_type"] == "protocol_version", "only a control is answered by a packet"


def test_a_held_control_shows_the_world_without_moving_it(lockstep: SimServer) -> None:
    with Wire(lockstep.address) as wire:
        wire.load()
        wire.send(control("0", "1"))
        wire.until("telemetry")
        wire.send({"msg_type": "reset_car"}, control(brake="1", hold="1"))
        packet = wire.until("telemetry")
        assert (packet["time"], packet["pos_z"]) == (0.05, 0.0)


def test_step_mode_switches_one_client_and_leaves_the_others(server: SimServer, wire: Wire) -> None:
    wire.load()
    with Wire(server.address) as other:
        other.until("car_loaded")
        wire.send(
            {"msg_type": "step_mode", "step_mode": "synchronous", "time_step": "0.05"},
            {"msg_type": "get_protocol_version"},
        )
        wire.until("protocol_version")
        wire.send(control("0", "0.5"))
        time_now = wire.until("telemetry")["time"]
        times = [other.until("telemetry")["time"] for _ in range(5)]
        assert times == sorted(set(times)), "the other client's clock runs on"
        wire.send(control("0", "0.5"))
        assert wire.until("telemetry")["time"] == pytest.approx(time_now + 0.05)
        wire.send({"msg_type": "step_mode", "step_mode": "asynchronous"})
        assert [wire.until("telemetry") for _ in range(3)]


def test_lockstep_clients_do_not_wait_for_one_another(lockstep: SimServer) -> None:
    with Wire(lockstep.address) as first, Wire(lockstep.address) as second:
        first.load()
        second.until("car_loaded")
        for _ in range(5):
            first.send(control("0", "1"))
            first.until("telemetry")
        second.send(control("0", "1"))
        assert second.until("telemetry")["time"] == pytest.approx(0.05)
