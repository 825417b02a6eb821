"""What the package offers by name, and that offering it loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest
import stable_baselines3

import rl_training

ALGORITHMS = ["DQN", "PPG", "PPO", "SAC", "DrQ", "DrQv2"]


@pytest.mark.parametrize("package", ["rl_training", "rl_training.api", "rl_training.algorithms"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_is_at_hand_everywhere(package: str, name: str) -> None:
    module = import_module(package)
    assert name in module.__all__
    assert name in dir(module)
    algorithm = getattr(module, name)
    assert algorithm is getattr(rl_training, name)
    assert issubclass(algorithm, stable_baselines3.common.base_class.BaseAlgorithm)


@pytest.mark.parametrize(
    ("name", "room"),
    [
        ("drq_loss", "rl_training.losses"),
        ("ppg_loss", "rl_training.losses"),
        ("ppg_auxiliary_loss", "rl_training.losses"),
        ("CNNDrQModel", "rl_training.models.cnn.drq"),
        ("CNNDrQModel", "rl_training.models"),
        ("MLPPPGModel", "rl_training.models.mlp_ppg"),
        ("MLPPPGModel", "rl_training.models"),
    ],
)
def test_losses_and_models_are_at_hand_in_their_rooms(name: str, room: str) -> None:
    assert name in rl_training.__all__
    assert getattr(import_module(room), name) is getattr(rl_training, name)


def test_all_names_exist() -> None:
    for package in (
        "rl_training",
        "rl_training.api",
        "rl_training.algorithms",
        "rl_training.losses",
        "rl_training.models",
    ):
        module = import_module(package)
        for name in module.__all__:
            assert getattr(module, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"rl_training.*A3C"):
        _ = rl_training.A3C


def test_importing_the_packages_does_not_import_torch() -> None:
    check = (
        "import sys, rl_training, rl_training.api, rl_training.algorithms;"
        "assert not {'torch', 'stable_baselines3'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", check], check=True)
