"""`donkey-rl bench`: every benchmark that is listed starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rl_training.cli.main import main


def listed() -> list[str]:
    """The names that `donkey-rl bench list` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "rl_training", "bench", "list"], capture_output=True, text=True, check=True
    )
    return [line.split()[0] for line in done.stdout.splitlines()]


def test_every_benchmark_in_the_list_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    names = listed()
    assert {"sim", "algorithms", "search", "train"} <= set(names)
    for name in names:
        with pytest.raises(SystemExit) as stop:
            main(["bench", name, "--help"])
        assert stop.value.code == 0
        assert f"donkey-rl bench {name}" in capsys.readouterr().out
