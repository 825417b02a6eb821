"""What the wire costs: `python benchmarks/wire.py [--seconds 5]`.

The server is `donkey-rl sim` in a process of its own, on loopback, with the embedded world and 160 x 120 JPEG images.
Printed: steps/s of one client in lockstep (and of the env on top of it), the time a reset takes, and the load of eight
real-time clients at 20 Hz in share of one core.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import psutil

from rl_training.envs.donkey_env import DonkeyEnv
from rl_training.protocol.client import SimClient

TRACK = "generated_track"
CLIENTS = 8


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


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def lockstep(seconds: float) -> None:
    """One client as fast as it goes, in rounds of which the best counts: the machine may have other work."""
    with simulator("--lockstep") as (host, port, process):
        client = SimClient(host, port)
        client.connect()
        client.load_scene(TRACK)
        resets = []
        for _ in range(20):
            start = time.perf_counter()
            client.reset()
            resets.append(time.perf_counter() - start)
        best = 0.0
        server_cost = client_cost = np.inf
        rounds = max(1, round(seconds))
        for _ in range(rounds):
            client.reset()
            start, spent, own, steps = time.perf_counter(), cpu_seconds(process), time.process_time(), 0
            while time.perf_counter() - start < seconds / rounds:
                client.step(0.05, 0.2)
                steps += 1
            best = max(best, steps / (time.perf_counter() - start))
            server_cost = min(server_cost, (cpu_seconds(process) - spent) / steps)
            client_cost = min(client_cost, (time.process_time() - own) / steps)
        client.close()
        print(f"lockstep, client   {best:8.0f} steps/s")
        print(f"CPU of a step      {1e6 * server_cost:8.0f} us server, {1e6 * client_cost:.0f} us client")
        print(f"lockstep, reset    {1e3 * statistics.median(resets):8.2f} ms")
        env = DonkeyEnv(TRACK, {"host": host, "port": port})
        env.reset(seed=0)
        action = np.array([0.05, 0.2], np.float32)
        best = 0.0
        for _ in range(rounds):
            start = time.perf_counter()
            for _ in range(300):
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset()
            best = max(best, 300 / (time.perf_counter() - start))
        env.close()
        print(f"lockstep, env      {best:8.0f} steps/s, resets included")


def real_time(seconds: float) -> None:
    """Eight clients, each of which answers every frame with a control."""
    with simulator() as (host, port, process):
        clients = [SimClient(host, port) for _ in range(CLIENTS)]
        for client in clients:
            client.connect()
            client.load_scene(TRACK)
        start = time.perf_counter()
        clients[0].reset()
        print(f"real time, reset   {1e3 * (time.perf_counter() - start):8.0f} ms")
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
        spent = cpu_seconds(process) - spent
        for client in clients:
            client.close()
        rates = [count / seconds for count in counts]
        load = spent / seconds
        rate = f"{min(rates):.1f} to {max(rates):.1f} frames/s each"
        print(f"real time, cars    {CLIENTS:8} with {rate}, server {load:.0%} of a core")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement (5)")
    arguments = parser.parse_args()
    lockstep(arguments.seconds)
    real_time(arguments.seconds)
