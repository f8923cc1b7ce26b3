"""Compiled code for deciding: look at the statistics, let a rule choose.

Only `choose_arm` and `observe_outcome` depend on the policy. Everything a kernel works on is an array that its caller owns:
statistics of all segments as tables with a row per segment (`thrifty.router.counting` writes them), and what belongs to one rule as
packed bytes (`thrifty.router.packing`).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from thrifty.borrowing import borrow, distance
from thrifty.compiled import driver, index, kernel
from thrifty.policies.contract import RuleTerms, next_horizon, refresh
from thrifty.policies.selection import cheapest_feasible, highest
from thrifty.router.frame import (
    AFRESH,
    ALPHA,
    ARM,
    BEST,
    BORROWS,
    CODE,
    DECISIONS,
    FACTS,
    FLOOR,
    FORGETS,
    GREEDY,
    HORIZON,
    PROPENSITY,
    REACH,
    SPAN,
    STREAMS,
    unpack_frame,
)
from thrifty.router.records import EXPLOIT, EXPLORE, ONLY
from thrifty.statistics import Outcome, copy_sums
from thrifty.streams import start_stream, uniform


class PackedRule(NamedTuple):
    """The compiled functions of a rule whose memory is packed: what `choose_arm` and `observe_outcome` are bound to."""

    choose: Any
    observe: Any
    propensity: Any
    parts: Any
    parameters: Any  # makes the rule's named tuple of its numbers
    unpack: Any  # makes the rule's memory of bytes


@driver
def look(packed, sums, recent, parents, segment):
    """Write into a frame what is known now: effective statistics, means, the best arm, the floor, the cheapest arm above it.

    `recent` are the statistics as far as they are not forgotten, or None where nothing is. An arm without outcomes
    counts as worth nothing here: it is for the rule to find out.
    """
    frame = unpack_frame(packed)
    if recent is None:
        combine(frame, sums, sums, parents, segment)
    else:
        combine(frame, sums, recent, parents, segment)
    effective, costs, facts, n_arms = frame.effective, frame.costs, frame.facts, frame.arms.size
    known = facts[FACTS:]
    means, seen, prices = known[:n_arms], known[n_arms : 2 * n_arms], known[2 * n_arms :]
    for place in range(n_arms):
        outcomes = effective[place].seen
        means[place] = effective[place].reward_sum / outcomes if outcomes > 0.0 else -1.0
        seen[place] = outcomes
        prices[place] = costs[place]
        if np.isnan(prices[place]):
            prices[place] = effective[place].cost_sum / outcomes if outcomes > 0.0 else 0.0
    best = highest(means)
    floor = (1.0 - frame.scalars[ALPHA]) * max(means[best], 0.0)
    facts[BEST], facts[FLOOR] = best, floor
    facts[GREEDY] = cheapest_feasible(means, prices, floor) if means[best] >= 0.0 else -1.0


@kernel
def combine(frame, sums, recent, parents, segment):
    """Effective statistics: the segment's own, and what it borrows from the levels above it."""
    effective, arms, levels = frame.effective, frame.arms, frame.levels
    forgets, unpriced = frame.scalars[FORGETS] != 0.0, np.isnan(frame.costs[0])
    decisions = 0
    for place in range(effective.size):
        arm = arms[place]
        take_level(recent[segment, arm], unpriced and not forgets, effective[place])
        decisions += max(sums[segment, arm].sent, effective[place].sent)
    frame.progress[DECISIONS] = decisions
    below, above, apart = segment, parents[segment], 0.0
    while above >= 0 and frame.scalars[BORROWS] != 0.0:
        apart += distance(sums[above])
        for place in range(effective.size):
            take_level(recent[below, arms[place]], unpriced and not forgets, levels[0])
            take_level(recent[above, arms[place]], unpriced and not forgets, levels[1])
            borrow(levels[0], levels[1], apart, effective[place])
        below, above = above, parents[above]


@kernel
def take_level(known, impute, target):
    """Copy the sums of an arm, as sums that some outcomes could have.

    Corrections of outcomes that are forgotten can leave less than nothing, which no posterior could be drawn from. Outcomes
    without a known cost count at the average of the others where `impute` says so.
    """
    copy_sums(known, target)
    target.seen = max(known.seen, 0.0)
    target.sent = max(known.sent, int(target.seen) + known.pending)  # outcomes that were known beforehand count as decisions, too
    target.reward_sum = min(max(known.reward_sum, 0.0), target.seen)
    target.cost_sum = max(known.cost_sum, 0.0)
    target.reward_squares = min(max(known.reward_squares, 0.0), target.reward_sum)
    target.cost_squares = max(known.cost_squares, 0.0)
    if impute and known.priced != known.seen:
        target.cost_sum = target.cost_sum * (target.seen / known.priced) if known.priced > 0.0 else 0.0
        target.cost_squares = target.cost_squares * (target.seen / known.priced) if known.priced > 0.0 else 0.0


