"""The PPG example runs from end to end, tiny."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples.ppg_cartpole_reference import main


def test_the_example_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "run")
    main(["--timesteps", "1024", "--episodes", "2", "--folder", folder])
    said = capsys.readouterr().out
    assert "after 1024 steps:" in said
    assert "after 1536 steps:" in said  # whole rollouts of 512
    assert (tmp_path / "run" / "model.zip").exists()
