"""The memory of small stateful helpers (rewards, guards, clocks, action maps) as plain values, and back.

What counts as memory: arrays and numbers among an object's attributes, and those of the helpers it owns. Settings and
functions are left out; whoever restores has built the object from the same settings.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def memory_of(helper: Any) -> dict[str, Any]:
    """Copies of all that may have changed since the helper was made."""
    memory: dict[str, Any] = {}
    for name, value in vars(helper).items():
        if isinstance(value, np.ndarray):
            memory[name] = value.copy()
        elif isinstance(value, int | float):
            memory[name] = value
        elif _owned(value):
            memory[name] = memory_of(value)
    return memory


def restore_memory(helper: Any, memory: dict[str, Any]) -> None:
    """The inverse of `memory_of`; arrays are filled in place, since others may look at them."""
    for name, value in memory.items():
        if isinstance(value, np.ndarray):
            getattr(helper, name)[...] = value
        elif isinstance(value, dict):
            restore_memory(getattr(helper, name), value)
        else:
            setattr(helper, name, value)


def _owned(value: Any) -> bool:
    """Whether it is an object of ours that may be written to; frozen settings are not."""
    if not type(value).__module__.startswith("rl_training.") or not hasattr(value, "__dict__"):
        return False
    parameters = getattr(type(value), "__dataclass_params__", None)
    return parameters is None or not parameters.frozen
