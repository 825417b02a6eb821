"""A tiny run of sac writes its models, metrics and result."""

from __future__ import annotations

from pathlib import Path

from rl_training.runtime.trainer import train
from tests.runs import check_a_tiny_run_fills_its_folder


def test_a_tiny_run_fills_its_folder(tmp_path: Path) -> None:
    check_a_tiny_run_fills_its_folder("sac", train, tmp_path)
