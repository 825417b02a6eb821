"""The commands as a user types them: exit codes, one clear sentence for a mistake, tables and pictures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from rl_training.cli.main import COMMANDS, main


def test_help_is_quick_and_lists_every_command() -> None:
    done = subprocess.run([sys.executable, "-m", "rl_training", "--help"], capture_output=True, text=True, check=True)
    for name in COMMANDS:
        assert f"    {name} " in done.stdout


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_explains_itself_with_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert "examples:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["trakcs"], "Did you mean 'tracks'"),
        (["tracks", "show", "mini_monaca"], "Did you mean 'mini_monaco'"),
        (["tracks", "show", "nowhere.yaml"], "cannot be read"),
        (["tracks", "show", "random:trian:3"], "Did you mean 'train'"),
        (["drive", "--driver", "persuit"], "Did you mean 'pursuit'"),
        (["drive", "--laps", "0"], "1 or more"),
        (["drive", "--laps", "1", "--film", "lap.txt"], ".gif or .mp4"),
        (["tracks", "show", "waveshare", "--out", "plan.foo"], ".png"),
        (["bench", "nothing"], "no benchmark 'nothing'"),
    ],
)
def test_a_mistake_gets_one_sentence_and_code_2(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["drive", "--lapps", "3"], "--lapps"),
        (["drive", "--seed", "-3"], "--seed: '-3' is no seed"),
        (["tracks", "show", "waveshare", "--seed", "one"], "--seed: 'one' is no seed"),
    ],
)
def test_a_wrong_flag_is_a_usage_error(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


def test_tracks_list_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tracks", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert len(rows) == 11
    assert rows["waveshare"]["nodes"] == 24
    assert not rows["generated_road"]["closed"]


def test_tracks_show_draws_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "picture.png"
    assert main(["tracks", "show", "waveshare", "--out", str(target)]) == 0
    assert "waveshare" in capsys.readouterr().out
    with Image.open(target) as picture:
        assert picture.width > 800


def test_drive_prints_laps_and_saves_a_film(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "lap.gif"
    assert main(["drive", "--track", "waveshare", "--laps", "1", "--film", str(target), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["completed"]
    assert 5.0 < result["lap_times"][0] < 9.0
    with Image.open(target) as film:
        assert film.n_frames > 40  # type: ignore[attr-defined]
