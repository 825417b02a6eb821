"""CPU seconds of a fit and of a suggestion, on one thread: the least of a few repeats.

OMP_NUM_THREADS=1 python benchmarks/search/speed.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from problems import box

from rl_training.autoresearch.acquisition import Observation, recommend, suggest
from rl_training.autoresearch.gp import TinyGP

P = 8  # parameters


def least(action: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    space, rng = box(P), np.random.default_rng(0)
    print("| trials | fit | suggest | recommend |\n|---|---|---|---|")
    for n in (10, 50, 100, 300, 1000, 2000):
        U = rng.random((n, P))
        y = np.sin(3 * U).sum(axis=1) + 0.1 * rng.standard_normal(n)
        observations = [Observation(space.decode(u), float(value)) for u, value in zip(U, y, strict=True)]
        repeats = 5 if n <= 300 else 2
        fit = least(lambda U=U, y=y: TinyGP.fit(U, y), repeats)
        ask = least(lambda seen=observations: suggest(space, seen, [], 0), repeats)
        answer = least(lambda seen=observations: recommend(space, seen), repeats)
        print(f"| {n} | {fit:.3f} | {ask:.3f} | {answer:.3f} |", flush=True)


if __name__ == "__main__":
    main()
