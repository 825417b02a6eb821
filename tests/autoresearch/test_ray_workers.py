"""Trials on a cluster of two nodes: the same statuses, records and files as at home, and a lost node is not the
setting's fault."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rl_training.autoresearch.champion import ChampionTracker
from rl_training.autoresearch.controller import Controller, Options
from rl_training.autoresearch.job import Task
from rl_training.autoresearch.ledger import Ledger
from rl_training.autoresearch.narrator import Narrator
from rl_training.autoresearch.ray_workers import RayPool, cpus_for, import_ray, luggage_of, write_files
from rl_training.autoresearch.study import Study
from rl_training.autoresearch.workers import Limits
from rl_training.errors import StudyError, UsageError
from tests.autoresearch.fake_study import COMPARABLE, Script
from tests.autoresearch.fake_trials import STATUS_OF, FakeTrials, reward_of

ROOT = Path(__file__).parents[2]
LIMITS = Limits(seconds=20.0, memory_bytes=400 << 20, silence=15.0, grace=0.3)
FAULTS = ("killed", "hangs", "eats_memory", "nan")


def test_the_cores_of_a_cluster_are_shared_by_its_trials() -> None:
    assert cpus_for([8.0, 8.0], 1) == 8
    assert cpus_for([8.0, 8.0], 2) == 8
    assert cpus_for([8.0, 8.0], 3) == 4
    assert cpus_for([8.0, 2.0], 3) == 2
    assert cpus_for([1.0, 1.0], 3) == 0
    assert cpus_for([], 1) == 0


def test_without_ray_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'donkeycar-rl-autoresearch\[ray\]'"):
        import_ray()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes of one core each."""
    pytest.importorskip("ray", reason="Ray is an extra: pip install 'donkeycar-rl-autoresearch[ray]'")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        # Inherited by the nodes: where the fake trials are imported from.
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        cluster.add_node(num_cpus=1)
        yield cluster
        cluster.shutdown()


def controller(root: Path, cluster: Any, script: Script, **more: Any) -> Controller:
    root.mkdir()
    study = Study(root)
    trials, limits = FakeTrials(more.pop("seconds", 0.0)), more.pop("limits", LIMITS)
    pool = RayPool(trials, 2, limits, cluster.address, preload=(), look_for_folder=more.pop("shared", True))
    narrator = Narrator(study.log, quiet=True)
    return Controller(study, script, COMPARABLE, pool, narrator, Options(give_up_after=0, **more))


def test_a_study_on_two_nodes(tmp_path: Path, cluster: Any) -> None:
    """The nodes do not see the study's folder: all that it holds came back to it."""
    script = Script([{"fault": fault} for fault in FAULTS] + [{"reward": reward} for reward in (10.0, 70.0, 30.0)])
    controller(tmp_path / "night", cluster, script, shared=False).run()
    study = Study(tmp_path / "night")
    records = Ledger(study.results).records
    firsts = {record.params["step"]: record for record in records if record.retest_of is None}
    for step, fault in enumerate(FAULTS):
        assert firsts[step].run_status == STATUS_OF[fault], firsts[step]
        assert firsts[step].mean_reward is None
    assert [firsts[step].mean_reward for step in (4, 5, 6)] == [10.0, 70.0, 30.0]
    retest = next(record for record in records if record.retest_of == firsts[5].trial)
    assert (retest.verdict, retest.fresh_reward) == ("keep", 70.0), "the tested model went to its node"
    model, manifest = ChampionTracker(study.champion).load()
    assert manifest["mean_reward"] == reward_of(model) == 70.0
    folder = study.run_folder(firsts[5].trial)
    assert {path.name for path in folder.iterdir()} >= {"log.txt", "process.json", "result.json", "model.zip"}
    assert [each.value for each in script.told[-1] if each.value is not None].count(70.0) >= 1


def test_a_lost_node_is_not_the_settings_fault(tmp_path: Path, cluster: Any) -> None:
    script = Script([{"reward": reward} for reward in (1.0, 2.0, 3.0)])
    study = Study(tmp_path / "night")
    run = controller(study.root, cluster, script, guard=False, seconds=2.0, limits=Limits(seconds=30.0))

    def lose() -> None:
        deadline = time.monotonic() + 30.0
        while len(list(study.models.glob("*/log.txt"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        cluster.remove_node(cluster.worker_nodes.copy().pop(), allow_graceful=False)

    thread = threading.Thread(target=lose)
    thread.start()
    run.run()
    thread.join()
    records = Ledger(study.results).records
    lost = [record for record in records if record.run_status != "ok"]
    assert [record.run_status for record in lost] == ["sim_lost"]
    assert "its node" in lost[0].reason
    assert "was lost" in lost[0].reason
    assert sorted(record.mean_reward for record in records if record.mean_reward) == [1.0, 2.0, 3.0]
    assert all(each.value is not None for each in script.told[-1]), "the lost trial taught nothing"


def test_more_jobs_than_cores_are_refused(tmp_path: Path, cluster: Any) -> None:
    with pytest.raises(StudyError, match="too few for --jobs 9"):
        RayPool(FakeTrials(), 9, LIMITS, cluster.address).warm_up()


def test_a_trial_takes_along_what_it_needs_of_other_runs(tmp_path: Path) -> None:
    run = tmp_path / "trial-0001"
    (run / "checkpoints" / "64").mkdir(parents=True)
    for name in ("model.zip", "config.yaml", "result.json", "checkpoints/64/state.pkl"):
        (run / name).write_text(name)
    retest = Task(2, {}, 0, "now", retest_of=1, retest_model=str(run / "model.zip"))
    assert set(luggage_of(retest)) == {"tested/model.zip", "tested/config.yaml", "tested/result.json"}
    longer = Task(3, {}, 0, "now", continues=1, origin=str(run))
    assert luggage_of(longer)["origin/checkpoints/64/state.pkl"] == b"checkpoints/64/state.pkl"
    write_files(tmp_path / "node", luggage_of(longer))
    assert (tmp_path / "node" / "origin" / "config.yaml").read_text() == "config.yaml"
    assert not luggage_of(Task(4, {}, 0, "now", retest_of=1, retest_model=str(run / "gone.zip")))
