"""`evaluate` on the embedded world: the right episodes on the right tracks, the same for the same seed."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from rl_training import PPO
from rl_training.envs.scene_host import WorldHost
from rl_training.envs.spec import ActionSpec, EnvSpec, Limits, ObservationSpec, StartSpec
from rl_training.errors import TrackError, UsageError
from rl_training.experiment.config import TrainConfig
from rl_training.protocol.server import SimServer
from rl_training.protocol.sessions import ServerOptions
from rl_training.runtime import scoring
from rl_training.runtime.building import build_model
from rl_training.runtime.environments import DEFAULT_MAX_STEPS, make_env
from rl_training.runtime.evaluation import baseline_returns, evaluate
from rl_training.runtime.scoring import RandomPolicy, score_in

SPEC = EnvSpec(
    tracks=("generated_track",),
    observation=ObservationSpec(16, 12, camera_width=16, camera_height=12),
    action=ActionSpec(throttle_max=0.5, normalized=True),
    start=StartSpec(anywhere=True, offset=1.0, angle=10.0),
    limits=Limits(max_cte=4.0, max_steps=60),
    reward="race",
)


class Ahead:
    """Straight on."""

    def __init__(self, throttle: float = 0.0) -> None:
        self.throttle = throttle
        self.batches: list[int] = []

    def predict(self, observation: Any, *_: Any, **__: Any) -> tuple[Any, None]:
        self.batches.append(len(observation))
        return np.tile([0.0, self.throttle], (len(observation), 1)).astype(np.float32), None


def test_every_track_gets_its_episodes_in_one_batch() -> None:
    model = Ahead()
    found = evaluate(model, SPEC, episodes=6, tracks=["generated_track", "warren", "waveshare"])
    assert [len(found.of(track)) for track in found.tracks] == [6, 6, 6]
    assert set(model.batches) == {18}
    assert found.training_tracks == ("generated_track",)
    assert {episode.track for episode in found.unseen} == {"warren", "waveshare"}
    assert all(episode.length <= 60 and episode.speed > 0.0 for episode in found.episodes)


def test_the_same_seed_gives_the_same_episodes() -> None:
    runs = [evaluate(Ahead(), SPEC, episodes=5, seed=seed).episode_rewards for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_figures_agree_with_the_reward_that_pays_progress() -> None:
    """`race` pays at most 20 a metre and a crash costs 5, as long as the car stays on the road."""
    found = [episode for episode in evaluate(Ahead(-0.9), SPEC, episodes=6).episodes if episode.cte_max < 3.0]
    assert found
    for episode in found:
        paid = episode.reward + 5.0 * episode.crashed
        closeness = 1.0 - episode.cte_mean / SPEC.limits.max_cte
        assert paid == pytest.approx(20.0 * episode.progress * closeness, rel=0.25)
        assert 0.0 < paid <= 20.0 * episode.progress
        assert episode.driven >= 0.9 * episode.progress


def test_a_spec_without_a_limit_gets_one() -> None:
    endless = EnvSpec(observation=SPEC.observation, limits=Limits(max_cte=1e9))
    found = evaluate(Ahead(0.0), EnvSpec.from_dict(endless.to_dict()), episodes=1, max_steps=30)
    assert (found.max_steps, found.episodes[0].length, found.episodes[0].end) == (30, 30, "time_limit")
    parked = evaluate(Parked(), endless, episodes=1)
    assert parked.episodes[0].length == parked.max_steps == DEFAULT_MAX_STEPS


class Parked(Ahead):
    """Asks for no throttle."""

    def predict(self, observation: Any, *_: Any, **__: Any) -> tuple[Any, None]:
        return np.zeros((len(observation), 2), np.float32), None


def test_the_gap_needs_the_training_tracks_too() -> None:
    alone = evaluate(Ahead(), SPEC, episodes=3, tracks=["warren"])
    compared = evaluate(Ahead(), SPEC, episodes=3, tracks=["warren"], with_gap=True)
    training = evaluate(Ahead(), SPEC, episodes=3)
    assert alone.generalization_gap is None
    assert compared.episodes == alone.episodes
    assert compared.generalization_gap == pytest.approx(training.mean_reward - alone.mean_reward)


def test_simulators_over_tcp_give_the_same_episodes() -> None:
    WorldHost().warm_up()
    spec = replace(SPEC, tracks=("waveshare", "warren"), start=StartSpec())
    servers = [SimServer(WorldHost(), port=0, options=ServerOptions(lockstep=True, seed=0)) for _ in range(2)]
    threads = [threading.Thread(target=server.serve_forever) for server in servers]
    for thread in threads:
        thread.start()
    try:
        sim = ",".join("{}:{}".format(*server.address) for server in servers)
        there, here = evaluate(Ahead(), spec, episodes=1, sim=sim), evaluate(Ahead(), spec, episodes=1)
    finally:
        for server, thread in zip(servers, threads):
            server.stop()
            thread.join()
    assert there.episodes == here.episodes


def test_random_driving_is_the_baseline() -> None:
    returns = baseline_returns(SPEC, episodes=8)
    assert len(returns) == 8
    assert np.mean(returns) < 100.0
    assert returns == baseline_returns(SPEC, episodes=8)


def test_mistakes_are_told() -> None:
    with pytest.raises(UsageError, match="episodes"):
        evaluate(Ahead(), SPEC, episodes=0)
    with pytest.raises(TrackError, match="'warren'"):
        evaluate(Ahead(), SPEC, tracks=["waren"])


def test_evaluations_during_training_end_too(monkeypatch: pytest.MonkeyPatch) -> None:
    config = TrainConfig(donkey=replace(SPEC, limits=Limits()))
    training, evaluation = make_env(config, seed=0), make_env(config, 2, seed=0)
    assert training.env_spec.limits.max_steps == 0
    assert evaluation.env_spec.limits.max_steps == DEFAULT_MAX_STEPS
    endless = make_env(TrainConfig(env="Pendulum-v1", env_kwargs={"max_episode_steps": -1}), 1, seed=0)
    monkeypatch.setattr(scoring, "LONGEST_EPISODE", 300)
    with pytest.raises(UsageError, match="still runs after 300 steps; set a limit"):
        score_in(RandomPolicy(endless.action_space, 0), endless, 1, seed=0)
    for env in (training, evaluation, endless):
        env.close()


def test_a_model_of_another_env_is_refused() -> None:
    cartpole = TrainConfig(env="CartPole-v1", algo_kwargs={"n_steps": 8, "batch_size": 8})
    env = make_env(cartpole, 1, seed=0)
    with pytest.raises(UsageError, match=r"The model was trained on Box\(.*name the config of its training"):
        evaluate(build_model(cartpole, env), SPEC, episodes=1)
    env.close()


def test_images_may_have_their_channels_last(brightness: Any) -> None:
    class ChannelsLast(gym.ObservationWrapper[Any, Any, Any]):
        observation_space = Box(0, 255, (40, 40, 2), np.uint8)

        def observation(self, observation: Any) -> Any:
            return np.moveaxis(observation, 0, -1)

    def env() -> DummyVecEnv:
        return DummyVecEnv([lambda: Monitor(ChannelsLast(brightness(size=40)))])

    model = PPO("CnnPolicy", env(), n_steps=8, batch_size=8, device="cpu")
    assert model.observation_space.shape == (2, 40, 40)
    assert len(score_in(model, env(), 2, seed=0).episode_rewards) == 2
