"""When to stop searching: once what is still to be found is smaller than what a change of seed does.

Symbols
    gain     expected best value of the function over all candidates, less the mean at the incumbent, by the model:
             E[max f] - f_incumbent. Not the gain of one more trial, which is small long before a search is over
    noise    standard deviation of the reward between seeds of one setting: measured where settings were repeated, and
             otherwise the observation noise the model found

The expectation is over joint draws of the function at a few hundred candidates anywhere and near the best settings, so
that correlated neighbours are not counted as many chances.

Every new trial asks again, and a model that is wrong for one trial would end the search. So the verdict must have held
for the last few trials in a row; it is derived from those trials anew each time, and no state is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rl_training.autoresearch.acquisition import LOCAL_CENTRES, Observation, candidates_near, fit_observations
from rl_training.autoresearch.gp import TinyGP
from rl_training.autoresearch.space import Array, Space

ENOUGH_REPEATS = 3  # degrees of freedom below which a measured noise says less than the model's
DRAWS = 256
CANDIDATES = 400
MIN_TRIALS = 20
IN_A_ROW = 3  # trials after each of which the gain must have been below the noise


@dataclass(frozen=True)
class Convergence:
    """``stop``, and why or why not in one sentence."""

    stop: bool
    gain: float
    noise: float
    reason: str


def check_convergence(
    space: Space, observations: Sequence[Observation], seed: int, min_trials: int = MIN_TRIALS
) -> Convergence:
    """Whether more trials are worth their time. Needs at least ``min_trials``, and p + 1, trials with a value."""
    good = [observation for observation in observations if observation.ok]
    needed = max(min_trials, len(space) + 1)
    trials = [place for place, observation in enumerate(good) if not observation.foretold]
    if len(trials) < needed:
        reason = (
            f"Searching on: {len(trials)} of the {needed} trials needed before convergence can be judged have a value."
        )
        return Convergence(False, float("inf"), float("nan"), reason)
    gain, noise, source = gain_and_noise(space, good, seed)
    below = "below" if gain < noise else "not below"
    figures = f"the expected remaining gain {gain:.4g} is {below} the noise between seeds {noise:.4g} ({source})"
    if gain >= noise:
        return Convergence(False, gain, noise, f"Searching on: {figures}.")
    for before in range(1, IN_A_ROW):
        earlier = good[: trials[-before]]
        if len(trials) - before < needed or not _settled(space, earlier, seed):
            held = f"for {before} of the {IN_A_ROW} trials in a row that it takes"
            return Convergence(False, gain, noise, f"Searching on: {figures}, but only {held}.")
    return Convergence(True, gain, noise, f"Converged after {len(trials)} trials: {figures}.")


def _settled(space: Space, good: Sequence[Observation], seed: int) -> bool:
    gain, noise, _ = gain_and_noise(space, good, seed)
    return gain < noise


def gain_and_noise(space: Space, good: Sequence[Observation], seed: int) -> tuple[float, float, str]:
    """The two figures that are compared, after trials that all have a value, and where the noise is from."""
    U, gp = fit_observations(space, good)
    measured = noise_between_seeds(U, np.array([observation.value for observation in good], dtype=float))
    noise, source = (gp.noise, "estimated by the model") if measured is None else (measured, "measured on repeats")
    return remaining_gain(space, U, gp, np.random.default_rng([seed, len(good), 7])), noise, source


def noise_between_seeds(U: Array, y: Array) -> float | None:
    """Pooled standard deviation of repeated settings; None with too few repeats."""
    groups: defaultdict[tuple[float, ...], list[float]] = defaultdict(list)
    for u, value in zip(np.round(U, 9), y, strict=True):
        groups[tuple(u)].append(float(value))
    freedom = sum(len(values) - 1 for values in groups.values())
    if freedom < ENOUGH_REPEATS:
        return None
    squares = sum(float(np.var(values)) * len(values) for values in groups.values())
    return float(np.sqrt(squares / freedom))


def remaining_gain(space: Space, U: Array, gp: TinyGP, rng: np.random.Generator) -> float:
    """E[max f] over candidates and tried settings, less the highest mean among the tried."""
    tried_mean = gp.predict(space.features(U))[0]
    centres = U[np.argsort(-tried_mean, kind="stable")[:LOCAL_CENTRES]]
    pool = candidates_near(space, centres, rng)
    mean, std = gp.predict(space.features(pool))
    hopeful = np.argsort(-(mean + 3.0 * std), kind="stable")[:CANDIDATES]  # the rest hold no maximum of any draw
    points = np.vstack([centres[:1], pool[hopeful]])
    mean, covariance = gp.joint(space.features(points))
    values, vectors = np.linalg.eigh(covariance)  # near-equal points make it singular, which eigh bears
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    half = rng.standard_normal((DRAWS // 2, len(points)))
    draws = mean + np.vstack([half, -half]) @ root.T  # mirrored pairs: the linear part of the error cancels
    return float(draws.max(axis=1).mean() - mean[0])
