"""Plans of closed circuits: straights and arcs that end where they began and never come near themselves. Compiled.

A plan is drawn as turns with angle and radius; the straights between them are then solved for, so that the circuit
closes and has the length that was asked for. Plans with a straight too short, or with two stretches too close to each
other, are thrown away and drawn again: the tightest radius holds by construction and the clearance by test.

Symbols and shapes
    K               number of turns
    angles          (K,) heading change of each turn [rad], + = right
    radii           (K,) [u]
    straights       (K,) length of the straight before each turn [u]
    points          (M, 2) x, z at equal steps along the circuit [u]
"""

from __future__ import annotations

import math

import numpy as np

from rl_training.simulator.jit import builder
from rl_training.simulator.track import Floats

TRIES = 4000
_CHECK_STEP = 1.5  # clearance is tested between points this far apart [u]


@builder
def draw_turns(rng: np.random.Generator, angles: Floats, wild: float) -> bool:
    """Draw the angles of the turns: bends, corners and hairpins, some to the left; whether they make one full turn."""
    total = 0.0
    for k in range(len(angles)):
        kind = rng.random()
        if kind < 0.45:
            size = 20.0 + 45.0 * rng.random()
        elif kind < 0.85 - 0.15 * wild:
            size = 65.0 + 45.0 * rng.random()
        else:
            size = 120.0 + 70.0 * rng.random()
        left = rng.random() < 0.15 + 0.27 * wild
        angles[k] = math.radians(-size if left else size)
        total += angles[k]
    # The last turn takes what is left, and must be a turn like any other.
    last = angles[-1] + 2.0 * math.pi - total
    angles[-1] = last
    return bool(math.radians(20.0) <= abs(last) <= math.radians(190.0))


@builder
def draw_sizes(rng: np.random.Generator, angles: Floats, radii: Floats, straights: Floats, tightest: float) -> None:
    """Draw radii, the smaller the sharper the turn, one of them the tightest, and straights of very unequal lengths."""
    sharpest = int(np.argmax(np.abs(angles)))
    for k in range(len(angles)):
        spread = 2.4 if abs(angles[k]) < 1.2 else (1.2 if abs(angles[k]) < 2.0 else 0.5)
        radii[k] = tightest * (1.0 + spread * rng.random() ** 2)
        straights[k] = 1.0 - math.log(1.0 - rng.random())
        if rng.random() < 0.3:
            straights[k] = 0.15
    radii[sharpest] = tightest


@builder
def arcs_alone(angles: Floats, radii: Floats) -> tuple[float, float, float]:
    """(x, z, length) by which the arcs carry the circuit on, were there no straights."""
    heading, x, z, length = 0.0, 0.0, 0.0, 0.0
    for k in range(len(angles)):
        sign = 1.0 if angles[k] > 0.0 else -1.0
        after = heading + angles[k]
        x += sign * radii[k] * (math.cos(heading) - math.cos(after))
        z += sign * radii[k] * (math.sin(after) - math.sin(heading))
        length += radii[k] * abs(angles[k])
        heading = after
    return x, z, length


@builder
def close_circuit(angles: Floats, radii: Floats, straights: Floats, length: float) -> bool:
    """Change the straights as little as can be so that the circuit closes with that length; whether all stay positive.

    Each straight may give in proportion to its own length. The three conditions (x, z, length) are linear in them.
    """
    x, z, arcs = arcs_alone(angles, radii)
    if arcs > 0.85 * length:
        return False
    scale = (length - arcs) / straights.sum()
    a, b, c, d, e, f = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    right_x, right_z, heading = -x, -z, 0.0
    for k in range(len(angles)):
        straights[k] *= scale
        sine, cosine, weight = math.sin(heading), math.cos(heading), straights[k]
        a += weight * sine * sine
        b += weight * sine * cosine
        c += weight * sine
        d += weight * cosine * cosine
        e += weight * cosine
        f += weight
        right_x -= weight * sine
        right_z -= weight * cosine
        heading += angles[k]
    # Solve [[a b c] [b d e] [c e f]] (p, q, r) = (right_x, right_z, 0).
    minor_a, minor_b, minor_c = d * f - e * e, c * e - b * f, b * e - c * d
    minor_d, minor_e = a * f - c * c, b * c - a * e
    determinant = a * minor_a + b * minor_b + c * minor_c
    if abs(determinant) < 1e-9 * f * f * f:
        return False
    p = (minor_a * right_x + minor_b * right_z) / determinant
    q = (minor_b * right_x + minor_d * right_z) / determinant
    r = (minor_c * right_x + minor_e * right_z) / determinant
    heading = 0.0
    for k in range(len(angles)):
        straights[k] *= 1.0 + p * math.sin(heading) + q * math.cos(heading) + r
        if straights[k] < 0.5:
            return False
        heading += angles[k]
    return True


