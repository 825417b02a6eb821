"""The DrQ example runs from end to end on rendered pictures, tiny."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples.drq_pendulum_reference import main


def test_the_example_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "run")
    main(["--timesteps", "120", "--episodes", "1", "--learning-starts", "110", "--folder", folder])
    assert "after 120 steps:" in capsys.readouterr().out
    assert (tmp_path / "run" / "model.zip").exists()
