"""What the router runs compiled: look at the statistics, let a rule choose, count decisions and outcomes.

Only `choose_arm` depends on the policy. Everything a kernel works on is an array that its caller owns: statistics of all segments
as tables with a row per segment, and what belongs to one rule as packed bytes (see `thrifty.router.packing`).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from thrifty.borrowing import SPREAD_FIELDS, borrow, count_segment, distance
from thrifty.compiled import driver, index, kernel, record
from thrifty.forgetting import RESTART
from thrifty.policies.contract import RuleTerms, next_horizon, refresh
from thrifty.policies.selection import cheapest_feasible, highest
from thrifty.router.packing import unpacker
from thrifty.router.records import ARRIVED, EXPLOIT, EXPLORE, ONLY, OPEN
from thrifty.statistics import ArmStatistics, Outcome, copy_sums
from thrifty.streams import start_stream, uniform

ArmSums = record(
    [
        ("sent", np.int64),  # decisions
        ("pending", np.int64),  # decisions without an outcome
        ("seen", np.float64),  # outcomes that count
        ("reward_sum", np.float64),
        ("cost_sum", np.float64),
        ("priced", np.float64),  # outcomes whose cost is known: not those of a deadline where the price is unknown
        *SPREAD_FIELDS,  # how the segments below this one differ
    ]
)
"""What a segment counts per arm, of its own decisions and of all segments below it. One layout for every policy."""

STREAMS = 4
"""Streams of a decision: its choice, its probability, its group, and whether newcomers are offered."""

ARM, PROPENSITY, GREEDY, BEST, FLOOR, CODE, FACTS = 0, 1, 2, 3, 4, 5, 6
"""Places in `Frame.facts`; from FACTS on come the mean, the number of outcomes and the cost of every arm."""

DECISIONS, REACH, HORIZON, AFRESH = 0, 1, 2, 3
"""Places in `Frame.progress`: decisions so far, where the horizon grows next, the horizon, and whether everything is new."""

ALPHA, SPAN, BORROWS, FORGETS = 0, 1, 2, 3
"""Places in `Frame.scalars`: alpha, outcomes remembered, and whether segments borrow and statistics forget (0 or 1)."""


class Frame(NamedTuple):
    """What a rule works with, whatever the policy: the arms it may choose from and what is known about them."""

    scalars: Any
    progress: Any
    numbers: Any  # the policy's parameters
    costs: Any  # NaN where unknown: all or none
    by_cost: Any
    arms: Any  # place in this rule -> arm of the segment
    words: Any  # the seed of all streams
    stream: Any
    facts: Any
    effective: Any  # the segment's statistics of these arms, plus what it borrows
    stats: Any  # the same when the rule was last asked
    changed: Any  # one for every arm of which these differ
    levels: Any  # room for two records


def empty_frame(n_arms: int, n_numbers: int) -> Frame:
    """A frame of this size, full of zeros."""
    numbers, words = np.zeros(n_arms, np.int64), np.zeros(4, np.uint64)
    statistics = np.zeros(n_arms, ArmStatistics)
    return Frame(
        np.zeros(4), np.zeros(4, np.int64), np.zeros(n_numbers), np.zeros(n_arms), numbers, numbers.copy(), words, words.copy(),
        np.zeros(FACTS + 3 * n_arms), statistics, statistics.copy(), numbers.copy(), np.zeros(2, ArmStatistics),
    )  # fmt: skip


unpack_frame: Any = unpacker(empty_frame(1, 1))


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
        decisions += sums[segment, arm].sent
        take_level(recent[segment, arm], unpriced and not forgets, effective[place])
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
    target.reward_sum = min(max(known.reward_sum, 0.0), target.seen)
    target.cost_sum = max(known.cost_sum, 0.0)
    if impute and known.priced != known.seen:
        target.cost_sum = target.cost_sum * (target.seen / known.priced) if known.priced > 0.0 else 0.0


@driver
def choose_arm(
    init, choose, observe, parts, parameters, propensity, unpack, packed, memory, saved, sequence, draws, weighed
):  # fmt: skip
    """Let the rule choose after `look`, from the stream named by `sequence`; write the arm's place, its probability and a code.

    A rule that drew no random number chose with probability one. For one that did, the probability is an average over more choices
    from the same statistics and another stream, this one included: of what the rule states, over a quarter of `draws`, or else the
    share of `draws` that falls on the same arm. Without draws it is what the rule states of this choice, if it does.

    `parameters` is the kernel that makes the rule's named tuple of its numbers, `unpack` the one for its memory.

    With `weighed` the place of an arm instead of -1, nothing is chosen: only the probability of that arm is estimated, and the
    rule's memory stays as it was. `saved` is an array as large as `memory`.
    """
    frame = unpack_frame(packed)
    rule, stats, stream, facts = unpack(memory), frame.stats, frame.stream, frame.facts
    terms = catch_up(observe, parts, parameters, frame, rule)
    arm, likely, count, wanted, unknown = weighed, 0.0, 0, draws + 1, False
    start_stream(frame.words, STREAMS * sequence + (weighed >= 0), stream)
    if weighed >= 0:
        wanted = max(draws, 1)
        copy_bytes(memory, saved)
    first = stream[0]
    while count < wanted:
        picked = index(choose(terms, stats, rule, stream))
        if picked >= stats.size:  # a negative one is very large here
            raise ValueError("the policy chose an arm that is not there")
        count += 1
        arm = picked if arm < 0 else arm
        stated = propensity(terms, stats, rule, arm)
        likely += 1.0 * (picked == arm) if np.isnan(stated) else stated
        if count == 1:
            random = stream[0] != first
            if weighed < 0:
                unknown = draws == 0 and random and np.isnan(stated)
                wanted = 1 if not random else wanted if np.isnan(stated) else 1 + (draws + 3) // 4
                start_stream(frame.words, STREAMS * sequence + 1, stream)
                copy_bytes(memory, saved)
            elif not random:
                wanted = 1
        if count > 1 or weighed >= 0:
            copy_bytes(saved, memory)
    facts[ARM], facts[PROPENSITY] = arm, math.nan if unknown else likely / count
    facts[CODE] = ONLY if stats.size == 1 else EXPLOIT if facts[GREEDY] == arm else EXPLORE
    return arm


@kernel
def copy_bytes(source, target):
    """Write one array over another of the same length. A loop, because numba takes seconds to compile `target[:] = source`."""
    for i in range(source.size):
        target[i] = source[i]


@driver
def catch_up(observe, parts, parameters, frame, rule):
    """Let the rule see the effective statistics, with a horizon beyond the decisions so far; returns its terms.

    A rule derives what it keeps from the statistics, so `refresh` for every arm that changed is enough: see docs/decisions/001.
    """
    stats, changed, everything = frame.stats, frame.changed, extend_horizon(frame) or frame.progress[AFRESH] != 0
    frame.progress[AFRESH] = 0
    for place in range(stats.size):
        now, before = frame.effective[place], stats[place]
        other = now.seen != before.seen or now.reward_sum != before.reward_sum or now.cost_sum != before.cost_sum
        changed[place] = other or everything
        copy_sums(now, before)
    horizon = frame.progress[HORIZON]
    terms = RuleTerms(frame.costs, frame.by_cost, frame.scalars[ALPHA], horizon, parameters(frame.numbers), parts)
    for place in range(stats.size):
        if changed[place] != 0 and stats[place].seen > 0.0:
            refresh(observe, terms, stats, rule, place)
    return terms


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
def observe_outcome(init, choose, observe, parts, parameters, propensity, unpack, packed, memory, place, reward, chance):
    """Hand an outcome to a rule that weighs outcomes by the probability of their decision."""
    frame = unpack_frame(packed)
    horizon = frame.progress[HORIZON]
    terms = RuleTerms(frame.costs, frame.by_cost, frame.scalars[ALPHA], horizon, parameters(frame.numbers), parts)
    observe(terms, frame.stats, unpack(memory), Outcome(place, reward, np.nan, chance))


@driver
def probe_arm(probe, unpack, sums, recent, recollections, segment):
    """The arm of a segment that is to be looked at now because it may have changed, whatever the rule would choose; -1 for none."""
    decisions = 0
    for arm in range(sums.shape[1]):
        decisions += sums[segment, arm].sent
    return probe(recent[segment], unpack(recollections[segment]), decisions)


@driver
def count_decision(
    records, slot, sums, recent, parents, replica, sequence, segment, arm, code, version, at, due, propensity, price,
    counted,
):  # fmt: skip
    """Write a decision into its record, and count it in its segment and all above unless `counted` is 0."""
    entry = records[slot]
    entry.replica, entry.sequence, entry.segment, entry.version = replica, sequence, segment, version
    entry.made, entry.arm, entry.code = arm, arm, code
    entry.at, entry.due, entry.propensity, entry.price = at, due, propensity, price
    entry.sent, entry.seen, entry.reward, entry.cost, entry.priced = counted, 0, 0.0, 0.0, 0
    entry.settled, entry.outcome_at, entry.outcome_value, entry.outcome_cost = OPEN, math.nan, math.nan, math.nan
    entry.waiting, entry.forgotten, entry.logged, entry.position = 1, 0, 0, 0
    add_pending(sums, recent, parents, segment, arm, counted)


@driver
def add_pending(sums, recent, parents, segment, arm, by):
    """Count decisions without an outcome, in a segment and all above."""
    while segment >= 0:
        known = sums[segment, arm]
        known.sent += by
        known.pending += by
        if recent is not None:
            remembered = recent[segment, arm]
            remembered.sent += by
            remembered.pending += by
        segment = parents[segment]


@driver
def count_outcome(
    take_in, unpack, records, slot, arm, value, cost, at, how, sums, recent, parents, recollections, restarts
):  # fmt: skip
    """Let an outcome be the last word about a decision, and count what that changes in its segment and all above.

    `value` is NaN for an outcome that says nothing about the arm, `cost` NaN where it is unknown; `how` is DEFAULTED or ARRIVED.
    Returns False, and changes nothing, for the default outcome of a decision that has one already.
    """
    entry = records[slot]
    if how != ARRIVED and entry.settled != OPEN:
        return False
    before, sent, seen, reward, paid, priced = entry.arm, entry.sent, entry.seen, entry.reward, entry.cost, entry.priced
    entry.arm, entry.waiting, entry.settled = arm, 0, how
    entry.outcome_at, entry.outcome_value, entry.outcome_cost = at, value, cost
    counts = 1 - (np.isnan(value) or entry.forgotten != 0)
    entry.sent = entry.seen = counts
    entry.reward = value if counts else 0.0
    entry.priced = counts * (1 - np.isnan(cost))
    entry.cost = cost if entry.priced else 0.0
    segment = entry.segment
    if arm == before:
        add_outcome(
            take_in, unpack, sums, recent, parents, recollections, restarts, segment, arm,
            entry.sent - sent, entry.seen - seen, entry.reward - reward, entry.cost - paid, entry.priced - priced,
        )  # fmt: skip
        return True
    add_outcome(
        take_in, unpack, sums, recent, parents, recollections, restarts, segment, before,
        -sent, -seen, -reward, -paid, -priced,
    )  # fmt: skip
    add_outcome(
        take_in, unpack, sums, recent, parents, recollections, restarts, segment, arm,
        entry.sent, entry.seen, entry.reward, entry.cost, entry.priced,
    )  # fmt: skip
    return True


@driver
def add_outcome(
    take_in, unpack, sums, recent, parents, recollections, restarts, segment, arm, sent, seen, reward, cost, priced
):  # fmt: skip
    """Add to the sums of an arm in a segment and all above.

    A first outcome has seen = 1, its withdrawal seen = -1 and the old numbers negated, a correction seen = 0 and the differences.
    """
    outcome = seen != 0 or reward != 0.0
    child_seen, child_reward, child_had_seen, child_had_reward = 0.0, 0.0, 0.0, 0.0
    while segment >= 0:
        known = sums[segment, arm]
        had_seen, had_reward = known.seen, known.reward_sum
        if recollections is None and outcome:
            count_segment(known, -1.0, child_had_seen, child_had_reward)
            count_segment(known, 1.0, child_seen, child_reward)
        known.sent += sent
        known.pending += sent - seen
        known.seen += seen
        known.reward_sum += reward
        known.cost_sum += cost
        known.priced += priced
        if recollections is not None:
            remembered = recent[segment, arm]
            remembered.sent += sent
            remembered.pending += sent - seen
            # Less than nothing cannot be remembered: what is taken back may be forgotten already.
            taken, won = max(1.0 * seen, -max(remembered.seen, 0.0)), max(reward, -max(remembered.reward_sum, 0.0))
            paid = max(cost, -max(remembered.cost_sum, 0.0))
            if seen == 1 and priced == 0 and remembered.seen > 0.0:
                paid = remembered.cost_sum / remembered.seen  # an outcome of unknown cost changes no average
            if (outcome or cost != 0.0) and take_in(
                recent[segment], unpack(recollections[segment]), arm, taken, won, paid, True
            ) == RESTART:  # fmt: skip
                restarts[segment] += 1
        child_seen, child_reward, child_had_seen, child_had_reward = known.seen, known.reward_sum, had_seen, had_reward
        segment = parents[segment]


@kernel
def toss(words, key, stream):
    """A number in [0, 1) that depends on the seed and `key` alone."""
    start_stream(words, key, stream)
    return uniform(stream)
