"""How long a learner's end waits, for what, and what it has waited so far."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Deadlines:
    """Longest waits [s of wall time]."""

    connect: float = 30.0
    answer: float = 5.0  # to a question: protocol version, scene names, node position
    scene: float = 60.0  # a scene and the car in it
    frame: float = 5.0
    reset: float = 10.0


class Wait:
    """One wait: for what, since when, until when."""

    def __init__(self, what: str, limit: float) -> None:
        self.what = what
        self._start = time.monotonic()
        self.deadline = self._start + limit

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.deadline

    def __str__(self) -> str:
        return f"{time.monotonic() - self._start:.1f} s for {self.what}"
