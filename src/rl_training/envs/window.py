"""A window for `render_mode="human"`, drawn with Tk from the standard library.

Where there is no display a warning says so once, and the run goes on unseen: a server needs no other script.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

MIN_WIDTH = 480  # small frames are enlarged by whole factors


class Window:
    """Shows frames until it is closed; the user closing it does not stop the run."""

    def __init__(self, title: str) -> None:
        self._open = False
        try:
            import tkinter

            self._root: Any = tkinter.Tk()
        except Exception as error:  # no Tk, or no display: Tk has an error class of its own that needs Tk to name
            warnings.warn(
                f"There is no display to open a window on ({error}), so nothing is shown; "
                "use render_mode='rgb_array' or save a GIF.",
                stacklevel=2,
            )
            return
        self._root.title(title)
        self._photo_type = tkinter.PhotoImage
        self._label = tkinter.Label(self._root)
        self._label.pack()
        self._open = True
        self._root.protocol("WM_DELETE_WINDOW", self.close)

    def show(self, image: NDArray[np.uint8]) -> None:
        """Draw one frame."""
        if not self._open:
            return
        rgb = np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image
        header = f"P6 {rgb.shape[1]} {rgb.shape[0]} 255 ".encode()
        photo = self._photo_type(data=header + np.ascontiguousarray(rgb).tobytes(), format="PPM")
        factor = max(1, round(MIN_WIDTH / rgb.shape[1]))
        self._photo = photo.zoom(factor)  # Tk keeps no reference of its own
        self._label.configure(image=self._photo)
        self._root.update()

    def close(self) -> None:
        """Close the window."""
        if self._open:
            self._open = False
            self._root.destroy()
