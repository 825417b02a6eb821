"""Baked ground: what is painted where, what is shared, and that coarser levels keep the colours."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from rl_training.simulator.palette import palette
from rl_training.simulator.texture import GROUND_VARIANTS, LEVEL_START, NEUTRAL_SHADE, GroundTexture, bake
from rl_training.simulator.track import Decal, Material, Strip
from tests.simulator.scenes import COLORS, EVEN, road

ROAD = Strip(-5.0, 5.0, Material.ROAD)


def plain(material: Material) -> int:
    """The code of an even material."""
    return material << 12 | material << 8 | NEUTRAL_SHADE


def code_at(texture: GroundTexture, x: float, z: float) -> int:
    x0, z0, side = texture.tile_origin
    column, row = int((x - x0) / side * 64), int((z - z0) / side * 64)
    return int(texture.tiles[texture.tile_map[row >> 6, column >> 6], (row & 63) * 64 + (column & 63)])


def share_of(texture: GroundTexture, material: Material, x: float, z: float) -> float:
    code = code_at(texture, x, z)
    first, second, blend = code >> 12, code >> 8 & 15, (code >> 4 & 15) / 15.0
    return (first == material) * (1.0 - blend) + (second == material) * blend


def test_strips_are_painted_at_their_offsets_in_order() -> None:
    texture = bake(road(ROAD, Strip(-3.0, -2.0, Material.LINE_WHITE), Strip(2.0, 3.0, Material.LINE_YELLOW)))
    for z in (5.0, 33.3, 100.0):
        assert code_at(texture, -2.5, z) == plain(Material.LINE_WHITE)
        assert code_at(texture, 2.5, z) == plain(Material.LINE_YELLOW)
        assert code_at(texture, 0.0, z) == plain(Material.ROAD)
        assert code_at(texture, 5.3, z) >> 12 == Material.GROUND


def test_an_edge_within_a_texel_is_a_share_of_it() -> None:
    """Texels are 0.125 wide; a line that ends 0.05 into one covers 6 fifteenths of it."""
    texture = bake(road(ROAD, Strip(1.0, 2.05, Material.LINE_WHITE)))
    assert share_of(texture, Material.LINE_WHITE, 2.06, 20.06) == pytest.approx(0.4, abs=1 / 15)
    assert share_of(texture, Material.ROAD, 2.06, 20.06) == pytest.approx(0.6, abs=1 / 15)


def test_dashes_follow_the_arc_length() -> None:
    texture = bake(road(ROAD, Strip(-0.5, 0.5, Material.LINE_YELLOW, dash_on=3.0, dash_off=5.0)))
    painted = [share_of(texture, Material.LINE_YELLOW, 0.06, z) for z in np.arange(0.06, 80.0, 0.125)]
    assert np.mean(painted) == pytest.approx(3.0 / 8.0, abs=0.01)
    assert painted[int(1.5 / 0.125)] == 1.0
    assert painted[int(5.0 / 0.125)] == 0.0
    assert painted[int(9.5 / 0.125)] == 1.0


@pytest.mark.parametrize("radius", [5.0, 8.0, 30.0])
def test_a_bend_is_painted_without_a_gap(radius: float) -> None:
    angle = np.arange(0.0, 2.0 * np.pi, 0.5 / radius)
    line = np.stack((radius * np.sin(angle), 0.0 * angle, radius * np.cos(angle)), axis=1)
    track = road(ROAD, Strip(-4.0, -3.7, Material.LINE_WHITE), line=line, closed=True, length=2.0 * np.pi * radius)
    texture = bake(track)
    for a in np.arange(0.0, 2.0 * np.pi, 0.01):
        out = radius + 3.85
        assert share_of(texture, Material.LINE_WHITE, out * np.sin(a), out * np.cos(a)) > 0.25
        for offset in (-3.0, 0.0, 3.0):
            out = radius + offset
            assert share_of(texture, Material.ROAD, out * np.sin(a), out * np.cos(a)) == 1.0


def test_lines_of_both_roads_show_at_a_crossing() -> None:
    along = np.arange(-30.0, 30.0, 0.5)
    turn = np.linspace(0.0, 1.5 * np.pi, 190)
    loop = np.stack((60.0 - 30.0 * np.cos(turn), 30.0 * np.sin(turn)), axis=1)
    north = np.stack((0.0 * along, along), axis=1)
    east = np.stack((along, 0.0 * along), axis=1)
    path = np.concatenate((north, loop[20:170] + np.array([0.0, 30.0]), east))
    line = np.stack((path[:, 0], 0.0 * path[:, 0], path[:, 1]), axis=1)
    texture = bake(road(ROAD, Strip(-0.3, 0.3, Material.LINE_WHITE), line=line, length=300.0))
    assert share_of(texture, Material.LINE_WHITE, 0.0, 3.0) == 1.0
    assert share_of(texture, Material.LINE_WHITE, 3.0, 0.0) == 1.0


def test_decals_lie_under_or_over_the_road() -> None:
    below = Decal(0.0, 20.0, 0.0, 8.0, 2.0, Material.FLOOR)
    above = Decal(0.0, 40.0, 0.0, 8.0, 2.0, Material.PAINT, over_road=True)
    texture = bake(road(ROAD, decals=(below, above)))
    assert code_at(texture, 0.0, 20.0) == plain(Material.ROAD)
    assert code_at(texture, 7.0, 20.0) >> 12 == Material.FLOOR
    assert code_at(texture, 0.0, 40.0) == plain(Material.PAINT)
    assert code_at(texture, 7.0, 40.0) == plain(Material.PAINT)


def test_a_later_floor_covers_an_earlier_one() -> None:
    wood = Decal(0.0, 60.0, 0.0, 60.0, 70.0, Material.WOOD)
    mat = Decal(0.0, 60.0, 0.3, 40.0, 50.0, Material.FLOOR)
    texture = bake(road(decals=(wood, mat)))
    assert code_at(texture, 0.0, 60.0) >> 12 == Material.FLOOR
    assert code_at(texture, 52.0, 110.0) == plain(Material.WOOD)
    assert code_at(texture, 70.0, 60.0) >> 12 == Material.GROUND
    for x in np.arange(-80.0, 80.0, 3.1):  # no tile is left with something else
        assert code_at(texture, x, 60.0) >> 12 in (Material.FLOOR, Material.WOOD, Material.GROUND)


def test_memory_grows_with_the_road_and_not_with_the_map() -> None:
    track = road(ROAD)
    texture = bake(track)
    assert len(texture.tiles) <= GROUND_VARIANTS + 2 * (120 / 8 + 2)
    assert (texture.tile_map[0] < GROUND_VARIANTS).all()
    assert (texture.tile_map[:, 0] < GROUND_VARIANTS).all()
    far = bake(road(ROAD, decals=(Decal(500.0, 500.0, 0.0, 1.0, 1.0, Material.PAINT),)))
    assert far.tile_map.size > 20 * texture.tile_map.size
    assert len(far.tiles) <= len(texture.tiles) + GROUND_VARIANTS + 4


def colors_of(codes: NDArray[np.uint16]) -> NDArray[np.float64]:
    table = palette(COLORS, EVEN)
    channels = np.stack([(table >> shift) & 255 for shift in (0, 8, 16)], axis=1).astype(float)
    return channels[codes]


def test_coarser_levels_keep_the_colour() -> None:
    """To 4 of 255; but a code has room for two materials, so where three meet the coarsest levels lose one."""
    strips = Strip(-5.0, 5.0, Material.ROAD, roughness=0.5), Strip(-1.0, 1.0, Material.LINE_YELLOW, roughness=0.3)
    texture = bake(road(*strips, ground_roughness=0.6))
    for tile in texture.tiles:
        fine = tile[: LEVEL_START[1]]
        two = len({*(fine >> 12).tolist(), *(fine >> 8 & 15).tolist()} - {int(Material.GROUND_ALT)}) <= 2
        mean = colors_of(tile[: LEVEL_START[1]]).mean(axis=0)
        for level in range(1, 7 if two else 4):
            coarser = colors_of(tile[LEVEL_START[level] : LEVEL_START[level + 1]]).mean(axis=0)
            assert np.abs(coarser - mean).max() < 4.0


def test_shared_tiles_of_ground_join_without_a_seam() -> None:
    """Patches of one tile go on in any other: a step over the seam is no larger than one within a tile."""
    texture = bake(road(ground_roughness=1.0))
    tiles = [(tile[: 64 * 64].reshape(64, 64) >> 4 & 15).astype(float) for tile in texture.tiles[:GROUND_VARIANTS]]
    within = np.mean([np.abs(np.diff(tile, axis=1)).mean() for tile in tiles])
    for one in tiles:
        for other in tiles:
            assert np.abs(one[:, -1] - other[:, 0]).mean() < 1.5 * within
