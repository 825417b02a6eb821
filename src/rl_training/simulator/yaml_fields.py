"""Checked reading of a YAML mapping: every value is asked for by key and type, and keys nobody asked for are refused.

Each complaint is one sentence that names the file, the key and what was expected.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rl_training.errors import TrackError, did_you_mean
from rl_training.simulator.track import Floats, Material

_REQUIRED: Any = object()


class Fields:
    """One mapping of a file. Ask for its values, then call `finish`."""

    def __init__(self, value: Any, where: str) -> None:
        self.where = where
        if not isinstance(value, dict):
            raise TrackError(f"{where} must be a mapping of keys to values, not {_kind(value)}.")
        self._values: dict[Any, Any] = value
        self._known: set[str] = set()

    def __contains__(self, key: str) -> bool:
        self._known.add(key)
        return key in self._values

    def wrong(self, key: str, expected: str) -> TrackError:
        return TrackError(f"{self.where}: '{key}' must be {expected}, not {self._values.get(key)!r}.")

    def value(self, key: str, default: Any = _REQUIRED) -> Any:
        self._known.add(key)
        if key in self._values:
            return self._values[key]
        if default is _REQUIRED:
            raise TrackError(f"{self.where}: the key '{key}' is missing; please add it.")
        return default

    def one_of(self, *keys: str) -> str:
        """Which of `keys` is there; exactly one must be."""
        self._known.update(keys)
        present = [key for key in keys if key in self._values]
        if len(present) != 1:
            raise TrackError(f"{self.where}: give exactly one of {', '.join(map(repr, keys))}.")
        return present[0]

    def number(self, key: str, default: Any = _REQUIRED, low: float = -np.inf, high: float = np.inf) -> float:
        value = self.value(key, default)
        if not _is_number(value) or not low <= value <= high:
            bounds = "" if low == -np.inf and high == np.inf else f" from {low:g} to {high:g}"
            raise self.wrong(key, f"a number{bounds}")
        return float(value)

    def count(self, key: str, default: Any = _REQUIRED, low: int = 0) -> int:
        value = self.value(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise self.wrong(key, f"a whole number of at least {low}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.value(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def text(self, key: str, default: Any = _REQUIRED) -> str:
        value = self.value(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "text")
        return value

    def choice(self, key: str, names: Iterable[str], default: Any = _REQUIRED) -> str:
        value = self.text(key, default)
        names = list(names)
        if value not in names:
            raise TrackError(f"{self.where}: '{key}' cannot be '{value}'.{did_you_mean(value, names)}")
        return value

    def material(self, key: str, default: Any = _REQUIRED) -> Material:
        return Material[self.choice(key, [material.name.lower() for material in Material], default).upper()]

    def numbers(self, key: str, count: int, default: Any = _REQUIRED) -> tuple[float, ...]:
        value = self.value(key, default)
        if not isinstance(value, list | tuple) or len(value) != count or not all(map(_is_number, value)):
            raise self.wrong(key, f"a list of {count} numbers")
        return tuple(float(number) for number in value)

    def rows(self, key: str, widths: tuple[int, ...], least: int = 1) -> Floats:
        """A list of points, all of one width out of `widths`."""
        value = self.value(key)
        shape = " or ".join(map(str, widths))
        if not isinstance(value, list) or len(value) < least:
            raise self.wrong(key, f"a list of at least {least} points of {shape} numbers")
        for index, row in enumerate(value):
            right = isinstance(row, list) and len(row) in widths and len(row) == len(value[0])
            if not right or not all(map(_is_number, row)):
                raise TrackError(f"{self.where}: point {index} of '{key}' must be {shape} numbers, not {row!r}.")
        return np.array(value, dtype=np.float64)

    def section(self, key: str, default: Any = _REQUIRED) -> Fields:
        return Fields(self.value(key, default), f"{self.where}: '{key}'")

    def sections(self, key: str) -> list[Fields]:
        """A list of mappings, empty if the key is absent."""
        value = self.value(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, "a list")
        return [Fields(item, f"{self.where}: '{key}' number {index}") for index, item in enumerate(value)]

    def names(self) -> list[str]:
        """All keys of a mapping whose keys are the user's own."""
        self._known.update(map(str, self._values))
        return [str(key) for key in self._values]

    def finish(self) -> None:
        """Refuse what nobody asked for."""
        for key in self._values:
            if key not in self._known:
                raise TrackError(f"{self.where}: unknown key '{key}'.{did_you_mean(str(key), self._known)}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def _kind(value: Any) -> str:
    return "empty" if value is None else f"a {type(value).__name__}"
