"""A tiny run of sac writes its models, metrics and result."""

from __future__ import annotations

import math
from pathlib import Path

from rl_training.experiment.registry import Hook, algorithm_spec
from rl_training.experiment.run_folder import RunFolder
from rl_training.runtime.metrics_log import read_metrics
from rl_training.runtime.trainer import train
from tests.runs import tiny_donkey


def test_a_tiny_run_fills_its_folder(tmp_path: Path) -> None:
    config = tiny_donkey("sac")
    run = RunFolder.create(tmp_path, config)
    hook = algorithm_spec("sac").train
    assert isinstance(hook, Hook)
    assert hook.resolve() is train
    result = train(config, run, quiet=True)
    assert result == {key: value for key, value in (run.result() or {}).items() if key != "schema"}
    assert result["timesteps"] == config.total_timesteps
    assert math.isfinite(result["mean_reward"])
    assert len(result["episode_rewards"]) == config.eval_episodes
    assert set(result["sha256"]) == {"model.zip"}
    rows = read_metrics(run.metrics)
    losses = [
        float(row[name]) for row in rows for name in row if name.startswith("train/") and "loss" in name and row[name]
    ]
    assert losses
    assert all(math.isfinite(loss) for loss in losses)
    assert (tmp_path / "learning_curve.png").read_bytes()[:4] == b"\x89PNG"
