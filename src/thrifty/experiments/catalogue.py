"""The catalogue: the only list of experiments."""

from thrifty.experiments import (
    cost_gaps,
    fig1,
    fig2,
    limits,
    one_shot,
    priors,
    reduction,
    regimes,
    rejection,
    scaling,
    scenarios,
    table1,
    tau,
    theorem1,
    theorem4,
    ucb,
    unknown_costs,
    weights,
)
from thrifty.experiments.experiment import Experiment
from thrifty.suggestions import did_you_mean

EXPERIMENTS = {
    each.name: each
    for each in (
        fig1.EXPERIMENT,
        fig2.EXPERIMENT,
        table1.EXPERIMENT,
        weights.EXPERIMENT,
        theorem1.EXPERIMENT,
        ucb.EXPERIMENT,
        priors.EXPERIMENT,
        scaling.OF_T,
        scaling.OF_K,
        reduction.EXPERIMENT,
        one_shot.EXPERIMENT,
        rejection.EXPERIMENT,
        tau.EXPERIMENT,
        theorem4.EXPERIMENT,
        unknown_costs.EXPERIMENT,
        scenarios.EXPERIMENT,
        regimes.EXPERIMENT,
        cost_gaps.EXPERIMENT,
        limits.EXPERIMENT,
    )
}


def experiment(name: str) -> Experiment:
    """The experiment of this name.

    >>> experiment("fig2").title
    "Figure 2: both regrets against the cheap arm's mean"
    """
    if name not in EXPERIMENTS:
        hint = f"{did_you_mean(name, EXPERIMENTS)} there are {', '.join(EXPERIMENTS)}".lstrip()
        raise ValueError(f"unknown item {name!r}: {hint}")
    return EXPERIMENTS[name]
