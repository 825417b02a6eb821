"""The picture: where things land in it, what hides what, and that nothing is ever written out of bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from rl_training.simulator.camera import OTHER_COLUMNS, Scratch, draw
from rl_training.simulator.track import SOLID_COLUMNS, WALL_COLUMNS, Decal, Light, Material, Shape, Strip
from rl_training.simulator.view import View, mount_row
from tests.simulator.scenes import AHEAD, EYE, RIDE, Camera, hills, road

SINE, COSINE = math.sin(math.radians(15.0)), math.cos(math.radians(15.0))
ROAD = Strip(-5.0, 5.0, Material.ROAD)
LINE = Strip(-0.5, 0.5, Material.LINE_WHITE)


def wall(z: float, height: float, base: float = 0.0, half: float = 20.0) -> NDArray[np.float64]:
    """A wall across the road."""
    row = np.zeros((1, WALL_COLUMNS))
    row[0, :8] = -half, z, half, z, base, base, height, Material.WALL
    return row


def bale(x: float, z: float, height: float, base: float = 0.0) -> NDArray[np.float64]:
    row = np.zeros((1, SOLID_COLUMNS))
    row[0, :9] = Shape.BOX, x, z, 0.0, 1.0, 1.0, base, height, Material.BALE
    return row


def yellowish(frame: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Where a frame shows a bale."""
    return (frame[..., 0].astype(int) - frame[..., 2]) > 25


def depth_of_row(row: float) -> float:
    """Depth of level ground at a height of the 160×120 picture."""
    return EYE / (SINE + COSINE * (row - 60.0) / 60.0)


def test_the_horizon_lies_at_row_43_9_and_the_bottom_edge_sees_0_97_u_ahead() -> None:
    frame = Camera(road()).frame(x=50.0)
    assert pytest.approx(43.92, abs=0.01) == 60.0 - 60.0 * SINE / COSINE
    assert (frame[43] == frame[43, 0]).all()
    assert (frame[:44].max(axis=(1, 2)) > 150).all()  # sky
    assert (frame[44:] == 60).all()  # ground
    assert depth_of_row(120.0) * (COSINE - SINE) == pytest.approx(0.97, abs=0.01)


def test_a_point_on_the_ground_lands_on_its_pixel() -> None:
    mark = Decal(1.0, 10.0 + AHEAD + 6.0, 0.0, 0.3, 0.3, Material.LINE_WHITE, over_road=True)
    frame = Camera(road(ROAD, decals=(mark,))).frame(z=10.0)[..., 0].astype(float)
    weight = np.clip((frame - 100.0) / 120.0, 0.0, 1.0)
    weight[:50] = 0.0
    rows, columns = np.indices(weight.shape) + 0.5
    depth = 6.0 * COSINE + EYE * SINE
    assert (weight * columns).sum() / weight.sum() == pytest.approx(80.0 + 60.0 * 1.0 / depth, abs=0.4)
    assert (weight * rows).sum() / weight.sum() == pytest.approx(
        60.0 - 60.0 * (6.0 * SINE - EYE * COSINE) / depth, abs=0.4
    )


def test_a_line_is_as_wide_as_perspective_makes_it() -> None:
    frame = Camera(road(ROAD, LINE)).frame()[..., 0].astype(float)
    for row in range(56, 118, 6):
        covered = np.clip((frame[row] - 100.0) / 120.0, 0.0, 1.0)[20:140].sum()
        assert covered == pytest.approx(60.0 / depth_of_row(row + 0.5), abs=1.0)


def test_a_symmetric_road_gives_a_symmetric_picture() -> None:
    edges = Strip(-4.0, -3.6, Material.LINE_WHITE), Strip(3.6, 4.0, Material.LINE_WHITE)
    frame = Camera(road(ROAD, *edges)).frame()[..., 0].astype(int)
    away = np.abs(frame - frame[:, ::-1])
    assert (away > 40).mean() < 0.01
    assert away.mean() < 1.0


