"""Which setting to try next, and which of those tried to believe in.

Symbols
    p          number of parameters
    U (m, p)   settings in the unit cube, a row each; they are snapped to settings that exist before the model sees them
    mean, std  of the Gaussian process at a setting, in units of reward
    ucb        mean + explore * std: what a proposal maximises; larger ``explore`` looks further afield

`suggest` and `recommend` keep no state: the same space, observations, running settings and seed give the same answer,
so a controller that died continues where it was. A study goes through three regimes:

1. space-filling, until ``min_trials`` trials have a value: points of a low-discrepancy sequence, which stays even at
   every length and never returns to where a trial failed;
2. space-filling ranked by the model, until p + 1 trials have a value, and whenever the trials do not foretell each
   other: the model picks among the next few points of that sequence. While it knows nothing, its uncertainty is all
   prior, and maximising it freely would only visit the corners of the cube;
3. the maximum of ucb over random candidates and candidates near the best settings, refined by a local search.

No one prior fits all functions, and a study whose model is wrong asks in the wrong places and never learns that it is.
So proposals are made under a wide and a tight prior of the lengthscales in turn: where one is stuck, the other moves.
The recommendation uses the one that foretells its own data better.

A running trial is believed to return its own mean, so that a second worker is not sent to the same place. A trial that
failed has no value and teaches the model none; but a proposal is made as if it had returned something low, the lower
the more its neighbours fail as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rl_training.autoresearch.gp import DEFAULT_PRIOR, TIGHT_PRIOR, Prior, TinyGP, matern
from rl_training.autoresearch.space import Array, Params, Space

EXPLORE = 3.0
MIN_TRIALS = 3
TOP = 5  # candidates returned for the log

PRIORS = (DEFAULT_PRIOR, TIGHT_PRIOR)  # proposals take them in turn
GLOBAL_CANDIDATES = 1000
LOCAL_CANDIDATES = 500
LOCAL_CENTRES = 4  # settings of highest posterior mean that local candidates start from
LOCAL_REACH = (0.005, 0.5)  # standard deviation of a local step, drawn evenly in the logarithm
EARLY_CANDIDATES = 16
SKILL = 0.15  # of the model, below which it may rank a few points but not roam
REFINE_ROUNDS, REFINE_KEPT, REFINE_CHILDREN = 4, 8, 12
REFINE_REACH, REFINE_SHRINK = 0.1, 0.4
NEARBY = 0.12  # reach of a failure, in the cube, per square root of p
APART = 0.05  # logged candidates differ by this much in some coordinate

Score = Callable[[Array], tuple[Array, Array, Array]]  # U -> mean, std, ucb


@dataclass(frozen=True)
class Observation:
    """One finished trial. ``value`` is None if it failed; a failure is a status and not a reward. It is ``foretold`` if
    nobody saw it, but trials like it make it likely: the model learns from it, and it counts as no trial."""

    params: Params
    value: float | None
    foretold: bool = False

    @property
    def ok(self) -> bool:
        return self.value is not None and math.isfinite(self.value)


@dataclass(frozen=True)
class Candidate:
    """A setting and what the model thinks of it."""

    params: Params
    mean: float
    std: float
    ucb: float


@dataclass(frozen=True)
class Suggestion:
    """``params`` to try next, the ``top`` candidates for the log (none before the first value), and the rule."""

    params: Params
    top: tuple[Candidate, ...]
    rule: str


def suggest(
    space: Space,
    observations: Sequence[Observation],
    running: Sequence[Params],
    seed: int,
    explore: float = EXPLORE,
    min_trials: int = MIN_TRIALS,
) -> Suggestion:
    """The next setting to try, given all finished trials and the settings of those still running."""
    rng = np.random.default_rng([seed, len(observations), len(running)])
    busy = np.array([space.encode(params) for params in running]).reshape(-1, len(space))
    good = [observation for observation in observations if observation.ok]
    turn = len(observations) + len(running)
    if not good:
        return Suggestion(space.decode(_fill(space, turn, 1, seed)[0]), (), "space-filling")

    U, gp = fit_observations(space, good, PRIORS[turn % len(PRIORS)])
    failed = np.array([space.encode(o.params) for o in observations if not o.ok]).reshape(-1, len(space))
    belief = _dreading(space, gp, U, failed).believing(space.features(busy))

    def score(points: Array) -> tuple[Array, Array, Array]:
        mean, std = belief.predict(space.features(points))
        return mean, std, mean + explore * std

    if len(good) < max(min_trials, len(space) + 1) or gp.skill() < SKILL:
        pool = _fill(space, turn, EARLY_CANDIDATES, seed)
        if len(good) < min_trials:
            return Suggestion(space.decode(pool[0]), _top(space, pool, *score(pool)), "space-filling")
        rule = "space-filling by UCB"
    else:
        centres = U[np.argsort(-gp.predict(space.features(U))[0], kind="stable")[:LOCAL_CENTRES]]
        pool, rule = _refine(space, score, candidates_near(space, centres, rng), rng), "UCB"
    mean, std, ucb = score(pool)
    best = pool[np.argmax(np.where(_among(pool, busy), -np.inf, ucb))]
    return Suggestion(space.decode(best), _top(space, pool, mean, std, ucb), rule)


def recommend(space: Space, observations: Sequence[Observation]) -> Candidate | None:
    """The tried setting of highest posterior mean, not the one with the luckiest run; None while nothing succeeded."""
    good = [observation for observation in observations if observation.ok]
    if not good:
        return None
    U, gp = fit_observations(space, good)
    mean, std = gp.predict(space.features(U))
    best = int(np.argmax(mean))
    return Candidate(good[best].params, float(mean[best]), float(std[best]), float(mean[best]))


def fit_observations(space: Space, good: Sequence[Observation], prior: Prior | None = None) -> tuple[Array, TinyGP]:
    """U and the process of trials that have values; without a prior, under the one whose trials foretell each other."""
    U = np.array([space.encode(observation.params) for observation in good])
    X, y = space.features(U), np.array([observation.value for observation in good], dtype=float)
    fits = [TinyGP.fit(X, y, candidate) for candidate in (PRIORS if prior is None else (prior,))]
    return U, max(fits, key=TinyGP.score)


def _fill(space: Space, first: int, count: int, seed: int) -> Array:
    """``count`` points from index ``first`` of the golden-ratio sequence in p dimensions, shifted by the seed."""
    ratio = 2.0
    for _ in range(60):  # the root of x^(p+1) = x + 1
        ratio = (1.0 + ratio) ** (1.0 / (len(space) + 1))
    steps = ratio ** -np.arange(1.0, len(space) + 1)
    shift = np.random.default_rng([seed, 99]).random(len(space))
    return space.snap((shift + np.arange(first + 1, first + count + 1)[:, None] * steps) % 1.0)


def _dreading(space: Space, gp: TinyGP, U: Array, failed: Array) -> TinyGP:
    """The process after believing in a low value at each failure, as low as the neighbours fail more than is usual.

    Where all neighbours fail it is the lowest mean seen; where all succeed it is the mean, as if by chance.
    """
    if not len(failed):
        return gp
    usual = len(U) / (len(U) + len(failed))
    fine, bad = _nearness(failed, U), _nearness(failed, failed) - 1.0  # not counting itself
    share = np.minimum((usual + fine) / (1.0 + fine + bad) / usual, 1.0)
    X = space.features(failed)
    floor, mean = gp.predict(space.features(U))[0].min(), gp.predict(X)[0]
    return gp.believing(X, floor + share * (mean - floor))


def _nearness(A: Array, B: Array) -> Array:
    """How many points of B are near each of A, counted by the kernel at a fixed reach: what fails is not what pays."""
    reach = NEARBY * math.sqrt(A.shape[1])
    square = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2.0 * A @ B.T
    return np.asarray(matern(np.sqrt(np.maximum(square, 0.0)) / reach).sum(axis=1))


def candidates_near(space: Space, centres: Array, rng: np.random.Generator) -> Array:
    """Anywhere, and near the centres: steps of all sizes, in some or all of the parameters."""
    p, count = len(space), LOCAL_CANDIDATES
    base = centres[rng.integers(0, len(centres), count)]
    low, high = np.log(LOCAL_REACH)
    reach = np.exp(rng.uniform(low, high, (count, 1)))
    moved = rng.random((count, p)) < np.maximum(rng.random((count, 1)), 1.0 / p)
    near = base + reach * moved * rng.standard_normal((count, p))
    return space.snap(np.vstack([rng.random((GLOBAL_CANDIDATES, p)), near]))


def _refine(space: Space, score: Score, pool: Array, rng: np.random.Generator) -> Array:
    """The pool with the descendants of its best members, each round closer to their parents."""
    ucb = score(pool)[2]
    parents = pool[np.argsort(-ucb, kind="stable")[:REFINE_KEPT]]
    for i in range(REFINE_ROUNDS):
        children = np.repeat(parents, REFINE_CHILDREN, axis=0)
        moved = rng.random(children.shape) < max(0.5, 1.0 / len(space))
        children = children + REFINE_REACH * REFINE_SHRINK**i * moved * rng.standard_normal(children.shape)
        family = np.vstack([parents, space.snap(children)])
        parents = family[np.argsort(-score(family)[2], kind="stable")[:REFINE_KEPT]]
        pool = np.vstack([pool, family])
    return pool


def _among(points: Array, others: Array) -> Array:
    """Which points are one of the others."""
    gap = np.abs(points[:, None, :] - others[None, :, :]).max(axis=2, initial=0.0)
    return np.asarray((gap < 1e-9).any(axis=1))


def _top(space: Space, pool: Array, mean: Array, std: Array, ucb: Array) -> tuple[Candidate, ...]:
    """The best candidates that are not one and the same hill."""
    chosen: list[int] = []
    for i in np.argsort(-ucb, kind="stable"):
        if all(np.abs(pool[i] - pool[j]).max() >= APART for j in chosen):
            chosen.append(int(i))
            if len(chosen) == TOP:
                break
    return tuple(Candidate(space.decode(pool[i]), float(mean[i]), float(std[i]), float(ucb[i])) for i in chosen)
