"""The kernel cache: written once, never stale."""

from __future__ import annotations

from pathlib import Path

from rl_training.simulator import jit


def test_a_stamp_covers_the_sources_that_a_kernel_inlines() -> None:
    names = {path.name for path in jit._sources(jit.FOLDER / "path.py")}
    assert {"path.py", "bank.py", "state.py", "track.py", "jit.py"} <= names
    assert "packing.py" not in names


def test_a_stamp_covers_modules_imported_whole_too() -> None:
    source = "from rl_training.simulator import faces as f, view\nfrom rl_training.simulator.bank import Bank\n"
    assert jit._imported(source) == ["faces", "view", "bank"]


def test_changing_an_imported_source_changes_the_stamp(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(jit, "FOLDER", tmp_path)
    helper, user = tmp_path / "helper.py", tmp_path / "user.py"
    helper.write_text("A = 1\n")
    user.write_text("from rl_training.simulator.helper import A\n")
    before = jit.source_stamp(user)
    helper.write_text("A = 2\n")
    jit.source_stamp.cache_clear()
    jit._sources.cache_clear()
    after = jit.source_stamp(user)
    jit.source_stamp.cache_clear()
    jit._sources.cache_clear()
    assert before != after


def test_a_kernel_is_loaded_from_the_cache_the_second_time(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("DONKEY_RL_CACHE", str(tmp_path))

    def double(x: float) -> float:
        return 2.0 * x

    first = jit.kernel(double)
    assert first(3.0) == 6.0
    assert sum(first.stats.cache_misses.values()) == 1  # type: ignore[attr-defined]
    second = jit.kernel(double)
    assert second(3.0) == 6.0
    assert sum(second.stats.cache_hits.values()) == 1  # type: ignore[attr-defined]
