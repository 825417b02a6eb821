"""Problems with a known best value, for comparing optimisers at few and noisy trials.

Symbols: u (p,) a setting in the unit cube, U (m, p) many; larger is better everywhere.
    best     f* = max f over the settings that exist; for generated functions the best of a long search
    median   f at the middle of 4,096 uniform settings
    spread   best - median, the unit of noise and of regret:  regret = (best - f(u)) / spread

`standard` holds the functions everyone uses and two surrogates shaped like RL tuning; `families.py` generates the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rl_training.autoresearch.space import Array, Parameter, Space

Function = Callable[[Array], Array]
NOISE = 0.10  # standard deviation of the noise as a share of the spread


@dataclass(frozen=True)
class Problem:
    """``noise``: none, gauss (10 % of the spread), or heavy (Student t with 3 degrees of freedom
    and 5 % of the spread as standard deviation at the bottom, 15 % at the top).

    ``failing`` of the trials give no value at all; of ``zeros`` the value is near 0, as of a
    run that learned nothing.
    """

    name: str
    space: Space
    function: Function
    best: float
    median: float
    noise: str = "gauss"
    failing: float = 0.0
    zeros: float = 0.0

    @property
    def spread(self) -> float:
        return self.best - self.median

    def regret(self, u: Array) -> float:
        return (self.best - self.true(u)) / self.spread

    def true(self, u: Array) -> float:
        return float(self.function(self.space.snap(u[None, :]))[0])

    def observe(self, u: Array, rng: np.random.Generator) -> float | None:
        """One trial. Always draws the same number of random numbers, so that peers meet the same luck."""
        fails, zero, gauss, heavy = rng.random(), rng.random(), rng.standard_normal(), rng.standard_t(3) / math.sqrt(3)
        value = self.true(u)
        if fails < self.failing:
            return None
        if zero < self.zeros:
            return 0.02 * self.spread * abs(gauss)
        if self.noise == "gauss":
            value += NOISE * self.spread * gauss
        elif self.noise == "heavy":
            height = min(max((value - self.median) / self.spread, 0.0), 1.0)
            value += NOISE * self.spread * (0.5 + height) * heavy
        return value


def box(p: int) -> Space:
    """p continuous parameters."""
    return Space(tuple(Parameter(f"x{i}", "float", 0.0, 1.0) for i in range(p)))


def make(name: str, space: Space, function: Function, best: float | None = None, **noise: object) -> Problem:
    """Measures what is not given: the median, and the best by sampling and climbing."""
    rng = np.random.default_rng(12345)
    values = function(space.snap(rng.random((4096, len(space)))))
    return Problem(
        name, space, function, climb(space, function) if best is None else best, float(np.median(values)), **noise
    )  # type: ignore[arg-type]


def climb(space: Space, function: Function) -> float:
    """Best of 16,384 samples after hill climbing from the best 64 with shrinking steps."""
    rng = np.random.default_rng(54321)
    U = space.snap(rng.random((16384, len(space))))
    f = function(U)
    order = np.argsort(-f)[:64]
    U, f = U[order], f[order]
    for step in np.repeat(np.geomspace(0.3, 0.0005, 25), 16):
        mask = rng.random(U.shape) < max(0.3, 1 / len(space))
        trial = space.snap(U + step * mask * rng.standard_normal(U.shape))
        g = function(trial)
        better = g > f
        U[better], f[better] = trial[better], g[better]
    return float(f.max())


def branin(U: Array) -> Array:
    x, y = 15 * U[:, 0] - 5, 15 * U[:, 1]
    bend = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    return -(bend**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10)


HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN3_A = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
HARTMANN3_P = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
HARTMANN6_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
HARTMANN6_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann(A: Array, P: Array) -> Function:
    def function(U: Array) -> Array:
        inner = (A[None] * (U[:, None, :] - P[None]) ** 2).sum(axis=2)
        return np.asarray(np.exp(-inner) @ HARTMANN_WEIGHTS)

    return function


ACKLEY_CENTRE = np.array([0.61, 0.27, 0.44, 0.73, 0.35])


def ackley(U: Array) -> Array:
    x = 15 * (U - ACKLEY_CENTRE)
    near = -20 * np.exp(-0.2 * np.sqrt((x**2).mean(axis=1)))
    return -(near - np.exp(np.cos(2 * np.pi * x).mean(axis=1)) + 20 + np.e)


def levy(U: Array) -> Array:
    w = 1 + (20 * U - 10 - 1) / 4
    inner = ((w[:, :-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:, :-1] + 1) ** 2)).sum(axis=1)
    last = (w[:, -1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[:, -1]) ** 2)
    return -(np.sin(np.pi * w[:, 0]) ** 2 + inner + last)


def rosenbrock(U: Array) -> Array:
    x = 15 * U - 5
    return -(100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(axis=1)


CAR_SPACE = Space(
    (
        Parameter("n_steer", "int", 3, 9),
        Parameter("n_throttle", "int", 2, 5),
        Parameter("learning_rate", "log_float", 1e-5, 3e-3),
        Parameter("timesteps", "int", 5000, 30000),
    )
)


def car(U: Array) -> Array:
    """Reward of a DQN car: enough steering steps, a learning rate near 7e-4 that drops off faster above, more time."""
    steer, throttle = np.floor(U[:, 0] * 7) + 3, np.floor(U[:, 1] * 4) + 2
    log_rate = np.log10(1e-5) + U[:, 2] * np.log10(300)
    time = 0.2 + 0.8 * U[:, 3]
    off = log_rate - (np.log10(7e-4) - 0.15 * (time - 0.6))
    rate = np.exp(-0.5 * (off / np.where(off > 0, 0.28, 0.65)) ** 2)
    actions = np.exp(-0.5 * ((steer - 6.5) / 2.2) ** 2) * np.exp(-0.5 * ((throttle - 3) / 1.3) ** 2)
    hunger = 1 - np.exp(-time * 24 / (steer * throttle) ** 0.8)
    return np.asarray(100 * rate * (0.3 + 0.7 * actions) * hunger)


PPO_SPACE = Space(
    (
        Parameter("learning_rate", "log_float", 1e-5, 1e-2),
        Parameter("n_steps", "power_of_two", 64, 4096),
        Parameter("batch_size", "power_of_two", 16, 512),
        Parameter("gamma", "float", 0.9, 0.9999),
        Parameter("gae_lambda", "float", 0.8, 1.0),
        Parameter("ent_coef", "log_float", 1e-6, 1e-1),
        Parameter("clip_range", "float", 0.05, 0.5),
        Parameter("n_epochs", "int", 1, 20),
    )
)


def ppo(U: Array) -> Array:
    """Eight PPO settings whose good region is a ridge: what counts is the total size of the updates in a rollout."""
    rate, horizon, batch, gamma, trace, entropy, clip, epochs = U.T
    update = rate + 0.35 * (epochs - 0.5) - 0.3 * (batch - 0.5) + 0.25 * (clip - 0.4)
    ridge = np.exp(-0.5 * ((update - 0.52) / np.where(update > 0.52, 0.06, 0.14)) ** 2)
    credit = np.exp(-0.5 * ((gamma - 0.85 + 0.3 * (trace - 0.7)) / 0.2) ** 2)
    noise = np.exp(-0.5 * ((horizon + 0.4 * batch - 0.85) / 0.25) ** 2)
    calm = 1 - 0.6 * np.clip((entropy - 0.75) / 0.25, 0, 1) - 0.2 * np.clip((0.3 - entropy) / 0.3, 0, 1)
    return np.asarray(100 * ridge * (0.25 + 0.75 * credit * noise) * calm)


@lru_cache(maxsize=1)
def standard() -> dict[str, Problem]:
    """The eight noisy problems (plain names) and six of them without noise (``-exact``)."""
    problems: dict[str, Problem] = {}
    classic: list[tuple[str, int, Function, float]] = [
        ("branin", 2, branin, -0.397887),
        ("hartmann3", 3, hartmann(HARTMANN3_A, HARTMANN3_P), 3.86278),
        ("hartmann6", 6, hartmann(HARTMANN6_A, HARTMANN6_P), 3.32237),
        ("ackley5", 5, ackley, 0.0),
        ("levy4", 4, levy, 0.0),
        ("rosenbrock4", 4, rosenbrock, 0.0),
    ]
    for name, p, function, best in classic:
        problems[name] = make(name, box(p), function, best)
        problems[f"{name}-exact"] = make(f"{name}-exact", box(p), function, best, noise="none")
    problems["rl-car"] = make("rl-car", CAR_SPACE, car, noise="heavy", zeros=0.2)
    problems["rl-ppo"] = make("rl-ppo", PPO_SPACE, ppo)
    for problem in problems.values():
        assert 0 < problem.spread < math.inf
    return problems


def seeded(name: str, seed: int) -> np.random.Generator:
    """The stream of luck of one problem and seed, the same for every peer."""
    return np.random.default_rng([seed, *name.encode()])
