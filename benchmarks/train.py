"""From pixels to laps: how long each agent's donkey preset takes to its first lap and to five clean laps in a row.

    donkey-rl bench train [--agents ppo,drq,classic] [--seeds 10] [--json]
    donkey-rl bench train --results runs.jsonl --agents ppg --seeds 5     (may be stopped, and repeated to go on)
    donkey-rl bench train --table runs.jsonl                              (prints what the file holds)

The car is watched by a deterministic drive from the scene's own start after every so many steps of training, whose
clock stands still meanwhile: a first lap is one whole lap without leaving the road, five clean laps are five in that
one drive. "classic" is stable-baselines3's PPO with its defaults, CnnPolicy on the raw 160x120 image of one env. Wall
clock and CPU seconds are of the training alone, from the first step; building and compiling are reported apart.

A line of the results file is one outcome. It carries a digest of the settings, so that outcomes of an older preset are
neither taken for the present one's nor mixed with them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import sys
import time
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import stable_baselines3
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from rl_training.cli.console import console, table
from rl_training.envs.spec import EnvSpec, Limits, ObservationSpec, StartSpec
from rl_training.envs.vec_env import DonkeyVecEnv
from rl_training.errors import UsageError, did_you_mean
from rl_training.experiment.config import TrainConfig, assignment, merged
from rl_training.experiment.presets import resolve
from rl_training.runtime.building import build_model
from rl_training.runtime.environments import make_env

LAPS = 5
DRIVE_STEPS = 6000  # the longest drive that may come to five laps; the presets decide ten times a second
CLASSIC = "classic"
AGENTS = ("ppo", "ppg", "dqn", "sac", "drq", "drqv2", CLASSIC)
# Env steps between drives, and when to give up.
PACE = {"ppo": (2048, 150_000), "ppg": (2048, 200_000), "dqn": (2000, 150_000), "sac": (500, 40_000)}
PACE |= {"drq": (250, 12_000), "drqv2": (250, 20_000), CLASSIC: (2048, 200_000)}


@dataclass
class Outcome:
    """When an agent first did it: env steps, wall-clock and CPU seconds; None where it never did."""

    agent: str
    seed: int
    settings: str = ""  # digest of the config but for its seed
    changes: str = ""  # what --set changed, for people
    build_seconds: float = 0.0
    first_lap: tuple[int, float, float] | None = None
    five_laps: tuple[int, float, float] | None = None
    best_lap: float | None = None
    steps: int = 0

    @property
    def name(self) -> str:
        """What its row is called."""
        return f"{self.agent} {self.changes}".strip()


def laps_driven(model: BaseAlgorithm, env: DonkeyVecEnv) -> tuple[int, float]:
    """Whole laps of one deterministic drive before the car leaves the road, at most `LAPS`; the last lap's time."""
    env.seed(0)
    observation = env.reset()
    last = 0.0
    laps = 0
    for _ in range(DRIVE_STEPS):
        action, _ = model.predict(observation, deterministic=True)  # type: ignore[arg-type]
        observation, _, dones, infos = env.step(action)
        if infos[0]["lap_count"] > laps:
            laps, last = int(infos[0]["lap_count"]), float(infos[0]["last_lap_time"])
        if laps >= LAPS or dones[0] or stands_still(infos[0]):
            break
    return laps, last


def stands_still(info: dict[str, Any]) -> bool:
    """A car that has not come a metre in five seconds will not."""
    return bool(info["steps"] > 100 and info["furthest"] < 1.0)


