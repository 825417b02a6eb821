"""The search space: exact round trips, conditions, and errors that help."""

from __future__ import annotations

import numpy as np
import pytest

from rl_training.autoresearch.space import Parameter, Space, default_space, space_from_yaml
from rl_training.errors import ConfigError

AGENTS = ("dqn", "ppo", "sac", "ppg", "drq", "drqv2")
TEXT = """
parameters:
  layers: {type: int, low: 1, high: 4}
  batch: {type: power_of_two, low: 16, high: 256}
  rate: {type: log_float, low: 1.0e-5, high: 1.0e-1}
  share: {type: float, low: -2, high: 6}
  kind: {type: categorical, choices: [adam, sgd, rms]}
  momentum: {type: float, low: 0, high: 1, when: {kind: [sgd]}}
  nesterov: {type: categorical, choices: [false, true], when: {kind: [sgd, rms]}}
"""


@pytest.fixture
def space() -> Space:
    return space_from_yaml(TEXT)


def test_places_by_hand(space):
    u = space.encode(
        {"layers": 2, "batch": 64, "rate": 1e-3, "share": 0, "kind": "sgd", "momentum": 0.5, "nesterov": True}
    )
    # int: second of four bins; 2^6 is the third of 2^4..2^8; middle of four decades... of 5: two up from the bottom
    assert u == pytest.approx([0.375, 0.5, 0.5, 0.25, 0.5, 0.5, 0.75])


def test_settings_survive_the_cube(space):
    rng = np.random.default_rng(0)
    kinds = set()
    for u in rng.random((300, 7)):
        params = space.decode(u)
        kinds.add(params["kind"])
        assert space.decode(space.encode(params)) == params
    assert kinds == {"adam", "sgd", "rms"}


def test_typed_numbers_come_back_exactly():
    space = Space((Parameter("a", "float", 0.1, 0.7), Parameter("b", "log_float", 1e-5, 3e-3)))
    for a, b in [(0.3, 0.002), (0.1, 1e-5), (0.7, 3e-3), (0.123456789, 0.00073)]:
        assert space.decode(space.encode({"a": a, "b": b})) == {"a": a, "b": b}


def test_integers_have_equal_shares():
    values = [Parameter("n", "int", 3, 9).from_unit(u) for u in np.linspace(0, 1, 7001)]
    counts = np.bincount(values)[3:]
    assert len(counts) == 7
    assert counts.min() >= 999


def test_snap_is_encode_after_decode_for_all_rows(space):
    U = np.random.default_rng(1).uniform(-0.2, 1.2, (200, 7))
    expected = np.array([space.encode(space.decode(u)) for u in U])
    assert space.snap(U) == pytest.approx(expected, abs=1e-8)
    assert (space.snap(space.snap(U)) == space.snap(U)).all()


def test_an_absent_parameter_is_left_out_and_makes_no_difference(space):
    adam = {"layers": 1, "batch": 16, "rate": 1e-3, "share": 1.0, "kind": "adam"}
    assert space.encode({**adam, "momentum": 0.9})[5] == 0.5
    assert set(space.decode(space.encode(adam))) == set(adam)
    assert "momentum" in space.decode(space.encode({**adam, "kind": "sgd", "momentum": 0.1, "nesterov": False}))


def test_a_grandchild_goes_with_its_parent():
    space = Space(
        (
            Parameter("a", "categorical", choices=(1, 2)),
            Parameter("b", "categorical", choices=("x", "y"), parent="a", parent_values=(2,)),
            Parameter("c", "float", parent="b", parent_values=("y",)),
        )
    )
    assert space.decode([0.1, 0.9, 0.3]) == {"a": 1}
    assert space.decode([0.9, 0.9, 0.3]) == {"a": 2, "b": "y", "c": 0.3}
    assert space.snap(np.array([[0.1, 0.9, 0.3]])).tolist() == [[0.25, 0.5, 0.5]]


def test_features_put_choices_at_equal_distances(space):
    U = space.snap(np.array([[0.1] * 4 + [place] + [0.5] * 2 for place in (0.1, 0.5, 0.9)]))[:, :5]
    X = Space(space.parameters[:5]).features(U)
    assert X.shape == (3, 7)
    gaps = [np.linalg.norm(X[i] - X[j]) for i, j in [(0, 1), (0, 2), (1, 2)]]
    assert gaps == pytest.approx([0.5 * np.sqrt(2)] * 3)


