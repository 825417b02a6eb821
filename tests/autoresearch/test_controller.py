"""The loop's decisions, on trials that take no time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rl_training.autoresearch import publish, strategy
from rl_training.autoresearch.champion import ChampionTracker
from rl_training.autoresearch.controller import Controller, Options
from rl_training.autoresearch.job import Task
from rl_training.autoresearch.ledger import Ledger
from rl_training.autoresearch.narrator import Narrator
from rl_training.autoresearch.publish import Publisher, without_secrets
from rl_training.autoresearch.space import Parameter, Space
from rl_training.autoresearch.strategy import Grid, Search
from rl_training.autoresearch.study import Study
from rl_training.autoresearch.workers import Limits, WorkerPool
from rl_training.errors import StudyError, UsageError
from rl_training.experiment.atomic import sha256
from tests.autoresearch.fake_study import COMPARABLE, Script
from tests.autoresearch.fake_trials import FakeTrials

LIMITS = Limits(seconds=10.0, memory_bytes=400 << 20, silence=10.0, grace=0.3)


def rewards(*values: float) -> Script:
    return Script([{"reward": value} for value in values])


def controller(root: Path, script: Script | Grid | Search, **options: object) -> Controller:
    trials = options.pop("runner", FakeTrials())
    jobs = options.pop("jobs", 1)
    publisher = options.pop("publisher", None)
    root.mkdir(exist_ok=True)
    pool = WorkerPool(trials, jobs, LIMITS, preload=(), threads=1)  # type: ignore[arg-type]
    study = Study(root)
    narrator = Narrator(study.log, quiet=True)
    return Controller(study, script, COMPARABLE, pool, narrator, Options(**options), publisher)  # type: ignore[arg-type]


def test_the_rule_of_the_specification_without_the_guard(tmp_path: Path) -> None:
    reason = controller(tmp_path, rewards(50, 80, 60, 90, 70), guard=False).run()
    assert reason == "The script has ended."
    records = Ledger(Study(tmp_path).results).records
    assert [record.champion for record in records] == [True, True, False, True, False]
    assert [record.model_path for record in records][2] == "models/trial-0003/model.zip"
    manifest = ChampionTracker(Study(tmp_path).champion).load()[1]
    assert (manifest["trial"], manifest["mean_reward"], manifest["verdict"]) == (4, 90.0, "keep")
    log = Study(tmp_path).log.read_text()
    assert log.count("[CHAMPION] New best: mean_reward=") == 3
    assert "5 of at most 100 trials" in log


def test_a_lucky_winner_loses_the_crown_at_its_retest(tmp_path: Path) -> None:
    # Models lose 15 on fresh seeds.
    controller(tmp_path, rewards(50, 40, 55), runner=FakeTrials(fresh_loss=15.0)).run()
    records = Ledger(Study(tmp_path).results).records
    told = [(record.mean_reward, record.verdict, record.retest_of, record.fresh_reward) for record in records]
    assert told == [
        (50.0, "retest", None, None),
        (50.0, "keep", 1, 35.0),  # so 35 is to be beaten
        (40.0, "retest", None, None),
        (40.0, "discard", 3, 25.0),
        (55.0, "retest", None, None),
        (55.0, "keep", 5, 40.0),
    ]
    manifest = ChampionTracker(Study(tmp_path).champion).load()[1]
    assert (manifest["trial"], manifest["mean_reward"], manifest["fresh_reward"]) == (5, 55.0, 40.0)
    log = Study(tmp_path).log.read_text()
    assert "trial 3 is discarded, 25.00 on fresh seeds\n" in log
    assert log.split("trial 3 is discarded")[1].splitlines()[1].endswith("Champion: trial 1, mean_reward 35.00")
    assert records[0].seed != records[1].seed
    assert records[0].params == records[1].params


def test_a_study_goes_on_where_it_stopped_and_gives_the_same_as_in_one_go(tmp_path: Path) -> None:
    for cap in (2, 4, 6):
        controller(tmp_path / "parts", rewards(1, 5, 3, 9, 2, 8), trials=cap, guard=False).run()
    controller(tmp_path / "whole", rewards(1, 5, 3, 9, 2, 8), guard=False).run()
    parts, whole = (Ledger(Study(tmp_path / name).results).records for name in ("parts", "whole"))
    facts = [[(r.trial, r.params, r.seed, r.mean_reward, r.champion) for r in records] for records in (parts, whole)]
    assert facts[0] == facts[1]


def test_what_another_search_left_behind_is_recorded_as_its_own(tmp_path: Path) -> None:
    """A controller that searched another env set was killed after its trial had ended, and before the record."""
    controller(tmp_path, rewards(5.0), guard=False).run()
    left = Study(tmp_path).run_folder(2)
    shutil.copytree(Study(tmp_path).run_folder(1), left)
    task = Task.load(left)
    assert task is not None
    assert (task.env_set, task.reward_version) == (COMPARABLE.env_set, COMPARABLE.reward_version)
    replace(task, trial=2, env_set="elsewhere").save(left)
    (left / "result.json").write_text('{"mean_reward": 99.0}')
    script = rewards(5.0, 7.0)
    controller(tmp_path, script, guard=False).run()
    records = Ledger(Study(tmp_path).results).records
    assert [(r.trial, r.env_set, r.champion) for r in records] == [
        (1, "a", True),
        (2, "elsewhere", False),
        (3, "a", True),
    ]
    assert [observation.value for observation in script.told[-1]] == [5.0, 7.0], "its 99 is of another world"


def test_a_run_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    theirs = Study(tmp_path).run_folder(2)
    theirs.mkdir(parents=True)
    (theirs / "task.json").write_text('{"made by": "a newer version"}')
    controller(tmp_path, rewards(1, 2), guard=False).run()
    assert [record.trial for record in Ledger(Study(tmp_path).results).records] == [1, 3]
    assert [path.name for path in theirs.iterdir()] == ["task.json"]


def test_a_damaged_model_is_not_crowned_again(tmp_path: Path) -> None:
    controller(tmp_path, rewards(5, 9), guard=False).run()
    study = Study(tmp_path)
    damaged = study.run_folder(2) / "model.zip"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"!")
    (study.champion / "model.zip").write_bytes(b"damaged too")
    controller(tmp_path, rewards(5, 9), guard=False).run()
    assert ChampionTracker(study.champion).load()[1]["trial"] == 1, "the best of those that are whole"
    assert "Trial 2 cannot be champion: The model at" in study.log.read_text()


def test_failures_and_interruptions_do_not_reach_the_strategy_as_rewards(tmp_path: Path) -> None:
    script = Script([{"reward": 5.0}, {"fault": "nan"}, {"fault": "raises"}, {"reward": 1.0}])
    controller(tmp_path, script, guard=False).run()
    assert [observation.value for observation in script.told[-1]] == [5.0, None, None, 1.0]


def test_a_broken_study_gives_up(tmp_path: Path) -> None:
    with pytest.raises(StudyError) as raised:
        controller(tmp_path, Script([{"fault": "raises"}] * 9), give_up_after=4).run()
    assert str(raised.value) == "Gave up after 4 failed trials in a row; the last: RuntimeError: the simulator raised"
    assert str(raised.value) in Study(tmp_path).log.read_text()
    assert len(Ledger(Study(tmp_path).results).records) == 4


def test_a_command_that_no_trial_can_obey_gives_up_sooner(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="Gave up after 3 failed trials in a row; the last: ConfigError: there is no"):
        controller(tmp_path, Script([{"fault": "bad_config"}] * 9)).run()


def test_the_grid_is_swept_once_and_teaches_the_search(tmp_path: Path) -> None:
    grid = Grid({"step": [0, 1], "reward": [3.0, 4.0]}, {"agent": "fake"})
    for _ in range(2):
        reason = controller(tmp_path, grid, guard=False, sweep=True).run()
    assert reason == "All 4 points of the grid have been tried."
    assert len(Ledger(Study(tmp_path).sweep_results).records) == 4
    assert not Study(tmp_path).results.exists()
    script = Script([{"reward": 2.0}] * 2 + [{"reward": 9.0}])
    controller(tmp_path, script, guard=False).run()
    assert [observation.value for observation in script.told[0]] == [3.0, 4.0, 3.0, 4.0]
    assert "    clean_sweep_results.jsonl: 4 trials loaded." in Study(tmp_path).log.read_text()
    assert ChampionTracker(Study(tmp_path).champion).load()[1]["model_path"] == "models/trial-0001/model.zip"


def test_the_search_ignores_settings_that_its_space_cannot_place_and_says_so(tmp_path: Path) -> None:
    controller(tmp_path, Script([{"reward": 7.0, "x": 0.2}, {"reward": 3.0, "x": "oops"}]), guard=False).run()
    space = Space((Parameter("x", "float", 0.0, 1.0),))
    search = Search(space, {"agent": "fake", "reward": 5.0}, stop_when_converged=False)
    reason = controller(tmp_path, search, guard=False, trials=5).run()
    assert reason == "All 5 trials are done."
    assert "1 trial ignored: Parameter 'x' must be a finite number, got 'oops'." in Study(tmp_path).log.read_text()
    log = Study(tmp_path).log.read_text()
    assert "UCB" in log
    assert len(Ledger(Study(tmp_path).results).records) == 5


def test_parallel_trials_count_as_running_and_share_nothing(tmp_path: Path) -> None:
    controller(tmp_path, rewards(*range(8)), jobs=3, guard=False, runner=FakeTrials(seconds=0.1)).run()
    records = Ledger(Study(tmp_path).results).records
    assert sorted(record.trial for record in records) == list(range(1, 9))
    assert {record.params["step"]: record.mean_reward for record in records} == {i: float(i) for i in range(8)}


@pytest.mark.parametrize(("presses", "statuses"), [(1, ["ok"]), (2, ["crashed"])])
def test_ctrl_c_once_finishes_the_trial_twice_ends_it(tmp_path: Path, presses: int, statuses: list[str]) -> None:
    study = controller(tmp_path, rewards(1, 2, 3), guard=False, runner=FakeTrials(seconds=0.7))

    def press() -> None:
        deadline = time.monotonic() + 20
        while not list(tmp_path.glob("models/*/process.json")) and time.monotonic() < deadline:
            time.sleep(0.01)
        for _ in range(presses):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)

    thread = threading.Thread(target=press)
    thread.start()
    if presses == 1:
        assert study.run() == "Stopped by the operator."
    else:
        with pytest.raises(KeyboardInterrupt):
            study.run()
    thread.join()
    records = Ledger(Study(tmp_path).results).records
    assert [record.run_status for record in records] == statuses
    assert records[0].interrupted == (presses == 2)
    assert not Study(tmp_path).lock.exists()


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def test_results_are_pushed_to_a_branch_of_their_own(tmp_path: Path) -> None:
    remote, root = tmp_path / "remote.git", tmp_path / "night"
    publisher = Publisher(Study(root), str(remote), push_seconds=10.0)
    controller(root, rewards(1, 2, 3, 4), guard=False, publish_every=2, publisher=publisher).run()
    assert "Publishing failed, trying again later" in Study(root).log.read_text()
    assert len(Ledger(Study(root).results).records) == 4, "a remote that is gone stops nothing"
    git("init", "--quiet", "--bare", str(remote))
    controller(root, rewards(1, 2, 3, 4, 5), guard=False, publish_every=2, publisher=publisher).run()
    files = git("-C", str(remote), "ls-tree", "-r", "--name-only", publisher.branch).splitlines()
    assert files == [
        "night/models/champion/manifest.json",
        "night/outerloop-results/autoresearch_log.txt",
        "night/outerloop-results/autoresearch_results_phase1.jsonl",
    ]
    text = git("-C", str(remote), "show", f"{publisher.branch}:{files[2]}")
    assert len(text.splitlines()) == 5
    assert int(git("-C", str(remote), "rev-list", "--count", publisher.branch)) >= 3, "no commit was lost"


def test_the_users_repository_is_left_as_it_was(tmp_path: Path) -> None:
    git("init", "--quiet", str(tmp_path))
    (tmp_path / ".gitignore").write_text("night/\n")
    root = tmp_path / "night"
    root.mkdir()
    publisher = Publisher(Study(root), None)
    before = git("-C", str(tmp_path), "status", "--porcelain", "--branch")
    controller(root, rewards(1), guard=False, publisher=publisher).run()
    assert git("-C", str(tmp_path), "status", "--porcelain", "--branch") == before
    assert "night/models/champion/manifest.json" in git("-C", str(tmp_path), "ls-tree", "-r", publisher.branch)


def test_a_push_that_hangs_is_ended_at_its_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "ssh"
    script.write_text("#!/bin/sh\nsleep 60\n")
    script.chmod(0o755)
    monkeypatch.setitem(publish.QUIET_ENVIRONMENT, "GIT_SSH_COMMAND", str(script))
    root = tmp_path / "night"
    publisher = Publisher(Study(root), "ssh://user:secret@nowhere/x.git", push_seconds=0.5)
    start = time.monotonic()
    controller(root, rewards(1), guard=False, publisher=publisher).run()
    assert time.monotonic() - start < 10.0
    log = Study(root).log.read_text()
    assert "no answer within 0.5 s" in log
    assert "secret" not in log


def test_somebody_in_a_hurry_waits_for_no_push_and_loses_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "ssh"
    script.write_text("#!/bin/sh\nsleep 60\n")
    script.chmod(0o755)
    monkeypatch.setitem(publish.QUIET_ENVIRONMENT, "GIT_SSH_COMMAND", str(script))
    root, said = tmp_path / "night", list[str]()
    root.mkdir()
    publisher = Publisher(Study(root), "ssh://nowhere/x.git")
    publisher.publish("now", said.append)
    start = time.monotonic()
    publisher.finish(said.append, lambda: True)
    assert time.monotonic() - start < 10.0
    assert said == ["Publishing failed, trying again later: it was stopped"]
    assert git("-C", str(root / "publish.git"), "rev-list", "--count", publisher.branch) == "1"


FAKE_LFS = """#!/bin/sh
# git-LFS as far as a push needs it: objects go into a folder, pointers to stdout.
case "$1" in
version) echo git-lfs/fake ;;
clean)
    cat > "$STORE/new"; digest=$(sha256sum "$STORE/new" | cut -d' ' -f1); size=$(wc -c < "$STORE/new")
    mv "$STORE/new" "$STORE/$digest"
    printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' "$digest" "$size" ;;
