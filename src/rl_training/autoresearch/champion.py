"""The champion: the best model so far, always whole, at a path that never changes.

`ChampionTracker` owns the folder. Its model and manifest change together, because one symbolic link decides both:

    versions/0003/{model.zip,manifest.json}    written aside, synced, renamed
    current -> versions/0003                   replaced by one rename: the swap
    model.zip -> current/model.zip             never change once they are there; so do the config.yaml and env_spec.json
    manifest.json -> current/manifest.json     of the model's run, by which its env is built again

`reign` is who should be champion, folded from the records alone. A trial that beats the champion is crowned at once and
owes a retest: its model on fresh seeds, and its setting trained with another seed. The retest's `verdict` keeps or
discards it; one discarded gives the crown back to the best of the others. The retest's own model takes the crown if the
setting is kept and it does better on the same fresh seeds.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from rl_training.autoresearch.ledger import Record
from rl_training.autoresearch.reading import read_json
from rl_training.errors import ModelError
from rl_training.experiment.atomic import new_folder, sha256, sync, write_json

KEEP, DISCARD, RETEST = "keep", "discard", "retest"
ENV_SPEC = "env_spec.json"
COMPANIONS = ("config.yaml", ENV_SPEC)  # found beside a model
VERSIONS_KEPT = 2  # the current one, and the one a reader may still have open


class ChampionTracker:
    """The champion's folder. Only the study's controller writes; anyone may read at any time."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    @property
    def manifest(self) -> dict[str, Any] | None:
        """What is known of the champion; None before there is one."""
        return _manifest_in(self.folder)

    @property
    def mean_reward(self) -> float:
        """The reward to beat: minus infinity before there is a champion."""
        manifest = self.manifest
        return float("-inf") if manifest is None else float(manifest["mean_reward"])

    def update_if_better(
        self, mean_reward: float, params: Mapping[str, Any], model_path: str | os.PathLike[str], **more: Any
    ) -> bool:
        """Crown a model whose mean reward is above the champion's; ``more`` goes into the manifest."""
        if not mean_reward > self.mean_reward:  # NaN is above nothing
            return False
        self.crown(model_path, {"mean_reward": float(mean_reward), "params": dict(params), **more})
        return True

    def crown(
        self, model_path: str | os.PathLike[str], manifest: Mapping[str, Any], expected: str | None = None
    ) -> None:
        """Make this model the champion, whatever its reward. ModelError if there is none, or ``expected`` is not its
        SHA-256."""
        source = Path(model_path)
        if not source.is_file():
            raise ModelError(f"There is no model at '{source}', so it cannot be champion; train and save it first.")
        versions = self.folder / "versions"
        versions.mkdir(parents=True, exist_ok=True)
        numbers = [int(path.name) for path in versions.iterdir() if path.name.isdigit()]
        version = versions / f"{max(numbers, default=0) + 1:04d}"
        companions = [name for name in COMPANIONS if (source.parent / name).is_file()]
        with new_folder(version) as aside:
            shutil.copyfile(source, aside / "model.zip")
            for name in companions:
                shutil.copyfile(source.parent / name, aside / name)
            digest = sha256(aside / "model.zip")
            if expected not in (None, digest):
                raise ModelError(f"The model at '{source}' is not the one that was evaluated: the SHA-256 differs.")
            facts = {"timestamp": _now(), "model_path": str(model_path), "sha256": digest, **manifest}
            spec = read_json(source.parent / ENV_SPEC)
            facts |= {} if spec is None else {"env_spec": spec}
            write_json(aside / "manifest.json", facts)
        self._point("current", f"versions/{version.name}")
        for name in ("model.zip", "manifest.json", *companions):
            self._point(name, f"current/{name}")
        self._forget_old(versions, keep=version.name)

    def _point(self, name: str, target: str) -> None:
        """Make a symbolic link, or turn an old one, in one rename."""
        link = self.folder / name
        if link.is_symlink() and os.readlink(link) == target:
            return
        aside = self.folder / f".{name}.{os.getpid()}"
        aside.unlink(missing_ok=True)
        aside.symlink_to(target)
        os.replace(aside, link)
        sync(self.folder)

    def _forget_old(self, versions: Path, keep: str) -> None:
        names = sorted(path.name for path in versions.iterdir() if path.name.isdigit() and path.name != keep)
        unfinished = [path.name for path in versions.iterdir() if path.name.startswith(".")]
        for name in names[: len(names) - (VERSIONS_KEPT - 1)] + unfinished:
            shutil.rmtree(versions / name, ignore_errors=True)

    def load(self) -> tuple[Path, dict[str, Any]]:
        """Model file and manifest, of one version and with the SHA-256 checked. ModelError if there is no champion."""
        for _ in range(3):  # a swap may fall between resolving and reading
            version = (self.folder / "current").resolve()
            manifest = _manifest_in(version)
            with contextlib.suppress(OSError):
                if manifest is not None and sha256(version / "model.zip") == manifest["sha256"]:
                    return version / "model.zip", manifest
        if not (self.folder / "current").exists():
            raise ModelError(f"There is no champion in '{self.folder}' yet; run `donkey-rl autoresearch` first.")
        raise ModelError(f"The champion's model in '{self.folder}' does not match its manifest; restart its study.")

    @property
    def is_whole(self) -> bool:
        """Whether there is a champion that loads."""
        try:
            self.load()
        except ModelError:
            return False
        return True


