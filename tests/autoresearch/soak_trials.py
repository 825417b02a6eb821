"""Real trials, small, with a fault for each number of the schedule: injected where it would happen, in the trial's own
process, which ends with it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rl_training.autoresearch.training import TrainingTrials
from rl_training.experiment.config import EMBEDDED
from rl_training.experiment.run_folder import RunFolder
from tests.autoresearch.fake_trials import FakeTrials

VALUED = frozenset({"ok", "no_learning"})
# fault -> (how often in a hundred trials, the statuses it may end with)
FAULTS: dict[str, tuple[int, frozenset[str]]] = {
    "sound": (46, VALUED),
    "killed": (5, frozenset({"crashed"})),
    "hangs": (3, frozenset({"timeout"})),
    "silent": (3, frozenset({"timeout"})),
    "eats_memory": (4, frozenset({"out_of_memory"})),
    "no_result": (5, frozenset({"crashed"})),
    "nan_rewards": (5, frozenset({"invalid", "crashed"})),  # crashed: the policy's distribution refuses NaN itself
    "corrupt_model": (5, frozenset({"invalid"})),
    "sim_raises": (5, frozenset({"crashed"})),
    "clock_jumps": (5, VALUED),
    "tcp": (5, VALUED | {"sim_lost"}),
    "tcp_dies_and_comes_back": (3, VALUED | {"sim_lost"}),
    "tcp_stalls": (3, VALUED | {"sim_lost"}),
    "tcp_is_gone": (3, frozenset({"sim_lost"})),
}
DAY = 86_400.0


def schedule(seed: int) -> list[str]:
    """A hundred faults in an order that the seed decides; trial 101 begins anew."""
    faults = [fault for fault, (count, _) in FAULTS.items() for _ in range(count)]
    random.Random(seed).shuffle(faults)
    return faults


@dataclass(frozen=True)
class SoakTrials:
    """``trials`` with faults. Those of the simulator at ``address`` are asked for by files in ``wishes``."""

    trials: TrainingTrials
    faults: tuple[str, ...]
    address: str
    wishes: Path

    def train(self, params: dict[str, Any], folder: Path, seed: int) -> None:
        fault = self._fault_of(folder)
        sim = self.address if fault.startswith("tcp") else EMBEDDED
        self._run(fault, folder, sim, lambda trials: trials.train(params, folder, seed))

    def extend(self, params: dict[str, Any], folder: Path, seed: int, origin: Path) -> None:
        """Where the origin was trained, so that a fault of the simulator may find none."""
        fault, sim = self._fault_of(folder), RunFolder(origin).config().sim
        if sim == EMBEDDED and fault.startswith("tcp"):
            fault = "sound"
        self._run(fault, folder, sim, lambda trials: trials.extend(params, folder, seed, origin))

    def evaluate(self, model: Path, seed: int) -> float:
        impatient()
        return self.trials.evaluate(model, seed)

    def _fault_of(self, folder: Path) -> str:
        return self.faults[(int(folder.name.rpartition("-")[2]) - 1) % len(self.faults)]

    def _run(self, fault: str, folder: Path, sim: str, run: Callable[[TrainingTrials], None]) -> None:
        print(f"fault: {fault}, simulator: {sim}", flush=True)
        impatient()
        inject(fault, folder, self.wishes)
        run(replace(self.trials, base=replace(self.trials.base, sim=sim)))
        if fault == "corrupt_model":
            damage(folder / "model.zip")


def inject(fault: str, folder: Path, wishes: Path) -> None:
    """Prepare the fault in the code that this process is about to run."""
    from rl_training.envs.vec_env import DonkeyVecEnv
    from rl_training.runtime import trainer

    learn, step = trainer._learn, DonkeyVecEnv.step_wait

    def after_learning(*args: Any, **kwargs: Any) -> None:
        learn(*args, **kwargs)
        getattr(FakeTrials(), f"_{fault}")(folder)

    def wishing(*args: Any, **kwargs: Any) -> None:
        (wishes / fault).touch()
        time.sleep(0.3)  # the wish is seen, and the simulator is needed after that
        learn(*args, **kwargs)

    def without_rewards(self: DonkeyVecEnv) -> Any:
        observations, rewards, *rest = step(self)
        return (observations, rewards * float("nan"), *rest)

    def raising(self: DonkeyVecEnv) -> Any:
        raise RuntimeError("the embedded simulator raised")

    if fault in ("killed", "hangs", "silent", "eats_memory", "no_result"):
        trainer._learn = after_learning
    elif fault.startswith("tcp_"):
        trainer._learn = wishing
    elif fault == "nan_rewards":
        DonkeyVecEnv.step_wait = without_rewards  # type: ignore[method-assign]
    elif fault == "sim_raises":
        DonkeyVecEnv.step_wait = raising  # type: ignore[method-assign]
    elif fault == "clock_jumps":
        jump_clock(random.Random(folder.name).uniform(-DAY, DAY))


def jump_clock(seconds: float) -> None:
    """The wall clock as this process reads it. (Not the machine's: others use it too.)"""
    real = time.time
    time.time = lambda: real() + seconds


def impatient() -> None:
    """Waits on the simulator that fit a short trial."""
    from rl_training.protocol.deadlines import Deadlines

    Deadlines.__init__.__defaults__ = (4.0, 3.0, 15.0, 3.0, 5.0)  # type: ignore[misc]


def damage(model: Path) -> None:
    """Turn over one byte in the middle."""
    data = bytearray(model.read_bytes())
    data[len(data) // 2] ^= 255
    model.write_bytes(data)
