"""What is known of many arms at once: which are rivals, the regret of each, and what its outcomes would tell.

Regret r and information v are those of `thrifty.policies.cs_balance`; a pair of arms is compared in `thrifty.policies.pairs`.

The strongest of several rivals is strong by luck, too. So the chance that an arm is good enough is taken times the number of rivals
that are about as strong, though not above 1/2. With many arms only those that are or may be the best are rivals.
"""

import math

import numpy as np

from thrifty.compiled import kernel
from thrifty.policies.pairs import (
    clear_chance,
    density,
    difference,
    excess,
    own_part,
    rival_part,
    shortfall_beside,
    variance_of_one,
)

MOST_RIVALS = 18
"""An arm is compared with so many others at most: a third are those that are surely good, the others those that may be."""

LEAST_REGRET = 1e-12
"""What is divided by is not 0."""

_SURE = 6.0
"""A difference of this many standard deviations is no doubt."""

_CERTAIN = 1.0 - 1e-6
"""Arms that cost more than one that is good enough with this chance matter as rivals only."""

_ABOUT_AS_STRONG = 2.0
"""A rival is about as strong as the strongest if it is no more than this many standard deviations behind."""


@kernel
def list_rivals(memory):
    """Write down which arms the others are compared with: all where arms are few, else those that are or may be the best."""
    arms, rivals = memory.arms, memory.rivals
    if arms.size > rivals.size:
        for arm in range(arms.size):
            arms[arm].is_rival = 0
        list_highest(memory, -1.0, 0, rivals.size // 3)
        list_highest(memory, 2.0, rivals.size // 3, rivals.size)


@kernel
def list_highest(memory, deviations, first, end):
    """Write, from place `first` to `end`, the arms not yet listed with the highest estimates plus so many standard deviations."""
    arms, rivals, listed = memory.arms, memory.rivals, first
    for arm in range(arms.size):
        if arms[arm].is_rival == 0:
            at, height = listed, _height(memory, arm, deviations)
            while at > first and _height(memory, rivals[at - 1], deviations) < height:
                at -= 1
            if at < end:
                listed = min(listed + 1, end)
                for place in range(listed - 1, at, -1):
                    rivals[place] = rivals[place - 1]
                rivals[at] = arm
    for place in range(first, end):
        arms[rivals[place]].is_rival = 1


@kernel
def _height(memory, arm, deviations):
    view = memory.arms[arm]
    return view.estimate + deviations * math.sqrt(memory.dispersion[0] * variance_of_one(view.estimate) / max(view.looks, 0.5))


@kernel
def weigh_regret(terms, memory):
    """Write, for every arm, how good it is beside its rivals, and the regret r that a decision for it is expected to cost."""
    arms, order = memory.arms, memory.order
    clear_so_far, steps, price = 0.0, 0.0, arms[order[0]].price
    for place in range(order.size):
        arm = order[place]
        view = arms[arm]
        steps += (view.price - price) * clear_so_far
        price = view.price
        view.cheaper_clear = clear_so_far
        compare_with_rivals(terms, memory, arm)
        view.regret = terms.parameters.exchange * view.shortfall + steps
        clear_so_far = max(clear_so_far, view.clear)


@kernel
def compare_with_rivals(terms, memory, arm):
    """Write the largest shortfall of an arm beside a rival, and the chance that it is good enough beside all of them."""
    view = memory.arms[arm]
    view.shortfall, view.clear, view.strongest = 0.0, 1.0, -1
    if view.cheaper_clear > _CERTAIN and view.is_rival == 0:
        view.clear = 0.0
        return
    highest = -np.inf
    for rival in memory.rivals:
        if rival != arm:
            z, s = difference(terms, memory, arm, rival)
            if z > -_SURE:
                shortfall = shortfall_beside(terms, memory, arm, z, s)
                if shortfall > view.shortfall:
                    view.shortfall, view.strongest, highest = shortfall, rival, z
                view.clear = min(view.clear, clear_chance(z))
    if view.clear < 0.5:
        strong = 0
        for rival in memory.rivals:
            if rival != arm and difference(terms, memory, arm, rival)[0] > highest - _ABOUT_AS_STRONG:
                strong += 1
        view.clear = min(strong * view.clear, 0.5)


@kernel
def weigh_information(terms, memory):
    """Write v: for every arm that may be the cheapest good enough one, the pair with the rival that tells most for its regret."""
    arms = memory.arms
    for arm in range(arms.size):
        arms[arm].information = 0.0
    for arm in range(arms.size):
        if arms[arm].shortfall > 0.0 and arms[arm].cheaper_clear <= _CERTAIN:
            own, others, partner, most = 0.0, 0.0, -1, 0.0
            for rival in memory.rivals:
                if rival != arm:
                    of_arm, of_rival = pair_information(terms, memory, arm, rival)
                    regret = max(arms[rival].regret, LEAST_REGRET)
                    if of_rival / (regret * regret) > most:
                        own, others, partner, most = of_arm, of_rival, rival, of_rival / (regret * regret)
            if partner >= 0:
                arms[arm].information += own
                arms[partner].information += others


@kernel
def pair_information(terms, memory, arm, rival):
    """Variances of E[mu | the arm is good enough beside the rival or not], for the arm and for the rival.

    They count as far as no cheaper arm is good enough, and as far as this rival makes the shortfall of the arm.
    """
    view, keep = memory.arms[arm], 1.0 - terms.alpha
    z, s = difference(terms, memory, arm, rival)
    if abs(z) >= _SURE:
        return 0.0, 0.0
    weight = (1.0 - view.cheaper_clear) * min(s * excess(z) / view.shortfall, 1.0)
    weight *= density(z) * density(z) / (clear_chance(z) * clear_chance(-z))
    own, others = own_part(terms, memory, arm, rival) / s, rival_part(terms, memory, arm, rival) / s
    return weight * own * own, weight * others * others / (keep * keep) if keep > 0.0 else 0.0