def test_turning_the_car_turns_the_picture_the_other_way() -> None:
    camera = Camera(road(ROAD, LINE))
    ahead, right = camera.frame()[70, :, 0].astype(int), camera.frame(yaw=0.1)[70, :, 0].astype(int)
    assert np.argmax(right == 220) < np.argmax(ahead == 220) - 3


def test_a_wall_hides_what_stands_behind_it() -> None:
    behind = bale(0.0, 30.0, 2.0)
    assert yellowish(Camera(road(ROAD, solids=behind)).frame()).sum() > 20
    assert yellowish(Camera(road(ROAD, solids=behind, walls=wall(20.0, 3.0, half=30.0))).frame())[:, 60:100].sum() > 0
    hidden = Camera(road(ROAD, solids=behind, walls=wall(20.0, 3.0, half=30.0))).frame()
    assert not (np.abs(hidden.astype(int) - (190, 170, 90)).sum(axis=2) < 60).any()


def test_the_order_of_walls_does_not_matter() -> None:
    near, far = wall(15.0, 1.0), wall(25.0, 4.0)
    one = Camera(road(ROAD, walls=np.concatenate((near, far)))).frame()
    two = Camera(road(ROAD, walls=np.concatenate((far, near)))).frame()
    assert np.array_equal(one, two)


def test_a_hill_hides_what_stands_behind_it() -> None:
    z = -20.0 + 2.0 * np.arange(60)
    ridge = np.tile(8.0 * np.exp(-(((z - 30.0) / 5.0) ** 2))[:, None], (1, 60))
    far = bale(0.0, 50.0, 3.0)
    seen = Camera(road(ROAD, solids=far, heights=hills(0.0 * ridge))).frame()
    hidden = Camera(road(ROAD, solids=far, heights=hills(ridge))).frame()
    assert yellowish(seen).sum() > 15
    assert yellowish(hidden).sum() == 0
    assert (hidden[30, :, 0] < 150).all()  # the ridge stands above the horizon: its top at row 23


def test_level_hills_look_like_level_ground() -> None:
    strips = ROAD, LINE, Strip(3.0, 3.3, Material.LINE_YELLOW)
    flat = Camera(road(*strips)).frame(yaw=0.2).astype(int)
    field = Camera(road(*strips, heights=hills(np.zeros((60, 60))))).frame(yaw=0.2).astype(int)
    assert (np.abs(flat - field).max(axis=2) > 40).mean() < 0.01
    assert abs(flat.mean() - field.mean()) < 0.5


def test_a_camera_that_leans_a_little_sees_nearly_what_a_level_one_sees() -> None:
    camera = Camera(road(ROAD, LINE))
    level, leaning = camera.frame().astype(int), camera.frame(roll=0.004).astype(int)
    assert (np.abs(level - leaning).max(axis=2) > 60).mean() < 0.02


def test_roll_tilts_the_horizon_by_its_angle() -> None:
    frame = Camera(road()).frame(x=50.0, roll=0.2)
    ground = (frame[..., 0] == 60).sum(axis=0)
    slope = np.polyfit(np.arange(160.0), ground, 1)[0]
    assert slope == pytest.approx(-math.tan(0.2), abs=0.02)  # the car's left is down: the horizon sinks to the right


def test_light_makes_slopes_towards_the_sun_brighter() -> None:
    tilt = 0.4 * np.abs(2.0 * np.arange(60) - 60.0)  # a valley along z, its bottom at x = 0
    sun = Light(direction=(-0.7, -0.7, 0.0), color=(255, 255, 255), sun=0.6, ambient=0.5)
    frame = Camera(road(heights=hills(np.tile(tilt, (60, 1))), light=sun)).frame(z=20.0)[60:, :, 0].astype(float)
    assert frame[:, :40].mean() > 1.2 * frame[:, 120:].mean()


