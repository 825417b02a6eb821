"""A tiny run of ppg writes its models, metrics and result."""

from __future__ import annotations

from pathlib import Path

from rl_training.runtime.ppg_trainer import train_ppg
from tests.runs import check_a_tiny_run_fills_its_folder


def test_a_tiny_run_fills_its_folder(tmp_path: Path) -> None:
    check_a_tiny_run_fills_its_folder("ppg", train_ppg, tmp_path)
