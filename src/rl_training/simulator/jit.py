"""`@kernel` and `@builder`: numba compilation, cached on disk under a stamp of the sources.

Numba stamps a cached kernel with its own file only, so a kernel that inlines a function of another file keeps running
the old code after that file changed; and two jits of one function with different flags share one cache entry. Here the
stamp covers the kernel's file and all simulator sources it imports, and there are two fixed sets of flags.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

F = TypeVar("F", bound=Callable[..., Any])

# Arrays passed to a function are counted references unless NRT is off; a `Bank` holds thirty of them, and counting
# them at every call made a physics step eight times slower. Without NRT a kernel cannot allocate: builders do that.
COMMON: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "arcp", "nsz"}}
KERNEL_FLAGS: dict[str, Any] = {**COMMON, "_nrt": False, "forceinline": True}
BUILDER_FLAGS: dict[str, Any] = COMMON

FLAGS_TEXT = repr(
    [
        sorted((name, str(sorted(value) if isinstance(value, set) else value)) for name, value in flags.items())
        for flags in (KERNEL_FLAGS, BUILDER_FLAGS)
    ]
)
FOLDER = Path(__file__).parent
_IMPORT = re.compile(r"^\s*from rl_training\.simulator(?:\.(\w+) import| import (.+)$)", re.MULTILINE)


@cache
def _sources(path: Path) -> frozenset[Path]:
    """`path` and every simulator source it imports, directly or not."""
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        current = waiting.pop()
        if current not in found and current.is_file():
            found.add(current)
            waiting.extend(FOLDER / f"{name}.py" for name in _imported(current.read_text()))
    return frozenset(found)


def _imported(source: str) -> list[str]:
    """The simulator's modules that a source imports, or takes names from."""
    names = []
    for module, modules in _IMPORT.findall(source):
        names += [module] if module else [each.split()[0] for each in modules.split(",")]
    return names


@cache
def source_stamp(path: Path) -> str:
    """A digest of what a kernel of `path` is compiled from: its sources, the flags, the versions."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version} {FLAGS_TEXT}".encode())
    for source in sorted(_sources(path)):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where compiled kernels are kept: ``$DONKEY_RL_CACHE``, or the user's cache folder."""
    base = os.environ.get("DONKEY_RL_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "donkey-rl" / "kernels"


class _StampedLocator(_CacheLocator):  # type: ignore[misc]
    """The stamp is part of the file's name: a changed source means another file, never a stale kernel."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._stamp = source_stamp(Path(py_file))

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return self._stamp

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _StampedLocator | None:
        locator = cls(py_func, py_file)
        try:
            locator.ensure_cache_path()  # type: ignore[no-untyped-call]
        except OSError:
            return None  # a read-only home: numba then compiles in memory
        return locator


class _Impl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_StampedLocator]  # noqa: RUF012 (numba's own name and type)


class _Cache(FunctionCache):  # type: ignore[misc]
    _impl_class = _Impl


def kernel(function: F) -> F:
    """Compile for the hot path: inlined into its callers, no allocation, no reference counting."""
    return _compiled(function, KERNEL_FLAGS)


def builder(function: F) -> F:
    """Compile for preparation on the host's behalf: may allocate arrays and return them."""
    return _compiled(function, BUILDER_FLAGS)


def _compiled(function: F, flags: dict[str, Any]) -> F:
    """`function`, compiled on its first call or loaded from the cache."""
    dispatcher = numba.njit(**flags)(function)
    with contextlib.suppress(RuntimeError):  # no writable cache folder: compiled in memory at every start
        dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]
    return dispatcher  # type: ignore[no-any-return]


@lru_cache(maxsize=1)
def announce_first_compile() -> None:
    """Say, once, why the first start on a machine takes longer than the later ones."""
    folder = cache_folder()
    if not folder.is_dir() or not any(folder.iterdir()):
        print("Compiling the simulator for this machine (once, about half a minute) ...", file=sys.stderr, flush=True)
