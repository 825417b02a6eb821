"""The picture of a study: its rewards trial by trial, and what the Gaussian process makes of each parameter.

A slice moves one parameter over its range and leaves the others at the incumbent, the tried setting of highest
posterior mean: mean, mean ± std, and the UCB that a proposal maximises. Dots are the trials, wherever their other
parameters were, so they need not lie on the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rl_training.autoresearch.acquisition import EXPLORE, Observation, fit_observations, recommend
from rl_training.autoresearch.champion import holder, reign
from rl_training.autoresearch.ledger import Comparable, Record, observations, select
from rl_training.autoresearch.space import Parameter, Space, default_space
from rl_training.errors import ConfigError, StudyError, UsageError
from rl_training.experiment.atomic import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
POINTS = 101  # of a slice
COLUMNS = 4
WIDE = 20.0  # ratio of extremes from which an unknown number is shown in the logarithm
INK, LIGHT, RED, GREY = "#2f6690", "#9dbfd6", "#c2513f", "#9a9a9a"


def save_study_picture(records: Sequence[Record], path: str | Path) -> Path:
    """Draw the trials that may be compared with the last one. StudyError if none has a reward."""
    target = Path(path)
    if target.suffix not in FORMATS:
        raise UsageError(f"A picture cannot be saved as '{target.name}'; use a name that ends in {', '.join(FORMATS)}.")
    valued = [record for record in records if record.mean_reward is not None]
    if not valued:
        raise StudyError("No trial has a reward yet, so there is nothing to draw.")
    last = valued[-1]
    comparable = Comparable(str(last.params.get("agent")), last.env_set, last.reward_version)
    records = select(records, comparable)[0]
    seen = [observation for observation in observations(records) if observation.ok]
    space = space_of([observation.params for observation in seen], comparable.agent)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = 0 if space is None else math.ceil(len(space) / COLUMNS)
    figure = Figure(figsize=(12.0, 4.2 + 2.4 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(1 + rows, COLUMNS, height_ratios=[1.6, *[1.0] * rows])
    _draw_rewards(figure.add_subplot(grid[0, :]), records, f"{comparable.agent} on {last.env_set.split('#')[0]}")
    if space is not None:
        places = [grid[1 + i // COLUMNS, i % COLUMNS] for i in range(len(space))]
        _draw_slices([figure.add_subplot(place) for place in places], space, seen, figure)
    with replacing(target) as temporary:
        figure.savefig(temporary, format=target.suffix[1:], dpi=110)
    return target


def _draw_rewards(axes: Axes, records: Sequence[Record], title: str) -> None:
    """Each trial's reward, and the champion's as it stood after each."""
    kinds: dict[str, tuple[str, str, list[tuple[int, float]]]] = {
        "trial": ("o", INK, []),
        "stopped early": ("v", LIGHT, []),
        "trained on": ("^", INK, []),
        "retest": ("D", GREY, []),
        "no learning": ("s", LIGHT, []),
    }
    failed = []
    for number, record in enumerate(records, start=1):
        if record.mean_reward is None:
            failed.append(number)
        else:
            kinds[_kind(record)][2].append((number, record.mean_reward))
    for label, (marker, color, points) in kinds.items():
        if points:
            axes.plot(*zip(*points), marker, color=color, label=label, markersize=5)
    if failed:
        axes.plot(failed, [0.02] * len(failed), "x", color=RED, label="failed", transform=axes.get_xaxis_transform())
    line = [holder(reign(records[:count])) for count in range(1, len(records) + 1)]
    rewards = [float("nan") if crowned is None else crowned.reward for crowned in line]
    axes.step(range(1, len(records) + 1), rewards, where="post", color=RED, label="champion")
    axes.set_xlabel("trial")
    axes.set_ylabel("mean reward")
    axes.set_title(f"{title}: {len(records)} trials")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")  # beside the axes: it hides no trial


def _kind(record: Record) -> str:
    if record.retest_of is not None:
        return "retest"
    if record.run_status == "no_learning":
        return "no learning"
    if record.continues is not None:
        return "trained on"
    return "trial" if record.stopped_at is None else "stopped early"


def _draw_slices(panels: Sequence[Axes], space: Space, seen: Sequence[Observation], figure: Figure) -> None:
    """Mean, standard deviation and UCB along each parameter through the incumbent."""
    incumbent = recommend(space, seen)
    assert incumbent is not None
    _, process = fit_observations(space, seen)
    centre = space.encode(incumbent.params)
    for i, (axes, parameter) in enumerate(zip(panels, space.parameters, strict=True)):
        u = _places(parameter)
        points = np.repeat(centre[None, :], len(u), axis=0)
        points[:, i] = u
        mean, std = process.predict(space.features(points))
        x = [_shown(parameter, parameter.from_unit(place)) for place in u]
        axes.fill_between(x, mean - std, mean + std, color=LIGHT, alpha=0.5, label="mean ± std")
        axes.plot(x, mean, color=INK, label="mean")
        axes.plot(x, mean + EXPLORE * std, ":", color=INK, label=f"UCB, kappa {EXPLORE:g}")
        tried = [_shown(parameter, observation.params[parameter.name]) for observation in seen]
        rewards = np.array([observation.value for observation in seen], dtype=float)
        axes.plot(tried, rewards, ".", color=GREY, markersize=3, label="trials")
        axes.axvline(_shown(parameter, incumbent.params[parameter.name]), color=RED, lw=0.8, label="incumbent")
        if parameter.kind in ("log_float", "power_of_two"):
            axes.set_xscale("log", base=2 if parameter.kind == "power_of_two" else 10)
        axes.set_title(parameter.name, fontsize="medium")
        axes.tick_params(labelsize="small")
        axes.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize="small")
    figure.supylabel("mean reward", fontsize="medium")


def _shown(parameter: Parameter, value: Any) -> Any:
    """A value as an axis takes it: choices by name."""
    return str(value) if parameter.kind == "categorical" else value


def _places(parameter: Parameter) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Where a slice is computed: at each level, or evenly."""
    if parameter.levels and parameter.levels <= POINTS:
        return (np.arange(parameter.levels) + 0.5) / parameter.levels
    return np.linspace(0.0, 1.0, POINTS)


def space_of(settings: Sequence[dict[str, Any]], agent: str) -> Space | None:
    """The space in which settings differ, as wide as they reach; None if they do not differ.

    How a parameter is measured comes from the agent's space; of one that is not in there, from its values.
    """
    try:
        shipped = {parameter.name: parameter for parameter in default_space(agent).parameters}
    except ConfigError:
        shipped = {}
    parameters = []
    for name in dict.fromkeys(name for setting in settings for name in setting):
        values = [setting[name] for setting in settings if name in setting]
        if len(set(values)) > 1 and len(values) == len(settings):
            parameters.append(_parameter(name, values, shipped.get(name)))
    return Space(tuple(parameters)) if parameters else None


def _parameter(name: str, values: Sequence[Any], shipped: Parameter | None) -> Parameter:
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        return Parameter(name, "categorical", choices=tuple(dict.fromkeys(values)))
    low, high = min(values), max(values)
    if shipped is not None and shipped.kind != "categorical":
        return replace(shipped, low=low, high=high, default=None, parent=None, parent_values=())
    if all(isinstance(value, int) for value in values):
        return Parameter(name, "int", low, high)
    return Parameter(name, "log_float" if low > 0.0 and high / low >= WIDE else "float", low, high)
