"""CS-UCB: score every arm by its upper confidence bound, play the cheapest whose score clears the floor.

[Sinha2021] Algorithm 1 (UCB), and section 5.2 where costs are unknown: an arm then costs what its lower confidence bound says.
Only the arm whose outcome came back has a new score, so a decision takes O(log K) with the ladder
where costs are known.
Deviation: ties in cost go to the higher score, then to the lower index.
"""

from typing import NamedTuple

from thrifty.arrays import Integers
from thrifty.compiled import builder, kernel
from thrifty.intervals import INTERVALS
from thrifty.policies.contract import KernelParameter, Policy, Rule
from thrifty.policies.exploration import next_due, start_exploration
from thrifty.policies.ladder import Ladder, build_ladder, build_priced_ladder, cheapest_above, place, set_price, top_score
from thrifty.policies.learnt_costs import COST_SCALE, lowest_cost, settle_cost_scale


class UcbMemory(NamedTuple):
    round_robin: Integers
    upper: Ladder


@builder
def init(terms):
    return UcbMemory(start_exploration(), build_ladder(terms.costs, terms.by_cost, 1.0))


@builder
def init_unknown_costs(terms):
    return UcbMemory(start_exploration(), build_priced_ladder(terms.costs.size, 1.0))


@kernel
def choose(terms, stats, memory, stream):
    arm = next_due(stats, memory.round_robin, 1)
    if arm >= 0:
        return arm
    floor = (1.0 - terms.alpha) * top_score(memory.upper)
    return cheapest_above(memory.upper, floor)


@kernel
def observe(terms, stats, memory, outcome):
    arm = outcome.arm
    place(memory.upper, arm, terms.parts.interval(terms, stats, arm, 1.0))


@kernel
def observe_unknown_costs(terms, stats, memory, outcome):
    observe(terms, stats, memory, outcome)
    set_price(memory.upper, outcome.arm, lowest_cost(terms, stats, outcome.arm))


INTERVAL = KernelParameter(
    INTERVALS, default="paper", meaning="the confidence bounds: paper, hoeffding, kl, bernstein, mixture, or a file of your own"
)

POLICY = Policy(
    name="cs-ucb",
    summary="the cheapest arm whose upper confidence bound clears (1 - alpha) times the highest one",
    rule=Rule(choose, init, observe),
    rule_for_unknown_costs=Rule(choose, init_unknown_costs, observe_unknown_costs),
    parameters={"interval": INTERVAL, "cost_scale": COST_SCALE},
    settle=settle_cost_scale,
)
