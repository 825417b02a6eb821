"""The study in docs/phase1: its records are whole, and its champion still drives as it did when it was crowned.

A change of the world, the camera or the loading of models that would spoil every champion out there fails here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_training import api
from rl_training.autoresearch.champion import ChampionTracker
from rl_training.autoresearch.ledger import Ledger

PHASE1 = Path(__file__).parents[1] / "docs" / "phase1"
TRIALS = 50


def test_the_ledger_holds_fifty_trials_and_the_champion_is_one_of_them() -> None:
    ledger = Ledger(PHASE1 / "autoresearch_results_phase1.jsonl")
    assert ledger.rejected == []
    assert sum(record.retest_of is None for record in ledger.records) == TRIALS
    manifest = ChampionTracker(PHASE1 / "champion").manifest
    assert manifest is not None
    crowned = next(record for record in ledger.records if record.trial == manifest["trial"])
    assert crowned.mean_reward == manifest["mean_reward"] > 100
    stated = (PHASE1 / "champion_reward_phase1.txt").read_text(encoding="utf-8")
    assert float(stated.split()[0]) == pytest.approx(manifest["mean_reward"], abs=0.01)


def test_the_champion_still_laps_its_track() -> None:
    found = api.evaluate(PHASE1 / "champion", tracks=["generated_track"], episodes=4)
    manifest = ChampionTracker(PHASE1 / "champion").manifest
    assert manifest is not None
    assert found.mean_reward == pytest.approx(manifest["mean_reward"], rel=0.1)
    assert all(episode.laps >= 1.0 and not episode.crashed for episode in found.episodes)
