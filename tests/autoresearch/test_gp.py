"""The Gaussian process: gradients, posteriors worked by hand, and data that break careless code."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rl_training.autoresearch.gp import (
    MEAN_VARIANCE,
    NOISE_BOUNDS,
    Prior,
    TinyGP,
    climb,
    lift_low_tail,
    log_posterior,
    matern,
    squared_differences,
)


def wave(X: np.ndarray) -> np.ndarray:
    return np.sin(5 * X[:, 0]) + 0.5 * X[:, 1]


def test_gradient_is_the_slope_of_the_value():
    rng = np.random.default_rng(0)
    X, v = rng.random((12, 3)), rng.uniform(1, 4, 12)
    z, Q = rng.standard_normal(12), squared_differences(X)
    theta = np.log([0.3, 0.8, 1.5, 1.3, 0.05])
    gradient = log_posterior(theta, Q, z, v)[1]
    for i in range(5):
        step = np.zeros(5)
        step[i] = 1e-5
        slope = (log_posterior(theta + step, Q, z, v)[0] - log_posterior(theta - step, Q, z, v)[0]) / 2e-5
        assert gradient[i] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_value_is_the_normal_density_plus_the_prior():
    prior = Prior()
    theta = np.array([math.log(prior.lengthscale) + 0.6, 0.0, math.log(prior.noise)])
    z, v = np.array([0.7]), np.ones(1)
    variance = 1.0 + MEAN_VARIANCE + prior.noise
    likelihood = -0.5 * 0.7**2 / variance - 0.5 * math.log(2 * math.pi * variance)
    penalty = 0.5 * 0.6**2 / (prior.common_spread**2 + prior.own_spread**2)
    value = log_posterior(theta, squared_differences(np.zeros((1, 1))), z, v, prior)[0]
    assert value == pytest.approx(likelihood - penalty, abs=1e-7)


def test_matern_by_hand():
    # sqrt(5) r = 1 at r = 0.4472: (1 + 1 + 1/3) / e
    assert matern(np.array([0.0, 1 / math.sqrt(5)])) == pytest.approx([1.0, 7 / 3 / math.e])


def test_one_point_posterior_by_hand():
    gp = TinyGP.fit(np.array([[0.5]]), np.array([40.0]))
    assert gp.scale == 1.0
    assert gp.centre == 40.0
    a, s = math.exp(gp.theta[1]), math.exp(gp.theta[2])
    r = 0.3 / gp.lengthscales[0]
    k0, k = a + MEAN_VARIANCE, a * float(matern(np.array([r]))[0]) + MEAN_VARIANCE
    mean, std = gp.predict(np.array([[0.8]]))
    assert mean == pytest.approx([40.0])
    assert std == pytest.approx([math.sqrt(k0 - k * k / (k0 + s))], rel=1e-6)


def test_two_point_mean_by_hand():
    gp = TinyGP.fit(np.array([[0.2], [0.8]]), np.array([1.0, 3.0]))
    a, s = math.exp(gp.theta[1]), math.exp(gp.theta[2])
    k = a * float(matern(np.array([0.6 / gp.lengthscales[0]]))[0])
    # By symmetry z = (-1, 1) sees only the difference: K (-1, 1) = (a + s - k) (-1, 1).
    expected = 2.0 + (a - k) / (a + s - k)
    assert gp.predict(np.array([[0.8]]))[0] == pytest.approx([expected], rel=1e-6)


def test_recovers_a_function_and_its_noise():
    rng = np.random.default_rng(1)
    X, points = rng.random((60, 2)), rng.random((200, 2))
    gp = TinyGP.fit(X, 100 * (wave(X) + 0.1 * rng.standard_normal(60)) + 500)
    mean, std = gp.predict(points)
    error = mean - (100 * wave(points) + 500)
    assert np.sqrt(np.mean(error**2)) < 8
    assert 6 < gp.noise < 15
    assert np.mean(np.abs(error) < 2 * std) > 0.9


def test_finds_which_column_matters():
    rng = np.random.default_rng(2)
    X = rng.random((40, 3))
    scales = TinyGP.fit(X, np.sin(6 * X[:, 1])).lengthscales
    assert scales[1] < 0.6 * min(scales[0], scales[2])


def test_is_the_same_in_other_units_and_in_another_order():
    rng = np.random.default_rng(3)
    X, points = rng.random((20, 2)), rng.random((5, 2))
    y = wave(X) + 0.05 * rng.standard_normal(20)
    mean, std = TinyGP.fit(X, y).predict(points)
    moved, wider = TinyGP.fit(X, 1000 * y - 7).predict(points)
    assert moved == pytest.approx(1000 * mean - 7, rel=1e-6)
    assert wider == pytest.approx(1000 * std, rel=1e-6)
    order = rng.permutation(20)
    assert TinyGP.fit(X[order], y[order]).predict(points)[0] == pytest.approx(mean, rel=1e-4)


def test_a_climb_ends_where_the_gradient_does():
    rng = np.random.default_rng(4)
    X = rng.random((30, 2))
    z, Q, v = wave(X) + 0.2 * rng.standard_normal(30), squared_differences(X), np.ones(30)
    start = Prior().mean(2)
    end = climb(start, Q, z, v, Prior(), 60)
    assert log_posterior(end, Q, z, v)[0] > log_posterior(start, Q, z, v)[0]
    assert np.abs(log_posterior(end, Q, z, v)[1]).max() < 0.1


def test_a_failed_run_among_good_ones_is_bad_luck_and_a_lucky_one_is_not():
    rng = np.random.default_rng(5)
    X = rng.random((30, 2))
    y = 10 * wave(X) + 0.2 * rng.standard_normal(30)
    low, high = y.copy(), y.copy()
    low[7] -= 40
    high[7] += 40
    clean = TinyGP.fit(X, y).predict(X[7:8])[0][0]
    fitted = TinyGP.fit(X, low)
    assert fitted.v[7] > 1
    assert abs(fitted.predict(X[7:8])[0][0] - clean) < 6
    assert (TinyGP.fit(X, high).v == 1).all() or TinyGP.fit(X, high).v[7] == 1


def test_leave_one_out_is_what_refitting_without_the_point_gives():
    rng = np.random.default_rng(6)
    X = rng.random((8, 2))
    gp = TinyGP.fit(X, wave(X) + 0.1 * rng.standard_normal(8))
    mean, std, _ = gp.leave_one_out()
    keep = np.arange(8) != 3
    k = gp.covariance(X[3:4], X[keep])
    K = gp.covariance(X[keep], X[keep]) + np.diag(math.exp(gp.theta[-1]) * gp.v[keep] + 1e-8)
    assert mean[3] == pytest.approx((k @ np.linalg.solve(K, gp.z[keep]))[0], rel=1e-6)
    variance = gp.covariance(X[3:4], X[3:4]) + math.exp(gp.theta[-1]) * gp.v[3] - k @ np.linalg.solve(K, k.T)
    assert std[3] == pytest.approx(math.sqrt(variance[0, 0]), rel=1e-5)


def test_believing_changes_certainty_and_not_the_mean():
    rng = np.random.default_rng(7)
    X, points = rng.random((10, 2)), rng.random((3, 2))
    gp = TinyGP.fit(X, wave(X))
    believer = gp.believing(points)
    assert believer.predict(points)[0] == pytest.approx(gp.predict(points)[0], rel=1e-3, abs=1e-3)
    assert (believer.predict(points)[1] < gp.predict(points)[1]).all()
    assert gp.believing(np.zeros((0, 2))) is gp


def test_joint_agrees_with_predict():
    rng = np.random.default_rng(8)
    X, points = rng.random((10, 2)), rng.random((4, 2))
    gp = TinyGP.fit(X, 30 * wave(X))
    mean, covariance = gp.joint(points)
    assert mean == pytest.approx(gp.predict(points)[0])
    assert np.sqrt(np.diag(covariance)) == pytest.approx(gp.predict(points)[1], rel=1e-5)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.zeros((1, 4)), np.array([0.0])),
        (np.zeros((50, 4)), np.full(50, 3.0)),
        (np.zeros((50, 4)), np.arange(50.0)),
        (np.repeat(np.eye(4), 10, axis=0), np.tile([0.0, 1e9], 20)),
        (np.full((5, 2), 0.5), np.full(5, 1e12)),
        (np.random.default_rng(0).random((20, 9)), np.array([0.0] * 19 + [1e6])),
    ],
)
def test_degenerate_data_give_finite_answers(X, y):
    gp = TinyGP.fit(X, y)
    mean, std = gp.predict(np.vstack([X[:3], np.full((1, X.shape[1]), 0.9)]))
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    assert y.min() - 1 - np.ptp(y) <= mean.min() <= mean.max() <= y.max() + 1 + np.ptp(y)


def test_two_thousand_points_with_duplicates():
    rng = np.random.default_rng(9)
    X = np.repeat(rng.random((500, 3)), 4, axis=0)
    y = wave(X) + 0.1 * rng.standard_normal(2000)
    gp = TinyGP.fit(X, y)
    points = rng.random((50, 3))
    assert np.sqrt(np.mean((gp.predict(points)[0] - wave(points)) ** 2)) < 0.1
    assert NOISE_BOUNDS[0] < gp.noise


def test_exact_data_are_interpolated():
    X = np.linspace(0, 1, 15)[:, None]
    gp = TinyGP.fit(X, np.sin(6 * X[:, 0]))
    assert gp.predict(X)[0] == pytest.approx(np.sin(6 * X[:, 0]), abs=0.02)


def test_the_low_tail_is_lifted_and_the_top_is_left():
    # Median 0, best 2: nothing below 0 - 1.5 * 2 stays.
    assert lift_low_tail(np.array([-100.0, -2.0, 0.0, 1.0, 2.0])).tolist() == [-3.0, -2.0, 0.0, 1.0, 2.0]
    assert lift_low_tail(np.array([5.0, 5.0, -1.0])).tolist() == [5.0, 5.0, -1.0]
    assert lift_low_tail(np.array([-7.0])).tolist() == [-7.0]


def test_skill_tells_a_function_from_noise():
    rng = np.random.default_rng(10)
    X = rng.random((30, 2))
    assert TinyGP.fit(X, wave(X)).skill() > 0.9
    assert TinyGP.fit(X, rng.standard_normal(30)).skill() < 0.15
    assert TinyGP.fit(X, np.ones(30)).skill() == 0.0
    assert TinyGP.fit(X[:1], np.ones(1)).skill() == 0.0
