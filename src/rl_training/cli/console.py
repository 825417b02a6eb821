"""The console that commands print on, and the look of their tables."""

from __future__ import annotations

import sys

from rich import box
from rich.console import Console
from rich.table import Table

# A pipe or a log has no width of its own: lines there are as long as the tables need.
console = Console(emoji=False, markup=False, highlight=False, width=None if sys.stdout.isatty() else 160)


def table(title: str, *columns: str) -> Table:
    """A table in the project's look: figures to the right, words to the left."""
    grid = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for k, column in enumerate(columns):
        words = k == 0 or column in ("what it is", "why", "command", "note", "peer", "figure", "end", "measured")
        grid.add_column(column, justify="left" if words else "right", no_wrap=column != "what it is")
    return grid
