"""Examine a simulator over its wire: what it is, how fast, what it sends, and what to do about each fault.

In its menu a scene is loaded for the examination and left again; a scene that is loaded stays, and gets a car for as
long as the examination takes.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import socket
import statistics
import textwrap
import time
from dataclasses import asdict, dataclass, replace

from rl_training.errors import SimulatorError, SimulatorTimeout, UsageError, did_you_mean
from rl_training.protocol.client import SimClient
from rl_training.protocol.deadlines import Deadlines
from rl_training.protocol.scenes import NODES_OF_SCENE
from rl_training.protocol.telemetry import Telemetry
from rl_training.protocol.transport import parse_address

EXAMPLES = """examples:
  donkey-rl doctor --sim 127.0.0.1:9091
  donkey-rl doctor --sim 127.0.0.1:9091,127.0.0.1:9093
  donkey-rl doctor --sim 192.168.0.7:9091 --track warehouse --json"""

FRAMES = 40  # two seconds at 20 Hz
SLOW_RATE, SLOW_ANSWER = 18.0, 0.05  # [1/s], [s]
GOOD, POOR, BAD = "good", "poor", "BAD"

NOBODY = "Is it running, on this host and port, and is no firewall between? A Unity one needs --host 0.0.0.0."
ENDED = "It hung up. Is there room for one more car, does its own log say why, or is it no simulator at all?"
SILENT = (
    "It hangs, or is no simulator. Restart it; a Unity one also stops while its window asks something. "
    "A very slow one may need a longer --timeout."
)


@dataclass
class Finding:
    """One line of the report."""

    what: str
    state: str
    value: str
    advice: str = ""
    sim: str = ""  # the simulator it is about


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl doctor`."""
    parser.add_argument(
        "--sim",
        default="127.0.0.1:9091",
        metavar="HOST:PORT[,HOST:PORT...]",
        help="the simulator, or several (127.0.0.1:9091)",
    )
    parser.add_argument("--track", default="generated_track", help="scene to load when it is in its menu")
    parser.add_argument("--timeout", type=float, default=10.0, help="longest wait for an answer [s] (10)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(args: argparse.Namespace) -> int:
    """Examine and report; exit code 1 when something is bad."""
    if not 0.0 < args.timeout < math.inf:
        raise UsageError(f"--timeout is {args.timeout}; expected seconds above 0, such as 10.")
    everything = []
    for host, port in [parse_address(text) for text in args.sim.split(",")]:
        findings = examine(host, port, args.track, args.timeout)
        everything += findings
        if not args.json:
            print(f"Simulator at {host}:{port}")
            for finding in findings:
                _print(finding)
    if args.json:
        print(json.dumps([asdict(finding) for finding in everything], indent=2))
    return 1 if any(finding.state == BAD for finding in everything) else 0


def _print(finding: Finding) -> None:
    margin = " " * 19
    head = f"  {finding.state:5}{finding.what:12}"
    print(textwrap.fill(finding.value, 110, initial_indent=head, subsequent_indent=margin))
    if finding.advice:
        print(textwrap.fill(finding.advice, 110, initial_indent=f"{margin}-> ", subsequent_indent=f"{margin}   "))


def examine(host: str, port: int, track: str, timeout: float) -> list[Finding]:
    """All findings, up to the first fault that ends the examination."""
    deadlines = Deadlines(connect=min(timeout, 3.0), answer=timeout, scene=3.0 * timeout, frame=timeout, reset=timeout)
    client = SimClient(host, port, deadlines)
    findings: list[Finding] = []
    try:
        _examine_connection(client, findings)
        was_in_menu = _examine_scene(client, track, findings)
        _examine_frames(client, findings)
        if was_in_menu:
            client.exit_scene()
    except SimulatorError as error:
        client.close()  # some programs serve one client at a time
        advice = _advice(error, host, port, findings)
        if not findings and advice != NOBODY:
            findings.append(Finding("reachable", GOOD, "somebody listens there"))
        findings.append(Finding("fault", BAD, str(error), advice))
    finally:
        client.close()
    return [replace(finding, sim=f"{host}:{port}") for finding in findings]


def _advice(error: SimulatorError, host: str, port: int, findings: list[Finding]) -> str:
    """What to do about a simulator that was not found, says nothing or hung up."""
    said = _words_of(host, port)
    if said is None:
        return NOBODY if not findings else ENDED
    if said and not said.lstrip().startswith(b"{"):
        first = said.splitlines()[0].decode("ascii", "replace")[:40]
        return f"Another program has this port: it says {first!r}. Correct host and port."
    return SILENT if isinstance(error, SimulatorTimeout) else ENDED


def _words_of(host: str, port: int) -> bytes | None:
    """What whoever listens there says; None: nobody does. A line of nonsense makes programs speak that wait for one."""
    try:
        connection = socket.create_connection((host, port), timeout=1.0)
    except OSError:
        return None
    with connection, contextlib.suppress(OSError):
        connection.sendall(b"?\r\n\r\n")
        return connection.recv(60)
    return b""


def _examine_connection(client: SimClient, findings: list[Finding]) -> None:
    start = time.monotonic()
    client.connect()
    findings.append(Finding("reachable", GOOD, f"connected in {1e3 * (time.monotonic() - start):.0f} ms"))
    kind = f"{client.server}, {'lockstep' if client.lockstep else 'real time'}" if client.server else "Unity"
    findings.append(Finding("protocol", GOOD, f"version {client.version or 'not told'} ({kind})"))
    answers = [client.ping() for _ in range(10)]
    latency = statistics.median(answers)
    slow = latency > SLOW_ANSWER
    advice = "Controls come late. Use a cable, or run the simulator on the learner's machine." if slow else ""
    findings.append(
        Finding("latency", POOR if slow else GOOD, f"{1e3 * latency:.1f} ms for question and answer", advice)
    )


def _examine_scene(client: SimClient, track: str, findings: list[Finding]) -> bool:
    """Have a scene with a car in it; True when the simulator was in its menu."""
    where = client.where()
    if where != "":
        value = "not recognised" if where == "?" else where
        advice = "Another learner may drive there: scene names are told in the menu only."
        findings.append(Finding("scene", GOOD, f"{value} is loaded", advice))
        return False
    names = client.scene_names()
    missing = [name for name in NODES_OF_SCENE if name not in names]
    advice = f"Envs of {', '.join(missing)} cannot run on it." if missing else ""
    findings.append(Finding("scenes", POOR if missing else GOOD, f"{len(names)}: {', '.join(names)}", advice))
    scene, advice = track, ""
    if track not in names:
        scene, advice = names[0], f"It has no scene '{track}'.{did_you_mean(track, names)}"
    start = time.monotonic()
    client.load_scene(scene)
    loaded = f"{scene} loaded in {time.monotonic() - start:.1f} s"
    findings.append(Finding("scene", POOR if advice else GOOD, loaded, advice))
    return True


def _examine_frames(client: SimClient, findings: list[Finding]) -> None:
    start = time.monotonic()
    frame = client.reset()
    findings.append(Finding("reset", GOOD, f"{1e3 * (time.monotonic() - start):.0f} ms"))
    start = time.monotonic()
    frames = [client.step(0.0, 0.0, 1.0) for _ in range(FRAMES)]
    rate = FRAMES / (time.monotonic() - start)
    # The median: a frame passed over, because this machine was busy, says nothing of the simulator.
    period = statistics.median(after.time - before.time for before, after in itertools.pairwise(frames))
    pace = f"{rate:.1f} frames/s, {1e3 * period:.0f} ms of simulated time each"
    if client.lockstep:
        findings.append(Finding("frame rate", GOOD, f"{pace}, one for each control"))
    elif rate < SLOW_RATE:
        advice = "Smaller images (cam_config), lower graphics quality, or another machine; 20 frames/s are expected."
        findings.append(Finding("frame rate", POOR, pace, advice))
    else:
        findings.append(Finding("frame rate", GOOD, pace))
    height, width, _ = frame.image.shape
    findings.append(Finding("image", GOOD, f"{width} x {height}"))
    findings += _examine_values(frames[-1])
    if client.skipped:
        advice = "The connection or the simulator damages messages; a locale with decimal commas is no reason."
        findings.append(Finding("messages", POOR, f"{client.skipped} not understood", advice))


def _examine_values(frame: Telemetry) -> list[Finding]:
    findings = []
    if frame.old_units:
        advice = "A release up to 22.03: converted, but its car is lighter on its wheels. Take 22.11 or later."
        findings.append(Finding("units", POOR, "Unity units", advice))
    else:
        findings.append(Finding("units", GOOD, "metres: 8 Unity units each"))
    if frame.cte is None or frame.pos_x is None:
        advice = "Rewards and episode ends need cte: turn extended telemetry on, or use a scene that has a path."
        findings.append(Finding("telemetry", BAD, "no cte or position", advice))
    else:
        findings.append(Finding("telemetry", GOOD, f"cte {frame.cte:+.2f} u, {frame.total_nodes} path nodes"))
    return findings
