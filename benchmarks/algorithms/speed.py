"""Speed of collecting and updating, beside the peers; with one thread in CPU seconds, with more on the wall clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import stable_baselines3
from stable_baselines3.common.env_util import make_vec_env

import rl_training
from benchmarks.algorithms.measure import CARTPOLE, Images, Row, against, best_of_turns, peer, row
from rl_training.algorithms.replay import ImageReplayBuffer
from rl_training.experiment.config import TrainConfig, merged
from rl_training.experiment.presets import read_config
from rl_training.runtime.building import build_model
from rl_training.runtime.environments import make_env

ON_POLICY: dict[str, Any] = {"PPO": rl_training.PPO, "PPG": rl_training.PPG, "SB3 PPO": stable_baselines3.PPO}
NAN = float("nan")


def cartpole_cycle(name: str) -> Callable[[], None]:
    """Eight rollouts and their updates, which holds one auxiliary phase of PPG."""
    model = ON_POLICY[name]("MlpPolicy", make_vec_env("CartPole-v1", 4, seed=0), seed=0, **CARTPOLE)
    return lambda: (model.learn(8 * 512, reset_num_timesteps=False), None)[1]


def cartpole_speed(turns: int) -> list[Row]:
    """Env steps a second, updates included."""
    seconds = best_of_turns({name: cartpole_cycle(name) for name in ON_POLICY}, turns)
    rates = {name: 8 * 512 / value for name, value in seconds.items()}
    for name in ("PPO", "PPG"):
        runs = [peer("cartpole", name.lower(), "20480", "11") for _ in range(2)]
        rates[f"axiomrl {name}"] = max((run["rate"] for run in runs if run), default=NAN)
    ppo, ppg = rates["PPO"], rates["PPG"]
    what, unit = "CartPole, 4 envs, env steps", "/s"
    return [
        against(what, "PPO", ppo, unit, ppo / rates["SB3 PPO"], 1.8, "SB3"),
        row(what, "SB3 PPO", rates["SB3 PPO"], unit),
        row(what, "axiomrl PPO", rates["axiomrl PPO"], unit, ppo / rates["axiomrl PPO"]),
        against(what, "PPG", ppg, unit, ppg / rates["axiomrl PPG"], 2.0, "axiomrl"),
        row(what, "axiomrl PPG", rates["axiomrl PPG"], unit),
    ]


def ppo_image_update(turns: int, images: int) -> list[Row]:
    """One epoch over images of 3×120×160, in minibatches of 64 and of 256."""
    rows = []
    for batch in (64, 256):
        settings = {"n_steps": images, "batch_size": batch, "n_epochs": 1, "device": "cpu"}
        models = {
            "PPO": rl_training.PPO("CnnPolicy", Images((3, 120, 160)), **settings),
            "PPO float32": rl_training.PPO("CnnPolicy", Images((3, 120, 160)), precision="float32", **settings),
            "SB3 PPO": stable_baselines3.PPO("CnnPolicy", Images((3, 120, 160)), **settings),
        }
        for model in models.values():
            model.learn(images)
        seconds = best_of_turns({name: model.train for name, model in models.items()}, turns)
        what = f"PPO update, {images} images, minibatch {batch}"
        theirs = seconds["SB3 PPO"]
        for name, bar in (("PPO", 2.2), ("PPO float32", 1.3)):
            ours = seconds[name]
            rows.append(against(what, name, images / ours, "images/s", theirs / ours, bar, "SB3"))
        rows.append(row(what, "SB3 PPO", images / theirs, "images/s"))
    return rows


def drq_models() -> dict[str, Any]:
    """DrQ in three ways and DrQ-v2 on 9×84×84, with enough in their replays to draw from."""
    shared: dict[str, Any] = {"buffer_size": 400, "frame_stack": 3, "learning_starts": 300, "device": "cpu"}
    models = {
        "DrQ": rl_training.DrQ("CnnPolicy", Images((9, 84, 84)), **shared),
        "DrQ float32": rl_training.DrQ("CnnPolicy", Images((9, 84, 84)), precision="float32", **shared),
        "DrQ, shared encoder": rl_training.DrQ(
            "CnnPolicy", Images((9, 84, 84)), policy_kwargs={"share_encoder": True}, **shared
        ),
        "DrQ-v2": rl_training.DrQv2("CnnPolicy", Images((9, 84, 84)), **shared),
        "DrQ-v2, nature": rl_training.DrQv2(
            "CnnPolicy", Images((9, 84, 84)), policy_kwargs={"encoder": "nature"}, **shared
        ),
    }
    return {name: model.learn(300) for name, model in models.items()}


def drq_update(turns: int) -> list[Row]:
    """One update of 128 stacks 9×84×84, sampling included."""
    models = drq_models()
    sac = stable_baselines3.SAC("CnnPolicy", Images((9, 84, 84)), buffer_size=400, learning_starts=300, device="cpu")
    models["SB3 SAC"] = sac.learn(300)
    work = {name: lambda model=model: model.train(1, 128) for name, model in models.items()}
    seconds = best_of_turns(work, turns)
    figures = {name: peer(name) for name in ("drq", "drqv2")}
    axiomrl = {name: found["milliseconds"] / 1000 if found else NAN for name, found in figures.items()}
    what, sb3 = "update of 128 × 9×84×84", seconds["SB3 SAC"]

    def line(name: str, better: float, bar: float, than: str) -> Row:
        return against(what, name, 1000 * seconds[name], "ms", better, bar, than)

    return [
        line("DrQ", axiomrl["drq"] / seconds["DrQ"], 4.0, "axiomrl"),
        line("DrQ", sb3 / seconds["DrQ"], 3.0, "SB3 SAC"),
        line("DrQ float32", sb3 / seconds["DrQ float32"], 2.0, "SB3 SAC"),
        row(what, "DrQ, shared encoder", 1000 * seconds["DrQ, shared encoder"], "ms"),
        row(what, "SB3 SAC", 1000 * sb3, "ms"),
        row(what, "axiomrl DrQ", 1000 * axiomrl["drq"], "ms"),
        row(what, "DrQ-v2", 1000 * seconds["DrQ-v2"], "ms", axiomrl["drqv2"] / seconds["DrQ-v2"]),
        row(what, "DrQ-v2, nature", 1000 * seconds["DrQ-v2, nature"], "ms"),
        row(what, "axiomrl DrQ-v2", 1000 * axiomrl["drqv2"], "ms"),
    ]


def pendulum_speed(updates: int, turns: int) -> list[Row]:
    """Env steps a second with one update each: SAC from the state, DrQ and DrQ-v2 from pictures 9×84×84."""
    rows = []
    for algo, bars in (("sac", "Pendulum"), ("drq", "Pendulum 9×84×84"), ("drqv2", "Pendulum 9×84×84")):
        count = 10 * updates if algo == "sac" else updates
        over: dict[str, Any] = {"algo_kwargs": {"learning_starts": 150, "batch_size": 256 if algo == "sac" else 128}}
        if algo != "sac":
            over["algo_kwargs"] |= {"train_freq": 1, "policy_kwargs": {"encoder": "nature", "share_encoder": False}}
            over["pixels"] = {"size": 84, "grey": False, "action_repeat": 1}
        if algo == "drqv2":
            del over["algo_kwargs"]["policy_kwargs"]["share_encoder"]
        preset = "sac/pendulum" if algo == "sac" else f"{algo}/pendulum_pixels"
        config = TrainConfig.from_dict(merged(read_config(preset), over))
        model = build_model(config, make_env(config, seed=0)).learn(160)
        work = {algo: lambda model=model, count=count: model.learn(count, reset_num_timesteps=False)}
        ours = count / best_of_turns(work, turns)[algo]
        figures = peer("pendulum", algo, str(count))
        theirs = figures["rate"] if figures else NAN
        what = f"{bars}, env steps with an update each"
        rows.append(row(what, algo, ours, "/s", None if theirs != theirs else ours / theirs))
        rows.append(row(what, f"axiomrl {algo}", theirs, "/s"))
    return rows


def replay_memory() -> list[Row]:
    """What 100 thousand transitions of 84×84×9 take, ours and stable-baselines3's; computed, nothing is filled."""
    import numpy as np

    env = Images((9, 84, 84))
    replay = ImageReplayBuffer(100_000, env.observation_space, env.action_space, "cpu", frame_stack=3)
    ours = sum(value.nbytes for value in vars(replay).values() if isinstance(value, np.ndarray)) / 1e9
    theirs = 2 * 100_000 * 9 * 84 * 84 / 1e9
    what = "replay of 100,000 × 9×84×84"
    return [
        row(what, "DrQ, DrQ-v2", ours, "GB", theirs / ours, "≤ 2.3 GB", ours <= 2.3),
        row(what, "SB3", theirs, "GB"),
    ]
