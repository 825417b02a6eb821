"""The scene `generated_road`: an open two-lane road that wanders over sand, a new one for each seed.

The heading is a second-order random walk: each span draws a change of the turn, the turn changes the heading. Before a
span is laid, the road looks ahead in a straight line; if it would come near itself there, it swerves the other way.
"""

from __future__ import annotations

import numpy as np

from rl_training.errors import TrackError
from rl_training.simulator import path_geometry as geometry
from rl_training.simulator.material_colors import material_colors
from rl_training.simulator.track import Floats, Material, Strip, Track

SPANS = 1000
SPAN = 2.0  # [u]
_START = (50.02, 49.97)
_NODE_HEIGHT = 0.5  # of a node above the ground
_LOOK_AHEAD = 100.0
_KEEP_AWAY = 90.0

# By road style: half width of the mesh, its shift to the left of the path, and whether it has a surface or lines only.
_STYLES = ((5.0, 2.2, True), (12.0, 6.0, False), (10.0, 6.0, True), (10.0, 6.0, False), (12.0, 4.5, True))
# Where the lines of the road texture lie across its width, as fractions of it.
_WHITE = (0.10, 0.90)
_YELLOW = 0.5
_LINE_SHARE = 0.028


def generated_road(seed: int, style: int = 0, turn_increment: float = 1.0) -> Track:
    """The random road of that seed. `turn_increment` is the greatest change of the turn per span, in degrees."""
    if not (np.isfinite(turn_increment) and turn_increment >= 0.0):
        raise TrackError(f"A road's turn increment must be a number of degrees from 0 up, not {turn_increment}.")
    nodes = _walk(np.random.default_rng(seed), turn_increment)
    line = geometry.closely(geometry.smooth(nodes, closed=False), closed=False)
    line[:, 1] = 0.0
    half, shift, surfaced = _STYLES[style % len(_STYLES)]
    return Track(
        name="generated_road",
        closed=False,
        nodes=nodes,
        line=line,
        length=geometry.path_length(line, closed=False),
        strips=_strips(half, shift, surfaced),
        half_widths=(-half - shift, half - shift),
        colors=material_colors({Material.GROUND: (150, 128, 96), Material.ROAD: (111, 109, 105)}),
        ground_roughness=0.6,
        starts=np.array([[_START[0], 0.0, _START[1], 0.0]]),
        description="An open random road on sand; the path is the middle of the right lane.",
    )


def _walk(rng: np.random.Generator, turn_increment: float) -> Floats:
    """(SPANS, 3) nodes."""
    places = np.empty((SPANS, 2))
    place = np.array(_START)
    heading = turn = 0.0
    for span in range(SPANS):
        places[span] = place
        turn += np.radians(rng.uniform(-turn_increment, turn_increment))
        heading += turn
        ahead = place + _LOOK_AHEAD * np.array([np.sin(heading), np.cos(heading)])
        gaps = places[: span + 1] - ahead
        if np.einsum("ij,ij->i", gaps, gaps).min() < _KEEP_AWAY**2:
            turn *= -0.5
            heading += turn
        place = place + SPAN * np.array([np.sin(heading), np.cos(heading)])
    return np.insert(places, 1, _NODE_HEIGHT, axis=1)


def _strips(half: float, shift: float, surfaced: bool) -> tuple[Strip, ...]:
    """The road texture over its whole width: shoulders and asphalt (or bare ground), two white lines, a yellow one."""
    width = 2.0 * half
    strips = []
    if surfaced:
        edge = 0.07 * width
        strips.append(Strip(-half - shift, half - shift, Material.SHOULDER, roughness=0.5))
        strips.append(Strip(-half - shift + edge, half - shift - edge, Material.ROAD, roughness=0.3))
    for share, material in (
        (_WHITE[0], Material.LINE_WHITE),
        (_YELLOW, Material.LINE_YELLOW),
        (_WHITE[1], Material.LINE_WHITE),
    ):
        middle = -half - shift + share * width
        strips.append(Strip(middle - _LINE_SHARE * width / 2, middle + _LINE_SHARE * width / 2, material))
    return tuple(strips)
