"""What the router runs compiled: start a rule, let it choose, tell it outcomes. Drivers, like the simulator's loop."""

import math
from typing import Any, NamedTuple

import numpy as np

from thrifty.borrowing import borrow, count_kin, distance
from thrifty.compiled import builder, driver, index, kernel
from thrifty.forgetting import RESTART
from thrifty.policies.contract import RuleTerms, next_horizon, refresh, start
from thrifty.policies.selection import cheapest_feasible, highest
from thrifty.router.memory import array_at
from thrifty.router.sent import EXPLOIT, EXPLORE, HOLDOUT, ONLY, OPEN, SPOKEN_FOR, Entry
from thrifty.statistics import Outcome, copy_sums, mean_cost, mean_reward
from thrifty.streams import start_stream, uniform


class State(NamedTuple):
    """Everything one rule needs between two calls, as arrays and numbers."""

    numbers: Any
    costs: Any
    by_cost: Any
    alpha: Any
    horizon: Any  # one number: how many decisions the rule reckons with
    truth: Any  # the segment's statistics, of all arms
    recent: Any  # the same, as far as they are not forgotten; the very same where nothing is
    recollection: Any  # what forgetting keeps
    restarts: Any  # one number: how often the segment found that an arm had changed
    span: Any  # how many outcomes are remembered, about; infinite where nothing is forgotten unless something changes
    forgets: Any  # one if anything may be forgotten
    arms: Any  # place in this rule -> arm of the segment
    places: Any  # arm of the segment -> place in this rule, or -1
    prices: Any  # of the arms; NaN where unknown, while `costs` are all unknown or none
    stats: Any  # what this rule goes by: the segment's statistics of these arms, and what it borrows
    eyes: Any  # room for the same
    kin: Any  # how the segments below this one differ
    leaning: Any  # one if segments borrow
    memory: Any
    spare: Any
    pristine: Any  # the memory before the first decision
    begun: Any  # one number: at which of the restarts this rule began
    words: Any
    stream: Any
    facts: Any
    parent: Any  # the book of the segment above; 0 for none
    number: Any  # of the segment in its tree


_INTEGER = np.dtype(np.int64)


class Level(NamedTuple):
    """What is needed of a segment, by a rule that is not its own, or in order to count a decision. See `State`."""

    truth: Any
    recent: Any
    forgets: Any
    arms: Any
    places: Any
    prices: Any
    stats: Any
    kin: Any
    facts: Any
    parent: Any
    number: Any


class Tools(NamedTuple):
    """What drivers of this module need besides the functions of the rule, as compiled functions."""

    unpack: Any  # the address of a book -> State
    unpack_level: Any  # the address of a book -> Level
    copy: Any  # one memory of the rule over another
    take_in: Any  # see `thrifty.forgetting.way`
    probe: Any
    propensity: Any  # see `thrifty.policies.contract.Rule`


STREAMS = 4
"""Streams of a decision: its choice, its probability, its group, and whether newcomers are offered."""

ARM, PROPENSITY, GREEDY, BEST, FLOOR, CODE, FACTS = 0, 1, 2, 3, 4, 5, 6
"""Where a decision's facts lie in the array that `choose_arm` fills; then come a mean, an outcome count and a cost per arm."""


@driver
def start_rule(init, choose, observe, parts, Parameters, numbers, costs, by_cost, alpha, horizon):
    """The memory of a rule before its first decision."""
    return start(init, RuleTerms(costs, by_cost, alpha, horizon, Parameters(*numbers), parts))