def test_sunlit_things_cast_a_shadow_and_rooms_have_none() -> None:
    sun = Light(direction=(-0.6, -0.6, 0.0), sun=0.6, ambient=0.4, color=(255, 255, 255))
    tree = bale(3.0, 20.0, 2.0)
    for indoor, least in ((False, 20), (True, 0)):
        light = Light(sun.direction, sun.color, sun.sun, sun.ambient, indoor=indoor)
        bare = Camera(road(light=light)).frame()
        frame = Camera(road(light=light, solids=tree)).frame()
        darker = (frame[44:, :100].astype(int).sum(axis=2) < 0.75 * bare[44:, :100].astype(int).sum(axis=2)).sum()
        assert darker >= least
        assert darker > 0 or indoor


def test_round_things_look_the_same_to_a_camera_that_leans_too_far_for_boards() -> None:
    """Rolled to either side of `boards.LEAST_UP`: a tree takes up as much of the picture."""
    tree = np.zeros((1, SOLID_COLUMNS))
    tree[0, :9] = Shape.TREE, 2.0, 40.0, 0.0, 0.4, 2.5, 0.0, 7.0, Material.FOLIAGE
    camera, bare = Camera(road(ROAD, solids=tree)), Camera(road(ROAD))
    covered = [int((camera.frame(roll=r) != bare.frame(roll=r)).any(axis=2).sum()) for r in (0.46, 0.53)]
    assert covered[0] > 70
    assert covered[1] == pytest.approx(covered[0], rel=0.2)


@pytest.mark.parametrize(("z", "open_share"), [(18.0, (0.15, 0.7)), (60.0, (-0.1, 0.9))])
@pytest.mark.parametrize("shape", [Shape.CHAIR, Shape.TABLE])
def test_one_sees_through_a_chair_and_below_a_table(shape: Shape, z: float, open_share: tuple[float, float]) -> None:
    """Seen from the side they leave a part of their box open; far away both are one box, and still there."""
    thing, block = np.zeros((2, 1, SOLID_COLUMNS))
    thing[0, :9] = shape, 0.0, z, math.pi / 2, 1.0, 1.0, 0.0, 2.5, Material.WOOD
    block[0, :9] = Shape.BOX, 0.0, z, math.pi / 2, 1.0, 1.0, 0.0, 2.5, Material.WOOD
    bare = Camera(road(ROAD)).frame()
    seen, whole = ((Camera(road(ROAD, solids=one)).frame() != bare).any(axis=2).sum() for one in (thing, block))
    low, high = open_share
    assert seen > 0
    assert low < 1.0 - seen / whole < high


def test_other_cars_are_seen_in_their_colour() -> None:
    other = np.array([[0.0, RIDE, 18.0, 0.0, 0.0, 0.0, 0x2020F0]])
    frame = Camera(road(ROAD)).frame(others=other).astype(int)
    blue = (frame[..., 2] > 100) & (frame[..., 0] < 80)
    assert blue[50:80, 60:100].sum() > 10
    assert blue[:, :40].sum() == 0


def test_a_policy_view_is_the_mean_of_the_full_picture() -> None:
    """Within 3 of 255 on average: both are samples of the same filtered ground."""
    strips = Strip(-5.0, 5.0, Material.ROAD, roughness=0.4), LINE, Strip(3.0, 3.4, Material.LINE_YELLOW)
    track = road(*strips, ground_roughness=0.5)
    full = Camera(track, View.full().grey()).frame(x=0.7, yaw=0.1)[40:].astype(float)
    small = Camera(track, View.full().cropped(40, 120).resized(80, 40).grey()).frame(x=0.7, yaw=0.1)
    mean = full.reshape(40, 2, 80, 2).mean(axis=(1, 3))
    assert np.abs(mean - small)[3:].mean() < 3.0
    assert abs(mean.mean() - small.mean()) < 1.0


