"""One controller a study: the second is refused with the pid of the first.

The kernel drops the lock when its holder dies, however it dies; the text in the file only says who holds it.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType

from rl_training.autoresearch.identity import ProcessIdentity
from rl_training.autoresearch.reading import read_json
from rl_training.errors import StudyError


class StudyLock:
    """``with StudyLock(path): …``; StudyError if another process holds it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1

    def __enter__(self) -> StudyLock:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        while self._descriptor < 0:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(descriptor)
                raise StudyError(
                    f"The study in '{self.path.parent.parent}' is being run by process "
                    f"{holder(self.path) or 'unknown'}; stop that one first, or give this one a folder of its own."
                ) from error
            # The last holder may have removed the file between our opening and our locking it.
            if _is_file(descriptor, self.path):
                self._descriptor = descriptor
            else:
                os.close(descriptor)
        try:
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, json.dumps(ProcessIdentity.own().to_dict()).encode())
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = -1


def holder(path: Path) -> int | None:
    """Pid of the controller that runs a study, None when none does."""
    identity = ProcessIdentity.from_dict(read_json(path))
    return identity.pid if identity is not None and identity.is_alive else None


def _is_file(descriptor: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
