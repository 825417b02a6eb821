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
from rl_training.runtime.environments import ending
from rl_training.runtime.scoring import RandomPolicy, checked_seed, require_its_spaces

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
    sim: str | None = None,
) -> Evaluation:
    """Drive `episodes` whole episodes on each of `tracks`, by default those of the training.

    All else is as in `env_spec`, but for an own limit of `max_steps` if given, and `DEFAULT_MAX_STEPS` where neither
    sets one. The same seed gives the same episodes. `with_gap` drives the training tracks too where none of them is
    among `tracks`, so that the generalisation gap is known. `sim` is HOST:PORT[,HOST:PORT…] of simulators to drive in
    instead of the embedded world, at least one for each track.
    """
    if episodes < 1:
        raise UsageError(f"episodes is {episodes}; expected 1 or more.")
    wanted = tuple(dict.fromkeys(tracks or env_spec.tracks))
    spec = ending(replace(env_spec, tracks=wanted), max_steps)
    steps = spec.limits.max_steps
    env = _make_env(spec, episodes, checked_seed(seed), threads, sim)
    recorder = EpisodeRecorder(tuple(wanted[i % len(wanted)] for i in range(env.num_envs)))

    def note(names: dict[str, Any], _: dict[str, Any]) -> None:
        recorder.note(names["i"], names["reward"], names["done"], names["info"])

    try:
        require_its_spaces(model, env)
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
        same: dict[str, Any] = {"deterministic": deterministic, "max_steps": steps, "threads": threads, "sim": sim}
        training = evaluate(model, env_spec, episodes=episodes, seed=seed, **same)
        found = replace(found, training_reward=training.mean_reward)
    return found


def _make_env(spec: EnvSpec, episodes: int, seed: int, threads: int, sim: str | None) -> DonkeyVecEnv:
    """As many cars as there is room for, the same number on each track and each with the same number of episodes."""
    addresses = [address.strip() for address in (sim or "").split(",") if address.strip()]
    tracks = len(spec.tracks)
    room = max(1, (len(addresses) if addresses else MOST_CARS) // tracks)
    cars = tracks * max(count for count in range(1, min(room, episodes) + 1) if episodes % count == 0)
    if not addresses:
        return DonkeyVecEnv(spec, cars, seed=seed, threads=threads, full_infos=True)
    from rl_training.envs.remote_batch import RemoteBatch

    batch = RemoteBatch(spec, addresses[:cars], seed=seed)
    return DonkeyVecEnv(spec, cars, full_infos=True, batch=batch)


def baseline_returns(env_spec: EnvSpec, *, episodes: int = 10, seed: int = SEED) -> list[float]:
    """Episode rewards of a policy that acts at random, the least that a trained one must exceed."""
    space = ActionMap(env_spec.action, 1).space
    return evaluate(RandomPolicy(space, seed), env_spec, episodes=episodes, seed=seed).episode_rewards
