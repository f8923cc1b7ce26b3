"""What a rule sees, set by hand: terms, statistics and memory, for the plain Python of its kernels."""

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

from thrifty.compiled import interpreted
from thrifty.policies import policy
from thrifty.policies.contract import RuleTerms
from thrifty.problem import Terms
from thrifty.statistics import ArmStatistics


def terms_of(
    label: str, *, costs: Sequence[float] | None, alpha: float, horizon: int, n_arms: int = 0, **truth: float
) -> RuleTerms:
    """The terms of a policy as its kernels read them; give `n_arms` where costs are unknown."""
    known = None if costs is None else np.array(costs)
    chosen = policy(label)
    terms = Terms(n_arms or len(costs or ()), known, alpha, horizon)
    numbers = chosen.numbers(terms, truth)
    parts = {name: interpreted(part) for name, part in chosen.parts().items()}
    prices = np.full(n_arms, np.nan) if known is None else known
    parameters = namedtuple("Parameters", numbers)(**numbers)
    order = np.argsort(prices, kind="stable")
    return RuleTerms(prices, order, alpha, horizon, parameters, namedtuple("Parts", parts)(**parts))


def plain(kernel: Any) -> Any:
    """A kernel as plain Python."""
    return interpreted(kernel)


def statistics(sums: Sequence[tuple[int, float]], *, seen: Sequence[float] | None = None, costs: Sequence[float] = ()) -> Any:
    """Arms that were sent n times, with n outcomes (or `seen`) whose rewards have this sum; `costs` are sums too."""
    stats = np.zeros(len(sums), ArmStatistics)
    for arm, (sent, reward_sum) in enumerate(sums):
        stats[arm].sent, stats[arm].seen, stats[arm].reward_sum = sent, sent if seen is None else seen[arm], reward_sum
        stats[arm].reward_squares = reward_sum  # successes and failures
        if costs:
            stats[arm].cost_sum = costs[arm]
    return stats


def memory_of(label: str, terms: RuleTerms) -> Any:
    """The memory of a rule before its first decision."""
    chosen = policy(label)
    known = not np.isnan(terms.costs).any()
    rule = chosen.rule if known else chosen.rule_for_unknown_costs
    assert rule is not None
    return interpreted(rule.init)(terms._replace(parts=()))
