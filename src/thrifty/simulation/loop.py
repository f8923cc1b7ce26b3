"""The simulator's loop: one driver for every rule. It counts pulls and knows no mathematics of any policy."""

from typing import Any, NamedTuple

import numpy as np

from thrifty.compiled import builder, driver, index, inlined, kernel
from thrifty.environments.feedback import NEVER, draw_arrival
from thrifty.environments.sampling import draw_cost, draw_reward, laws_of_piece
from thrifty.policies.contract import RuleTerms, next_horizon, refresh_all
from thrifty.policies.step import RuleState, decide, start_memory, start_state, take_outcome
from thrifty.simulation.calendar import NONE, enter, following, is_due, new_calendar, release, take_due, with_room
from thrifty.statistics import Outcome, SumsChange, counted
from thrifty.streams import start_stream

# Pulls times arms between two looks at the stop flag: too many to cost anything, too few to keep Ctrl-C waiting for a second.
_SLICE = 100_000
_NEVER = 1 << 62


class SimulatedWorld(NamedTuple):
    """A world as the loop reads it. A world that changes has several pieces, one after another."""

    starts: Any  # (pieces,) the first round of every piece
    rewards: Any  # the laws of all arms of all pieces
    costs: Any  # the same of costs; None if costs are known
    feedback: Any  # when outcomes come back; None if at once
    slots: int  # of the calendar of outcomes


class RunStreams(NamedTuple):
    """The random streams of all runs, (runs, 4), or of one run, (4,)."""

    world: Any
    own: Any  # the policy's
    delay: Any
    tapes: Any  # (runs, K, 4) or (K, 4), what the stream of each pull of an arm is made from; None if pulls share the world's


class RunRecord(NamedTuple):
    """What the loop writes, but for `stop`, which it reads."""

    pulls: Any  # (runs, checkpoints, K)
    traces: Any  # (runs, rounds) the chosen arms; None if they are not kept
    progress: Any  # (1,) rounds played so far
    stop: Any  # (1,) True if the loop is to end soon


@kernel
def send(calendar, feedback, t, outcome, stream):
    """Enter when the outcome of round `t` comes back: in time, or as a default at the deadline and its correction, or never."""
    arrival = draw_arrival(feedback, t, stream)
    deadline = t + feedback.deadline
    if arrival <= deadline:
        if arrival < NEVER:
            enter(calendar, arrival, outcome, counted(outcome), 1)
        return
    default = Outcome(outcome.arm, feedback.default, outcome.cost, outcome.propensity)
    if np.isnan(feedback.default):
        if arrival < NEVER:
            enter(calendar, arrival, outcome, counted(outcome), 0)
        enter(calendar, deadline, default, SumsChange(0.0, np.nan, 0.0, 0.0, 0.0), 1)
        return
    if arrival < NEVER and outcome.reward != feedback.default:
        more, more_square = outcome.reward - feedback.default, outcome.reward**2 - feedback.default**2
        enter(calendar, arrival, outcome, SumsChange(0.0, more, 0.0, more_square, 0.0), 0)
    enter(calendar, deadline, default, counted(default), 1)


@kernel
def take_due_outcomes(rule, terms, state, recollection, calendar, t, costs):
    """Take every outcome that arrives after the decision of round `t`, in the order in which they were entered.

    One whose reward is NaN says that the decision waits no longer, and nothing else.
    """
    again = False
    place = take_due(calendar, t)
    while place != NONE:
        place = index(place)
        due, after = calendar.entries[place], following(calendar, place)
        if is_due(calendar, place, t):
            arm = index(np.int64(due.arm))
            state.stats[arm].pending -= due.settles
            if not np.isnan(due.reward):
                outcome = Outcome(arm, due.reward, due.cost, due.propensity)
                change = SumsChange(1.0 * due.seen, due.reward, due.cost, due.reward_square, due.cost_square)
                again |= take_outcome(rule, terms, state, recollection, outcome, change, costs)
            release(calendar, place)
        place = after
    return again


@kernel
def play_rounds(rule, terms, state, recollection, rewards, costs, feedback, calendar, streams, first, last, trace):
    """Rounds `first` to `last - 1` of one run, in one piece of the world.

    `recollection` is None if nothing is forgotten, `costs` if they are known, `feedback` and `calendar` if outcomes come at
    once, `trace` if the arms are not kept, `streams.tapes` if pulls share a stream: what they need is compiled only where it is
    used.
    Returns the first round that was not played, and whether the rule should begin again there.
    """
    cost = np.nan
    for t in range(first, last):
        arm, propensity = decide(rule, terms, state, recollection, streams.own, t)
        turn_to_pull(streams.tapes, arm, state.stats[arm].sent, streams.world)
        reward = draw_reward(rewards, arm, streams.world)
        if costs is not None:
            cost = draw_cost(costs, arm, reward, streams.world)
        if trace is not None:
            trace[t] = arm
        outcome = Outcome(arm, reward, cost, propensity)
        if feedback is None:
            again = take_outcome(rule, terms, state, recollection, outcome, counted(outcome), costs)
        else:
            state.stats[arm].pending += 1
            send(calendar, feedback, t, outcome, streams.delay)
            again = take_due_outcomes(rule, terms, state, recollection, calendar, t, costs)
        if again:
            return t + 1, True
    return last, False


