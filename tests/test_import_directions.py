"""Which room may import which: read from the sources, so that a forbidden import fails before it is run."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rl_training

PACKAGE = Path(rl_training.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# Rooms that stand alone: apart from themselves they may import `errors` and nothing else of ours.
ALONE = {"protocol", "losses", "models", "simulator"}
ALONE_MODULES = {f"autoresearch/{name}.py" for name in ("space", "gp", "acquisition")}
NUMPY_ONLY = ALONE_MODULES
TORCH_ONLY = {"losses", "models"}
SB3_ROOMS = {"algorithms", "runtime"}
SB3_MODULES = {"envs/vec_env.py"}
NOBODY_IMPORTS = {"cli", "api"}


def imports_of(path: Path) -> set[str]:
    """Full names of the modules a file imports, wherever in the file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names.add(node.module or "")
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def room_of(relative: str) -> str:
    return relative.split("/")[0] if "/" in relative else ""


def rooms_imported(path: Path) -> set[str]:
    ours = {name for name in imports_of(path) if name.startswith("rl_training.")}
    return {name.split(".")[1] for name in ours}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_keep_their_direction(path: Path) -> None:
    relative = path.relative_to(PACKAGE).as_posix()
    room = room_of(relative)
    rooms = rooms_imported(path) - {room}
    external = {name.split(".")[0] for name in imports_of(path)}
    if room in ALONE:
        assert rooms <= {"errors"}, f"{relative} may import nothing of ours but errors"
    if relative in ALONE_MODULES:
        allowed = {"errors"} | {f"autoresearch.{other.split('/')[1][:-3]}" for other in ALONE_MODULES}
        ours = {name[len("rl_training.") :] for name in imports_of(path) if name.startswith("rl_training.")}
        assert all(any(name == ok or name.startswith(ok + ".") for ok in allowed) for name in ours)
    if relative in NUMPY_ONLY:
        assert not external & {"scipy", "torch", "sklearn", "numba"}, f"{relative} is numpy only"
    if room not in NOBODY_IMPORTS and relative != "__main__.py" and relative != "__init__.py":
        assert not rooms & NOBODY_IMPORTS, f"{relative} imports {rooms & NOBODY_IMPORTS}"
    if "stable_baselines3" in external:
        assert room in SB3_ROOMS or relative in SB3_MODULES, f"{relative} may not know stable_baselines3"
    if room in TORCH_ONLY:
        assert "gymnasium" not in external, f"{relative} knows tensors only"


@pytest.mark.parametrize(
    "statement", ["import rl_training", "from rl_training.cli.main import build_parser; build_parser(None)"]
)
def test_importing_the_package_loads_neither_torch_nor_numba(statement: str) -> None:
    heavy = "{'torch', 'numba', 'stable_baselines3'} & set(sys.modules)"
    check = f"{statement}; import sys; heavy = {heavy}; assert not heavy, heavy"
    subprocess.run([sys.executable, "-c", check], check=True)
