"""A bounded run of the fuzzer; the long one is `python -m tests.protocol.fuzz`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.protocol.fuzz import TARGETS, run


@pytest.mark.parametrize("target", [target for target, _ in TARGETS.values()], ids=list(TARGETS))
def test_random_peers(target: Callable[[], None]) -> None:
    run(target, 60)
