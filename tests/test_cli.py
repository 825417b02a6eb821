"""The training commands, by their exit codes and what they print."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import yaml

from rl_training.cli.main import main
from rl_training.experiment.config import TrainConfig
from rl_training.runtime.progress import Laps
from tests.runs import TINY

CARTPOLE = ["--env", "CartPole-v1", "--num-envs", "2", "--eval-episodes", "2", "--set", "baseline_episodes=1"]
CARTPOLE += ["--set", "algo_kwargs.n_steps=16", "--set", "algo_kwargs.batch_size=32"]


def test_train_resume_and_predict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "run")
    assert main(["train", *CARTPOLE, "--timesteps", "64", "--save-dir", run, "--seed", "3"]) == 0
    captured = capsys.readouterr()
    assert "[SB3 Runner] mean_reward=" in captured.out
    assert "64/64 steps" in captured.err  # the last line of progress
    assert main(["train", *CARTPOLE, "--timesteps", "64", "--save-dir", run]) == 2
    assert "already holds a run" in capsys.readouterr().err
    assert main(["resume", run, "--timesteps", "96", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["timesteps"] == 96
    assert main(["train", "--resume", run, "--timesteps", "128", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "--model", run, "--episodes", "3", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["episode_rewards"]) == 3
    table = tmp_path / "episodes.csv"
    assert main(["evaluate", "--model", run, "--episodes", "3", "--stochastic", "--csv", str(table), "--json"]) == 0
    drawn = json.loads(capsys.readouterr().out)["episode_rewards"]
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert [float(row["reward"]) for row in rows] == drawn
    assert [float(row["length"]) for row in rows] == drawn  # CartPole pays 1 a step
    assert main(["evaluate", "--model", run, "--max-cte", "3"]) == 2
    assert "belong to the car" in capsys.readouterr().err
    assert main(["evaluate", "--model", run, "--episodes", "0"]) == 2
    assert main(["evaluate", "--model", run, "--track", "warren"]) == 2
    assert "has no tracks" in capsys.readouterr().err
    assert main(["predict", "--model", run, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["action"] in (0, 1)
    assert main(["predict", "--model", run, "--observation", "[0, 0.1, 0, 0]"]) == 0
    assert capsys.readouterr().out.startswith("action: ")
    assert main(["predict", "--model", run, "--observation", "nothing"]) == 2
    capsys.readouterr()
    assert main(["predict", "--model", run, "--observation", "[1, 2]"]) == 2
    assert "An observation of shape (2,) does not fit" in capsys.readouterr().err
    assert main(["predict", "--model", run, "--seed", "-1"]) == 2
    assert main(["evaluate", "--model", run, "--seed", "-1"]) == 2
    foreign = tmp_path / "foreign" / "model.zip"
    foreign.parent.mkdir()
    foreign.write_bytes((Path(run) / "model.zip").read_bytes())
    assert main(["evaluate", "--model", str(foreign), "--config", run]) == 1
    capsys.readouterr()
    assert main(["evaluate", "--model", str(foreign), "--config", run, "--trust", "--episodes", "1"]) == 0
    assert "[SB3 Runner] mean_reward=" in capsys.readouterr().out
    capsys.readouterr()
    assert main(["evaluate", "--model", str(foreign), "--config", "ppo/donkey", "--trust"]) == 2
    assert "The model was trained on Box(" in capsys.readouterr().err
    assert main(["evaluate", "--model", str(foreign), "--config", "dqn/cartpole", "--trust"]) == 1
    assert "DQN" in capsys.readouterr().err


def test_flags_and_assignments_change_the_preset(capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "config",
        "show",
        "--agent",
        "dqn",
        "--track",
        "warren,random:train",
        "--n-steer",
        "9",
        "--timesteps",
        "77",
    ]
    command += ["--learning-rate", "0.01", "--reward-shaping", "--set", "donkey.limits.max_cte=3", "--num-envs", "5"]
    assert main(command) == 0
    config = TrainConfig.from_dict(yaml.safe_load(capsys.readouterr().out))
    assert config.donkey.tracks == ("warren", "random:train")
    assert (config.donkey.action.n_steer, config.donkey.action.n_throttle) == (9, 3)
    assert (config.total_timesteps, config.num_envs, config.algo_kwargs["learning_rate"]) == (77, 5, 0.01)
    assert config.donkey.reward == "speed"
    assert config.donkey.limits.max_cte == 3


def test_presets_pay_what_cannot_be_farmed_and_the_runner_what_the_simulator_pays(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def reward(*flags: str) -> str:
        assert main(["config", "show", "--json", *flags]) == 0
        return str(json.loads(capsys.readouterr().out)["donkey"]["reward"])

    assert reward() == "race"
    assert reward("--env", "donkey-warren-track-v0", "--agent", "dqn") == "race"
    assert reward("--env-reward") == "donkey"
    assert reward("--env-reward", "--env", "donkey-warren-track-v0", "--agent", "dqn") == "donkey"
    assert reward("--env-reward", "--reward-shaping") == "speed"
    assert reward("--env-reward", "--config", "ppo/donkey") == "race"
    assert main(["config", "show", "--env-reward", "--env", "CartPole-v1"]) == 0


def test_the_action_grid_leaves_continuous_agents_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "--agent", "ppo", "--n-steer", "7", "--n-throttle", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["donkey"]["action"]["n_steer"] == 0


def test_config_list_names_the_presets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "list"]) == 0
    assert "ppg/cartpole" in capsys.readouterr().out


def test_ctrl_c_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(tmp_path / "run")
    steps = ["--timesteps", "128", "--save-dir", run, "--quiet"]

    def at(step: int) -> None:
        monkeypatch.setattr(Laps, "_on_step", lambda self: _interrupt() if self.num_timesteps >= step else True)

    at(40)
    assert main(["train", *CARTPOLE, *steps, "--set", "checkpoint_interval=64"]) == 130
    assert "it had no checkpoint yet" in capsys.readouterr().err
    assert main(["resume", run, "--quiet"]) == 1
    assert "no point to resume from" in capsys.readouterr().err
    run = steps[3] = str(tmp_path / "longer")
    at(100)
    assert main(["train", *CARTPOLE, *steps, "--set", "checkpoint_interval=64"]) == 130
    assert f"'donkey-rl resume {run}' goes on from its last checkpoint" in capsys.readouterr().err
    assert main(["evaluate", "--model", run]) == 1
    assert "the folder of a finished run" in capsys.readouterr().err
    assert main(["resume", run, "--quiet"]) == 130
    assert f"'donkey-rl resume {run}' goes on" in capsys.readouterr().err
    monkeypatch.undo()
    assert main(["resume", run, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["timesteps"] == 128


def _interrupt() -> bool:
    raise KeyboardInterrupt


@pytest.mark.parametrize("agent", ["ppo", "sac", "drq"])
def test_a_policy_that_diverges_is_told_so(agent: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = {"algo_kwargs": {**TINY[agent], "learning_rate": 1e30}, "eval_episodes": 1, "baseline_episodes": 0}
    config = tmp_path / "wild.yaml"
    config.write_text(json.dumps({"extends": f"{agent}/donkey", **values, "num_envs": 1, "total_timesteps": 128}))
    assert main(["train", "--config", str(config), "--save-dir", str(tmp_path / "run"), "--quiet"]) == 1
    assert "the policy's weights are beyond all measure; lower the learning rate" in capsys.readouterr().err
    assert json.loads((tmp_path / "run" / "result.json").read_text())["run_status"] == "invalid"


def test_steps_are_printed_or_json_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["train", *CARTPOLE, "--print-steps", "--json"])
    assert exit_.value.code == 2
    assert "not allowed with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["train", "--agent", "pp0"], "Did you mean 'ppo'?"),
        (["train", "--set", "sed=3"], "Did you mean 'seed'?"),
        (["train", "--env", "CartPole-v1", "--track", "warren"], "belong to the car"),
        (["train", "--track", "waren", "--quiet"], "Did you mean 'warren'?"),
        (["train", "--set", "donkey=3"], "donkey is 3; expected a mapping"),
        (["train", "--set", "algo_kwargs.learning_rate=much", "--quiet"], "PPO cannot be made with"),
        (["train", "--set", "device=gpu9", "--quiet"], "PPO cannot be made with"),
        (["config", "show", "loop.yaml"], "loop.yaml extends itself"),
        (["config", "show", "noise.yaml"], "expected YAML in UTF-8"),
        (["resume", "nowhere"], "is no run folder"),
        (["train", "--resume", "nowhere"], "is no run folder"),
        (["train", "--resume", "nowhere", "--seed", "3"], "--seed cannot be given with --resume"),
        (["train", "--resume", "nowhere", "--save-dir", "x"], "--save-dir cannot be given with --resume"),
        (["train", "--agent", "ppg", "--env", "Pendulum-v1"], "use PPO or SAC instead"),
        (["train", "--agent", "drq", "--env", "CartPole-v1"], "use PPO or PPG or DQN instead"),
        (["train", "--agent", "drqv2", "--env", "Pendulum-v1"], "use PPO or SAC instead"),
        (
            ["train", "--agent", "sac", "--env", "CartPole-v1"],
            "SAC learns from any observations and continuous actions",
        ),
        (["train", "--agent", "dqn", "--env", "Pendulum-v1"], "use PPO or SAC instead"),
        (["predict", "--model", "nowhere"], "no model at"),
    ],
)
def test_mistakes_are_one_sentence(
    command: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.yaml").write_text("extends: loop.yaml", encoding="utf-8")
    (tmp_path / "noise.yaml").write_bytes(b"\xff\xfe\x00")
    assert main(command) in (1, 2)
    error = capsys.readouterr().err
    assert says in error
    assert "Traceback" not in error
