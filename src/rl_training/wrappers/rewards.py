"""Named reward functions over a batch of cars; a name stands for one formula for ever, so rewards can be compared.

`donkey` is gym-donkeycar's, `speed` the specification's, `race` ours, which no known driver can farm. `v1` to `v7` are
versions that earlier work went through; they are kept to show what each pays to drivers that do not race
(`evaluation/cheaters.py`, docs/rewards.md).

Symbols: v speed [m/s]; closeness c = 1 - min(|cte| / max_cte, 1); e = net displacement / path length over the last
steps, near 0 when driving in circles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rl_training.envs.rules import donkey_reward
from rl_training.errors import ConfigError, did_you_mean
from rl_training.simulator import state as s
from rl_training.wrappers.moment import Flags, Floats, Moment

CRASH = -1.0
SPEED_BONUS = 0.1  # k of v2 to v4 [s/m]
CLASSIC_SPEED = 10.0  # what v5 to v7 divide speed by [m/s]
SHORT_LAP = 5.0  # [s]
SHORT_LAP_FINE = 10.0
LEAST_EFFICIENCY = 0.15
LOW_EFFICIENCY_STEPS = 20
NO_PROGRESS_STEPS = 60
RACE_CRASH = -5.0
VERGE = 1.0  # over this width beyond the road's edge `race` turns from paying progress to charging it [u]


class Reward(Protocol):
    """A reward for all cars of a batch; it may remember what each did in its episode."""

    def begin(self, car: int, cars: Floats) -> None:
        """A new episode of one car, which stands at its start."""

    def __call__(self, moment: Moment) -> tuple[Floats, Flags]:
        """Rewards of this step, and which episodes this reward itself ends."""


class Plain:
    """A reward that is a formula of the moment alone."""

    def __init__(self, formula: Callable[[Moment], Floats]) -> None:
        self._formula = formula

    def begin(self, car: int, cars: Floats) -> None:
        """Nothing is remembered."""

    def __call__(self, moment: Moment) -> tuple[Floats, Flags]:
        return self._formula(moment), np.zeros(len(moment.cars), np.bool_)


def donkey(moment: Moment) -> Floats:
    """gym-donkeycar's own: forward velocity × (1 - |cte| / max_cte)."""
    return donkey_reward(moment.forward, moment.cars[:, s.CTE], moment.crashed, moment.max_cte)


def speed(moment: Moment) -> Floats:
    """v × c, and -1 on a crash."""
    return np.where(moment.crashed, CRASH, moment.speed * moment.closeness)


def _v2(moment: Moment) -> Floats:
    base = donkey(moment)
    return np.where(base > 0.0, base * (1.0 + SPEED_BONUS * moment.speed), base)


def _v5(moment: Moment) -> Floats:
    return moment.speed / CLASSIC_SPEED * moment.closeness


class Efficiency:
    """e of every car over a sliding window of steps; before the window is full, over what there is."""

    def __init__(self, cars: int, window: int) -> None:
        self._places = np.zeros((cars, window + 1, 2))
        self._lengths = np.zeros((cars, window + 1))
        self._now = 0

    def begin(self, car: int, cars: Floats) -> None:
        self._places[car] = cars[car, [s.X, s.Z]] / s.METRE
        self._lengths[car] = 0.0

    def __call__(self, moment: Moment) -> Floats:
        place, before = moment.position, self._places[:, self._now]
        gap = np.hypot(*(place - before).T)
        self._now = (self._now + 1) % self._places.shape[1]
        self._places[:, self._now] = place
        self._lengths[:, self._now] = gap
        oldest = (self._now + 1) % self._places.shape[1]
        driven = self._lengths.sum(axis=1) - self._lengths[:, oldest]
        net = np.hypot(*(place - self._places[:, oldest]).T)
        return np.where(driven > 1e-6, net / np.maximum(driven, 1e-6), 0.0)


class EfficiencyFactor:
    """v3 and v4: a reward multiplied by e; v4b adds a fine for short laps."""

    def __init__(self, cars: int, formula: Callable[[Moment, Floats], Floats], window: int, fine: bool = False) -> None:
        self._efficiency = Efficiency(cars, window)
        self._formula = formula
        self._fine = fine

    def begin(self, car: int, cars: Floats) -> None:
        self._efficiency.begin(car, cars)

    def __call__(self, moment: Moment) -> tuple[Floats, Flags]:
        rewards = self._formula(moment, self._efficiency(moment))
        if self._fine:
            lap = moment.lap_seconds
            short = (lap > 0.0) & (lap < SHORT_LAP)
            rewards = rewards - np.where(short, SHORT_LAP_FINE * SHORT_LAP / np.maximum(lap, 0.05), 0.0)
        return rewards, np.zeros(len(rewards), np.bool_)


def _v3(moment: Moment, e: Floats) -> Floats:
    base = donkey(moment)
    return np.where(base > 0.0, base * (1.0 + SPEED_BONUS * moment.speed * e), base)


