"""Stopping: not before enough trials, not while much may be left, and at last."""

from __future__ import annotations

import numpy as np
import pytest

from rl_training.autoresearch import convergence
from rl_training.autoresearch.acquisition import Observation
from rl_training.autoresearch.convergence import check_convergence, noise_between_seeds
from rl_training.autoresearch.space import Parameter, Space

LINE = Space((Parameter("x", "float"),))


def observe(count, noise, seed=0, high=1.0):
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, high, count)
    return [Observation({"x": float(x)}, float(np.sin(3 * x) + noise * rng.standard_normal())) for x in places]


def test_too_few_trials_say_so():
    verdict = check_convergence(LINE, observe(5, 0.1), 0)
    assert not verdict.stop
    assert "5 of the 20 trials" in verdict.reason


def test_a_well_known_noisy_function_is_done():
    verdict = check_convergence(LINE, observe(60, 0.2), 0)
    assert verdict.stop
    assert verdict.gain < verdict.noise
    assert verdict.noise == pytest.approx(0.2, rel=0.3)
    assert verdict.reason.startswith("Converged after 60 trials: the expected remaining gain")
    assert verdict.reason.count(".") - sum(c == "." for c in f"{verdict.gain:.4g}{verdict.noise:.4g}") == 1


def test_an_unseen_half_is_not_done():
    verdict = check_convergence(LINE, observe(30, 0.02, high=0.3), 0)
    assert not verdict.stop
    assert verdict.gain > verdict.noise


def test_repeats_measure_the_noise():
    # Groups (1, 3) and (10, 10, 13): squares 2 and 6 over 1 + 2 degrees of freedom.
    U = np.array([[0.1], [0.1], [0.5], [0.5], [0.5], [0.9]])
    assert noise_between_seeds(U, np.array([1.0, 3.0, 10.0, 10.0, 13.0, 99.0])) == pytest.approx(np.sqrt(8 / 3))
    assert noise_between_seeds(U[:3], np.array([1.0, 3.0, 10.0])) is None
    repeated = [*observe(40, 0.0), *(Observation({"x": 0.5}, value) for value in (0.9, 1.1, 1.0, 1.0, 0.95))]
    assert "measured on repeats" in check_convergence(LINE, repeated, 0).reason


def test_failures_teach_nothing_and_break_nothing():
    failed = [Observation({"x": 0.5}, None)] * 30
    assert not check_convergence(LINE, failed, 0).stop
    assert check_convergence(LINE, observe(60, 0.2) + failed, 0).stop


def test_one_lucky_verdict_does_not_end_a_search(monkeypatch):
    """The gain is below the noise after the latest trial and two before, but not after the one between."""
    gains = {30: 0.5, 29: 2.0, 28: 0.5, 27: 0.5, 26: 0.5}
    monkeypatch.setattr(convergence, "gain_and_noise", lambda space, good, seed: (gains[len(good)], 1.0, "made up"))
    verdicts = [check_convergence(LINE, observe(count, 0.1), 0) for count in (28, 29, 30)]
    assert [verdict.stop for verdict in verdicts] == [True, False, False]
    assert "only for 1 of the 3 trials in a row" in verdicts[2].reason
    assert not check_convergence(LINE, observe(28, 0.1), 0, min_trials=27).stop


def test_what_is_only_foretold_counts_as_no_trial(monkeypatch):
    told = observe(19, 0.1)
    guesses = [Observation({"x": 0.2}, 0.5, foretold=True)] * 5
    assert "19 of the 20 trials" in check_convergence(LINE, told + guesses, 0).reason
    # Going back a trial takes it away with what was foretold after it.
    asked = []
    monkeypatch.setattr(
        convergence, "gain_and_noise", lambda space, good, seed: (asked.append(len(good)) or 0.5, 1.0, "made up")
    )
    verdict = check_convergence(LINE, [*observe(30, 0.1)[:-1], guesses[0], told[0], guesses[0]], 0)
    assert asked == [32, 30, 28]
    assert verdict.reason.startswith("Converged after 30 trials")