class Watch(BaseCallback):
    """Drives now and then with the clock stopped; ends the training when five laps were driven."""

    def __init__(self, outcome: Outcome, env: DonkeyVecEnv, every: int) -> None:
        super().__init__()
        self.outcome, self.drive_env, self.every = outcome, env, every
        self.next = every
        self.wall = self.cpu = 0.0
        self.done = False

    def _on_training_start(self) -> None:
        self.began = time.perf_counter(), time.process_time()

    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= self.next and not self.done:
            self.next = self.num_timesteps + self.every
            self._drive()

    def _drive(self) -> None:
        now = time.perf_counter(), time.process_time()
        self.wall += now[0] - self.began[0]
        self.cpu += now[1] - self.began[1]
        laps, last = laps_driven(self.model, self.drive_env)
        here = (self.num_timesteps, round(self.wall, 2), round(self.cpu, 2))
        if laps >= 1 and self.outcome.first_lap is None:
            self.outcome.first_lap = here
        if laps >= LAPS:
            self.outcome.five_laps, self.outcome.best_lap = here, last
            self.done = True
        self.model.policy.set_training_mode(False)
        self.began = time.perf_counter(), time.process_time()

    def _on_step(self) -> bool:
        self.outcome.steps = self.num_timesteps
        return not self.done


def drive_spec(spec: EnvSpec) -> EnvSpec:
    """What was trained on, from the scene's own start and without a limit of time."""
    return replace(spec, start=StartSpec(), limits=replace(spec.limits, max_steps=0))


def config_of(agent: str, seed: int, over: dict[str, Any]) -> TrainConfig:
    """An agent's preset with the benchmark's patience."""
    base = resolve(config=f"{agent}/donkey", over={"seed": seed, "total_timesteps": PACE[agent][1]})
    return TrainConfig.from_dict(merged(base.to_dict(), over)) if over else base


def settings_of(agent: str, over: dict[str, Any]) -> str:
    """A digest of all that decides an outcome but for the seed and the code."""
    known = {"pace": PACE[agent], "config": None if agent == CLASSIC else config_of(agent, 0, over).to_dict()}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:10]


def measure(agent: str, seed: int, over: dict[str, Any], threads: int) -> Outcome:
    """Train one agent with one seed until it drives five laps, or its patience ends."""
    torch.set_num_threads(threads)
    every, patience = PACE[agent]
    outcome = Outcome(agent, seed, settings_of(agent, over))
    start = time.perf_counter()
    if agent == CLASSIC:
        model, spec = classic(seed)
    else:
        config = config_of(agent, seed, over)
        model, spec = build_model(config, make_env(config, seed=seed)), config.donkey
    drive_env = DonkeyVecEnv(drive_spec(spec), 1, seed=0, full_infos=True)
    laps_driven(model, drive_env)  # compiles what is not compiled yet
    outcome.build_seconds = round(time.perf_counter() - start, 2)
    model.learn(patience, callback=Watch(outcome, drive_env, every), log_interval=1_000_000)
    return outcome


def classic(seed: int) -> tuple[BaseAlgorithm, EnvSpec]:
    """The way of most tutorials: one env, the whole image, all of stable-baselines3's defaults."""
    spec = EnvSpec(observation=ObservationSpec(), limits=Limits(max_steps=1000))
    env = DonkeyVecEnv(spec, 1, seed=seed)
    return stable_baselines3.PPO("CnnPolicy", env, seed=seed), spec