@kernel
def look_around(costs, alpha, stats, facts):
    """Fill in what is known: mean, outcomes and cost of every arm, the best arm, the floor, and the cheapest arm above it.

    An arm without outcomes counts as worth nothing here: it is for the rule to find out.
    """
    n_arms = stats.size
    means, seen = facts[FACTS : FACTS + n_arms], facts[FACTS + n_arms : FACTS + 2 * n_arms]
    prices = facts[FACTS + 2 * n_arms : FACTS + 3 * n_arms]
    for arm in range(n_arms):
        known = stats[arm].seen > 0.0
        means[arm] = mean_reward(stats, arm) if known else -1.0
        seen[arm] = stats[arm].seen
        prices[arm] = costs[arm]
        if np.isnan(prices[arm]):
            prices[arm] = mean_cost(stats, arm) if known else 0.0
    best = highest(means)
    floor = (1.0 - alpha) * max(means[best], 0.0)
    facts[BEST], facts[FLOOR] = best, floor
    facts[GREEDY] = cheapest_feasible(means, prices, floor) if means[best] >= 0.0 else -1.0


@driver
def look_up(tools, state):
    """Write into `state.eyes` what a rule should go by: what the segment has seen, and what it borrows from the levels above it."""
    eyes, arms = state.eyes, state.arms
    for place in range(eyes.size):
        copy_sums(state.recent[arms[place]], eyes[place])
    below, book, apart = state.recent, state.parent, 0.0
    while book != 0 and state.leaning != 0:
        above = tools.unpack_level(book)
        apart += distance(above.kin)
        for place in range(eyes.size):
            borrow(below[arms[place]], above.recent[arms[place]], apart, eyes[place])
        below, book = above.recent, above.parent


@driver
def catch_up(observe, parts, Parameters, tools, state):
    """Let the rule go by what there is to see now, with a horizon beyond the decisions so far; returns its terms.

    It is told of every arm that changed, and of all when the horizon grew or it is to begin anew. A rule refreshes what it keeps
    from the statistics, so that it need not see every outcome: see docs/decisions/001.
    """
    look_up(tools, state)
    stats, changed, everything = state.stats, state.facts, extend_horizon(state)
    if state.begun[0] != state.restarts[0]:
        state.begun[0], everything = state.restarts[0], True
        tools.copy(state.pristine, state.memory)
    for place in range(stats.size):
        now, before = state.eyes[place], stats[place]
        other = now.seen != before.seen or now.reward_sum != before.reward_sum or now.cost_sum != before.cost_sum
        changed[place] = other or everything
        copy_sums(now, before)
    terms = RuleTerms(state.costs, state.by_cost, state.alpha, state.horizon[0], Parameters(*state.numbers), parts)
    for place in range(stats.size):
        if changed[place] != 0.0 and stats[place].seen > 0.0:
            refresh(observe, terms, stats, state.memory, place)
    return terms


@kernel
def extend_horizon(state):
    """Nobody knows how many decisions there will be, so a rule reckons with some more than there were, and now with more again.

    What is remembered bounds what can be planned for. Returns whether the horizon is another one.
    """
    decisions = 0
    for place in range(state.arms.size):
        decisions += state.truth[state.arms[place]].sent
    if decisions < state.horizon[0] or state.horizon[0] >= state.span:
        return False
    state.horizon[0] = int(max(min(next_horizon(decisions, state.arms.size), state.span), state.arms.size))
    return True


@kernel
def start_coin(words, key, stream):
    """A number in [0, 1) that depends on the seed and `key` alone."""
    start_stream(words, key, stream)
    return uniform(stream)


@builder
def toss(words, key, stream):
    """`start_coin`, for Python."""
    return start_coin(words, key, stream)


@driver
def look_again(tools, state):
    """The place of an arm that is to be looked at now, whatever the rule says, because it may have changed; -1 for none."""
    if state.forgets == 0 or state.arms.size == 1:
        return -1
    decisions = 0
    for arm in range(state.truth.size):
        decisions += state.truth[arm].sent
    arm = tools.probe(state.recent, state.recollection, decisions)
    return state.places[arm] if arm >= 0 else -1


