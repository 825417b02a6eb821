"""The algorithms beside stable-baselines3 and axiomrl 1.0.3, in one run.

    donkey-rl bench algorithms [PART ...] [--threads 2] [--seeds 11,12,13,14,15] [--quick] [--json]

    speed      env steps a second on CartPole and Pendulum, PPO's image update, DrQ's and DrQ-v2's update, replay memory
    roofline   this machine's peaks, and how much of them each update reaches
    returns    CartPole after 100 thousand steps, each seed
    sac        SAC on Pendulum after 10 thousand steps, each seed
    pixels     what DrQ and DrQ-v2 need to solve Pendulum from pixels (--precision float32 for the other format)
    precision  does bfloat16 change returns? ppo/donkey in both formats, paired by seed

Without a part, ``speed`` and ``roofline``. On one thread seconds are CPU seconds, on more they are the wall's. Ours and
stable-baselines3's take turns, and the best of several turns counts, since other work on the machine only ever adds
time. axiomrl runs in `.venv-peers-rl`, which `benchmarks/algorithms/peers.sh` makes; without it its lines are empty.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Sequence

import torch

from benchmarks.algorithms import learning, speed
from benchmarks.algorithms.measure import Row
from benchmarks.algorithms.roofline import roofline
from rl_training.cli.console import console, table
from rl_training.errors import UsageError, did_you_mean

PARTS = ("speed", "roofline", "returns", "sac", "pixels", "precision")


def measure(part: str, args: argparse.Namespace, seeds: Sequence[int]) -> list[Row]:
    """The rows of one part."""
    turns = 3 if args.quick else 10
    if part == "speed":
        rows = speed.cartpole_speed(turns) if args.threads == 1 else []  # two threads are for images
        rows += speed.ppo_image_update(max(turns // 2, 2), 512 if args.quick else 2048)
        rows += speed.drq_update(turns)
        rows += speed.pendulum_speed(20 if args.quick else 60, 3)
        return rows + speed.replay_memory()
    if part == "roofline":
        return roofline(turns)
    if part == "returns":
        return learning.cartpole_returns(seeds, 100_000)
    if part == "sac":
        return learning.sac_pendulum(seeds)
    if part == "pixels":
        return learning.pixel_pendulum(seeds, args.precision, args.algorithms.split(","))
    return learning.precision_returns(seeds, 20_000)


def show(rows: Sequence[Row], threads: int) -> None:
    """The table."""
    grid = table(f"Algorithms, {threads} thread{'s' * (threads > 1)}", "what", "who", "measured", "times", "bar", "met")
    for line in rows:
        figure = "" if math.isnan(line["figure"]) else f"{line['figure']:,.4g} {line['unit']}"
        times = f"{line['times']:.2f}×" if line["times"] and not math.isnan(line["times"]) else ""
        met = {True: "yes", False: "NO", None: ""}[line["met"]]
        grid.add_row(line["what"], line["who"], figure, times, line["bar"], met)
    console.print(grid)
    console.print(f"Load average at the end: {os.getloadavg()[0]:.1f}; idle cores are what the bars are for.")


def main(argv: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="donkey-rl bench algorithms", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="which; see above")
    parser.add_argument("--threads", type=int, default=1, help="of torch, ours and the peers' (1)")
    parser.add_argument("--seeds", default="11,12,13,14,15", help="of the parts that learn (11,12,13,14,15)")
    parser.add_argument("--algorithms", default="drq,drqv2", help="of the part pixels (drq,drqv2)")
    parser.add_argument("--precision", default="auto", help="of the encoders in the part pixels (auto)")
    parser.add_argument("--quick", action="store_true", help="fewer turns and images")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    args = parser.parse_args(argv)
    parts = args.parts or ["speed", "roofline"]
    for part in parts:
        if part not in PARTS:
            raise UsageError(f"bench algorithms has no part '{part}'.{did_you_mean(part, PARTS)}")
    torch.set_num_threads(args.threads)
    seeds = [int(seed) for seed in args.seeds.split(",")]
    rows = [line for part in parts for line in measure(part, args, seeds)]
    if args.json:
        print(json.dumps({"load": os.getloadavg(), "threads": args.threads, "rows": rows}, indent=2, default=bool))
    else:
        show(rows, args.threads)
    return 0
