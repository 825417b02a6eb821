"""Values of flags that argparse itself does not check; its error then names the flag."""

from __future__ import annotations

from argparse import ArgumentTypeError


def seed(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isdecimal():
        raise ArgumentTypeError(f"'{text}' is no seed; expected a whole number of 0 or more")
    return int(text)
