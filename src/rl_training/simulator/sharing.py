"""Slots shared by equals: sixty cars on one track need that track, and its palette, once."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray


class SharedSlots:
    """As many slots as users, so one is always free; users with equal keys hold the same slot."""

    def __init__(self, users: int) -> None:
        self.slot_of: NDArray[np.int32] = np.full(users, -1, np.int32)
        self._keys: list[Hashable] = [None] * users

    def assign(self, user: int, key: Hashable) -> tuple[int, bool]:
        """(slot, fresh): the slot that now holds `key` for `user`; fresh says that it must still be filled."""
        old = int(self.slot_of[user])
        if old >= 0 and self._keys[old] == key:
            return old, False
        self.slot_of[user] = -1
        held = set(self.slot_of.tolist()) - {-1}
        for slot in held:
            if self._keys[slot] == key:
                self.slot_of[user] = slot
                return slot, False
        free = old if old >= 0 and old not in held else next(k for k in range(len(self._keys)) if k not in held)
        self._keys[free] = key
        self.slot_of[user] = free
        return free, True
