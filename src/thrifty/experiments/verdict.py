"""Verdicts: what measured runs say about a claim, and how often re-draws of the same runs say something else.

A verdict is worked out from means over runs. The runs are then drawn anew from themselves, with replacement, a thousand times
(the bootstrap), and the verdict is worked out from each re-draw. One that ever changes is `UNDECIDED`. An upper bound is checked
only where it is below the largest regret that any policy can have; elsewhere no policy could break it.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

HOLDS, FAILS, IMPRECISE = "holds", "does not hold", "imprecise"
UNTESTABLE, UNDECIDED = "not testable at this size", "undecided"
REDRAWS = 1000
FEWEST_RUNS = 10  # with fewer, re-draws say too little about the spread
_MOST_UNITS = 1000  # more runs than this are averaged in this many blocks before they are drawn anew

Means = Mapping[Hashable, Any]
Answer = bool | np.bool_ | Sequence[bool]


@dataclass(frozen=True)
class Claim:
    """A sentence, whether it holds, what was measured, and in how many of `REDRAWS` re-draws the verdict is another one.

    `flips` is None where nothing random was measured.
    """

    place: str
    text: str
    verdict: str
    measured: str
    flips: int | None = None

    @property
    def certainty(self) -> str:
        """How sure the verdict is, in words.

        >>> Claim("Theorem 9", "all is well", HOLDS, "", flips=0).certainty
        'flips in 0 of 1,000 re-draws'
        """
        if self.flips is None:
            return "no runs to re-draw" if self.verdict == UNTESTABLE else "exact"
        return f"flips in {self.flips:,} of {REDRAWS:,} re-draws"


def verdict(answer: Answer) -> str:
    """The verdict on one condition, or on a sentence of several parts: imprecise where only some of them are true.

    >>> verdict(True), verdict(False), verdict([True, False])
    ('holds', 'does not hold', 'imprecise')
    """
    parts = [bool(part) for part in np.atleast_1d(np.asarray(answer))]
    return HOLDS if all(parts) else IMPRECISE if any(parts) else FAILS


def exact(place: str, text: str, answer: Answer, measured: str) -> Claim:
    """A claim that is decided without any randomness."""
    return Claim(place, text, verdict(answer), measured)


@dataclass(frozen=True)
class UpperBound:
    """A claimed upper bound at one setting: which group of runs it is about, and the largest regret that is possible there."""

    group: Hashable
    bound: float
    largest: float

    @property
    def testable(self) -> bool:
        """True if a policy could break the bound."""
        return self.bound < self.largest


class Judge:
    """Groups of runs by name, each (runs, ...); claims are judged from their means.

    The runs of a group are drawn anew together, so values that belong together (two policies on the same streams) go into one
    group as columns. Groups are drawn independently.

    >>> judge = Judge({"dear": [4.0, 5.0, 6.0] * 5, "cheap": [1.0, 2.0, 1.0] * 5})
    >>> judge.claim("here", "dear is dearer", lambda means: means["dear"] > means["cheap"], "").certainty
    'flips in 0 of 1,000 re-draws'
    """

    def __init__(self, groups: Mapping[Any, Any]) -> None:
        self._groups = {name: np.asarray(values, dtype=float) for name, values in groups.items()}

    @cached_property
    def means(self) -> dict[Hashable, Any]:
        """The mean of every group over its runs."""
        return {name: values.mean(axis=0).tolist() for name, values in self._groups.items()}

    def shown(self, name: Hashable) -> str:
        """The mean of a group with its standard error, as text."""
        return with_error(self._groups[name])

    def claim(self, place: str, text: str, condition: Callable[[Means], Answer], measured: str) -> Claim:
        """The claim with the verdict on `condition`, or undecided if a re-draw gives another verdict or there are few runs."""
        own = verdict(condition(self.means))
        flips = sum(verdict(condition(redraw)) != own for redraw in self._redraws)
        fewest = min(values.shape[0] for values in self._groups.values())
        if fewest < FEWEST_RUNS:
            return Claim(place, text, UNDECIDED, f"{measured}. A verdict needs {FEWEST_RUNS} runs, there are {fewest}", flips)
        if flips:
            return Claim(place, text, UNDECIDED, f"{measured}. By the runs themselves: {own}", flips)
        return Claim(place, text, own, measured, flips)

    def claim_bounds(self, place: str, text: str, bounds: Sequence[UpperBound], *, measured: str, testable_from: str) -> Claim:
        """Whether every bound that can be broken holds; `testable_from` says where bounds begin to be testable."""
        testable = [each for each in bounds if each.testable]
        scope = f"{len(testable)} of {len(bounds)} bounds are below the largest possible regret, which takes {testable_from}"
        if not testable:
            return Claim(place, text, UNTESTABLE, f"{scope}. {measured}")
        most = max(float(self.means[each.group]) / each.bound for each in testable)
        return self.claim(
            place,
            text,
            lambda means: all(means[each.group] <= each.bound for each in testable),
            f"where it can fail, measured over the bound is at most {most:.3f}; {scope}. {measured}",
        )

    @cached_property
    def _redraws(self) -> list[dict[Hashable, Any]]:
        rng = np.random.default_rng(0)
        drawn = {name: _redrawn_means(values, rng).tolist() for name, values in self._groups.items()}
        return [{name: each[number] for name, each in drawn.items()} for number in range(REDRAWS)]


def _redrawn_means(values: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """(REDRAWS, ...) means of runs that are drawn with replacement."""
    if values.shape[0] > _MOST_UNITS:
        values = np.array([block.mean(axis=0) for block in np.array_split(values, _MOST_UNITS)])
    if (values == values[0]).all():
        return np.repeat(values[:1], REDRAWS, axis=0)
    drawn = rng.integers(0, values.shape[0], (REDRAWS, values.shape[0]))
    return np.asarray(values[drawn].mean(axis=1))


def first_testable(bound: Callable[[int], float], largest_per_round: float, *, lowest: int = 2) -> int:
    """The smallest T from which `bound(T)` is below T times the largest regret of one round.

    >>> first_testable(lambda t: 10 * t**0.5, 0.5)
    401
    """

    def is_testable(horizon: int) -> bool:
        return bound(horizon) < largest_per_round * horizon

    high = lowest
    while not is_testable(high):
        high *= 2
    low = max(high // 2, lowest - 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_testable(middle) else (middle, high)
    return high


def with_error(values: NDArray[np.float64] | Sequence[float]) -> str:
    """The mean with its standard error; the last digit shown is worth a third of that and more.

    >>> with_error([3262.0 + 1000 * (-1) ** n for n in range(900)]), with_error([293.0, 293.0])
    ('3,300 +- 33', '293')
    """
    values = np.asarray(values, dtype=float)
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(values.size) if values.size > 1 else 0.0
    if error <= 1e-9 * abs(mean):
        return f"{mean:,.0f}" if abs(mean) >= 100 else f"{mean:.3g}"
    place = math.ceil(math.log10(error / 3))
    if mean != 0.0:
        place = min(place, math.floor(math.log10(abs(mean))))
    return f"{_rounded(mean, place)} +- {_rounded(error, math.floor(math.log10(error)) - 1)}"


def _rounded(value: float, place: int) -> str:
    """The value rounded to a multiple of 10^place, written out.

    >>> _rounded(4834.2, 2), _rounded(0.0561, -3)
    ('4,800', '0.056')
    """
    return f"{round(value, -place):,.{max(0, -place)}f}"
