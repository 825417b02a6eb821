"""The study's real trials: `donkey-rl train` in a run folder of the study, and its model evaluated on fresh seeds.

A setting's names are those of the search space: `timesteps`, `n_steer`, `n_throttle`, `reward_shaping` and `agent` have
places of their own in a training config, everything else is an argument of the algorithm.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rl_training.autoresearch.fidelity import Curve, best_so_far, hopeless
from rl_training.autoresearch.ledger import Comparable, Ledger, select
from rl_training.autoresearch.space import Parameter, Space
from rl_training.autoresearch.study import Study
from rl_training.errors import ConfigError
from rl_training.experiment.checkpoint import find_checkpoint
from rl_training.experiment.config import EMBEDDED, TrainConfig
from rl_training.experiment.registry import algorithm_spec
from rl_training.experiment.run_folder import RunFolder
from rl_training.report.learning_curve import evaluation_curve

# torch imports _dynamo with the first optimiser, which takes as long as a thousand steps of training.
PRELOAD = (
    *("torch._dynamo", "matplotlib.figure", "matplotlib.backends.backend_agg"),
    *("rl_training.runtime.trainer", "rl_training.runtime.stopping"),
    *("rl_training.algorithms", "rl_training.autoresearch.training"),
)
OF_THE_TRAINING = ("baseline.json", "evaluations.jsonl", "metrics.csv", "best_model.zip")  # taken along by `extend`
NOT_OF_THE_ALGORITHM = ("agent", "timesteps", "eval_episodes", "n_steer", "n_throttle", "reward_shaping")


@dataclass(frozen=True)
class TrainingTrials:
    """Trials that differ from ``base`` by their setting and seed.

    With ``stop_from`` a hopeless one is stopped, never before so many steps: the least the search would try.
    """

    base: TrainConfig
    stop_from: int | None = None

    def config(self, params: Mapping[str, Any], seed: int) -> TrainConfig:
        """The training that a setting means."""
        base = self.base
        arguments = {key: value for key, value in params.items() if key not in NOT_OF_THE_ALGORITHM}
        config = replace(
            base,
            seed=seed,
            total_timesteps=int(params.get("timesteps", base.total_timesteps)),
            eval_episodes=int(params.get("eval_episodes", base.eval_episodes)),
            algo_kwargs={**base.algo_kwargs, **arguments},
        )
        grid = {name: params[name] for name in ("n_steer", "n_throttle") if name in params}
        if not grid or not config.donkey.action.discrete:
            return config
        return replace(config, donkey=replace(config.donkey, action=replace(config.donkey.action, **grid)))

    def train(self, params: dict[str, Any], folder: Path, seed: int) -> None:
        config = self.config(params, seed)
        run = RunFolder.create(folder, config)
        algorithm_spec(config.algo).train(config, run, callbacks=self._watchers(config, folder))

    def extend(self, params: dict[str, Any], folder: Path, seed: int, origin: Path) -> None:
        """Train on from where ``origin`` ended, to the last bit; anew if its resume point is gone."""
        config = self.config(params, seed)
        run = RunFolder.create(folder, config)
        is_there = (origin / "checkpoints").is_dir()
        if is_there:
            shutil.copytree(origin / "checkpoints", run.checkpoints)
            for name in OF_THE_TRAINING:
                if (origin / name).is_file():
                    shutil.copyfile(origin / name, folder / name)
        algorithm_spec(config.algo).train(config, run, resume=is_there)

    def _watchers(self, config: TrainConfig, folder: Path) -> list[Any]:
        """What may stop a trial. A retest runs to its end: it is judged by another measure."""
        if self.stop_from is None or (folder / "retest.json").exists():
            return []
        from rl_training.runtime.stopping import StopWhen

        past, least, total = past_curves(folder.parent.parent, self.comparable), self.stop_from, config.total_timesteps

        def judge(looks: Curve) -> dict[str, Any] | None:
            step, level = best_so_far(looks)[-1]
            verdict = hopeless(step, level, total, past) if step >= least else None
            return None if verdict is None else verdict._asdict()

        return [StopWhen(judge, folder, "stopped.json")]

    def evaluate(self, model: Path, seed: int) -> float:
        config = find_checkpoint(model).config or self.base
        spec = algorithm_spec(config.algo)
        policy = spec.load(spec.algorithm(), model, None, config.device)
        return float(spec.evaluate(policy, config, None, seed).mean_reward)

    @property
    def comparable(self) -> Comparable:
        """What this study's rewards may be compared with: the same agent in the same env, paid the same way."""
        base = self.base
        if not base.is_donkey:
            return Comparable(base.algo, base.env, "env")
        spec = base.donkey.to_dict()
        reward = str(spec.pop("reward"))
        for name in ("n_steer", "n_throttle"):
            spec["action"].pop(name, None)
        digest = hashlib.sha256(json.dumps(spec, sort_keys=True, default=str).encode()).hexdigest()[:8]
        return Comparable(base.algo, f"{base.env_name}#{digest}", reward)

    @property
    def fixed(self) -> dict[str, Any]:
        """What every setting of the study has in common, for the record."""
        return {
            "agent": self.base.algo,
            "eval_episodes": self.base.eval_episodes,
            "reward_shaping": self.base.is_donkey and self.base.donkey.reward != "donkey",
        }

    @property
    def is_external(self) -> bool:
        """Whether trials drive a simulator over TCP, which wants a pause between two of them."""
        return self.base.sim != EMBEDDED


def past_curves(root: Path, comparable: Comparable) -> list[Curve]:
    """Learning curves of a study's finished trials that ran to their end."""
    study = Study(root)
    records = select([*Ledger(study.sweep_results).records, *Ledger(study.results).records], comparable)[0]
    whole = [record for record in records if record.model_path is not None and record.stopped_at is None]
    curves = [best_so_far(evaluation_curve((root / str(record.model_path)).parent)) for record in whole]
    return [curve for curve in curves if curve]


def searchable(space: Space, base: TrainConfig, min_timesteps: int | None, max_timesteps: int | None) -> Space:
    """The space as this study searches it.

    The reward is not searched, since rewards of different versions cannot be compared; and a rollout of n_steps is that
    of all the cars together. What an earlier record, such as one of the base sweep, does not name was as in ``base``.
    """
    space = Space(tuple(parameter for parameter in space.parameters if parameter.name != "reward_shaping"))
    if "timesteps" in space.names:
        space = space.with_range("timesteps", min_timesteps, max_timesteps)
    if "n_steps" in space.names and space["n_steps"].kind == "power_of_two":
        low, high = (max(8, int(bound) // base.num_envs) for bound in (space["n_steps"].low, space["n_steps"].high))
        space = space.with_range("n_steps", _power_of_two(low), _power_of_two(high))
    return Space(tuple(_with_default(parameter, base) for parameter in space.parameters))


def _with_default(parameter: Parameter, base: TrainConfig) -> Parameter:
    """A parameter whose default is what ``base`` trains with; as it was where that is not in its range."""
    name = parameter.name
    values = {**base.algo_kwargs, "timesteps": base.total_timesteps, "eval_episodes": base.eval_episodes}
    if base.donkey.action.discrete:
        values |= {"n_steer": base.donkey.action.n_steer, "n_throttle": base.donkey.action.n_throttle}
    with contextlib.suppress(ConfigError):
        return replace(parameter, default=values.get(name, parameter.default))
    return parameter


def _power_of_two(number: int) -> int:
    return 1 << (number.bit_length() - 1)
