"""The optimisers that are compared: ours, and others at their defaults.

A peer is a function (problem, seed, trials) -> Play: the settings it tried, and the one it would hand to its user in
the end. Optuna's samplers and HEBO hand over their best observation, as their own interfaces do; BoTorch, which leaves
that to its user, hands over the tried setting of highest posterior mean. Integers and choices are native in Optuna and
rounded elsewhere. A trial without a value is told as failed to Optuna and left out elsewhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from problems import Problem, seeded

from rl_training.autoresearch.space import Array, Params


class Play(NamedTuple):
    tried: list[Array]
    chosen: Array


Peer = Callable[[Problem, int, int], Play]


def best_seen(tried: list[Array], values: list[float | None]) -> Array:
    scored = [(-np.inf if value is None else value) for value in values]
    return tried[int(np.argmax(scored))]


def ours(problem: Problem, seed: int, trials: int) -> Play:
    from rl_training.autoresearch.acquisition import Observation, recommend, suggest

    luck = seeded(problem.name, seed)
    observations: list[Observation] = []
    tried: list[Array] = []
    for _ in range(trials):
        params = suggest(problem.space, observations, [], seed).params
        tried.append(problem.space.encode(params))
        observations.append(Observation(params, problem.observe(tried[-1], luck)))
    best = recommend(problem.space, observations)
    return Play(tried, tried[0] if best is None else problem.space.encode(best.params))


def random(problem: Problem, seed: int, trials: int) -> Play:
    luck, rng = seeded(problem.name, seed), np.random.default_rng(seed)
    tried = list(problem.space.snap(rng.random((trials, len(problem.space)))))
    return Play(tried, best_seen(tried, [problem.observe(u, luck) for u in tried]))


def ask_optuna(trial: Any, problem: Problem) -> Params:
    """One setting in Optuna's define-by-run way; powers of two are integers in the exponent."""
    params: Params = {}
    for parameter in problem.space.parameters:
        name, low, high = parameter.name, parameter.low, parameter.high
        if parameter.parent is not None and params.get(parameter.parent) not in parameter.parent_values:
            continue
        if parameter.kind == "categorical":
            params[name] = trial.suggest_categorical(name, parameter.choices)
        elif parameter.kind == "int":
            params[name] = trial.suggest_int(name, int(low), int(high))
        elif parameter.kind == "power_of_two":
            params[name] = 2 ** trial.suggest_int(name, int(np.log2(low)), int(np.log2(high)))
        else:
            params[name] = trial.suggest_float(name, low, high, log=parameter.kind == "log_float")
    return params


def optuna_peer(make_sampler: Callable[[Any, int], Any]) -> Peer:
    def play(problem: Problem, seed: int, trials: int) -> Play:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore")
        luck, values = seeded(problem.name, seed), []
        study = optuna.create_study(direction="maximize", sampler=make_sampler(optuna, seed))
        tried: list[Array] = []
        for _ in range(trials):
            trial = study.ask()
            tried.append(problem.space.encode(ask_optuna(trial, problem)))
            values.append(problem.observe(tried[-1], luck))
            if values[-1] is None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, values[-1])
        return Play(tried, best_seen(tried, values))

    return play


def botorch_logei(problem: Problem, seed: int, trials: int) -> Play:
    """SingleTaskGP at its defaults, log expected improvement over the best posterior mean; Sobol for p + 1 trials."""
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    warnings.simplefilter("ignore")
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    p, luck = len(problem.space), seeded(problem.name, seed)
    sobol = torch.quasirandom.SobolEngine(p, scramble=True, seed=seed).draw(p + 1).numpy().astype(float)
    tried: list[Array] = []
    X: list[Array] = []
    y: list[float] = []

    def fit() -> Any:
        inputs, targets = torch.tensor(np.array(X)), torch.tensor(y, dtype=torch.float64)[:, None]
        gp = SingleTaskGP(inputs, targets)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
        return gp, gp.posterior(inputs).mean.detach().numpy()[:, 0]

    bounds = torch.tensor([[0.0] * p, [1.0] * p], dtype=torch.float64)
    for t in range(trials):
        if t <= p or len(y) < 2:
            u = sobol[t % (p + 1)]
        else:
            model, mean = fit()
            acquisition = LogExpectedImprovement(model, best_f=float(mean.max()))
            u = optimize_acqf(acquisition, bounds, q=1, num_restarts=5, raw_samples=256)[0].numpy()[0]
        tried.append(problem.space.snap(np.array(u)[None, :])[0])
        value = problem.observe(tried[-1], luck)
        if value is not None:
            X.append(tried[-1])
            y.append(value)
    return Play(tried, X[int(np.argmax(fit()[1]))])


def hebo(problem: Problem, seed: int, trials: int) -> Play:
    import pandas
    from hebo.design_space.design_space import DesignSpace
    from hebo.optimizers.hebo import HEBO

    warnings.simplefilter("ignore")
    np.random.seed(seed)  # noqa: NPY002, HEBO draws from the global generator
    luck, values = seeded(problem.name, seed), []
    tried: list[Array] = []
    columns = [{"name": name, "type": "num", "lb": 0.0, "ub": 1.0} for name in problem.space.names]
    optimiser = HEBO(DesignSpace().parse(columns), scramble_seed=seed)
    for _ in range(trials):
        row = optimiser.suggest(n_suggestions=1)
        tried.append(problem.space.snap(row[list(problem.space.names)].to_numpy(dtype=float))[0])
        values.append(problem.observe(tried[-1], luck))
        if values[-1] is not None:
            seen = pandas.DataFrame([tried[-1]], columns=list(problem.space.names))
            optimiser.observe(seen, np.array([[-values[-1]]]))
    return Play(tried, best_seen(tried, values))


PEERS: dict[str, Peer] = {
    "ours": ours,
    "random": random,
    "optuna-tpe": optuna_peer(lambda optuna, seed: optuna.samplers.TPESampler(seed=seed)),
    "optuna-cma": optuna_peer(lambda optuna, seed: optuna.samplers.CmaEsSampler(seed=seed)),
    "optuna-gp": optuna_peer(lambda optuna, seed: optuna.samplers.GPSampler(seed=seed)),
    "botorch-logei": botorch_logei,
    "hebo": hebo,
}

# What must be importable to play a peer; both others play with numpy alone.
NEEDS = {name: name.split("-")[0] for name in PEERS if name not in ("ours", "random")}
