"""`DonkeyEnv`: one car, as gym-donkeycar's users know it, on the embedded world or on a simulator over TCP."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rl_training.envs.conf import DonkeyConf, parse_conf
from rl_training.envs.frame import Frame, Simulator, info_of
from rl_training.envs.rules import donkey_reward, episode_over
from rl_training.errors import ConfigError, SimulatorError, UsageError
from rl_training.simulator.randomize import DomainRandomization

END_OF_ROAD = 2.0  # an open road ends this far before its last point [m]


class DonkeyEnv(gym.Env[NDArray[np.uint8], NDArray[np.float32]]):
    """Observation: the camera's frame, uint8. Action: steering, + = right, and throttle.

    :param track: scene name, ``random[:SPLIT][@DIFFICULTY]`` or the path of a track file
    :param conf: gym-donkeycar's configuration; ``host`` or ``port`` in it selects a simulator over TCP
    :param randomization: ``none``, ``light``, ``strong`` or a `DomainRandomization` (embedded world only)
    :param max_steps: control steps after which an episode is truncated; 0 leaves that to a `TimeLimit` wrapper
    """

    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": 20}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(
        self,
        track: str = "generated_track",
        conf: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
        randomization: str | DomainRandomization = "none",
        max_steps: int = 0,
        simulator: Simulator | None = None,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise UsageError(f"render_mode is '{render_mode}'; expected 'rgb_array', 'human' or None.")
        if not isinstance(max_steps, int) or max_steps < 0:
            raise UsageError(f"max_steps is {max_steps!r}; expected 0 for no limit, or more.")
        self.conf: DonkeyConf = parse_conf(conf)
        self.track = self.conf.level or track
        self.render_mode = render_mode
        self.max_steps = max_steps
        self.simulator = simulator if simulator is not None else self._connect(randomization)
        limit = self.conf.steer_limit
        low = np.array([-limit, self.conf.throttle_min], np.float32)
        high = np.array([limit, self.conf.throttle_max], np.float32)
        self.action_space = spaces.Box(low, high, dtype=np.float32)
        self.observation_space = spaces.Box(0, 255, self.conf.cam_resolution, np.uint8)
        self._frame: Frame | None = None
        self._steps = 0
        self._window: Any = None
        self._reward_fn: Callable[[bool], float] | None = None
        self._over_fn: Callable[[], None] | None = None

    def _connect(self, randomization: str | DomainRandomization) -> Simulator:
        ranges = DomainRandomization.preset(randomization) if isinstance(randomization, str) else randomization
        if self.conf.remote:
            if ranges.enabled:
                raise ConfigError(
                    "Only the embedded world can be randomised; leave `randomization` out with a host or port."
                )
            from rl_training.envs.remote import RemoteSimulator

            return RemoteSimulator(self.track, self.conf)
        from rl_training.envs.embedded import EmbeddedSimulator

        return EmbeddedSimulator(self.track, self.conf, ranges)

    def _info(self, frame: Frame) -> dict[str, Any]:
        if not self.conf.lidar_config:
            return info_of(frame)
        from rl_training.envs.lidar import distances, lidar_of

        return info_of(frame, distances(frame.lidar, lidar_of(self.conf.lidar_config)))

    # ---- Gymnasium

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Put the car back at the start, at rest. A random road is drawn anew; a seed makes everything repeatable."""
        super().reset(seed=seed)
        settings = dict(options or {})
        settings["reseeded"] = seed is not None
        self._frame = self.simulator.reset(self.np_random, settings)
        self._steps = 0
        if self.render_mode == "human":
            self.render()
        return self._frame.image, self._info(self._frame)

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Drive for `frame_skip` control steps of 0.05 s with this action."""
        if self._frame is None:
            raise UsageError("step() was called before reset(); call reset() first, and again after an episode ended.")
        asked = np.asarray(action, np.float64).reshape(-1)
        if asked.shape != (2,) or not np.isfinite(asked).all():
            raise UsageError(f"The action is {action!r}; expected two finite numbers, steering and throttle.")
        steering, throttle = np.clip(asked, self.action_space.low, self.action_space.high)  # type: ignore[attr-defined]
        for _ in range(self.conf.frame_skip):
            try:
                frame = self._frame = self.simulator.step(float(steering), float(throttle), 0.0)
            except SimulatorError as error:
                return self._lost(self._frame, error)
            self._steps += 1
            terminated, cause = self._ended(frame)
            if terminated:
                break
        reward = self._reward(frame, terminated)
        truncated, cause = (False, cause) if terminated else self._cut_short(frame)
        info = self._info(frame)
        if cause:
            info["end_cause"] = cause
        if self.render_mode == "human":
            self.render()
        return frame.image, reward, terminated, truncated, info

    def _lost(self, last: Frame, error: SimulatorError) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """The simulator is gone: the episode is cut short where it was last seen, and the next reset connects anew."""
        info = self._info(last) | {"sim_lost": True, "end_cause": "sim_lost", "sim_error": str(error)}
        return last.image, 0.0, False, True, info

    def _ended(self, frame: Frame) -> tuple[bool, str]:
        if self._over_fn is not None:
            handler = self._over_fn.__self__  # type: ignore[attr-defined]
            handler.refresh(frame, self._info(frame))
            self._over_fn()
            return bool(handler.over), "custom" if handler.over else ""
        hit = frame.hit != "none"
        over = bool(episode_over(frame.cte, hit, self.conf.max_cte))
        cause = "" if not over else f"hit {frame.hit}" if hit else "off_road"
        return over, cause

    def _reward(self, frame: Frame, over: bool) -> float:
        if self._reward_fn is not None:
            self._reward_fn.__self__.refresh(frame, self._info(frame))  # type: ignore[attr-defined]
            return float(self._reward_fn(over))
        return float(donkey_reward(frame.forward_velocity, frame.cte, over, self.conf.max_cte))

    def _cut_short(self, frame: Frame) -> tuple[bool, str]:
        if self.max_steps and self._steps >= self.max_steps:
            return True, "time_limit"
        progress = frame.progress
        if not progress.closed and progress.distance > progress.length - END_OF_ROAD:
            return True, "end_of_road"
        return False, ""

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]
        """The last frame; in ``human`` mode it is shown in a window."""
        if self._frame is None:
            raise UsageError("render() was called before reset(); there is no frame yet.")
        if self.render_mode != "human":
            return self._frame.image
        from rl_training.envs.window import Window

        self._window = self._window or Window(f"DonkeyCar: {self.track}")
        self._window.show(self._frame.image)
        return None

    def close(self) -> None:
        """Release the simulator and the window; calling it again does no harm."""
        self.simulator.close()
        if self._window is not None:
            self._window.close()
            self._window = None

    # ---- gym-donkeycar's extras

    def set_reward_fn(self, reward_fn: Callable[[Any, bool], float]) -> None:
        """`reward_fn(self, done)` with the handler's attributes (cte, speed, forward_vel, hit, …) on `self`."""
        self._reward_fn = types.MethodType(reward_fn, _Handler(self.conf.max_cte))

    def set_episode_over_fn(self, over_fn: Callable[[Any], None]) -> None:
        """`over_fn(self)` sets ``self.over`` from the handler's attributes."""
        self._over_fn = types.MethodType(over_fn, _Handler(self.conf.max_cte))


class _Handler:
    """The attributes that reward functions written for gym-donkeycar read."""

    def __init__(self, max_cte: float) -> None:
        self.max_cte = max_cte
        self.over = False

    def refresh(self, frame: Frame, info: Mapping[str, Any]) -> None:
        self.over = False
        self.x, self.y, self.z = frame.position
        self.vel_x, self.vel_y, self.vel_z = frame.velocity
        self.accel_x, self.accel_y, self.accel_z = frame.accel
        self.gyro_x, self.gyro_y, self.gyro_z = frame.gyro
        self.pitch, self.yaw, self.roll = frame.orientation
        self.cte, self.speed, self.hit = frame.cte, frame.speed, frame.hit
        self.forward_vel = frame.forward_velocity
        self.lidar, self.image_array = info["lidar"], frame.image
        self.last_lap_time, self.lap_count = frame.progress.last_lap_time, frame.progress.laps
