"""Configs, presets, the registry and run folders."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rl_training.cli.main import main
from rl_training.envs.spec import EnvSpec
from rl_training.errors import ConfigError, ModelError, UsageError
from rl_training.experiment import registry
from rl_training.experiment.atomic import new_folder, replacing, write_json
from rl_training.experiment.checkpoint import (
    find_checkpoint,
    latest_resume_point,
    remove_leftovers,
    saving_resume_point,
)
from rl_training.experiment.config import TrainConfig, assignment, merged
from rl_training.experiment.presets import preset_names, read_config, resolve
from rl_training.experiment.run_folder import RunFolder, new_run_path
from rl_training.experiment.yaml_text import yaml_load

PROMISED = {
    *(f"{algo}/donkey" for algo in ("ppo", "dqn", "sac", "drq", "drqv2", "ppg")),
    *(f"{algo}/cartpole" for algo in ("ppg", "ppo", "dqn")),
    "sac/pendulum",
    "drq/pendulum_pixels",
    "drqv2/pendulum_pixels",
}


def test_every_promised_preset_is_there_and_says_what_its_name_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # far from the repository
    assert set(preset_names()) >= PROMISED
    for name in preset_names():
        config = resolve(config=name)
        algo, _, title = name.partition("/")
        assert config.algo == algo
        assert config.is_donkey == title.startswith("donkey")
        assert (config.pixels is not None) == (title == "pendulum_pixels")
        assert config.donkey.action.discrete == (config.is_donkey and algo in ("dqn", "ppg"))


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_a_config_survives_its_own_text(name: str) -> None:
    config = resolve(config=name, over={"seed": 7})
    assert TrainConfig.from_dict(yaml_load(config.to_yaml(), "text")) == config
    assert TrainConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("algo", "env", "is_what", "tracks"),
    [
        (None, None, "ppo/donkey", ("generated_track",)),
        ("dqn", "donkey-warren-track-v0", "dqn/donkey", ("warren",)),
        ("ppg", "CartPole-v1", "ppg/cartpole", None),
        ("ppg", "cartpole", "ppg/cartpole", None),
        ("drq", "pendulum_pixels", "drq/pendulum_pixels", None),
    ],
)
def test_the_preset_that_fits_is_found(algo: str | None, env: str | None, is_what: str, tracks: Any) -> None:
    over = {"donkey": {"tracks": list(tracks)}} if tracks else {}
    assert resolve(algo, env) == resolve(config=is_what, over=over)


def test_an_env_without_a_preset_gets_the_defaults_of_the_algorithm() -> None:
    config = resolve("ppo", "Acrobot-v1")
    assert (config.env, config.algo, config.algo_kwargs) == ("Acrobot-v1", "ppo", {})
    # drq/pendulum_pixels is about the same id, and is not what the bare id asks for.
    assert resolve("drq", "Pendulum-v1").pixels is None


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"total_timestep": 5}, r"no key 'total_timestep'\. Did you mean 'total_timesteps'\?"),
        (
            {"donkey": {"limits": {"max_step": 5}}},
            r"EnvSpec\.limits has no key 'max_step'\. Did you mean 'max_steps'\?",
        ),
        ({"pixels": {"sise": 5}}, r"pixels has no key 'sise'\. Did you mean 'size'\?"),
        ({"num_envs": 0}, "num_envs is 0; expected 1 or more"),
        ({"num_envs": "many"}, "num_envs is 'many'; expected a whole number"),
        ({"num_envs": True}, "num_envs is True; expected a whole number"),
        ({"margin": 0.5}, "margin is 0.5; expected 1.0 or more"),
        ({"algo_kwargs": 3}, "algo_kwargs and env_kwargs are mappings"),
    ],
)
def test_wrong_values_are_named(values: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        TrainConfig.from_dict(values)


def test_assignments_reach_any_depth_and_read_numbers_as_people_write_them() -> None:
    values = merged(read_config("ppo/donkey"), assignment("algo_kwargs.learning_rate=1e-4"))
    values = merged(values, assignment("donkey.limits.max_cte=2"))
    values = merged(values, assignment("donkey.tracks=[warren, warehouse]"))
    config = TrainConfig.from_dict(values)
    assert config.algo_kwargs["learning_rate"] == 1e-4
    assert config.algo_kwargs["n_steps"] == read_config("ppo/donkey")["algo_kwargs"]["n_steps"]
    assert config.donkey.limits.max_cte == 2
    assert config.donkey.tracks == ("warren", "warehouse")
    for wrong in ("seed", "=3", "a..b=3"):
        with pytest.raises(ConfigError, match=r"expected key\.sub=value"):
            assignment(wrong)


def test_a_config_that_is_not_there_suggests_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no config 'ppo/donky'.*Did you mean 'ppo/donkey'"):
        resolve(config="ppo/donky")
    broken = tmp_path / "mine.yaml"
    broken.write_text("algo: [ppo\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml is no YAML in line 2"):
        resolve(config=str(broken))


def test_a_file_may_extend_a_preset(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("extends: ppo/donkey\ndonkey: {limits: {max_steps: 99}}\n")
    config = resolve(config=str(mine))
    assert config.donkey.limits.max_steps == 99
    assert config.donkey.limits.max_cte == resolve(config="ppo/donkey").donkey.limits.max_cte


# ---- registry


def test_an_unknown_algorithm_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no algorithm 'drqv3'\. Did you mean 'drqv2'\?"):
        registry.algorithm_spec("drqv3")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Installs a package whose entry point is a line of Python, as far as Python can tell."""

    def install(line: str) -> None:
        metadata = tmp_path / "site" / "ours-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[{registry.ENTRY_POINTS}]\nours = ours_plug_in:spec\n")
        code = "from rl_training.algorithms import PPO\nfrom rl_training.experiment.registry import AlgorithmSpec\n"
        (tmp_path / "site" / "ours_plug_in.py").write_text(f"{code}\nclass Ours(PPO):\n    pass\n\nspec = {line}\n")
        monkeypatch.syspath_prepend(tmp_path / "site")
        registry.algorithms.cache_clear()

    yield install
    sys.modules.pop("ours_plug_in", None)
    registry.algorithms.cache_clear()


