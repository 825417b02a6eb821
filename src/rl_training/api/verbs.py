"""train, resume, evaluate, predict: what the commands do, from Python.

from rl_training import api
run = api.train("ppo/donkey", "runs/first", total_timesteps=30_000)
print(run["mean_reward"], api.evaluate("runs/first").mean_reward)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rl_training.errors import ModelError, UsageError
from rl_training.experiment.checkpoint import Checkpoint, find_checkpoint, require_steps_left
from rl_training.experiment.config import TrainConfig
from rl_training.experiment.presets import resolve
from rl_training.experiment.registry import algorithm_spec
from rl_training.experiment.run_folder import RunFolder, new_run_path

RUNS = Path("runs")


def train(
    config: TrainConfig | str | Path | Mapping[str, Any],
    folder: str | Path | None = None,
    *,
    quiet: bool = True,
    print_steps: bool = False,
    **over: Any,
) -> dict[str, Any]:
    """Train by a config, a preset's name, a config file or plain values, each changed by ``over``; the result.

    The run is kept in ``folder``, or in one of its own below ``runs``.
    """
    wanted = _config(config, over)
    spec = algorithm_spec(wanted.algo)
    run = RunFolder.create(Path(folder) if folder else new_run_path(wanted, RUNS), wanted)
    try:
        result: dict[str, Any] = spec.train(wanted, run, quiet=quiet, print_steps=print_steps)
    except UsageError:
        if not run.result_file.exists():  # it never began
            run.discard()
        raise
    return result


def _config(config: TrainConfig | str | Path | Mapping[str, Any], over: Mapping[str, Any]) -> TrainConfig:
    if isinstance(config, TrainConfig):
        return replace(config, **over)
    if isinstance(config, Mapping):
        return TrainConfig.from_dict({**config, **over})
    return resolve(config=str(config), over=over)


def resume(
    folder: str | Path, *, total_timesteps: int | None = None, quiet: bool = True, print_steps: bool = False
) -> dict[str, Any]:
    """Continue a run from its last resume point, to its own end or to ``total_timesteps``; the result."""
    run = RunFolder.existing(Path(folder))
    config = run.config()
    if total_timesteps is not None:
        config = replace(config, total_timesteps=total_timesteps)
        require_steps_left(run, total_timesteps)
        run.write_config(config)
    result: dict[str, Any] = algorithm_spec(config.algo).train(
        config, run, resume=True, quiet=quiet, print_steps=print_steps
    )
    return result


def evaluate(
    model: str | Path,
    *,
    tracks: Sequence[str] | None = None,
    episodes: int | None = None,
    seed: int | None = None,
    deterministic: bool = True,
    config: TrainConfig | str | None = None,
    trust: bool = False,
) -> Any:
    """Score a model (a zip or a run folder) in the env it was trained in, or in that of ``config``.

    With ``tracks`` a car drives ``episodes`` on each of them and, for the generalisation gap, on those of its training
    unless one is among them: an `Evaluation`, as `donkey-rl evaluate` shows it.
    """
    found = find_checkpoint(Path(model), trust=trust)
    wanted = _config(config, {}) if config is not None else _config_of(found)
    policy = _load(found, wanted)
    if tracks is None:
        return algorithm_spec(wanted.algo).evaluate(policy, wanted, episodes, seed, deterministic=deterministic)
    if not wanted.is_donkey:
        raise UsageError(f"{model} was trained on {wanted.env_name}, which has no tracks.")
    from rl_training.runtime import evaluation

    return evaluation.evaluate(
        policy,
        wanted.donkey,
        episodes=episodes or wanted.eval_episodes,
        seed=evaluation.SEED if seed is None else seed,
        deterministic=deterministic,
        tracks=tracks,
        with_gap=True,
    )


def predict(
    model: str | Path,
    observation: Any,
    *,
    deterministic: bool = True,
    config: TrainConfig | str | None = None,
    trust: bool = False,
) -> Any:
    """The action of a model for one observation or a batch. The model is loaded once and kept while it is used."""
    found = find_checkpoint(Path(model), trust=trust)
    wanted = _config(config, {}) if config is not None else _config_of(found)
    return algorithm_spec(wanted.algo).predict(_load(found, wanted), observation, deterministic)


def _config_of(checkpoint: Checkpoint) -> TrainConfig:
    if checkpoint.config is None:
        raise ModelError(
            f"There is no config.yaml beside {checkpoint.model}, so its algorithm and env are not known; give a config."
        )
    return checkpoint.config


def _load(checkpoint: Checkpoint, config: TrainConfig) -> Any:
    return _loaded(checkpoint.model, checkpoint.model.stat().st_mtime_ns, config.algo, config.device)


@lru_cache(maxsize=4)
def _loaded(path: Path, _changed: int, algo: str, device: str) -> Any:
    spec = algorithm_spec(algo)
    return spec.load(spec.algorithm(), path, None, device)
