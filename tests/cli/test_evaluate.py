"""`donkey-rl evaluate`: what it prints for people and for programs, and what it says of mistakes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_training.autoresearch.champion import ChampionTracker
from rl_training.autoresearch.study import Study
from rl_training.cli import evaluate
from rl_training.cli.main import main
from rl_training.envs.spec import ActionSpec, EnvSpec, Limits, ObservationSpec, StartSpec

SPEC = EnvSpec(
    observation=ObservationSpec(16, 12, camera_width=16, camera_height=12),
    action=ActionSpec(throttle_max=0.5),
    start=StartSpec(anywhere=True),
    limits=Limits(max_cte=4.0, max_steps=40),
    reward="race",
)


class Ahead:
    def predict(self, observation: Any, *_: Any, **__: Any) -> tuple[Any, None]:
        return np.tile([0.0, 0.3], (len(observation), 1)).astype(np.float32), None


@pytest.fixture(autouse=True)
def _model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "_load", lambda path, trust, config: (Ahead(), SPEC))


def test_the_table_names_rewards_tracks_and_bars(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--model", "any", "--track", "generated_track,warren", "--episodes", "3"]) == 0
    shown = capsys.readouterr().out
    assert "generated_track: episode rewards " in shown
    assert "warren (unseen)" in shown
    assert "FAIL  at least one lap on a training track: 0." in shown
    assert "Generalisation gap" in shown


def test_the_champion_is_evaluated_by_its_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = Study(tmp_path)
    arguments = ["evaluate", "--champion", "--study", str(tmp_path), "--episodes", "1", "--json"]
    assert main(arguments) == 1
    assert "There is no champion" in capsys.readouterr().err
    (tmp_path / "model.zip").write_bytes(b"weights")
    ChampionTracker(study.champion).update_if_better(1.0, {}, tmp_path / "model.zip")
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["model"] == str(study.champion)
    assert main([*arguments, "--model", "another"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == "another"
    assert main(["evaluate"]) == 2
    assert "give --model RUN, or --champion" in capsys.readouterr().err


def test_json_and_csv_hold_every_episode(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "episodes.csv"
    arguments = ["--env", "donkey-warren-track-v0", "--episodes", "2", "--json", "--csv", str(table), "--seed", "5"]
    assert main(["evaluate", "--model", "any", *arguments]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["generalization_gap"] == pytest.approx(told["training_reward"] - told["mean_reward"])
    rows = list(csv.DictReader(io.StringIO(table.read_text(encoding="utf-8"))))
    assert [float(row["reward"]) for row in rows] == told["episode_rewards"]
    assert {row["track"] for row in rows} == {"warren"}


def test_the_scenes_own_start_is_one_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--model", "any", "--episodes", "3", "--from-start", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["std_reward"] == 0.0
    assert main(["evaluate", "--model", "any", "--episodes", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["std_reward"] > 0.0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--env", "donkey-waren-track-v0"], "donkey-warren-track-v0"),
        (["--track", "waren"], "warren"),
        (["--max-steps", "0"], "expected 1 or more"),
        (["--max-cte", "nan"], "expected a distance above 0"),
        (["--seed", "-1"], "expected 0 or more"),
        (["--episodes", "0"], "expected 1 or more"),
    ],
)
def test_mistakes_are_told(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--model", "any", *arguments]) == 2
    assert said in capsys.readouterr().err
