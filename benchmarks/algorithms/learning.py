"""What is learned: CartPole beside the peers, Pendulum from pixels, SAC, and whether bfloat16 costs returns."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from benchmarks.algorithms.measure import CARTPOLE, Row, peer, row
from benchmarks.algorithms.pixel_pendulum import solve
from benchmarks.algorithms.speed import ON_POLICY
from rl_training.experiment.config import TrainConfig, merged
from rl_training.experiment.presets import read_config
from rl_training.runtime.building import build_model
from rl_training.runtime.environments import make_env
from rl_training.runtime.scoring import score


def say(line: str) -> None:
    """Progress of a long run, beside the table."""
    print(line, file=sys.stderr, flush=True)


def each(values: Sequence[float]) -> str:
    """Every seed's figure, in a few letters."""
    return " ".join(f"{value:.0f}" for value in values)


def band(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard error over seeds, the band of which overlaps a peer's or does not."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def cartpole_curve(name: str, seed: int, steps: int) -> tuple[float, float]:
    """Deterministic returns of 20 episodes at half of the steps and at the end."""
    model = ON_POLICY[name]("MlpPolicy", make_vec_env("CartPole-v1", 4, seed=seed), seed=seed, **CARTPOLE)
    returns = []
    for _ in range(2):
        model.learn(steps // 2, reset_num_timesteps=False)
        returns.append(float(np.mean(evaluate_policy(model, make_vec_env("CartPole-v1", 4, seed=1000), 20)[0])))
    say(f"{name} seed {seed}: {returns[0]:.0f} and {returns[1]:.0f} after {steps // 2:,} and {steps:,} steps")
    return returns[0], returns[1]


def cartpole_returns(seeds: Sequence[int], steps: int) -> list[Row]:
    """Returns after half of the steps and all of them, per seed; axiomrl's at the end only."""
    rows, ends = [], {}
    for name in ON_POLICY:
        halves, ends[name] = zip(*(cartpole_curve(name, seed, steps) for seed in seeds))
        (half, half_error), (end, error) = band(halves), band(ends[name])
        what = f"CartPole {steps // 2:,}: {half:.0f} ± {half_error:.0f}; {steps:,}: {each(ends[name])} ± {error:.0f}"
        rows.append(row(what, name, end, "mean"))
    rows[0] |= {"bar": "not below SB3's", "met": np.mean(ends["PPO"]) >= np.mean(ends["SB3 PPO"])}
    rows[1] |= {"bar": "500 on every seed", "met": min(ends["PPG"]) == 500}
    for name in ("ppo", "ppg"):
        found = [peer("cartpole", name, str(steps), str(seed)) for seed in seeds]
        theirs = [figures["return"] for figures in found if figures]
        if theirs:
            mean, error = band(theirs)
            rows.append(
                row(f"CartPole {steps:,}: {each(theirs)} ± {error:.0f}", f"axiomrl {name.upper()}", mean, "mean")
            )
    return rows


def pixel_pendulum(seeds: Sequence[int], precision: str, algorithms: Sequence[str]) -> list[Row]:
    """What it takes to solve Pendulum from pixels."""
    rows = []
    for algorithm in algorithms:
        for seed in seeds:
            run = solve(f"{algorithm}/pendulum_pixels", seed, precision, report=say)
            what = f"pixel Pendulum {precision}, {run['env_steps']:,} env steps, {run['cpu_minutes']:.1f} CPU min"
            rows.append(row(what, f"{algorithm} seed {seed}", run["return"], "return", bar="≥ -250", met=run["solved"]))
    return rows


def sac_pendulum(seeds: Sequence[int]) -> list[Row]:
    """The preset sac/pendulum at 10 thousand steps."""
    rows = []
    for seed in seeds:
        earned = trained("sac/pendulum", {"seed": seed, "total_timesteps": 10_000})["mean_reward"]
        say(f"SAC seed {seed}: {earned:.0f}")
        rows.append(
            row("Pendulum after 10,000 steps", f"sac seed {seed}", earned, "return", bar="≥ -150", met=earned >= -150)
        )
    return rows


def trained(preset: str, over: dict[str, Any], episodes: int = 20) -> dict[str, Any]:
    """Train the preset to its last step and score the last policy, not the best one."""
    config = TrainConfig.from_dict(merged(read_config(preset), over))
    model = build_model(config, make_env(config, seed=config.seed)).learn(config.total_timesteps)
    found = score(model, config, episodes)
    return {"mean_reward": found.mean_reward, **found.means}


def precision_returns(seeds: Sequence[int], steps: int) -> list[Row]:
    """ppo/donkey with the encoder in float32 and in bfloat16, at equal steps and seeds: the difference, paired."""
    rows, runs = [], {}
    for precision in ("float32", "bfloat16"):
        runs[precision] = []
        for seed in seeds:
            over = {"seed": seed, "total_timesteps": steps, "algo_kwargs": {"precision": precision}}
            found = trained("ppo/donkey", over)
            say(f"ppo/donkey {precision} seed {seed}: {found}")
            runs[precision].append(found)
        returns = [found["mean_reward"] for found in runs[precision]]
        progress = [found.get("progress", float("nan")) for found in runs[precision]]
        mean, error = band(returns)
        what = f"ppo/donkey {steps:,} steps: {each(returns)} ± {error:.1f}; progress {np.mean(progress):.2f}"
        rows.append(row(what, precision, mean, "return"))
    pairs = [b["mean_reward"] - a["mean_reward"] for a, b in zip(runs["float32"], runs["bfloat16"])]
    mean, error = band(pairs)
    rows.append(row(f"bfloat16 − float32, paired, ± {error:.1f}", "difference", mean, "return"))
    return rows
