"""`Stage`: a world, its cameras and the choice of track, start and look for each episode; what single envs and batches
have in common.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rl_training.envs.cameras import StackedCamera
from rl_training.envs.spec import EnvSpec
from rl_training.envs.start import choose_start
from rl_training.envs.track_source import TrackSource
from rl_training.simulator.packing import prepare
from rl_training.simulator.randomize import Appearance, sample
from rl_training.simulator.state import TIME
from rl_training.simulator.track import Track
from rl_training.simulator.world import World


class Observer(Protocol):
    """What draws or cuts the observations of a batch."""

    def observe(
        self, cars: NDArray[np.int64] | None = None, commands: NDArray[np.float64] | None = None
    ) -> NDArray[np.uint8]: ...


class StageLike(Protocol):
    """What a batch needs of a stage, whether its cars live here or in simulators elsewhere."""

    @property
    def world(self) -> World: ...

    @property
    def camera(self) -> Observer: ...

    def begin(self, arena: int, rng: np.random.Generator, reseeded: bool) -> Track: ...

    def save_state(self) -> dict[str, Any]: ...

    def load_state(self, saved: dict[str, Any]) -> None: ...


class Stage:
    """`arenas` arenas with one car each, living by one `EnvSpec`."""

    def __init__(self, spec: EnvSpec, arenas: int, *, threads: int = 1) -> None:
        self.spec = spec
        self.world = World(arenas, threads=threads)
        self.camera = StackedCamera(self.world, spec.observation, spec.camera)
        self._sources = [TrackSource(spec.tracks[i % len(spec.tracks)]) for i in range(arenas)]
        self._looks: list[Appearance | None] = [None] * arenas

    def begin(self, arena: int, rng: np.random.Generator, reseeded: bool) -> Track:
        """Load, dress and place for a new episode. The order of draws is part of what a seed means."""
        prepared = self._sources[arena].draw(rng, reseeded)
        track = prepared.track
        self.world.load(arena, prepared)
        if reseeded:  # a seed begins a life of its own, as loading the scene does: the clock too
            self.world.state[arena, TIME] = 0.0
        look = sample(self.spec.randomization, track, rng)
        self._dress(arena, look)
        self.world.place(arena, *choose_start(track, self.spec.start, rng))
        self.camera.forget(arena)
        return track

    def _dress(self, arena: int, look: Appearance) -> None:
        self._looks[arena] = look
        self.world.dress(arena, look)
        self.camera.dress(arena, look)

    def save_state(self) -> dict[str, Any]:
        """Tracks, looks, cars and frames of running episodes; arenas on one track share it."""
        tracks = [self.world.track(arena) for arena in range(self.world.arenas)]
        unique = list({id(track): track for track in tracks}.values())
        places = {id(track): place for place, track in enumerate(unique)}
        return {
            "tracks": unique,
            "track_of": [places[id(track)] for track in tracks],
            "looks": list(self._looks),
            "scene_seeds": [source.scene_seed for source in self._sources],
            "world": self.world.save_state(),
            "camera": self.camera.save_state(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """The inverse of `save_state`, on a stage of the same `EnvSpec` and size."""
        prepared = [prepare(track) for track in saved["tracks"]]
        for arena, look in enumerate(saved["looks"]):
            self._sources[arena].scene_seed = saved["scene_seeds"][arena]
            self.world.load(arena, prepared[saved["track_of"][arena]])
            self._dress(arena, look)
        self.world.load_state(saved["world"])
        self.camera.load_state(saved["camera"])
