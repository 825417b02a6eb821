"""How good a policy is in its config's env, by stable-baselines3's ``evaluate_policy``; and whether it learned at all.

The yardsticks are a random policy and the untrained one, in the same env. Rewards may be negative, so "twice as good"
means better than the better yardstick by as much as its own size, or its spread over episodes where that is larger.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from gymnasium import Space
from numpy.typing import NDArray
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.type_aliases import PolicyPredictor
from stable_baselines3.common.vec_env import VecEnv

from rl_training.errors import UsageError
from rl_training.experiment.config import TrainConfig
from rl_training.runtime.environments import EVALUATION_SEED, make_env

PARALLEL = 16  # envs of an evaluation, at most
LONGEST_EPISODE = 100_000  # steps, after which an episode is taken for one that never ends
LOG = logging.getLogger(__name__)
FIGURES = ("laps", "lap_count", "progress", "last_lap_time")  # kept of an episode's last info, where it has them


@dataclass(frozen=True)
class Score:
    """Rewards of whole episodes, and what the env says of each at its end."""

    mean_reward: float
    std_reward: float
    episode_rewards: list[float]
    episode_lengths: list[int]
    figures: dict[str, list[float]] = field(default_factory=dict)

    @property
    def means(self) -> dict[str, float]:
        """The mean of each figure."""
        return {name: float(np.mean(values)) for name, values in self.figures.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def to_csv(self) -> str:
        """One line an episode."""
        columns = {"reward": self.episode_rewards, "length": self.episode_lengths, **self.figures}
        rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values()))]
        return "\n".join(rows) + "\n"


def score(
    model: PolicyPredictor,
    config: TrainConfig,
    episodes: int | None = None,
    seed: int | None = None,
    *,
    deterministic: bool = True,
) -> Score:
    """Drive ``episodes`` whole episodes in envs made for it."""
    count = episodes or config.eval_episodes
    env = make_env(config, min(count, PARALLEL), seed=_seed(config, seed))
    try:
        return score_in(model, env, count, _seed(config, seed), deterministic)
    finally:
        env.close()


def _seed(config: TrainConfig, seed: int | None) -> int:
    return config.seed + EVALUATION_SEED if seed is None else checked_seed(seed)


def checked_seed(seed: int) -> int:
    """A seed that generators take."""
    if seed < 0:
        raise UsageError(f"seed is {seed}; expected 0 or more.")
    return seed


def score_in(model: PolicyPredictor, env: VecEnv, episodes: int, seed: int, deterministic: bool = True) -> Score:
    """As `score`, in envs at hand; the same seed gives the same episodes."""
    figures: dict[str, list[float]] = {}

    def note(names: dict[str, Any], _: dict[str, Any]) -> None:
        if names["current_lengths"][names["i"]] > LONGEST_EPISODE:
            raise UsageError(
                f"An episode of the evaluation still runs after {LONGEST_EPISODE:,} steps; set a limit to its length, "
                "such as env_kwargs.max_episode_steps=1000."
            )
        if names["done"]:
            # For a log: in a simulator of real time an evaluation takes minutes, and whoever watches must see it live.
            told = names["info"].get("episode", {}).get("r", names["current_rewards"][names["i"]])
            LOG.info("episode of %d steps: reward %.2f", names["current_lengths"][names["i"]], told)
            for name in FIGURES:
                if name in names["info"]:
                    figures.setdefault(name, []).append(float(names["info"][name]))

    require_its_spaces(model, env)
    env.seed(seed)
    rewards, lengths = evaluate_policy(
        model, env, episodes, deterministic=deterministic, return_episode_rewards=True, callback=note
    )
    assert isinstance(rewards, list)
    assert isinstance(lengths, list)
    return Score(
        float(np.mean(rewards)), float(np.std(rewards)), [float(reward) for reward in rewards], lengths, figures
    )


def require_its_spaces(model: Any, env: VecEnv) -> None:
    """Raise where a model was trained in another kind of env; policies without spaces of their own go anywhere."""
    if not hasattr(model, "observation_space"):
        return
    for own, given in ((model.observation_space, env.observation_space), (model.action_space, env.action_space)):
        if _kind(own) != _kind(given):
            raise UsageError(
                f"The model was trained on {own} and this env has {given}; name the config of its training."
            )


def _kind(space: Space[Any]) -> tuple[Any, ...]:
    """What must be the same; stable-baselines3 moves the channels of images to the front."""
    return type(space), sorted(space.shape or ()), getattr(space, "n", None)


class RandomPolicy:
    """Draws every action from the action space."""

    def __init__(self, space: Space[Any], seed: int) -> None:
        self.space = space
        self.space.seed(seed)

    def predict(
        self,
        observation: NDArray[Any] | dict[str, NDArray[Any]],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], None]:
        assert isinstance(observation, np.ndarray)
        return np.stack([np.asarray(self.space.sample()) for _ in observation]), None


@dataclass(frozen=True)
class Learned:
    """A policy beside its yardsticks."""

    random: float
    untrained: float
    ratio: float | None  # 1 is as good as the better yardstick, 2 better by its whole size; None where it has none
    learned: bool


def compare(mean: float, random: Sequence[float], untrained: Sequence[float], margin: float) -> Learned:
    """Whether ``mean`` is ``margin`` times as good as the better yardstick."""
    best = max((random, untrained), key=np.mean)
    level = float(np.mean(best))
    unit = max(abs(level), float(np.std(best)))
    ratio = 1.0 + (mean - level) / unit if unit > 0.0 and math.isfinite(mean) else None
    learned = mean > level and (ratio is None or ratio >= margin)
    return Learned(float(np.mean(random)), float(np.mean(untrained)), ratio, learned)


def predict(model: Any, observation: Any, deterministic: bool = True) -> Any:
    """The action for one observation or a batch of them."""
    try:
        action, _ = model.predict(observation, deterministic=deterministic)
    except ValueError as error:
        shape = getattr(observation, "shape", None)
        raise UsageError(
            f"An observation of shape {shape} does not fit; the model takes {model.observation_space}, one or a batch."
        ) from error
    return action


def summary(result: Mapping[str, Any]) -> list[str]:
    """The lines that people and logs look for."""
    lines = [
        f"[SB3 Runner] episode {k} reward={reward:.3f}" for k, reward in enumerate(result.get("episode_rewards", []), 1)
    ]
    mean, std = result.get("mean_reward"), result.get("std_reward")
    show = ["nan" if value is None else f"{value:.3f}" for value in (mean, std)]
    return [*lines, f"[SB3 Runner] mean_reward={show[0]}", f"[SB3 Runner] std_reward={show[1]}"]
