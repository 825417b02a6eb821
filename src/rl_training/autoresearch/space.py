"""What may be searched: named parameters, and their exact place in the unit cube.

Symbols
    p          number of parameters
    u          (p,) one setting in [0, 1]^p; U is (m, p), a row a setting
    X          (m, c) what the Gaussian process sees: U with each categorical of three or more choices as c > 1 columns

Kinds and their unit coordinate
    float, log_float       linear, or linear in the logarithm, between ``low`` and ``high``
    int, power_of_two      middle of one of equally wide bins, a bin for each value (for 2^e: for each exponent)
    categorical            middle of the bin of the choice

A parameter with ``when: {parent: [values]}`` exists only while its parent has one of these values; where it does not,
it is left out of the setting and sits at 0.5 in the cube, so that the model sees no difference.

The text form is YAML, shown in ``assets/spaces/*.yaml``. Encoding does not clip: a record made before a range was
narrowed stays where it was, outside the cube, and still teaches the model. Decoding does clip.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from rl_training.errors import ConfigError, did_you_mean

Array = npt.NDArray[np.float64]
Params = dict[str, Any]

KINDS = ("int", "float", "log_float", "power_of_two", "categorical")
INACTIVE = 0.5  # where an absent parameter sits
ONE_HOT = 0.5  # height of a one-hot column: two choices are 0.7 apart, like a good part of a numeric range
DIGITS = 10  # significant digits of a decoded number: more than anyone types, fewer than rounding errors reach


@dataclass(frozen=True)
class Parameter:
    """One dimension of the search. ``default`` stands in for records made before the parameter was searched."""

    name: str
    kind: str
    low: float = 0.0
    high: float = 1.0
    choices: tuple[Any, ...] = ()
    default: Any = None
    parent: str | None = None
    parent_values: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"Parameter '{self.name}' has type '{self.kind}'.{did_you_mean(self.kind, KINDS)}")
        if self.kind == "categorical":
            if not all(isinstance(choice, str | bool | int | float) for choice in self.choices):
                raise ConfigError(f"Parameter '{self.name}' has choices that are not plain words or numbers.")
            if len(self.choices) < 2 or any(choice in self.choices[:i] for i, choice in enumerate(self.choices)):
                raise ConfigError(f"Parameter '{self.name}' needs at least two different choices, got {self.choices}.")
        else:
            self._check_range()
        if self.default is not None:
            self.check(self.default)

    def _check_range(self) -> None:
        for bound in (self.low, self.high):
            if isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
                raise ConfigError(
                    f"Parameter '{self.name}' needs finite numbers as low and high, got {bound!r}.{_hint(bound)}"
                )
            if self.kind in ("int", "power_of_two") and bound != int(bound):
                raise ConfigError(f"Parameter '{self.name}' is of type {self.kind}, so {bound!r} must be an integer.")
            if self.kind == "power_of_two" and (bound < 1 or math.log2(bound) % 1):
                raise ConfigError(f"Parameter '{self.name}' needs powers of two as low and high, got {bound!r}.")
        if self.low > self.high or (self.low == self.high and self.kind in ("float", "log_float")):
            raise ConfigError(
                f"Parameter '{self.name}' has low {self.low} and high {self.high}; low must be the smaller."
            )
        if self.kind == "log_float" and self.low <= 0:
            raise ConfigError(f"Parameter '{self.name}' is searched in the logarithm, so low must be above 0.")

    @property
    def levels(self) -> int:
        """Number of values, 0 for a continuous one."""
        if self.kind == "categorical":
            return len(self.choices)
        if self.kind in ("int", "power_of_two"):
            return int(self._scale(self.high) - self._scale(self.low)) + 1
        return 0

    def _scale(self, value: float) -> float:
        if self.kind == "log_float":
            return math.log(value)
        return math.log2(value) if self.kind == "power_of_two" else float(value)

    def check(self, value: Any) -> None:
        """Refuse a value that this parameter cannot take."""
        if self.kind == "categorical":
            if value not in self.choices:
                hint = did_you_mean(str(value), [str(choice) for choice in self.choices])
                raise ConfigError(f"'{value}' is not a choice of parameter '{self.name}'.{hint}")
            return
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ConfigError(f"Parameter '{self.name}' must be a finite number, got {value!r}.{_hint(value)}")
        if not self.low <= value <= self.high:
            raise ConfigError(f"Parameter '{self.name}' is {value}, outside its range {self.low} to {self.high}.")
        if self.levels and self._scale(value) % 1:
            kind = "an integer" if self.kind == "int" else "a power of two"
            raise ConfigError(f"Parameter '{self.name}' must be {kind}, got {value!r}.")

    def to_unit(self, value: Any) -> float:
        """The place of a value; outside [0, 1] for a number outside the range."""
        if self.kind == "categorical":
            self.check(value)
            return (self.choices.index(value) + 0.5) / self.levels
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ConfigError(f"Parameter '{self.name}' must be a finite number, got {value!r}.")
        if self.kind in ("log_float", "power_of_two") and value <= 0:
            raise ConfigError(f"Parameter '{self.name}' is searched in the logarithm, so {value!r} has no place in it.")
        place = self._scale(value) - self._scale(self.low)
        if self.levels:
            return (place + 0.5) / self.levels
        return place / (self._scale(self.high) - self._scale(self.low))

    def from_unit(self, u: float) -> Any:
        """The value at ``u``, clipped to the range."""
        u = min(max(float(u), 0.0), 1.0)
        if self.levels:
            index = min(int(u * self.levels), self.levels - 1)
            if self.kind == "categorical":
                return self.choices[index]
            return int(self.low) + index if self.kind == "int" else int(self.low) << index
        low, high = self._scale(self.low), self._scale(self.high)
        value = low + u * (high - low)
        rounded = float(f"{math.exp(value) if self.kind == 'log_float' else value:.{DIGITS}g}")
        return min(max(rounded, float(self.low)), float(self.high))


@dataclass(frozen=True)
class Space:
    """Parameters in a fixed order; a parent comes before its children."""

    parameters: tuple[Parameter, ...]

    def __post_init__(self) -> None:
        if not self.parameters:
            raise ConfigError("A search space needs at least one parameter.")
        seen: dict[str, Parameter] = {}
        for parameter in self.parameters:
            if parameter.name in seen:
                raise ConfigError(f"Parameter '{parameter.name}' is in the search space twice.")
            if parameter.parent is not None:
                if parameter.parent not in seen:
                    hint = did_you_mean(parameter.parent, seen) if seen else ""
                    raise ConfigError(
                        f"Parameter '{parameter.name}' depends on '{parameter.parent}', "
                        f"which is not listed before it.{hint}"
                    )
                if not seen[parameter.parent].levels:
                    raise ConfigError(
                        f"Parameter '{parameter.name}' depends on '{parameter.parent}', which takes any number; "
                        f"a parent must be of type int, power_of_two or categorical."
                    )
                if not parameter.parent_values:
                    raise ConfigError(f"Parameter '{parameter.name}' lists no values of '{parameter.parent}'.")
                for value in parameter.parent_values:
                    seen[parameter.parent].check(value)
            seen[parameter.name] = parameter

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    def __len__(self) -> int:
        return len(self.parameters)

    def __getitem__(self, name: str) -> Parameter:
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise ConfigError(f"The search space has no parameter '{name}'.{did_you_mean(name, self.names)}")

    def encode(self, params: Mapping[str, Any]) -> Array:
        """u (p,) of a setting. Names the space does not search are ignored, absent ones take their default."""
        u = np.full(len(self), INACTIVE)
        known: Params = {}
        for i, parameter in enumerate(self.parameters):
            if not self._is_active(parameter, known):
                continue
            value = params.get(parameter.name, parameter.default)
            if value is None:
                raise ConfigError(
                    f"The setting has no '{parameter.name}', and the search space gives no default for it."
                )
            known[parameter.name] = value
            u[i] = parameter.to_unit(value)
        return u

    def decode(self, u: Sequence[float] | Array) -> Params:
        """The setting at ``u``: the inverse of ``encode``, with integers and choices exact."""
        params: Params = {}
        for parameter, coordinate in zip(self.parameters, u, strict=True):
            if self._is_active(parameter, params):
                params[parameter.name] = parameter.from_unit(coordinate)
        return params

    @staticmethod
    def _is_active(parameter: Parameter, known: Mapping[str, Any]) -> bool:
        if parameter.parent is None:
            return True
        return parameter.parent in known and known[parameter.parent] in parameter.parent_values

    def snap(self, U: Array) -> Array:
        """Each row moved to the nearest setting that exists: what encode(decode(u)) gives, for all rows at once."""
        snapped = np.clip(U, 0.0, 1.0)
        active: dict[str, npt.NDArray[np.bool_]] = {}
        for i, parameter in enumerate(self.parameters):
            if parameter.levels:
                bins = np.minimum(np.floor(snapped[:, i] * parameter.levels), parameter.levels - 1)
                snapped[:, i] = (bins + 0.5) / parameter.levels
            here = np.ones(len(U), dtype=bool)
            if parameter.parent is not None:
                parent = self.names.index(parameter.parent)
                places = [self.parameters[parent].to_unit(value) for value in parameter.parent_values]
                here = active[parameter.parent] & np.isclose(snapped[:, parent, None], places, atol=1e-9).any(axis=1)
            active[parameter.name] = here
            snapped[~here, i] = INACTIVE
        return snapped

    def features(self, U: Array) -> Array:
        """X (m, c): numbers and two-way choices as they are, a choice of three or more as one column each."""
        columns: list[Array] = []
        for i, parameter in enumerate(self.parameters):
            column = U[:, i : i + 1]
            if parameter.kind == "categorical" and parameter.levels > 2:
                places = (np.arange(parameter.levels) + 0.5) / parameter.levels
                column = np.where(np.abs(column - places) < 0.25 / parameter.levels, ONE_HOT, 0.0)
            columns.append(column)
        return np.hstack(columns)

    def with_range(self, name: str, low: float | None = None, high: float | None = None) -> Space:
        """The same space with another range for one parameter (``--min-timesteps``, ``--max-timesteps``)."""
        old = self[name]
        if old.kind == "categorical":
            raise ConfigError(f"Parameter '{name}' is a choice and has no range to change.")
        low, high = old.low if low is None else low, old.high if high is None else high
        default = old.default if old.default is None else min(max(old.default, low), high)
        new = replace(old, low=low, high=high, default=default)
        return Space(tuple(new if parameter.name == name else parameter for parameter in self.parameters))


def _hint(value: Any) -> str:
    return " YAML reads 1e-3 as text: write 1.0e-3." if isinstance(value, str) else ""


def space_from_yaml(text: str, source: str = "the search space") -> Space:
    """A space from its YAML text; ``source`` names the text in errors."""
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{source} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(tree, dict) or set(tree) != {"parameters"} or not isinstance(tree["parameters"], dict):
        raise ConfigError(f"{source} must have one key, 'parameters', with a table of names.")
    return Space(tuple(_parameter(str(name), entry, source) for name, entry in tree["parameters"].items()))


def _parameter(name: str, entry: Any, source: str) -> Parameter:
    if not isinstance(entry, dict) or "type" not in entry:
        raise ConfigError(f"Parameter '{name}' of {source} needs at least a type, one of {', '.join(KINDS)}.")
    kind = entry["type"]
    needed = {"choices"} if kind == "categorical" else {"low", "high"}
    allowed = needed | {"type", "default", "when"}
    for key in entry:
        if key not in allowed:
            raise ConfigError(
                f"Parameter '{name}' of {source} has an unknown key '{key}'.{did_you_mean(str(key), allowed)}"
            )
    for key in sorted(needed - set(entry)):
        if kind in KINDS:
            raise ConfigError(f"Parameter '{name}' of {source} has no '{key}', which type {kind} needs.")
    if not isinstance(entry.get("choices", []), list):
        raise ConfigError(f"Parameter '{name}' of {source} needs a list as choices, like [adam, sgd].")
    when = entry.get("when")
    if when is not None and (not isinstance(when, dict) or len(when) != 1):
        raise ConfigError(f"'when' of parameter '{name}' must name one parent and its values, like {{agent: [ppo]}}.")
    parent, values = next(iter(when.items())) if when else (None, ())
    return Parameter(
        name=name,
        kind=str(kind),
        low=entry.get("low", 0.0),
        high=entry.get("high", 1.0),
        choices=tuple(entry.get("choices", ())),
        default=entry.get("default"),
        parent=parent,
        parent_values=tuple(values) if isinstance(values, list | tuple) else (values,),
    )


def default_space(agent: str) -> Space:
    """The space shipped for an agent: ``dqn``, ``ppo``, ``sac``, ``ppg``, ``drq`` or ``drqv2``."""
    folder = resources.files("rl_training") / "assets" / "spaces"
    shipped = sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    if agent not in shipped:
        raise ConfigError(f"No search space is shipped for agent '{agent}'.{did_you_mean(agent, shipped)}")
    return space_from_yaml((folder / f"{agent}.yaml").read_text(encoding="utf-8"), f"the shipped space of {agent}")
