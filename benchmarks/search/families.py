"""Generated problems: families of functions that no optimiser here was tuned on, and others that ours was.

`TUNING` families may be looked at while choosing constants. `CHECKING` families are of another make and only measured.
Each family draws a function of 2 to 20 parameters from a seed; instance i of a family is always the same function.
Symbols as in `problems.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from problems import Function, Problem, box, make

from rl_training.autoresearch.space import Array, Parameter, Space

Family = Callable[[np.random.Generator], tuple[Space, Function]]


def matern_field(rng: np.random.Generator, lengthscales: Array) -> Function:
    """A draw from a Matern-5/2 process, by 600 random Fourier features."""
    p, k = len(lengthscales), 600
    spectrum = rng.standard_normal((k, p)) * np.sqrt(5 / rng.chisquare(5, (k, 1))) / lengthscales
    phase, weight = rng.uniform(0, 2 * np.pi, k), rng.standard_normal(k) * np.sqrt(2 / k)
    return lambda U: np.asarray(np.cos(U @ spectrum.T + phase) @ weight)


def rotation(rng: np.random.Generator, p: int) -> Array:
    return np.asarray(np.linalg.qr(rng.standard_normal((p, p)))[0])


# -- tuning half ----------------------------------------------------------------------------------------------------


def even_field(rng: np.random.Generator) -> tuple[Space, Function]:
    p = int(rng.integers(2, 9))
    return box(p), matern_field(rng, np.full(p, rng.uniform(0.15, 0.5) * np.sqrt(p)))


def uneven_field(rng: np.random.Generator) -> tuple[Space, Function]:
    p = int(rng.integers(3, 11))
    return box(p), matern_field(rng, np.exp(rng.normal(0.0, 1.0, p)))


def bumps(rng: np.random.Generator) -> tuple[Space, Function]:
    p, k = int(rng.integers(2, 8)), int(rng.integers(3, 12))
    centres, heights = rng.random((k, p)), rng.uniform(0.3, 1.0, k)
    widths = rng.uniform(0.12, 0.45, (k, p)) * np.sqrt(p / 2)

    def function(U: Array) -> Array:
        squares = (((U[:, None, :] - centres) / widths) ** 2).sum(axis=2)
        return np.asarray((heights * np.exp(-0.5 * squares)).max(axis=1))

    return box(p), function


def valley(rng: np.random.Generator) -> tuple[Space, Function]:
    """A curved ridge: one direction is stiff, the others are soft."""
    p = int(rng.integers(2, 7))
    turn, centre = rotation(rng, p), rng.uniform(0.25, 0.75, p)
    stiffness, bend = np.geomspace(1, rng.uniform(10, 300), p), rng.uniform(0, 1.5)

    def function(U: Array) -> Array:
        z = (U - centre) @ turn
        z[:, -1] = z[:, -1] + bend * z[:, 0] ** 2
        return np.asarray(-np.log1p(20 * (stiffness * z**2).sum(axis=1)))

    return box(p), function


def plateaus(rng: np.random.Generator) -> tuple[Space, Function]:
    p = int(rng.integers(2, 8))
    smooth, steps = matern_field(rng, np.full(p, 0.35 * np.sqrt(p))), rng.uniform(1.0, 3.0)
    centre = rng.uniform(0.2, 0.8, p)

    def function(U: Array) -> Array:
        f = smooth(U) - 2 * ((U - centre) ** 2).mean(axis=1)
        return np.asarray((np.floor(steps * f) + np.tanh(6 * (steps * f % 1 - 0.5)) / 2) / steps)

    return box(p), function


def mixed(rng: np.random.Generator) -> tuple[Space, Function]:
    """Integers, logarithms and choices that interact, one parameter of which depends on a choice."""
    space = Space(
        (
            Parameter("rate", "log_float", 1e-5, 1e-2),
            Parameter("levels", "int", 2, int(rng.integers(4, 10))),
            Parameter("kind", "categorical", choices=("a", "b", "c", "d")[: int(rng.integers(2, 5))]),
            Parameter("batch", "power_of_two", 16, 512),
            Parameter("share", "float", 0.0, 1.0),
            Parameter("decay", "float", 0.0, 1.0, parent="kind", parent_values=("b",)),
        )
    )
    kinds = space.parameters[2].levels
    fields = [matern_field(rng, rng.uniform(0.5, 1.5, 6)) for _ in range(kinds + 1)]
    offsets = 0.5 * rng.standard_normal(kinds)

    def function(U: Array) -> Array:
        kind = np.minimum((U[:, 2] * kinds).astype(int), kinds - 1)
        own = np.stack([field(U) for field in fields[1:]])[kind, np.arange(len(U))]
        return np.asarray(fields[0](U) + 0.5 * own + offsets[kind])

    return space, function


def rough_field(rng: np.random.Generator) -> tuple[Space, Function]:
    """A weak bowl under a field with kinks everywhere (Matern-1/2)."""
    p = int(rng.integers(2, 9))
    k, lengthscale, centre = 600, rng.uniform(0.3, 0.9) * np.sqrt(p), rng.uniform(0.2, 0.8, p)
    spectrum = rng.standard_normal((k, p)) / np.sqrt(rng.chisquare(1, (k, 1))) / lengthscale
    phase, weight = rng.uniform(0, 2 * np.pi, k), rng.standard_normal(k) * np.sqrt(2 / k)
    pull = rng.uniform(0.5, 3.0)

    def function(U: Array) -> Array:
        return np.asarray(np.cos(U @ spectrum.T + phase) @ weight - pull * ((U - centre) ** 2).mean(axis=1) * 4)

    return box(p), function


def ripples(rng: np.random.Generator) -> tuple[Space, Function]:
    """A bowl or a cone under waves across turned axes."""
    p = int(rng.integers(3, 11))
    turn, centre = rotation(rng, p), rng.uniform(0.25, 0.75, p)
    waves, depth, power = rng.uniform(2, 6), rng.uniform(0.03, 0.15), rng.choice([0.5, 1.0])

    def function(U: Array) -> Array:
        z = (U - centre) @ turn
        hill = -(((z**2).mean(axis=1) + 1e-12) ** power)
        return np.asarray(hill * (2.0 if power == 1.0 else 0.5) + depth * np.cos(2 * np.pi * waves * z).mean(axis=1))

    return box(p), function


def wide_field(rng: np.random.Generator) -> tuple[Space, Function]:
    """Many parameters that all matter a little."""
    p = int(rng.integers(10, 21))
    return box(p), matern_field(rng, np.full(p, rng.uniform(0.3, 0.9) * np.sqrt(p)))


def wide_bowl(rng: np.random.Generator) -> tuple[Space, Function]:
    p = int(rng.integers(8, 21))
    centre, weight = rng.uniform(0.1, 0.9, p), np.exp(rng.normal(0.0, 1.0, p))
    power = rng.uniform(0.25, 1.0)
    return box(p), lambda U: np.asarray(-((((U - centre) ** 2) @ weight / weight.sum()) ** power))


def few_matter(rng: np.random.Generator) -> tuple[Space, Function]:
    """Of many parameters two to four count, and those by themselves and not turned."""
    p, k = int(rng.integers(8, 17)), int(rng.integers(2, 5))
    which = rng.permutation(p)[:k]
    field = matern_field(rng, np.full(k, rng.uniform(0.2, 0.5) * np.sqrt(k)))
    return box(p), lambda U: field(U[:, which])


def additive(rng: np.random.Generator) -> tuple[Space, Function]:
    """A sum of curves of one parameter each."""
    p = int(rng.integers(5, 13))
    curves = [matern_field(rng, np.array([rng.uniform(0.15, 0.6)])) for _ in range(p)]
    size = np.exp(rng.normal(0.0, 0.6, p))
    return box(p), lambda U: np.asarray(sum(s * f(U[:, i : i + 1]) for i, (s, f) in enumerate(zip(size, curves))))


# -- checking half --------------------------------------------------------------------------------------------------


def tiny_network(rng: np.random.Generator) -> tuple[Space, Function]:
    p = int(rng.integers(2, 11))
    first, bias = rng.standard_normal((p, 32)) * rng.uniform(1.5, 4) / np.sqrt(p) * 1.7, rng.standard_normal(32)
    second, last = rng.standard_normal((32, 16)) * 1.5 / np.sqrt(32), rng.standard_normal(16)
    return box(p), lambda U: np.asarray(np.tanh(np.tanh((2 * U - 1) @ first + bias) @ second) @ last)


def classic(rng: np.random.Generator) -> tuple[Space, Function]:
    """Rastrigin, Styblinski-Tang, Schwefel, Griewank or Michalewicz, moved."""
    p, which = int(rng.integers(2, 9)), int(rng.integers(5))
    shift = rng.uniform(-0.2, 0.2, p)

    def function(U: Array) -> Array:
        z = 2 * (U + shift) - 1
        if which == 0:
            return np.asarray(-((3 * z) ** 2 - 5 * np.cos(2 * np.pi * 3 * z * 0.6)).sum(axis=1))
        if which == 1:
            x = 5 * z
            return np.asarray(-0.5 * (x**4 - 16 * x**2 + 5 * x).sum(axis=1))
        if which == 2:
            x = 500 * np.clip(z, -1, 1)
            return np.asarray((x * np.sin(np.sqrt(np.abs(x)))).sum(axis=1))
        if which == 3:
            x = 12 * z
            waves = np.cos(x / np.sqrt(np.arange(1, p + 1))).prod(axis=1)
            return np.asarray(-((x**2).sum(axis=1) / 100 - waves))
        x = np.pi * np.clip((z + 1) / 2, 0, 1)
        return np.asarray((np.sin(x) * np.sin(np.arange(1, p + 1) * x**2 / np.pi) ** 6).sum(axis=1))

    return box(p), function


def forest(rng: np.random.Generator) -> tuple[Space, Function]:
    """A sum of random trees of axis-parallel cuts: flat pieces, no gradient."""
    p, trees, depth = int(rng.integers(3, 9)), 40, 4
    axes, cuts = rng.integers(0, p, (trees, depth)), rng.uniform(0.1, 0.9, (trees, depth))
    centre = rng.uniform(0.2, 0.8, p)
    corner = 2 ** np.arange(depth)
    middles = rng.standard_normal((trees, 2**depth))
    for t in range(trees):  # leaves on the side of the centre are the better ones
        sides = ((np.arange(2**depth)[:, None] >> np.arange(depth)) & 1) == (centre[axes[t]] > cuts[t])
        middles[t] += 1.0 * sides.sum(axis=1)

    def function(U: Array) -> Array:
        leaf = (U[:, axes] > cuts).astype(int) @ corner
        return np.asarray(middles[np.arange(trees), leaf].mean(axis=1))

    return box(p), function


def hidden_plane(rng: np.random.Generator) -> tuple[Space, Function]:
    """Only two or three directions matter, and they are not the axes."""
    p, k = int(rng.integers(6, 11)), int(rng.integers(2, 4))
    directions = rotation(rng, p)[:, :k] * 1.5
    field, centre = matern_field(rng, np.full(k, 0.6)), rng.uniform(-0.3, 0.3, k)

    def function(U: Array) -> Array:
        z = (U - 0.5) @ directions
        return np.asarray(field(z) - ((z - centre) ** 2).sum(axis=1))

    return box(p), function


def two_funnels(rng: np.random.Generator) -> tuple[Space, Function]:
    """A broad hill that is good and a narrow one that is better, under ripples."""
    p = int(rng.integers(2, 7))
    broad, narrow = rng.uniform(0.2, 0.8, (2, p))
    turn, waves = rotation(rng, p), rng.uniform(2, 5)

    def function(U: Array) -> Array:
        a = 0.75 * np.exp(-((U - broad) ** 2).mean(axis=1) / (2 * 0.3**2))
        b = 1.0 * np.exp(-((U - narrow) ** 2).mean(axis=1) / (2 * 0.12**2))
        return np.asarray(np.maximum(a, b) + 0.06 * np.cos(2 * np.pi * waves * (U @ turn)).mean(axis=1))

    return box(p), function


def training_run(rng: np.random.Generator) -> tuple[Space, Function]:
    """A learning curve: grows with time at a rate set by the step size, falls off a cliff at too large a step."""
    space = Space(
        (
            Parameter("rate", "log_float", 1e-5, 1e-2),
            Parameter("time", "int", 5000, 30000),
            Parameter("batch", "power_of_two", 16, 512),
            Parameter("optimiser", "categorical", choices=("adam", "sgd", "rms")),
            Parameter("momentum", "float", 0.0, 0.99, parent="optimiser", parent_values=("sgd",)),
            Parameter("gamma", "float", 0.9, 0.999),
            Parameter("normalise", "categorical", choices=(False, True)),
            Parameter("layers", "int", 1, 4),
        )
    )
    cliff, sharp = rng.uniform(0.55, 0.85), rng.uniform(0.03, 0.08)
    gain, best_gamma, best_layers = rng.uniform(2, 5), rng.uniform(0.4, 0.95), rng.uniform(0.2, 0.8)
    by_optimiser, normalise_gain = rng.uniform(0.75, 1.0, 3), rng.uniform(-0.1, 0.1)

    def function(U: Array) -> Array:
        rate, time, batch, optimiser, momentum, gamma, normalise, layers = U.T
        kind = np.minimum((optimiser * 3).astype(int), 2)
        step = rate - 0.25 * (batch - 0.5) + np.where(kind == 1, 0.4 * (momentum - 0.8), 0.0)
        learned = 1 - np.exp(-gain * (0.2 + time) * np.exp(5 * (step - 0.6)))
        falls = 1 / (1 + np.exp((step - cliff - 0.1 * normalise) / sharp))
        taste = np.exp(-2 * (gamma - best_gamma) ** 2) * np.exp(-1 * (layers - best_layers) ** 2)
        return np.asarray(learned * falls * taste * by_optimiser[kind] * (1 + normalise_gain * normalise))

    return space, function


def steep(rng: np.random.Generator) -> tuple[Space, Function]:
    """Raw polynomials that span orders of magnitude: Dixon-Price, Zakharov, a stiff rotated bowl."""
    p, which = int(rng.integers(2, 8)), int(rng.integers(3))
    turn, centre = rotation(rng, p), rng.uniform(0.2, 0.8, p)

    def function(U: Array) -> Array:
        index = np.arange(1, p + 1)
        if which == 0:
            x = 10 * (U - centre) + 1
            tail = (index[1:] * (2 * x[:, 1:] ** 2 - x[:, :-1]) ** 2).sum(axis=1)
            return np.asarray(-((x[:, 0] - 1) ** 2 + tail))
        z = 10 * (U - centre)
        if which == 1:
            along = 0.5 * (z @ index)
            return np.asarray(-((z**2).sum(axis=1) + along**2 + along**4))
        return np.asarray(-((z @ turn) ** 2 @ np.geomspace(1, 1000, p)))

    return box(p), function


TUNING: dict[str, Family] = {
    "even-field": even_field,
    "uneven-field": uneven_field,
    "bumps": bumps,
    "valley": valley,
    "plateaus": plateaus,
    "mixed": mixed,
    "rough-field": rough_field,
    "ripples": ripples,
    "wide-field": wide_field,
    "wide-bowl": wide_bowl,
    "few-matter": few_matter,
    "additive": additive,
}
CHECKING: dict[str, Family] = {
    "tiny-network": tiny_network,
    "classic": classic,
    "forest": forest,
    "hidden-plane": hidden_plane,
    "two-funnels": two_funnels,
    "training-run": training_run,
    "steep": steep,
}
# Instance i of a family has noise i mod 4: a check on more than one kind of luck.
LUCK: tuple[dict[str, object], ...] = (
    {"noise": "gauss"},
    {"noise": "heavy"},
    {"noise": "gauss", "failing": 0.15},
    {"noise": "none"},
)


@lru_cache(maxsize=2)
def generated(half: str, instances: int = 4) -> dict[str, Problem]:
    """Problems of one half, named family-0, family-1, …"""
    families = {"tuning": TUNING, "checking": CHECKING}[half]
    problems: dict[str, Problem] = {}
    for number, (name, family) in enumerate(families.items()):
        for i in range(instances):
            space, function = family(np.random.default_rng([7, number, i, len(half)]))
            title = f"{name}-{i}"
            problems[title] = make(title, space, function, **LUCK[i % len(LUCK)])
    return problems
