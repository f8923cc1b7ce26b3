"""PE and PE-CS: pairwise elimination [Juneja2025]. Arms are tested against a reference in order of cost, in growing rounds.

Round m has gap 2^-m, tau_m = ceil(2 ln(T gap^2) / gap^2) samples and beta_m = sqrt(ln(T gap^2) / (2 tau_m)), down to T gap^2 >= e.
PE knows the reference arm l. For each cheaper arm j, in cost order: sample j to tau_w and l to tau_(w + kappa); settle on j when
(1 - alpha)(mu_l + beta_l) < mu_j - beta_j, drop it when mu_j + beta_j < (1 - alpha)(mu_l - beta_l), else go to the next round. When
none is left, play l. PE-CS finds l first, by improved UCB [Auer2010] over all arms, and keeps the samples: at the end of every
round, the last one included, an arm with mu + beta_m below the highest mu - beta_m is dropped, until one is left.

What happens after the last round is not published. Here both the search and the pair test go on: they sample their arms in turn
and test again after each sample, with the beta of the last round. It costs nothing in the guarantee: a mean of n samples is a
martingale backwards in n, so the chance that it ever leaves mu +- beta after tau samples has the same Hoeffding bound as at tau.

Known weak point: with tied top arms the search for l never ends, and with an arm on the floor the pair never separates: both go on
sampling dear arms. `limit` repairs it: no arm is sampled for a test beyond limit (T/K)^(2/3) times; then the highest mean is the
reference, and the arm under test gets the benefit of the doubt. limit=0 is the published algorithm.

Without a horizon, all tests are made again whenever the horizon they reckon with grows, on all samples so far.

References
----------
[Auer2010] Auer, Ortner, "UCB revisited: improved regret bounds for the stochastic multi-armed bandit problem", Periodica
Mathematica Hungarica 61.
[Juneja2025] Juneja, Joe-Wong, Yagan, "Pairwise elimination with instance-dependent guarantees for bandits with cost subsidy",
ICLR 2025.

"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Booleans, Integers
from thrifty.compiled import builder, kernel, rare, record, stay_apart
from thrifty.policies.contract import Number, Policy, Rule
from thrifty.policies.exploration import next_due, start_exploration
from thrifty.problem import Terms
from thrifty.statistics import mean_reward

_UNKNOWN = -1

_State = record(
    [
        ("horizon", np.int64),  # what it reckons with
        ("settled", np.int64),  # the arm to play for ever, or -1
        ("reference", np.int64),  # l, or -1 while it is searched for
        ("search_round", np.int64),  # m of the search
        ("rung", np.int64),  # which arm in cost order is under test
        ("pair_round", np.int64),  # w of the test
    ]
)


class EliminationMemory(NamedTuple):
    round_robin: Integers
    state: NDArray[np.void]  # one record
    active: Booleans  # arms that may still be the reference


@builder
def init_with_reference(terms):
    return _remember(terms, terms.parameters.reference)


@builder
def init(terms):
    return _remember(terms, _UNKNOWN)


@builder
def _remember(terms, reference):
    memory = EliminationMemory(start_exploration(), np.zeros(1, _State), np.ones(terms.costs.size, np.bool_))
    _begin(memory, terms.horizon, reference)
    return memory


@kernel
def _begin(memory, horizon, reference):
    state = memory.state[0]
    state.horizon = horizon
    state.settled = _UNKNOWN
    state.reference = int(reference)
    state.search_round = state.rung = state.pair_round = 0
    memory.active[:] = True


@kernel
def choose_with_reference(terms, stats, memory, stream):
    if memory.state[0].horizon != terms.horizon:
        _begin(memory, terms.horizon, terms.parameters.reference)
    return _choose(terms, stats, memory)


@kernel
def choose(terms, stats, memory, stream):
    if memory.state[0].horizon != terms.horizon:
        _begin(memory, terms.horizon, _UNKNOWN)
    return _choose(terms, stats, memory)


@kernel
def _choose(terms, stats, memory):
    if memory.state[0].settled >= 0:
        return memory.state[0].settled
    arm = next_due(stats, memory.round_robin, 1)
    return arm if arm >= 0 else _next_sample(terms, stats, memory)


@rare
def _next_sample(terms, stats, memory):
    stay_apart()
    state = memory.state[0]
    while state.reference == _UNKNOWN:
        arm = _sample_of_search(terms, stats, memory)
        if arm >= 0:
            return arm
    while state.settled < 0:
        arm = _sample_of_pair(terms, stats, state)
        if arm >= 0:
            return arm
    return state.settled


@kernel
def _sample_of_search(terms, stats, memory):
    """The next arm to sample in the search for the reference; -1 when a round of it was just closed, or the search."""
    state = memory.state[0]
    fewest = _fewest_sent(stats, memory.active)
    if _count(memory.active) == 1:
        state.reference = fewest
        return -1
    spent = _spent(terms, stats[fewest].sent)
    if stats[fewest].sent < _samples(terms, state.search_round) and not spent:
        return fewest
    if not spent:
        _eliminate(stats, memory, _width(terms, state.search_round))
    if state.search_round < _last_round(terms) and not spent:
        state.search_round += 1
    elif terms.parameters.limit > 0.0:
        _keep_highest_mean(stats, memory)
    elif _count(memory.active) > 1:
        return _fewest_sent(stats, memory.active)
    return -1


@kernel
def _sample_of_pair(terms, stats, state):
    """The next arm to sample in the test of one arm against the reference; -1 when the test has moved on."""
    arm, reference = terms.by_cost[state.rung], state.reference
    if arm == reference or terms.costs[arm] >= terms.costs[reference]:
        state.settled = reference
        return -1
    last = _last_round(terms)
    reference_round = min(state.pair_round + int(terms.parameters.kappa), last)
    for sampled, wanted in ((arm, _samples(terms, state.pair_round)), (reference, _samples(terms, reference_round))):
        if stats[sampled].sent < wanted and not _spent(terms, stats[sampled].sent):
            return sampled
    share, width, reference_width = 1.0 - terms.alpha, _width(terms, state.pair_round), _width(terms, reference_round)
    if share * (_mean(stats, reference) + reference_width) < _mean(stats, arm) - width:
        state.settled = arm
    elif _mean(stats, arm) + width < share * (_mean(stats, reference) - reference_width):
        state.rung += 1
        state.pair_round = 0
    elif state.pair_round < last and not _spent(terms, stats[arm].sent):
        state.pair_round += 1
    elif terms.parameters.limit == 0.0:
        return arm if stats[arm].sent <= stats[reference].sent else reference
    else:
        state.settled = arm
    return -1


@kernel
def _samples(terms, m):
    """tau_m."""
    return math.ceil(2.0 * math.log(terms.horizon * 0.25**m) * 4.0**m)


@kernel
def _width(terms, m):
    """beta_m."""
    return math.sqrt(math.log(terms.horizon * 0.25**m) / (2.0 * _samples(terms, m)))


@kernel
def _last_round(terms):
    """The last m with T gap^2 >= e, and at least 0."""
    return max(int(0.5 * math.log2(terms.horizon / math.e)), 0)


@kernel
def _spent(terms, sent):
    limit = terms.parameters.limit
    return limit > 0.0 and sent >= limit * (terms.horizon / terms.costs.size) ** (2.0 / 3.0)


@kernel
def _mean(stats, arm):
    return mean_reward(stats, arm) if stats[arm].seen > 0 else 0.5


@kernel
def _fewest_sent(stats, active):
    fewest = -1
    for arm in range(stats.size):
        if active[arm] and (fewest < 0 or stats[arm].sent < stats[fewest].sent):
            fewest = arm
    return fewest


@kernel
def _count(active):
    count = 0
    for arm in range(active.size):
        count += active[arm]
    return count


@kernel
def _eliminate(stats, memory, width):
    best = -np.inf
    for arm in range(stats.size):
        if memory.active[arm]:
            best = max(best, _mean(stats, arm) - width)
    for arm in range(stats.size):
        memory.active[arm] = memory.active[arm] and _mean(stats, arm) + width >= best


@kernel
def _keep_highest_mean(stats, memory):
    kept = -1
    for arm in range(stats.size):
        if memory.active[arm] and (kept < 0 or _mean(stats, arm) > _mean(stats, kept)):
            kept = arm
    for arm in range(stats.size):
        memory.active[arm] = arm == kept


def settle_reference(terms: Terms, numbers: dict[str, Any]) -> dict[str, Any]:
    """Fill in the dearest arm as the reference; reject one that is not an arm."""
    reference = numbers["reference"]
    if reference is None:
        reference = int(np.argmax(terms.costs)) if terms.costs is not None else 0
    if reference >= terms.n_arms:
        raise ValueError(f"reference must be an arm from 0 to {terms.n_arms - 1}, got {reference:g}")
    return {**numbers, "reference": reference}


_KAPPA = Number(5, "how many rounds the samples of the reference run ahead; 0 is the symmetric form", low=0, whole=True)
_LIMIT = Number(
    0.0, "most samples of an arm for tests, in units of (T/K)^(2/3); 0 is the published algorithm, without a limit", low=0.0
)

PE = Policy(
    name="pe",
    summary="pairwise elimination against a known reference arm, cheapest first",
    rule=Rule(choose_with_reference, init_with_reference),
    parameters={
        "reference": Number(None, "the arm to compare with; by default the dearest", low=0, whole=True),
        "kappa": _KAPPA,
        "limit": _LIMIT,
    },
    settle=settle_reference,
)
PE_CS = Policy(
    name="pe-cs",
    summary="find the best arm by elimination, then pairwise elimination against it, cheapest first",
    rule=Rule(choose, init),
    parameters={"kappa": _KAPPA, "limit": _LIMIT},
)
