"""Forgetting: how statistics let go of the past where the world changes. An option of the statistics, the same for every rule.

Each way is three compiled functions over the statistics and a *recollection*, whatever else it has to keep:

    begin(n_arms, numbers) -> recollection                                    the only place that allocates
    take_in(stats, recollection, arm, seen, reward, cost, costs) -> code      fold one outcome (seen = 1) or correction (seen = 0)
    probe(stats, recollection, round) -> arm or -1                            an arm that must be looked at now, whatever the rule says

`take_in` returns NOTHING_ELSE, the other arm whose statistics changed, EVERYTHING when all did, or RESTART when the rule should
begin again from what the statistics hold now. `costs` is None where costs are known.

References
----------
[Garivier2011b] Garivier, Moulines, "On upper-confidence bound policies for switching bandit problems", ALT 2011.
[Page1954] Page, "Continuous inspection schemes", Biometrika 41.
[Liu2018] Liu, Lee, Shroff, "A change-detection based framework for piecewise-stationary multi-armed bandit problem", AAAI 2018.

"""

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.compiled import builder, index, kernel, rare, record, stay_apart
from thrifty.problem import checked_count
from thrifty.statistics import fold

NOTHING_ELSE, EVERYTHING, RESTART = -1, -2, -3
"""What `take_in` says changed besides the arm of the outcome."""


@dataclass(frozen=True)
class Forgetting:
    """One way to forget, as the drivers see it.

    Parameters
    ----------
    label : as one types it after the policy: "window=500"
    numbers : what `begin` is told
    span : how many outcomes it remembers, about; a rule reckons with no longer horizon than that
    most_arms : the largest number of arms it makes sense for

    """

    label: str
    begin: Callable[..., Any]
    take_in: Callable[..., Any]
    probe: Callable[..., Any]
    numbers: tuple[float, ...] = ()
    span: float = math.inf
    most_arms: float = math.inf

    def check(self, n_arms: int) -> None:
        """A ValueError where this cannot work with so many arms."""
        if n_arms > self.most_arms:
            raise ValueError(
                f"a window must hold at least one outcome of every arm, got {self.label} for {n_arms} arms: "
                f"take one of {10 * n_arms} or more"
            )

    def horizon(self, horizon: int | None, n_arms: int) -> int | None:
        """The horizon to reckon with: what is remembered bounds what can be planned for."""
        if horizon is None or math.isinf(self.span):
            return horizon
        return max(min(horizon, int(self.span)), n_arms)


@builder
def begin_nothing(n_arms, numbers):
    """The recollection of statistics that keep everything."""
    return ()


@kernel
def take_in_all(stats, recollection, arm, seen, reward, cost, costs):
    """Keep everything."""
    fold(stats, arm, seen, reward, cost, costs)
    return NOTHING_ELSE


@kernel
def probe_nothing(stats, recollection, t):
    """The rule decides alone."""
    return -1


KEEP_ALL = Forgetting("", begin_nothing, take_in_all, probe_nothing)
"""Statistics of a world that does not change."""


# ---- sliding window -------------------------------------------------------------------------------------------------------

_Kept = record([("arm", np.int64), ("seen", np.float64), ("reward", np.float64), ("cost", np.float64)])


class Ring(NamedTuple):
    kept: NDArray[np.void]  # (W,) what was taken in, oldest at `next` once it is full
    next: NDArray[np.int64]  # where the next one goes, and how many there are


def window(length: int) -> Forgetting:
    """Only the last `length` outcomes count, of all arms together [Garivier2011b].

    >>> window(500).label
    'window=500'
    """
    whole = checked_count("window", length)
    return Forgetting(f"window={whole}", begin_ring, take_in_last, probe_nothing, (float(whole),), span=whole, most_arms=whole)


@builder
def begin_ring(n_arms, numbers):
    return Ring(np.zeros(int(numbers[0]), _Kept), np.zeros(2, np.int64))


@kernel
def take_in_last(stats, ring, arm, seen, reward, cost, costs):
    fold(stats, arm, seen, reward, cost, costs)
    place = index(ring.next[0])
    slot = ring.kept[place]
    other = NOTHING_ELSE
    if ring.next[1] == ring.kept.size:
        other = slot.arm
        fold(stats, other, -slot.seen, -slot.reward, -slot.cost, costs)
        if stats[other].seen <= 0.0:
            stats[other].reward_sum = 0.0  # rounding leaves nothing behind
    else:
        ring.next[1] += 1
    slot.arm, slot.seen, slot.reward, slot.cost = arm, seen, reward, cost
    ring.next[0] = place + 1 if place + 1 < ring.kept.size else 0
    return other


# ---- discounting ----------------------------------------------------------------------------------------------------------