@builder
def trace(angles: Floats, radii: Floats, straights: Floats, points: Floats) -> None:
    """Points at equal steps around the circuit, from the start of its first straight at (0, 0), heading 0."""
    count = len(points)
    length = 0.0
    for k in range(len(angles)):
        length += straights[k] + radii[k] * abs(angles[k])
    step = length / count
    index = 0
    passed = 0.0
    x, z, heading = 0.0, 0.0, 0.0
    for k in range(len(angles)):
        sine, cosine = math.sin(heading), math.cos(heading)
        while index < count and index * step <= passed + straights[k]:
            along = index * step - passed
            points[index, 0] = x + along * sine
            points[index, 1] = z + along * cosine
            index += 1
        passed += straights[k]
        x += straights[k] * sine
        z += straights[k] * cosine
        sign = 1.0 if angles[k] > 0.0 else -1.0
        middle_x = x + sign * radii[k] * cosine
        middle_z = z - sign * radii[k] * sine
        size = radii[k] * abs(angles[k])
        while index < count and index * step <= passed + size:
            turned = heading + sign * (index * step - passed) / radii[k]
            points[index, 0] = middle_x - sign * radii[k] * math.cos(turned)
            points[index, 1] = middle_z + sign * radii[k] * math.sin(turned)
            index += 1
        passed += size
        heading += angles[k]
        x = middle_x - sign * radii[k] * math.cos(heading)
        z = middle_z + sign * radii[k] * math.sin(heading)


@builder
def keeps_clear(points: Floats, step: float, tightest: float, clearance: float) -> bool:
    """Whether points more than half a tightest circle apart along the circuit are `clearance` apart on the ground."""
    count = len(points)
    skip = math.ceil(math.pi * tightest / step)
    limit = clearance * clearance
    for i in range(count - skip):
        for j in range(i + skip, min(count, i + count - skip + 1)):
            dx = points[i, 0] - points[j, 0]
            dz = points[i, 1] - points[j, 1]
            if dx * dx + dz * dz < limit:
                return False
    return True


@builder
def draw_plan(
    rng: np.random.Generator, turns: int, length: float, tightest: float, clearance: float, wild: float
) -> tuple[Floats, Floats, Floats]:
    """Angles, radii and straights of a circuit of that length; a plain rounded rectangle should chance find none."""
    while turns > 4:
        angles, radii, straights = np.empty(turns), np.empty(turns), np.empty(turns)
        points = np.empty((math.ceil(length / _CHECK_STEP), 2))
        for _ in range(TRIES):
            if not draw_turns(rng, angles, wild):
                continue
            draw_sizes(rng, angles, radii, straights, tightest)
            if not close_circuit(angles, radii, straights, length):
                continue
            trace(angles, radii, straights, points)
            if keeps_clear(points, length / len(points), tightest, clearance):
                return angles, radii, straights
        turns -= 1
    side = 0.25 * (length - 2.0 * math.pi * tightest)
    share = 0.6 + 0.8 * rng.random()
    return (
        np.full(4, 0.5 * math.pi),
        np.full(4, tightest),
        np.array([share * side, (2.0 - share) * side, share * side, (2.0 - share) * side]),
    )
