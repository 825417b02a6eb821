"""Pendulum from pixels by the packaged presets: what DrQ and DrQ-v2 need until a deterministic evaluation solves it.

A random policy earns about -1200 an episode; -250 counts as solved. The seconds are those of training alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rl_training.experiment.config import TrainConfig, merged
from rl_training.experiment.presets import read_config
from rl_training.runtime.building import build_model
from rl_training.runtime.environments import make_env
from rl_training.runtime.scoring import score

SOLVED = -250.0


def solve(
    preset: str,
    seed: int,
    precision: str = "auto",
    *,
    limit: int = 15_000,
    every: int = 500,
    first: int = 2_000,
    episodes: int = 20,
    over: dict[str, Any] | None = None,
    report: Callable[[str], object] = lambda line: None,
) -> dict[str, Any]:
    """Train on ``seed`` until an evaluation counts as solved, at most ``limit`` decisions.

    Evaluations are of ``episodes`` deterministic episodes in the environment's own rewards, every ``every`` decisions
    from ``first`` on; ``over`` is laid over the preset.
    """
    values = merged(read_config(preset), {"seed": seed, "algo_kwargs": {"precision": precision}})
    config = TrainConfig.from_dict(merged(values, over or {}))
    model = build_model(config, make_env(config, seed=seed))
    cpu = wall = 0.0
    earned: list[float] = []
    while model.num_timesteps < limit:
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        model.learn(first if not earned else every, reset_num_timesteps=False)
        cpu, wall = cpu + time.process_time() - cpu_start, wall + time.perf_counter() - wall_start
        earned.append(score(model, config, episodes).mean_reward)
        report(
            f"{preset} seed {seed}: {earned[-1]:.0f} after {model.num_timesteps:,} decisions, {cpu / 60:.1f} CPU min"
        )
        if earned[-1] >= SOLVED:
            break
    repeat = config.pixels.action_repeat if config.pixels else 1
    return {
        "preset": preset,
        "seed": seed,
        "precision": precision,
        "return": earned[-1],
        "solved": earned[-1] >= SOLVED,
        "decisions": model.num_timesteps,
        "env_steps": repeat * model.num_timesteps,
        "updates": model._n_updates,  # type: ignore[attr-defined]
        "cpu_minutes": cpu / 60,
        "wall_minutes": wall / 60,
        "returns": [round(value, 1) for value in earned],
    }
