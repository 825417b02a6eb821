"""Palettes: the colour of every texture code and every height of the sky, for one set of materials and one light.

An entry is ``red | green << 8 | blue << 16 | luma << 24``, so that colour and grey frames come from one table and
mixing two pixels mixes their luma too. Entries 0..65535 are ground codes (see `texture`), lit as level ground is;
SKY_STEPS entries follow, from the horizon upwards.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.jit import builder, kernel
from rl_training.simulator.track import Light

CODES = 65536
SKY_STEPS = 256
SKY_SLOPE = 1.6  # rise per unit forward at which the sky has reached its last step
PALETTE_SIZE = CODES + SKY_STEPS
SHADES_PER_OCTAVE = 8.0  # shade steps from one brightness to its double
NEUTRAL_SHADE = 8
DARKEST_LIGHT = -5.5  # shade steps

# Columns of a light row: what a kernel must know of a `Light`.
SUN_X, SUN_Y, SUN_Z, SUN, AMBIENT, OUTDOOR, RED, GREEN, BLUE = range(9)
LIGHT_COLUMNS = 9

Palette = NDArray[np.uint32]

_FACTORS = (2.0 ** ((np.arange(16) - NEUTRAL_SHADE) / SHADES_PER_OCTAVE)).astype(np.float32)


def light_row(light: Light) -> NDArray[np.float64]:
    """(LIGHT_COLUMNS,): unit vector towards the sun, strengths, whether it casts shadows, its colour on the level."""
    direction = -np.asarray(light.direction, np.float64)
    direction /= max(float(np.linalg.norm(direction)), 1e-9)
    level = light.ambient + light.sun * max(direction[1], 0.0)
    color = np.asarray(light.color, np.float64) / 255.0 * level
    return np.array([*direction, light.sun, light.ambient, not light.indoor, *color], np.float64)


def palette(colors: NDArray[np.uint8], light: Light) -> Palette:
    """(PALETTE_SIZE,) pixels for materials of `colors` (16, 3) under `light`."""
    table = np.empty(PALETTE_SIZE, np.uint32)
    lit = np.asarray(colors, np.float64) * light_row(light)[RED : BLUE + 1]
    _fill_codes(lit.astype(np.float32), table)
    _fill_sky(np.asarray(light.horizon, np.float64), np.asarray(light.zenith, np.float64), table)
    return table


@kernel
def pack_color(red: float, green: float, blue: float) -> np.uint32:
    """One pixel with its Rec. 709 luma; components are clipped to 255."""
    red, green, blue = min(red, 255.0), min(green, 255.0), min(blue, 255.0)
    luma = np.uint32(0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.5)
    return np.uint32(red + 0.5) | np.uint32(green + 0.5) << 8 | np.uint32(blue + 0.5) << 16 | luma << 24


@kernel
def shade_factor(shade: float) -> float:
    """Brightness of a shade relative to the neutral one."""
    return float(2.0 ** ((shade - NEUTRAL_SHADE) / SHADES_PER_OCTAVE))


@kernel
def light_steps(light: NDArray[np.float64], facing: float) -> float:
    """Shade steps by which a surface is brighter than level ground; `facing` is the cosine of its angle to the sun.

    Not much darker than in shadow outdoors would be: a pattern must stay visible on a face turned away.
    """
    lit = light[AMBIENT] + light[SUN] * max(facing, 0.0)
    level = light[AMBIENT] + light[SUN] * max(light[SUN_Y], 0.0)
    return max(SHADES_PER_OCTAVE * math.log2(max(lit, 0.01) / max(level, 0.01)), DARKEST_LIGHT)


@builder
def _fill_codes(colors: NDArray[np.float32], table: Palette) -> None:
    for pair in range(256):
        for blend in range(16):
            weight = np.float32(blend / 15.0)
            first, second = colors[pair >> 4], colors[pair & 15]
            red = first[0] + (second[0] - first[0]) * weight
            green = first[1] + (second[1] - first[1]) * weight
            blue = first[2] + (second[2] - first[2]) * weight
            code = (pair << 8) | (blend << 4)
            for shade in range(16):
                factor = _FACTORS[shade]
                table[code + shade] = pack_color(red * factor, green * factor, blue * factor)


@kernel
def _fill_sky(horizon: NDArray[np.float64], zenith: NDArray[np.float64], table: Palette) -> None:
    for step in range(SKY_STEPS):
        share = 1.0 - np.exp(-2.6 * SKY_SLOPE * step / (SKY_STEPS - 1))
        table[CODES + step] = pack_color(
            horizon[0] + (zenith[0] - horizon[0]) * share,
            horizon[1] + (zenith[1] - horizon[1]) * share,
            horizon[2] + (zenith[2] - horizon[2]) * share,
        )