push) echo "$2 $3" >> "$STORE/pushed" ;;
esac
"""


def test_models_go_by_git_lfs_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote, root, store, path = (tmp_path / name for name in ("remote.git", "night", "store", "bin"))
    git("init", "--quiet", "--bare", str(remote))
    store.mkdir()
    path.mkdir()
    (path / "git-lfs").write_text(FAKE_LFS)
    (path / "git-lfs").chmod(0o755)
    monkeypatch.setenv("STORE", str(store))
    monkeypatch.setenv("PATH", f"{path}{os.pathsep}{os.environ['PATH']}")
    publisher = Publisher(Study(root), str(remote), model_megabytes=1.0)
    controller(root, rewards(1), guard=False, publisher=publisher).run()
    show = ["-C", str(remote), "show", f"{publisher.branch}:night/models/champion/model.zip"]
    model = Study(root).champion / "model.zip"
    pointer = git(*show).splitlines()
    assert pointer[1:] == [f"oid sha256:{sha256(model)}", f"size {model.stat().st_size}"]
    assert (store / sha256(model)).read_bytes() == model.read_bytes()
    assert (store / "pushed").read_text().split() == [str(remote), publisher.branch]
    assert git("-C", str(remote), "show", f"{publisher.branch}:.gitattributes").startswith("*.zip filter=lfs")

    too_large = Publisher(Study(root), str(remote), model_megabytes=1e-5)
    controller(root, rewards(1, 2), guard=False, publisher=too_large).run()
    assert "model.zip" not in git("-C", str(remote), "ls-tree", "-r", publisher.branch)

    (path / "git-lfs").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(UsageError, match="git-LFS, which is not installed"):
        Publisher(Study(root), str(remote), model_megabytes=1.0)


NARRATOR = """
import sys
from pathlib import Path
from rl_training.autoresearch.narrator import Narrator
narrator = Narrator(Path(sys.argv[1]))
sys.stdin.readline()
for line in ("one", "two"):
    narrator.say(line)
"""


def test_a_console_that_went_away_stops_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", NARRATOR, str(tmp_path / "log.txt")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(b"\n")
        process.stdin.flush()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (0, b"")
    assert [line.split()[-1] for line in (tmp_path / "log.txt").read_text().splitlines()] == ["one", "two"]


def test_a_model_that_cannot_be_computed_costs_a_good_proposal_and_not_the_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def singular(*_: object) -> None:
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr(strategy, "check_convergence", singular)
    space = Space((Parameter("x", "float", 0.0, 1.0),))
    controller(tmp_path, Search(space, {"agent": "fake", "reward": 5.0}), guard=False, trials=3).run()
    tried = [record.params["x"] for record in Ledger(Study(tmp_path).results).records]
    assert len(set(tried)) == 3
    assert "space-filling, as the model failed: Singular matrix" in Study(tmp_path).log.read_text()


def test_tokens_are_blanked() -> None:
    assert without_secrets("fatal: https://me:t0ken@host/x.git gone") == "fatal: https://***@host/x.git gone"
    assert without_secrets("https://me:t0k@en@host/x.git") == "https://***@host/x.git"
    assert without_secrets("https://host/@scope/x.git") == "https://host/@scope/x.git"
