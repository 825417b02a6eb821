"""An exact Gaussian process in plain numpy: what the research loop believes about settings it has not tried.

Symbols
    n, c, m    observations, input columns, query points
    X (n, c)   inputs, Q (c, n*n) squared differences of X per column
    y (n,)     targets as given, z (n,) shifted and scaled to mean 0 and variance 1
    theta      (c + 2,) logarithms of: c lengthscales, signal variance a, noise variance s
    v (n,)     how much noisier each observation is than the rest: 1, or more for an outlier
    K (n, n)   covariance of z:  a k(r) + b + diag(s v),  k Matern-5/2,  r distance in lengthscales
    b          variance of the unknown constant mean, integrated out rather than estimated
    L          lower Cholesky factor of K;  alpha = K^-1 z

Two choices carry the quality. The lengthscales share an unknown common scale: their prior in the logarithm has a part
common to all columns and a part of each column's own, so eight columns can all be found to be long, or all short, at
the price of one. And a target far below what its neighbours predict is given more noise instead of bending the model: a
run that learned nothing in a good region is bad luck, while one far above is what the search is for and stays.

Hyperparameters are the maximum of the marginal likelihood times the prior, climbed with analytic gradients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

ROOT5 = math.sqrt(5.0)
MEAN_VARIANCE = 1.0  # b
JITTER = 1e-8  # added to the diagonal; with the bounds below K stays positive definite for 2,000 equal points
LENGTHSCALE_BOUNDS = (0.02, 50.0)
SIGNAL_BOUNDS = (0.007, 150.0)
NOISE_BOUNDS = (1e-6, 4.0)

LOW_TAIL = 1.5  # targets lower than the median by this many times the best's lead over it are moved up to there
OUTLIER = 1.5  # standard deviations below its leave-one-out prediction
SUBSET = 120  # points that the climb starts on; it ends on at most SUBSET_END
SUBSET_END = 300


@dataclass(frozen=True)
class Prior:
    """Normal in the logarithms: medians, and standard deviations where named ``spread``."""

    lengthscale: float = 0.5
    common_spread: float = 0.6
    own_spread: float = 0.7
    signal_spread: float = 0.7
    noise: float = 0.02
    noise_spread: float = 1.5

    def mean(self, c: int) -> Array:
        return np.array([math.log(self.lengthscale)] * c + [0.0, math.log(self.noise)])

    def covariance(self, c: int) -> Array:
        covariance = np.diag([self.own_spread**2] * c + [self.signal_spread**2, self.noise_spread**2])
        covariance[:c, :c] += self.common_spread**2
        return covariance


DEFAULT_PRIOR = Prior()
TIGHT_PRIOR = Prior(lengthscale=0.3, common_spread=0.2)  # expects a function that turns within a third of each range


def squared_differences(X: Array) -> Array:
    """Q (c, n*n)."""
    difference = X.T[:, :, None] - X.T[:, None, :]
    return np.asarray(difference * difference).reshape(X.shape[1], -1)


def matern(r: Array) -> Array:
    return np.asarray((1.0 + ROOT5 * r + (5.0 / 3.0) * r * r) * np.exp(-ROOT5 * r))


def log_posterior(theta: Array, Q: Array, z: Array, v: Array, prior: Prior = DEFAULT_PRIOR) -> tuple[float, Array]:
    """Logarithm of marginal likelihood times prior (up to the prior's constant), and its gradient (c + 2,)."""
    n, c = len(z), len(theta) - 2
    inverse_square = np.exp(-2.0 * theta[:c])
    a, s = math.exp(theta[c]), math.exp(theta[c + 1])
    r = np.sqrt(inverse_square @ Q)
    decay = np.exp(-ROOT5 * r)
    k = (1.0 + ROOT5 * r + (5.0 / 3.0) * r * r) * decay
    K = a * k.reshape(n, n) + MEAN_VARIANCE
    K[np.diag_indices(n)] += s * v + JITTER
    L = np.linalg.cholesky(K)
    L_inverse = np.linalg.inv(L)
    half = L_inverse @ z
    alpha = L_inverse.T @ half
    offset = theta - prior.mean(c)
    pull = np.linalg.solve(prior.covariance(c), offset)
    value = -0.5 * half @ half - np.log(np.diag(L)).sum() - 0.5 * n * math.log(2 * math.pi) - 0.5 * pull @ offset

    # d value / d K = W / 2, and d k / d log l_j = (5/3) (1 + sqrt5 r) exp(-sqrt5 r) q_j / l_j^2.
    W = np.outer(alpha, alpha) - L_inverse.T @ L_inverse
    flat = W.reshape(-1)
    gradient = np.empty_like(theta)
    gradient[:c] = (5.0 / 6.0) * a * (Q @ (flat * (1.0 + ROOT5 * r) * decay)) * inverse_square
    gradient[c] = 0.5 * a * (flat @ k)
    gradient[c + 1] = 0.5 * s * (np.diag(W) @ v)
    return float(value), gradient - pull


def lift_low_tail(y: Array) -> Array:
    """y with its worst values moved up: how bad they are is of no use, and would drown the differences at the top."""
    middle = float(np.median(y))
    lead = float(y.max()) - middle
    return np.maximum(y, middle - LOW_TAIL * lead) if lead > 0 else y


def climb(theta: Array, Q: Array, z: Array, v: Array, prior: Prior, steps: int, first_step: float = 0.3) -> Array:
    """Ascends ``log_posterior`` by the signs of its gradient, with a step of its own for each hyperparameter (Rprop).

    A line search would ask for more evaluations, and the surface is flat enough that 40 of these reach its top.
    """
    bounds = [LENGTHSCALE_BOUNDS] * (len(theta) - 2) + [SIGNAL_BOUNDS, NOISE_BOUNDS]
    low, high = np.log(np.array(bounds)).T
    theta = np.clip(theta, low, high)
    step = np.full_like(theta, first_step)
    best_value, gradient = log_posterior(theta, Q, z, v, prior)
    best, previous = theta, np.zeros_like(theta)
    for _ in range(steps):
        agreement = np.sign(gradient) * np.sign(previous)
        step = np.where(agreement > 0, np.minimum(1.3 * step, 1.5), np.where(agreement < 0, 0.5 * step, step))
        gradient = np.where(agreement < 0, 0.0, gradient)  # after overshooting, stand still once
        theta = np.clip(theta + np.sign(gradient) * step, low, high)
        previous = gradient
        value, gradient = log_posterior(theta, Q, z, v, prior)
        if value > best_value:
            best_value, best = value, theta
        if step.max() < 0.01:
            break
    return np.asarray(best)


@dataclass(frozen=True)
class TinyGP:
    """A fitted process. Make one with ``fit``; ``predict`` answers in the units of y."""

    X: Array
    z: Array
    v: Array
    theta: Array
    centre: float
    scale: float
    L_inverse: Array
    alpha: Array

    @staticmethod
    def fit(X: Array, y: Array, prior: Prior = DEFAULT_PRIOR) -> TinyGP:
        """The process of n >= 1 observations, with hyperparameters of its own."""
        assert len(X) == len(y) > 0
        assert np.isfinite(X).all()
        assert np.isfinite(y).all()
        y = lift_low_tail(np.asarray(y, dtype=float))
        centre = float(y.mean())
        scale = float((y - centre).std())
        if scale <= 1e-12 * max(1.0, abs(centre)):  # equal targets: nothing to learn but the constant
            scale = 1.0
        z, v = (y - centre) / scale, np.ones(len(y))
        theta = prior.mean(X.shape[1])
        # Few points say little and many cost n^3 a step, so the climb starts on a part and is finished on more.
        order = np.random.default_rng(len(y)).permutation(len(y))
        first, last = np.sort(order[:SUBSET]), np.sort(order[:SUBSET_END])
        theta = climb(theta, squared_differences(X[first]), z[first], v[first], prior, 40)
        gp = _condition(X, z, v, theta, centre, scale)
        v = gp.outlier_noise()
        if (v > 1.0).any():
            theta = climb(theta, squared_differences(X[first]), z[first], v[first], prior, 20)
        if len(last) > len(first):
            theta = climb(theta, squared_differences(X[last]), z[last], v[last], prior, 8, first_step=0.1)
        elif not (v > 1.0).any():
            return gp
        return _condition(X, z, v, theta, centre, scale)

    def outlier_noise(self) -> Array:
        """v (n,): larger for targets far below their leave-one-out prediction."""
        if len(self.z) <= 5:
            return np.ones(len(self.z))
        below = self.leave_one_out()[2]
        return np.where(below < -OUTLIER, (2.0 * below / OUTLIER) ** 2, 1.0)

    def leave_one_out(self) -> tuple[Array, Array, Array]:
        """Mean, standard deviation and standardised residual (n,) of each target predicted from the others, in z."""
        precision = (self.L_inverse**2).sum(axis=0)
        error = self.alpha / precision
        return self.z - error, 1.0 / np.sqrt(precision), error * np.sqrt(precision)

    def score(self) -> float:
        """How well targets foretell each other: median leave-one-out log density, which no outlier moves."""
        _, std, residual = self.leave_one_out()
        return -float(np.median(np.log(std) + 0.5 * residual * residual))

    def skill(self) -> float:
        """Share of the targets' variance that the others foretell: 1 for all, 0 or less for no more than their mean."""
        mean_of_others = -self.z / max(len(self.z) - 1, 1)
        error = self.z - self.leave_one_out()[0]
        plain = float(((self.z - mean_of_others) ** 2 / self.v).sum())
        return 1.0 - float((error**2 / self.v).sum()) / plain if plain > 0 else 0.0

    @property
    def noise(self) -> float:
        """Standard deviation of a repeated observation, in the units of y."""
        return self.scale * math.exp(0.5 * self.theta[-1])

    @property
    def lengthscales(self) -> Array:
        return np.exp(self.theta[:-2])

    def covariance(self, A: Array, B: Array) -> Array:
        """Prior covariance of the function between two sets of points, in z."""
        A, B = A / self.lengthscales, B / self.lengthscales
        square = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2.0 * A @ B.T
        return math.exp(self.theta[-2]) * matern(np.sqrt(np.maximum(square, 0.0))) + MEAN_VARIANCE

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Mean and standard deviation (m,) of the function itself, without observation noise."""
        k = self.covariance(points, self.X)
        whitened = k @ self.L_inverse.T
        variance = math.exp(self.theta[-2]) + MEAN_VARIANCE - (whitened * whitened).sum(axis=1)
        return self.centre + self.scale * (k @ self.alpha), self.scale * np.sqrt(np.maximum(variance, 1e-12))

    def joint(self, points: Array) -> tuple[Array, Array]:
        """Mean (m,) and covariance (m, m) of the function at all points together."""
        k = self.covariance(points, self.X)
        whitened = k @ self.L_inverse.T
        covariance = self.covariance(points, points) - whitened @ whitened.T
        return self.centre + self.scale * (k @ self.alpha), self.scale**2 * covariance

    def believing(self, points: Array, values: Array | None = None) -> TinyGP:
        """This process after seeing values at points, by default its own mean there: surer of itself, but no wiser.

        Hyperparameters stay: what is only believed must not teach.
        """
        if not len(points):
            return self
        z = ((self.predict(points)[0] if values is None else values) - self.centre) / self.scale
        X, v = np.vstack([self.X, points]), np.concatenate([self.v, np.ones(len(points))])
        return _condition(X, np.concatenate([self.z, z]), v, self.theta, self.centre, self.scale)


def _condition(X: Array, z: Array, v: Array, theta: Array, centre: float, scale: float) -> TinyGP:
    empty = np.zeros((0, 0))
    gp = TinyGP(X, z, v, theta, centre, scale, empty, np.zeros(0))
    K = gp.covariance(X, X)
    K[np.diag_indices(len(z))] += math.exp(theta[-1]) * v + JITTER
    L_inverse = np.linalg.inv(np.linalg.cholesky(K))
    return replace(gp, L_inverse=L_inverse, alpha=L_inverse.T @ (L_inverse @ z))
