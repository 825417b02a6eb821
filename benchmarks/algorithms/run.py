"""The algorithms beside stable-baselines3 and axiomrl 1.0.3, in one run and on one thread.

    donkey-rl bench algorithms [speed] [returns] [pixels] [--seeds 11,12,13,14,15] [--quick] [--json]

``speed``: env steps a CPU second on CartPole (4 envs × 128 steps, 4 epochs, minibatch 128), CPU milliseconds of PPO's
image update (3×120×160) and of DrQ's update (128 stacks 9×84×84). ``returns``: CartPole after 100 thousand steps over
several seeds. ``pixels``: what DrQ and DrQ-v2 need to solve Pendulum from pixels. Without a name, ``speed``.

Ours and stable-baselines3's take turns, and the best of several turns counts, since other work on the machine only ever
adds time. axiomrl runs in `.venv-peers-rl` where that exists: a venv with torch of our version, then axiomrl==1.0.3.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import stable_baselines3
import torch
from gymnasium.spaces import Box
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import rl_training
from rl_training.cli.console import console, table

ROOT = Path(__file__).parents[2]
PEER_PYTHON = ROOT / ".venv-peers-rl" / "bin" / "python"
CARTPOLE: dict[str, Any] = {"n_steps": 128, "batch_size": 128, "n_epochs": 4, "learning_rate": 2.5e-4, "device": "cpu"}
ON_POLICY = {"PPO": rl_training.PPO, "PPG": rl_training.PPG, "SB3 PPO": stable_baselines3.PPO}
Row = dict[str, Any]


class Images(gym.Env[Any, Any]):
    """Noise of a given shape that rolls by three channels a step; costs next to nothing."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.observation_space, self.action_space = Box(0, 255, shape, np.uint8), Box(-1.0, 1.0, (2,), np.float32)
        self.frames = np.random.default_rng(0).integers(0, 256, (60, *shape[1:]), dtype=np.uint8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.time = 0
        return self._see(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return self._see(), 0.1, False, self.time % 50 == 0, {}

    def _see(self) -> Any:
        channels = self.observation_space.shape[0]  # type: ignore[index]
        return self.frames[(np.arange(channels) + 3 * self.time) % len(self.frames)]


def best_of_turns(work: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """CPU seconds of each piece of work: they take turns, and the best of each counts."""
    best = dict.fromkeys(work, float("inf"))
    for _ in range(turns):
        for name, piece in work.items():
            start = time.process_time()
            piece()
            best[name] = min(best[name], time.process_time() - start)
    return best


def peer(*arguments: str) -> dict[str, float] | None:
    """axiomrl's figures, or None where its venv is missing."""
    if not PEER_PYTHON.exists():
        return None
    command = [str(PEER_PYTHON), str(Path(__file__).with_name("peer.py")), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    figures: dict[str, float] = json.loads(output.splitlines()[-1])
    return figures


def row(what: str, who: str, figure: float, unit: str, better: float | None = None, bar: str = "") -> Row:
    """One line of the table; ``better`` is how many times better ours is than the peer."""
    return {"what": what, "who": who, "figure": figure, "unit": unit, "times": better, "bar": bar}


def cartpole_cycle(name: str) -> Callable[[], None]:
    """Eight rollouts and their updates, which holds one auxiliary phase of PPG."""
    model = ON_POLICY[name]("MlpPolicy", make_vec_env("CartPole-v1", 4, seed=0), seed=0, **CARTPOLE)
    return lambda: (model.learn(8 * 512, reset_num_timesteps=False), None)[1]


def cartpole_speed(turns: int) -> list[Row]:
    """Env steps a CPU second, updates included."""
    seconds = best_of_turns({name: cartpole_cycle(name) for name in ON_POLICY}, turns)
    rates = {name: 8 * 512 / value for name, value in seconds.items()}
    for name in ("PPO", "PPG"):
        runs = [peer("cartpole", name.lower(), "20480", "11") for _ in range(2)]
        rates[f"axiomrl {name}"] = max((run["rate"] for run in runs if run), default=float("nan"))
    ppo, ppg = rates["PPO"], rates["PPG"]
    what, unit = "CartPole, steps a CPU second", "/s"
    return [
        row(what, "PPO", ppo, unit, ppo / rates["SB3 PPO"], "≥ 1.8× SB3"),
        row(what, "SB3 PPO", rates["SB3 PPO"], unit),
        row(what, "axiomrl PPO", rates["axiomrl PPO"], unit, ppo / rates["axiomrl PPO"]),
        row(what, "PPG", ppg, unit, ppg / rates["axiomrl PPG"], "≥ 2× axiomrl"),
        row(what, "axiomrl PPG", rates["axiomrl PPG"], unit),
    ]


def ppo_image_update(turns: int, images: int) -> list[Row]:
    """One epoch over images of 3×120×160, in minibatches of 64 and of 256."""
    rows = []
    for batch in (64, 256):
        settings = {"n_steps": images, "batch_size": batch, "n_epochs": 1, "device": "cpu"}
        models = {
            "PPO": rl_training.PPO("CnnPolicy", Images((3, 120, 160)), **settings),
            "PPO float32": rl_training.PPO("CnnPolicy", Images((3, 120, 160)), precision="float32", **settings),
            "SB3 PPO": stable_baselines3.PPO("CnnPolicy", Images((3, 120, 160)), **settings),
        }
        for model in models.values():
            model.learn(images)
        seconds = best_of_turns({name: model.train for name, model in models.items()}, turns)
        for name, bar in (("PPO", "≥ 2.2× SB3"), ("PPO float32", "≥ 1.3× SB3"), ("SB3 PPO", "")):
            times = seconds["SB3 PPO"] / seconds[name] if bar else None
            rows.append(
                row(f"PPO image update, minibatch {batch}", name, images / seconds[name], "images/s", times, bar)
            )
    return rows


def drq_update(turns: int) -> list[Row]:
    """One update of 128 stacks 9×84×84, sampling included."""
    ours: dict[str, dict[str, Any]] = {
        "DrQ": {},
        "DrQ float32": {"precision": "float32"},
        "DrQ, shared encoder": {"policy_kwargs": {"share_encoder": True}},
    }
    work: dict[str, Callable[[], object]] = {}
    for name, kwargs in ours.items():
        drq = rl_training.DrQ(
            "CnnPolicy",
            Images((9, 84, 84)),
            buffer_size=400,
            frame_stack=3,
            learning_starts=300,
            device="cpu",
            **kwargs,
        ).learn(300)
        work[name] = lambda drq=drq: drq.train(1, 128)
    sac = stable_baselines3.SAC("CnnPolicy", Images((9, 84, 84)), buffer_size=400, learning_starts=300, device="cpu")
    sac.learn(300)
    work["SB3 SAC"] = lambda: sac.train(1, 128)
    seconds = best_of_turns(work, turns)
    figures = peer("drq")
    peer_seconds = figures["milliseconds"] / 1000 if figures else float("nan")
    bars = {"DrQ": "≥ 3×", "DrQ float32": "≥ 2×", "DrQ, shared encoder": ""}
    rows = []
    for name, bar in bars.items():
        what = "DrQ update, 128 × 9×84×84, × SB3 SAC"
        rows.append(row(what, name, 1000 * seconds[name], "ms", seconds["SB3 SAC"] / seconds[name], bar))
    rows.append(row("the same × axiomrl", "DrQ", 1000 * seconds["DrQ"], "ms", peer_seconds / seconds["DrQ"], "≥ 4×"))
    rows.append(row("DrQ update", "SB3 SAC", 1000 * seconds["SB3 SAC"], "ms"))
    rows.append(row("DrQ update", "axiomrl DrQ", 1000 * peer_seconds, "ms"))
    return rows


def cartpole_returns(seeds: Sequence[int], steps: int) -> list[Row]:
    """The mean deterministic return of 20 episodes after training, per seed."""
    rows = []
    for name, algorithm in ON_POLICY.items():
        returns = []
        for seed in seeds:
            model = algorithm("MlpPolicy", make_vec_env("CartPole-v1", 4, seed=seed), seed=seed, **CARTPOLE).learn(
                steps
            )
            returns.append(float(np.mean(evaluate_policy(model, make_vec_env("CartPole-v1", 4, seed=1000), 20)[0])))
        bar = {"PPO": "not below SB3's", "PPG": "500 on every seed"}.get(name, "")
        each = " ".join(f"{value:.0f}" for value in returns)
        rows.append(row(f"CartPole return after {steps:,}: {each}", name, float(np.mean(returns)), "mean", bar=bar))
    return rows


def pixel_pendulum(seeds: Sequence[int]) -> list[Row]:
    """What it takes to solve Pendulum from pixels."""
    from benchmarks.algorithms.pixel_pendulum import solve

    rows = []
    for algorithm in ("DrQ", "DrQv2"):
        for seed in seeds:
            run = solve(algorithm, seed)
            console.print(json.dumps(run), style="dim")
            what = f"pixel Pendulum, {run['env_steps']:,} steps, {run['cpu_minutes']:.1f} CPU min"
            rows.append(row(what, f"{algorithm} seed {seed}", run["return"], "return", bar="≥ -250"))
    return rows


def main(argv: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="donkey-rl bench algorithms", description=__doc__)
    parser.add_argument("parts", nargs="*", help="speed, returns, pixels; without a name, speed")
    parser.add_argument("--seeds", default="11,12,13,14,15", help="seeds of the parts that learn")
    parser.add_argument("--quick", action="store_true", help="fewer turns and images")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    parts, seeds = args.parts or ["speed"], [int(seed) for seed in args.seeds.split(",")]
    turns = 4 if args.quick else 12
    rows: list[Row] = []
    if "speed" in parts:
        rows += cartpole_speed(turns)
        rows += ppo_image_update(turns // 4, 512 if args.quick else 2048)
        rows += drq_update(turns)
    if "returns" in parts:
        rows += cartpole_returns(seeds, 100_000)
    if "pixels" in parts:
        rows += pixel_pendulum(seeds)
    if args.json:
        print(json.dumps({"load": os.getloadavg(), "rows": rows}, indent=2))
        return 0
    grid = table("Algorithms, one thread", "what", "who", "measured", "times", "bar")
    for line in rows:
        times = f"{line['times']:.2f}×" if line["times"] else ""
        grid.add_row(line["what"], line["who"], f"{line['figure']:,.0f} {line['unit']}", times, line["bar"])
    console.print(grid)
    console.print(f"Load average at the end: {os.getloadavg()[0]:.1f}; one idle core is what the bars are for.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
