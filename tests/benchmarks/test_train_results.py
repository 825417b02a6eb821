"""`donkey-rl bench train`: a results file that is stopped, repeated and merged; no training here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import train
from benchmarks.train import Outcome, main, read_results
from rl_training.errors import UsageError


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What was trained, without training it: the first lap after 1000 steps a seed."""
    calls: list[tuple[str, int]] = []

    def measure(agent: str, seed: int, over: dict[str, Any], threads: int) -> Outcome:
        calls.append((agent, seed))
        lap = (1000 * (seed + 1), 2.0, 1.0)
        return Outcome(agent, seed, train.settings_of(agent, over), first_lap=lap, steps=9000)

    monkeypatch.setattr(train, "measure", measure)
    return calls


def test_what_is_in_the_file_is_not_trained_again(
    tmp_path: Path, measured: list[tuple[str, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "runs.jsonl"
    command = ["--results", str(file), "--agents", "ppo,drq", "--json"]
    assert main([*command, "--seeds", "1"]) == 0
    file.write_text(file.read_text() + '{"agent": "drq", "se')  # as a kill leaves it
    assert main([*command, "--seeds", "2"]) == 0
    assert measured == [("ppo", 0), ("drq", 0), ("ppo", 1), ("drq", 1)]
    assert [(o.agent, o.seed) for o in read_results(file)] == [("ppo", 0), ("ppo", 1), ("drq", 0), ("drq", 1)]
    capsys.readouterr()
    assert main(["--table", str(file), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["agent"], row["seeds"], row["first_lap"]["steps"]) for row in rows] == [
        ("ppo", 2, [1500.0, 2000.0]),
        ("drq", 2, [1500.0, 2000.0]),
    ]
    assert rows[0]["five_laps"] == {"reached": 0, "steps": [None, None], "wall": [None, None], "cpu": [None, None]}


def test_other_settings_are_other_outcomes(
    tmp_path: Path, measured: list[tuple[str, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "runs.jsonl"
    command = ["--results", str(file), "--agents", "ppo", "--seeds", "1"]
    for _ in range(2):
        assert main([*command, "--set", "algo_kwargs.gamma=0.9"]) == 0
        assert main(command) == 0
    assert len(measured) == 2
    assert {o.name for o in read_results(file)} == {"ppo", "ppo algo_kwargs.gamma=0.9"}
    assert "never" in capsys.readouterr().out


def test_a_table_of_nothing_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no results file"):
        main(["--table", str(tmp_path / "none.jsonl")])
