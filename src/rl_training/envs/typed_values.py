"""Plain values, as YAML and flags give them, held to the types of a dataclass's fields."""

from __future__ import annotations

import math
from typing import Any

from rl_training.errors import ConfigError

WORDS = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false"}


def typed_value(name: str, value: Any, annotation: str) -> Any:
    """``value`` as a field annotated so holds it; other annotations than those of plain values let everything pass.

    Whole floats such as 1e5 count as whole numbers, one text as a list of it.
    """
    if annotation in WORDS:
        return _scalar(name, value, annotation)
    if not annotation.startswith("tuple["):
        return value
    kinds = annotation.removeprefix("tuple[").removesuffix("]").split(", ")
    if kinds[0] == "str" and isinstance(value, str):
        value = [value]
    endless = kinds[-1] == "..."
    if not isinstance(value, list | tuple) or not (endless or len(value) == len(kinds)):
        raise ConfigError(f"{name} is {value!r}; expected a list of {'texts' if endless else f'{len(kinds)} numbers'}.")
    return tuple(_scalar(name, item, kinds[0]) for item in value)


def _scalar(name: str, value: Any, kind: str) -> Any:
    if kind == "int" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    types: dict[str, type] = {"int": int, "float": float, "str": str, "bool": bool}
    fits = isinstance(value, types[kind]) and (kind == "bool" or not isinstance(value, bool))
    if not fits or (isinstance(value, float) and math.isnan(value)):
        raise ConfigError(f"{name} is {value!r}; expected {WORDS[kind]}.")
    return value
