"""Search settings by Gaussian process and UCB, trial after trial, and keep one champion. It may be stopped or killed at
any time: the same command goes on where it was.

What a trial trains comes from the preset that fits the agent, as with `donkey-rl train`; what is searched, from the
agent's space. Ctrl-C lets the running trial end; twice ends it now.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rl_training.cli.console import console
from rl_training.cli.options import add_config_arguments, config_of, require_at_least
from rl_training.errors import UsageError

if TYPE_CHECKING:
    from rl_training.autoresearch.space import Space
    from rl_training.autoresearch.strategy import Strategy
    from rl_training.autoresearch.training import TrainingTrials
    from rl_training.autoresearch.workers import Pool

EXAMPLES = """examples:
  donkey-rl autoresearch --track generated_track --trials 50
  donkey-rl autoresearch --agent dqn --explore 2 --jobs 2 --study runs/dqn-study
  donkey-rl autoresearch --push-every 10 --push-to origin
  donkey-rl autoresearch --executor ray --address 10.0.0.1:6379 --jobs 16
  donkey-rl status"""
DEFAULT_STUDY = "runs/study"
COOLDOWN = 2.0  # [s] an external simulator needs between two clients
STEPS_PER_SECOND = 20.0  # of one in real time
PUSH_EVERY = 10  # trials, where --push-to says that there is to be a push
AT_LEAST = {
    "jobs": 1, "trials": 1, "min_timesteps": 1, "max_timesteps": 1, "min_trials_before_gp": 2, "explore": 0,
    "timeout": 0, "memory": 0, "silence": 0, "push_every": 0, "push_models": 0,
}  # fmt: skip
SHARED_WITH_TRAIN = ("timesteps", "learning_rate", "n_steer", "n_throttle")  # flags that the search decides


def add_study_argument(parser: argparse.ArgumentParser) -> None:
    """Which study a command is about."""
    parser.add_argument("--study", default=DEFAULT_STUDY, help=f"folder of the study ({DEFAULT_STUDY})")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl autoresearch`."""
    add_loop_arguments(parser)
    parser.add_argument("--trials", type=int, default=100, help="at most so many trials, earlier ones counted (100)")
    parser.add_argument("--explore", type=float, help="kappa of UCB = mean + kappa x std")
    parser.add_argument("--min-trials-before-gp", type=int, default=3, help="trials spread evenly at first (3)")
    parser.add_argument("--min-timesteps", type=int, help="shortest training that is tried")
    parser.add_argument("--max-timesteps", type=int, help="longest training that is tried")
    parser.add_argument("--space", help="YAML file of the search space (the agent's own)")
    parser.add_argument("--no-convergence", action="store_true", help="do not stop before --trials")
    parser.add_argument(
        "--fidelity",
        choices=("adaptive", "full"),
        default="adaptive",
        help="adaptive: hopeless trials are stopped, good short ones trained on; full: each as long as it was proposed",
    )
    parser.add_argument("--no-guard", action="store_true", help="crown without a retest on fresh seeds")


def add_loop_arguments(parser: argparse.ArgumentParser) -> None:
    """What the search and the sweep have in common."""
    add_config_arguments(parser)
    add_study_argument(parser)
    parser.add_argument("--jobs", type=int, default=1, help="trials at a time, sharing the cores (1)")
    parser.add_argument("--executor", choices=("local", "ray"), default="local", help="where trials run (local)")
    parser.add_argument("--address", help="HOST:PORT of the Ray cluster (the one this machine is part of)")
    parser.add_argument("--timeout", type=float, default=360.0, help="seconds one trial may take (360; 0: any)")
    parser.add_argument("--memory", type=float, default=8.0, help="GB one trial may use (8; 0: any)")
    parser.add_argument("--silence", type=float, default=120.0, help="seconds without a sign of life (120; 0: any)")
    parser.add_argument(
        "--push-every", type=int, help="commit and push every so many trials, 0: never (10 with --push-to, else 0)"
    )
    parser.add_argument("--push-to", help="git remote, address or path (origin, where there is one)")
    parser.add_argument(
        "--push-models", type=float, default=0.0, metavar="MB", help="push models up to this size, by git-LFS (0: none)"
    )
    parser.add_argument("--quiet", action="store_true", help="write the log only")


