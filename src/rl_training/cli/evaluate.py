"""Drive a trained policy over one or more tracks: rewards, laps, lap times, crashes, smoothness, generalisation gap.

The env is rebuilt from what was saved beside the model, so the policy sees and does what it did in training.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl_training.cli.autoresearch import add_study_argument
from rl_training.cli.console import console, table
from rl_training.cli.options import use_threads_of
from rl_training.errors import ModelError, UsageError, did_you_mean

if TYPE_CHECKING:
    from rl_training.envs.spec import EnvSpec
    from rl_training.evaluation.evaluation import Evaluation, Summary
    from rl_training.experiment.config import TrainConfig

EXAMPLES = """examples:
  donkey-rl evaluate --model runs/first
  donkey-rl evaluate --champion --track mini_monaco,warren --episodes 20
  donkey-rl evaluate --champion --study agent --track all --max-steps 2000 --csv episodes.csv
  donkey-rl evaluate --model runs/first --env donkey-mountain-track-v0 --stochastic --json
  donkey-rl evaluate --model models/champion --track warehouse --sim 127.0.0.1:9091 --episodes 3"""

SEEN_MEAN, UNSEEN_MEAN = 100.0, 50.0  # what a champion is asked for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl evaluate`."""
    parser.add_argument("--model", help="a run folder, or a model.zip in one")
    parser.add_argument("--champion", action="store_true", help="the champion of --study, unless --model is given")
    add_study_argument(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--track", help="T[,T…] or all (default: the tracks of the training)")
    where.add_argument("--env", help="the same by env id, such as donkey-warren-track-v0")
    parser.add_argument("--episodes", type=int, default=10, help="on each track (10)")
    parser.add_argument("--seed", type=int, help="of the first car's episodes; the same seed, the same episodes")
    parser.add_argument("--max-steps", type=int, help="longest episode in steps of 0.05 s (default: as in training)")
    parser.add_argument("--max-cte", type=float, help="how far from the line ends an episode (default: as in training)")
    parser.add_argument("--from-start", action="store_true", help="begin each episode at the scene's own start")
    parser.add_argument("--stochastic", action="store_true", help="draw actions as in training, not the likeliest ones")
    parser.add_argument(
        "--sim", default="embedded", metavar="HOST:PORT", help="simulators to drive in, by commas (embedded)"
    )
    parser.add_argument(
        "--config", help="preset, file or run that says the algorithm and env of a model without its own"
    )
    parser.add_argument("--trust", action="store_true", help="load a model file that nothing vouches for")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.add_argument("--csv", metavar="FILE", help="save one line an episode")


def run(args: argparse.Namespace) -> int:
    """Evaluate and report."""
    if args.max_steps is not None and args.max_steps < 1:
        raise UsageError(f"--max-steps is {args.max_steps}; expected 1 or more.")
    from rl_training.experiment.config import TrainConfig
    from rl_training.runtime.evaluation import SEED, evaluate

    args.model = args.model or str(_champion_of(args))
    model, spec = _load(Path(args.model), args.trust, args.config)
    if isinstance(spec, TrainConfig):
        return _plain(model, spec, args)
    evaluation = evaluate(
        model,
        _changed(spec, args),
        episodes=args.episodes,
        seed=SEED if args.seed is None else args.seed,
        deterministic=not args.stochastic,
        tracks=_tracks(args),
        max_steps=args.max_steps,
        with_gap=True,
        sim=None if args.sim == "embedded" else args.sim,
    )
    if args.csv:
        Path(args.csv).write_text(evaluation.to_csv(), encoding="utf-8")
    if args.json:
        print(json.dumps({"model": args.model, **evaluation.to_dict()}, indent=2))
    else:
        report(evaluation)
    return 0


def _plain(model: Any, config: TrainConfig, args: argparse.Namespace) -> int:
    """A model of any other env, which has rewards and nothing else in common with ours."""
    from rl_training.experiment.registry import algorithm_spec
    from rl_training.runtime.scoring import summary

    if args.track or args.env:
        raise UsageError(f"{args.model} was trained on {config.env_name}, which has no tracks.")
    if args.max_steps or args.max_cte is not None or args.from_start or args.sim != "embedded":
        raise UsageError(
            f"--max-steps, --max-cte, --from-start and --sim belong to the car; {args.model} is for {config.env_name}."
        )
    if args.episodes < 1:
        raise UsageError(f"--episodes is {args.episodes}; expected 1 or more.")
    evaluate = algorithm_spec(config.algo).evaluate
    score = evaluate(model, config, args.episodes, args.seed, deterministic=not args.stochastic)
    if args.csv:
        Path(args.csv).write_text(score.to_csv(), encoding="utf-8")
    result = score.to_dict()
    print(json.dumps({"model": args.model, **result}, indent=2) if args.json else "\n".join(summary(result)))
    return 0


def _champion_of(args: argparse.Namespace) -> Path:
    """The champion's folder, its model checked against the manifest."""
    if not args.champion:
        raise UsageError("There is nothing to evaluate: give --model RUN, or --champion of a --study.")
    from rl_training.autoresearch.champion import ChampionTracker
    from rl_training.autoresearch.study import Study

    champion = ChampionTracker(Study(Path(args.study)).champion)
    champion.load()
    return champion.folder


def _load(path: Path, trust: bool, config_name: str | None = None) -> tuple[Any, EnvSpec | TrainConfig]:
    """The model and the spec of the env it was trained in; the whole config where that env is not ours."""
    from rl_training.experiment.checkpoint import find_checkpoint
    from rl_training.experiment.presets import resolve
    from rl_training.experiment.registry import algorithm_spec

    found = find_checkpoint(path, trust=trust)
    config = resolve(config=config_name) if config_name else found.config
    if config is None:
        raise ModelError(
            f"There is no config.yaml beside {found.model}, so its algorithm and env are not known; "
            "give the run folder that 'train' made, or say with --config what it was trained on."
        )
    use_threads_of(config)
    algorithm = algorithm_spec(config.algo)
    model = algorithm.load(algorithm.algorithm(), found.model, None, config.device)
    return model, config.donkey if config.is_donkey else config


def _changed(spec: EnvSpec, args: argparse.Namespace) -> EnvSpec:
    """The spec with what the command line asks for."""
    from dataclasses import replace

    from rl_training.envs.spec import StartSpec

    if args.max_cte is not None:
        spec = replace(spec, limits=replace(spec.limits, max_cte=args.max_cte))
    return replace(spec, start=StartSpec()) if args.from_start else spec


def _tracks(args: argparse.Namespace) -> list[str] | None:
    if args.env:
        from rl_training.envs.registration import ENV_SCENES

        if args.env not in ENV_SCENES:
            raise UsageError(f"There is no env '{args.env}'.{did_you_mean(args.env, ENV_SCENES)}")
        return [ENV_SCENES[args.env]]
    if args.track == "all":
        from rl_training.simulator.track_file import track_names

        return track_names()
    return [name.strip() for name in args.track.split(",") if name.strip()] if args.track else None


def report(evaluation: Evaluation) -> None:
    """Episode rewards, a table of the tracks, and what is asked of a champion."""
    for track in evaluation.tracks:
        rewards = " ".join(f"{episode.reward:.1f}" for episode in evaluation.of(track))
        console.print(f"{track}: episode rewards {rewards}", soft_wrap=True)
    how = "deterministic" if evaluation.deterministic else "stochastic"
    title = f"Reward '{evaluation.reward}', {how}, at most {evaluation.max_steps} steps an episode"
    grid = table(
        title, "track", "reward", "± std", "came round", "laps", "lap s", "best s", "crashes", "|cte| u", "p95", "m/s",
        "Δsteer", "end",
    )  # fmt: skip
    for track, summary in evaluation.by_track().items():
        known = track in evaluation.training_tracks
        grid.add_row(track if known else f"{track} (unseen)", *_cells(summary))
    console.print(grid)
    for line in verdicts(evaluation):
        console.print(line)


def _cells(summary: Summary) -> list[str]:
    return [
        f"{summary.mean_reward:.1f}",
        f"{summary.std_reward:.1f}",
        f"{100.0 * summary.completed:.0f} %",
        f"{summary.mean_laps:.2f}",
        "-" if summary.mean_lap is None else f"{summary.mean_lap:.2f}",
        "-" if summary.best_lap is None else f"{summary.best_lap:.2f}",
        f"{summary.crashes}/{summary.episodes}",
        f"{summary.cte_mean:.2f}",
        f"{summary.cte_p95:.2f}",
        f"{summary.speed:.2f}",
        f"{summary.steering_change:.3f}",
        ", ".join(f"{count} {cause}" for cause, count in summary.ends.items()),
    ]


def verdicts(evaluation: Evaluation) -> list[str]:
    """The specification's bars, the generalisation gap and whatever looks wrong."""
    from rl_training.evaluation.evaluation import summarize

    lines: list[str] = []
    if evaluation.seen:
        seen = summarize(evaluation.seen)
        mean = seen.mean_reward
        lines.append(_bar(mean > SEEN_MEAN, f"mean_reward {mean:.1f} > {SEEN_MEAN:.0f} on the training tracks"))
        lines.append(_bar(seen.best_laps >= 1.0, f"at least one lap on a training track: {seen.best_laps:.2f}"))
    by_track = evaluation.by_track()
    unseen = {track: by_track[track] for track in evaluation.tracks if track not in evaluation.training_tracks}
    if unseen:
        best = max(unseen, key=lambda track: unseen[track].mean_reward)
        mean = unseen[best].mean_reward
        lines.append(_bar(mean > UNSEEN_MEAN, f"mean_reward {mean:.1f} > {UNSEEN_MEAN:.0f} on an unseen track, {best}"))
    gap = evaluation.generalization_gap
    if gap is not None:
        lines.append(f"Generalisation gap (training - unseen mean reward): {gap:.1f}")
    return lines + [f"SUSPECT  {suspicion}" for suspicion in evaluation.suspicions()]


def _bar(passed: bool, text: str) -> str:
    return f"{'PASS' if passed else 'FAIL'}  {text}"
