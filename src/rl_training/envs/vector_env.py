"""`DonkeyVectorEnv`: Gymnasium's vector API straight on the batched world; what `gym.make_vec` returns for our ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from rl_training.envs.batch import DonkeyBatch
from rl_training.envs.conf import parse_conf
from rl_training.envs.embedded import turned
from rl_training.envs.spec import EnvSpec, spec_from_conf
from rl_training.errors import ConfigError, UsageError
from rl_training.simulator import state
from rl_training.simulator.randomize import DomainRandomization
from rl_training.simulator.state import METRE


class DonkeyVectorEnv(VectorEnv[NDArray[np.uint8], NDArray[np.float32], NDArray[Any]]):
    """A batch of cars.

    :param track: one track, or one for each car in turn (cycled when there are fewer)
    :param env_spec: the whole description instead of `track`, `conf`, `randomization` and `max_steps`
    :param autoreset_mode: ``NextStep`` (Gymnasium's default), ``SameStep`` or ``Disabled``
    :param threads: how many threads step and draw; results do not depend on it
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20, "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        track: str | Sequence[str] = "generated_track",
        conf: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
        randomization: str | DomainRandomization = "none",
        max_steps: int = 0,
        env_spec: EnvSpec | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        threads: int = 1,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise UsageError(f"render_mode is '{render_mode}'; a batch can be rendered as 'rgb_array' only.")
        parsed = parse_conf(conf)
        if parsed.remote:
            raise ConfigError(
                "A batch lives in the embedded world; for simulators over TCP use vectorization_mode='sync'."
            )
        if parsed.lidar_config or parsed.cam_config_b:
            raise ConfigError("A batch has one camera a car and no lidar; for those use vectorization_mode='sync'.")
        tracks = (track,) if isinstance(track, str) else tuple(track)
        self.env_spec = env_spec or spec_from_conf(tracks, parsed, randomization, max_steps)
        self.batch = DonkeyBatch(self.env_spec, num_envs, threads=threads)
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = self.batch.observation_space
        self.single_action_space = self.batch.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._waiting = np.ones(num_envs, np.bool_)  # cars whose episode is over and not yet begun anew
        self._frames: NDArray[np.uint8] | None = None

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin new episodes in all cars, or in those of ``options["reset_mask"]``; car i is seeded with seed + i."""
        mask = (options or {}).get("reset_mask")
        if mask is not None and np.shape(mask) != (self.num_envs,):
            raise UsageError(f"reset_mask is {mask!r}; expected a flag for each of {self.num_envs} envs.")
        self.batch.seed(seed)
        self.batch.reset(None if mask is None else np.flatnonzero(mask))
        self._waiting[...] = False if mask is None else self._waiting & ~np.asarray(mask, np.bool_)
        self._frames = self.batch.observe()
        return self._frames, self._infos()

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[NDArray[np.uint8], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """One action for every car."""
        if self._frames is None:
            raise UsageError("step() was called before reset(); call reset() first.")
        waiting = self._waiting.copy()
        if self.autoreset_mode == AutoresetMode.DISABLED and waiting.any():
            raise UsageError(
                f"Car {waiting.argmax()} has ended its episode; reset it with options={{'reset_mask': ...}}."
            )
        clock = self.batch.world.state[waiting, state.TIME]
        rewards, terminated, truncated = self.batch.advance(np.asarray(actions))
        if waiting.any():  # NEXT_STEP: this call is their reset, the action is not used and no time passes
            self.batch.world.state[waiting, state.TIME] = clock
            self.batch.reset(np.flatnonzero(waiting))
            rewards[waiting], terminated[waiting], truncated[waiting] = 0.0, False, False
        ended = terminated | truncated
        causes = self._end_causes(ended, terminated) if ended.any() else {}
        if self.autoreset_mode == AutoresetMode.SAME_STEP and ended.any():
            infos = self._finish_now(ended, causes)
        else:
            self._waiting, infos = ended, causes
        self._frames = self.batch.observe()
        return self._frames, rewards, terminated, truncated, {**self._infos(), **infos}

    def _end_causes(self, ended: NDArray[np.bool_], terminated: NDArray[np.bool_]) -> dict[str, Any]:
        causes: NDArray[Any] = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(ended):
            causes[i] = self.batch.end_cause(int(i), bool(terminated[i]))
        return {"end_cause": causes, "_end_cause": ended}

    def _finish_now(self, ended: NDArray[np.bool_], causes: dict[str, Any]) -> dict[str, Any]:
        """Last frames and infos of the ended cars, which are then reset within this very step."""
        indices = np.flatnonzero(ended)
        final: NDArray[Any] = np.full(self.num_envs, None, dtype=object)
        for i, frame in zip(indices, self.batch.observe(indices)):
            final[i] = frame
        final_info = {**self._infos(ended), **causes}
        infos = {"final_obs": final, "_final_obs": ended, "final_info": final_info, "_final_info": ended}
        self.batch.reset(indices)
        return infos

    def _infos(self, mask: NDArray[np.bool_] | None = None) -> dict[str, Any]:
        """gym-donkeycar's figures, an array each, with Gymnasium's masks."""
        world = self.batch.world
        cars = world.state.copy()  # what is handed out are views of it
        there = np.ones(self.num_envs, np.bool_) if mask is None else mask
        hits = np.full(self.num_envs, "none", dtype=object)
        for i in np.flatnonzero(self.batch.hit):
            hits[i] = world.hit_name(int(i))
        forward, lateral = cars[:, state.FORWARD] / METRE, cars[:, state.LATERAL] / METRE
        vectors = np.zeros((3, self.num_envs, 3))
        velocity, accel, gyro = vectors
        velocity[:, 0], velocity[:, 2] = lateral, forward
        accel[:, 0], accel[:, 2] = cars[:, state.ACCEL_LATERAL] / METRE, cars[:, state.ACCEL_FORWARD] / METRE
        gyro[:, 0], gyro[:, 2] = turned(cars[:, state.PITCH_RATE], cars[:, state.ROLL_RATE], cars[:, state.YAW])
        gyro[:, 1] = cars[:, state.YAW_RATE]
        angles = np.degrees(cars[:, [state.ROLL, state.PITCH, state.YAW]]) % 360.0
        whole = cars[:, [state.LAPS, state.NODE]].astype(np.int64)
        infos: dict[str, Any] = {
            "pos": cars[:, state.X : state.Z + 1] / METRE,
            "cte": cars[:, state.CTE],
            "speed": np.hypot(forward, lateral),
            "forward_vel": forward,
            "hit": hits,
            "gyro": gyro,
            "accel": accel,
            "vel": velocity,
            "odom": cars[:, state.ODOM_FL : state.ODOM_RR + 1],
            "orientation": angles,
            "car": angles,
            "last_lap_time": cars[:, state.LAST_LAP],
            "lap_count": whole[:, 0],
            "active_node": whole[:, 1],
            "total_nodes": world.bank.node_count[world.slots],
            "time": cars[:, state.TIME],
            "progress": cars[:, state.PROGRESS] / METRE,
            "furthest": cars[:, state.FURTHEST] / METRE,
            "laps": cars[:, state.FURTHEST] / world.bank.length[world.slots],
            "offset": cars[:, state.OFFSET],
        }
        return {**infos, **dict.fromkeys((f"_{key}" for key in infos), there)}

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:  # type: ignore[override]
        """The last observation of every car, one picture each."""
        return None if self._frames is None else tuple(self._frames)

    def close_extras(self, **kwargs: Any) -> None:
        """Release the world."""
        self.batch.close()
