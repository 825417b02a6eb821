"""A hundred real trials among faults: `make soak`, or `python -m tests.autoresearch.soak [--trials N] [--seed N]`.

Trials fail in every way by a seeded schedule; meanwhile the controller is killed, the disk fills up, the remote goes
away or hangs, clocks jump, and the simulator at the end of a socket dies, stalls and comes back. What must be true at
the end is checked and printed; the exit code is 1 if anything is not. Nothing of the machine is changed: the disk is a
file system in memory (where mounting is allowed; else the ledger's writes fail), the clock that of the processes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rl_training.autoresearch.ledger import Ledger
from rl_training.autoresearch.publish import Publisher
from rl_training.autoresearch.study import Study
from tests.autoresearch.soak_check import MARK, check, fault_of
from tests.autoresearch.soak_trials import FAULTS, schedule

ROOT = Path(__file__).parents[2]
DISK_MEGABYTES = 1500
GONE = 12.0  # [s] for which the simulator is away when it is gone
HANGING_HOOK = '#!/bin/sh\nif [ -e "{flag}" ]; then sleep 600; fi\n'


class Simulator:
    """`donkey-rl sim` on one port; does what the files in ``wishes`` ask for."""

    def __init__(self, wishes: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._wishes = wishes
        self._over = threading.Event()
        self._start()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "rl_training", "sim", "--port", str(self.port), "--lockstep", "--apart"]
        command += ["--track", "generated_track"]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=quiet, stderr=quiet)

    def _serve(self) -> None:
        while not self._over.wait(0.05):
            for wish in ("tcp_dies_and_comes_back", "tcp_is_gone", "tcp_stalls"):
                if not (self._wishes / wish).exists():
                    continue
                (self._wishes / wish).unlink()
                if wish == "tcp_stalls":
                    self._process.send_signal(signal.SIGSTOP)
                    self._over.wait(6.0)
                    self._process.send_signal(signal.SIGCONT)
                    continue
                self._process.kill()
                self._process.wait()
                self._over.wait(GONE if wish == "tcp_is_gone" else 0.0)
                self._start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._process.kill()
        self._process.wait()


class Night:
    """The troubles from outside, in an order and at times that the seed decides."""

    def __init__(self, folder: Path, seed: int, is_mounted: bool) -> None:
        self.disk, self.wishes = folder / "disk", folder / "wishes"
        self.remote, self.away, self.hang = folder / "remote.git", folder / "away.git", folder / "remote-hangs"
        self._chance = random.Random(seed)
        self._is_mounted = is_mounted
        self.counts: Counter[str] = Counter()
        subprocess.run(["git", "init", "--quiet", "--bare", str(self.remote)], check=True)
        hook = self.remote / "hooks" / "pre-receive"
        hook.write_text(HANGING_HOOK.format(flag=self.hang))
        hook.chmod(0o755)

    def trouble(self, over: threading.Event) -> None:
        """One trouble after another until it is over; each ends before the next begins."""
        kinds = ["full disk", "remote gone", "remote hangs"]
        while not over.wait(self._chance.uniform(2.0, 8.0)):
            kind = self._chance.choice(kinds)
            self.counts[kind] += 1
            with self._caused(kind):
                over.wait(self._chance.uniform(1.0, 4.0))

    @contextlib.contextmanager
    def _caused(self, kind: str) -> Iterator[None]:
        ballast = self.disk / "ballast"
        if kind == "full disk" and self._is_mounted:
            fill(ballast)
            yield
            ballast.unlink()
        elif kind == "remote gone":
            self.remote.rename(self.away)
            yield
            self.away.rename(self.remote)
        else:
            flag = self.wishes / "disk-full" if kind == "full disk" else self.hang
            flag.touch()
            yield
            flag.unlink()


def fill(ballast: Path) -> None:
    """Write until there is no room left."""
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        block = bytes(1 << 24)
        while block:
            if file.write(block) < len(block):
                block = block[: len(block) // 2]


@contextlib.contextmanager
def disk_of_our_own(folder: Path) -> Iterator[bool]:
    """A small file system in memory at ``folder``; whether it could be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m", "tmpfs", str(folder)]
    is_mounted = (
        os.geteuid() == 0
        and shutil.which("mount") is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def run_night(args: argparse.Namespace, night: Night, study: Study, simulator: Simulator, told: Path) -> list[str]:
    """Controller after controller, until one comes to its end; what went wrong with them."""
    chance, faults = random.Random(args.seed + 1), []
    options = {name: getattr(args, name) for name in ("trials", "jobs", "timeout", "silence", "memory")}
    options |= {"address": f"127.0.0.1:{simulator.port}", "remote": night.remote, "wishes": night.wishes, "told": told}
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    environment = {**os.environ, MARK: str(study.root)}
    deadline = time.monotonic() + args.deadline
    for life in range(10_000):
        command = [sys.executable, "-m", "tests.autoresearch.soak_night", str(study.root), str(args.seed), str(life)]
        with subprocess.Popen(command + flags, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as run:
            patience = chance.uniform(3.0, 25.0) if night.counts["controller killed"] < args.kills else args.deadline
            try:
                errors = run.communicate(timeout=min(patience, max(1.0, deadline - time.monotonic())))[1]
            except subprocess.TimeoutExpired:
                run.kill()
                errors = run.communicate()[1]
                night.counts["controller killed"] += 1
        if "Traceback" in errors:
            faults.append(f"controller {life} failed: {errors.strip()[-2000:]}")
        if run.returncode == 0:
            return faults
        if time.monotonic() > deadline:
            return [*faults, f"the night was not over after {args.deadline:g} s"]
        if run.returncode > 0:
            night.counts["controller refused to go on"] += 1
            time.sleep(1.0)
    return faults


def report(args: argparse.Namespace, folder: Path) -> bool:
    """Run the night and print what became of it; whether every rule was kept."""
    began = time.monotonic()
    with disk_of_our_own(folder / "disk") as is_mounted:
        night, study, told = Night(folder, args.seed, is_mounted), Study(folder / "disk" / "study"), folder / "told"
        night.wishes.mkdir()
        told.touch()
        simulator, over = Simulator(night.wishes), threading.Event()
        troubles = threading.Thread(target=night.trouble, args=(over,))
        troubles.start()
        try:
            faults = run_night(args, night, study, simulator, told)
        finally:
            over.set()
            troubles.join()
            simulator.close()
        before = study.results.read_bytes()
        calm = argparse.Namespace(**{**vars(args), "kills": 0})
        faults += run_night(calm, night, study, simulator, told)  # nothing is left to do but to publish
        if study.results.read_bytes() != before:
            faults.append("a further start changed the ledger")
        records, plan = Ledger(study.results).records, schedule(args.seed)
        rules = check(study, plan, args.trials, told, night.remote, Publisher(study, None).branch)
        large = shutil.ignore_patterns("*.zip", "*.pkl", "*.png", "champion", "checkpoints", "tensorboard")
        shutil.copytree(study.root, folder / "study", ignore=large)
    table: dict[str, Counter[str]] = {fault: Counter() for fault in FAULTS}
    for record in records:
        table[fault_of(record, plan)]["interrupted" if record.interrupted else record.run_status] += 1
    print(f"seed {args.seed}: {len(records)} records in {time.monotonic() - began:.0f} s\n")
    print(f"{'fault in the trial':26}{'seen':>6}  became")
    for fault, became in table.items():
        told_of = ", ".join(f"{count} {status}" for status, count in became.most_common())
        print(f"{fault:26}{became.total():6}  {told_of}")
    print(f"\n{'fault around it':26}{'times':>6}")
    for kind, count in sorted(night.counts.items()):
        print(f"{kind:26}{count:6}")
    print(f"\n{'rule':52}{'checked':>8}  kept")
    for rule in rules:
        print(f"{rule.name:52}{rule.checked:8}  {'no: ' + '; '.join(rule.faults) if rule.faults else 'yes'}")
    print(f"{'controllers end without a traceback':60}  {'no: ' + '; '.join(faults) if faults else 'yes'}", flush=True)
    return not faults and not any(rule.faults for rule in rules)


def main(arguments: Sequence[str]) -> int:
    """0 if every rule was kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.autoresearch.soak", description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kills", type=int, default=10, help="of the controller (10)")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds for a trial (30)")
    parser.add_argument("--silence", type=float, default=15.0, help="seconds (15)")
    parser.add_argument("--memory", type=float, default=2.0, help="GB for a trial (2)")
    parser.add_argument("--deadline", type=float, default=3600.0, help="seconds for the whole night (3600)")
    args = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="donkey-rl-soak-"))
    is_kept = report(args, folder)
    if is_kept:
        shutil.rmtree(folder)
    else:
        print(f"The study, without its models, and what the search was told are in {folder}.")
    return 0 if is_kept else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
