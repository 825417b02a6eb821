"""Models on disk: how they are found and when they are trusted, and the points a run resumes from.

A model zip can hold code, so it is only loaded when the ``result.json`` (or a champion's ``manifest.json``) beside it
vouches for it by its SHA-256; a foreign one is refused unless it is trusted by name.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rl_training.errors import ConfigError, ModelError
from rl_training.experiment.atomic import TEMPORARY, new_folder, sha256, write_json
from rl_training.experiment.config import TrainConfig
from rl_training.experiment.run_folder import RunFolder

VOUCHERS = ("result.json", "manifest.json")
FILES = "files.json"  # digests of a resume point's files


@dataclass(frozen=True)
class Checkpoint:
    """A model that may be loaded, and what it was trained on (None for a foreign one)."""

    model: Path
    config: TrainConfig | None


def find_checkpoint(path: Path, *, trust: bool = False) -> Checkpoint:
    """The model at ``path``, a zip or a run folder, checked against its digest."""
    if path.is_dir():
        path = _model_of(path)
    if not path.is_file():
        raise ModelError(f"There is no model at {path}; give a model.zip or the folder of a finished run.")
    if not trust:
        _check_digest(path)
    config_file = path.parent / "config.yaml"
    config = RunFolder(path.parent).config() if config_file.is_file() else None
    return Checkpoint(path, config)


def _model_of(folder: Path) -> Path:
    """The model a finished run stands by, else the last it saved."""
    result = RunFolder(folder).result()
    name = str(result.get("model", "model.zip")) if result else "model.zip"
    return folder / name


def _check_digest(path: Path) -> None:
    digests = digests_beside(path)
    if path.name not in digests:
        raise ModelError(
            f"Nothing beside {path} vouches for it, and a model file can run code when it is loaded. "
            "If you know where it is from, say --trust."
        )
    if sha256(path) != digests[path.name]:
        raise ModelError(
            f"{path} is not the file that was saved (its SHA-256 differs): it is damaged or was exchanged. "
            "Restore it, or say --trust if you changed it yourself."
        )


def digests_beside(path: Path) -> dict[str, str]:
    """SHA-256 by file name, from the vouchers in the model's folder."""
    digests: dict[str, str] = {}
    for name in VOUCHERS:
        voucher = path.parent / name
        if voucher.is_file():
            try:
                known = json.loads(voucher.read_text(encoding="utf-8")).get("sha256", {})
            except ValueError as error:
                raise ModelError(f"{voucher} is damaged ({error}); restore it, or say --trust.") from error
            # A manifest may name the one digest of the one model beside it.
            digests.update(known if isinstance(known, dict) else {"model.zip": str(known)})
    return digests


# ---- the points a run resumes from


def resume_point(run: RunFolder, step: int) -> Path:
    """Where the resume point of that step lies, if it was saved."""
    return run.checkpoints / f"{step:010d}"


@contextmanager
def saving_resume_point(run: RunFolder, step: int) -> Iterator[Path]:
    """A folder to fill, which then is the newest resume point; older ones are removed once it is safe."""
    target = resume_point(run, step)
    with new_folder(target) as folder:
        yield folder
        write_json(folder / FILES, {file.name: sha256(file) for file in sorted(folder.iterdir())})
    for other in run.checkpoints.iterdir():
        if other != target:
            shutil.rmtree(other, ignore_errors=True)


def latest_resume_point(run: RunFolder) -> Path:
    """The newest complete resume point, its files as they were written."""
    folders = sorted(run.checkpoints.glob("[0-9]*")) if run.checkpoints.is_dir() else []
    if not folders:
        raise ModelError(f"{run.path} has no point to resume from; it was ended before its first checkpoint.")
    newest = folders[-1]
    try:
        digests: dict[str, str] = json.loads((newest / FILES).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{newest / FILES} is damaged ({error}); the run cannot be resumed from it.") from error
    for name, digest in digests.items():
        if not (newest / name).is_file() or sha256(newest / name) != digest:
            raise ModelError(f"{newest / name} is not the file that was saved; the run cannot be resumed from it.")
    return newest


def require_steps_left(run: RunFolder, total: int) -> None:
    """Refuse to resume a run that is already past ``total`` steps."""
    done = int(latest_resume_point(run).name)
    if done > total:
        raise ConfigError(f"{run.path} has {done} steps behind it; give it more than that as its new total.")


def remove_leftovers(run: RunFolder) -> None:
    """What a killed writer left half done."""
    for folder in (run.path, run.checkpoints):
        for path in folder.glob(f"{TEMPORARY}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
