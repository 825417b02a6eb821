"""One training run from its config to its result, for every algorithm: build, measure the yardsticks, learn, evaluate,
save. What differs between algorithms is in their classes.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from rl_training.algorithms.randomness import random_state, set_random_state
from rl_training.errors import SimulatorError, TrainingError, UsageError
from rl_training.experiment.atomic import replacing, sha256
from rl_training.experiment.checkpoint import remove_leftovers
from rl_training.experiment.config import EMBEDDED, TrainConfig
from rl_training.experiment.registry import algorithm_spec
from rl_training.experiment.run_folder import RunFolder
from rl_training.report.learning_curve import save_learning_curve
from rl_training.runtime.building import build_model
from rl_training.runtime.environments import EVALUATION_SEED, make_env
from rl_training.runtime.metrics_log import make_logger
from rl_training.runtime.milestones import Looks, Milestones
from rl_training.runtime.progress import Laps, PrintSteps, ShowProgress
from rl_training.runtime.resume_point import load_resume_point, save_resume_point
from rl_training.runtime.scoring import PARALLEL, Learned, RandomPolicy, Score, compare, score_in

DIVERGED = 1e9  # no weight of a policy that works is as large
FINAL_SEED = 2 * EVALUATION_SEED  # of the last evaluation: episodes that chose no checkpoint


def train(
    config: TrainConfig,
    run: RunFolder,
    *,
    resume: bool = False,
    quiet: bool = False,
    print_steps: bool = False,
    callbacks: Sequence[BaseCallback] = (),
) -> dict[str, Any]:
    """Fill the run folder; the result is what ``result.json`` says. ``resume`` goes on from the last resume point."""
    clock, cpu = time.monotonic(), time.process_time()
    torch.set_num_threads(config.torch_threads)
    remove_leftovers(run)
    watchers = [*_watchers(config, quiet, print_steps), *callbacks]
    with ExitStack() as open_envs:
        with _noting_faults(run, but=UsageError):  # a run that cannot begin has no outcome
            env, eval_env = _envs(config, open_envs)
            if resume or eval_env is not env:
                eval_env.reset()  # what is missing, a track or a simulator, is told before anything has changed
            model = load_resume_point(run, config, env) if resume else build_model(config, env)
            yardsticks = run.yardsticks() if resume else _yardsticks(config, run, model, eval_env)
        run.result_file.unlink(missing_ok=True)  # only now: a run that cannot go on keeps the outcome it had
        with _noting_faults(run):
            result = _train(config, run, model, eval_env, yardsticks, watchers)
    seconds = time.monotonic() - clock
    result |= {"elapsed_sec": round(seconds, 3), "cpu_sec": round(time.process_time() - cpu, 3), "pid": os.getpid()}
    run.write_result(result)
    return result


@contextmanager
def _noting_faults(run: RunFolder, but: type[Exception] | tuple[()] = ()) -> Iterator[None]:
    """Make an error other than ``but`` the outcome of a run that has none."""
    try:
        yield
    except but:
        raise
    except Exception as error:
        if not run.result_file.exists():
            run.write_result({"run_status": _status_of(error), "error": str(error) or type(error).__name__})
        raise


def _envs(config: TrainConfig, closing: ExitStack) -> tuple[VecEnv, VecEnv]:
    """The envs of the training and of evaluations; a simulator over TCP has one car for both."""
    env = make_env(config, seed=config.seed)
    closing.callback(env.close)
    if config.sim != EMBEDDED:
        return env, env
    eval_env = make_env(config, min(config.eval_episodes, PARALLEL), seed=config.seed + EVALUATION_SEED)
    closing.callback(eval_env.close)
    return env, eval_env


def _status_of(error: Exception) -> str:
    if isinstance(error, SimulatorError):
        return "sim_lost"
    if isinstance(error, TrainingError):
        return "invalid"
    return "out_of_memory" if isinstance(error, MemoryError) else "crashed"


def _watchers(config: TrainConfig, quiet: bool, print_steps: bool) -> list[BaseCallback]:
    laps = Laps()
    if print_steps:
        return [laps, PrintSteps()]
    return [laps] if quiet else [laps, ShowProgress(config.total_timesteps, laps)]


def _train(
    config: TrainConfig,
    run: RunFolder,
    model: BaseAlgorithm,
    eval_env: VecEnv,
    yardsticks: dict[str, list[float]] | None,
    callbacks: list[BaseCallback],
) -> dict[str, Any]:
    start = int(model.num_timesteps)
    looks = Looks(run, config, eval_env, until=start)
    model.set_logger(make_logger(run.path, until=start))
    began, cpu = time.monotonic(), time.process_time()
    with _sound(model):
        _learn(model, config, [Milestones(run, config, looks, start), *callbacks])
    training = {"train_sec": time.monotonic() - began, "train_cpu_sec": time.process_time() - cpu}
    if config.eval_interval:
        looks.look(model)
    save_resume_point(run, model)
    with replacing(run.model) as temporary:
        model.save(temporary)
    chosen, name = _chosen(config, run, model)
    final = score_in(chosen, eval_env, config.eval_episodes, config.seed + FINAL_SEED)
    save_learning_curve(run.path)
    return _result(config, run, model, final, name, yardsticks) | {k: round(v, 3) for k, v in training.items()}


@contextmanager
def _sound(model: BaseAlgorithm) -> Iterator[None]:
    """Say of a policy that diverged that it did, whatever it was that could not go on with its numbers."""
    fault: Exception | None = None
    try:
        yield
    except Exception as error:
        fault = error
    # NaN is not below anything, and weights that large make NaN of what they are given.
    if not all(bool((weight.abs() < DIVERGED).all()) for weight in model.policy.parameters()):
        raise TrainingError(
            f"After {model.num_timesteps} steps the policy's weights are beyond all measure; lower the learning rate."
        ) from fault
    if fault is not None:
        raise fault


def _learn(model: BaseAlgorithm, config: TrainConfig, callbacks: list[BaseCallback]) -> None:
    """Up to the config's total; SB3 counts from where the model stands."""
    left = config.total_timesteps - model.num_timesteps
    try:
        if left > 0:
            model.learn(left, callback=callbacks, log_interval=1, reset_num_timesteps=False)
    finally:
        model.logger.close()
        for callback in callbacks:
            if isinstance(callback, ShowProgress):
                callback.close()


