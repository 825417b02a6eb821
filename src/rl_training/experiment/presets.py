"""Configs that come with the package, ``<algo>/<env>``, and how a command finds the one that is meant."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from rl_training.errors import ConfigError, did_you_mean
from rl_training.experiment.config import DONKEY, TrainConfig, env_values, merged
from rl_training.experiment.yaml_text import yaml_load


def _root() -> Traversable:
    return resources.files("rl_training") / "assets" / "configs"


def preset_names() -> list[str]:
    """All presets."""
    folders = [entry for entry in _root().iterdir() if entry.is_dir()]
    names = [f"{folder.name}/{file.name[:-5]}" for folder in folders for file in folder.iterdir()]
    return sorted(name for name in names if not name.endswith("/"))


def read_config(name: str, *under: str) -> dict[str, Any]:
    """Plain values of a preset, a file or a run folder; ``extends`` names another whose values lie beneath."""
    if name in under:
        raise ConfigError(f"{name} extends itself, by way of {' and '.join(under)}; let it extend a preset.")
    values = yaml_load(_text(name), name) or {}
    if not isinstance(values, Mapping):
        raise ConfigError(f"{name} must be a mapping of keys to values, such as 'algo: ppo'.")
    own = {key: value for key, value in values.items() if key != "extends"}
    return merged(read_config(str(values["extends"]), *under, name), own) if "extends" in values else own


def _text(name: str) -> str:
    path: Path | Traversable = Path(name)
    if (Path(name) / "config.yaml").is_file():
        path = Path(name) / "config.yaml"
    if not path.is_file():
        path = _root() / f"{name.removesuffix('.yaml')}.yaml"
    if not path.is_file():
        raise ConfigError(f"There is no config '{name}', as a file or as a preset.{did_you_mean(name, preset_names())}")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name} is no text that can be read ({error.reason}); expected YAML in UTF-8.") from error


def preset_for(algo: str, env: str) -> str | None:
    """The preset of that algorithm for that env, by the env's id or by the preset's own name; None if there is none."""
    for name in preset_names():
        folder, _, title = name.partition("/")
        if folder != algo:
            continue
        values = read_config(name)
        if env == title or (env == values.get("env") and "pixels" not in values):
            return name
    return None


def resolve(
    algo: str | None = None,
    env: str | None = None,
    *,
    config: str | None = None,
    over: Mapping[str, Any] | None = None,
) -> TrainConfig:
    """The config that is meant: a file or preset by name, or the preset that fits, with ``over`` laid on it.

    ``env`` is an env's id, or the title of a preset such as ``pendulum_pixels``.
    """
    asked = env_values(env) if env else {}
    if config is None:
        title = asked.get("env", DONKEY)
        config = preset_for(algo or "ppo", title)
        if config is not None and title == config.partition("/")[2]:
            asked.pop("env", None)
    values = read_config(config) if config else {"algo": algo or "ppo"}
    if algo:
        asked = {**asked, "algo": algo}
    return TrainConfig.from_dict(merged(merged(values, asked), over or {}))
