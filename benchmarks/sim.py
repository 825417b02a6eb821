"""The embedded world's speed: env steps a second on one core, beside Gymnasium's CarRacing in the same run.

    donkey-rl bench sim [--quick] [--json]

Times are process CPU time of one thread, the best of several repeats; a start-up is wall-clock of a fresh process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rl_training.cli.console import console, table
from rl_training.envs.spec import POLICY_VIEW, EnvSpec, ObservationSpec
from rl_training.envs.vec_env import DonkeyVecEnv
from rl_training.simulator.world import World, named_track

STARTUP = """
import time; start = time.perf_counter()
import gymnasium as gym, rl_training
env = gym.make("donkey-generated-track-v0"); env.reset(seed=0); env.step(env.action_space.sample())
print(time.perf_counter() - start)
"""


def best_rate(work: Callable[[], int], repeats: int) -> float:
    """Units of work a CPU second, best of `repeats`."""
    work()
    rates = []
    for _ in range(repeats):
        start = time.process_time()
        units = work()
        rates.append(units / (time.process_time() - start))
    return max(rates)


def env_rate(spec: EnvSpec, cars: int, repeats: int) -> float:
    """Env steps a second of a VecEnv that drives a mild weave and is reset when an episode ends."""
    env = DonkeyVecEnv(spec, cars, seed=0)
    env.reset()
    steps = max(20, 1600 // cars)
    actions = [np.tile([0.3 * np.sin(k / 7.0), 0.12], (cars, 1)).astype(np.float32) for k in range(steps)]

    def work() -> int:
        for action in actions:
            env.step(action)
        return steps * cars

    return best_rate(work, repeats)


def physics_rate(repeats: int) -> float:
    """Control steps a second (five substeps each, contacts and path included), nothing drawn.

    The cars set off from the start and drive along the first straight, again and again: what training does most.
    """
    world = World(64)
    for arena in range(64):
        world.load(arena, named_track("generated_track"))
        world.dress(arena)
    weave = [np.tile([0.05 * np.sin(k / 7.0), 0.2, 0.0], (64, 1)) for k in range(80)]

    def work() -> int:
        for arena in range(64):
            world.place_at_start(arena)
        for controls in weave:
            world.step(controls)
        return len(weave) * 64

    return best_rate(work, repeats)


def new_road_milliseconds(resets: int) -> float:
    """CPU time of a reset onto a new random road: drawing, baking and packing it."""
    env = DonkeyVecEnv(EnvSpec(tracks=("random:train",), observation=POLICY_VIEW), 16, seed=0)
    env.reset()
    start = time.process_time()
    for k in range(resets):
        env.batch.reset([k % 16])
    return 1000.0 * (time.process_time() - start) / resets


def memory_of_64_cars() -> float:
    """Resident memory [GB] of a fresh process with 64 cars on 64 different random roads."""
    code = (
        "import psutil; from rl_training.envs.spec import *; from rl_training.envs.vec_env import DonkeyVecEnv\n"
        "env = DonkeyVecEnv(EnvSpec(tracks=('random:train',)), 64, seed=0); env.reset()\n"
        "print(psutil.Process().memory_info().rss / 1e9)"
    )
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def startup_seconds(cold: bool) -> float:
    """Import, make, reset and first step in a fresh process; `cold` with an empty kernel cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "DONKEY_RL_CACHE": folder} if cold else dict(os.environ)
        runs = 1 if cold else 3
        times = [
            float(
                subprocess.run(
                    [sys.executable, "-c", STARTUP], capture_output=True, text=True, check=True, env=environment
                ).stdout
            )
            for _ in range(runs)
        ]
    return min(times)


def copy_bandwidth() -> float:
    """GB/s that one thread copies (read and write counted), for the share of the memory limit."""
    source = np.ones(1 << 25, np.uint8)
    target = np.empty_like(source)

    def work() -> int:
        np.copyto(target, source)
        return 2 * source.nbytes

    return best_rate(work, 10) / 1e9


