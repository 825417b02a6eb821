"""A plan of a track seen from above, as the simulator knows it: road, lines, walls, solids, start."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_training.simulator import path_geometry as geometry
from rl_training.simulator.track import (
    LINE_HALF_DEPTH,
    LINE_HALF_WIDTH,
    LINE_X,
    LINE_YAW,
    LINE_Z,
    SOLID_BLOCKS,
    SOLID_HALF_X,
    SOLID_HALF_Z,
    SOLID_MATERIAL,
    SOLID_SHAPE,
    SOLID_X,
    SOLID_YAW,
    SOLID_Z,
    WALL_MATERIAL,
    WALL_X0,
    WALL_X1,
    WALL_Z0,
    WALL_Z1,
    Decal,
    Floats,
    Shape,
    Strip,
    Track,
)


def draw_plan(track: Track, ax: Any) -> None:
    """Draw `track` on matplotlib axes, one unit of the axes a unit of the world, x right and z up."""
    colors = track.colors / 255.0
    ax.set_facecolor(colors[0])
    ax.set_aspect("equal")
    for decal in track.decals:
        if not decal.over_road:
            _draw_decal(decal, colors, ax)
    for strip in track.strips:
        for band in _bands(track, strip):
            ax.fill(band[:, 0], band[:, 1], color=colors[strip.material], linewidth=0)
    for decal in track.decals:
        if decal.over_road:
            _draw_decal(decal, colors, ax)
    for offset in track.half_widths:
        edge = geometry.beside(track.line, track.closed, offset)
        ax.plot(edge[:, 0], edge[:, 2], ":", color="black", linewidth=0.5)
    ax.plot(track.nodes[:, 0], track.nodes[:, 2], ".", color="tab:blue", markersize=1.0)
    for wall in track.walls:
        x, z = wall[[WALL_X0, WALL_X1]], wall[[WALL_Z0, WALL_Z1]]
        ax.plot(x, z, color=colors[int(wall[WALL_MATERIAL])], linewidth=2.0, solid_capstyle="round")
        ax.plot(x, z, color="tab:red", linewidth=0.6)
    for solid in track.solids:
        _draw_solid(solid, colors, ax)
    for row in track.start_lines:
        corners = _rectangle(row[LINE_X], row[LINE_Z], row[LINE_YAW], row[LINE_HALF_WIDTH], row[LINE_HALF_DEPTH])
        ax.fill(corners[:, 0], corners[:, 1], color="magenta", alpha=0.4, linewidth=0)
    for x, _, z, yaw in track.starts:
        reach = 0.04 * float(np.ptp(track.line[:, [0, 2]], axis=0).max())
        ax.annotate(
            "",
            xy=(x + reach * np.sin(yaw), z + reach * np.cos(yaw)),
            xytext=(x, z),
            arrowprops={"arrowstyle": "->", "color": "red", "linewidth": 1.5},
        )
    ax.plot(track.nodes[0, 0], track.nodes[0, 2], "o", color="lime", markersize=3)
    ax.set_title(f"{track.name}  {track.length:.0f} u, {len(track.nodes)} nodes", fontsize=8)


def _bands(track: Track, strip: Strip) -> list[Floats]:
    """Outlines (K, 2) of a strip: one for a solid one, one for each dash of a dashed one."""
    length = track.length
    period = strip.dash_on + strip.dash_off
    if strip.dash_on > 0.0:
        ends = [(first, min(first + strip.dash_on, length)) for first in np.arange(0.0, length, period)]
    else:
        ends = [(first, min(first + 50.0, length)) for first in np.arange(0.0, length, 50.0)]
    along = geometry.arcs(track.line, track.closed)
    outlines = []
    sides = [geometry.beside(track.line, track.closed, offset) for offset in (strip.left, strip.right)]
    if track.closed:
        sides = [np.concatenate([side, side[:1]]) for side in sides]
    for first, last in ends:
        where = np.linspace(first, last, max(int((last - first) / 0.5), 1) + 1)
        left, right = (np.column_stack([np.interp(where, along, side[:, axis]) for axis in (0, 2)]) for side in sides)
        outlines.append(np.concatenate([left, right[::-1]]))
    return outlines


def _rectangle(x: float, z: float, yaw: float, half_x: float, half_z: float) -> Floats:
    corners = np.array([[-half_x, -half_z], [half_x, -half_z], [half_x, half_z], [-half_x, half_z]])
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    placed: Floats = corners @ turn + (x, z)
    return placed


def _ellipse(x: float, z: float, yaw: float, half_x: float, half_z: float) -> Floats:
    angle = np.linspace(0.0, 2.0 * np.pi, 48)
    ring = np.column_stack([half_x * np.cos(angle), half_z * np.sin(angle)])
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    placed: Floats = ring @ turn + (x, z)
    return placed


def _draw_decal(decal: Decal, colors: Floats, ax: Any) -> None:
    outline = (_ellipse if decal.ellipse else _rectangle)(decal.x, decal.z, decal.yaw, decal.half_x, decal.half_z)
    ax.fill(outline[:, 0], outline[:, 1], color=colors[decal.material], linewidth=0.4)  # thin lines stay visible


def _draw_solid(solid: Floats, colors: Floats, ax: Any) -> None:
    x, z, yaw = solid[SOLID_X], solid[SOLID_Z], solid[SOLID_YAW]
    half_x, half_z = solid[SOLID_HALF_X], solid[SOLID_HALF_Z]
    if solid[SOLID_SHAPE] in (Shape.BOX, Shape.ARCH, Shape.CHAIR, Shape.TABLE):
        outline = _rectangle(x, z, yaw, half_x, half_z)
    else:
        radius = half_z if solid[SOLID_SHAPE] == Shape.TREE else half_x
        outline = _ellipse(x, z, yaw, radius, radius)
    edge = "black" if solid[SOLID_BLOCKS] else "white"
    ax.fill(outline[:, 0], outline[:, 1], facecolor=colors[int(solid[SOLID_MATERIAL])], edgecolor=edge, linewidth=0.5)
