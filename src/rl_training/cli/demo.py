"""The main job in minutes: a small real study, the champion it found on tracks it never saw, films and a picture.

The study is one like any other, in a folder of its own: stopped in the middle, the same command goes on with it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rl_training.cli.console import console, table
from rl_training.cli.options import require_at_least

if TYPE_CHECKING:
    from rl_training.autoresearch.controller import Controller
    from rl_training.autoresearch.study import Study

EXAMPLES = """examples:
  donkey-rl demo
  donkey-rl demo --trials 16 --seed 3 --out my-demo"""

TRAINED_ON = "generated_track"
UNSEEN = ("warehouse", "random:validation:1")
SECONDS = 25.0  # of each film
TRAINING = {"checkpoint_interval": 0, "eval_interval": 0, "donkey": {"tracks": [TRAINED_ON]}}  # else as ppo/donkey
# Around settings that learn in thousands of steps, so that a few trials find a champion.
SPACE = """
parameters:
  learning_rate: {type: log_float, low: 1.5e-4, high: 1.2e-3}
  timesteps: {type: int, low: 9000, high: 14000}
  n_steps: {type: power_of_two, low: 16, high: 64}
  n_epochs: {type: int, low: 3, high: 8}
  gamma: {type: float, low: 0.95, high: 0.98}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl demo`."""
    parser.add_argument("--out", default="demo-out", help="folder for the study, films and pictures (demo-out)")
    parser.add_argument("--trials", type=int, default=8, help="settings to try (8)")
    parser.add_argument("--jobs", type=int, default=2, help="trials at a time, sharing the cores (2)")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything (0)")


def run(args: argparse.Namespace) -> int:
    """Search, evaluate, film; exit code 1 when the champion did not lap its own track."""
    require_at_least(args, {"trials": 1, "jobs": 1, "seed": 0})
    from rl_training.autoresearch.study import Study

    out = Path(args.out)
    study = Study(out / f"study-seed{args.seed}")
    study.log.parent.mkdir(parents=True, exist_ok=True)
    console.print(f"1/3  A study: {args.trials} trials of PPO on {TRAINED_ON}, from an 80x40 grey camera")
    started = time.perf_counter()
    reason = _controller(study, args).run()
    console.print(f"     {reason} {time.perf_counter() - started:.0f} s; the story is in {study.log}")
    if reason.startswith("Stopped"):
        console.print("     The same command goes on where it was.")
        return 1
    console.print("2/3  The champion drives its own track, and two that it never saw")
    lapped = _films(study, out)
    console.print("3/3  What the study has learned")
    from rl_training.autoresearch.ledger import Ledger
    from rl_training.report.study_picture import save_study_picture

    console.print(f"     picture: {save_study_picture(Ledger(study.results).records, out / 'study.png')}")
    for line in next_commands(study):
        console.print(line)
    return 0 if lapped else 1


def next_commands(study: Study) -> list[str]:
    """What to try now."""
    return [
        "Next:",
        f"  donkey-rl results --study {study.root} --sort reward      all trials",
        f"  donkey-rl evaluate --champion --study {study.root} --track all --episodes 5",
        "  donkey-rl autoresearch --agent ppo --trials 50            a study of your own",
        "  donkey-rl train --help, donkey-rl tracks list, donkey-rl sim --help",
    ]


def _controller(study: Study, args: argparse.Namespace) -> Controller:
    """The study's controller, which tells the log everything and the console the essence."""
    from rl_training.autoresearch.controller import Controller, Options
    from rl_training.autoresearch.ledger import Record
    from rl_training.autoresearch.narrator import Narrator
    from rl_training.autoresearch.space import space_from_yaml
    from rl_training.autoresearch.strategy import Search
    from rl_training.autoresearch.training import PRELOAD, TrainingTrials
    from rl_training.autoresearch.workers import Limits, WorkerPool
    from rl_training.experiment.presets import resolve

    class Teller(Narrator):
        def result(self, record: Record) -> None:
            super().result(record)
            reward = record.run_status if record.mean_reward is None else f"mean_reward {record.mean_reward:.1f}"
            what = "" if record.retest_of is None else f" (trial {record.retest_of} once more, with another seed)"
            crown = "  new champion" if record.champion else ""
            console.print(f"     trial {record.trial}: {reward} after {record.elapsed_sec:.0f} s{what}{crown}")

    trials = TrainingTrials(resolve(config="ppo/donkey", over={"seed": args.seed, **TRAINING}))
    search = Search(space_from_yaml(SPACE, "the demo's space"), trials.fixed, stop_when_converged=False)
    pool = WorkerPool(trials, args.jobs, Limits(), PRELOAD)
    options = Options(trials=args.trials, seed=args.seed)
    return Controller(study, search, trials.comparable, pool, Teller(study.log, quiet=True), options)


def _films(study: Study, out: Path) -> bool:
    """Film an episode on each track; whether the car lapped the track it was trained on."""
    from rl_training.autoresearch.champion import ChampionTracker
    from rl_training.cli.champion import TOLD, drive, told

    if ChampionTracker(study.champion).manifest is None:
        console.print("     There is none: no trial beat a random policy. Give it more --trials, or another --seed.")
        return False
    model, manifest = ChampionTracker(study.champion).load()
    title = f"The champion, trial {manifest['trial']}: one episode of {SECONDS:g} s on each track, from the start"
    grid = table(title, "track", *TOLD, "film")
    lapped = False
    for name in (TRAINED_ON, *UNSEEN):
        showing, film = drive(model, name, SECONDS, out / f"{name.replace(':', '-')}.gif")
        grid.add_row(name, *told(showing), str(film))
        lapped = lapped or (name == TRAINED_ON and bool(showing.lap_times))
    console.print(grid)
    return lapped
