"""Where an episode begins."""

from __future__ import annotations

import math

import numpy as np

from rl_training.envs.spec import StartSpec
from rl_training.simulator.track import Track


def choose_start(track: Track, start: StartSpec, rng: np.random.Generator) -> tuple[float, float, float, int]:
    """(x, z, yaw, node) of a start; at the scene's own the node is 0, as after Unity's reset, else the nearest (-1)."""
    x, _, z, yaw = (float(value) for value in track.starts[0])
    if not start.anywhere and start.offset == 0.0 and start.angle == 0.0:
        return x, z, yaw, 0
    node = 0
    if start.anywhere:
        count = len(track.line)
        last = count if track.closed else max(1, count - int(40.0 * count / track.length))
        i = int(rng.integers(last))
        ahead = track.line[(i + 1) % count if track.closed else min(i + 1, count - 1)]
        behind = track.line[i - 1 if track.closed else max(i - 1, 0)]
        x, z = float(track.line[i, 0]), float(track.line[i, 2])
        yaw = math.atan2(ahead[0] - behind[0], ahead[2] - behind[2])
        node = -1
    across = float(rng.uniform(-start.offset, start.offset))
    x += across * math.cos(yaw)
    z -= across * math.sin(yaw)
    return x, z, yaw + math.radians(float(rng.uniform(-start.angle, start.angle))), node