def car_racing_rate(steps: int) -> float | None:
    """Env steps a second of the peer; None where box2d is not installed."""
    try:
        import gymnasium

        env = gymnasium.make("CarRacing-v3")
    except Exception:
        return None
    env.reset(seed=0)
    action = np.array([0.1, 0.2, 0.0], np.float32)

    def work() -> int:
        for _ in range(steps):
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return steps

    return best_rate(work, 2)


def measure(quick: bool) -> list[dict[str, Any]]:
    """Every row: what, figure, unit, the bar it must clear."""
    repeats = 2 if quick else 6
    rgb, grey = ObservationSpec(), POLICY_VIEW
    bandwidth = copy_bandwidth()
    peer = car_racing_rate(100 if quick else 300)
    rows: list[dict[str, Any]] = []

    def row(what: str, figure: float, unit: str, bar: str, **more: Any) -> None:
        rows.append({"what": what, "figure": figure, "unit": unit, "bar": bar, **more})
        print(f"  {what}: {figure:,.2f} {unit}", file=sys.stderr, flush=True)

    def env_row(what: str, track: str, view: ObservationSpec, cars: int, bar: str) -> None:
        rate = env_rate(EnvSpec(tracks=(track,), observation=view), cars, repeats)
        share = rate * int(np.prod(view.shape)) / view.stack / 1e9 / bandwidth
        times = None if peer is None else rate / peer
        row(what, rate, "steps/s", bar, bandwidth_share=share, times_car_racing=times)

    row("physics alone, 64 cars", physics_rate(repeats), "steps/s", ">= 1,000,000")
    env_row("160x120 RGB, flat (generated_track), 16 cars", "generated_track", rgb, 16, ">= 30,000")
    env_row("160x120 RGB, flat (warren), 16 cars", "warren", rgb, 16, ">= 30,000")
    env_row("160x120 RGB, hills and walls (mountain_track), 16 cars", "mountain_track", rgb, 16, ">= 8,000")
    env_row("160x120 RGB, fences and trees (mini_monaco), 16 cars", "mini_monaco", rgb, 16, ">= 8,000")
    env_row("160x120 RGB, hills (thunderhill), 16 cars", "thunderhill", rgb, 16, ">= 8,000")
    env_row("160x120 RGB, flat (generated_track), 1 car", "generated_track", rgb, 1, "")
    env_row("80x40 grey policy view (generated_track), 16 cars", "generated_track", grey, 16, ">= 150,000")
    env_row("80x40 grey policy view (warren), 16 cars", "warren", grey, 16, ">= 150,000")
    env_row("80x40 grey policy view (mountain_track), 16 cars", "mountain_track", grey, 16, "")
    if peer is not None:
        row("peer: CarRacing-v3, 96x96 RGB, 1 car", peer, "steps/s", "")
    row("reset to a new random road", new_road_milliseconds(32 if quick else 200), "ms", "<= 5")
    row("64 cars on 64 random roads", memory_of_64_cars(), "GB", "<= 1.5")
    row("warm start: import, make, reset, step", startup_seconds(cold=False), "s", "<= 1.5")
    if not quick:
        row("first start ever, with compilation", startup_seconds(cold=True), "s", "<= 40")
    row("this machine's copy bandwidth, one thread", bandwidth, "GB/s", "")
    return rows


def main(argv: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="donkey-rl bench sim", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    args = parser.parse_args(argv)
    rows = measure(args.quick)
    if args.json:
        print(json.dumps({"load": os.getloadavg(), "rows": rows}, indent=2))
        return 0
    grid = table("Embedded world, one thread", "what", "measured", "bar", "× CarRacing", "% of copy bandwidth")
    for row in rows:
        times, share = row.get("times_car_racing"), row.get("bandwidth_share")
        grid.add_row(
            row["what"],
            f"{row['figure']:,.0f} {row['unit']}" if row["figure"] > 100 else f"{row['figure']:.2f} {row['unit']}",
            row["bar"],
            f"{times:,.0f}" if times else "",
            f"{100 * share:.1f}" if share else "",
        )
    console.print(grid)
    console.print(f"Load average at the end: {os.getloadavg()[0]:.1f}; one idle core is what the bars are for.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
