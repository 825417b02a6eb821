"""axiomrl's figures for `run.py`, run by the interpreter of a venv of its own; prints one JSON line.

    .venv-peers-rl/bin/python benchmarks/algorithms/peer.py cartpole ppg 20480 11
    .venv-peers-rl/bin/python benchmarks/algorithms/peer.py pendulum drq 60
    .venv-peers-rl/bin/python benchmarks/algorithms/peer.py drq

As published it evaluates five episodes after every rollout, which cannot be switched off; here that is patched out, so
that only its learning is timed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import yaml

CARTPOLE = {"num_steps": 128, "update_epochs": 4, "minibatch_size": 128, "learning_rate": 2.5e-4}


def clock() -> float:
    """Seconds of this process on one thread, of the wall on several, as on our side."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def without_evaluation(algorithm: str) -> tuple[Any, list[Any]]:
    """The trainer's module with its evaluation patched out, and where the model it would have evaluated is put."""
    trainer = import_module(f"axiomrl.runtime.{algorithm}_trainer")
    name = "_evaluate_policy" if algorithm == "ppo" else f"_evaluate_{algorithm}_policy"
    models: list[Any] = []

    def remember(model: Any = None, *_: Any, **__: Any) -> dict[str, float]:
        models[:] = [model]
        return {"eval_return_mean": 0.0, "eval_return_std": 0.0, "eval_episodes": 0.0}

    assert hasattr(trainer, name), f"{trainer.__name__} has no {name}"
    setattr(trainer, name, remember)
    return trainer, models


def cartpole(algorithm: str, steps: int, seed: int) -> dict[str, Any]:
    """Env steps a CPU second, and the deterministic return after them over 20 episodes."""
    from axiomrl.experiment.config import TrainConfig

    trainer, models = without_evaluation(algorithm)
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
        start = clock()
        getattr(trainer, f"train_{algorithm}")(config)
        seconds = clock() - start
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


def pendulum(algorithm: str, updates: int) -> dict[str, float]:
    """Env steps a second with an update each, by the packaged preset; what comes before the updates is taken off."""
    import axiomrl
    from axiomrl.experiment.config import TrainConfig

    trainer, _ = without_evaluation(algorithm)
    preset = "pendulum" if algorithm == "sac" else "pendulum_pixels"
    path = Path(axiomrl.__file__).parent / "assets" / "configs" / algorithm / f"{preset}.yaml"
    values = yaml.safe_load(path.read_text())
    learning_starts, seconds = 150, []
    for steps in (learning_starts, learning_starts, learning_starts + updates):  # the first one also imports
        with tempfile.TemporaryDirectory() as folder:
            kwargs = {**values["algo_kwargs"], "learning_starts": learning_starts, "buffer_capacity": 1_000}
            changed = {"total_timesteps": steps, "output_dir": Path(folder), "device": "cpu", "algo_kwargs": kwargs}
            start = clock()
            getattr(trainer, f"train_{algorithm}")(TrainConfig(**{**values, **changed}))
            seconds.append(clock() - start)
    return {"rate": updates / (seconds[2] - seconds[1])}


def image_update(algorithm: str, repeats: int = 6) -> dict[str, float]:
    """Milliseconds of one update of 128 stacks 9×84×84, the best of several; DrQ-v2's is the mean of its two kinds."""
    name = {"drq": "DrQ", "drqv2": "DrQv2"}[algorithm]
    model = getattr(import_module(f"axiomrl.models.cnn.{algorithm}"), f"CNN{name}Model")(
        obs_shape=(9, 84, 84), action_dim=2
    )
    settings = {"learning_rate": 1e-3, "gamma": 0.99, "tau": 0.01, "augmentation_pad": 4}
    settings |= {"alpha": 0.1} if algorithm == "drq" else {"policy_delay": 2}
    learner = getattr(import_module(f"axiomrl.algorithms.{algorithm}"), name)(model=model, **settings)
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
        start = clock()
        learner.update(batch, global_step=0)
        learner.update(batch, global_step=1)
        times.append((clock() - start) / 2)
    return {"milliseconds": 1000 * min(times)}


def main(argv: list[str]) -> int:
    """Measure what is asked for."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    if argv[0] == "cartpole":
        figures = cartpole(argv[1], int(argv[2]), int(argv[3]))
    elif argv[0] == "pendulum":
        figures = pendulum(argv[1], int(argv[2]))
    else:
        figures = image_update(argv[0])
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
