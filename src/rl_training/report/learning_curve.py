"""The picture of a run: return over environment steps, in training and at the looks for the best checkpoint."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from rl_training.experiment.atomic import replacing


def save_learning_curve(folder: Path) -> Path | None:
    """``learning_curve.png`` from a run folder's metrics; None where there is nothing to draw yet."""
    training = training_curve(folder)
    looks = evaluation_curve(folder)
    if not training and not looks:
        return None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    if training:
        axes.plot(*zip(*training), color="#7aa6c2", label="training episodes")
    if looks:
        axes.plot(*zip(*looks), "o-", color="#c2513f", label="evaluation, deterministic")
    axes.set_xlabel("environment steps")
    axes.set_ylabel("mean return")
    axes.set_title(folder.name)
    axes.grid(alpha=0.3)
    axes.legend()
    path = folder / "learning_curve.png"
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120)
    return path


def training_curve(folder: Path) -> list[tuple[float, float]]:
    """(step, mean return of the last training episodes) of a run that is over or running; empty while there is none."""
    path = folder / "metrics.csv"
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [
        (float(row["time/total_timesteps"]), float(row["rollout/ep_rew_mean"]))
        for row in rows
        if row.get("rollout/ep_rew_mean") and row.get("time/total_timesteps")
    ]


def evaluation_curve(folder: Path) -> list[tuple[float, float]]:
    """(step, mean reward) of a run's looks for its best policy; one that a kill cut short is left out."""
    path = folder / "evaluations.jsonl"
    points: list[tuple[float, float]] = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            line = json.loads(text)
        except ValueError:
            break
        points.append((line["step"], line["mean_reward"]))
    return points
