"""The loop: one driver for every rule. It counts pulls and knows no mathematics of any policy."""

import numpy as np

from thrifty.compiled import driver, index, kernel
from thrifty.environments.sampling import draw_cost, draw_reward
from thrifty.policies.contract import RuleTerms, start
from thrifty.statistics import Outcome, no_statistics, record_cost, record_reward

# Pulls times arms between two looks at the stop flag: too many to cost anything, too few to keep Ctrl-C waiting for a second.
_SLICE = 100_000


@kernel
def play_rounds(choose, observe, terms, stats, memory, rewards, costs, world_stream, own_stream, first, last, trace):
    """Rounds `first` to `last - 1` of one run: choose, draw the outcome, fold it, tell the rule.

    `costs` is None where they are known, `trace` is None unless the arms are kept; each is compiled only where it is used.
    """
    cost = np.nan
    for t in range(first, last):
        arm = index(choose(terms, stats, memory, own_stream))
        stats[arm].sent += 1
        reward = draw_reward(rewards, arm, world_stream)
        if costs is not None:
            cost = draw_cost(costs, arm, world_stream)
        outcome = Outcome(arm, reward, cost)
        record_reward(stats, outcome)
        if costs is not None:
            record_cost(stats, outcome)
        observe(terms, stats, memory, outcome)
        if trace is not None:
            trace[t] = arm


@driver
def replicate(
    init, choose, observe, parts, Parameters, numbers, known_costs, by_cost, alpha, horizon,
    rewards, costs, world_streams, own_streams, checkpoints, pulls, traces, progress, stop,
):  # fmt: skip
    """Play whole runs, one per row of the streams; write the pulls at every checkpoint into `pulls` (runs, checkpoints, K).

    `progress[0]` counts the rounds played so far. Returns the number of whole runs: fewer than asked when `stop[0]` was set.
    """
    terms = RuleTerms(known_costs, by_cost, alpha, horizon, Parameters(*numbers), parts)
    for run in range(world_streams.shape[0]):
        stats = no_statistics(known_costs.size)
        memory = start(init, terms)
        first = 0
        for checkpoint in range(checkpoints.size):
            while first < checkpoints[checkpoint]:
                if stop[0]:
                    return run
                last = min(first + max(_SLICE // known_costs.size, 100), checkpoints[checkpoint])
                play_rounds(
                    choose, observe, terms, stats, memory, rewards, costs, world_streams[run], own_streams[run],
                    first, last, None if traces is None else traces[run],
                )  # fmt: skip
                progress[0] += last - first
                first = last
            for arm in range(stats.size):
                pulls[run, checkpoint, arm] = stats[arm].sent
    return world_streams.shape[0]