def summarize(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """Median and worst of each agent; a seed that never did it counts as worse than all."""
    rows = []
    for name, settings in dict.fromkeys((outcome.name, outcome.settings) for outcome in outcomes):
        own = [outcome for outcome in outcomes if (outcome.name, outcome.settings) == (name, settings)]
        row: dict[str, Any] = {"agent": name, "settings": settings, "seeds": len(own)}
        for goal in ("first_lap", "five_laps"):
            reached = [getattr(outcome, goal) for outcome in own if getattr(outcome, goal)]
            missed = [(float("inf"),) * 3] * (len(own) - len(reached))
            row[goal] = {"reached": len(reached)}
            for k, figure in enumerate(("steps", "wall", "cpu")):
                values = sorted(float(point[k]) for point in [*reached, *missed])
                row[goal][figure] = [_finite(statistics.median(values)), _finite(values[-1])]
        rows.append(row)
    return rows


def _finite(value: float) -> float | None:
    return round(value, 2) if value < float("inf") else None


def show(rows: list[dict[str, Any]]) -> None:
    """The table for people."""
    grid = table(
        "Time to laps on generated_track: median (worst)", "agent", "goal", "seeds", "steps", "wall s", "CPU s"
    )
    for row in rows:
        for name, goal in (("first_lap", "first lap"), ("five_laps", "five laps")):
            cells = [
                " ".join(
                    ("never" if value is None else f"{value:,.1f}") + end for value, end in zip(pair, ("", " worst"))
                )
                for pair in (row[name][figure] for figure in ("steps", "wall", "cpu"))
            ]
            grid.add_row(row["agent"], goal, f"{row[name]['reached']}/{row['seeds']}", *cells)
    console.print(grid)
    console.print(
        "Bars: ppo first lap <= 10 s wall (median, idle cores), five laps <= 20 s; drq five laps <= 4,000 steps."
    )


# ---- results that outlive the process


def read_results(path: Path) -> list[Outcome]:
    """The outcomes of a results file, the last where one is there twice; a line cut short by a kill is left out."""
    if not path.is_file():
        return []
    known = {item.name for item in fields(Outcome)}
    found: dict[tuple[str, int, str], Outcome] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            values = json.loads(line)
        except ValueError:
            continue
        outcome = Outcome(**{key: value for key, value in values.items() if key in known})
        found[outcome.agent, outcome.seed, outcome.settings] = outcome
    return sorted(found.values(), key=lambda outcome: (AGENTS.index(outcome.agent), outcome.name, outcome.seed))


def add_result(path: Path, outcome: Outcome) -> None:
    """One more line, on the disk before the next outcome begins; after a half one it begins a line of its own."""
    torn = path.is_file() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" if torn else "")
        file.write(json.dumps({**asdict(outcome), "load": round(os.getloadavg()[0], 1)}) + "\n")


def measure_all(args: argparse.Namespace) -> list[Outcome]:
    """Every agent and seed that was asked for and is not in the results file yet."""
    over: dict[str, Any] = {}
    for text in args.set:
        over = merged(over, assignment(text))
    known = {(o.agent, o.seed, o.settings): o for o in (read_results(args.results) if args.results else [])}
    outcomes = []
    for agent in args.agents.split(","):
        if agent not in AGENTS:
            raise UsageError(f"There is no agent '{agent}'.{did_you_mean(agent, AGENTS)}")
        settings = settings_of(agent, over)
        for seed in range(args.first_seed, args.first_seed + args.seeds):
            outcome = known.get((agent, seed, settings))
            if outcome is None:
                outcome = measure(agent, seed, over, args.threads)
                outcome.changes = " ".join(args.set)
                if args.results:
                    add_result(args.results, outcome)
                print(json.dumps(asdict(outcome)), file=sys.stderr, flush=True)
            outcomes.append(outcome)
    return outcomes


def main(argv: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="donkey-rl bench train", description=__doc__)
    parser.add_argument("--agents", default=",".join(AGENTS), help="which, by commas")
    parser.add_argument("--seeds", type=int, default=10, help="how many (10)")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them (0)")
    parser.add_argument("--threads", type=int, default=1, help="torch threads (1)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change the presets, to tune")
    parser.add_argument("--results", type=Path, metavar="FILE", help="append each outcome, skip those that are there")
    parser.add_argument("--table", type=Path, metavar="FILE", help="only print the outcomes of that results file")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    args = parser.parse_args(argv)
    if args.table and not args.table.is_file():
        raise UsageError(f"There is no results file {args.table}; make one with --results {args.table}.")
    outcomes = read_results(args.table) if args.table else measure_all(args)
    rows = summarize(outcomes)
    if args.json:
        print(json.dumps({"load": os.getloadavg(), "rows": rows, "runs": [asdict(o) for o in outcomes]}, indent=2))
        return 0
    show(rows)
    if not args.table:
        console.print(f"Load average at the end: {os.getloadavg()[0]:.1f}; one idle core is what the bars are for.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
