"""Baselines: what one compares with. None of them knows about the subsidy."""

import math
from typing import NamedTuple

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.compiled import builder, kernel
from thrifty.intervals import paper_level, radius
from thrifty.policies.contract import Number, Policy, Rule
from thrifty.policies.exploration import next_due, start_exploration
from thrifty.policies.posteriors import PENDING, draw_beta
from thrifty.policies.selection import highest
from thrifty.statistics import mean_cost, mean_reward
from thrifty.streams import below


class BaselineMemory(NamedTuple):
    round_robin: Integers
    scores: Floats


@builder
def init(terms):
    return BaselineMemory(start_exploration(), np.zeros(terms.costs.size))


@kernel
def choose_ucb1(terms, stats, memory, stream):
    arm = next_due(stats, memory.round_robin, 1)
    if arm >= 0:
        return arm
    seen = 0
    for arm in range(stats.size):
        seen += stats[arm].seen
    level = 2.0 * math.log(max(seen, 1))
    for arm in range(stats.size):
        memory.scores[arm] = mean_reward(stats, arm) + radius(level, stats[arm].seen) if stats[arm].seen > 0 else np.inf
    return highest(memory.scores)


@kernel
def choose_ts(terms, stats, memory, stream):
    for arm in range(memory.scores.size):
        memory.scores[arm] = draw_beta(terms, stats, arm, stream)
    return highest(memory.scores)


@kernel
def choose_scalarised(terms, stats, memory, stream):
    arm = next_due(stats, memory.round_robin, 1)
    return arm if arm >= 0 else highest(memory.scores)


@kernel
def observe_scalarised(terms, stats, memory, outcome):
    arm = outcome.arm
    width = radius(paper_level(terms.horizon), max(stats[arm].seen, 1.0))
    memory.scores[arm] = mean_reward(stats, arm) + width - terms.parameters.weight * terms.costs[arm]


@kernel
def observe_scalarised_unknown_costs(terms, stats, memory, outcome):
    arm = outcome.arm
    width = radius(paper_level(terms.horizon), max(stats[arm].seen, 1.0))
    memory.scores[arm] = mean_reward(stats, arm) + width - terms.parameters.weight * mean_cost(stats, arm)


@kernel
def choose_best_known(terms, stats, memory, stream):
    arm = next_due(stats, memory.round_robin, terms.parameters.tries)
    if arm >= 0:
        return arm
    for arm in range(stats.size):
        memory.scores[arm] = mean_reward(stats, arm) if stats[arm].seen > 0.0 else 0.0
    return highest(memory.scores)


@kernel
def choose_round_robin(terms, stats, memory, stream):
    memory.round_robin[0] += 1
    return (memory.round_robin[0] - 1) % stats.size


@kernel
def choose_cheapest(terms, stats, memory, stream):
    return terms.by_cost[0]


@kernel
def choose_cheapest_known(terms, stats, memory, stream):
    arm = next_due(stats, memory.round_robin, 1)
    if arm >= 0:
        return arm
    for arm in range(stats.size):
        memory.scores[arm] = -mean_cost(stats, arm) if stats[arm].seen > 0.0 else 0.0
    return highest(memory.scores)


@kernel
def choose_uniform(terms, stats, memory, stream):
    return below(stream, stats.size)


@kernel
def choose_oracle(terms, stats, memory, stream):
    return int(terms.parameters.optimal_arm)


_ucb1, _ts, _uniform = Rule(choose_ucb1, init), Rule(choose_ts, init), Rule(choose_uniform)
_oracle = Rule(choose_oracle)
_best_known, _round_robin = Rule(choose_best_known, init), Rule(choose_round_robin, init)

UCB1 = Policy(
    name="ucb1",
    summary="the arm with the highest upper confidence bound, whatever it costs [Auer2002]",
    rule=_ucb1,
    rule_for_unknown_costs=_ucb1,
)
TS = Policy(
    name="ts",
    summary="the arm with the highest posterior draw, whatever it costs",
    rule=_ts,
    rule_for_unknown_costs=_ts,
    parameters={
        "a": Number(1.0, "first parameter of the Beta prior", low=1e-6),
        "b": Number(1.0, "second parameter of the Beta prior", low=1e-6),
        "pending": PENDING,
    },
)
SCALARISED = Policy(
    name="scalarised",
    summary="the arm with the highest upper bound on reward - weight * cost: the linear objective the paper argues against",
    rule=Rule(choose_scalarised, init, observe_scalarised),
    rule_for_unknown_costs=Rule(choose_scalarised, init, observe_scalarised_unknown_costs),
    parameters={"weight": Number(1.0, "lambda: what one unit of cost is worth in reward", low=0.0)},
)
BEST_KNOWN = Policy(
    name="best-known",
    summary="the arm that has done best so far, whatever it costs, after some tries of each",
    rule=_best_known,
    rule_for_unknown_costs=_best_known,
    parameters={"tries": Number(50, "how often every arm is tried first", low=1, whole=True)},
)
ROUND_ROBIN = Policy(name="round-robin", summary="every arm in turn", rule=_round_robin, rule_for_unknown_costs=_round_robin)
CHEAPEST = Policy(
    name="cheapest",
    summary="always the cheapest arm, however bad; by the costs seen so far where they are unknown",
    rule=Rule(choose_cheapest),
    rule_for_unknown_costs=Rule(choose_cheapest_known, init),
)
UNIFORM = Policy(name="uniform", summary="every arm with the same probability", rule=_uniform, rule_for_unknown_costs=_uniform)
ORACLE = Policy(
    name="oracle",
    summary="the optimal arm, which a simulation tells it: no regret at all",
    rule=_oracle,
    rule_for_unknown_costs=_oracle,
    parameters={"optimal_arm": Number(None, "given by the simulator")},
    known_truths=("optimal_arm",),
)