def test_a_view_may_be_any_part_and_layout_of_the_whole() -> None:
    track = road(ROAD, LINE)
    whole = Camera(track).frame()
    assert np.array_equal(Camera(track, View.full().planes()).frame(), whole.transpose(2, 0, 1))
    part = Camera(track, View.full().cropped(60, 100, 32, 128)).frame()
    assert (np.abs(part.astype(int) - whole[60:100, 32:128]) > 40).mean() < 0.01
    luma = whole @ np.array([0.2126, 0.7152, 0.0722])
    assert np.abs(Camera(track, View.full().grey()).frame() - luma).max() < 2.0


def test_lines_do_not_flicker_when_the_camera_creeps() -> None:
    camera = Camera(road(ROAD, Strip(-0.14, 0.14, Material.LINE_WHITE), Strip(3.0, 3.28, Material.LINE_WHITE)))
    totals = []
    for k in range(60):
        frame = camera.frame(x=0.003 * k, z=10.0 + 0.01 * k)[44:, :, 0].astype(float)
        totals.append(np.clip((frame - 100.0) / 120.0, 0.0, 1.0).sum())
    change = np.abs(np.diff(totals)) / np.mean(totals)
    assert change.max() < 0.06
    assert change.mean() < 0.02


def test_a_frame_does_not_depend_on_what_was_drawn_before() -> None:
    walls, field = wall(25.0, 2.0), hills(np.random.default_rng(3).uniform(0.0, 2.0, (60, 60)))
    camera = Camera(road(ROAD, LINE, walls=walls, heights=field, solids=bale(2.0, 22.0, 1.5)))
    first = camera.frame(y=3.0)
    camera.frame(x=4.0, z=50.0, yaw=2.0, roll=0.3)
    assert np.array_equal(camera.frame(y=3.0), first)
    camera.scratch = Scratch.of(camera.view)
    assert np.array_equal(camera.frame(y=3.0), first)


@pytest.mark.parametrize("with_hills", [False, True])
@pytest.mark.parametrize(
    "view", [View.full(), View.full(37, 23).grey(), View.full(fov=140.0).planes(), View.full(3, 2)]
)
def test_no_pose_writes_out_of_bounds(view: View, with_hills: bool) -> None:
    """Outside of the map, below the ground, upside down, high above, inside a wall: all bytes in, none beside."""
    field = hills(np.random.default_rng(5).uniform(0.0, 6.0, (60, 60))) if with_hills else None
    solids = np.concatenate([bale(0.0, 12.0, 1.0), bale(0.0, 10.0, 1.0), bale(1e-9, 10.5, 50.0)])
    camera = Camera(road(ROAD, LINE, walls=wall(10.0, 2.0), solids=solids, heights=field), view)
    guard, size = 64, int(np.prod(view.shape))
    scratch = Scratch.of(view)
    padded = [np.full(array.size + 2 * guard, 7, array.dtype) for array in scratch]
    inner = Scratch(*(p[guard:-guard].reshape(a.shape) for p, a in zip(padded, scratch)))
    out = np.full(size + 2 * guard, 7, np.uint8)
    cars = np.zeros((2, OTHER_COLUMNS))
    cars[:, 2] = 10.5, 1e7
    poses = [(0, RIDE, 10, 0, 0, 0), (1e6, 1, -1e6, 1, 0, 0), (0, -50, 10, 0, 0, 0), (0, 2, 10, 0, 0, math.pi)]
    poses += [(0, 10, 10, 0, 1.3, 0), (0, 10, 10, 0, -1.5, 0.7), (-61, 3, -21, 4, 0.2, 1.6), (0, 1e5, 10, 1e4, 0, 0)]
    poses += [tuple(row) for row in np.random.default_rng(1).normal(0.0, 1.0, (20, 6)) * (30, 5, 30, 3, 2, 2)]
    for pose in poses:
        draw(
            camera.bank, 0, np.array(pose, float), mount_row(), view, camera.palette, camera.light, cars, inner,
            out[guard:-guard],
        )  # fmt: skip
        for array in (*padded, out):
            assert (array[:guard] == 7).all()
            assert (array[-guard:] == 7).all()
