"""`Evaluation`: the episodes of a policy over one or more tracks, and what they say together."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rl_training.evaluation.episodes import Episode

# Signs of an exploit, from earlier work (docs/rewards.md).
RICH_STEP = 3.0  # reward a step, and
RICH_METRE = 1.5  # that many times the speed: no reward of ours pays a fast car more
LITTLE_PROGRESS = 0.3  # of the path driven
LONG_PATH = 20.0  # [m], from which on it counts
SAME_SCORE = 0.01  # spread over mean


@dataclass(frozen=True)
class Summary:
    """Figures over a set of episodes; None where there is nothing to take a mean of."""

    episodes: int
    mean_reward: float
    std_reward: float
    mean_length: float
    mean_laps: float
    best_laps: float
    completed: float  # share of episodes with a full lap
    mean_progress: float
    mean_lap: float | None
    best_lap: float | None
    crashes: int
    ends: dict[str, int]
    cte_mean: float
    cte_p95: float
    cte_max: float
    speed: float
    steering_change: float


def summarize(episodes: Iterable[Episode]) -> Summary:
    """What some episodes say together."""
    all_of_them = list(episodes)
    assert all_of_them, "a summary needs an episode"

    def mean(name: str) -> float:
        return float(np.mean([getattr(episode, name) for episode in all_of_them]))

    lap_times = [time for episode in all_of_them for time in episode.lap_times]
    rewards = [episode.reward for episode in all_of_them]
    return Summary(
        episodes=len(all_of_them),
        mean_reward=float(np.mean(rewards)),
        std_reward=float(np.std(rewards)),
        mean_length=mean("length"),
        mean_laps=mean("laps"),
        best_laps=max(episode.laps for episode in all_of_them),
        completed=mean("completed"),
        mean_progress=mean("progress"),
        mean_lap=float(np.mean(lap_times)) if lap_times else None,
        best_lap=min(lap_times) if lap_times else None,
        crashes=sum(episode.crashed for episode in all_of_them),
        ends=dict(Counter(episode.end for episode in all_of_them).most_common()),
        cte_mean=mean("cte_mean"),
        cte_p95=mean("cte_p95"),
        cte_max=max(episode.cte_max for episode in all_of_them),
        speed=mean("speed"),
        steering_change=mean("steering_change"),
    )


@dataclass(frozen=True)
class Evaluation:
    """All episodes, in the order of tracks as they were asked for."""

    tracks: tuple[str, ...]
    training_tracks: tuple[str, ...]
    episodes: tuple[Episode, ...]
    reward: str
    deterministic: bool
    seed: int
    max_steps: int
    training_reward: float | None = None  # mean on the training tracks, where they are not among `tracks`

    @property
    def mean_reward(self) -> float:
        return summarize(self.episodes).mean_reward

    @property
    def std_reward(self) -> float:
        return summarize(self.episodes).std_reward

    @property
    def episode_rewards(self) -> list[float]:
        return [episode.reward for episode in self.episodes]

    def of(self, *tracks: str) -> tuple[Episode, ...]:
        """The episodes on these tracks."""
        return tuple(episode for episode in self.episodes if episode.track in tracks)

    def by_track(self) -> dict[str, Summary]:
        """A summary for each track."""
        return {track: summarize(self.of(track)) for track in self.tracks}

    @property
    def seen(self) -> tuple[Episode, ...]:
        """Episodes on tracks of the training."""
        return self.of(*self.training_tracks)

    @property
    def unseen(self) -> tuple[Episode, ...]:
        """Episodes on other tracks."""
        return self.of(*(track for track in self.tracks if track not in self.training_tracks))

    @property
    def generalization_gap(self) -> float | None:
        """Mean reward on the training tracks less that on the others; None unless both were driven."""
        known = summarize(self.seen).mean_reward if self.seen else self.training_reward
        if known is None or not self.unseen:
            return None
        return known - summarize(self.unseen).mean_reward

    def suspicions(self) -> list[str]:
        """Signs that the reward was earned by something else than driving round the track."""
        found: list[str] = []
        total = summarize(self.episodes)
        per_step = total.mean_reward / max(total.mean_length, 1.0)
        if per_step > max(RICH_STEP, RICH_METRE * total.speed):
            found.append(f"{per_step:.1f} reward a step, which driving at {total.speed:.1f} m/s does not earn")
        wanderers = [e for e in self.episodes if e.driven > LONG_PATH and e.progress < LITTLE_PROGRESS * e.driven]
        if wanderers:
            found.append(
                f"{len(wanderers)} of {len(self.episodes)} episodes drove far and came less than a third of it"
            )
        paid = total.mean_reward > 0.0 and total.std_reward < SAME_SCORE * total.mean_reward
        if paid and len(self.episodes) > 2 and total.completed == 0.0 and total.mean_length > 200:
            found.append("all episodes scored the same and none came round")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "reward": self.reward,
            "deterministic": self.deterministic,
            "seed": self.seed,
            "max_steps": self.max_steps,
            "training_tracks": list(self.training_tracks),
            **asdict(summarize(self.episodes)),
            "episode_rewards": self.episode_rewards,
            "training_reward": self.training_reward,
            "generalization_gap": self.generalization_gap,
            "suspicions": self.suspicions(),
            "tracks": {track: asdict(summary) for track, summary in self.by_track().items()},
            "all_episodes": [asdict(episode) for episode in self.episodes],
        }

    def to_csv(self) -> str:
        """One line an episode."""
        text = io.StringIO()
        rows = [{**asdict(e), "lap_times": " ".join(f"{time:.3f}" for time in e.lap_times)} for e in self.episodes]
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()