def test_old_records_keep_their_place_and_take_defaults():
    space = default_space("dqn").with_range("timesteps", high=9000)
    assert space["timesteps"].default == 9000
    u = space.encode({"agent": "dqn", "n_steer": 5, "n_throttle": 2, "learning_rate": 1e-3, "timesteps": 20000})
    assert u[3] > 1
    assert space.decode(u)["timesteps"] == 9000
    assert space.decode(u)["reward_shaping"] is False


@pytest.mark.parametrize("agent", AGENTS)
def test_shipped_spaces(agent):
    space = default_space(agent)
    timesteps = space["timesteps"]
    assert (timesteps.kind, timesteps.low, timesteps.high) == ("int", 5000, 30000)
    assert space.decode(space.encode({})) == {p.name: p.default for p in space.parameters}
    narrower = space.with_range("timesteps", 6000, 7000)
    assert all(
        6000 <= narrower.decode(u)["timesteps"] <= 7000 for u in np.random.default_rng(0).random((20, len(space)))
    )


def test_yaml_numbers_are_numbers():
    """YAML reads 1e-3 as text; the shipped files must not fall for it, and a user who does is told."""
    with pytest.raises(ConfigError, match=r"finite numbers.*'1e-5'"):
        space_from_yaml("parameters: {rate: {type: log_float, low: 1e-5, high: 0.1}}")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{type: flaot, low: 0, high: 1}", "Did you mean 'float'"),
        ("{type: float, low: 0, hihg: 1}", "Did you mean 'high'"),
        ("{type: float, low: 0}", "no 'high'"),
        ("{type: float, low: 2, high: 1}", "low must be the smaller"),
        ("{type: int, low: 0.5, high: 3}", "must be an integer"),
        ("{type: power_of_two, low: 3, high: 8}", "powers of two"),
        ("{type: log_float, low: 0, high: 1}", "above 0"),
        ("{type: categorical, choices: [a]}", "at least two"),
        ("{type: categorical, choices: [adam, sgd], default: adm}", "Did you mean 'adam'"),
        ("{type: float, low: 0, high: 1, default: 2}", "outside its range"),
        ("{type: float, low: 0, high: 1, when: {kind: [a]}}", "not listed before it"),
        ("{type: float, low: 0, high: 1, when: [kind]}", "must name one parent"),
        ("{type: float, low: .nan, high: 1}", "finite"),
        ("7", "at least a type"),
        ("{type: categorical, choices: abc}", "list as choices"),
        ("{type: categorical, choices: 3}", "list as choices"),
        ("{type: categorical, choices: [[1], [2]]}", "plain words or numbers"),
        ("{type: int, low: 1, high: 3, default: 2.5}", "must be an integer"),
        ("{type: power_of_two, low: 1, high: 8, default: 3}", "power of two"),
        ("{type: float, low: 0, high: 1, default: 1e-3}", "write 1.0e-3"),
        ("{type: float, low: 0, high: 1}, y: {type: int, low: 1, high: 2, when: {x: [0]}}", "takes any number"),
    ],
)
def test_mistakes_in_yaml_are_named(entry, message):
    with pytest.raises(ConfigError, match=message):
        space_from_yaml(f"parameters: {{x: {entry}}}", "my.yaml")


@pytest.mark.parametrize("text", ["a: [", "parameters: 3", "[]", "parametrs: {}", "parameters: {}"])
def test_a_file_that_is_no_space(text):
    with pytest.raises(ConfigError):
        space_from_yaml(text, "my.yaml")


def test_names_are_suggested(space):
    with pytest.raises(ConfigError, match="Did you mean 'batch'"):
        space["bathc"]
    with pytest.raises(ConfigError, match="Did you mean 'drqv2'"):
        default_space("drqv")
    with pytest.raises(ConfigError, match="twice"):
        Space((Parameter("a", "float"), Parameter("a", "float")))
    with pytest.raises(ConfigError, match="no range"):
        space.with_range("kind", 0, 1)
    with pytest.raises(ConfigError, match="no default"):
        space.encode({"layers": 2})
    with pytest.raises(ConfigError, match="finite number"):
        space.encode({"layers": "two"})
