"""What the wire costs: steps/s of a lockstep client, how long a reset takes, and eight clients at 20 Hz on one core.

    donkey-rl bench wire [--seconds 5] [--json]

The server is `donkey-rl sim` in a process of its own, on loopback, with the embedded world and 160x120 JPEG images.
A rate is the best of one-second rounds and a time the least of many, for other work on the machine only ever adds to
them. The peer is the classic client, gym-donkeycar: its resets wait for fixed times (0.1 s + 1 s + 0.1 s), and it steps
in real time only, at 20 frames/s; neither depends on the machine, so they stand here as figures.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psutil

from rl_training.cli.console import console, table
from rl_training.envs.donkey_env import DonkeyEnv
from rl_training.protocol.client import SimClient

TRACK = "generated_track"
CLIENTS, RESETS = 8, 20
EPISODE = 400  # steps
CLASSIC_RESET, CLASSIC_RATE = 1200.0, 20.0  # [ms], [steps/s]


@contextmanager
def simulator(*arguments: str) -> Iterator[tuple[str, int, psutil.Process]]:
    """A server on a free port."""
    command = [sys.executable, "-m", "rl_training", "sim", "--port", "0", "--track", TRACK, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().split()[2].rstrip(",").partition(":")
        try:
            yield host, int(port), psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait(timeout=10)


def connected(host: str, port: int) -> SimClient:
    """A client with a car."""
    client = SimClient(host, port)
    client.connect()
    client.load_scene(TRACK)
    return client


def cpu_seconds(process: psutil.Process) -> float:
    """CPU time it has used."""
    times = process.cpu_times()
    return float(times.user + times.system)


def reset_milliseconds(client: SimClient) -> list[float]:
    """How long resets take, each after a second of driving in real time, or a few steps in lockstep."""
    times = []
    for _ in range(RESETS if client.lockstep else 5):
        for _ in range(20):
            client.step(0.0, 0.5)
        start = time.perf_counter()
        client.reset()
        times.append(1e3 * (time.perf_counter() - start))
    return times


def best_rate(work: Callable[[], Any], seconds: float) -> float:
    """Calls of `work` a second, in the best of rounds of a second."""
    best = 0.0
    for _ in range(max(1, round(seconds))):
        start, count = time.perf_counter(), 0
        while time.perf_counter() - start < min(1.0, seconds):
            work()
            count += 1
        best = max(best, count / (time.perf_counter() - start))
    return best


def lockstep_rows(seconds: float) -> list[dict[str, Any]]:
    """One client as fast as it goes, and the env on top of it."""
    with simulator("--lockstep") as (host, port, process):
        client = connected(host, port)
        resets = reset_milliseconds(client)
        best_rate(lambda: client.step(0.05, 0.2), 0.2)
        spent, own, steps = cpu_seconds(process), time.process_time(), 0

        def step() -> None:
            nonlocal steps
            client.step(0.05, 0.2)
            steps += 1
            if steps % EPISODE == 0:  # a car that has stood against a tree for 300 s of its time is removed
                client.reset()

        rate = best_rate(step, seconds)
        server = 1e6 * (cpu_seconds(process) - spent) / steps
        learner = 1e6 * (time.process_time() - own) / steps
        client.close()
        return [
            row("lockstep, one client, JPEG", rate, "steps/s", ">= 1,500", rate >= 1500.0, CLASSIC_RATE),
            row("CPU of such a step: server", server, "us"),
            row("CPU of such a step: client", learner, "us"),
            row("lockstep, the env, resets included", env_rate(host, port, seconds), "steps/s", peer=CLASSIC_RATE),
            row("lockstep, reset", min(resets), "ms", "<= 5", min(resets) <= 5.0, CLASSIC_RESET),
            row("lockstep, reset, median", statistics.median(resets), "ms"),
        ]


def env_rate(host: str, port: int, seconds: float) -> float:
    """Steps/s of the Gymnasium env over TCP."""
    env = DonkeyEnv(TRACK, {"host": host, "port": port})
    env.reset(seed=0)
    action = np.array([0.05, 0.2], np.float32)

    def step() -> None:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()

    rate = best_rate(step, seconds)
    env.close()
    return rate


def real_time_rows(seconds: float) -> list[dict[str, Any]]:
    """Resets while the clock runs, then eight clients, each of which answers every frame with a control."""
    with simulator() as (host, port, process):
        clients = [connected(host, port)]
        resets = reset_milliseconds(clients[0])
        clients += [connected(host, port) for _ in range(CLIENTS - 1)]
        counts = [0] * CLIENTS
        end = time.monotonic() + seconds

        def drive(index: int) -> None:
            while time.monotonic() < end:
                clients[index].step(0.1, 0.2)
                counts[index] += 1

        threads = [threading.Thread(target=drive, args=(index,)) for index in range(CLIENTS)]
        spent = cpu_seconds(process)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        load = (cpu_seconds(process) - spent) / seconds
        for client in clients:
            client.close()
    slowest = min(counts) / seconds
    return [
        row("real time, reset", min(resets), "ms", "<= 500", max(resets) <= 500.0, CLASSIC_RESET),
        row("real time, reset, worst", max(resets), "ms"),
        row(f"real time, {CLIENTS} clients: the slowest", slowest, "frames/s", ">= 19", slowest >= 19.0, CLASSIC_RATE),
        row(f"real time, {CLIENTS} clients: the server", 100.0 * load, "% of a core", "<= 100", load <= 1.0),
    ]


def row(
    what: str, figure: float, unit: str, bar: str = "", met: bool | None = None, peer: float | None = None
) -> dict[str, Any]:
    """One line of the table; `peer` in the same unit."""
    print(f"  {what}: {figure:,.1f} {unit}", file=sys.stderr, flush=True)
    return {"what": what, "figure": figure, "unit": unit, "bar": bar, "met": met, "peer": peer}


def main(argv: list[str]) -> int:
    """Measure and print; exit code 1 when a bar is missed."""
    parser = argparse.ArgumentParser(prog="donkey-rl bench wire", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement (5)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    args = parser.parse_args(argv)
    rows = lockstep_rows(args.seconds) + real_time_rows(args.seconds)
    if args.json:
        print(json.dumps({"load": os.getloadavg(), "rows": rows}, indent=2))
    else:
        grid = table("The wire, over loopback", "what", "measured", "bar", "", "classic client")
        for each in rows:
            met = {None: "", True: "met", False: "MISSED"}[each["met"]]
            peer = "" if each["peer"] is None else f"{each['peer']:,.0f} {each['unit']}"
            grid.add_row(each["what"], f"{each['figure']:,.1f} {each['unit']}", each["bar"], met, peer)
        console.print(grid)
        console.print(f"Load average at the end: {os.getloadavg()[0]:.1f}; two idle cores are what the bars are for.")
    return 1 if any(each["met"] is False for each in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
