"""What to try next: by Gaussian process and UCB, or every point of a grid."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rl_training.autoresearch.acquisition import EXPLORE, MIN_TRIALS, Candidate, Observation, suggest
from rl_training.autoresearch.convergence import check_convergence
from rl_training.autoresearch.space import Params, Space
from rl_training.errors import ConfigError


@dataclass(frozen=True)
class Proposal:
    """A setting to try, which rule chose it, and the best candidates for the log."""

    params: Params
    rule: str
    top: tuple[Candidate, ...] = ()


@dataclass(frozen=True)
class Finished:
    """There is nothing left to try, and why in one sentence."""

    reason: str


class Strategy(Protocol):
    """Stateless: the same finished and running trials give the same proposal."""

    def next(self, finished: Sequence[Observation], running: Sequence[Params], seed: int) -> Proposal | Finished:
        """The next setting."""

    def why_not(self, params: Params) -> str:
        """Why the strategy cannot learn from an earlier setting; empty if it can."""


@dataclass(frozen=True)
class Search:
    """Gaussian process and UCB over a space, until the search has converged. ``fixed`` is added to every setting.

    Where the model cannot be computed, a proposal is drawn without it: a night is longer than one bad matrix.
    """

    space: Space
    fixed: Mapping[str, Any]
    explore: float = EXPLORE
    min_trials: int = MIN_TRIALS
    stop_when_converged: bool = True

    def next(self, finished: Sequence[Observation], running: Sequence[Params], seed: int) -> Proposal | Finished:
        try:
            if self.stop_when_converged:
                convergence = check_convergence(self.space, finished, seed)
                if convergence.stop:
                    return Finished(convergence.reason)
            choice = suggest(self.space, finished, running, seed, self.explore, self.min_trials)
        except (ArithmeticError, ValueError, MemoryError) as error:  # a LinAlgError is a ValueError
            choice = suggest(self.space, [], running, seed + len(finished))
            return Proposal({**self.fixed, **choice.params}, f"{choice.rule}, as the model failed: {error}")
        return Proposal({**self.fixed, **choice.params}, choice.rule, choice.top)

    def why_not(self, params: Params) -> str:
        try:
            self.space.encode(params)
        except ConfigError as error:
            return str(error).rstrip(".")
        return ""


@dataclass(frozen=True)
class Grid:
    """Every combination of some values, in order; those that were tried or are running are skipped."""

    axes: Mapping[str, Sequence[Any]]
    fixed: Mapping[str, Any]

    @property
    def points(self) -> list[Params]:
        combinations = itertools.product(*self.axes.values())
        return [{**self.fixed, **dict(zip(self.axes, values, strict=True))} for values in combinations]

    def next(self, finished: Sequence[Observation], running: Sequence[Params], seed: int) -> Proposal | Finished:
        tried = [observation.params for observation in finished] + list(running)
        points = self.points
        for number, point in enumerate(points, start=1):
            if point not in tried:
                return Proposal(point, f"grid point {number} of {len(points)}")
        return Finished(f"All {len(points)} points of the grid have been tried.")

    def why_not(self, params: Params) -> str:
        return ""
