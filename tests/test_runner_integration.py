"""The operator's runner, as a process of its own on a tiny embedded env."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import rl_training
from rl_training.algorithms import PPO

RUNNER = Path(rl_training.__file__).parents[2] / "agent" / "donkeycar_sb3_runner.py"


def test_runner_exits_cleanly(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "trial-0001"
    command = [sys.executable, str(RUNNER), "--agent", "ppo", "--env", "donkey-generated-track-v0"]
    command += ["--timesteps", "100", "--eval-episodes", "3", "--n-steer", "7", "--n-throttle", "3"]
    command += ["--learning-rate", "0.002", "--save-dir", str(folder), "--seed", "4", "--reward-shaping"]
    command += ["--set", "donkey.limits.max_steps=30", "--set", "num_envs=2", "--print-steps"]
    command += ["--set", "algo_kwargs.n_steps=25", "--set", "algo_kwargs.batch_size=50", "--set", "baseline_episodes=1"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300)
    assert ended.returncode == 0, ended.stderr

    result = json.loads((folder / "result.json").read_text())
    assert result["timesteps"] == 100
    assert result["run_status"] in ("ok", "no_learning")
    assert len(result["episode_rewards"]) == 3
    said = ended.stdout
    assert f"[SB3 Runner] mean_reward={result['mean_reward']:.3f}" in said
    assert f"[SB3 Runner] std_reward={result['std_reward']:.3f}" in said
    assert len(re.findall(r"^\[SB3 Runner\] episode \d+ reward=", said, re.MULTILINE)) == 3
    assert len(re.findall(r"^step \d+ reward ", said, re.MULTILINE)) == 50
    assert "reward speed" in said
    model = PPO.load(folder / "model.zip")
    assert model.num_timesteps == 100
    assert model.learning_rate == 0.002
