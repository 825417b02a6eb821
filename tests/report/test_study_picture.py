"""The picture of a study, asked for as a user does."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from rl_training.autoresearch.ledger import Ledger, Record
from rl_training.autoresearch.study import Study
from rl_training.cli.main import main
from rl_training.report import study_picture
from rl_training.report.study_picture import space_of


def study_of(root: Path, rewards: list[float | None]) -> Study:
    study = Study(root)
    ledger = Ledger(study.results).repair()
    for i, reward in enumerate(rewards, start=1):
        params = {"agent": "ppo", "learning_rate": 1e-4 * i, "n_steps": 2 ** (i % 3 + 4), "flavour": "ab"[i % 2]}
        ledger.append(Record(i, "t", params, "ok" if reward is not None else "crashed", reward, champion=i == 1))
    return study


def test_rewards_and_a_slice_for_each_parameter_that_was_varied(tmp_path: Path) -> None:
    study = study_of(tmp_path, [5.0, None, 7.0, 3.0, 8.0])
    target = tmp_path / "pictures" / "study.png"
    assert main(["results", "--study", str(study.root), "--picture", str(target)]) == 0
    with Image.open(target) as picture:
        colors = {color for _, color in picture.convert("RGB").getcolors(1 << 24)}
    assert {(0xC2, 0x51, 0x3F), (0x2F, 0x66, 0x90)} <= colors, "the champion's line and the means"


@pytest.mark.parametrize(
    ("rewards", "name", "code", "sentence"),
    [([None], "a.png", 1, "No trial has a reward yet"), ([1.0], "a.bmp", 2, "use a name that ends in .png")],
)
def test_mistakes_get_a_sentence(
    rewards: list[float | None], name: str, code: int, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = study_of(tmp_path, rewards)
    assert main(["results", "--study", str(study.root), "--picture", str(tmp_path / name)]) == code
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / name).exists()


def test_the_space_is_what_was_varied_measured_as_the_agent_does() -> None:
    settings = [
        {"agent": "ppo", "learning_rate": 1e-4, "n_steps": 16, "mine": 0.1, "rule": "x", "often": 1},
        {"agent": "ppo", "learning_rate": 4e-4, "n_steps": 64, "mine": 9.0, "rule": "y", "often": 5},
    ]
    space = space_of(settings, "ppo")
    assert space is not None
    kinds = {parameter.name: parameter.kind for parameter in space.parameters}
    assert kinds == {
        "learning_rate": "log_float", "n_steps": "power_of_two",
        "mine": "log_float", "rule": "categorical", "often": "int",
    }  # fmt: skip
    assert (space["n_steps"].low, space["n_steps"].high) == (16, 64)
    place = space.encode(settings[0])
    assert all(0.0 <= u <= 1.0 for u in place)
    assert not math.isnan(place.sum())
    assert space_of(settings[:1], "ppo") is None


def test_the_legend_hides_no_trial() -> None:
    figure = Figure(layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    params = {"agent": "ppo", "timesteps": 5000}
    records = [Record(trial, "t", params, "ok", float(trial % 7), champion=trial == 1) for trial in range(1, 30)]
    study_picture._draw_rewards(axes, [*records, Record(30, "t", params, "crashed")], "ppo")
    canvas.draw()
    legend = axes.get_legend()
    assert legend is not None
    assert not legend.get_window_extent().overlaps(axes.get_window_extent())
