"""`donkey-rl sim` as a program, and what `donkey-rl doctor` says of simulators, well and ill."""

from __future__ import annotations

import http.server
import json
import signal
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from rl_training.cli import doctor
from rl_training.cli.main import main
from rl_training.protocol.client import SimClient
from rl_training.protocol.server import SimServer
from tests.protocol.fake_host import FakeHost, eventually, running
from tests.protocol.proxy import nothing, proxied


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_program_serves_and_stops_cleanly(number: signal.Signals) -> None:
    command = [
        sys.executable,
        "-m",
        "rl_training",
        "sim",
        "--port",
        "0",
        "--track",
        "waveshare",
        "--lockstep",
        "--seed",
        "3",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "lockstep, waveshare" in line, line
    host, _, port = line.split()[2].rstrip(",").partition(":")
    client = SimClient(host, int(port))
    client.connect()
    assert client.where() == "waveshare"
    assert client.lockstep
    first = client.reset()
    assert client.step(0.0, 0.5).time == pytest.approx(first.time + 0.05)
    assert not np.array_equal(client.step(0.0, 1.0).image, first.image)
    process.send_signal(number)
    out, errors = process.communicate(timeout=20)
    client.close()
    assert process.returncode == 0, errors
    assert out == "Simulator stopped.\n"
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--speed", "0"], "--speed is 0.0"),
        (["--speed", "inf"], "--speed is inf"),
        (["--port", "65536"], "expected 0 to 65535"),
        (["--track", "generated_road", "--seed", "-1"], "--seed is -1"),
        (["--track", "warehose"], "Did you mean 'warehouse'"),
        (["--lockstep", "--speed", "2"], "not allowed with"),
        (["--connect", "here:there"], "expected HOST:PORT"),
    ],
)
def test_mistakes_are_said_in_a_sentence(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["sim", "--port", "0", *arguments])
    except SystemExit as end:
        code = int(end.code or 0)
    assert code == 2
    assert said in capsys.readouterr().err


@pytest.fixture(params=["lockstep", "real time"])
def server(request: pytest.FixtureRequest) -> Iterator[SimServer]:
    with running(lockstep=request.param == "lockstep", speed=2.0) as server:
        yield server


def test_the_doctor_finds_a_good_simulator_good(server: SimServer, capsys: pytest.CaptureFixture[str]) -> None:
    host, port = server.address
    assert main(["doctor", "--sim", f"{host}:{port}", "--json"]) == 0
    findings = {finding["what"]: finding for finding in json.loads(capsys.readouterr().out)}
    assert {finding["state"] for finding in findings.values()} == {"good"}
    assert findings["scenes"]["value"].startswith("11: generated_road, ")
    assert findings["image"]["value"] == "160 x 120"
    assert "50 ms of simulated time" in findings["frame rate"]["value"]
    assert eventually(lambda: server.engine.scene is None), "the menu is left as it was found"


def test_the_doctor_leaves_a_loaded_scene_alone(capsys: pytest.CaptureFixture[str]) -> None:
    host = FakeHost()
    with running(host, lockstep=True) as server:
        server.engine.load("warren")
        assert main(["doctor", "--sim", "{}:{}".format(*server.address)]) == 0
        assert host.scene == "warren"
    assert "warren is loaded" in capsys.readouterr().out


def test_the_doctor_tells_the_dead_from_the_mute(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert main(["doctor", "--sim", f"127.0.0.1:{port}", "--timeout", "0.2"]) == 1
        out = capsys.readouterr().out
        assert "its protocol version" in out
        assert "It hangs, or is no simulator" in out
    assert main(["doctor", "--sim", f"127.0.0.1:{port}", "--timeout", "0.2"]) == 1
    out = capsys.readouterr().out
    assert "No simulator answered" in out
    assert "firewall" in out


def test_the_doctor_knows_another_program_on_the_port(capsys: pytest.CaptureFixture[str]) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as web:
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        assert main(["doctor", "--sim", f"127.0.0.1:{web.server_port}", "--timeout", "0.2"]) == 1
        web.shutdown()
        thread.join()
    assert "Another program has this port: it says" in capsys.readouterr().out


@pytest.mark.parametrize("greeting", [b"SSH-2.0-Example\r\n", b""])
def test_the_doctor_knows_a_program_that_hangs_up(greeting: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """It does listen: no word of firewalls."""

    class Rude(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(greeting)

    with socketserver.TCPServer(("127.0.0.1", 0), Rude) as rude:
        thread = threading.Thread(target=rude.serve_forever)
        thread.start()
        assert main(["doctor", "--sim", f"127.0.0.1:{rude.server_address[1]}", "--timeout", "1"]) == 1
        rude.shutdown()
        thread.join()
    out = " ".join(capsys.readouterr().out.split())
    assert "firewall" not in out
    assert ("it says 'SSH-2.0-Example'" if greeting else "It hung up. Is there room for one more car") in out


def test_the_doctor_examines_several_and_says_of_which_it_speaks(capsys: pytest.CaptureFixture[str]) -> None:
    with running(lockstep=True) as server, socket.create_server(("127.0.0.1", 0)) as listener:
        addresses = ["{}:{}".format(*server.address), "{}:{}".format(*listener.getsockname())]
        assert main(["doctor", "--sim", ",".join(addresses), "--timeout", "0.3", "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)
    assert {finding["sim"] for finding in findings if finding["state"] == "BAD"} == {addresses[1]}
    assert {finding["sim"] for finding in findings} == set(addresses)


@pytest.mark.parametrize("timeout", ["nan", "-1", "0", "inf"])
def test_the_doctor_needs_a_time_that_can_be_waited(timeout: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--timeout", timeout]) == 2
    assert "expected seconds above 0" in capsys.readouterr().err


def test_the_doctor_names_a_scene_that_is_not_offered() -> None:
    with running(lockstep=True) as server:
        findings = {finding.what: finding for finding in doctor.examine(*server.address, "warehose", 2.0)}
    assert findings["scene"].state == doctor.POOR
    assert "no scene 'warehose'. Did you mean 'warehouse'" in findings["scene"].advice


def test_the_doctor_names_a_simulator_that_stops_and_scenes_it_lacks() -> None:
    host = FakeHost()
    host.scene_names = ("warren", "waveshare")
    with running(host, lockstep=True) as server, proxied(server.address) as proxy:
        findings = {finding.what: finding for finding in doctor.examine(*proxy.address, "waveshare", 2.0)}
        assert findings["scenes"].state == doctor.POOR
        assert "thunderhill" in findings["scenes"].advice
        proxy.to_client = nothing
        findings = {finding.what: finding for finding in doctor.examine(*proxy.address, "waveshare", 0.2)}
        assert findings["fault"].state == doctor.BAD
