"""Which track the next episode is driven on: a fixed one, or a new random road at each reset.

`random`, `random:train`, `random:validation@0.8` draw a road of that split at each reset; with an index, as in
`random:train:17`, and for every scene or track file, the track stays the same. `generated_road` keeps its road until a
reset with a new seed, as the Unity simulator keeps its own until the scene is loaded again.
"""

from __future__ import annotations

import numpy as np

from rl_training.errors import TrackError, did_you_mean
from rl_training.simulator.packing import PreparedTrack, prepare
from rl_training.simulator.world import named_track


class TrackSource:
    """Hands out the prepared track of each episode."""

    def __init__(self, name: str, scene_seed: int = 0) -> None:
        self.name = name
        self.scene_seed = scene_seed
        parts = name.partition("@")[0].split(":")
        self.new_each_reset = parts[0] == "random" and len(parts) < 3
        self._split = parts[1] if len(parts) > 1 else "train"
        self._difficulty = name.partition("@")[2]

    def draw(self, rng: np.random.Generator, reseeded: bool) -> PreparedTrack:
        """The track for the next episode; `reseeded` says that this reset was given a seed of its own."""
        if self.new_each_reset:
            return self._new_road(rng)
        if self.name == "generated_road" and reseeded:
            self.scene_seed = int(rng.integers(2**31))
        return named_track(self.name, self.scene_seed)

    def _new_road(self, rng: np.random.Generator) -> PreparedTrack:
        from rl_training.simulator.random_road import SEED_RANGES, random_road_by_name

        if self._split not in SEED_RANGES:
            raise TrackError(f"Random roads have no split '{self._split}'.{did_you_mean(self._split, SEED_RANGES)}")
        index = int(rng.integers(len(SEED_RANGES[self._split])))
        suffix = f"@{self._difficulty}" if self._difficulty else ""
        return prepare(random_road_by_name(f"random:{self._split}:{index}{suffix}"))
