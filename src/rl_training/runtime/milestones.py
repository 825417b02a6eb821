"""What happens every so many steps of training: a look for the best policy, and a point to resume from.

Both wait for the moment between an update and the next rollout, when the policy is whole and nothing is half collected.
"""

from __future__ import annotations

import json
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from rl_training.experiment.atomic import replacing, write_text
from rl_training.experiment.config import TrainConfig
from rl_training.experiment.run_folder import RunFolder
from rl_training.runtime.environments import EVALUATION_SEED
from rl_training.runtime.resume_point import save_resume_point
from rl_training.runtime.scoring import score_in


class Looks:
    """Evaluations during training, on the same episodes each time; keeps the best policy seen."""

    def __init__(self, run: RunFolder, config: TrainConfig, env: VecEnv, until: int = 0) -> None:
        self.run, self.config, self.env = run, config, env
        self.lines = [line for line in read_looks(run) if line["step"] <= until]
        if run.evaluations.exists():
            write_text(run.evaluations, "".join(json.dumps(line) + "\n" for line in self.lines))

    @property
    def best(self) -> float:
        """The best mean reward so far."""
        return max((line["mean_reward"] for line in self.lines), default=float("-inf"))

    def look(self, model: Any) -> None:
        """Evaluate the policy as it is."""
        step = int(model.num_timesteps)
        if self.lines and self.lines[-1]["step"] == step:
            return
        seen = score_in(model, self.env, self.config.eval_episodes, self.config.seed + EVALUATION_SEED)
        if self.env is model.get_env().unwrapped:  # it drove the car of the training, which begins anew
            model._last_obs = model.get_env().reset()
            model._last_episode_starts[:] = True
        if seen.mean_reward > self.best:
            with replacing(self.run.best_model) as temporary:
                model.save(temporary)
        line = {"step": step, "mean_reward": seen.mean_reward, "std_reward": seen.std_reward}
        line |= seen.means
        self.lines.append(line)
        with self.run.evaluations.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        for name, value in line.items():
            if name != "step":
                model.logger.record(f"eval/{name}", value)


def read_looks(run: RunFolder) -> list[dict[str, Any]]:
    """The lines of evaluations.jsonl; a last one that a kill cut short is left out."""
    if not run.evaluations.is_file():
        return []
    lines = []
    for text in run.evaluations.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            break
    return lines


class Milestones(BaseCallback):
    """Looks and resume points, each when its number of steps has gone by."""

    def __init__(self, run: RunFolder, config: TrainConfig, looks: Looks, start: int = 0) -> None:
        super().__init__()
        self.run, self.looks = run, looks
        self.intervals = (config.eval_interval, config.checkpoint_interval)
        self.start = start

    def _init_callback(self) -> None:
        self._passed = [self.start // interval if interval else 0 for interval in self.intervals]

    def _on_rollout_start(self) -> None:
        due = []
        for k, interval in enumerate(self.intervals):
            passed = self.model.num_timesteps // interval if interval else 0
            due.append(passed > self._passed[k])
            self._passed[k] = passed
        if due[0]:
            self.looks.look(self.model)
        if due[1]:
            save_resume_point(self.run, self.model)

    def _on_step(self) -> bool:
        return True
