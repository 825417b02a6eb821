"""Drive a policy over tracks and collect all there is to know, in one pass of SB3's ``evaluate_policy``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.type_aliases import PolicyPredictor

from rl_training.envs.action_map import ActionMap
from rl_training.envs.spec import EnvSpec
from rl_training.envs.vec_env import DonkeyVecEnv
from rl_training.errors import UsageError
from rl_training.evaluation.episodes import EpisodeRecorder
from rl_training.evaluation.evaluation import Evaluation
from rl_training.runtime.scoring import RandomPolicy

DEFAULT_MAX_STEPS = 2000  # 100 s, where a spec sets no limit: an evaluation must end
MOST_CARS = 64  # in one batch
SEED = 1_000_003


def evaluate(
    model: PolicyPredictor,
    env_spec: EnvSpec,
    *,
    episodes: int = 10,
    seed: int = SEED,
    deterministic: bool = True,
    tracks: Sequence[str] | None = None,
    max_steps: int | None = None,
    with_gap: bool = False,
    threads: int = 1,
) -> Evaluation:
    """Drive `episodes` whole episodes on each of `tracks`, by default those of the training.

    All else is as in `env_spec`, but for an own limit of `max_steps` if given, and `DEFAULT_MAX_STEPS` where the spec
    has none. The same seed gives the same episodes. `with_gap` drives the training tracks too where none of them is
    among `tracks`, so that the generalisation gap is known.
    """
    if episodes < 1:
        raise UsageError(f"episodes is {episodes}; expected 1 or more.")
    wanted = tuple(dict.fromkeys(tracks or env_spec.tracks))
    steps = max_steps or env_spec.limits.max_steps or DEFAULT_MAX_STEPS
    spec = replace(env_spec, tracks=wanted, limits=replace(env_spec.limits, max_steps=steps))
    cars = len(wanted) * _cars_a_track(episodes, len(wanted))
    env = DonkeyVecEnv(spec, cars, seed=seed, threads=threads, full_infos=True)
    recorder = EpisodeRecorder(tuple(wanted[i % len(wanted)] for i in range(cars)))

    def note(names: dict[str, Any], _: dict[str, Any]) -> None:
        recorder.note(names["i"], names["reward"], names["done"], names["info"])

    try:
        evaluate_policy(model, env, episodes * len(wanted), deterministic, callback=note)
    finally:
        env.close()
    found = Evaluation(
        tracks=wanted,
        training_tracks=env_spec.tracks,
        episodes=tuple(sorted(recorder.episodes, key=lambda episode: wanted.index(episode.track))),
        reward=spec.reward,
        deterministic=deterministic,
        seed=seed,
        max_steps=steps,
    )
    if with_gap and not found.seen:
        training = evaluate(
            model, env_spec, episodes=episodes, seed=seed, deterministic=deterministic, max_steps=steps, threads=threads
        )
        found = replace(found, training_reward=training.mean_reward)
    return found


def _cars_a_track(episodes: int, tracks: int) -> int:
    """As many as there is room for, all with the same number of episodes, so that every track gets its own."""
    room = max(1, MOST_CARS // tracks)
    return max(cars for cars in range(1, min(room, episodes) + 1) if episodes % cars == 0)


def baseline_returns(env_spec: EnvSpec, *, episodes: int = 10, seed: int = SEED) -> list[float]:
    """Episode rewards of a policy that acts at random, the least that a trained one must exceed."""
    space = ActionMap(env_spec.action, 1).space
    return evaluate(RandomPolicy(space, seed), env_spec, episodes=episodes, seed=seed).episode_rewards
