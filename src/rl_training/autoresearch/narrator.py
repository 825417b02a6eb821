"""What people read of a study while it runs: the same lines on the console and in `autoresearch_log.txt`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from rl_training.autoresearch.champion import DISCARD, Crowned
from rl_training.autoresearch.job import Task
from rl_training.autoresearch.ledger import Record
from rl_training.autoresearch.strategy import Proposal


class Narrator:
    """Tells the study's story. A log that cannot be written is no reason to stop: the console still hears it."""

    def __init__(self, log: Path, quiet: bool = False) -> None:
        self._log = log
        self._quiet = quiet
        self._is_torn = False  # a full disk may have cut the last line

    def say(self, *lines: str) -> None:
        """Print lines with the time, at once."""
        now = datetime.now().strftime("%Y-%m-%d %H:%M:%S")
        text = "".join(f"{now}  {line}\n" for line in lines)
        if not self._quiet:
            self._print(text)
        try:
            with self._log.open("a", encoding="utf-8") as file:
                file.write("\n" * self._is_torn + text)
            self._is_torn = False
        except OSError as error:
            self._is_torn = True
            if not self._quiet:
                with contextlib.suppress(OSError):
                    print(f"{now}  The log cannot be written: {error}", file=sys.stderr, flush=True)

    def _print(self, text: str) -> None:
        """A console that went away, as one behind `| head` or a closed terminal does, is no reason to stop either."""
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError:
            self._quiet = True
            with contextlib.suppress(OSError):  # or what is left of the text would be tried again at the very end
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def proposal(self, task: Task, proposal: Proposal | None) -> None:
        """A trial that is about to start, with what the model thinks of the best candidates."""
        if proposal is None:
            self.say(f"Trial {task.trial}: retest of trial {task.retest_of}, {show(task.params)}")
            return
        lines = [f"Trial {task.trial}: {show(task.params)} ({proposal.rule})"]
        for rank, candidate in enumerate(proposal.top, start=1):
            figures = f"UCB {candidate.ucb:.4g} = mean {candidate.mean:.4g}, std {candidate.std:.4g}"
            lines.append(f"    {rank}. {figures}: {show(candidate.params)}")
        self.say(*lines)

    def result(self, record: Record) -> None:
        """A trial that ended."""
        if record.mean_reward is None:
            self.say(f"Trial {record.trial}: {record.run_status} after {record.elapsed_sec:.1f} s: {record.reason}")
        else:
            spread = "" if record.std_reward is None else f" ± {record.std_reward:.2f}"
            status = "" if record.run_status == "ok" else f" ({record.run_status})"
            self.say(
                f"Trial {record.trial}: mean_reward {record.mean_reward:.2f}{spread}{status} "
                f"in {record.elapsed_sec:.1f} s"
            )
            if record.stopped_at is not None:
                self.say(f"    {record.reason}")
        if record.retest_of is not None and record.verdict:
            fresh = "no result" if record.fresh_reward is None else f"{record.fresh_reward:.2f}"
            word = "discarded" if record.verdict == DISCARD else "kept"
            self.say(f"    Retest: trial {record.retest_of} is {word}, {fresh} on fresh seeds")

    def champion(self, crowned: Crowned | None, is_new: bool) -> None:
        """Who leads."""
        if crowned is None:
            self.say("    No champion yet.")
            return
        record = crowned.record
        if is_new:
            self.say(f"[CHAMPION] New best: mean_reward={record.mean_reward} params={show(record.params)}")
        tested = "" if crowned.verdict == "keep" else ", to be retested"
        self.say(f"    Champion: trial {record.trial}, mean_reward {crowned.reward:.2f}{tested}")

    def progress(self, done: int, cap: int, seconds_left: float | None) -> None:
        """How far the study is."""
        eta = "" if seconds_left is None else f", about {timedelta(seconds=round(seconds_left))} left"
        self.say(f"    {done} of at most {cap} trials{eta}")


def show(params: Mapping[str, Any]) -> str:
    """A setting on one line."""
    return " ".join(f"{key}={_short(value)}" for key, value in params.items())


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def seconds_left(durations: Sequence[float], trials_left: int, jobs: int) -> float | None:
    """ETA from the trials of this session; None before the first has ended."""
    if not durations:
        return None
    return sum(durations) / len(durations) * trials_left / jobs
