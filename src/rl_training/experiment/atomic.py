"""Files and folders that are either the old ones or the new ones, whatever is killed when.

Everything is written under a temporary name beside its target, flushed to the disk and renamed over it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TEMPORARY = ".partial-"  # prefix of what a killed writer may leave behind; no reader looks at it


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path, with the suffix of ``path``, that takes its place when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}")
    try:
        yield temporary
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder that becomes ``path``, which must not exist yet, when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        for file in temporary.iterdir():
            sync(file)
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """The whole file at once."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """The whole file at once; what JSON has no word for, such as NaN, is an error."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def sha256(path: Path) -> str:
    """Digest of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
