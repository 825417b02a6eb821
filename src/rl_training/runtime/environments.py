"""From a config to the envs it means, as one VecEnv that stable-baselines3 learns from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import gymnasium as gym
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from rl_training.envs.vec_env import DonkeyVecEnv
from rl_training.errors import ConfigError, did_you_mean
from rl_training.experiment.config import EMBEDDED, TrainConfig
from rl_training.wrappers.pixels import PixelObservation

EVALUATION_SEED = 1_000_003  # added to a run's seed for envs that training never sees


def make_env(config: TrainConfig, num_envs: int | None = None, *, seed: int) -> VecEnv:
    """The config's envs; those of an evaluation have another number and seed, and all else the same."""
    count = num_envs or config.num_envs
    if config.is_donkey:
        if config.sim != EMBEDDED:
            return _remote(config, num_envs, seed)
        return DonkeyVecEnv(config.donkey, count, seed=seed, threads=config.env_threads)
    envs = DummyVecEnv([_maker(config) for _ in range(count)])
    envs.seed(seed)
    return envs


def _remote(config: TrainConfig, num_envs: int | None, seed: int) -> VecEnv:
    """One car in each simulator that `sim` names; an evaluation takes as many of them as it has use for."""
    from rl_training.envs.remote_batch import RemoteBatch

    addresses = [address.strip() for address in config.sim.split(",") if address.strip()]
    if num_envs is not None:
        addresses = addresses[: max(num_envs, len(config.donkey.tracks))]
    return DonkeyVecEnv(config.donkey, len(addresses), batch=RemoteBatch(config.donkey, addresses, seed=seed))


def _maker(config: TrainConfig) -> Callable[[], gym.Env[Any, Any]]:
    def make() -> gym.Env[Any, Any]:
        return Monitor(make_single(config))

    return make


def make_single(config: TrainConfig) -> gym.Env[Any, Any]:
    """One Gymnasium env, through its pictures where the config says so."""
    arguments: dict[str, Any] = dict(config.env_kwargs)
    if config.pixels:
        arguments["render_mode"] = "rgb_array"
    try:
        env = gym.make(config.env, **arguments)
    except gym.error.Error as error:
        ids = [name for name in gym.registry if "/" not in name]
        raise ConfigError(
            f"Gymnasium cannot make '{config.env}' ({error}).{did_you_mean(config.env, ids) if len(ids) < 1000 else ''}"
        ) from error
    except TypeError as error:
        raise ConfigError(f"'{config.env}' does not take these env_kwargs: {error}.") from error
    return PixelObservation(env, **asdict(config.pixels)) if config.pixels else env
