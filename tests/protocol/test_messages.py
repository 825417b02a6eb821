"""Names, order, units and leniency of every message, from the fact sheet's tables."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np
import pytest

from rl_training.errors import ProtocolError
from rl_training.protocol import images
from rl_training.protocol import messages as m
from rl_training.protocol.camera import CameraSettings
from rl_training.protocol.telemetry import ImageEncoding, LidarPoint, Telemetry, read_telemetry, write_telemetry

FRAME = np.zeros((4, 6, 3), np.uint8)
# The order in which the Unity simulator sends them, both images and the lidar on.
TELEMETRY_FIELDS = (
    "msg_type steering_angle throttle image imageb image_b lidar front_left_odom front_right_odom rear_left_odom "
    "rear_right_odom hit time speed accel_x accel_y accel_z gyro_x gyro_y gyro_z pitch yaw roll cte activeNode "
    "totalNodes pos_x pos_y pos_z vel_x vel_y vel_z"
)
TELEMETRY_ORDER = TELEMETRY_FIELDS.split()


def telemetry(**values: Any) -> Telemetry:
    place = {"cte": 0.5, "pos_x": 1.0, "pos_y": 2.0, "pos_z": 3.0, "vel_x": 0.0, "vel_y": 0.0, "vel_z": 0.5}
    return Telemetry(**{"image": FRAME, **place, **values})


def test_commands_are_strings_only_under_unitys_names() -> None:
    assert m.write_command(m.Control(0.5, -1.0, 0.0)) == {
        "msg_type": "control",
        "steering": "0.5",
        "throttle": "-1.0",
        "brake": "0.0",
    }
    place = {"pos_x": "1.0", "pos_y": "2.0", "pos_z": "3.0", "Qx": "0.0", "Qy": "0.5", "Qz": "0.0", "Qw": "1.0"}
    assert m.write_command(m.SetPosition(1.0, 2.0, 3.0, qy=0.5)) == {"msg_type": "set_position", **place}
    lidar = m.write_command(m.LidarConfig(levels=3))
    assert set(lidar) == {
        *("msg_type", "offset_x", "offset_y", "offset_z", "rot_x", "noise"),
        *("degPerSweepInc", "degAngDown", "degAngDelta", "maxRange", "numSweepsLevels"),
    }
    assert lidar["numSweepsLevels"] == "3"
    for command in (
        m.GetSceneNames(),
        m.LoadScene("warren"),
        m.CarConfig(),
        m.CamConfigB(),
        m.RegenRoad(),
        m.StepMode(),
    ):
        assert all(isinstance(value, str) for value in m.write_command(command).values())


@pytest.mark.parametrize(
    "kind", [*m.COMMANDS.values(), *m.EVENTS.values()], ids=lambda kind: kind.msg_type + kind.__name__
)
def test_what_is_written_is_read_back(kind: type[m.Message]) -> None:
    samples: dict[str, Any] = {"float": 0.1, "int": 3, "str": "text", "tuple[str, ...]": ("a", "b")}
    message = kind(
        **{name: samples[str(field.type)] for name, field in kind.__dataclass_fields__.items() if name != "msg_type"}
    )
    commands = kind in m.COMMANDS.values()
    raw = json.loads(json.dumps(m.write_command(message) if commands else m.write_event(message)))
    assert m.read_message(raw, m.COMMANDS if commands else m.EVENTS) == message


def test_events_are_unitys_to_the_letter() -> None:
    def text(event: m.Message) -> str:
        return json.dumps(m.write_event(event), separators=(",", ":"))

    assert text(m.SceneSelectionReady()) == '{"msg_type":"scene_selection_ready","loaded":"1"}'
    assert text(m.SceneNames(("a", "b"))) == '{"scene_names":["a","b"],"msg_type":"scene_names"}'
    assert text(m.ProtocolVersion()) == '{"msg_type":"protocol_version","version":"2"}'
    assert text(m.CarLoaded()) == '{"msg_type":"car_loaded"}'
    crossed = '{"msg_type":"collision_with_starting_line","starting_line_index":1,"timeStamp":2.5}'
    assert text(m.StartLineCrossed(1, 2.5)) == crossed
    assert list(m.write_event(m.NodePosition(4, 1.0, 2.0, 3.0))) == (
        ["msg_type", "index", "pos_x", "pos_y", "pos_z", "Qx", "Qy", "Qz", "Qw"]
    )


@pytest.mark.parametrize(
    ("value", "expected"), [("0.5", 0.5), (0.5, 0.5), ("0,5", 0.5), ("-1e-3", -1e-3), (" 7 ", 7.0), (3, 3.0)]
)
def test_numbers_come_as_numbers_or_text(value: Any, expected: float) -> None:
    assert m.read_number(value, "x") == expected


@pytest.mark.parametrize("value", ["", "abc", None, [], {}, True, "nan", "inf", math.nan, "1e999", 10**400, "1_0,0.0"])
def test_what_is_no_finite_number_is_refused(value: Any) -> None:
    with pytest.raises(ProtocolError, match="Field 'x' is"):
        m.read_number(value, "x")


def test_missing_fields_unknown_fields_and_unknown_types() -> None:
    with pytest.raises(ProtocolError, match="'control' has no field 'brake'"):
        m.read_message({"msg_type": "control", "steering": "0", "throttle": "0"}, m.COMMANDS)
    with pytest.raises(ProtocolError, match="no 'msg_type'"):
        m.read_message({"steering": "0"}, m.COMMANDS)
    with pytest.raises(ProtocolError, match="whole number"):
        m.read_message({"msg_type": "node_position", "index": "1.5"}, m.COMMANDS)
    assert m.read_message({"msg_type": "reset_car", "colour": 3}, m.COMMANDS) == m.ResetCar()
    assert m.read_message({"msg_type": "race_start"}, m.EVENTS) == m.Unknown("race_start")
    assert m.read_message({"msg_type": "node_position", "index": 3.0}, m.COMMANDS) == m.GetNodePosition(3)


def test_telemetry_has_unitys_fields_in_unitys_order() -> None:
    full = telemetry(image_b=FRAME, lidar=(LidarPoint(1.5, 0.0, -1.0),), active_node=3, progress=9.0)
    raw = write_telemetry(full, ImageEncoding(), ImageEncoding())
    assert list(raw) == TELEMETRY_ORDER
    assert raw["lidar"] == [{"d": 1.5, "rx": 0.0, "ry": -1.0}]
    assert raw["imageb"] == raw["image_b"]
    assert raw["activeNode"] == 3
    assert write_telemetry(full, ImageEncoding(), ImageEncoding(), extras=True)["progress"] == 9.0


def test_telemetry_leaves_out_what_the_simulator_would() -> None:
    optional = ("cte", "pos_x", "pos_y", "pos_z", "vel_x", "vel_y", "vel_z")
    raw = write_telemetry(telemetry(**dict.fromkeys(optional)), ImageEncoding(), ImageEncoding())
    absent = {*optional, "imageb", "image_b", "lidar"}
    assert list(raw) == [name for name in TELEMETRY_ORDER if name not in absent]
    assert write_telemetry(telemetry(lidar=()), ImageEncoding(), ImageEncoding())["lidar"] is None


def test_telemetry_is_read_back_exactly() -> None:
    rng = np.random.default_rng(1)
    frame = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
    sent = telemetry(image=frame, image_b=frame[:, ::-1], lidar=(), yaw=0.1 + 0.2, hit="Line01", laps=2, vel_z=-1 / 3)
    raw = write_telemetry(sent, ImageEncoding("PNG"), ImageEncoding("PNG"), extras=True)
    got = read_telemetry(json.loads(json.dumps(raw)))
    for name in sent.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(got, name), getattr(sent, name), err_msg=name)


def test_telemetry_of_other_simulators_is_understood() -> None:
    raw = write_telemetry(telemetry(image_b=FRAME), ImageEncoding(), ImageEncoding())
    assert read_telemetry({**raw, "image_b": None}).image_b is not None, "imageb alone"
    sparse = read_telemetry({"msg_type": "telemetry", "image": raw["image"], "speed": "1,5", "colour": {}})
    assert (sparse.speed, sparse.cte, sparse.pos_x, sparse.lidar, sparse.hit) == (1.5, None, None, None, "none")


def test_old_releases_are_brought_to_the_present_units() -> None:
    raw = write_telemetry(telemetry(speed=2.0, vel_z=2.0, accel_x=1.0), ImageEncoding(), ImageEncoding())
    for name in ("speed", "vel_z", "accel_x", "pos_x", "pos_y", "pos_z"):
        raw[name] *= 8.0
    old = read_telemetry({**raw, "odom": [1.0, 2.0, 3.0, 4.0]})
    assert (old.speed, old.vel_z, old.accel_x, old.pos_x, old.cte) == (2.0, 2.0, 1.0, 1.0, 0.5)
    assert (old.front_left_odom, old.rear_right_odom) == (1.0, 4.0)
    assert old.old_units
    assert not read_telemetry(raw | {"speed": 2.0}).old_units


@pytest.mark.parametrize("image", [None, 3, "", "!!!", base64.b64encode(b"\xff\xd8\xff").decode(), "QUJD"])
def test_telemetry_without_a_usable_image_is_refused(image: Any) -> None:
    with pytest.raises(ProtocolError):
        read_telemetry({"msg_type": "telemetry", "image": image})


# --- Images ---------------------------------------------------------------------------------------------------------


def test_images_survive_their_encodings() -> None:
    ramp = np.linspace(0, 255, 48 * 64 * 3).reshape(48, 64, 3).astype(np.uint8)
    for lossless in ("PNG", "TGA"):
        np.testing.assert_array_equal(images.decode(images.encode(ramp, lossless)), ramp)
    jpg = images.decode(images.encode(ramp, "JPG"))
    assert np.abs(jpg.astype(int) - ramp).mean() < 3.0
    assert images.encode(ramp, "XYZ") == images.encode(ramp, "JPG")
    red = np.zeros((8, 8, 3), np.uint8)
    red[..., 0] = 200
    assert images.decode(images.encode(red, "JPG"))[4, 4, 0] > 190, "red stays red, not blue"


def test_other_channel_counts_become_rgb() -> None:
    cv2 = pytest.importorskip("cv2")
    for shape, kind in (((6, 5), np.uint8), ((6, 5, 4), np.uint8), ((6, 5, 3), np.uint16)):
        data = cv2.imencode(".png", np.full(shape, 100 if kind is np.uint8 else 25700, kind))[1].tobytes()
        decoded = images.decode(data)
        assert decoded.shape == (6, 5, 3)
        assert decoded.dtype == np.uint8
        assert (decoded == 100).all()


def test_grey_is_rec_709_in_three_channels() -> None:
    color = np.zeros((2, 2, 3), np.uint8)
    color[...] = (100, 50, 200)
    grey = images.to_grey(color)
    assert grey.shape == (2, 2, 3)
    assert (grey == round(0.2126 * 100 + 0.7152 * 50 + 0.0722 * 200)).all()


def test_an_image_that_claims_to_be_huge_is_refused() -> None:
    """One damaged byte of the header asks for gigabytes; nothing of that size is ever allocated."""
    for code, place in (("PNG", 17), ("JPG", None)):
        data = bytearray(images.encode(np.zeros((8, 8, 3), np.uint8), code))
        place = place if place is not None else data.index(b"\xff\xc0") + 5
        data[place : place + 4] = b"\xff\xff\xff\xff"
        with pytest.raises(ProtocolError, match="huge"):
            images.decode(bytes(data))


def test_a_png_with_a_chunk_longer_than_the_file_is_refused_before_it_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """OpenCV makes room for what a chunk claims to be: gigabytes, and seconds, for 69 bytes."""
    data = bytearray(images.encode(np.zeros((8, 8, 3), np.uint8), "PNG"))
    data[data.index(b"IDAT") - 4] = 0xD1
    monkeypatch.setattr(images.cv2, "imdecode", lambda *_: pytest.fail("OpenCV was asked"))
    with pytest.raises(ProtocolError, match="damaged"):
        images.decode(bytes(data))


@pytest.mark.parametrize("damage", [b"", b"\x00" * 30, b"\x89PNG\r\n\x1a\n" + b"\x00" * 40, b"\xff\xd8" + b"a" * 50])
def test_what_is_no_image_is_refused(damage: bytes) -> None:
    with pytest.raises(ProtocolError, match="neither JPG, PNG nor TGA"):
        images.decode(damage)


# --- Camera settings --------------------------------------------------------------------------------------------------


def test_a_zero_keeps_the_old_value() -> None:
    start = CameraSettings()
    assert start.merged(m.CamConfig()) == start
    small = start.merged(m.CamConfig(img_w=80, img_h=60, fov=60.0))
    assert (small.width, small.height, small.fov, small.y, small.pitch) == (80, 60, 60.0, start.y, 15.0)
    assert small.merged(m.CamConfig(img_w=100)).height == 60


def test_offsets_and_rotations_are_taken_three_at_a_time() -> None:
    moved = CameraSettings().merged(m.CamConfig(offset_z=2.0))
    assert (moved.x, moved.y, moved.z, moved.pitch) == (0.0, 0.0, 2.0, 15.0)
    turned = CameraSettings().merged(m.CamConfig(rot_y=10.0))
    assert (turned.pitch, turned.yaw, turned.roll, turned.y) == (0.0, 10.0, 0.0, CameraSettings().y)


def test_a_fisheye_stays_on_and_odd_encodings_mean_jpg() -> None:
    fish = CameraSettings().merged(m.CamConfig(fish_eye_x=0.4, img_enc="PNG", img_d=1))
    assert fish.fish_eye == (0.4, 0.0)
    assert fish.encoding == ImageEncoding("PNG", grey=True)
    later = fish.merged(m.CamConfig())
    assert later == fish
    assert later.merged(m.CamConfig(img_enc="GIF", img_d=3)).encoding == ImageEncoding("JPG", grey=False)


@pytest.mark.parametrize(
    "wrong", [{"img_w": 10**6}, {"img_h": -4}, {"fov": 179.0}, {"offset_x": 1e30}, {"fish_eye_y": -1e9}]
)
def test_cameras_nobody_can_draw_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        CameraSettings().merged(m.CamConfig(**wrong))
