"""metrics.csv: one row for each time the learner logs, continued over a resume, with columns as they appear."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat

from rl_training.experiment.atomic import replacing

STEPS = "time/total_timesteps"


class MetricsCsv(KVWriter):
    """Appends rows; a new column rewrites the file, which is rare and small."""

    def __init__(self, path: Path, until: int) -> None:
        self.path = path
        self.rows = [row for row in read_metrics(path) if float(row.get(STEPS) or 0) <= until]
        self.columns = list(dict.fromkeys(name for row in self.rows for name in row))
        self._rewrite()

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        row = {name: value for name, value in key_values.items() if isinstance(value, int | float | str)}
        row |= {name: float(value) for name, value in key_values.items() if hasattr(value, "item")}
        row.setdefault(STEPS, step)
        self.rows.append(row)
        new = [name for name in row if name not in self.columns]
        if new:
            self.columns += new
            self._rewrite()
            return
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, self.columns).writerow(row)

    def _rewrite(self) -> None:
        with replacing(self.path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.columns)
            writer.writeheader()
            writer.writerows(self.rows)

    def close(self) -> None:
        """Nothing is open between rows."""


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The rows of a metrics.csv, none where there is no such file; a row cut short by a kill is left out."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows: list[Mapping[str, Any]] = list(csv.DictReader(file))
    return [dict(row) for row in rows if _is_number(row.get(STEPS)) and None not in row.values()]


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def make_logger(folder: Path, until: int = 0) -> Logger:
    """CSV always, TensorBoard where it is installed; rows after step ``until`` are taken back."""
    writers: list[KVWriter] = [MetricsCsv(folder / "metrics.csv", until)]
    if importlib.util.find_spec("tensorboard") is not None:
        writers.append(TensorBoardOutputFormat(str(folder / "tensorboard")))
    return Logger(str(folder), writers)
