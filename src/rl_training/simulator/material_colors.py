"""The colours materials have where a track names none."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.track import Material

RGB = tuple[int, int, int]

DEFAULTS: dict[Material, RGB] = {
    Material.GROUND: (72, 80, 28),
    Material.GROUND_ALT: (58, 66, 24),
    Material.ROAD: (111, 109, 105),
    Material.SHOULDER: (122, 115, 107),
    Material.LINE_WHITE: (221, 223, 211),
    Material.LINE_YELLOW: (214, 167, 86),
    Material.FLOOR: (158, 144, 123),
    Material.FLOOR_ALT: (120, 110, 98),
    Material.PAINT: (196, 52, 40),
    Material.WALL: (190, 188, 182),
    Material.WALL_ALT: (120, 124, 130),
    Material.CONE: (232, 96, 32),
    Material.BALE: (196, 164, 84),
    Material.FOLIAGE: (46, 84, 34),
    Material.WOOD: (104, 76, 50),
    Material.CAR: (36, 72, 150),
}

_PATCH_SHADE = 0.84


def material_colors(changes: Mapping[Material, RGB]) -> NDArray[np.uint8]:
    """(16, 3): the defaults with a track's own colours in their place.

    The second colour of ground and floor is a darker shade of the first, unless the track names it too.
    """
    colors = {**DEFAULTS, **changes}
    for first, second in ((Material.GROUND, Material.GROUND_ALT), (Material.FLOOR, Material.FLOOR_ALT)):
        if first in changes and second not in changes:
            red, green, blue = (round(_PATCH_SHADE * channel) for channel in colors[first])
            colors[second] = (red, green, blue)
    return np.array([colors[material] for material in Material], np.uint8)
