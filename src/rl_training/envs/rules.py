"""The rules of gym-donkeycar: reward and end of an episode, for one car or a batch, on scalars or arrays.

Mended against the classic client: cte counts by its absolute value on both sides; a car further out than twice
`max_cte` is off the road like any other (the client ignored it); the forward velocity belongs to the same moment as the
image. A hit ends the episode and so pays -1, as it does in the client in practice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64] | float
Flags = NDArray[np.bool_] | bool

OFF_ROAD_OR_HIT = -1.0


def episode_over(cte: Array, hit: Flags, max_cte: float, end_on_hit: bool = True) -> NDArray[np.bool_]:
    """True where the car left the road or touched something."""
    over: NDArray[np.bool_] = np.asarray(np.abs(cte) > max_cte)
    return over | hit if end_on_hit else over


def donkey_reward(forward_velocity: Array, cte: Array, over: Flags, max_cte: float) -> NDArray[np.float64]:
    """Forward velocity weighted by closeness to the path; driving backwards costs its speed, with no such weight."""
    centred = (1.0 - np.abs(np.asarray(cte)) / max_cte) * forward_velocity
    driving = np.where(np.asarray(forward_velocity) > 0.0, centred, forward_velocity)
    return np.where(over, OFF_ROAD_OR_HIT, driving)
