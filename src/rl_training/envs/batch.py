"""`DonkeyBatch`: many cars straight on the batched world, with no subprocess and no per-car Python on the hot path.

It knows episodes (tracks, starts, looks, rewards, ends) and nothing of who resets when: Gymnasium's vector env and
SB3's VecEnv wrap it with their own conventions. Each car has a generator of its own, so car i of a batch lives exactly
as a single env with the same seed does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from numpy.typing import NDArray

from rl_training.envs.action_map import ActionMap
from rl_training.envs.rules import episode_over
from rl_training.envs.snapshot import memory_of, restore_memory
from rl_training.envs.spec import EnvSpec
from rl_training.envs.stage import Stage, StageLike
from rl_training.errors import UsageError
from rl_training.simulator import state
from rl_training.simulator.state import METRE, SUBSTEP, SUBSTEPS
from rl_training.wrappers.guards import Cause, Guards
from rl_training.wrappers.moment import Moment, StartLineClock
from rl_training.wrappers.rewards import make_reward

EPISODE_ARRAYS = ("steps", "returns", "hit", "_reseeded", "_edges", "_lengths", "_guarded", "_rewarded")
UNGUARDED = int(Cause.NONE)  # an enum's members are slow to look up, and every step does
END_OF_ROAD = 16.0  # an open road ends this far before its last point [u]

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


class DonkeyBatch:
    """`num_envs` cars, each in an arena of its own, living by one `EnvSpec`."""

    can_be_saved = True  # in the middle of an episode

    def __init__(
        self,
        spec: EnvSpec,
        num_envs: int,
        *,
        seed: int | None = None,
        threads: int = 1,
        stage: StageLike | None = None,
    ) -> None:
        """`stage` replaces the embedded world, for instance by simulators over TCP."""
        if num_envs < 1:
            raise UsageError(f"num_envs is {num_envs}; expected 1 or more.")
        self.spec = spec
        self.reward = make_reward(spec.reward, num_envs)
        self.guards = Guards(spec.limits, num_envs, spec.frame_skip)
        self._lap_clock = StartLineClock(num_envs)
        self.num_envs = num_envs
        self.stage: StageLike = stage or Stage(spec, num_envs, threads=threads)
        self.world, self.camera = self.stage.world, self.stage.camera
        self.action_map = ActionMap(spec.action, num_envs)
        self.action_space = self.action_map.space
        self.observation_space = spaces.Box(0, 255, spec.observation.shape, np.uint8)
        self._rngs: list[np.random.Generator | None] = [None] * num_envs
        self._reseeded = np.zeros(num_envs, np.bool_)
        self._edges: Floats = np.zeros((num_envs, 2))  # of the roads
        self._lengths: Floats = np.full(num_envs, np.inf)  # of open roads; closed ones never end
        self.steps = np.zeros(num_envs, np.int64)  # control steps in the present episode
        self.returns: Floats = np.zeros(num_envs)
        self.hit: Flags = np.zeros(num_envs, np.bool_)
        self.moment: Moment | None = None  # the last step, as rewards saw it
        self._guarded = np.zeros(num_envs, np.int8)  # `Cause` of the guard that ended the episode
        self._rewarded: Flags = np.zeros(num_envs, np.bool_)  # the reward itself ended the episode
        self._began = np.zeros(num_envs)  # wall clock
        self.seed(seed)

    def seed(self, seed: int | Sequence[int | None] | None) -> list[int]:
        """Seed all cars for their next reset: car i gets seed + i, or its own of a sequence."""
        seeds = (
            [None if seed is None else seed + i for i in range(self.num_envs)]
            if not isinstance(seed, Sequence)
            else seed
        )
        if len(seeds) != self.num_envs:
            raise UsageError(f"{len(seeds)} seeds were given for {self.num_envs} envs; expected one for each.")
        used: list[int] = []
        for i, value in enumerate(seeds):
            if value is not None or self._rngs[i] is None:
                self._rngs[i], drawn = seeding.np_random(value)
                self._reseeded[i] = value is not None
                used.append(drawn)
        return used

    # ---- episodes

    def reset(self, indices: Iterable[int] | None = None) -> None:
        """Begin a new episode in these cars, or in all."""
        for i in range(self.num_envs) if indices is None else indices:
            self._reset_one(int(i))

    def _reset_one(self, i: int) -> None:
        rng = self._rngs[i]
        assert rng is not None
        track = self.stage.begin(i, rng, bool(self._reseeded[i]))
        self._reseeded[i] = False
        self._lengths[i] = np.inf if track.closed else track.length - END_OF_ROAD
        self._edges[i] = track.half_widths
        self.steps[i] = 0
        self.returns[i] = 0.0
        self.hit[i] = False
        self._began[i] = time.monotonic()
        self.action_map.begin(i)
        self._lap_clock.begin(i)
        for memory in (self.reward, self.guards):
            memory.begin(i, self.world.state)

    def advance(self, actions: NDArray[Any]) -> tuple[Floats, Flags, Flags]:
        """One action for every car: (rewards, terminated, truncated)."""
        self.action_map.ask(actions)
        over = self._drive()
        self.moment = moment = Moment(
            self.world.state,
            self._edges,
            self.spec.frame_skip * SUBSTEPS * SUBSTEP,
            self.spec.limits.max_cte,
            over,
            self._lap_clock.lap_seconds,
        )
        self._guarded = self.guards.check(moment)
        self._guarded[over] = UNGUARDED
        moment.crashed = over | (self._guarded != UNGUARDED)
        rewards, ended = self.reward(moment)
        self._rewarded = ended & ~moment.crashed
        self.returns += rewards
        terminated = moment.crashed | ended
        return rewards, terminated, self._out_of_time_or_road() & ~terminated

    def _drive(self) -> Flags:
        """`frame_skip` control steps; true where a car left the road or hit something in any of them."""
        limits, cars = self.spec.limits, self.world.state
        over: Flags = np.zeros(self.num_envs, np.bool_)
        touched = np.full(self.num_envs, -1.0)
        self._lap_clock.clear()
        for _ in range(self.spec.frame_skip):
            self.world.step(self.action_map.tick())
            self._lap_clock.tick(cars)
            touched = np.where(touched < 0.0, cars[:, state.HIT], touched)
            over |= episode_over(cars[:, state.CTE], touched >= 0.0, limits.max_cte, limits.end_on_hit)
        cars[:, state.HIT] = touched  # the world forgets a hit with the next control step
        self.hit = touched >= 0.0
        self.steps += self.spec.frame_skip
        return over

    def _out_of_time_or_road(self) -> Flags:
        limits = self.spec.limits
        out: Flags = self.world.state[:, state.PROGRESS] > self._lengths
        if limits.max_steps:
            out |= self.steps >= limits.max_steps
        if limits.max_seconds:
            out |= time.monotonic() - self._began > limits.max_seconds
        return out

    def observe(self, indices: NDArray[np.int64] | None = None) -> NDArray[np.uint8]:
        """Fresh frames of all cars, or of some; an array of its own that later steps leave alone."""
        return self.camera.observe(indices, self.action_map.controls)

    # ---- what happened

    def episode_info(self, i: int) -> dict[str, Any]:
        """How the episode of car i stands, in gym-donkeycar's words where it has them."""
        car = self.world.state[i]
        track = self.world.track(i)
        return {
            "cte": float(car[state.CTE]),
            "speed": float(np.hypot(car[state.FORWARD], car[state.LATERAL])) / METRE,
            "forward_vel": float(car[state.FORWARD]) / METRE,
            "hit": self.world.hit_name(i),
            "track": track.name,
            "steering": float(car[state.STEER]),
            "throttle": float(car[state.THROTTLE]),
            "steps": int(self.steps[i]),
            "progress": float(car[state.PROGRESS]) / METRE,
            "furthest": float(car[state.FURTHEST]) / METRE,
            "laps": float(car[state.FURTHEST]) / track.length,
            "lap_count": int(car[state.LAPS]),
            "last_lap_time": float(car[state.LAST_LAP]),
        }

    def end_cause(self, i: int, terminated: bool) -> str:
        """Why the episode of car i ended."""
        limits = self.spec.limits
        if terminated:
            if self._guarded[i] != UNGUARDED:
                return Cause(int(self._guarded[i])).name.lower()
            if self._rewarded[i]:
                return "reward"
            return f"hit {self.world.hit_name(i)}" if self.hit[i] and limits.end_on_hit else "off_road"
        if limits.max_steps and self.steps[i] >= limits.max_steps:
            return "time_limit"
        return "end_of_road" if self.world.state[i, state.PROGRESS] > self._lengths[i] else "wall_clock"

    def save_state(self) -> dict[str, Any]:
        """All that a later `load_state` needs to go on bit for bit: cars, generators, counters, frame history."""
        return {
            "stage": self.stage.save_state(),
            "rngs": [rng.bit_generator.state if rng is not None else None for rng in self._rngs],
            "memories": [memory_of(helper) for helper in self._helpers()],
            **{name: getattr(self, name).copy() for name in EPISODE_ARRAYS},
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """The inverse of `save_state`, on a batch of the same `EnvSpec` and size. The wall clock starts anew."""
        if len(saved["rngs"]) != self.num_envs:
            raise UsageError(f"{len(saved['rngs'])} cars were saved; this batch has {self.num_envs}.")
        self.stage.load_state(saved["stage"])
        for i, known in enumerate(saved["rngs"]):
            rng, _ = seeding.np_random(0)
            rng.bit_generator.state = known
            self._rngs[i] = rng
        for helper, memory in zip(self._helpers(), saved["memories"]):
            restore_memory(helper, memory)
        for name in EPISODE_ARRAYS:
            getattr(self, name)[...] = saved[name]
        self._began[:] = time.monotonic()

    def _helpers(self) -> tuple[Any, ...]:
        """What remembers something of the running episodes."""
        return self.action_map, self.reward, self.guards, self._lap_clock

    def close(self) -> None:
        """Release the world."""
        self.world.close()