@driver
def choose_arm(init, choose, observe, parts, Parameters, tools, book, sequence, draws):
    """Let the rule choose, from the stream named by `sequence`; write the facts of the decision, with its probability.

    A rule that drew no random number chose with probability one. For one that did, the probability is an average over more choices
    from the same statistics and another stream, this one included: of what the rule says, over a quarter of `draws`, or else the
    share of `draws` that falls on the same arm. Without draws it is what the rule says of this choice, if it does.
    """
    state = tools.unpack(book)
    stats, stream, facts = state.stats, state.stream, state.facts
    terms = catch_up(observe, parts, Parameters, tools, state)
    look_around(state.costs, state.alpha, stats, facts)
    arm = look_again(tools, state)
    if arm >= 0:
        facts[ARM], facts[PROPENSITY], facts[CODE] = arm, 1.0, EXPLORE
        return arm
    start_stream(state.words, STREAMS * sequence, stream)
    first, memory = stream[0], state.memory
    arm, likely, of, unknown = -1, 0.0, 0, False
    while of <= draws:
        picked = index(choose(terms, stats, memory, stream))
        of += 1
        if of == 1:
            arm = picked
        said = tools.propensity(terms, stats, memory, arm)
        likely += 1.0 * (picked == arm) if np.isnan(said) else said
        if of == 1:
            unknown = draws == 0 and stream[0] != first and np.isnan(said)
            if stream[0] == first:  # not a random rule
                draws = 0
            elif not np.isnan(said):
                draws = (draws + 3) // 4
            start_stream(state.words, STREAMS * sequence + 1, stream)
            memory = state.spare
        if of <= draws:
            tools.copy(state.memory, state.spare)
    facts[ARM], facts[PROPENSITY] = arm, math.nan if unknown else likely / of
    facts[CODE] = ONLY if stats.size == 1 else EXPLOIT if facts[GREEDY] == arm else EXPLORE
    return arm


@driver
def survey(init, choose, observe, parts, Parameters, tools, book):
    """Write the facts as they are, without asking the rule."""
    state = tools.unpack(book)
    look_up(tools, state)
    look_around(state.costs, state.alpha, state.eyes, state.facts)


@driver
def weigh_arm(init, choose, observe, parts, Parameters, tools, book, sequence, draws, arm):
    """The probability that the rule, asked now, would choose `arm`; it does not notice that it was asked."""
    state = tools.unpack(book)
    stats, stream = state.stats, state.stream
    terms = catch_up(observe, parts, Parameters, tools, state)
    start_stream(state.words, STREAMS * sequence + 1, stream)
    first = stream[0]
    likely, of = 0.0, 0
    for _ in range(max(draws, 1)):
        tools.copy(state.memory, state.spare)
        of += 1
        picked = choose(terms, stats, state.spare, stream)
        said = tools.propensity(terms, stats, state.spare, arm)
        likely += 1.0 * (picked == arm) if np.isnan(said) else said
        if stream[0] == first:
            break
    return likely / of


@kernel
def add(known, sent, seen, reward, cost):
    """Add to the sums of one arm."""
    known.sent += sent
    known.pending += sent - seen
    known.seen += seen
    known.reward_sum += reward
    known.cost_sum += cost


@driver
def fold(init, choose, observe, parts, Parameters, tools, book, arm, sent, seen, reward, cost, chance):
    """Add to the sums of `arm`, numbered as in the segment, here and in all segments above.

    The rule is told when that was an outcome or the correction of one. A first outcome arrives as seen = 1, its withdrawal as
    seen = -1 and the old numbers negated, a correction as seen = 0 with the differences.
    """
    outcome, child_seen, child_won, child_had_seen, child_had_won = seen != 0 or reward != 0.0, 0.0, 0.0, 0.0, 0.0
    while book != 0:
        state = tools.unpack(book)
        book = state.parent
        truth = state.truth[arm]
        had_seen, had_won = truth.seen, truth.reward_sum
        if outcome and state.forgets == 0:
            count_kin(state.kin[arm], -1.0, child_had_seen, child_had_won)
            count_kin(state.kin[arm], 1.0, child_seen, child_won)
        place = state.places[arm]
        add(truth, sent, seen, reward, cost)
        if state.forgets != 0:
            state.recent[arm].sent += sent
            state.recent[arm].pending += sent - seen
            if (outcome or cost != 0.0) and tools.take_in(
                state.recent, state.recollection, arm, 1.0 * seen, reward, cost, True
            ) == RESTART:  # fmt: skip
                state.restarts[0] += 1
        child_seen, child_won, child_had_seen, child_had_won = truth.seen, truth.reward_sum, had_seen, had_won
        if place < 0:
            continue
        stats = state.stats
        mine = stats[place]
        add(mine, sent, seen, reward, cost)
        if (seen != 0 or reward != 0.0 or cost != 0.0) and mine.seen > 0.0:
            terms = RuleTerms(state.costs, state.by_cost, state.alpha, state.horizon[0], Parameters(*state.numbers), parts)
            won, paid, said = reward, cost, chance
            if seen < 1:  # a correction: like `refresh`
                won, paid, said = mine.reward_sum / max(mine.seen, 1.0), mine.cost_sum / max(mine.seen, 1.0), np.nan
            observe(terms, stats, state.memory, Outcome(place, won, paid, said))


