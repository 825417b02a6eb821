"""The algorithms a config may name. Each is one `AlgorithmSpec`: what builds, trains, loads, evaluates and predicts.

Hooks are named by ``module:attribute`` and imported when first called, so that asking which algorithms there are loads
none. A package of its own may add one through an entry point of the group ``rl_training.algorithms`` that is an
`AlgorithmSpec`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from rl_training.errors import ConfigError, did_you_mean

ENTRY_POINTS = "rl_training.algorithms"


@dataclass(frozen=True)
class Hook:
    """A callable that is imported when it is first called."""

    target: str

    def resolve(self) -> Any:
        """What the target names."""
        module, _, attribute = self.target.partition(":")
        return getattr(import_module(module), attribute)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.resolve()(*args, **kwargs)


@dataclass(frozen=True)
class AlgorithmSpec:
    """One algorithm, with the hooks that all verbs go through.

    ``algorithm()`` gives a stable-baselines3 algorithm class; ``train(config, run, **options)`` fills a run folder and
    gives its result; ``load(algorithm, path, env, device)`` a model; ``predict(model, observation, deterministic)`` an
    action; ``evaluate(model, config, episodes, seed, deterministic=...)`` a score.
    """

    name: str
    summary: str
    algorithm: Callable[[], Any]
    train: Callable[..., Any] = Hook("rl_training.runtime.trainer:train")
    load: Callable[..., Any] = Hook("rl_training.runtime.building:load_model")
    evaluate: Callable[..., Any] = Hook("rl_training.runtime.scoring:score")
    predict: Callable[..., Any] = Hook("rl_training.runtime.scoring:predict")


@dataclass(frozen=True)
class _Class:
    """Gives a class that is imported when it is asked for."""

    target: str

    def __call__(self) -> Any:
        return Hook(self.target).resolve()


BUILT_IN = (
    AlgorithmSpec("ppo", "proximal policy optimisation; the default", _Class("rl_training.algorithms:PPO")),
    AlgorithmSpec("dqn", "deep Q-learning, on discretised actions", _Class("rl_training.algorithms:DQN")),
    AlgorithmSpec("sac", "soft actor-critic", _Class("rl_training.algorithms:SAC")),
    AlgorithmSpec(
        "ppg",
        "phasic policy gradient, on discretised actions",
        _Class("rl_training.algorithms:PPG"),
        train=Hook("rl_training.runtime.ppg_trainer:train_ppg"),
    ),
    AlgorithmSpec(
        "drq",
        "SAC from shifted images; few steps, many updates",
        _Class("rl_training.algorithms:DrQ"),
        train=Hook("rl_training.runtime.drq_trainer:train_drq"),
    ),
    AlgorithmSpec("drqv2", "DrQ-v2: n-step returns and fading noise", _Class("rl_training.algorithms:DrQv2")),
)


@lru_cache(maxsize=1)
def algorithms() -> dict[str, AlgorithmSpec]:
    """All algorithms by name, those of installed plug-ins included."""
    known = {spec.name: spec for spec in BUILT_IN}
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            spec = entry.load()
        except Exception as error:  # whatever their module does when it is imported
            raise ConfigError(
                f"The plug-in '{entry.name}' ({entry.value}) cannot be loaded ({type(error).__name__}: {error}); "
                "mend or uninstall the package."
            ) from error
        if not isinstance(spec, AlgorithmSpec):
            raise ConfigError(
                f"The plug-in '{entry.name}' ({entry.value}) is no AlgorithmSpec; mend or uninstall the package."
            )
        if spec.name in known:
            raise ConfigError(f"The plug-in '{entry.name}' calls itself '{spec.name}', which is taken; rename it.")
        known[spec.name] = spec
    return known


def algorithm_spec(name: str) -> AlgorithmSpec:
    """The algorithm of that name."""
    known = algorithms()
    if name not in known:
        raise ConfigError(f"There is no algorithm '{name}'.{did_you_mean(name, known)}")
    return known[name]
