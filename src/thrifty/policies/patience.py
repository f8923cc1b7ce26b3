"""Patience: when an arm that looks below the floor is given up.

Let i be the arm, b a dearer arm that would be played in its place, and `top` the arm with the highest mean. R_i is the evidence
that i is infeasible, and `tail(R_i)` the chance of error that it leaves (`thrifty.policies.evidence`). i is given up once the looks
at it have lost what it may save:

    patience (T / cheaper) (c_b - c_i) tail(R_i) <= exchange min(n_i, n_top) ((1 - alpha) m_top - m_i),

where m are the means, each shrunk by one outcome of 1/2, n the outcomes, T the horizon, and `cheaper` the number of arms that cost
less than b. In other words, R_i has reached a threshold of ln T plus small terms. A rival adds to R_i only what it has beyond
debit ln(K - 1), because the luckiest of K - 1 equally good arms have that much by chance.

A rule that asks has in its memory `looks`, `trials`, `means` and `prices`, all (K,), and the parameters `exchange`, `patience`,
`debit` and `outset`. Prices are in shares of the range of costs.
"""

import math

from thrifty.compiled import kernel
from thrifty.policies.contract import Number
from thrifty.policies.evidence import infeasibility, pair_evidence, tail
from thrifty.policies.posteriors import evidence_weight, expected
from thrifty.policies.selection import highest

DEBIT = Number(0.5, "what a rival must show before it counts against an arm, in units of ln(K - 1)", low=0.0)


@kernel
def count_evidence(terms, stats, memory):
    """Write, for every arm, its outcomes that have come or will, for how many of 0 and 1 they count, and its shrunk mean."""
    for arm in range(stats.size):
        seen = max(stats[arm].seen, 0.0)
        memory.looks[arm] = max(seen + expected(terms, stats, arm), 0.5)
        memory.trials[arm] = evidence_weight(stats, arm) * memory.looks[arm]
        memory.means[arm] = (min(max(stats[arm].reward_sum, 0.0), seen) + 0.5) / (seen + 1.0)


@kernel
def is_given_up(terms, memory, arm, top, dearer, cheaper):
    """Whether an arm that is below the floor by its mean is given up for a `dearer` one."""
    keep, looks, trials, means = 1.0 - terms.alpha, memory.looks, memory.trials, memory.means
    lost = terms.parameters.exchange * min(looks[arm], looks[top]) * (keep * means[top] - means[arm])
    ahead = (terms.horizon + terms.parameters.outset) / cheaper
    saving = terms.parameters.patience * ahead * (memory.prices[dearer] - memory.prices[arm])
    odds = lost / saving if saving > 0.0 else 1.0
    debit = terms.parameters.debit * math.log(max(means.size - 1, 1))
    alone = -pair_evidence(keep, trials[arm], means[arm], trials[top], means[top]) - debit  # R_i is at least that
    if alone > 0.0 and tail(alone) <= odds:
        return True
    return tail(infeasibility(keep, trials, means, arm, top, debit, odds)) <= odds


@kernel
def given_up_too_soon(terms, memory, chosen):
    """The cheapest arm that `chosen` would take the place of too soon; -1 if there is none.

    That is an arm that costs less, is below the floor by its mean, and is not given up. It is looked at as often as the top arm,
    and no more: beyond that it is not its own outcomes that are missing.
    """
    means, looks, prices = memory.means, memory.looks, memory.prices
    top, cheaper, found = highest(means), 0, -1
    for arm in range(means.size):
        cheaper += prices[arm] < prices[chosen]
    floor = (1.0 - terms.alpha) * means[top]
    for arm in range(means.size):
        if prices[arm] < prices[chosen] and means[arm] < floor and looks[arm] <= looks[top]:
            cheapest = found < 0 or prices[arm] < prices[found]
            if cheapest and not is_given_up(terms, memory, arm, top, chosen, cheaper):
                found = arm
    return found