_BLOCK = 0.02  # the share of all weight that is let go of at once


class Fading(NamedTuple):
    weight: NDArray[np.float64]  # what a block's end leaves of every sum
    block: NDArray[np.int64]  # outcomes in a block, outcomes of this block so far


def discount(factor: float) -> Forgetting:
    """An outcome counts `factor` times what the next one does; every arm forgets, pulled or not [Garivier2011b].

    Sums are discounted a block at a time, 0.02 / (1 - factor) outcomes, so that a round costs hardly more than without.

    >>> discount(0.999).span
    1000.0
    """
    try:
        value = float(factor)
    except (TypeError, ValueError):
        value = math.nan
    if not 0.0 < value <= 1.0:
        raise ValueError(f"discount must be in (0, 1], got {factor}: 0.999 remembers about a thousand outcomes")
    if value == 1.0:
        return KEEP_ALL
    span = 1.0 / (1.0 - value)
    block = max(1.0, float(round(_BLOCK * span)))
    return Forgetting(
        f"discount={value:g}", begin_fading, take_in_fading, probe_nothing, (value**block, block), span=round(span, 6)
    )


@builder
def begin_fading(n_arms, numbers):
    return Fading(np.full(1, numbers[0]), np.array([int(numbers[1]), 0]))


@kernel
def take_in_fading(stats, fading, arm, seen, reward, cost, costs):
    fold(stats, arm, seen, reward, cost, costs)
    fading.block[1] += 1
    if fading.block[1] < fading.block[0]:
        return NOTHING_ELSE
    fading.block[1] = 0
    for each in range(stats.size):
        stats[each].seen *= fading.weight[0]
        stats[each].reward_sum *= fading.weight[0]
        stats[each].cost_sum *= fading.weight[0]
    return EVERYTHING


# ---- change detection with restart ----------------------------------------------------------------------------------------

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
    numbers: NDArray[np.float64]  # caution, rounds between probes of a changed arm and of any other
    arms: NDArray[np.void]  # (K,)
    tests: NDArray[np.void]  # (3 K,)
    state: NDArray[np.int64]  # round of the next probe, arm of the last one, how many arms have changed


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
    watch = Watch(
        np.array([numbers[0], numbers[1], numbers[2]]), np.zeros(n_arms, _Watched), np.zeros(_TESTS * n_arms, _Test),
        np.zeros(3, np.int64),
    )  # fmt: skip
    for arm in range(n_arms):
        watch.arms[arm].next_look = _FIRST_LOOK
    watch.state[0] = _next_probe(watch, 0)
    return watch


@kernel
def take_in_watching(stats, watch, arm, seen, reward, cost, costs):
    fold(stats, arm, seen, reward, cost, costs)
    if seen <= 0.0:
        return NOTHING_ELSE
    watched = watch.arms[arm]
    alarm = -1
    for number in range(_TESTS):
        test = watch.tests[_TESTS * arm + number]
        evidence = test.evidence + test.if_lost + reward * (test.if_won - test.if_lost)
        if evidence > 0.0:
            test.seen += 1.0
            test.reward_sum += reward
            test.evidence = evidence
            if evidence > watched.level:
                alarm = number
        else:
            test.evidence = 0.0
            test.seen = 0.0
            test.reward_sum = 0.0
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
    known.cost_sum *= test.seen / known.seen
    known.seen = test.seen
    known.reward_sum = test.reward_sum
    for number in range(_TESTS):
        test = watch.tests[_TESTS * arm + number]
        test.evidence = test.if_won = test.if_lost = test.seen = test.reward_sum = 0.0
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
    return max(int(math.ceil(soonest)), t + 1)


WAYS: dict[str, Callable[..., Forgetting]] = {"window": window, "discount": discount, "restart": restart}
"""The ways to forget, by the name one types."""


def forgetting(spec: "str | Forgetting") -> Forgetting:
    """The way to forget that `spec` names: "window=500", "discount=0.999", "restart" or "restart=3".

    >>> forgetting("discount=0.99").label
    'discount=0.99'
    >>> forgetting("windw=5")
    Traceback (most recent call last):
    ValueError: unknown way to forget 'windw': did you mean window?
    """
    if isinstance(spec, Forgetting):
        return spec
    name, equals, value = spec.partition("=")
    if name not in WAYS:
        near = difflib.get_close_matches(name, WAYS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(WAYS)}"
        raise ValueError(f"unknown way to forget {name!r}: {hint}")
    if not equals:
        if name != "restart":
            raise ValueError(f"{name} needs a number, got none: write {name}={'500' if name == 'window' else '0.999'}")
        return restart()
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {value!r}") from None
    return WAYS[name](number)