def _v4(moment: Moment, e: Floats) -> Floats:
    return moment.closeness * e * (1.0 + SPEED_BONUS * moment.speed)


class EfficiencyGate:
    """v6: v5 that pays nothing while e is low and ends the episode when it stays low.

    With `guarded` it is v7: a crash costs 1, and episodes also end after steps without new progress or on a short lap.
    """

    def __init__(self, cars: int, guarded: bool) -> None:
        self._efficiency = Efficiency(cars, 30)
        self._guarded = guarded
        self._low = np.zeros(cars, np.int64)
        self._idle = np.zeros(cars, np.int64)
        self._furthest = np.zeros(cars)

    def begin(self, car: int, cars: Floats) -> None:
        self._efficiency.begin(car, cars)
        self._low[car] = self._idle[car] = 0
        self._furthest[car] = 0.0

    def __call__(self, moment: Moment) -> tuple[Floats, Flags]:
        low = self._efficiency(moment) < LEAST_EFFICIENCY
        self._low = np.where(low, self._low + 1, 0)
        ended: Flags = self._low >= LOW_EFFICIENCY_STEPS
        rewards = np.where(low, 0.0, _v5(moment))
        if self._guarded:
            furthest = moment.furthest
            self._idle = np.where(furthest > self._furthest, 0, self._idle + 1)
            self._furthest = np.maximum(self._furthest, furthest)
            short = (moment.lap_seconds > 0.0) & (moment.lap_seconds < SHORT_LAP)
            ended = ended | (self._idle >= NO_PROGRESS_STEPS) | short
            rewards = np.where(moment.crashed, CRASH, rewards)
        return np.where(ended, CRASH, rewards), ended


class Race:
    """New progress along the track per second × c.

    Off the road or against a wall it is charged instead of paid. Each hit costs 5 whether it ends the episode or not,
    and so does any other end of it but the limit of time.

    Progress is followed along the track's line by continuous tracking, and only what exceeds the furthest point so far
    counts: nothing that a car does can earn more than the way it really drove, and no stretch pays twice. Closeness and
    the price of a crash are what a beginner learns from (docs/rewards.md has the figures).
    """

    def __init__(self, cars: int) -> None:
        self._furthest = np.zeros(cars)

    def begin(self, car: int, cars: Floats) -> None:
        self._furthest[car] = cars[car, s.FURTHEST] / s.METRE

    def __call__(self, moment: Moment) -> tuple[Floats, Flags]:
        furthest = moment.furthest
        pace = (furthest - self._furthest) / moment.seconds
        self._furthest = furthest
        on_road = 1.0 - 2.0 * np.minimum(moment.beyond_edge / VERGE, 1.0)
        clean = np.where(moment.touching, -1.0, on_road)
        share = np.where(clean > 0.0, clean * moment.closeness, clean)
        return pace * share + RACE_CRASH * (moment.crashed | moment.hit), np.zeros(len(pace), np.bool_)


@dataclass(frozen=True)
class RewardKind:
    """An entry of the registry."""

    description: str
    make: Callable[[int], Reward]  # of the number of cars


REWARDS: dict[str, RewardKind] = {
    "race": RewardKind("new progress along the track per second x closeness, -5 on a crash; cannot be farmed", Race),
    "donkey": RewardKind("gym-donkeycar's: forward velocity x closeness, -1 on a crash", lambda n: Plain(donkey)),
    "speed": RewardKind("speed x closeness, -1 on a crash", lambda n: Plain(speed)),
    "v1": RewardKind("the first version of earlier work, the same as speed", lambda n: Plain(speed)),
    "v2": RewardKind("donkey x (1 + k v) while donkey is positive", lambda n: Plain(_v2)),
    "v3": RewardKind("donkey x (1 + k v e), e over 30 steps", lambda n: EfficiencyFactor(n, _v3, 30)),
    "v4": RewardKind("closeness x e x (1 + k v), e over 30 steps", lambda n: EfficiencyFactor(n, _v4, 30)),
    "v4b": RewardKind(
        "v4 with e over 60 steps and a fine for laps under 5 s", lambda n: EfficiencyFactor(n, _v4, 60, fine=True)
    ),
    "v5": RewardKind("v / 10 x closeness, nothing else", lambda n: Plain(_v5)),
    "v6": RewardKind("v5 while e >= 0.15, ends after 20 steps below", lambda n: EfficiencyGate(n, guarded=False)),
    "v7": RewardKind(
        "v6, -1 on a crash, ends without progress or on a short lap", lambda n: EfficiencyGate(n, guarded=True)
    ),
}


def make_reward(name: str, cars: int) -> Reward:
    """A reward by name, for so many cars."""
    if name not in REWARDS:
        raise ConfigError(f"There is no reward '{name}'.{did_you_mean(name, REWARDS)}")
    return REWARDS[name].make(cars)
