"""From a config to a model: the algorithm's class with its arguments, checked by name before anything runs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from rl_training.algorithms.extractors import CompactExtractor
from rl_training.algorithms.replay import ImageReplayBuffer
from rl_training.algorithms.spaces import NEEDS, observation_kind, require_spaces
from rl_training.errors import ConfigError, ModelError, did_you_mean
from rl_training.experiment.config import TrainConfig
from rl_training.experiment.registry import algorithm_spec

OURS = ("policy", "env", "seed", "device", "verbose", "tensorboard_log", "_init_setup_model")  # set from the config
# Schedules over what is left of training, 1 → 0, by the word a config uses.
SCHEDULES = ("linear",)


def build_model(config: TrainConfig, env: VecEnv) -> BaseAlgorithm:
    """An untrained model on ``env``."""
    algorithm = algorithm_spec(config.algo).algorithm()
    if algorithm.__name__ in NEEDS:
        require_spaces(algorithm.__name__, env.observation_space, env.action_space)
    arguments = _checked_arguments(algorithm, config)
    policy: str | type = config.policy
    images = observation_kind(env.observation_space) == "image"
    if policy == "MlpPolicy" and images:
        policy = "CnnPolicy"
    if policy == "CompactCnnPolicy" and policy not in algorithm.policy_aliases:
        policy = "CnnPolicy"
        extractor = {"features_extractor_class": CompactExtractor}
        arguments["policy_kwargs"] = {**extractor, **arguments.get("policy_kwargs", {})}
    if isinstance(policy, str) and policy not in algorithm.policy_aliases:
        raise ConfigError(
            f"{algorithm.__name__} has no policy '{policy}'.{did_you_mean(policy, algorithm.policy_aliases)}"
        )
    if "frame_stack" in inspect.signature(algorithm).parameters:
        arguments.setdefault("frame_stack", config.frame_stack)
    elif images and issubclass(algorithm, OffPolicyAlgorithm):
        arguments.setdefault("replay_buffer_class", ImageReplayBuffer)
        arguments.setdefault("replay_buffer_kwargs", {"frame_stack": config.frame_stack})
    with warnings.catch_warnings():  # a rollout shorter than a minibatch is one minibatch
        warnings.filterwarnings("ignore", "You have specified a mini-batch size", UserWarning)
        try:
            model: BaseAlgorithm = algorithm(policy, env, seed=config.seed, device=config.device, **arguments)
        except (AssertionError, TypeError, ValueError, ZeroDivisionError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise ConfigError(
                f"{algorithm.__name__} cannot be made with the algo_kwargs and device of this config: {reason}."
            ) from error
    return model


def _checked_arguments(algorithm: type, config: TrainConfig) -> dict[str, Any]:
    """``algo_kwargs`` with schedules and tuples made of YAML's words for them."""
    known = _parameters(algorithm)
    arguments: dict[str, Any] = {}
    for name, value in config.algo_kwargs.items():
        if name in OURS:
            raise ConfigError(f"algo_kwargs.{name} is set from the config's own '{name}'; give it there.")
        if name not in known:
            raise ConfigError(f"{config.algo} has no argument '{name}'.{did_you_mean(name, known - set(OURS))}")
        arguments[name] = _argument(name, value)
    return arguments


def _parameters(algorithm: type) -> set[str]:
    """Names of the constructor's arguments, through ``*args`` and ``**kwargs`` up to the parents'."""
    names: set[str] = set()
    for parent in algorithm.__mro__:
        if "__init__" not in vars(parent):
            continue
        parameters = inspect.signature(parent).parameters.values()
        names |= {p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return names


def _argument(name: str, value: Any) -> Any:
    if isinstance(value, Mapping) and name.startswith(("learning_rate", "clip_range")):
        word, bounds = next(iter(value.items()), ("", None))
        if len(value) != 1 or word not in SCHEDULES or not isinstance(bounds, list) or len(bounds) != 2:
            raise ConfigError(f"algo_kwargs.{name} is {value}; expected a number or {{linear: [first, last]}}.")
        return Linear(float(bounds[0]), float(bounds[1]))
    if name in ("noise", "train_freq") and isinstance(value, list):
        return tuple(value)
    return dict(value) if isinstance(value, Mapping) else value


class Linear:
    """A straight line from ``first`` at the beginning of training to ``last`` at its end."""

    def __init__(self, first: float, last: float) -> None:
        self.first, self.last = first, last

    def __call__(self, remaining: float) -> float:
        return self.last + (self.first - self.last) * remaining


def load_model(algorithm: type[BaseAlgorithm], path: Path, env: VecEnv | None, device: str = "auto") -> BaseAlgorithm:
    """A model from a zip that is trusted."""
    try:
        # force_reset would begin new episodes where a resumed run goes on in the middle of them.
        model = algorithm.load(path, env=env, device=device, force_reset=False)
    except (ValueError, KeyError, OSError, EOFError, RuntimeError, AttributeError, TypeError, AssertionError) as error:
        raise ModelError(
            f"{path} cannot be loaded as a model of {algorithm.__name__}: {error}. Train it again or restore the file."
        ) from error
    if not isinstance(model.policy, tuple(algorithm.policy_aliases.values())):
        raise ModelError(
            f"{path} holds a {type(model.policy).__name__}, which is no policy of {algorithm.__name__}; "
            "name the algorithm that it was trained by."
        )
    return model
