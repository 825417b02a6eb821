"""`Stage`: a world, its cameras and the choice of track, start and look for each episode; what single envs and batches
have in common.
"""

from __future__ import annotations

import numpy as np

from rl_training.envs.cameras import StackedCamera
from rl_training.envs.spec import EnvSpec
from rl_training.envs.start import choose_start
from rl_training.envs.track_source import TrackSource
from rl_training.simulator.randomize import sample
from rl_training.simulator.state import TIME
from rl_training.simulator.track import Track
from rl_training.simulator.world import World


class Stage:
    """`arenas` arenas with one car each, living by one `EnvSpec`."""

    def __init__(self, spec: EnvSpec, arenas: int, *, threads: int = 1) -> None:
        self.spec = spec
        self.world = World(arenas, threads=threads)
        self.camera = StackedCamera(self.world, spec.observation, spec.camera)
        self._sources = [TrackSource(spec.tracks[i % len(spec.tracks)]) for i in range(arenas)]

    def begin(self, arena: int, rng: np.random.Generator, reseeded: bool) -> Track:
        """Load, dress and place for a new episode. The order of draws is part of what a seed means."""
        prepared = self._sources[arena].draw(rng, reseeded)
        track = prepared.track
        self.world.load(arena, prepared)
        if reseeded:  # a seed begins a life of its own, as loading the scene does: the clock too
            self.world.state[arena, TIME] = 0.0
        look = sample(self.spec.randomization, track, rng)
        self.world.dress(arena, look)
        self.camera.dress(arena, look)
        self.world.place(arena, *choose_start(track, self.spec.start, rng))
        self.camera.forget(arena)
        return track
