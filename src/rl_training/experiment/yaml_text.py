"""YAML as users write it: safe, and with ``1e-4`` read as a number, which YAML 1.1 takes for text."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from rl_training.errors import ConfigError


class _Loader(yaml.SafeLoader):
    """Of its own, so that the added rule does not leak into other users of PyYAML."""


_Loader.add_implicit_resolver(  # type: ignore[no-untyped-call]
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$"),
    list("-+0123456789."),
)


def yaml_load(text: str, where: str) -> Any:
    """The value of the text; ``where`` is how errors call it."""
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or error
        raise ConfigError(f"{where} is no YAML{line}: {problem}.") from error


def yaml_dump(value: Any) -> str:
    """Plain values as YAML, in their order, tuples as lists."""
    text: str = yaml.safe_dump(json.loads(json.dumps(value)), sort_keys=False, default_flow_style=None, width=110)
    return text
