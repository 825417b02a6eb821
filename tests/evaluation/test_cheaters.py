"""What each reward pays to drivers that do not race. The table of docs/rewards.md, held here."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from rl_training.evaluation.cheaters import CHEATERS
from rl_training.evaluation.earnings import MARGIN, Earnings, measure_earnings
from rl_training.wrappers.rewards import REWARDS

PLACES = (
    ("generated_track", "strict"),
    ("generated_track", "lenient"),
    ("mountain_track", "lenient"),
    ("mini_monaco", "lenient"),
)
CLEAR = 0.1  # shares this near to the bar are decided by details of the physics and are not held

CENTRED = {"small_circle", "start_line"}
BEATEN_BY = {
    "race": set(),
    "donkey": {*CENTRED, "weave", "outside"},
    "speed": {*CENTRED, "weave", "outside", "shuttle"},
    "v1": {*CENTRED, "weave", "outside", "shuttle"},
    "v2": {*CENTRED, "weave", "outside"},
    "v3": {*CENTRED, "weave", "outside"},
    "v4": {"still", "outside"},
    "v4b": {"still"},
    "v5": {*CENTRED, "weave", "outside", "shuttle"},
    "v6": {*CENTRED, "weave", "outside", "shuttle"},
    "v7": {"weave", "outside"},
}


@lru_cache
def earnings(track: str, rules: str) -> Earnings:
    return measure_earnings(track, rules)


def worst(reward: str) -> dict[str, float]:
    shares = [earnings(*place).share(reward) for place in PLACES]
    return {name: max(share[name] for share in shares) for name in CHEATERS}


@pytest.mark.parametrize("reward", list(REWARDS))
def test_which_cheaters_beat_which_reward(reward: str) -> None:
    shares = worst(reward)
    clear = {name for name, share in shares.items() if abs(share - 1.0 / MARGIN) > CLEAR}
    beaten = {name for name, share in shares.items() if share > 1.0 / MARGIN}
    assert beaten & clear == BEATEN_BY[reward] & clear, shares
    assert BEATEN_BY[reward] <= clear, f"too near to the bar to be held: {BEATEN_BY[reward] - clear}"


@pytest.mark.parametrize("place", PLACES)
def test_an_honest_slow_lap_out_earns_every_cheater_by_three_to_one(place: tuple[str, str]) -> None:
    measured = earnings(*place)
    assert measured.honest_laps > 1.0
    assert measured.beaten_by("race") == set(), measured.share("race")


def test_race_pays_by_the_metre_whatever_the_speed() -> None:
    """A lap is worth 20 steps a second times its metres, less a little for what the line is missed by."""
    from rl_training.simulator.world import named_track

    measured = earnings("generated_track", "strict")
    metres = measured.honest_laps * named_track("generated_track").track.length / 8.0
    paid = measured.honest[measured.rewards.index("race")]
    assert 0.9 * 20.0 * metres < paid < 20.0 * metres


def test_every_exploit_is_driven() -> None:
    """The drivers do what they are named after, or their failure would prove nothing."""
    lenient = earnings("mountain_track", "lenient")
    speeds = dict(zip(lenient.cheaters, lenient.cheating[lenient.rewards.index("speed")]))
    progress = dict(zip(lenient.cheaters, lenient.cheating[lenient.rewards.index("race")]))
    honest = lenient.honest[lenient.rewards.index("race")]
    assert speeds["small_circle"] > 0.5 * lenient.honest[lenient.rewards.index("speed")]
    assert progress["small_circle"] < 0.1 * honest
    assert earnings("generated_track", "lenient").share("speed")["outside"] > 0.5
    assert lenient.share("donkey")["backwards"] < 0.0
    assert np.isfinite(lenient.cheating).all()
