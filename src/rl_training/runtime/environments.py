"""From a config to the envs it means, as one VecEnv that stable-baselines3 learns from."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import gymnasium as gym
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from rl_training.envs.spec import EnvSpec
from rl_training.envs.vec_env import DonkeyVecEnv
from rl_training.errors import ConfigError
from rl_training.experiment.config import EMBEDDED, TrainConfig
from rl_training.wrappers.pixels import PixelObservation

EVALUATION_SEED = 1_000_003  # added to a run's seed for envs that training never sees
DEFAULT_MAX_STEPS = 2000  # 100 s, where a spec sets no limit: an evaluation must end


def make_env(config: TrainConfig, num_envs: int | None = None, *, seed: int) -> VecEnv:
    """The config's envs; those of an evaluation have another number and seed, episodes that end, and all else the same.

    Simulators over TCP have one car for training and evaluation, so its episodes always end.
    """
    count = num_envs or config.num_envs
    if config.is_donkey:
        if config.sim != EMBEDDED:
            return _remote(config, num_envs, seed)
        spec = config.donkey if num_envs is None else ending(config.donkey)
        return DonkeyVecEnv(spec, count, seed=seed, threads=config.env_threads)
    envs = DummyVecEnv([_maker(config) for _ in range(count)])
    envs.seed(seed)
    return envs


def ending(spec: EnvSpec, max_steps: int | None = None) -> EnvSpec:
    """The spec with a limit of steps, without which the episode of a policy that never errs would not end."""
    steps = max_steps or spec.limits.max_steps or DEFAULT_MAX_STEPS
    return replace(spec, limits=replace(spec.limits, max_steps=steps))


def _remote(config: TrainConfig, num_envs: int | None, seed: int) -> VecEnv:
    """One car in each simulator that `sim` names; an evaluation takes as many of them as it has use for."""
    from rl_training.envs.remote_batch import RemoteBatch

    addresses = [address.strip() for address in config.sim.split(",") if address.strip()]
    if num_envs is not None:
        addresses = addresses[: max(num_envs, len(config.donkey.tracks))]
    spec = ending(config.donkey)
    return DonkeyVecEnv(spec, len(addresses), batch=RemoteBatch(spec, addresses, seed=seed))


def _maker(config: TrainConfig) -> Callable[[], gym.Env[Any, Any]]:
    def make() -> gym.Env[Any, Any]:
        return Monitor(make_single(config))

    return make


def make_single(config: TrainConfig) -> gym.Env[Any, Any]:
    """One Gymnasium env, through its pictures where the config says so."""
    arguments: dict[str, Any] = dict(config.env_kwargs)
    if config.pixels:
        arguments["render_mode"] = "rgb_array"
        if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # or it complains that there is no screen
    try:
        env = gym.make(config.env, **arguments)
    except (gym.error.Error, ImportError) as error:  # its message names the nearest id, or the package that is missing
        raise ConfigError(f"Gymnasium cannot make '{config.env}': {error}") from error
    except TypeError as error:
        raise ConfigError(f"'{config.env}' does not take these env_kwargs: {error}.") from error
    return PixelObservation(env, **asdict(config.pixels)) if config.pixels else env
