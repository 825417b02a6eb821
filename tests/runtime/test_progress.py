"""What a training run shows and logs while it runs."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from rl_training import api
from rl_training.runtime import progress
from tests.runs import tiny_donkey


def test_a_log_tells_steps_rate_return_laps_and_the_time_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LOG_EVERY", 0.0)
    api.train(tiny_donkey("ppo"), tmp_path, quiet=False)
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"2/128 steps  [\d,]+ steps/s  [\d,]+ s left", lines[0])
    assert re.fullmatch(r"128/128 steps  [\d,]+ steps/s  return -?[\d.]+  laps 0  0 s left", lines[-1])


def test_a_terminal_gets_a_bar_with_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "REDRAW", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    api.train(tiny_donkey("ppo"), tmp_path, quiet=False)
    shown = capsys.readouterr().err
    assert "128/128" in shown
    assert re.search(r"steps/s  return -?[\d.]+  laps 0", shown)


def test_laps_are_counted_from_finished_episodes() -> None:
    laps = progress.Laps()
    laps.model = type("Model", (), {"logger": _Log()})()  # type: ignore[assignment]
    ended = {"episode": {"r": 1.0, "l": 5}, "lap_count": 2}
    laps.locals = {"dones": [True, False], "infos": [ended, {"lap_count": 7}]}
    assert laps._on_step()
    assert (laps.total, laps.recent) == (2, [2.0])
    assert laps.logger.told == {"rollout/laps_mean": 2.0, "rollout/laps_total": 2}


class _Log:
    def __init__(self) -> None:
        self.told: dict[str, Any] = {}

    def record(self, name: str, value: Any) -> None:
        self.told[name] = value


def test_without_tensorboard_there_are_still_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "tensorboard" else found(name, *a)
    )
    assert api.train(tiny_donkey("ppo"), tmp_path)["run_status"] in ("ok", "no_learning")
    assert (tmp_path / "metrics.csv").exists()
    assert not (tmp_path / "tensorboard").exists()
