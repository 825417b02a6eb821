"""Short trials are cheap: which trial need not run to its end, and which deserves a longer one.

Symbols
    curve   (step, level) pairs, rising in step: the best mean reward of a run's looks so far, which is what it would
            have to show if it ended there; a policy that gets worse after its peak has lost nothing
    total   env steps a trial was given; a trial is never stopped before the third of it
    past    curves of finished trials that ran to their end, so that where they ended is known

Both rules learn from the study's own trials and assume nothing of the curves' shape. A trial is hopeless when trials
that stood where it stands are known, and none of them left the worst third. In a study where slow starters
recover, some did, so nobody is stopped.

What is learned of a stopped trial is true: its reward is that of its setting at the steps it was trained, as
``timesteps`` is searched like any other parameter. That alone would leave the search free to hope that the same setting
shines at the budget it was not given, and to propose its neighbours again and again; so it also hears what the trials
that stood there came to. What is learned of a longer one is true, too: it goes on from the resume point of its origin,
and so is the trial that would have been made with the larger budget at once. (Both to the last bit where no schedule
looks ahead to the end of the budget; DQN's exploration does.)
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from rl_training.autoresearch.ledger import Record

Curve = Sequence[tuple[float, float]]

UNTOUCHED = 1 / 3  # share of its budget that every trial gets
ENOUGH = 18  # finished trials before one is judged by them: the worst third is then its kin
KIN = 6  # of them, the lowest at that step, are looked at in any case
ABOVE = 3  # next above a trial are looked at too: levels are noisy
SAME_LENGTH = 0.8  # of a budget, that a trial must have had to be compared at its end
POOR = 1 / 3  # quantile above which an end is worth waiting for; at 2/3, three of the ten best were lost
FIRST = 8  # finished trials before the best of them is trained on
LONGER = 2.0  # times the budget of its origin has a promoted trial, at most the longest
PAUSE = 3  # one trial in so many may be a promotion: the search goes on
BEST = 0.2  # share of the trials that deserve one


class Hopeless(NamedTuple):
    """Why a trial need not go on, in one sentence, and where those that stood there ended, on average."""

    reason: str
    foretold: float


def best_so_far(looks: Curve) -> Curve:
    """The curve of a run's looks (step, mean reward)."""
    levels = itertools.accumulate((reward for _, reward in looks), max)
    return [(step, level) for (step, _), level in zip(looks, levels, strict=True)]


def level_at(curve: Curve, step: float) -> float | None:
    """Where a trial stood at a step; None before its first level."""
    index = bisect_right(curve, step, key=lambda point: point[0])
    return curve[index - 1][1] if index else None


def hopeless(step: float, level: float, total: float, past: Sequence[Curve]) -> Hopeless | None:
    """The verdict on a trial that stands there; None if it should go on."""
    if step < UNTOUCHED * total:
        return None
    known = []  # (level at this step, level at the end) of trials that had about as long
    for curve in past:
        here, end = level_at(curve, step), level_at(curve, total)
        if here is not None and end is not None and curve[-1][0] >= SAME_LENGTH * total:
            known.append((here, end))
    if len(known) < ENOUGH:
        return None
    known.sort()
    lower = bisect_right(known, level, key=lambda pair: pair[0])
    kin = [end for _, end in known[: max(lower + ABOVE, KIN)]]
    bar = float(np.quantile([end for _, end in known], POOR))
    if max(kin) >= bar:
        return None
    reason = (
        f"stopped at step {step:.0f} of {total:.0f}: none of {len(kin)} trials that stood about as low as {level:.1f} "
        f"there reached {bar:.1f}"
    )
    return Hopeless(reason, max(level, float(np.mean(kin))))


def to_promote(records: Sequence[Record], running: Collection[int | None], longest: int) -> tuple[Record, int] | None:
    """The best trial that has earned a longer training, and how long; None while none has.

    ``running`` are the origins of promotions under way.
    """
    promoted = {record.continues for record in records if not record.interrupted} | set(running)
    if any(record.continues is not None for record in records[-(PAUSE - 1) :]) or any(o is not None for o in running):
        return None
    whole = [r for r in records if r.mean_reward is not None and r.retest_of is None and r.stopped_at is None]
    if len(whole) < FIRST:
        return None
    whole.sort(key=lambda record: -(record.mean_reward or 0.0))
    for record in whole[: max(1, round(BEST * len(whole)))]:
        budget = record.params.get("timesteps", 0)
        wanted = min(int(LONGER * budget), longest)
        if record.run_status == "ok" and record.trial not in promoted and wanted >= budget / SAME_LENGTH > 0:
            return record, wanted
    return None
