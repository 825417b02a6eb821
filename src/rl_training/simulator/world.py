"""The world: arenas of cars on tracks, stepped and drawn in batches. It owns time, tracks, poses and looks.

An arena is a track with one or more cars that see and hit each other; arenas know nothing of one another. A car's
future depends on its arena's track, appearance and commands alone, so results are the same to the last bit whatever
else is in the batch, in which order arenas are reset, and over how many threads they are spread.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_training.errors import UsageError
from rl_training.simulator import motion, state
from rl_training.simulator.bank import Bank
from rl_training.simulator.jit import announce_first_compile
from rl_training.simulator.motion import FRICTION_SCALE, HISTORY, LATENCY, RESET_BRAKE, TORQUE_SCALE, TRAITS
from rl_training.simulator.packing import PreparedTrack, TrackBank, prepare
from rl_training.simulator.randomize import Appearance, faithful
from rl_training.simulator.sharing import SharedSlots
from rl_training.simulator.state import STATE_COLUMNS, SUBSTEP, CarParams
from rl_training.simulator.track import Track
from rl_training.simulator.track_file import load_track

MAX_CARS = 8  # in one arena


@lru_cache(maxsize=24)
def named_track(name: str, seed: int = 0) -> PreparedTrack:
    """A track ready for the kernels; recently used ones are kept, for many cars and many worlds share them."""
    return prepare(load_track(name, seed))


class World:
    """`arenas` × `cars` cars. Load a track into each arena, place the cars, then step and draw."""

    def __init__(self, arenas: int = 1, cars: int = 1, *, threads: int = 1, params: CarParams | None = None) -> None:
        if arenas < 1 or not 1 <= cars <= MAX_CARS:
            raise UsageError(
                f"A world of {arenas} arenas with {cars} cars each; expected 1 or more with 1 to {MAX_CARS}."
            )
        announce_first_compile()
        self.arenas, self.cars = arenas, cars
        self.size = arenas * cars
        self.params = params or CarParams()
        self.state: NDArray[np.float64] = np.zeros((self.size, STATE_COLUMNS))
        self.commands: NDArray[np.float64] = np.zeros((self.size, HISTORY, 3))
        self.traits: NDArray[np.float64] = np.zeros((self.size, TRAITS))
        self._shared = SharedSlots(arenas)
        self.slots = self._shared.slot_of  # the bank's slot of each arena
        self._prepared: list[PreparedTrack | None] = [None] * arenas  # by slot
        self._bank = TrackBank(arenas)
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self.threads = threads

    # ---- tracks and poses

    def load(self, arena: int, prepared: PreparedTrack) -> None:
        """Give `arena` a track; arenas with the same prepared track share its memory."""
        slot, fresh = self._shared.assign(arena, id(prepared))
        if fresh:
            self._bank.put(slot, prepared)
            self._prepared[slot] = prepared

    def track(self, arena: int) -> Track:
        """The track of an arena."""
        prepared = self._prepared[int(self.slots[arena])]
        assert prepared is not None, "load a track before using an arena"
        return prepared.track

    def dress(self, arena: int, appearance: Appearance | None = None) -> None:
        """How the arena looks and its cars behave until the next call; without an appearance, faithfully."""
        look = appearance or faithful(self.track(arena))
        rows = self.rows(arena)
        self.traits[rows, FRICTION_SCALE] = look.friction
        self.traits[rows, TORQUE_SCALE] = look.motor
        self.traits[rows, LATENCY] = round(look.latency / SUBSTEP)

    def rows(self, arena: int) -> slice:
        """The rows of `state` that hold the cars of an arena."""
        return slice(arena * self.cars, (arena + 1) * self.cars)

    def place(self, car: int, x: float, z: float, yaw: float, node: int = -1) -> None:
        """Put a car at rest at (x, z) with heading `yaw`; its active node is `node`, or the nearest."""
        slot = self.slots[car // self.cars]
        motion.place_car(self.bank, slot, self.state[car], x, z, yaw, node)
        self.commands[car] = 0.0, 0.0, RESET_BRAKE

    def place_at_start(self, arena: int) -> None:
        """All cars of an arena at the scene's start, later ones on its grid behind the first, as Unity spawns them."""
        track = self.track(arena)
        per_row, column_gap, row_gap = track.start_grid
        starts = track.starts
        for k in range(self.cars):
            x, _, z, yaw = starts[k % len(starts)]
            place = k // len(starts)
            across, back = column_gap * (place % per_row), row_gap * (place // per_row)
            right, ahead = np.array([np.cos(yaw), -np.sin(yaw)]), np.array([np.sin(yaw), np.cos(yaw)])
            x, z = np.array([x, z]) - across * right - back * ahead
            self.place(arena * self.cars + k, float(x), float(z), float(yaw), node=0 if k == 0 else -1)

    # ---- time

    def step(self, controls: NDArray[Any]) -> None:
        """One control step of 0.05 s for all cars; `controls` is (size, 3): steering, throttle, brake."""
        wanted = np.ascontiguousarray(controls, np.float64)
        bank = self.bank

        def work(first: int, last: int, _: int) -> None:
            motion.step_arenas(
                bank, self.state, self.slots, wanted, self.commands, self.traits, self.params, self.cars, first, last
            )

        self.spread(self.arenas, work)

    @property
    def bank(self) -> Bank:
        """The tracks as kernels read them."""
        return self._bank.bank

    def spread(self, count: int, work: Callable[[int, int, int], None]) -> None:
        """Run `work(first, last, thread)` over 0..count-1, in as many pieces as there are threads."""
        if self._pool is None or count < 2:
            work(0, count, 0)
            return
        bounds = np.linspace(0, count, self.threads + 1).round().astype(int)
        pieces = zip(bounds.tolist(), bounds.tolist()[1:], range(self.threads))
        for future in [self._pool.submit(work, *piece) for piece in pieces]:
            future.result()

    # ---- what happened

    def hit_name(self, car: int) -> str:
        """What the car touched anew during the last step, "none" if nothing."""
        index = int(self.state[car, state.HIT])
        if index < 0:
            return "none"
        if index >= state.OTHER_CARS:
            return self.car_name(index - state.OTHER_CARS)
        return self.track(car // self.cars).names[index]

    def car_name(self, car: int) -> str:
        """What other cars report when they touch this one."""
        return "Donkey_new_phys(Clone)"

    # ---- snapshots

    def save_state(self) -> dict[str, Any]:
        """Everything that moves, as plain arrays; tracks and appearances are given again by whoever loads it."""
        return {name: getattr(self, name).copy() for name in ("state", "commands", "traits")}

    def load_state(self, saved: dict[str, Any]) -> None:
        """The inverse of `save_state`, on a world of the same shape with the same tracks."""
        for name, values in saved.items():
            target = getattr(self, name)
            if target.shape != values.shape:
                raise UsageError(
                    f"A saved world has '{name}' of shape {values.shape}; this one expects {target.shape}."
                )
            target[:] = values

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
