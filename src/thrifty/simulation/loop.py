"""The loop: one driver for every rule. It counts pulls and knows no mathematics of any policy."""

import numpy as np

from thrifty.compiled import driver, index, kernel
from thrifty.environments.feedback import NEVER, draw_arrival
from thrifty.environments.sampling import draw_cost, draw_reward, laws_of_piece
from thrifty.forgetting import EVERYTHING, NOTHING_ELSE, RESTART
from thrifty.policies.contract import RuleTerms, next_horizon, refresh, refresh_all, start
from thrifty.simulation.calendar import NONE, enter, following, is_due, new_calendar, release, take_due, with_room
from thrifty.statistics import Outcome, fold, no_statistics

# Pulls times arms between two looks at the stop flag: too many to cost anything, too few to keep Ctrl-C waiting for a second.
_SLICE = 100_000
_NEVER = 1 << 62


@kernel
def take_outcome(take_in, observe, terms, stats, memory, recollection, outcome, seen, costs):
    """Fold an outcome, or the correction of one, and tell the rule. True when it should begin again.

    `recollection` is None where nothing is forgotten; the rest is then not even compiled.
    """
    if recollection is None:
        fold(stats, outcome.arm, seen, outcome.reward, outcome.cost, costs)
        observe(terms, stats, memory, outcome)
        return False
    changed = take_in(stats, recollection, outcome.arm, seen, outcome.reward, outcome.cost, costs)
    observe(terms, stats, memory, outcome)
    if changed == NOTHING_ELSE:
        return False
    if changed >= 0:
        refresh(observe, terms, stats, memory, index(changed))
    elif changed == EVERYTHING:
        refresh_all(observe, terms, stats, memory)
    return changed == RESTART


@kernel
def take_due_outcomes(take_in, observe, terms, stats, memory, recollection, calendar, t, costs):
    """Take every outcome that arrives after the decision of round `t`, in the order in which they were entered."""
    again = False
    place = take_due(calendar, t)
    while place != NONE:
        place = index(place)
        due, after = calendar.entries[place], following(calendar, place)
        if is_due(calendar, place, t):
            arm = index(due.arm)
            stats[arm].pending -= due.seen
            outcome = Outcome(arm, due.reward, due.cost, due.propensity)
            again |= take_outcome(take_in, observe, terms, stats, memory, recollection, outcome, 1.0 * due.seen, costs)
            release(calendar, place)
        place = after
    return again


@kernel
def send(calendar, feedback, t, outcome, stream):
    """Enter when the outcome of round `t` comes back: in time, or as a default at the deadline and its correction, or never."""
    arrival = draw_arrival(feedback, t, stream)
    deadline = t + feedback.deadline
    if arrival <= deadline:
        if arrival < NEVER:
            enter(calendar, arrival, outcome.arm, 1, outcome.reward, outcome.cost, outcome.propensity)
        return
    if arrival < NEVER and outcome.reward != feedback.default:
        enter(calendar, arrival, outcome.arm, 0, outcome.reward - feedback.default, 0.0, outcome.propensity)
    enter(calendar, deadline, outcome.arm, 1, feedback.default, outcome.cost, outcome.propensity)