def run(args: argparse.Namespace) -> int:
    """Search until it has converged."""
    from rl_training.autoresearch.acquisition import EXPLORE
    from rl_training.autoresearch.space import default_space, space_from_yaml
    from rl_training.autoresearch.strategy import Search
    from rl_training.autoresearch.training import searchable

    check_flags(args)
    given = [name for name in SHARED_WITH_TRAIN if getattr(args, name) is not None]
    if given:
        flags = ", ".join("--" + name.replace("_", "-") for name in given)
        raise UsageError(f"The search decides {flags}; bound it with --min-timesteps, --max-timesteps or --space FILE.")
    trials = trials_of(args)
    text = Path(args.space).read_text(encoding="utf-8") if args.space else None
    space = space_from_yaml(text, args.space) if text is not None else default_space(trials.base.algo)
    space = searchable(space, trials.base, args.min_timesteps, args.max_timesteps)
    search = Search(
        space,
        trials.fixed,
        EXPLORE if args.explore is None else args.explore,
        args.min_trials_before_gp,
        not args.no_convergence,
    )
    tell_of_real_time(args, trials, space)
    longest = 0
    if args.fidelity == "adaptive" and "timesteps" in space.names:
        shortest, longest = int(space["timesteps"].low), int(space["timesteps"].high)
        trials = replace(trials, base=replace(trials.base, eval_interval=shortest), stop_from=shortest)
    return run_loop(args, trials, search, trials_cap=args.trials, guard=not args.no_guard, longest=longest)


def tell_of_real_time(args: argparse.Namespace, trials: TrainingTrials, space: Space) -> None:
    """Say so where no trial of the longest training can end in time, since a car over TCP drives as fast as a car."""
    steps = space["timesteps"].high if "timesteps" in space.names else trials.base.total_timesteps
    seconds = steps / STEPS_PER_SECOND / len(trials.base.sim.split(","))
    if trials.is_external and 0 < args.timeout < seconds:
        console.print(
            f"In real time, {steps:,.0f} steps take {seconds:.0f} s and a trial has {args.timeout:.0f} s: raise "
            "--timeout or lower --max-timesteps, unless the simulator is faster."
        )


def check_flags(args: argparse.Namespace) -> None:
    """UsageError for a number that cannot be meant; and the push that other flags imply."""
    require_at_least(args, AT_LEAST)
    if args.push_every is None:
        args.push_every = PUSH_EVERY if args.push_to or args.push_models else 0


def trials_of(args: argparse.Namespace) -> TrainingTrials:
    """The trials that the flags mean. One trial at a time may use all cores, so its threads come from the pool."""
    from rl_training.autoresearch.training import TrainingTrials

    return TrainingTrials(replace(config_of(args), checkpoint_interval=0))


def run_loop(
    args: argparse.Namespace,
    trials: TrainingTrials,
    strategy: Strategy,
    trials_cap: int,
    guard: bool,
    sweep: bool = False,
    longest: int = 0,
) -> int:
    """Run a controller as the flags say."""
    from rl_training.autoresearch.controller import Controller, Options
    from rl_training.autoresearch.narrator import Narrator
    from rl_training.autoresearch.publish import Publisher, remote_of
    from rl_training.autoresearch.study import Study

    pool = pool_of(args, trials)
    study = Study(Path(args.study))
    remote = remote_of(study, args.push_to) if args.push_every else None
    publisher = Publisher(study, remote, args.push_models) if args.push_every else None
    study.log.parent.mkdir(parents=True, exist_ok=True)
    narrator = Narrator(study.log, args.quiet)
    if publisher is not None and remote is None:
        narrator.say(f"There is no git remote, so results are only committed, to branch {publisher.branch}.")
    options = Options(
        trials=trials_cap,
        seed=trials.base.seed,
        guard=guard,
        cooldown=COOLDOWN if trials.is_external else 0.0,
        publish_every=args.push_every,
        sweep=sweep,
        longest=longest,
    )
    Controller(study, strategy, trials.comparable, pool, narrator, options, publisher).run()
    return 0


def pool_of(args: argparse.Namespace, trials: TrainingTrials) -> Pool:
    """Where the trials run, with their limits."""
    from rl_training.autoresearch.training import PRELOAD
    from rl_training.autoresearch.workers import Limits, WorkerPool

    limits = Limits(args.timeout, int(args.memory * 2**30), args.silence)
    if args.executor == "ray":
        from rl_training.autoresearch.ray_workers import RayPool

        return RayPool(trials, args.jobs, limits, args.address or "auto", PRELOAD)
    if args.address is not None:
        raise UsageError("--address is that of a Ray cluster; say --executor ray with it.")
    return WorkerPool(trials, args.jobs, limits, PRELOAD)