@driver
def choose_arm(rule, packed, packed_memory, saved, sequence, draws, weighed):
    """Let the rule choose after `look`, from the stream named by `sequence`; write the arm's place, its probability and a code.

    A rule that drew no random number chose with probability one. For one that did, the probability is an average over more choices
    from the same statistics and another stream, this one included: of what the rule states, over a quarter of `draws`, or else the
    share of `draws` that falls on the same arm. Without draws it is what the rule states of this choice, if it does.

    With `weighed` the place of an arm instead of -1, nothing is chosen: only the probability of that arm is estimated, and the
    rule's memory stays as it was. `saved` is an array as large as `packed_memory`.
    """
    frame = unpack_frame(packed)
    memory, stats, stream, facts = rule.unpack(packed_memory), frame.stats, frame.stream, frame.facts
    terms = catch_up(rule, frame, memory)
    arm, likely, count, wanted, unknown = weighed, 0.0, 0, draws + 1, False
    start_stream(frame.words, STREAMS * sequence + (weighed >= 0), stream)
    if weighed >= 0:
        wanted = max(draws, 1)
        copy_bytes(packed_memory, saved)
    first = stream[0]
    while count < wanted:
        picked = rule.choose(terms, stats, memory, stream)
        if not 0 <= picked < stats.size:
            raise ValueError("the policy chose an arm that is not there")
        picked = index(picked)
        count += 1
        arm = picked if arm < 0 else arm
        stated = rule.propensity(terms, stats, memory, arm)
        likely += 1.0 * (picked == arm) if np.isnan(stated) else stated
        if count == 1:
            random = stream[0] != first
            if weighed < 0:
                unknown = draws == 0 and random and np.isnan(stated)
                wanted = 1 if not random else wanted if np.isnan(stated) else 1 + (draws + 3) // 4
                start_stream(frame.words, STREAMS * sequence + 1, stream)
                copy_bytes(packed_memory, saved)
            elif not random:
                wanted = 1
        if count > 1 or weighed >= 0:
            copy_bytes(saved, packed_memory)
    facts[ARM], facts[PROPENSITY] = arm, math.nan if unknown else likely / count
    facts[CODE] = ONLY if stats.size == 1 else EXPLOIT if facts[GREEDY] == arm else EXPLORE
    return arm


@kernel
def copy_bytes(source, target):
    """Write one array over another of the same length. A loop, because numba takes seconds to compile `target[:] = source`."""
    for i in range(source.size):
        target[i] = source[i]


@driver
def catch_up(rule, frame, memory):
    """Let the rule see the effective statistics, with a horizon beyond the decisions so far; returns its terms.

    A rule derives what it keeps from the statistics, so `refresh` for every arm that changed is enough: see docs/decisions/001.
    """
    stats, changed, everything = frame.stats, frame.changed, extend_horizon(frame) or frame.progress[AFRESH] != 0
    frame.progress[AFRESH] = 0
    for place in range(stats.size):
        now, before = frame.effective[place], stats[place]
        changed[place] = everything or differ(now, before)
        copy_sums(now, before)
    terms = terms_of(rule, frame)
    for place in range(stats.size):
        if changed[place] != 0 and stats[place].seen > 0.0:
            refresh(rule.observe, terms, stats, memory, place)
    return terms


@kernel
def differ(one, other):
    """Whether the sums of two arms differ. (Counts of decisions change with every decision; a rule reads them itself.)"""
    sums = one.seen != other.seen or one.reward_sum != other.reward_sum or one.cost_sum != other.cost_sum
    return sums or one.reward_squares != other.reward_squares or one.cost_squares != other.cost_squares


@driver
def terms_of(rule, frame):
    """What the rule knows beforehand, with the horizon it reckons with now."""
    parameters = rule.parameters(frame.numbers)
    return RuleTerms(frame.costs, frame.by_cost, frame.scalars[ALPHA], frame.progress[HORIZON], parameters, rule.parts)


@kernel
def extend_horizon(frame):
    """Let the horizon grow with the decisions, in steps that depend on their number alone; True when it is another one.

    Nobody knows how many decisions there will be, so a rule reckons with an eighth more than there were. What is remembered bounds
    what can be planned for.
    """
    progress, n_arms = frame.progress, frame.arms.size
    if progress[DECISIONS] < progress[REACH]:
        return False
    while progress[DECISIONS] >= progress[REACH]:
        progress[REACH] = next_horizon(progress[REACH], n_arms)
    before = progress[HORIZON]
    progress[HORIZON] = int(max(min(1.0 * progress[REACH], frame.scalars[SPAN]), 1.0 * n_arms))
    return progress[HORIZON] != before


@driver
def observe_outcome(rule, packed, packed_memory, place, reward, chance):
    """Hand an outcome to a rule that weighs outcomes by the probability of their decision."""
    frame = unpack_frame(packed)
    rule.observe(terms_of(rule, frame), frame.stats, rule.unpack(packed_memory), Outcome(place, reward, np.nan, chance))


@kernel
def toss(words, key, stream):
    """A number in [0, 1) that depends on the seed and `key` alone."""
    start_stream(words, key, stream)
    return uniform(stream)