def _yardsticks(
    config: TrainConfig, run: RunFolder, model: BaseAlgorithm, env: VecEnv
) -> dict[str, list[float]] | None:
    """Rewards of a random and of the untrained policy, kept in the run folder for a resume."""
    if not config.baseline_episodes:
        return None
    seed = config.seed + FINAL_SEED
    random = score_in(RandomPolicy(env.action_space, seed), env, config.baseline_episodes, seed)
    # As it explores: an untrained policy's greedy action is one lucky or unlucky constant.
    generators = random_state(model)
    untrained = score_in(model, env, config.baseline_episodes, seed, deterministic=False)
    set_random_state(model, generators)
    found = {"random": random.episode_rewards, "untrained": untrained.episode_rewards}
    run.write_yardsticks(found)
    return found


def _chosen(config: TrainConfig, run: RunFolder, model: BaseAlgorithm) -> tuple[BaseAlgorithm, str]:
    """The policy that counts, the best of the looks where there were any, and its file."""
    if not config.eval_interval or not run.best_model.exists():
        return model, run.model.name
    spec = algorithm_spec(config.algo)
    return spec.load(spec.algorithm(), run.best_model, None, config.device), run.best_model.name


def _result(
    config: TrainConfig,
    run: RunFolder,
    model: BaseAlgorithm,
    final: Score,
    name: str,
    yardsticks: dict[str, list[float]] | None,
) -> dict[str, Any]:
    valid = math.isfinite(final.mean_reward)
    verdict: Learned | None = None
    if yardsticks and valid:
        verdict = compare(final.mean_reward, yardsticks["random"], yardsticks["untrained"], config.margin)
    status = "ok" if verdict is None or verdict.learned else "no_learning"
    files = [file for file in (run.model, run.best_model) if file.exists()]
    return {
        "run_status": status if valid else "invalid",
        "algo": config.algo,
        "env": config.env_name,
        "seed": config.seed,
        "timesteps": int(model.num_timesteps),
        "mean_reward": final.mean_reward if valid else None,
        "std_reward": final.std_reward if valid else None,
        "episode_rewards": final.episode_rewards if valid else [],
        "episode_lengths": [int(length) for length in final.episode_lengths],
        "figures": final.figures if valid else {},
        "summary": final.means if valid else {},
        "baseline": asdict(verdict) if verdict else None,
        "margin": config.margin,
        "model": name,
        "model_path": str(run.path / name),
        "sha256": {file.name: sha256(file) for file in files},
    }