@driver
def replicate(rule, given, world, longest, forgetting_numbers, known, streams, checkpoints, record):
    """Play whole runs, one per row of the streams, and write the pulls at every checkpoint.

    `given` has a row of costs per piece of the world. A `given.horizon` of 0 is unknown: the rule gets one that grows, up to
    `longest`. `known` are the statistics that every run starts from: earlier decisions with their outcomes, which are no pulls of
    the run. Returns the number of whole runs: fewer than asked if `record.stop[0]` was set.
    """
    n_arms, before = given.costs.shape[1], known["sent"].sum()
    for run in range(record.pulls.shape[0]):
        mine = RunStreams(streams.world[run], streams.own[run], streams.delay[run], tape_of(streams.tapes, run))
        piece, first, again, other_terms = 0, np.int64(0), False, False  # numba would compile `play_rounds` for a literal 0 too
        reach = next_horizon(first + before, n_arms) if given.horizon == 0 else _NEVER
        terms = terms_of_piece(rule, given, piece, min(given.horizon or reach, longest))
        state, recollection = start_state(rule, terms), rule.begin(n_arms, forgetting_numbers)
        start_from_known(rule, terms, state, recollection, known, world.costs)
        calendar, trace = start_calendar(world.feedback, world.slots), trace_of(record.traces, run)
        for checkpoint in range(checkpoints.size):
            while first < checkpoints[checkpoint]:
                if record.stop[0]:
                    return run
                if first == start_of(world.starts, piece + 1):
                    piece += 1
                    again = other_terms = again or not np.array_equal(given.costs[piece], given.costs[piece - 1])
                if first + before >= reach:
                    reach = next_horizon(first + before, n_arms)
                    other_terms = other_terms or terms.horizon < longest
                if other_terms:
                    terms = terms_of_piece(rule, given, piece, min(given.horizon or reach, longest))
                if again:
                    state = RuleState(state.stats, start_memory(rule, terms))
                if again or other_terms:
                    refresh_all(rule.observe, terms, state.stats, state.memory)
                    other_terms = False
                change_at, slice_end = start_of(world.starts, piece + 1), first + max(_SLICE // n_arms, 100)
                last = min(checkpoints[checkpoint], reach - before, change_at, slice_end)
                calendar = extend_calendar(calendar, 2 * (last - first))
                rewards, costs = laws_of_piece(world.rewards, piece, n_arms), costs_of_piece(world.costs, piece, n_arms)
                came_to, again = play_rounds(
                    rule, terms, state, recollection, rewards, costs, world.feedback, calendar, mine, first, last, trace
                )
                record.progress[0] += came_to - first
                first = came_to
            for arm in range(n_arms):
                record.pulls[run, checkpoint, arm] = state.stats[arm].sent - known[arm].sent
    return record.pulls.shape[0]


@kernel
def start_from_known(rule, terms, state, recollection, known, costs):
    """Take in what is known beforehand, as outcomes at the means of each arm, mixed evenly. `costs` is None if costs are known."""
    most = 0
    for arm in range(known.size):
        state.stats[arm].sent = known[arm].sent
        most = max(most, known[arm].sent)
    for turn in range(most):
        for arm in range(known.size):
            of_arm = known[arm].sent
            if (turn + 1) * of_arm // most > turn * of_arm // most:
                each = 1.0 / of_arm
                change = SumsChange(
                    known[arm].seen * each,
                    known[arm].reward_sum * each,
                    known[arm].cost_sum * each,
                    known[arm].reward_squares * each,
                    known[arm].cost_squares * each,
                )
                rule.take_in(state.stats, recollection, arm, change, costs)
    refresh_all(rule.observe, terms, state.stats, state.memory)


@inlined
def terms_of_piece(rule, given, piece, horizon):
    """What the rule knows in one piece of the world."""
    parameters = rule.Parameters(*given.numbers)
    return RuleTerms(given.costs[piece], given.by_cost[piece], given.alpha, horizon, parameters, rule.parts)


@driver
def costs_of_piece(costs, piece, n_arms):
    """The laws of the costs in one piece; None if costs are known."""
    return None if costs is None else laws_of_piece(costs, piece, n_arms)


@driver
def trace_of(traces, run):
    """The trace of one run; None if arms are not kept."""
    return None if traces is None else traces[run]


@driver
def tape_of(tapes, run):
    """The tapes of one run; None if pulls share a stream."""
    return None if tapes is None else tapes[run]


@kernel
def turn_to_pull(tapes, arm, number, stream):
    """Make `stream` the one of this pull of `arm`: the first, the second and so on, whoever pulls. Nothing without tapes."""
    if tapes is not None:
        start_stream(tapes[arm], number, stream)


@inlined
def start_of(starts, piece):
    """The first round of a piece, which may not exist."""
    return starts[piece] if piece < starts.size else _NEVER


@builder
def start_calendar(feedback, slots):
    """An empty calendar; None if outcomes come back at once."""
    return None if feedback is None else new_calendar(slots, 1)


@builder
def extend_calendar(calendar, room):
    """The same calendar with room for so many more entries; None if there is none."""
    return None if calendar is None else with_room(calendar, room)
