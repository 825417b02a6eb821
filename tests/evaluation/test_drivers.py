"""The pursuit driver laps every track on the public API, obstacles included."""

from __future__ import annotations

import numpy as np
import pytest

from rl_training.cli.drive import drive
from rl_training.errors import UsageError
from rl_training.evaluation.drivers import COAST, PurePursuit, make_driver
from rl_training.simulator.track_file import load_track, track_names


@pytest.mark.parametrize("name", [*track_names(), "random:validation:3@0.9", "random:validation:8@1"])
def test_pursuit_laps_every_track(name: str) -> None:
    result, _ = drive(name, "pursuit", laps=1, seed=0, randomization="none", filming=False)
    assert result["completed"], result
    if result["lap_times"]:  # an open road has an end and no lap
        length = load_track(name).length / 8.0
        assert result["lap_times"][0] == pytest.approx(length / result["mean_speed"], rel=0.1)


def test_pursuit_survives_strong_randomisation() -> None:
    for seed in range(3):
        result, _ = drive("mini_monaco", "pursuit", laps=1, seed=seed, randomization="strong", filming=False)
        assert result["completed"], result


def test_the_speed_profile_can_be_coasted_into() -> None:
    track = load_track("roboracingleague_1")
    driver = PurePursuit(track, top_speed=30.0)
    drop = driver.speeds - np.roll(driver.speeds, -1)
    assert drop.max() <= driver.gap / COAST + 1e-9
    assert driver.speeds.min() < 15.0 < driver.speeds.max()


def test_an_unknown_driver_names_the_known() -> None:
    with pytest.raises(UsageError, match="Did you mean 'pursuit'"):
        make_driver("persuit", load_track("warren"))
