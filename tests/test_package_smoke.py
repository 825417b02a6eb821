"""The package as its users meet it: version, help, presets as package data, from any folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rl_training
from rl_training.cli.main import COMMANDS, main


def test_module_and_version(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rl_training", "--version"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert ended.stdout.strip() == f"donkey-rl {rl_training.__version__}"


@pytest.mark.parametrize("name", ["train", "resume", "predict", "config", "tracks", "bench"])
def test_help_of_a_command_has_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert name in COMMANDS
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert "examples:" in capsys.readouterr().out


def test_help_of_train_loads_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom rl_training.cli.main import main\n"
        "try: main(['train', '--help'])\nexcept SystemExit: pass\n"
        "assert not {'torch', 'stable_baselines3', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=tmp_path)
