"""Watch a policy drive: full camera frames of one episode beside what the policy was given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rl_training.envs.cameras import StackedCamera
from rl_training.envs.spec import EnvSpec, ObservationSpec
from rl_training.envs.vec_env import DonkeyVecEnv
from rl_training.report.film import captioned, enlarged
from rl_training.simulator.randomize import faithful

STEPS_A_SECOND = 20


class Policy(Protocol):
    """Anything with SB3's `predict`."""

    def predict(self, observation: Any, *, deterministic: bool = False) -> tuple[Any, Any]: ...


@dataclass
class Showing:
    """One episode: pictures at ten a second, and how it ended."""

    frames: list[NDArray[np.uint8]]
    info: dict[str, Any]
    ended: bool  # False: time was up while the car was still driving
    lap_times: list[float] = field(default_factory=list)  # [s]


def show(
    policy: Policy,
    spec: EnvSpec,
    track: str,
    *,
    seconds: float = 20.0,
    seed: int = 0,
    watch: Callable[[float, dict[str, Any]], None] | None = None,
) -> Showing:
    """Drive one deterministic episode on `track`, seen as a person would like to see it.

    ``watch`` is called with the time and the info of every tenth of a second.
    """
    own = replace(spec, tracks=(track,), start=replace(spec.start, anywhere=False, offset=0.0, angle=0.0))
    own = replace(own, limits=replace(own.limits, max_cte=max(8.0, own.limits.max_cte), max_steps=0))
    env = DonkeyVecEnv(own, 1, seed=seed, full_infos=True)
    observation = env.reset()
    world = env.batch.world
    camera = StackedCamera(world, ObservationSpec(320, 240, camera_width=320, camera_height=240), own.camera)
    camera.dress(0, faithful(world.track(0)))
    frames: list[NDArray[np.uint8]] = []
    info: dict[str, Any] = env.batch.episode_info(0)
    ended = False
    lap_times: list[float] = []
    for step in range(int(seconds * STEPS_A_SECOND)):
        action, _ = policy.predict(observation, deterministic=True)
        observation, _, done, infos = env.step(action)
        info = infos[0]
        if info["lap_count"] > len(lap_times):
            lap_times.append(float(info["last_lap_time"]))
        if watch is not None and step % 2 == 0:
            watch(step / STEPS_A_SECOND, info)
        if done[0]:
            ended = True
            break
        if step % 2 == 0:
            lap = f"lap {info['lap_count'] + 1}" if world.track(0).closed else "open road"
            text = f"{info['track']}  {lap}  {info['speed']:.1f} m/s  cte {info['cte']:+.1f}"
            frames.append(_with_inset(captioned(camera.observe()[0], text), np.asarray(observation)[0], own))
    env.close()
    return Showing(frames, info, ended, lap_times)


def _with_inset(picture: NDArray[np.uint8], observation: NDArray[np.uint8], spec: EnvSpec) -> NDArray[np.uint8]:
    """The newest frame that the policy saw, in the upper left corner."""
    pixels = np.moveaxis(observation, 0, -1) if spec.observation.channels_first else observation
    newest = pixels[..., -spec.observation.channels :]
    small = np.repeat(newest, 3, axis=2) if newest.shape[2] == 1 else newest
    if small.shape[1] > picture.shape[1] // 2:
        return picture
    small = enlarged(small, max(1, picture.shape[1] // (3 * small.shape[1])))
    picture = picture.copy()
    picture[4 : 4 + small.shape[0], 4 : 4 + small.shape[1]] = small
    return picture