@driver
def count_sent(tools, book, arm):
    """`fold` of a decision."""
    while book != 0:
        level = tools.unpack_level(book)
        book, place = level.parent, level.places[arm]
        add(level.truth[arm], 1, 0, 0.0, 0.0)
        if level.forgets != 0:
            add(level.recent[arm], 1, 0, 0.0, 0.0)
        if place >= 0:
            add(level.stats[place], 1, 0, 0.0, 0.0)


@driver
def decide(
    init, choose, observe, parts, Parameters, tools, book, sequence, draws, entries, slot, at, due, replica, version
):  # fmt: skip
    """`choose_arm`; and if there is a slot, remember and count the decision as `apply` does with its row."""
    place = choose_arm(init, choose, observe, parts, Parameters, tools, book, sequence, draws)
    if slot < 0:
        return place
    state = tools.unpack_level(book)
    arm = state.arms[place]
    entry = array_at(entries, slot + 1, Entry)[slot]
    entry.replica, entry.sequence, entry.segment, entry.version = replica, sequence, state.number, version
    entry.made, entry.arm, entry.code = arm, arm, int(state.facts[CODE])
    entry.at, entry.due, entry.propensity, entry.price = at, due, state.facts[PROPENSITY], state.prices[place]
    entry.sent, entry.seen, entry.reward, entry.cost = 1, 0, 0.0, 0.0
    entry.settled, entry.said_at, entry.said_value, entry.said_cost = OPEN, math.nan, math.nan, math.nan
    entry.waiting, entry.forgotten, entry.position = 1, 0, 0
    count_sent(tools, book, arm)
    return place


@driver
def tell(
    init, choose, observe, parts, Parameters, tools, book, arm, sent, seen, reward, cost, chance, books, entries, slot, at, how
):  # fmt: skip
    """`fold`; or if there is a slot, count a first outcome of that decision at the price that was expected, as `apply` does.

    Returns what it cost; NaN when there is more to it (an outcome was there already, a price is unknown, a holdout, statistics
    that were reset), and then nothing has happened. `books` are those of all segments by number; `how` is ARRIVED or SPOKEN_FOR.
    """
    if slot >= 0:
        entry = array_at(entries, slot + 1, Entry)[slot]
        cost = entry.price
        if entry.settled >= how or entry.code == HOLDOUT or entry.forgotten != 0 or np.isnan(cost):
            return np.nan
        if entry.sent == 0 and how == SPOKEN_FOR:
            return np.nan
        book, arm = array_at(books, entry.segment + 1, _INTEGER)[entry.segment], entry.arm
        sent, seen = 1 - entry.sent, 1 - entry.seen
        entry.settled, entry.said_at, entry.said_value, entry.said_cost, entry.waiting = how, at, reward, cost, 0
        before, paid_before = entry.reward, entry.cost
        entry.sent, entry.seen, entry.reward, entry.cost = 1, 1, reward, cost
        reward, cost, chance = reward - before, cost - paid_before, entry.propensity
    fold(init, choose, observe, parts, Parameters, tools, book, arm, sent, seen, reward, cost, chance)
    return cost
