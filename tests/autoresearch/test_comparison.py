"""The paired bootstrap sees what seeds share, and claims nothing that they do not show."""

from __future__ import annotations

import numpy as np
import pytest

from rl_training.autoresearch.comparison import compare_paired


def test_a_small_difference_shows_through_a_large_shared_one() -> None:
    seeds = np.array([10.0, 200.0, -50.0, 90.0, 400.0])
    found = compare_paired(list(seeds + np.array([1.0, 2.0, 3.0, 2.0, 2.0])), list(seeds))
    assert found.difference == pytest.approx(2.0)
    assert 1.0 <= found.low < 2.0 < found.high <= 3.0
    assert (found.wins, found.seeds) == (5, 5)
    assert "better" in found.sentence
    assert "worse" in compare_paired(list(seeds), list(seeds + 2.0)).sentence


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(100):
        found = compare_paired(list(rng.normal(1.0, 2.0, 30)), [0.0] * 30)
        covered += found.low <= 1.0 <= found.high
    assert 85 <= covered <= 100
    assert "No difference" in compare_paired([1.0, -1.0, 0.5, -0.5, 0.2], [0.0] * 5).sentence


def test_a_few_seeds_prove_nothing_even_if_they_agree() -> None:
    assert compare_paired([5.0, 6.0, 5.5, 5.0], [1.0, 2.0, 1.0, 1.5]).sentence.startswith("4 seeds are too few to tell")
    assert compare_paired([5.0], [1.0]).sentence.startswith("1 seed is too few to tell: +4.00")
    assert "better" in compare_paired([5.0, 6.0, 5.5, 5.0, 4.0], [1.0, 2.0, 1.0, 1.5, 3.0]).sentence
