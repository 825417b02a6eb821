"""The champion is whole at every moment, and keeps the crown by more than luck."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rl_training.autoresearch import champion as champion_module
from rl_training.autoresearch.champion import ChampionTracker, holder, judge, reign, reward_to_beat, ruling
from rl_training.autoresearch.ledger import Record
from rl_training.errors import ModelError
from rl_training.experiment.atomic import sha256


class Killed(BaseException):
    """The controller's death at one step."""


def dies_at(step: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Wraps system calls so that call number ``step`` of them all never happens."""
    count = 0

    def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == step:
                raise Killed
            return call(*args, **kwargs)

        return counted

    return wrap


def test_a_controller_killed_at_any_step_of_the_swap_leaves_a_whole_champion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [tmp_path / "a.zip", tmp_path / "b.zip"]
    for model in models:
        model.write_bytes(model.name.encode() * 100)
    seen = set()
    for step in range(1, 60):
        folder = tmp_path / f"champion-{step}"
        tracker = ChampionTracker(folder)
        tracker.update_if_better(1.0, {"x": 1}, models[0], trial=1)
        with monkeypatch.context() as patch:
            wrap = dies_at(step)
            for owner, name in ((os, "replace"), (os, "fsync"), (os, "open"), (shutil, "copyfile"), (shutil, "rmtree")):
                patch.setattr(owner, name, wrap(getattr(owner, name)))
            for name in ("rename", "mkdir", "symlink_to"):
                patch.setattr(Path, name, wrap(getattr(Path, name)))
            try:
                tracker.update_if_better(2.0, {"x": 2}, models[1], trial=2)
                survived = True
            except Killed:
                survived = False
        path, manifest = ChampionTracker(folder).load()
        assert (folder / "model.zip").read_bytes() == path.read_bytes() == models[manifest["trial"] - 1].read_bytes()
        assert ChampionTracker(folder).mean_reward == manifest["trial"]
        seen.add(manifest["trial"])
        # The next controller finishes what the killed one began, and sweeps up after it.
        ChampionTracker(folder).update_if_better(3.0, {"x": 2}, models[1], trial=2)
        assert ChampionTracker(folder).load()[1]["mean_reward"] == 3.0
        assert len(list((folder / "versions").iterdir())) == 2
        if survived:
            break
    assert survived
    assert seen == {1, 2}
    assert step > 8, "the steps were counted"


def test_the_manifest_says_what_the_champion_is(tmp_path: Path) -> None:
    model = tmp_path / "model.zip"
    model.write_bytes(b"weights")
    tracker = ChampionTracker(tmp_path / "champion")
    assert tracker.manifest is None
    assert not tracker.is_whole
    assert tracker.update_if_better(5, {"agent": "ppo"}, str(model), trial=3)
    manifest = tracker.manifest
    assert manifest is not None
    assert {
        "trial": 3,
        "params": {"agent": "ppo"},
        "mean_reward": 5.0,
        "model_path": str(model),
    }.items() <= manifest.items()
    assert manifest["sha256"] == sha256(model)
    assert "env_spec" not in manifest
    with pytest.raises(ModelError, match="not the one that was evaluated"):
        tracker.crown(model, {"mean_reward": 6.0}, expected="0" * 64)
    assert tracker.load()[1] == manifest
    assert not tracker.update_if_better(float("nan"), {}, model)
    with pytest.raises(ModelError, match="no model at"):
        tracker.update_if_better(9.0, {}, tmp_path / "missing.zip")
    (tmp_path / "champion" / "versions" / "0001" / "model.zip").write_bytes(b"weightz")
    with pytest.raises(ModelError, match="does not match"):
        tracker.load()


def crowned(trial: int, reward: float, verdict: str = "retest", **more: Any) -> Record:
    return Record(trial, "t", {}, "ok", reward, champion=True, verdict=verdict, **more)


def retest(trial: int, of: int, verdict: str, fresh: float | None, reward: float | None = 1.0, **more: Any) -> Record:
    status = "ok" if reward is not None else "crashed"
    return Record(trial, "t", {}, status, reward, retest_of=of, verdict=verdict, fresh_reward=fresh, **more)


def test_a_discarded_champion_gives_the_crown_back() -> None:
    records = [crowned(1, 50.0), retest(2, 1, "keep", 45.0), crowned(3, 80.0), retest(4, 3, "discard", 30.0)]
    champion = holder(reign(records[:3]))
    assert champion is not None
    assert (champion.record.trial, champion.reward) == (3, 80.0)
    champion = holder(reign(records))
    assert champion is not None
    assert (champion.record.trial, champion.reward, champion.verdict) == (1, 45.0, "keep")
    assert holder([]) is None
    assert reward_to_beat([]) == float("-inf")


def test_an_interrupted_retest_is_still_owed() -> None:
    champion = holder(reign([crowned(1, 50.0), retest(2, 1, "", None, None, interrupted=True)]))
    assert champion is not None
    assert champion.verdict == "retest"


@pytest.mark.parametrize(
    ("fresh", "retrained", "verdict"),
    [
        (90.0, 60.0, "keep"),
        (60.0, 90.0, "discard"),  # the model loses to the old champion on fresh seeds
        (70.0, 90.0, "discard"),  # a draw does not dethrone
        (90.0, 49.0, "discard"),  # the setting needed luck: below the median of 50
        (90.0, None, "discard"),
        (None, 90.0, "discard"),
    ],
)
def test_verdicts(fresh: float | None, retrained: float | None, verdict: str) -> None:
    line = reign([crowned(1, 70.0, "keep"), crowned(2, 100.0)])
    assert judge(2, fresh, retrained, line, [10.0, 50.0, 60.0]) == verdict


def test_the_first_champion_only_has_to_drive() -> None:
    line = reign([crowned(1, 70.0)])
    assert judge(1, 20.0, None, line, [70.0]) == "keep"
    assert judge(1, None, 60.0, line, [70.0]) == "discard"
    assert champion_module.KEEP == "keep"


def test_a_setting_whose_second_training_beats_the_champion_needs_no_luck() -> None:
    line = reign([crowned(1, 70.0, "keep"), crowned(2, 100.0)])
    assert judge(2, 90.0, 75.0, line, [80.0, 90.0, 100.0]) == "keep"
    assert judge(2, 90.0, 65.0, line, [80.0, 90.0, 100.0]) == "discard"


@pytest.mark.parametrize(
    "text",
    ["{}", "[1]", '{"mean_reward": "x", "params": 3, "sha256": 1}', '{"mean_reward": 1.0, "params": {}}', "torn"],
)
def test_a_manifest_that_says_too_little_is_none(tmp_path: Path, text: str) -> None:
    model = tmp_path / "model.zip"
    model.write_bytes(b"weights")
    tracker = ChampionTracker(tmp_path / "champion")
    tracker.update_if_better(1.0, {}, model)
    (tmp_path / "champion" / "current" / "manifest.json").write_text(text)
    assert tracker.manifest is None
    with pytest.raises(ModelError, match="does not match its manifest"):
        tracker.load()
    assert tracker.update_if_better(0.5, {}, model), "whatever it was, it is nobody's champion"
    assert tracker.load()[1]["mean_reward"] == 0.5


@pytest.mark.parametrize(
    ("own", "status", "takes_it"),
    [(95.0, "ok", True), (90.0, "ok", False), (None, "ok", False), (95.0, "no_learning", False)],
)
def test_a_retests_own_model_must_win_on_the_same_fresh_seeds(own: float | None, status: str, takes_it: bool) -> None:
    line = reign([crowned(1, 70.0, "keep"), crowned(2, 100.0)])
    record = Record(3, "t", {}, status, 200.0, retest_of=2, fresh_reward=90.0, own_fresh_reward=own)
    assert ruling(record, line, [10.0, 50.0, 60.0], guard=True) == ("keep", takes_it)


def test_a_model_that_won_a_retest_reigns_by_its_fresh_reward() -> None:
    own = Record(2, "t", {}, "ok", 200.0, champion=True, retest_of=1, verdict="keep", fresh_reward=70.0,
                 own_fresh_reward=75.0)  # fmt: skip
    champion = holder(reign([crowned(1, 100.0), own]))
    assert champion is not None
    assert (champion.record.trial, champion.reward, champion.verdict) == (2, 75.0, "keep")


def test_the_manifest_holds_the_env_spec(tmp_path: Path) -> None:
    (tmp_path / "model.zip").write_bytes(b"weights")
    (tmp_path / "env_spec.json").write_text('{"tracks": ["warren"]}')
    tracker = ChampionTracker(tmp_path / "champion")
    tracker.update_if_better(1.0, {}, tmp_path / "model.zip")
    assert tracker.load()[1]["env_spec"] == {"tracks": ["warren"]}
