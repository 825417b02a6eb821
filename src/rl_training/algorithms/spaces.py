"""Which algorithm learns from which spaces, said before training and with the name of one that fits."""

from __future__ import annotations

from typing import Any, NamedTuple

from gymnasium import Env, Space, make
from gymnasium.spaces import Box, Discrete
from stable_baselines3.common.vec_env import VecEnv

from rl_training.errors import SpaceError


class Needs(NamedTuple):
    """The spaces an algorithm learns from."""

    observations: frozenset[str]
    actions: frozenset[str]


_ANY = frozenset({"image", "vector", "other"})
NEEDS = {
    "PPO": Needs(_ANY, frozenset({"continuous", "discrete", "other"})),
    "PPG": Needs(frozenset({"image", "vector"}), frozenset({"discrete"})),
    "DQN": Needs(_ANY, frozenset({"discrete"})),
    "SAC": Needs(_ANY, frozenset({"continuous"})),
    "DrQ": Needs(frozenset({"image"}), frozenset({"continuous"})),
    "DrQv2": Needs(frozenset({"image"}), frozenset({"continuous"})),
}


def observation_kind(space: Space[Any]) -> str:
    """``image`` (three axes of uint8), ``vector`` (any other box) or ``other``."""
    if not isinstance(space, Box):
        return "other"
    return "image" if len(space.shape) == 3 and space.dtype == "uint8" else "vector"


def action_kind(space: Space[Any]) -> str:
    """``continuous`` (a box with one axis), ``discrete`` (one choice) or ``other``."""
    if isinstance(space, Discrete):
        return "discrete"
    return "continuous" if isinstance(space, Box) and len(space.shape) == 1 else "other"


def require_spaces(algorithm: str, observation_space: Space[Any], action_space: Space[Any]) -> None:
    """Raise a `SpaceError` that names an algorithm that fits, unless this one does."""
    observations, actions = observation_kind(observation_space), action_kind(action_space)
    needs = NEEDS[algorithm]
    if observations in needs.observations and actions in needs.actions:
        return
    fitting = [name for name, need in NEEDS.items() if observations in need.observations and actions in need.actions]
    seen = "any" if needs.observations == _ANY else " or ".join(sorted(needs.observations))
    raise SpaceError(
        f"{algorithm} learns from {seen} observations and "
        f"{' or '.join(sorted(needs.actions))} actions, and this environment has {observation_space} and "
        f"{action_space}; use {' or '.join(fitting)} instead."
    )


def checked_env(algorithm: str, env: Env[Any, Any] | VecEnv | str | None) -> Env[Any, Any] | VecEnv | None:
    """The environment, made where only its id is given, if ``algorithm`` can learn from its spaces."""
    if env is None:
        return None
    if isinstance(env, str):
        env = make(env)
    require_spaces(algorithm, env.observation_space, env.action_space)
    return env
