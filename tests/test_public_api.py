"""train, evaluate, predict and resume from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_training import api
from rl_training.errors import ConfigError, ModelError, SpaceError, UsageError
from rl_training.experiment.config import TrainConfig
from rl_training.runtime.building import build_model
from rl_training.runtime.environments import make_env
from rl_training.runtime.scoring import compare
from tests.runs import TINY, tiny_donkey

CARTPOLE = {
    "env": "CartPole-v1",
    "num_envs": 2,
    "total_timesteps": 64,
    "algo_kwargs": {"n_steps": 16, "batch_size": 32},
    "eval_episodes": 2,
    "baseline_episodes": 1,
}


def test_the_verbs_on_plain_values(tmp_path: Path) -> None:
    result = api.train(CARTPOLE, tmp_path / "run", seed=5)
    assert result["seed"] == 5
    assert result["timesteps"] == 64
    score = api.evaluate(tmp_path / "run", episodes=3)
    assert len(score.episode_rewards) == 3
    assert score.mean_reward == pytest.approx(np.mean(score.episode_rewards))
    action = api.predict(tmp_path / "run", np.zeros(4, np.float32))
    assert action in (0, 1)
    batch = api.predict(tmp_path / "run" / "model.zip", np.zeros((5, 4), np.float32))
    assert batch.shape == (5,)
    assert api.resume(tmp_path / "run", total_timesteps=96)["timesteps"] == 96


def test_a_car_is_evaluated_on_other_tracks_too(tmp_path: Path) -> None:
    api.train(tiny_donkey("ppo"), tmp_path / "run")
    own = api.evaluate(tmp_path / "run", tracks=["generated_track"], episodes=2, seed=7)
    assert own.episode_rewards == pytest.approx(api.evaluate(tmp_path / "run", episodes=2, seed=7).episode_rewards)
    other = api.evaluate(tmp_path / "run", tracks=["warren"], episodes=2, seed=7)
    assert other.generalization_gap == pytest.approx(own.mean_reward - other.mean_reward)
    drawn = api.evaluate(tmp_path / "run", tracks=["warren"], episodes=2, seed=7, deterministic=False)
    assert drawn.episode_rewards != other.episode_rewards
    api.train(CARTPOLE, tmp_path / "pole")
    with pytest.raises(UsageError, match="CartPole-v1, which has no tracks"):
        api.evaluate(tmp_path / "pole", tracks=["warren"])


def test_same_seed_same_result_and_another_seed_another(tmp_path: Path) -> None:
    runs = [api.train(tiny_donkey("ppo", seed=seed), tmp_path / str(k)) for k, seed in enumerate((1, 1, 2))]
    rewards = [run["episode_rewards"] for run in runs]
    assert rewards[0] == rewards[1]
    assert rewards[0] != rewards[2]


def test_a_foreign_model_needs_trust_and_a_config(tmp_path: Path) -> None:
    api.train(CARTPOLE, tmp_path / "run")
    foreign = tmp_path / "model.zip"
    foreign.write_bytes((tmp_path / "run" / "model.zip").read_bytes())
    observation = np.zeros(4, np.float32)
    with pytest.raises(ModelError, match="--trust"):
        api.predict(foreign, observation)
    with pytest.raises(ModelError, match="give a config"):
        api.predict(foreign, observation, trust=True)
    config = TrainConfig.from_dict(CARTPOLE)
    assert api.predict(foreign, observation, trust=True, config=config) in (0, 1)
    (tmp_path / "junk.zip").write_bytes(b"PK junk")
    with pytest.raises(ModelError, match="cannot be loaded as a model of PPO"):
        api.predict(tmp_path / "junk.zip", observation, trust=True, config=config)


@pytest.mark.parametrize(
    ("algo", "over", "says", "error"),
    [
        ("ppo", {"algo_kwargs": {"n_step": 5}}, r"no argument 'n_step'\. Did you mean 'n_steps'\?", ConfigError),
        ("drq", {"algo_kwargs": {"taus": 5}}, r"no argument 'taus'\. Did you mean 'tau'\?", ConfigError),
        ("drq", {"algo_kwargs": {"views": 0}}, "views is 0, next_views 1 and shift 4; expected 1", ConfigError),
        ("drqv2", {"algo_kwargs": {"noise": 3}}, "noise is 3 and shift 4; expected three numbers", ConfigError),
        ("drqv2", {"algo_kwargs": {"noise": [1, -1, 5]}}, "expected three numbers", ConfigError),
        ("ppo", {"algo_kwargs": {"seed": 5}}, "is set from the config's own 'seed'", ConfigError),
        ("ppo", {"policy": "CompactCnn"}, r"PPO has no policy 'CompactCnn'\. Did you mean", ConfigError),
        ("ppo", {"algo_kwargs": {"learning_rate": {"lin": [1, 0]}}}, r"\{linear: \[first, last\]\}", ConfigError),
        ("dqn", {"donkey": {"action": {"n_steer": 0, "n_throttle": 0}}}, "use PPO or SAC", SpaceError),
        ("ppo", {"env": "CartPol-v1"}, r"Gymnasium cannot make .*Did you mean: `CartPole`", ConfigError),
        ("ppo", {"env": "nowhere_at_all:Env-v0"}, "Gymnasium cannot make .*nowhere_at_all", ConfigError),
        ("ppo", {"env": "CartPole-v1", "env_kwargs": {"wind": 3}}, "does not take these env_kwargs", ConfigError),
        ("ppo", {"env": "donkey", "donkey": {"reward": "racing"}}, r"Did you mean 'race'\?", ConfigError),
    ],
)
def test_what_cannot_be_is_said_before_training(
    algo: str, over: dict[str, Any], says: str, error: type[Exception]
) -> None:
    def build() -> None:
        config = tiny_donkey(algo, **over)
        build_model(config, make_env(config, 1, seed=0))

    with pytest.raises(error, match=says):
        build()


def test_schedules_and_extractors_reach_the_algorithm() -> None:
    over = {"algo_kwargs": {**TINY["ppo"], "learning_rate": {"linear": [4e-4, 1e-4]}}}
    config = tiny_donkey("ppo", **over)
    model = build_model(config, make_env(config, seed=0))
    assert [model.lr_schedule(left) for left in (1.0, 0.5, 0.0)] == pytest.approx([4e-4, 2.5e-4, 1e-4])
    dqn = tiny_donkey("dqn")
    built = build_model(dqn, make_env(dqn, 1, seed=0))
    assert type(built.policy.q_net.features_extractor).__name__ == "CompactExtractor"
    assert built.replay_buffer_kwargs == {"frame_stack": 2}


@pytest.mark.parametrize(
    ("mean", "random", "untrained", "learned", "ratio"),
    [
        (30.0, [10.0], [8.0], True, 3.0),
        (14.9, [10.0], [8.0], False, 1.49),  # margin 1.5 of the better yardstick
        (15.0, [8.0], [10.0], True, 1.5),
        (-300.0, [-1200.0], [-1300.0], True, 1.75),  # better by three quarters of 1200
        (-700.0, [-1200.0], [-1300.0], False, 1 + 500 / 1200),
        (1.0, [-2.0], [-3.0], True, 2.5),
        (0.4, [-1.0, 1.0], [-3.0], False, 1.4),  # level 0, spread 1: half a spread is asked for
        (0.6, [-1.0, 1.0], [-3.0], True, 1.6),
        (0.1, [0.0], [0.0], True, None),  # nothing to measure by
        (0.0, [0.0], [0.0], False, None),
        (float("nan"), [1.0], [1.0], False, None),
    ],
)
def test_whether_it_learned(
    mean: float, random: list[float], untrained: list[float], learned: bool, ratio: float | None
) -> None:
    verdict = compare(mean, random, untrained, margin=1.5)
    assert verdict.learned is learned
    assert verdict.ratio == (None if ratio is None else pytest.approx(ratio))
