"""`donkey-rl demo`, with trials so short that nobody laps."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rl_training.autoresearch.ledger import Ledger
from rl_training.autoresearch.study import Study
from rl_training.cli import champion, demo
from rl_training.cli.main import main

TINY = """
parameters:
  learning_rate: {type: log_float, low: 1.0e-4, high: 1.0e-3}
  n_steps: {type: power_of_two, low: 8, high: 16}
  timesteps: {type: int, low: 128, high: 256}
"""


def test_a_study_its_champion_on_three_tracks_films_and_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SPACE", TINY)
    monkeypatch.setattr(demo, "SECONDS", 0.5)
    monkeypatch.setattr(demo, "TRAINING", {**demo.TRAINING, "baseline_episodes": 0, "eval_episodes": 2})
    arguments = ["demo", "--out", str(tmp_path), "--trials", "2"]
    assert main(arguments) == 1, "the champion does not lap"
    said = capsys.readouterr().out
    assert "trial 1: " in said
    assert "donkey-rl evaluate --champion" in said
    assert {path.name for path in tmp_path.glob("*.*")} == {
        "generated_track.gif", "warehouse.gif", "random-validation-1.gif", "study.png"
    }  # fmt: skip
    records = Ledger(Study(tmp_path / "study-seed0").results).records
    assert sum(record.retest_of is None for record in records) == 2
    assert all(record.run_status == "ok" for record in records)

    def laps(model: Path, track: str, seconds: float, film: Path, watch: Any = None) -> tuple[Any, Path]:
        info = {"track": track, "laps": 1.1}
        return SimpleNamespace(info=info, ended=False, lap_times=[12.0] if track == "generated_track" else []), film

    monkeypatch.setattr(champion, "drive", laps)
    assert main(arguments) == 0, "it laps"
    assert "12.00" in capsys.readouterr().out
    assert Ledger(Study(tmp_path / "study-seed0").results).records == records, "the study was over"
