"""The research loop: fold → suggest → start → wait → record → champion → log → publish, until it has converged.

It may die at any point. All it knows is folded from the ledgers and the run folders at each turn. They are written in
this order: `task.json` before a trial starts, `result.json` when it is over, then the ledger's line, then the
champion's folder. At the next start a run folder without a ledger line is recorded from what is in it, after its
process, should there still be one, is ended; and the champion's folder is made to show whom the ledger names.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from rl_training.autoresearch.champion import (
    RETEST,
    ChampionTracker,
    Crowned,
    holder,
    reign,
    ruling,
)
from rl_training.autoresearch.fidelity import to_promote
from rl_training.autoresearch.job import Task, is_run
from rl_training.autoresearch.ledger import Comparable, Ledger, Record, lessons, select
from rl_training.autoresearch.lock import StudyLock
from rl_training.autoresearch.narrator import Narrator, seconds_left
from rl_training.autoresearch.outcome import Ending, Outcome, outcome_of
from rl_training.autoresearch.publish import Publisher
from rl_training.autoresearch.strategy import Finished, Proposal, Strategy
from rl_training.autoresearch.study import SEARCH_PREFIX, SWEEP_PREFIX, Study
from rl_training.autoresearch.workers import Ended, Pool, end_stale
from rl_training.errors import ModelError, StudyError

RETRY_AFTER = 5.0  # [s] until a disk that refused a record is asked again
REFUSALS = 3  # trials in a row that could not even begin: the command is wrong and not their settings
ABANDONED = Ending(None, "crashed", "its controller ended before it did", interrupted=True)


@dataclass(frozen=True)
class Options:
    """How a study is run. ``trials`` counts all of the ledger, without retests and interrupted ones."""

    trials: int = 100
    seed: int = 0
    guard: bool = True  # retest a new champion before it keeps the crown
    cooldown: float = 0.0  # [s] between trials; an external simulator wants 2
    longest_pause: float = 60.0  # [s] between trials while the simulator is away
    publish_every: int = 10
    give_up_after: int = 20  # failures in a row; 0: never
    longest: int = 0  # [env steps] to which good trials may be trained on; 0: none is
    sweep: bool = False  # write the base sweep's ledger, not the search's


class Controller:
    """One study, run by one process."""

    def __init__(
        self,
        study: Study,
        strategy: Strategy,
        comparable: Comparable,
        pool: Pool,
        narrator: Narrator,
        options: Options = Options(),
        publisher: Publisher | None = None,
    ) -> None:
        self._study = study
        self._strategy = strategy
        self._comparable = comparable
        self._pool = pool
        self._narrator = narrator
        self._options = options
        self._publisher = publisher
        self._prefix = SWEEP_PREFIX if options.sweep else SEARCH_PREFIX
        self._tracker = ChampionTracker(study.champion)
        self._unrecorded: list[tuple[Task, Outcome, float]] = []
        self._durations: list[float] = []
        self._failures = 0  # in a row, of this session
        self._interrupts = 0
        self._not_before = 0.0  # monotonic time before which no trial starts
        self._champion_due = False
        self._finished = (-1, "")  # number of records at which the strategy had nothing more to try, and why

    def run(self) -> str:
        """Run to the end; returns why it ended, in one sentence. StudyError if another controller has the study, or if
        trial after trial failed; KeyboardInterrupt if it was ended at once."""
        with StudyLock(self._study.lock), self._signals():
            self._open()
            self._pool.warm_up()
            self._recover()
            try:
                reason = self._loop()
            finally:
                for ended in self._pool.stop_all("stopped by the operator"):
                    self._take(ended)
                self._record_all()
                if self._publisher is not None:
                    self._publisher.finish(self._narrator.say, lambda: self._interrupts > 1)
            if self._unrecorded:
                raise StudyError(
                    f"{len(self._unrecorded)} results could not be written to '{self._ledger.path}'; make room on "
                    "the disk and start again: they will be read from their run folders."
                )
            self._narrator.say(reason)
            if self._interrupts > 1:
                raise KeyboardInterrupt
            if reason == self._why_give_up():
                raise StudyError(reason)
            return reason

    def _open(self) -> None:
        ours, base = self._study.results, self._study.sweep_results
        if self._options.sweep:
            ours, base = base, ours
        self._ledger, self._base = Ledger(ours).repair(), Ledger(base).repair()
        for ledger in (self._base, self._ledger):
            for rejected in ledger.rejected:
                self._narrator.say(f"{ledger.path.name} line {rejected.line} is set aside: {rejected.why}.")
        self._narrator.say(f"Study '{self._study.name}':")
        for ledger in (self._base, self._ledger):
            records, ignored = select(ledger.records, self._comparable)
            strange = Counter(why for record in records if (why := self._strategy.why_not(record.params)))
            for why, count in [*ignored.items(), *strange.items()]:
                self._narrator.say(f"    {ledger.path.name}: {_trials(count)} ignored: {why}.")
            self._narrator.say(f"    {ledger.path.name}: {_trials(len(records) - strange.total())} loaded.")

    def _recover(self) -> None:
        """Record what a dead controller left, and make the champion's folder what the ledger says."""
        recorded = {record.trial for record in self._ledger.records}
        for trial, folder in self._study.run_folders(self._prefix).items():
            if trial in recorded:
                continue
            if end_stale(folder, grace=3.0):
                self._narrator.say(f"Trial {trial}: its process had outlived its controller and was ended.")
            task = Task.load(folder)
            if task is not None:
                outcome = outcome_of(folder, ABANDONED)
                self._unrecorded.append((task, outcome, _duration_of(folder)))
        self._record_all()
        self._show_champion(is_new=False)

    def _loop(self) -> str:
        while True:
            if self._publisher is not None:
                self._publisher.poll(self._narrator.say)
            reason = self._start_what_fits()
            if self._interrupts > 1 or (reason and not self._pool.running and not self._unrecorded):
                return reason or "Stopped at once."
            for ended in self._pool.wait(0.5 if self._pool.running else 0.05):
                self._take(ended)
                self._not_before = time.monotonic() + self._pause()
            if self._unrecorded and time.monotonic() >= self._not_before:
                self._record_all()
            if self._champion_due:
                self._show_champion(is_new=False)

    def _start_what_fits(self) -> str:
        """Start trials while there is room; why there is nothing more to start, if so."""
        while self._pool.has_room and time.monotonic() >= self._not_before and not self._unrecorded:
            if self._interrupts:
                return "Stopped by the operator."
            if self._finished[0] == len(self._ledger.records):
                return self._finished[1]  # no trial has ended since, so the strategy would say the same
            if why := self._why_give_up():
                return why
            task, proposal = self._next_task()
            if isinstance(proposal, Finished):
                self._finished = (len(self._ledger.records), proposal.reason)
                return proposal.reason
            task = replace(task, env_set=self._comparable.env_set, reward_version=self._comparable.reward_version)
            folder = self._study.run_folder(task.trial, self._prefix)
            self._narrator.proposal(task, proposal)
            try:
                self._pool.start(task, folder)
            except (OSError, EOFError) as error:  # a full disk; a fork server that died, which starts anew
                self._narrator.say(f"Trial {task.trial} could not be started, trying again soon: {error}")
                self._not_before = time.monotonic() + RETRY_AFTER
                return ""
        return "Stopped by the operator." if self._interrupts else ""

    def _why_give_up(self) -> str:
        """Why no trial will do better than the last ones; empty while one may."""
        last, most = self._ledger.records[-REFUSALS:], self._options.give_up_after
        refused = self._failures >= REFUSALS and all(record.extra.get("refused") for record in last)
        if most and (refused or self._failures >= most):
            return f"Gave up after {self._failures} failed trials in a row; the last: {last[-1].reason}"
        return ""

    def _next_task(self) -> tuple[Task, Proposal | Finished | None]:
        """The next task with the proposal behind it, None for a retest; or why there is none."""
        records = self._records()
        running = self._pool.running
        trial = self._next_number(running)
        seed = int(np.random.SeedSequence([self._options.seed, trial]).generate_state(1)[0]) >> 1
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        champion = holder(reign(records))
        if self._options.guard and champion is not None and champion.verdict == RETEST:
            model = self._model_of(champion)
            if champion.record.trial not in [task.retest_of for task in running]:
                return Task(trial, champion.record.params, seed, now, champion.record.trial, str(model)), None
        if self._done + sum(task.retest_of is None for task in running) >= self._options.trials:
            return Task(trial, {}, seed, now), Finished(f"All {self._options.trials} trials are done.")
        longer = self._longer_training(trial, now)
        if longer is not None:
            return longer, Proposal(longer.params, f"trial {longer.continues} goes on")
        known = lessons(record for record in records if not self._strategy.why_not(record.params))
        proposal = self._strategy.next(known, [task.params for task in running], self._options.seed)
        params = {} if isinstance(proposal, Finished) else proposal.params
        return Task(trial, params, seed, now), proposal

    def _next_number(self, running: list[Task]) -> int:
        """A number that no record, running trial or run folder of somebody else has."""
        taken = [record.trial for record in self._ledger.records] + [task.trial for task in running]
        number = 1 + max(taken, default=0)
        while is_run(self._study.run_folder(number, self._prefix)):
            number += 1
        return number

    def _longer_training(self, trial: int, now: str) -> Task | None:
        """The best short trial, with a larger budget; None while none deserves it."""
        records = select(self._ledger.records, self._comparable)[0]
        running = [task.continues for task in self._pool.running]
        found = to_promote(records, running, self._options.longest) if self._options.longest else None
        if found is None:
            return None
        origin, steps = found
        assert origin.model_path is not None
        folder = (self._study.root / origin.model_path).parent
        params = {**origin.params, "timesteps": steps}
        return Task(trial, params, origin.seed, now, continues=origin.trial, origin=str(folder))

    @property
    def _done(self) -> int:
        """Trials that count towards the cap."""
        return sum(record.retest_of is None and record.speaks_of_its_setting for record in self._ledger.records)

    def _records(self) -> list[Record]:
        return select([*self._base.records, *self._ledger.records], self._comparable)[0]

    def _take(self, ended: Ended) -> None:
        outcome = outcome_of(ended.folder, ended.ending)
        self._unrecorded.append((ended.task, outcome, ended.elapsed))
        self._durations.append(ended.elapsed)
        self._record_all()

    def _pause(self) -> float:
        """Seconds until the next start: the cool-down, and longer each time while simulator or disk are away."""
        if self._ledger.records and not self._ledger.records[-1].speaks_of_its_setting:
            return float(max(self._options.cooldown, min(self._options.longest_pause, 2.0**self._failures)))
        return self._options.cooldown

    def _record_all(self) -> None:
        """Write what waits to be written; a disk that refuses is asked again later."""
        while self._unrecorded:
            task, outcome, elapsed = self._unrecorded[0]
            record = self._record_of(task, outcome, elapsed)
            try:
                self._ledger.append(record)
            except OSError as error:
                self._narrator.say(f"The record of trial {task.trial} cannot be written, trying again soon: {error}")
                self._not_before = time.monotonic() + RETRY_AFTER
                return
            self._unrecorded.pop(0)
            self._after(record)

    def _after(self, record: Record) -> None:
        if record.mean_reward is None and not self._interrupts:
            self._failures += 1
        else:
            self._failures = 0
        self._narrator.result(record)
        self._show_champion(record.champion)
        done = self._done
        left = max(0, self._options.trials - done)
        eta = seconds_left(self._durations, left, self._pool.slots)
        self._narrator.progress(done, self._options.trials, eta)
        count, every = len(self._ledger.records), self._options.publish_every
        if self._publisher is not None and every and count % every == 0:
            self._publisher.publish(f"{self._study.name}: {count} trials", self._narrator.say)

    def _record_of(self, task: Task, outcome: Outcome, elapsed: float) -> Record:
        """The ledger's line: what the trial did, and what follows for the crown."""
        folder = self._study.run_folder(task.trial, self._prefix)
        record = Record(
            trial=task.trial,
            timestamp=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            params=task.params,
            run_status=outcome.run_status,
            mean_reward=outcome.mean_reward,
            std_reward=outcome.std_reward,
            model_path=str((folder / outcome.model).relative_to(self._study.root)) if outcome.model else None,
            elapsed_sec=round(elapsed, 3),
            reason=outcome.reason,
            env_set=task.env_set,
            reward_version=task.reward_version,
            seed=task.seed,
            model_sha256=outcome.model_sha256,
            retest_of=task.retest_of,
            continues=task.continues,
            fresh_reward=outcome.fresh_reward,
            own_fresh_reward=outcome.own_fresh_reward,
            interrupted=outcome.interrupted,
            extra=outcome.extra,
        )
        if self._comparable.why_not(record):  # left behind by a controller that searched something else
            return record
        records = self._records()
        rewards = [other.mean_reward for other in records if other.mean_reward is not None]
        verdict, beats = ruling(record, reign(records), rewards, self._options.guard)
        return replace(record, verdict=verdict, champion=beats)

    def _show_champion(self, is_new: bool) -> None:
        """Make the champion's folder show whom the ledger names; the next best if that model is lost."""
        line = reign(self._records())
        while (champion := holder(line)) is not None:
            record = champion.record
            shown = self._tracker.manifest or {}
            wanted = {"trial": record.trial, "model_path": record.model_path, "verdict": champion.verdict}
            if all(shown.get(key) == value for key, value in wanted.items()) and (is_new or self._tracker.is_whole):
                break
            facts = {
                **wanted,
                "timestamp": record.timestamp,
                "params": record.params,
                "mean_reward": record.mean_reward,
                "std_reward": record.std_reward,
                "fresh_reward": None if champion.reward == record.mean_reward else champion.reward,
                "env_set": record.env_set,
                "reward_version": record.reward_version,
                "evaluation": record.extra,
            }
            try:
                self._tracker.crown(self._model_of(champion), facts, record.model_sha256)
            except ModelError as error:
                self._narrator.say(f"Trial {record.trial} cannot be champion: {error}")
                line.remove(champion)
                continue
            except OSError as error:
                self._narrator.say(f"The champion's folder cannot be written, trying again soon: {error}")
                self._champion_due = True
                return
            break
        self._champion_due = False
        self._narrator.champion(champion, is_new)

    def _model_of(self, champion: Crowned) -> Path:
        assert champion.record.model_path is not None
        return self._study.root / champion.record.model_path

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Ctrl-C once: let the running trials end. Twice, or SIGTERM: end them now."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def interrupt(number: int, frame: object) -> None:
            self._interrupts += 2 if number == signal.SIGTERM else 1
            if self._interrupts == 1 and self._pool.running:
                self._narrator.say("Stopping after the running trials; Ctrl-C again to stop now.")

        before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"


def _duration_of(folder: Path) -> float:
    """How long a trial of a dead controller took, by the times of its files."""
    times = [path.stat().st_mtime for path in folder.iterdir() if path.is_file()]
    return max(times, default=0.0) - min(times, default=0.0)
