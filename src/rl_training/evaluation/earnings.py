"""What each reward pays to an honest slow driver and to each cheater, all of them in one batch and on the same steps.

A cheater beats a reward when it earns more than a third of the honest return, or when the honest one earns nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rl_training.envs.batch import DonkeyBatch
from rl_training.envs.embedded import frame_of
from rl_training.envs.frame import info_of
from rl_training.envs.spec import ActionSpec, EnvSpec, Limits, ObservationSpec
from rl_training.evaluation.cheaters import CHEATERS, HONEST_SPEED, honest
from rl_training.evaluation.drivers import Driver
from rl_training.wrappers.rewards import REWARDS, make_reward

MARGIN = 3.0  # the honest return must be this many times a cheater's
MAX_CTE = 8.0
RULES = {
    "strict": Limits(max_cte=MAX_CTE),
    # As a client that overlooks cars far out and a simulator that reports no hit: nothing but time ends an episode.
    "lenient": Limits(max_cte=1e9, end_on_hit=False),
}
_SMALL = ObservationSpec(8, 6, camera_width=8, camera_height=6)  # nobody looks
_IMAGE = np.zeros((6, 8, 3), np.uint8)


@dataclass(frozen=True)
class Earnings:
    """Returns of one episode each: honest (rewards,) and cheaters (rewards, cheaters); laps driven by each."""

    track: str
    rules: str
    rewards: tuple[str, ...]
    cheaters: tuple[str, ...]
    honest: NDArray[np.float64]
    cheating: NDArray[np.float64]
    honest_laps: float

    def share(self, reward: str) -> dict[str, float]:
        """Each cheater's return as a share of the honest one; infinite where honesty earns nothing."""
        k = self.rewards.index(reward)
        own = self.honest[k]
        return {
            name: float(value / own) if own > 0.0 else float("inf")
            for name, value in zip(self.cheaters, self.cheating[k])
        }

    def beaten_by(self, reward: str) -> set[str]:
        """The cheaters that beat this reward."""
        return {name for name, share in self.share(reward).items() if share > 1.0 / MARGIN}


def measure_earnings(
    track: str, rules: str = "strict", rewards: Sequence[str] = tuple(REWARDS), laps: float = 1.1
) -> Earnings:
    """One episode of every driver, as long as the honest one needs for `laps`."""
    spec = EnvSpec(
        tracks=(track,), observation=_SMALL, action=ActionSpec(throttle_min=-1.0), limits=RULES[rules], reward="donkey"
    )
    names = tuple(CHEATERS)
    batch = DonkeyBatch(spec, len(names) + 1, seed=0)
    batch.reset()
    loaded = batch.world.track(0)
    drivers = [honest(loaded), *(CHEATERS[name].make(loaded) for name in names)]
    totals, steps = np.zeros((len(rewards), batch.num_envs)), int(laps * loaded.length / HONEST_SPEED * 20.0)
    paying = [make_reward(name, batch.num_envs) for name in rewards]
    for car in range(batch.num_envs):
        for reward in paying:
            reward.begin(car, batch.world.state)
    running = np.ones((len(rewards), batch.num_envs), np.bool_)
    for _ in range(steps):
        _, terminated, truncated = batch.advance(_actions(batch, drivers))
        assert batch.moment is not None
        moment = replace(batch.moment, max_cte=MAX_CTE)
        for k, reward in enumerate(paying):
            pay, ended = reward(moment)
            totals[k] += np.where(running[k], pay, 0.0)
            running[k] &= ~(ended | terminated | truncated)
        if not running.any():
            break
    driven = float(batch.episode_info(0)["laps"])
    batch.close()
    return Earnings(track, rules, tuple(rewards), names, totals[:, 0], totals[:, 1:], driven)


def _actions(batch: DonkeyBatch, drivers: Sequence[Driver]) -> NDArray[np.float32]:
    infos = (info_of(frame_of(batch.world, i, _IMAGE)) for i in range(batch.num_envs))
    return np.array([driver(info) for driver, info in zip(drivers, infos)], np.float32)
