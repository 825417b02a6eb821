"""A simulator's program as our child: started with a port of its own, ended with us."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import time

from rl_training.errors import ConfigError, SimulatorLost

_GRACE = 5.0  # [s] between asking the program to end and making it end


class SimulatorProcess:
    """A running simulator, in a process group of its own so that what it starts ends with it."""

    def __init__(self, exe_path: str, port: int, headless: bool = False) -> None:
        if not os.path.isfile(exe_path) or not os.access(exe_path, os.X_OK):
            raise ConfigError(
                f"exe_path '{exe_path}' is not a program that can be run; "
                "give the path of the simulator's executable, or leave it out and name host and port."
            )
        command = [exe_path, "--port", str(port)]
        if headless:
            command += ["-nographics", "-batchmode"]
        self._exe_path = exe_path
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=sys.platform != "win32"
        )
        atexit.register(self.stop)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def check(self) -> None:
        """SimulatorLost if the program has ended by itself."""
        code = self._process.poll()
        if code is not None:
            raise SimulatorLost(f"The simulator '{self._exe_path}' ended with code {code}; see its own log for why.")

    def stop(self) -> None:
        """Ask it to end, then make it; harmless when it has."""
        self._signal(signal.SIGTERM)
        end = time.monotonic() + _GRACE
        while self.is_running and time.monotonic() < end:
            time.sleep(0.02)
        if sys.platform != "win32":
            self._signal(signal.SIGKILL)
        self._process.wait()
        atexit.unregister(self.stop)

    def _signal(self, number: signal.Signals) -> None:
        if not self.is_running:
            return
        if sys.platform == "win32":
            self._process.terminate()
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
