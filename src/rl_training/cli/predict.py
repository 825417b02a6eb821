"""Ask a model for its action on one observation: an image or array file, or the env's own first observation."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from rl_training.errors import UsageError

EXAMPLES = """examples:
  donkey-rl predict --model runs/first
  donkey-rl predict --model runs/first/best_model.zip --observation frame.png
  donkey-rl predict --model runs/cartpole --observation "[0.0, 0.1, 0.02, -0.1]" --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl predict`."""
    parser.add_argument("--model", required=True, help="model.zip or run folder")
    parser.add_argument("--observation", help="a .npy file, a camera picture, or JSON numbers (the env's first)")
    parser.add_argument("--config", help="preset or file that says the algorithm and env, for a model without its run")
    parser.add_argument("--seed", type=int, default=0, help="of the env's first observation (0)")
    parser.add_argument("--stochastic", action="store_true", help="draw the action as in training")
    parser.add_argument("--trust", action="store_true", help="load a model that nothing beside it vouches for")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(args: argparse.Namespace) -> int:
    """Print the action."""
    from rl_training.api import verbs
    from rl_training.experiment.checkpoint import find_checkpoint
    from rl_training.experiment.presets import resolve

    path = Path(args.model)
    config = resolve(config=args.config) if args.config else find_checkpoint(path, trust=args.trust).config
    if config is None:
        raise UsageError(f"There is no config.yaml beside {path}; say with --config what it was trained on.")
    observation = _read(args.observation, config) if args.observation else _first(config, args.seed)
    action = verbs.predict(path, observation, deterministic=not args.stochastic, config=config, trust=args.trust)
    values = np.asarray(action).tolist()
    print(json.dumps({"action": values}) if args.json else f"action: {values}")
    return 0


def _first(config: Any, seed: int) -> Any:
    """The observation an episode begins with."""
    from rl_training.runtime.environments import make_env
    from rl_training.runtime.scoring import checked_seed

    env = make_env(config, 1, seed=checked_seed(seed))
    try:
        return np.asarray(env.reset())[0]
    finally:
        env.close()


def _read(text: str, config: Any) -> Any:
    """An observation from a file or from JSON; a camera picture is cut as the policy sees it."""
    path = Path(text)
    if path.suffix == ".npy" and path.is_file():
        try:
            return np.load(path, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise UsageError(f"{path} is no plain array file; save the observation with numpy.save.") from error
    if path.is_file() and config.is_donkey:
        return _picture(path, config.donkey.observation)
    try:
        return np.asarray(json.loads(text), np.float32)
    except (ValueError, TypeError) as error:
        raise UsageError(f"--observation '{text}' is neither a .npy file, a picture nor JSON numbers.") from error


def _picture(path: Path, view: Any) -> Any:
    import cv2

    from rl_training.envs.cameras import cut_from_frame, paint_commands

    picture = cv2.imread(str(path), cv2.IMREAD_COLOR)
    if picture is None:
        raise UsageError(f"{path} is no picture that can be read; expected a PNG or JPEG of the camera.")
    frame = np.asarray(picture[..., ::-1], np.uint8)
    if frame.shape[:2] != (view.camera_height, view.camera_width):
        raise UsageError(
            f"{path} is {frame.shape[1]}x{frame.shape[0]}; the camera's frames are "
            f"{view.camera_width}x{view.camera_height}."
        )
    seen = cut_from_frame(frame, view)
    if view.command_rows:  # a car at rest, as at the start of an episode
        paint_commands(seen[None], np.zeros((1, 2)), view.command_rows)
    stacked = np.concatenate([seen] * view.stack, axis=2)
    return np.moveaxis(stacked, -1, 0) if view.channels_first else stacked
