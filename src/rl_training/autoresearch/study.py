"""Where a study keeps what: one folder, with names that users of the specification know.

models/trial-0001/           the run folder of a trial: task.json, result.json, model.zip, log.txt, …
models/champion/             model.zip and manifest.json of the best so far
outerloop-results/           clean_sweep_results.jsonl, autoresearch_results_phase1.jsonl, autoresearch_log.txt
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SEARCH_PREFIX, SWEEP_PREFIX = "trial", "sweep"


@dataclass(frozen=True)
class Study:
    """The paths of one study."""

    root: Path

    @property
    def name(self) -> str:
        return self.root.resolve().name

    @property
    def models(self) -> Path:
        return self.root / "models"

    @property
    def champion(self) -> Path:
        return self.models / "champion"

    @property
    def results(self) -> Path:
        return self.root / "outerloop-results" / "autoresearch_results_phase1.jsonl"

    @property
    def sweep_results(self) -> Path:
        return self.root / "outerloop-results" / "clean_sweep_results.jsonl"

    @property
    def log(self) -> Path:
        return self.root / "outerloop-results" / "autoresearch_log.txt"

    @property
    def lock(self) -> Path:
        return self.root / "outerloop-results" / ".controller.lock"

    def run_folder(self, trial: int, prefix: str = SEARCH_PREFIX) -> Path:
        return self.models / f"{prefix}-{trial:04d}"

    def run_folders(self, prefix: str = SEARCH_PREFIX) -> dict[int, Path]:
        """The run folders on disk, by trial number."""
        folders = {}
        for path in sorted(self.models.glob(f"{prefix}-*")):
            number = path.name.removeprefix(f"{prefix}-")
            if number.isdigit() and path.is_dir():
                folders[int(number)] = path
        return folders
