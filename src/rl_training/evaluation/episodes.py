"""`Episode`: what one evaluated episode came to, in figures that no reward can fake; recorded step by step from `info`.

Distances in metres of telemetry (world units / 8), cte in world units u, times in simulated seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CONTROL_STEP = 0.05  # [s]


@dataclass(frozen=True)
class Episode:
    """One episode."""

    track: str
    reward: float
    length: int  # steps of the env
    seconds: float
    laps: float  # furthest progress in lengths of the track
    progress: float  # furthest [m]
    driven: float  # length of the path driven, whichever way it went [m]
    lap_times: tuple[float, ...]
    end: str  # the env's end_cause
    crashed: bool  # ended by anything but the limit of time or the end of an open road
    cte_mean: float  # of |cte|
    cte_p95: float
    cte_max: float
    speed: float  # mean [m/s]
    steering_change: float  # mean |change| of the steering from step to step; 0 is perfectly smooth

    @property
    def completed(self) -> bool:
        """Came round once, or to the end of an open road."""
        return self.laps >= 1.0 or self.end == "end_of_road"


@dataclass
class _Trace:
    """What is kept of each step of a running episode."""

    cte: list[float] = field(default_factory=list)
    speed: list[float] = field(default_factory=list)
    steering: list[float] = field(default_factory=list)
    lap_times: list[float] = field(default_factory=list)
    reward: float = 0.0


class EpisodeRecorder:
    """Collects the episodes of several cars, each on a track of its own."""

    def __init__(self, tracks: tuple[str, ...]) -> None:
        self._tracks = tracks  # of each car
        self._running = [_Trace() for _ in tracks]
        self.episodes: list[Episode] = []

    def note(self, car: int, reward: float, done: bool, info: Mapping[str, Any]) -> None:
        """One step of one car."""
        trace = self._running[car]
        trace.reward += float(reward)
        trace.cte.append(abs(float(info["cte"])))
        trace.speed.append(float(info["speed"]))
        trace.steering.append(float(info.get("steering", 0.0)))
        if int(info["lap_count"]) > len(trace.lap_times):
            trace.lap_times.append(float(info["last_lap_time"]))
        if done:
            self.episodes.append(_finished(self._tracks[car], trace, info))
            self._running[car] = _Trace()


def _finished(track: str, trace: _Trace, info: Mapping[str, Any]) -> Episode:
    length = len(trace.cte)
    seconds = int(info.get("steps", length)) * CONTROL_STEP
    told = info.get("episode")  # as Monitor tells it, before any wrapper changed it
    changes = np.abs(np.diff(trace.steering))
    return Episode(
        track=track,
        reward=float(told["r"]) if told else trace.reward,
        length=length,
        seconds=seconds,
        laps=float(info["laps"]),
        progress=float(info["furthest"]),
        driven=float(np.mean(trace.speed)) * seconds,
        lap_times=tuple(trace.lap_times),
        end=str(info.get("end_cause", "unknown")),
        crashed=not info.get("TimeLimit.truncated", False),
        cte_mean=float(np.mean(trace.cte)),
        cte_p95=float(np.percentile(trace.cte, 95)),
        cte_max=float(np.max(trace.cte)),
        speed=float(np.mean(trace.speed)),
        steering_change=float(changes.mean()) if len(changes) else 0.0,
    )
