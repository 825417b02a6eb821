"""Flags that several commands share, and the config they mean."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rl_training.errors import UsageError
from rl_training.experiment.config import DONKEY, TrainConfig, assignment, env_values, merged
from rl_training.experiment.presets import resolve
from rl_training.experiment.registry import algorithm_spec

SHAPED_REWARD = "speed"  # what --reward-shaping turns on
ENV_REWARD = "donkey"  # what the simulator itself pays


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """What decides a training config."""
    parser.add_argument("--agent", "--algo", dest="agent", help="algorithm: ppo, dqn, sac, ppg, drq or drqv2 (ppo)")
    parser.add_argument("--env", help="env id, such as donkey-warren-track-v0 or CartPole-v1, or a preset's title")
    parser.add_argument("--track", help="track of the car, or several by commas: scene, random:SPLIT or file")
    parser.add_argument("--config", help="preset such as ppo/donkey, or a YAML file (the preset that fits)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one value, such as seed=3")
    parser.add_argument("--timesteps", "--total-timesteps", dest="timesteps", type=int, help="env steps to train")
    parser.add_argument("--num-envs", type=int, help="how many cars or envs at once")
    parser.add_argument("--seed", type=int, help="same seed, same result on one machine")
    parser.add_argument("--learning-rate", type=float, help="of the algorithm")
    parser.add_argument("--eval-episodes", type=int, help="episodes of each evaluation")
    parser.add_argument("--n-steer", type=int, help="steering choices (dqn, ppg)")
    parser.add_argument("--n-throttle", type=int, help="throttle choices (dqn, ppg)")
    parser.add_argument("--reward-shaping", action="store_true", help="pay speed on the road instead of the default")
    # For agent/donkeycar_sb3_runner.py, whose default is the simulator's own reward and not that of the presets.
    parser.add_argument("--env-reward", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--sim", help="'embedded', or HOST:PORT of a running simulator, or several by commas")


def given_config_flags(args: argparse.Namespace) -> list[str]:
    """Flags of `add_config_arguments` on this command line, but for the number of steps."""
    parser = argparse.ArgumentParser(add_help=False)
    add_config_arguments(parser)
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS and action.dest != "timesteps"]
    return [action.option_strings[0] for action in shown if getattr(args, action.dest) != action.default]


def use_threads_of(config: TrainConfig) -> None:
    """Compute on as many threads as the training did: more of them only wait for each other in so small networks."""
    import torch

    torch.set_num_threads(config.torch_threads)


def require_at_least(args: argparse.Namespace, least: Mapping[str, int]) -> None:
    """UsageError for a flag whose number is below the one given here, or is none."""
    for name, bound in least.items():
        value = getattr(args, name, None)
        if value is not None and not bound <= value < float("inf"):
            raise UsageError(f"--{name.replace('_', '-')} is {value}; expected {bound} or more.")


def config_of(args: argparse.Namespace) -> TrainConfig:
    """The preset or file, then the flags, then every --set."""
    over: dict[str, Any] = {}
    for text in args.set:
        over = merged(over, assignment(text))
    flags = _flags(args)
    config = resolve(args.agent, args.env, config=args.config, over=merged(flags, over))
    algorithm_spec(config.algo)  # an unknown one is told before anything is announced
    grid = {"n_steer": args.n_steer, "n_throttle": args.n_throttle}
    if config.env != DONKEY and ("donkey" in flags or any(grid.values())):
        raise UsageError(
            f"--track, --n-steer, --n-throttle and --reward-shaping belong to the car, and the env is '{config.env}'."
        )
    if not config.donkey.action.discrete:  # a study's command line gives the grid to continuous algorithms too
        return config
    action = replace(config.donkey.action, **{name: value for name, value in grid.items() if value is not None})
    return replace(config, donkey=replace(config.donkey, action=action))


def _flags(args: argparse.Namespace) -> dict[str, Any]:
    """Values of the flags that were given."""
    plain = {
        "total_timesteps": args.timesteps,
        "num_envs": args.num_envs,
        "seed": args.seed,
        "eval_episodes": args.eval_episodes,
        "sim": args.sim,
    }
    flags: dict[str, Any] = {name: value for name, value in plain.items() if value is not None}
    if args.learning_rate is not None:
        flags["algo_kwargs"] = {"learning_rate": args.learning_rate}
    donkey = _donkey_flags(args)
    return {**flags, "donkey": donkey} if donkey else flags


def _donkey_flags(args: argparse.Namespace) -> dict[str, Any]:
    donkey: dict[str, Any] = {}
    if args.track:
        donkey["tracks"] = [name.strip() for name in args.track.split(",") if name.strip()]
    if args.reward_shaping:
        donkey["reward"] = SHAPED_REWARD
    elif args.env_reward and args.config is None and (args.env is None or env_values(args.env)["env"] == DONKEY):
        donkey["reward"] = ENV_REWARD
    return donkey
