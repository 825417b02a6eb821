"""Saving a run so that it goes on as if nothing had happened: weights, optimisers, counters, replay, the state of every
generator, and the envs' own state where they can say it.

The embedded world can; so can envs that pickle, as the classic ones of Gymnasium do. Others begin new episodes.
"""

from __future__ import annotations

import pickle
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
from gymnasium.utils import EzPickle
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from rl_training.algorithms.randomness import random_state, set_random_state
from rl_training.envs.vec_env import DonkeyVecEnv
from rl_training.errors import ModelError
from rl_training.experiment.checkpoint import latest_resume_point, resume_point, saving_resume_point
from rl_training.experiment.config import TrainConfig
from rl_training.experiment.registry import algorithm_spec
from rl_training.experiment.run_folder import RunFolder


def save_resume_point(run: RunFolder, model: BaseAlgorithm) -> None:
    """Valid between an update and the rollout after it, when nothing is half collected."""
    if resume_point(run, model.num_timesteps).exists():
        return
    with saving_resume_point(run, model.num_timesteps) as folder:
        state = {"random": random_state(model), "env": _env_state(model.get_env())}
        (folder / "state.pkl").write_bytes(pickle.dumps(state))
        model.save(folder / "model.zip")
        if isinstance(model, OffPolicyAlgorithm):
            model.save_replay_buffer(folder / "replay.pkl")


def load_resume_point(run: RunFolder, config: TrainConfig, env: VecEnv) -> BaseAlgorithm:
    """The model as it was, on ``env``, which is put into its old state."""
    folder = latest_resume_point(run)
    spec = algorithm_spec(config.algo)
    model: BaseAlgorithm = spec.load(spec.algorithm(), folder / "model.zip", env, config.device)
    try:
        if isinstance(model, OffPolicyAlgorithm):
            model.load_replay_buffer(folder / "replay.pkl", truncate_last_traj=False)
        state = pickle.loads((folder / "state.pkl").read_bytes())
        if not _restore_env(env, state["env"]):
            model._last_obs = None  # the first rollout then begins with new episodes
        set_random_state(model, state["random"])
    except (pickle.UnpicklingError, ImportError, AttributeError, LookupError, TypeError, ValueError) as error:
        # The files are whole, so it is another version of this package or of one it needs that wrote them.
        raise ModelError(
            f"{folder} cannot be read by the versions installed here ({error}); run.json says which ones wrote it."
        ) from error
    return model


def _env_state(env: VecEnv | None) -> Any:
    """What `_restore_env` needs, None where the envs cannot be saved."""
    env = None if env is None else env.unwrapped
    if isinstance(env, DonkeyVecEnv):
        return env.save_state()
    if not isinstance(env, DummyVecEnv):
        return None
    if any(isinstance(single.unwrapped, EzPickle) for single in env.envs):
        return None  # these come back as they were made, before their first reset
    try:
        return cloudpickle.dumps(vars(env))
    except (TypeError, AttributeError, pickle.PicklingError):  # an env that holds a window or a socket
        return None


def _restore_env(env: VecEnv, state: Any) -> bool:
    if state is None:
        return False
    env = env.unwrapped
    if isinstance(env, DonkeyVecEnv):
        env.load_state(state)
    else:
        vars(env).update(pickle.loads(state))
    return True