def test_a_plug_in_has_all_the_commands(
    installed: Callable[[str], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    installed("AlgorithmSpec('ours', 'our own', lambda: Ours)")
    run = str(tmp_path / "run")
    small = ["--timesteps", "32", "--eval-episodes", "1", "--set", "baseline_episodes=1"]
    small += ["--set", "algo_kwargs.n_steps=16", "--set", "algo_kwargs.batch_size=16"]
    assert main(["train", "--agent", "ours", "--env", "CartPole-v1", "--save-dir", run, "--quiet", *small]) == 0
    assert main(["resume", run, "--timesteps", "48", "--quiet"]) == 0
    assert main(["evaluate", "--model", run, "--episodes", "1"]) == 0
    capsys.readouterr()
    assert main(["predict", "--model", run]) == 0
    assert capsys.readouterr().out.startswith("action: ")
    assert registry.algorithm_spec("ppo").name == "ppo"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("1 / 0", "cannot be loaded .ZeroDivisionError: division by zero"),
        ("'no spec'", "is no AlgorithmSpec"),
        ("AlgorithmSpec('ppo', 'taken', lambda: Ours)", "'ppo', which is taken"),
    ],
)
def test_a_faulty_plug_in_is_named(line: str, fault: str, installed: Callable[[str], None]) -> None:
    installed(line)
    with pytest.raises(ConfigError, match=fault):
        registry.algorithms()


# ---- run folders


