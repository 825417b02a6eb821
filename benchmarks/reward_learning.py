"""How soon PPO laps under each reward: laps per episode of 30 s after a fixed number of steps, over seeds."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import torch

from rl_training.algorithms import PPO
from rl_training.cli.console import console, table
from rl_training.envs.spec import POLICY_VIEW, ActionSpec, EnvSpec, Limits, StartSpec
from rl_training.envs.vec_env import DonkeyVecEnv
from rl_training.evaluation.evaluation import Summary, summarize
from rl_training.runtime.evaluation import evaluate

CARS, ROLLOUT, EPISODES = 16, 128, 10


def main(arguments: Sequence[str]) -> int:
    """Train and print."""
    parser = argparse.ArgumentParser(prog="donkey-rl bench reward_learning", description=__doc__)
    parser.add_argument("--reward", action="append", help="repeat for several (default: donkey, race)")
    parser.add_argument("--seeds", type=int, default=4, help="how many (4)")
    parser.add_argument("--steps", type=int, default=36_864, help="env steps of each training (36864)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    names = args.reward or ["donkey", "race"]
    found = {name: [learned(name, seed, args.steps) for seed in range(args.seeds)] for name in names}
    if args.json:
        print(json.dumps({name: [summary.mean_laps for summary in runs] for name, runs in found.items()}, indent=2))
        return 0
    grid = table(f"Laps per episode after {args.steps} steps", "reward", *(f"seed {k}" for k in range(args.seeds)))
    for name, runs in found.items():
        grid.add_row(name, *(f"{summary.mean_laps:.2f}" for summary in runs))
    console.print(grid)
    return 0


def learned(reward: str, seed: int, steps: int) -> Summary:
    """One training on generated_track and what it drives afterwards."""
    spec = EnvSpec(
        observation=POLICY_VIEW,
        action=ActionSpec(throttle_max=0.5, normalized=True),
        start=StartSpec(anywhere=True, offset=1.0, angle=12.0),
        limits=Limits(max_cte=4.0, max_steps=600),
        reward=reward,
    )
    env = DonkeyVecEnv(spec, CARS, seed=seed)
    model = PPO(
        "CompactCnnPolicy", env, n_steps=ROLLOUT, batch_size=256, n_epochs=4, learning_rate=4e-4, gamma=0.98,
        gae_lambda=0.95, policy_kwargs={"log_std_init": -0.7}, seed=seed,
    )  # fmt: skip
    model.learn(steps)
    env.close()
    return summarize(evaluate(model, spec, episodes=EPISODES).episodes)
