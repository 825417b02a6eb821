"""Plain values against the types of fields."""

from __future__ import annotations

from typing import Any

import pytest

from rl_training.envs.spec import EnvSpec
from rl_training.envs.typed_values import typed_value
from rl_training.errors import ConfigError


@pytest.mark.parametrize(
    ("value", "annotation", "held"),
    [
        (1e3, "int", 1000),
        (2, "float", 2.0),
        ("warren", "tuple[str, ...]", ("warren",)),
        (["warren", "warehouse"], "tuple[str, ...]", ("warren", "warehouse")),
        ([0, 1.5], "tuple[float, float]", (0.0, 1.5)),
        ({"any": "thing"}, "Mapping[str, Any]", {"any": "thing"}),
    ],
)
def test_values_become_what_the_field_holds(value: Any, annotation: str, held: Any) -> None:
    found = typed_value("key", value, annotation)
    assert found == held
    assert type(found) is type(held)


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        (1.5, "int", "a whole number"),
        (True, "int", "a whole number"),
        (float("nan"), "float", "a number"),
        (1, "bool", "true or false"),
        (None, "str", "text"),
        (3, "tuple[str, ...]", "a list of texts"),
        ([1.0], "tuple[float, float]", "a list of 2 numbers"),
        (["a", "b"], "tuple[float, float]", "a number"),
    ],
)
def test_others_are_refused_by_name(value: Any, annotation: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=rf"^donkey\.key is .*; expected {expected}\.$"):
        typed_value("donkey.key", value, annotation)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"limits": 3}, "EnvSpec.limits is 3; expected a mapping"),
        ({"limits": {"max_cte": "far"}}, "EnvSpec.limits.max_cte is 'far'; expected a number"),
        ({"action": {"normalized": 3}}, "EnvSpec.action.normalized is 3; expected true or false"),
    ],
)
def test_a_spec_names_the_key_that_is_wrong(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        EnvSpec.from_dict(values)
