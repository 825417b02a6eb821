"""`TrainConfig`: all that decides what a training run does. YAML is only its text.

Three ways to change a value, each over the one before: the file (a preset or the user's own), a command's flags, and
``--set key.sub=value``. An unknown key is an error that names the nearest valid one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from rl_training.envs.registration import ENV_SCENES
from rl_training.envs.spec import EnvSpec, mapping_of
from rl_training.envs.typed_values import typed_value
from rl_training.errors import ConfigError, did_you_mean
from rl_training.experiment.yaml_text import yaml_dump, yaml_load

DONKEY = "donkey"  # the value of `env` that means the cars described under `donkey`
EMBEDDED = "embedded"


@dataclass(frozen=True)
class PixelSpec:
    """A Gymnasium env seen through its rendered pictures: ``(stack × channels, size, size)`` uint8."""

    size: int = 64
    grey: bool = True
    stack: int = 3
    action_repeat: int = 1

    def __post_init__(self) -> None:
        if min(self.size, self.stack, self.action_repeat) < 1:
            raise ConfigError(f"pixels needs sizes of 1 or more, not {self}.")


@dataclass(frozen=True)
class TrainConfig:
    """One training run."""

    algo: str = "ppo"
    env: str = DONKEY  # or the id of a Gymnasium env
    policy: str = "MlpPolicy"
    total_timesteps: int = 50_000
    num_envs: int = 1
    seed: int = 0
    algo_kwargs: Mapping[str, Any] = field(default_factory=dict)  # arguments of the algorithm's constructor
    donkey: EnvSpec = field(default_factory=EnvSpec)  # what the policy sees and does where env is "donkey"
    sim: str = EMBEDDED  # or HOST:PORT[,HOST:PORT…] of simulators to connect to, one car each
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)  # arguments of gymnasium.make
    pixels: PixelSpec | None = None
    eval_episodes: int = 10
    eval_interval: int = 0  # env steps between looks for the best checkpoint; 0: never
    checkpoint_interval: int = 0  # env steps between points to resume from; 0: at the end only
    baseline_episodes: int = 5  # of a random and an untrained policy; 0: no check that anything was learned
    margin: float = 1.5  # how many times better than both of them a policy must be that has learned
    device: str = "auto"
    torch_threads: int = 1
    env_threads: int = 1  # of the embedded world; results do not depend on it

    def __post_init__(self) -> None:
        for name in ("total_timesteps", "num_envs", "eval_episodes", "torch_threads", "env_threads"):
            _require(name, getattr(self, name), 1)
        for name in ("eval_interval", "checkpoint_interval", "baseline_episodes", "seed"):
            _require(name, getattr(self, name), 0)
        if not self.margin >= 1.0:
            raise ConfigError(f"margin is {self.margin}; expected 1.0 or more, such as 1.5.")
        if not isinstance(self.algo_kwargs, Mapping) or not isinstance(self.env_kwargs, Mapping):
            raise ConfigError("algo_kwargs and env_kwargs are mappings of names to values, such as {n_steps: 128}.")

    @property
    def is_donkey(self) -> bool:
        """Whether the env is our car."""
        return self.env == DONKEY

    @property
    def frame_stack(self) -> int:
        """How many frames one observation holds, for the replay that stores each once."""
        if self.is_donkey:
            return self.donkey.observation.stack
        return self.pixels.stack if self.pixels else 1

    @property
    def env_name(self) -> str:
        """What the run is named after."""
        return "+".join(self.donkey.tracks) if self.is_donkey else self.env

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        plain["donkey"] = self.donkey.to_dict()
        plain["pixels"] = asdict(self.pixels) if self.pixels else None
        plain["algo_kwargs"], plain["env_kwargs"] = dict(self.algo_kwargs), dict(self.env_kwargs)
        if not self.is_donkey:
            del plain["donkey"]
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainConfig:
        """The inverse of `to_dict`; what is left out has its default."""
        known = {item.name: item for item in fields(cls)}
        arguments = dict(values)
        for key, value in values.items():
            if key not in known:
                raise ConfigError(f"A training config has no key '{key}'.{did_you_mean(key, known)}")
            arguments[key] = typed_value(key, value, str(known[key].type))
        if not isinstance(values.get("donkey", EnvSpec()), EnvSpec):
            arguments["donkey"] = EnvSpec.from_dict(mapping_of("donkey", values["donkey"]))
        if not isinstance(values.get("pixels"), PixelSpec | None):
            arguments["pixels"] = _pixels(mapping_of("pixels", values["pixels"]))
        return cls(**arguments)

    def to_yaml(self) -> str:
        """The text of a config file that means this."""
        return yaml_dump(self.to_dict())


def _pixels(values: Mapping[str, Any]) -> PixelSpec:
    known = {item.name: str(item.type) for item in fields(PixelSpec)}
    for key in values:
        if key not in known:
            raise ConfigError(f"pixels has no key '{key}'.{did_you_mean(key, known)}")
    return PixelSpec(**{key: typed_value(f"pixels.{key}", value, known[key]) for key, value in values.items()})


def _require(name: str, value: int, least: int) -> None:
    if value < least:
        raise ConfigError(f"{name} is {value}; expected {least} or more.")


# ---- changing plain values, before they become a config


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` laid on ``base``; mappings are merged, everything else is replaced."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def assignment(text: str) -> dict[str, Any]:
    """``"algo_kwargs.n_steps=256"`` as ``{"algo_kwargs": {"n_steps": 256}}``; the value is read as YAML."""
    path, equals, value = text.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError(f"'{text}' sets nothing; expected key.sub=value, such as algo_kwargs.n_steps=256.")
    nested: Any = yaml_load(value, f"the value of {path}")
    for key in reversed(keys):
        nested = {key: nested}
    return dict(nested)


def env_values(name: str) -> dict[str, Any]:
    """What ``--env NAME`` sets: our own ids mean a car on their scene, others are Gymnasium's."""
    if name in ENV_SCENES:
        return {"env": DONKEY, "donkey": {"tracks": [ENV_SCENES[name]]}}
    return {"env": name}
