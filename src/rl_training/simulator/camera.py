"""The camera: one frame of one car, drawn without allocation, the same to the bit whatever else is drawn.

`draw` is for kernels; a batch calls it once per car:

    draw(bank, slot, pose, mount, view, palette, light, others, scratch, out)

    bank, slot   the world and the track's place in it
    pose         the car's state row (its first six columns are read)
    mount        where the camera sits on the car: `view.mount_row`
    view         size, focal lengths, crop and layout: `View.full().cropped(...).resized(...).grey()`
    palette      colours of materials, light and sky: `palette.palette`
    light        sun for hills, solids and shadows: `palette.light_row`
    others       (N, OTHER_COLUMNS) cars to be seen: pose and colour
    scratch      buffers of one thread, `Scratch.of(view)`; nothing in them outlives a call
    out          uint8, the frame's bytes as one row: `frames.reshape(len(frames), -1)[i]`
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rl_training.simulator.bank import Bank
from rl_training.simulator.boards import ROW_COLUMNS, paint_board
from rl_training.simulator.faces import (
    BOARD,
    FACE_COLUMNS,
    KIND,
    MOST_FACES,
    MOST_RAMPS,
    RAMP,
    SHADOW,
    paint_face,
)
from rl_training.simulator.ground_view import draw_level, surface_of
from rl_training.simulator.hill_view import KNOT, KNOT_ROWS, SPAN_COLUMNS, paint, terrain_height, terrain_of, trace
from rl_training.simulator.jit import kernel
from rl_training.simulator.palette import PALETTE_SIZE, Palette
from rl_training.simulator.sight import CHUNK
from rl_training.simulator.solids import OTHER_COLOR as OTHER_COLOR
from rl_training.simulator.solids import OTHER_COLUMNS as OTHER_COLUMNS
from rl_training.simulator.solids import collect_faces
from rl_training.simulator.view import GREY, PLANES, Eye, View, eye_of, lifted

LEAST_HEIGHT = 0.05  # a camera below the ground is lifted to this above it [u]
LEAN = 0.2  # a picture that leans by fewer pixels from edge to edge is drawn as level


_COLOR_MASK, _HALF_WORD, _BYTE = np.uint32(0xFFFFFF), np.uint32(0xFFFF), np.uint32(0xFF)


class Scratch(NamedTuple):
    """Buffers of one drawing thread."""

    pixels: NDArray[np.uint32]  # the frame as palette entries, row by row, and a spare row
    nearness: NDArray[np.float32]  # 1 / depth of what is drawn there, 0 = the sky
    knots: NDArray[np.float64]  # depths and light at the knots of a row
    spans: NDArray[np.float64]  # (N, SPAN_COLUMNS) pieces of rows
    faces: NDArray[np.float64]  # (MOST_FACES, FACE_COLUMNS) what stands on the ground
    ramps: NDArray[np.uint32]  # shades of colours that are in no palette
    corners: NDArray[np.float64]  # a face's outline on the picture
    columns: NDArray[np.int64]  # (height, ROW_COLUMNS) where a face's outline begins and ends in each row, and more
    axes: NDArray[np.float64]  # of a box
    marks: NDArray[np.uint8]  # what may be seen

    @classmethod
    def of(cls, view: View) -> Scratch:
        """Buffers large enough for `view`."""
        size = view.width * view.height
        knots = view.width // KNOT + 2
        return cls(
            np.zeros(size + view.width, np.uint32),
            np.zeros(size, np.float32),
            np.zeros((KNOT_ROWS, knots)),
            np.zeros((2 * knots * view.height, SPAN_COLUMNS)),
            np.zeros((MOST_FACES, FACE_COLUMNS)),
            np.zeros(MOST_RAMPS, np.uint32),
            np.zeros((20, 2)),
            np.zeros((view.height, ROW_COLUMNS), np.int64),
            np.zeros((3, 3)),
            np.zeros(CHUNK, np.uint8),
        )


@kernel
def draw(
    bank: Bank,
    slot: int,
    pose: NDArray[np.float64],
    mount: NDArray[np.float64],
    view: View,
    palette: Palette,
    light: NDArray[np.float64],
    others: NDArray[np.float64],
    scratch: Scratch,
    out: NDArray[np.uint8],
) -> None:
    """Draw one frame into `out`."""
    eye = eye_of(pose, mount)
    surface = surface_of(bank, slot)
    terrain = terrain_of(bank, slot)
    eye = lifted(eye, terrain_height(terrain, eye.x, eye.z) + LEAST_HEIGHT)
    ramps, axes, marks = scratch.ramps, scratch.axes, scratch.marks
    count = collect_faces(bank, slot, eye, view, light, terrain, others, scratch.faces, ramps, axes, marks)
    on_level = terrain.rows == 0 and abs(eye.right_y) * view.width * view.fy < LEAN * view.fx
    if on_level:
        draw_level(eye, view, eye.y - bank.ground_y[slot], surface, palette, scratch.pixels)
        if count > 0:
            scratch.nearness[:] = 0.0
    else:
        spans = trace(terrain, eye, view, light, scratch.knots, scratch.spans)
        paint(scratch.spans[:spans], surface, eye, view, palette, scratch.pixels, scratch.nearness, count > 0)
    _paint_faces(count, eye, view, palette, scratch, on_level)
    write_frame(view, scratch.pixels, out)


@kernel
def _paint_faces(count: int, eye: Eye, view: View, palette: Palette, scratch: Scratch, on_level: bool) -> None:
    """Paint the first `count` faces: all shadows, then what stands on the ground."""
    pixels, nearness = scratch.pixels, scratch.nearness
    for shadows in range(1, -1, -1):
        for k in range(count):
            face = scratch.faces[k]
            if (face[KIND] == SHADOW) != (shadows == 1):
                continue
            table = scratch.ramps if face[RAMP] >= PALETTE_SIZE else palette
            if face[KIND] == BOARD and paint_board(face, eye, view, table, scratch.columns, pixels, nearness):
                continue
            paint_face(face, eye, view, table, scratch.corners, scratch.columns, pixels, nearness, on_level)


@kernel
def write_frame(view: View, pixels: NDArray[np.uint32], out: NDArray[np.uint8]) -> None:
    """The bytes of a frame in the view's layout."""
    size = view.width * view.height
    if view.layout == GREY:
        for place in range(size):
            out[place] = np.uint8(pixels[place] >> 24)
    elif view.layout == PLANES:
        for channel in range(3):
            for place in range(size):
                out[channel * size + place] = np.uint8(pixels[place] >> (8 * channel))
    else:
        words = out[: size // 4 * 12].view(np.uint32)
        for k in range(size // 4):  # four pixels are three words
            one, two = pixels[4 * k], pixels[4 * k + 1]
            three, four = pixels[4 * k + 2], pixels[4 * k + 3]
            words[3 * k] = (one & _COLOR_MASK) | two << 24
            words[3 * k + 1] = (two >> 8 & _HALF_WORD) | three << 16
            words[3 * k + 2] = (three >> 16 & _BYTE) | four << 8
        for place in range(size // 4 * 4, size):
            pixel = pixels[place]
            out[3 * place] = np.uint8(pixel)
            out[3 * place + 1] = np.uint8(pixel >> 8)
            out[3 * place + 2] = np.uint8(pixel >> 16)
