"""axiomrl's figures for `run.py`, run by the interpreter of a venv of its own; prints one JSON line.

    .venv-peers-rl/bin/python benchmarks/algorithms/peer.py cartpole ppg 20480 11
    .venv-peers-rl/bin/python benchmarks/algorithms/peer.py drq

As published it evaluates five episodes after every rollout, which cannot be switched off; here that is patched out, so
that only its learning is timed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

CARTPOLE = {"num_steps": 128, "update_epochs": 4, "minibatch_size": 128, "learning_rate": 2.5e-4}


def cartpole(algorithm: str, steps: int, seed: int) -> dict[str, Any]:
    """Env steps a CPU second, and the deterministic return after them over 20 episodes."""
    from axiomrl.experiment.config import TrainConfig

    trainer = import_module(f"axiomrl.runtime.{algorithm}_trainer")
    name = "_evaluate_ppg_policy" if algorithm == "ppg" else "_evaluate_policy"
    models: list[Any] = []

    def remember(model: Any, *_: Any, **__: Any) -> dict[str, float]:
        models[:] = [model]
        return {"eval_return_mean": 0.0, "eval_return_std": 0.0, "eval_episodes": 0.0}

    setattr(trainer, name, remember)
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig(
            algo=algorithm,
            env_id="CartPole-v1",
            seed=seed,
            total_timesteps=steps,
            output_dir=Path(folder),
            device="cpu",
            num_envs=4,
            algo_kwargs=dict(CARTPOLE),
        )
        start = time.process_time()
        getattr(trainer, f"train_{algorithm}")(config)
        seconds = time.process_time() - start
    return {"rate": steps / seconds, "return": cartpole_return(models[0])}


def cartpole_return(model: Any, episodes: int = 20) -> float:
    """The mean return of the model's own most likely actions."""
    import gymnasium as gym

    env, total = gym.make("CartPole-v1"), 0.0
    for episode in range(episodes):
        observation, _ = env.reset(seed=1000 + episode)
        ended = False
        while not ended:
            with torch.no_grad():
                action = model.act(torch.as_tensor(observation)[None], deterministic=True).actions.item()
            observation, reward, terminated, truncated, _ = env.step(int(action))
            total, ended = total + float(reward), terminated or truncated
    return total / episodes


def drq(repeats: int = 6) -> dict[str, float]:
    """CPU milliseconds of one update of 128 stacks 9×84×84, the best of several."""
    from axiomrl.algorithms.drq import DrQ
    from axiomrl.models.cnn.drq import CNNDrQModel

    model = CNNDrQModel(obs_shape=(9, 84, 84), action_dim=2)
    algorithm = DrQ(model=model, learning_rate=1e-3, gamma=0.99, alpha=0.1, tau=0.01, augmentation_pad=4)
    images = torch.randint(0, 256, (2, 128, 9, 84, 84), dtype=torch.uint8)
    batch = {
        "obs": images[0],
        "next_obs": images[1],
        "actions": torch.rand(128, 2),
        "rewards": torch.zeros(128),
        "dones": torch.zeros(128),
    }
    times = []
    for _ in range(repeats):
        start = time.process_time()
        algorithm.update(batch, global_step=0)
        times.append(time.process_time() - start)
    return {"milliseconds": 1000 * min(times)}


def main(argv: list[str]) -> int:
    """Measure what is asked for."""
    torch.set_num_threads(1)
    figures = cartpole(argv[1], int(argv[2]), int(argv[3])) if argv[0] == "cartpole" else drq()
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
