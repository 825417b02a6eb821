"""Is one way of training better than another? Both with the same budget and the same seeds, so that luck is shared.

Symbols
    d (n,)     reward of the first less that of the second, one for each seed
    interval   the middle 95 % of the means of d resampled with replacement: a paired bootstrap. Of few seeds that all
               agree it never holds 0, by luck alone on every second comparison of two: so it takes some to say "better"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 10_000
ENOUGH = 5  # seeds


@dataclass(frozen=True)
class Comparison:
    """Mean difference, its interval, and on how many seeds the first won."""

    difference: float
    low: float
    high: float
    wins: int
    seeds: int

    @property
    def sentence(self) -> str:
        """What follows."""
        figures = f"{self.difference:+.2f}, 95 % between {self.low:+.2f} and {self.high:+.2f}"
        if self.seeds < ENOUGH:
            few = f"{self.seeds} seeds are" if self.seeds > 1 else "1 seed is"
            return f"{few} too few to tell: {figures}, ahead on {self.wins}; take {ENOUGH} or more."
        if self.low > 0.0:
            return f"The champion is better: {figures}, ahead on {self.wins} of {self.seeds} seeds."
        if self.high < 0.0:
            return f"The champion is worse: {figures}, ahead on {self.wins} of {self.seeds} seeds."
        return f"No difference can be told with {self.seeds} seeds: {figures}."


def compare_paired(first: Sequence[float], second: Sequence[float]) -> Comparison:
    """Compare rewards that were made with the same seeds, in the same order."""
    assert len(first) == len(second) > 0
    d = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    rng = np.random.default_rng(0)  # the same rewards give the same interval
    means = d[rng.integers(0, len(d), (RESAMPLES, len(d)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Comparison(float(d.mean()), float(low), float(high), int((d > 0).sum()), len(d))
