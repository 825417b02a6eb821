"""`@kernel`: numba compilation, cached on disk under a stamp of every simulator source.

Numba stamps a cached kernel with its own file only, so a kernel that inlines a function of another file keeps running
the old code after that file changed; and two jits of one function with different flags share one cache entry. Here the
stamp covers all sources of the simulator, and there is one set of flags.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

F = TypeVar("F", bound=Callable[..., Any])

FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "arcp", "nsz"}}


@lru_cache(maxsize=1)
def source_stamp() -> str:
    """A digest of the simulator's sources, the flags and numba's version."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version} {sorted(map(str, FLAGS.items()))}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where compiled kernels are kept: ``$DONKEY_RL_CACHE``, or the user's cache folder."""
    base = os.environ.get("DONKEY_RL_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "donkey-rl" / f"kernels-{source_stamp()}"


class _StampedLocator(_CacheLocator):  # type: ignore[misc]
    """One folder per source stamp: a changed source means another folder, never a stale kernel."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._name = f"{Path(py_file).stem}-{py_func.__code__.co_firstlineno}"

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return source_stamp()

    def get_disambiguator(self) -> str:
        return self._name

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _StampedLocator | None:
        locator = cls(py_func, py_file)
        try:
            locator.ensure_cache_path()
        except OSError:
            return None  # a read-only home: numba then compiles in memory
        return locator


class _Impl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_StampedLocator]  # noqa: RUF012 (numba's own name and type)


class _Cache(FunctionCache):  # type: ignore[misc]
    _impl_class = _Impl


def kernel(function: F) -> F:
    """Compile `function` on its first call, or load it from the cache."""
    dispatcher = numba.njit(**FLAGS)(function)
    try:
        dispatcher._cache = _Cache(function)
    except RuntimeError:
        pass  # no writable cache folder: compiled in memory at every start
    return dispatcher  # type: ignore[no-any-return]


@lru_cache(maxsize=1)
def announce_first_compile() -> None:
    """Say, once, why the first start on a machine takes longer than the later ones."""
    folder = cache_folder()
    if not folder.is_dir() or not any(folder.iterdir()):
        print("Compiling the simulator for this machine (once, about half a minute) ...", file=sys.stderr, flush=True)