def _manifest_in(folder: Path) -> dict[str, Any] | None:
    """The manifest in a folder; None if there is none, or one that says too little."""
    manifest = read_json(folder / "manifest.json")
    kinds: dict[str, Any] = {"mean_reward": int | float, "params": dict, "sha256": str}
    if manifest is None or not all(isinstance(manifest.get(key), kind) for key, kind in kinds.items()):
        return None
    return manifest


@dataclass(frozen=True)
class Crowned:
    """A trial on the list of champions. ``reward`` is what the next must beat: on fresh seeds, once that is known."""

    record: Record
    reward: float
    verdict: str


def reign(records: Iterable[Record]) -> list[Crowned]:
    """All trials that were ever crowned, the discarded ones left out."""
    line: list[Crowned] = []
    for record in records:
        for i, crowned in enumerate(line):
            # A retest that was interrupted has no verdict: the trial still owes one.
            if crowned.verdict == RETEST and crowned.record.trial == record.retest_of and record.verdict:
                reward = crowned.reward if record.fresh_reward is None else record.fresh_reward
                line[i : i + 1] = [] if record.verdict == DISCARD else [Crowned(crowned.record, reward, KEEP)]
                break
        if record.champion and record.mean_reward is not None:
            reward = record.mean_reward if record.own_fresh_reward is None else record.own_fresh_reward
            line.append(Crowned(record, reward, RETEST if record.verdict == RETEST else KEEP))
    return line


def holder(line: Sequence[Crowned]) -> Crowned | None:
    """Who holds the crown: the highest reward, the older one of equals. None before there is a champion."""
    return max(line, key=lambda crowned: crowned.reward, default=None)


def reward_to_beat(line: Sequence[Crowned]) -> float:
    """The champion's reward; minus infinity before there is one."""
    return max((crowned.reward for crowned in line), default=float("-inf"))


def judge(
    trial: int, fresh_reward: float | None, retrained: float | None, line: Sequence[Crowned], rewards: Sequence[float]
) -> str:
    """The verdict on a crowned trial.

    Its model must beat the other champions on fresh seeds too; its setting, trained with another seed, must at least
    reach the median of ``rewards``, those of all trials so far, or the other champions: a setting that needs luck does
    not. The first champion has nobody to lose to.
    """
    others = [crowned for crowned in line if not (crowned.record.trial == trial and crowned.verdict == RETEST)]
    to_beat = reward_to_beat(others)
    if fresh_reward is None or fresh_reward <= to_beat:
        return DISCARD
    if others and (retrained is None or retrained < min(to_beat, float(np.median(rewards)))):
        return DISCARD
    return KEEP


def ruling(record: Record, line: Sequence[Crowned], rewards: Sequence[float], guard: bool) -> tuple[str, bool]:
    """What a new record means for the crown: its verdict, and whether it takes it. ``guard``: winners owe a retest."""
    if record.retest_of is None:
        beats = record.run_status == "ok" and _above(record.mean_reward, reward_to_beat(line))
        return (RETEST if guard else KEEP) if beats else "", beats
    if not record.speaks_of_its_setting:
        return "", False  # so the retest is still owed
    verdict = judge(record.retest_of, record.fresh_reward, record.mean_reward, line, rewards)
    beats = verdict == KEEP and record.run_status == "ok"
    return verdict, beats and _above(record.own_fresh_reward, record.fresh_reward)


def _above(reward: float | None, other: float | None) -> bool:
    return reward is not None and (other is None or reward > other)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