@kernel
def play_rounds(
    choose, observe, propensity, take_in, probe, terms, stats, memory, recollection, rewards, costs, feedback, calendar,
    world_stream, own_stream, delay_stream, first, last, trace,
):  # fmt: skip
    """Rounds `first` to `last - 1` of one run: choose, draw the outcome, fold it at once or when it arrives, tell the rule.

    `costs` is None where they are known, `feedback` and `calendar` are None where outcomes come at once, `trace` is None unless
    the arms are kept; each is compiled only where it is used.
    Returns the round it came to, and whether the rule should begin again there.
    """
    cost = np.nan
    for t in range(first, last):
        arm, chance = probe(stats, recollection, t), np.nan
        if arm < 0:
            arm = choose(terms, stats, memory, own_stream)
            chance = propensity(terms, stats, memory, arm)
        arm = index(arm)
        stats[arm].sent += 1
        reward = draw_reward(rewards, arm, world_stream)
        if costs is not None:
            cost = draw_cost(costs, arm, world_stream)
        if trace is not None:
            trace[t] = arm
        outcome = Outcome(arm, reward, cost, chance)
        if feedback is None:
            again = take_outcome(take_in, observe, terms, stats, memory, recollection, outcome, 1.0, costs)
        else:
            stats[arm].pending += 1
            send(calendar, feedback, t, outcome, delay_stream)
            again = take_due_outcomes(take_in, observe, terms, stats, memory, recollection, calendar, t, costs)
        if again:
            return t + 1, True
    return last, False


@driver
def replicate(
    init, choose, observe, parts, Parameters, propensity, begin, take_in, probe,
    numbers, known_costs, by_cost, alpha, horizon, longest, starts, rewards, costs, feedback, slots, recall,
    world_streams, own_streams, delay_streams, checkpoints, pulls, traces, progress, stop,
):  # fmt: skip
    """Play whole runs, one per row of the streams; write the pulls at every checkpoint into `pulls` (runs, checkpoints, K).

    `starts`, `known_costs` and `by_cost` have a row per piece of the world. A `horizon` of 0 is unknown: the rule reckons with one
    that grows, up to `longest`. `feedback` is None where outcomes come at once.
    `progress[0]` counts the rounds played so far. Returns the number of whole runs: fewer than asked when `stop[0]` was set.
    """
    parameters = Parameters(*numbers)
    n_arms = known_costs.shape[1]
    for run in range(world_streams.shape[0]):
        stats = no_statistics(n_arms)
        recollection = begin(n_arms, recall)
        piece, reckoned, raise_at = 0, horizon, _NEVER
        if horizon == 0:
            raise_at = next_horizon(0, n_arms)
            reckoned = min(raise_at, longest)
        terms = RuleTerms(known_costs[0], by_cost[0], alpha, reckoned, parameters, parts)
        memory = start(init, terms)
        calendar = None if feedback is None else new_calendar(slots, 1)
        first, again, other_terms = 0, False, False
        for checkpoint in range(checkpoints.size):
            while first < checkpoints[checkpoint]:
                if stop[0]:
                    return run
                if piece + 1 < starts.size and first == starts[piece + 1]:
                    piece += 1
                    if not np.array_equal(known_costs[piece], known_costs[piece - 1]):
                        again = other_terms = True
                if first >= raise_at:
                    raise_at = next_horizon(first, n_arms)
                    other_terms = other_terms or reckoned < longest
                    reckoned = min(raise_at, longest)
                if other_terms:
                    terms = RuleTerms(known_costs[piece], by_cost[piece], alpha, reckoned, parameters, parts)
                if again:
                    memory = start(init, terms)
                if again or other_terms:
                    refresh_all(observe, terms, stats, memory)
                    other_terms = False
                last = min(first + max(_SLICE // n_arms, 100), checkpoints[checkpoint], raise_at)
                if piece + 1 < starts.size:
                    last = min(last, starts[piece + 1])
                if feedback is not None:
                    calendar = with_room(calendar, 2 * (last - first))
                came_to, again = play_rounds(
                    choose, observe, propensity, take_in, probe, terms, stats, memory, recollection,
                    laws_of_piece(rewards, piece, n_arms), None if costs is None else laws_of_piece(costs, piece, n_arms),
                    feedback, calendar, world_streams[run], own_streams[run], delay_streams[run], first, last,
                    None if traces is None else traces[run],
                )  # fmt: skip
                progress[0] += came_to - first
                first = came_to
            for arm in range(n_arms):
                pulls[run, checkpoint, arm] = stats[arm].sent
    return world_streams.shape[0]
