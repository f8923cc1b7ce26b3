"""Change detection with restart: keep everything until an arm changes [Page1954], [Liu2018].

[Page1954] Page, "Continuous inspection schemes", Biometrika 41.
[Liu2018] Liu, Lee, Shroff, "A change-detection based framework for piecewise-stationary multi-armed bandit problem", AAAI 2018.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats, Integers
from thrifty.compiled import builder, kernel, rare, record, stay_apart
from thrifty.forgetting.contract import NOTHING_ELSE, RESTART, Forgetting
from thrifty.statistics import add_to_sums

_FIRST_LOOK = 20.0  # outcomes before an arm is watched: fewer say too little about how it was
_HALVED, _DEAD, _IMPROVED = 0, 1, 2  # the alternatives that are tested against "as it was"
_TESTS = 3

_Test = record(
    [
        ("evidence", np.float64),  # CUSUM of the logarithm of the likelihood ratio
        ("if_won", np.float64),  # what a reward of 1 adds
        ("if_lost", np.float64),  # what a reward of 0 adds
        ("seen", np.float64),  # outcomes since the evidence was last zero: those after the change, if there was one
        ("reward_sum", np.float64),
        ("reward_squares", np.float64),
    ]
)
_Watched = record(
    [
        ("level", np.float64),  # evidence that raises the alarm
        ("next_look", np.float64),  # outcomes at which the arm's mean is read anew
        ("changed", np.int64),  # alarms so far
        ("looked_at", np.int64),  # the round of the last probe
    ]
)


class Watch(NamedTuple):
    numbers: Floats  # caution, rounds between probes of a changed arm and of any other
    arms: NDArray[np.void]  # (K,)
    tests: NDArray[np.void]  # (3 K,)
    state: Integers  # round of the next probe, arm of the last one, how many arms have changed


def restart(caution: float = 4.0, *, probe: float = 0.04, watch: float = 0.001) -> Forgetting:
    """Keep everything until an arm changes, then forget what came before the change [Page1954], [Liu2018].

    Three CUSUM tests watch every arm: that its reward halved, that it is dead, and that it fails half as often. On an alarm the
    arm keeps the outcomes since the evidence began, and the rule begins again. An arm that has changed once may do so again: it
    gets a share of `probe` of all decisions; any other gets `watch` in all, without which an arm nobody plays could never be
    seen to improve.

    Parameters
    ----------
    caution : an alarm after t outcomes needs evidence of ln t + caution; false ones are about exp(-caution) times as frequent
    probe : share of the decisions that goes to arms that have changed, in [0, 1)
    watch : share of the decisions that goes to all arms in turn, in [0, 1)

    >>> restart().label
    'restart'

    """
    for name, share in (("probe", probe), ("watch", watch)):
        if not 0.0 <= share < 1.0:
            raise ValueError(f"{name} must be a share of the decisions in [0, 1), got {share}")
    if not 0.0 < caution < math.inf:
        raise ValueError(f"caution must be positive, got {caution}: 4 is cautious, 2 is quick")
    label = "restart" if caution == 4.0 else f"restart={caution:g}"
    rounds = tuple(1.0 / share if share > 0.0 else math.inf for share in (probe, watch))
    return Forgetting(label, begin_watch, take_in_watching, probe_changed, (caution, *rounds))


@builder
def begin_watch(n_arms, numbers):
    arms, tests = np.zeros(n_arms, _Watched), np.zeros(_TESTS * n_arms, _Test)
    watch = Watch(np.array([numbers[0], numbers[1], numbers[2]]), arms, tests, np.zeros(3, np.int64))
    for arm in range(n_arms):
        watch.arms[arm].next_look = _FIRST_LOOK
    watch.state[0] = _next_probe(watch, 0)
    return watch


@kernel
def take_in_watching(stats, watch, arm, change, costs):
    add_to_sums(stats, arm, change, costs)
    if change.seen <= 0.0:
        return NOTHING_ELSE
    reward = change.reward
    watched = watch.arms[arm]
    alarm = -1
    for number in range(_TESTS):
        test = watch.tests[_TESTS * arm + number]
        evidence = test.evidence + test.if_lost + reward * (test.if_won - test.if_lost)
        some = 1.0 * (evidence > 0.0)  # products, not branches: nobody can predict it
        test.seen = some * (test.seen + 1.0)
        test.reward_sum = some * (test.reward_sum + reward)
        test.reward_squares = some * (test.reward_squares + change.reward_square)
        test.evidence = some * evidence
        if test.evidence > watched.level:
            alarm = number
    if alarm >= 0 and watched.level > 0.0:
        _begin_again(stats, watch, arm, alarm)
        return RESTART
    if stats[arm].seen >= watched.next_look:
        _look_anew(stats, watch, arm)
    return NOTHING_ELSE


@rare
def _begin_again(stats, watch, arm, alarm):
    stay_apart()
    known, test = stats[arm], watch.tests[_TESTS * arm + alarm]
    share = test.seen / known.seen
    known.cost_sum *= share
    known.cost_squares *= share
    known.seen = test.seen
    known.reward_sum, known.reward_squares = test.reward_sum, test.reward_squares
    for number in range(_TESTS):
        test = watch.tests[_TESTS * arm + number]
        test.evidence = test.if_won = test.if_lost = test.seen = test.reward_sum = test.reward_squares = 0.0
    watched = watch.arms[arm]
    watched.level = 0.0
    watched.next_look = max(_FIRST_LOOK, known.seen)
    watch.state[2] += watched.changed == 0
    watched.changed += 1
    watch.state[0] = 0  # look at it soon


@rare
def _look_anew(stats, watch, arm):
    """Read the arm's mean, and take the end of its interval that makes each alarm harder."""
    stay_apart()
    known, watched = stats[arm], watch.arms[arm]
    outcomes = 0.0
    for each in range(stats.size):
        outcomes += stats[each].seen
    watched.level = math.log(outcomes) + watch.numbers[0]
    watched.next_look = 1.25 * known.seen
    mean = (known.reward_sum + 0.5) / (known.seen + 1.0)
    width = 2.0 * math.sqrt(mean * (1.0 - mean) / known.seen)
    low, high = max(mean - width, 0.25 * mean), min(mean + width, 1.0 - 0.25 * (1.0 - mean))
    _aim(watch.tests[_TESTS * arm + _HALVED], low, 0.5 * low)
    _aim(watch.tests[_TESTS * arm + _DEAD], low, 0.02 * low)
    _aim(watch.tests[_TESTS * arm + _IMPROVED], high, 1.0 - 0.5 * (1.0 - high))


