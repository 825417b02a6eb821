"""A tiny run of drq writes its models, metrics and result."""

from __future__ import annotations

from pathlib import Path

from rl_training.runtime.drq_trainer import train_drq
from tests.runs import check_a_tiny_run_fills_its_folder


def test_a_tiny_run_fills_its_folder(tmp_path: Path) -> None:
    check_a_tiny_run_fills_its_folder("drq", train_drq, tmp_path)
