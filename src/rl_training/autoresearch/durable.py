"""Files that are whole or not there, whatever is killed when: written aside, synced, renamed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Replace ``path`` by the JSON of ``values`` in one step."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with aside.open("w", encoding="utf-8") as file:
        json.dump(values, file, indent=2, default=str)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)
    sync(path.parent)


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in ``path``; None when there is no file, or no JSON object in it."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return values if isinstance(values, dict) else None


def sync(path: Path) -> None:
    """Make the content of a file, or the names in a folder, last through a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