@kernel
def _aim(test, was, now):
    test.if_won = math.log(now / was)
    test.if_lost = math.log((1.0 - now) / (1.0 - was))


@kernel
def probe_changed(stats, watch, t):
    """The next arm in turn that is due for a look: any arm now and then, an arm that has changed more often."""
    if t < watch.state[0]:
        return -1
    return _due(watch, t)


@rare
def _due(watch, t):
    stay_apart()
    n_arms = watch.arms.size
    for step in range(1, n_arms + 1):
        arm = (watch.state[1] + step) % n_arms
        every = watch.numbers[1] * watch.state[2] if watch.arms[arm].changed > 0 else watch.numbers[2] * n_arms
        if t - watch.arms[arm].looked_at >= every:
            watch.arms[arm].looked_at = t
            watch.state[1] = arm
            watch.state[0] = _next_probe(watch, t)
            return arm
    watch.state[0] = _next_probe(watch, t)
    return -1


@kernel
def _next_probe(watch, t):
    """The round at which some arm is due."""
    soonest = 2.0**62
    for arm in range(watch.arms.size):
        every = watch.numbers[1] * watch.state[2] if watch.arms[arm].changed > 0 else watch.numbers[2] * watch.arms.size
        soonest = min(soonest, watch.arms[arm].looked_at + every)
    return max(math.ceil(soonest), t + 1)
