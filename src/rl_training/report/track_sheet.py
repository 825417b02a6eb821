"""Pictures of tracks: one track's plan beside what the camera sees at its start, and a contact sheet of many."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

from rl_training.envs.cameras import StackedCamera
from rl_training.envs.spec import CameraSpec, ObservationSpec
from rl_training.errors import UsageError
from rl_training.report.track_plan import draw_plan
from rl_training.simulator.packing import prepare
from rl_training.simulator.randomize import faithful
from rl_training.simulator.track import Track
from rl_training.simulator.world import World

matplotlib.use("Agg")

from matplotlib import pyplot as plt


def view_at(track: Track, share: float = 0.0, width: int = 320, height: int = 240) -> NDArray[np.uint8]:
    """What the camera sees at the start, or at a share of the way round with the car on the line."""
    world = World(1)
    world.load(0, prepare(track))
    world.dress(0)
    camera = StackedCamera(
        world, ObservationSpec(width, height, camera_width=width, camera_height=height), CameraSpec()
    )
    camera.dress(0, faithful(track))
    if share == 0.0:
        world.place_at_start(0)
    else:
        i = int(share * len(track.line))
        here, ahead = track.line[i], track.line[(i + 1) % len(track.line)]
        world.place(0, float(here[0]), float(here[2]), float(np.arctan2(ahead[0] - here[0], ahead[2] - here[2])))
    frame: NDArray[np.uint8] = camera.observe()[0]
    return frame


def save_track_picture(track: Track, path: str | Path) -> Path:
    """Plan, view at the start, and views at a third and two thirds of the way."""
    figure, axes = plt.subplot_mosaic("AAB;AAC;AAD", figsize=(13, 9), layout="constrained")
    draw_plan(track, axes["A"])
    axes["A"].set_title(f"{track.name}: {track.length:.0f} u ({track.length / 8:.1f} m), {len(track.nodes)} nodes")
    for key, share, title in (("B", 0.0, "at the start"), ("C", 1 / 3, "a third on"), ("D", 2 / 3, "two thirds on")):
        axes[key].imshow(view_at(track, share))
        axes[key].set_title(title)
        axes[key].set_axis_off()
    return _save(figure, path)


def save_contact_sheet(tracks: Sequence[Track], path: str | Path) -> Path:
    """A row of two tiles a track: the camera's view at the start, and the plan."""
    columns = 3
    rows = -(-len(tracks) // columns)
    figure, axes = plt.subplots(rows, 2 * columns, figsize=(18, 3.1 * rows), layout="constrained", squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
    for k, track in enumerate(tracks):
        picture, plan = axes[k // columns, 2 * (k % columns)], axes[k // columns, 2 * (k % columns) + 1]
        picture.imshow(view_at(track))
        picture.set_title(track.name)
        plan.set_axis_on()
        draw_plan(track, plan)
        plan.tick_params(labelsize=6)
    return _save(figure, path)


def _save(figure: Any, path: str | Path) -> Path:
    target = Path(path)
    known = figure.canvas.get_supported_filetypes()
    if target.suffix[1:].lower() not in known:
        raise UsageError(f"A picture cannot be saved as '{target.name}'; use a name that ends in .png, .jpg or .svg.")
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=80)
    plt.close(figure)
    return target