def test_a_run_folder_explains_itself_and_is_not_overwritten(tmp_path: Path) -> None:
    config = resolve(over={"seed": 3, "donkey": {"tracks": ["warren"]}})
    run = RunFolder.create(tmp_path / "run", config)
    assert run.config() == config
    described = json.loads((run.path / "run.json").read_text())
    assert described["seed"] == 3
    assert described["versions"]["torch"]
    assert described["command"]
    spec = EnvSpec.from_dict(json.loads((run.path / "env_spec.json").read_text()))
    assert spec == config.donkey
    with pytest.raises(UsageError, match="already holds a run"):
        RunFolder.create(tmp_path / "run", config)
    with pytest.raises(ModelError, match="is no run folder"):
        RunFolder.existing(tmp_path)


def test_new_runs_do_not_collide(tmp_path: Path) -> None:
    config = resolve(over={"donkey": {"tracks": ["random:train"]}})
    first = new_run_path(config, tmp_path)
    first.mkdir()
    second = new_run_path(config, tmp_path)
    assert first != second
    assert ":" not in first.name


class Killed(BaseException):
    """Stands for SIGKILL: nothing may catch it to tidy up."""


@pytest.mark.parametrize("moment", ["writing", "fsync", "replace"])
def test_a_file_is_the_old_or_the_new_one_whenever_the_writer_dies(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "result.json"
    write_json(path, {"version": 1})
    with monkeypatch.context() as patch:
        if moment != "writing":
            patch.setattr(os, moment, _die)
        with pytest.raises(Killed):
            _write_half(path, die=moment == "writing")
    assert json.loads(path.read_text()) == {"version": 1}
    write_json(path, {"version": 2})
    assert json.loads(path.read_text()) == {"version": 2}


def _save_point(run: RunFolder, content: bytes) -> None:
    with saving_resume_point(run, 200) as folder:
        (folder / "model.zip").write_bytes(content)


def _write_half(path: Path, die: bool) -> None:
    with replacing(path) as temporary:
        temporary.write_text("{")
        if die:
            raise Killed


def _die(*_: Any) -> None:
    raise Killed


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_the_newest_whole_resume_point_counts(moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunFolder(tmp_path)
    with pytest.raises(ModelError, match="no point to resume from"):
        latest_resume_point(run)
    with saving_resume_point(run, 100) as folder:
        (folder / "model.zip").write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, moment, _die)
        with pytest.raises(Killed):
            _save_point(run, b"new")
    assert (latest_resume_point(run) / "model.zip").read_bytes() == b"old"
    with saving_resume_point(run, 300) as folder:
        (folder / "model.zip").write_bytes(b"newest")
    assert (latest_resume_point(run) / "model.zip").read_bytes() == b"newest"
    assert len(list(run.checkpoints.iterdir())) == 1
    (latest_resume_point(run) / "model.zip").write_bytes(b"bitrot")
    with pytest.raises(ModelError, match="is not the file that was saved"):
        latest_resume_point(run)


def test_leftovers_of_a_killed_writer_are_swept(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    (tmp_path / ".partial-1-model.zip").write_bytes(b"half")
    (run.checkpoints / ".partial-1-0000000100").mkdir(parents=True)
    (tmp_path / "model.zip").write_bytes(b"whole")
    remove_leftovers(run)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["checkpoints", "model.zip"]
    with new_folder(tmp_path / "whole") as folder:
        (folder / "file").write_bytes(b"")
    assert (tmp_path / "whole" / "file").exists()


def test_a_model_is_loaded_only_when_something_vouches_for_it(tmp_path: Path) -> None:
    model = tmp_path / "model.zip"
    with pytest.raises(ModelError, match="no model at"):
        find_checkpoint(model)
    model.write_bytes(b"weights")
    with pytest.raises(ModelError, match="Nothing beside"):
        find_checkpoint(model)
    assert find_checkpoint(model, trust=True).config is None
    digest = "0" * 64
    write_json(tmp_path / "result.json", {"sha256": {"model.zip": digest}})
    with pytest.raises(ModelError, match="SHA-256 differs"):
        find_checkpoint(tmp_path)
    # sha256 of the seven bytes above, by the tool sha256sum
    right = "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c"
    write_json(tmp_path / "result.json", {"sha256": {"model.zip": right}})
    assert find_checkpoint(tmp_path).model == model
