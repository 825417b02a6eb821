"""Figures of episodes, worked by hand, and what an evaluation says of them together."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest

from rl_training.cli.evaluate import verdicts
from rl_training.evaluation.episodes import Episode, EpisodeRecorder
from rl_training.evaluation.evaluation import Evaluation, summarize

PLAIN = Episode(
    track="a", reward=200.0, length=100, seconds=5.0, laps=1.5, progress=40.0, driven=42.0, lap_times=(3.0,),
    end="time_limit", crashed=False, cte_mean=0.5, cte_p95=1.0, cte_max=1.5, speed=1.5, steering_change=0.1,
)  # fmt: skip


def evaluation(*episodes: Episode, training: tuple[str, ...] = ("a",)) -> Evaluation:
    tracks = tuple(dict.fromkeys(episode.track for episode in episodes))
    return Evaluation(tracks, training, episodes, "race", True, 0, 100)


def info(**changes: Any) -> dict[str, Any]:
    return {"cte": 0.0, "speed": 1.0, "steering": 0.0, "lap_count": 0, "last_lap_time": 0.0, **changes}


def test_an_episode_is_recorded_from_its_infos() -> None:
    recorder = EpisodeRecorder(("a", "b"))
    recorder.note(1, 0.5, False, info(cte=9.0))  # another car's steps are its own
    recorder.note(0, 1.0, False, info(cte=-1.0, speed=2.0, steering=0.5))
    recorder.note(0, 2.0, False, info(cte=2.0, speed=1.0, steering=-0.5, lap_count=1, last_lap_time=12.5))
    last = info(
        cte=3.0, speed=0.0, steering=-0.3, lap_count=1, last_lap_time=12.5, steps=6, laps=1.25, furthest=30.0,
        end_cause="hit cone", episode={"r": 2.5},
    )  # fmt: skip
    recorder.note(0, -1.0, True, {**last, "TimeLimit.truncated": False})
    (episode,) = recorder.episodes
    assert (episode.track, episode.reward, episode.length, episode.seconds) == ("a", 2.5, 3, pytest.approx(0.3))
    assert (episode.lap_times, episode.end, episode.crashed) == ((12.5,), "hit cone", True)
    assert (episode.cte_mean, episode.cte_max, episode.speed) == (2.0, 3.0, 1.0)
    assert episode.steering_change == pytest.approx((1.0 + 0.2) / 2)
    assert episode.driven == pytest.approx(0.3)
    assert episode.completed


def test_a_summary_is_of_means_and_extremes() -> None:
    summary = summarize(
        [PLAIN, replace(PLAIN, reward=100.0, laps=0.5, lap_times=(), crashed=True, end="off_road", cte_max=4.0)]
    )
    assert (summary.mean_reward, summary.std_reward) == (150.0, 50.0)
    assert (summary.completed, summary.mean_laps, summary.best_laps) == (0.5, 1.0, 1.5)
    assert (summary.mean_lap, summary.best_lap, summary.crashes, summary.cte_max) == (3.0, 3.0, 1, 4.0)
    assert summary.ends == {"time_limit": 1, "off_road": 1}
    assert summarize([replace(PLAIN, lap_times=())]).best_lap is None


def test_the_end_of_an_open_road_is_a_completed_drive() -> None:
    assert replace(PLAIN, laps=0.99, end="end_of_road").completed
    assert not replace(PLAIN, laps=0.99).completed


def test_the_gap_is_training_less_unseen() -> None:
    both = evaluation(PLAIN, replace(PLAIN, track="b", reward=40.0), replace(PLAIN, track="b", reward=60.0))
    assert both.generalization_gap == 150.0
    assert evaluation(PLAIN).generalization_gap is None
    assert evaluation(replace(PLAIN, track="b")).generalization_gap is None
    assert replace(evaluation(replace(PLAIN, track="b")), training_reward=260.0).generalization_gap == 60.0


def test_verdicts_are_the_specifications_bars() -> None:
    good = "\n".join(verdicts(evaluation(PLAIN, replace(PLAIN, track="b", reward=51.0))))
    assert good.count("PASS") == 3
    assert "gap (training - unseen mean reward): 149.0" in good
    poor = "\n".join(
        verdicts(evaluation(replace(PLAIN, reward=100.0, laps=0.9), replace(PLAIN, track="b", reward=50.0)))
    )
    assert poor.count("FAIL") == 3
    one_of_two = [replace(PLAIN, track="b", reward=10.0), replace(PLAIN, track="c", reward=60.0)]
    assert verdicts(evaluation(PLAIN, *one_of_two))[2].startswith("PASS  mean_reward 60.0 > 50 on an unseen track, c")


@pytest.mark.parametrize(
    ("changes", "sign"),
    [
        ({"reward": 400.0}, "reward a step"),
        ({"driven": 200.0, "progress": 10.0}, "drove far"),
        ({"length": 500, "laps": 0.1}, "scored the same"),
    ],
)
def test_signs_of_an_exploit(changes: dict[str, Any], sign: str) -> None:
    odd = evaluation(*[replace(PLAIN, **changes)] * 3)
    assert any(sign in suspicion for suspicion in odd.suspicions())


def test_honest_driving_is_not_suspected() -> None:
    assert evaluation(*[PLAIN] * 3).suspicions() == []
    fast = replace(PLAIN, reward=380.0, speed=3.8, driven=190.0, progress=180.0)
    assert evaluation(*[fast] * 3).suspicions() == []


def test_plain_forms() -> None:
    both = evaluation(PLAIN, replace(PLAIN, track="b", lap_times=(3.0, 2.5)))
    plain = json.loads(json.dumps(both.to_dict()))
    assert plain["mean_reward"] == 200.0
    assert plain["tracks"]["b"]["best_lap"] == 2.5
    rows = list(csv.DictReader(io.StringIO(both.to_csv())))
    assert [row["track"] for row in rows] == ["a", "b"]
    assert rows[1]["lap_times"] == "3.000 2.500"
