"""The floor test: is what routing brings below (1 - alpha) times what a comparison group brings? It may be asked at all times.

Each decision falls to the routed group with probability p, else to the comparison group, by a coin that knows nothing of what came
before. Let mu_i be the mean reward of decision i if it is routed, nu_i that if it is compared, given all decisions before it. For
guesses f and g that are made before, and a reward x,

    y_i = (1 - alpha) (g + [compared] (x - g) / (1 - p)) - (f + [routed] (x - f) / p)

has the mean (1 - alpha) nu_i - mu_i given the past. So the test is about averages over *the same decisions*: what they would bring
if all were routed, against what they would bring if all were compared. Both may move: a router learns, nights differ from days.
Rewards are in [0, 1], and y_i is at most c = max(1 / p, (1 - alpha) / (1 - p)) away from its guess (1 - alpha) g - f. So
`thrifty.sequences` bounds the sum of y_i / c at all times, for any law of the rewards, with any number of looks. The floor is
broken beyond doubt when the lower bound of the average of (1 - alpha) nu_i - mu_i is above 0. If that average is never above 0,
this happens with a probability of at most `level`, ever.

The guesses move between batches of decisions only, so a batch needs four sums of each group, whatever the order of its outcomes.
A decision whose outcome says nothing counts as its group's guess.
"""

from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np

from thrifty.sequences import boundary, log_wealth

LEVEL = 0.05
"""The probability that a floor that holds is ever called broken by a test, or by several that have parts of it."""

_STEPS = np.arange(1.0, 200.0) / 8.0


class GroupSums(NamedTuple):
    """Outcomes of one group: decisions that are settled, those with a reward, the sum of their rewards and of the squares."""

    settled: int = 0
    rewarded: int = 0
    rewards: float = 0.0
    squares: float = 0.0

    def plus(self, reward: float | None) -> "GroupSums":
        """With one more decision; None is an outcome that says nothing."""
        if reward is None:
            return GroupSums(self.settled + 1, *self[1:])
        return GroupSums(self.settled + 1, self.rewarded + 1, self.rewards + reward, self.squares + reward * reward)

    def joined(self, other: "GroupSums") -> "GroupSums":
        """The sums of both."""
        settled, rewarded = self.settled + other.settled, self.rewarded + other.rewarded
        return GroupSums(settled, rewarded, self.rewards + other.rewards, self.squares + other.squares)

    @property
    def mean(self) -> float | None:
        """Of the rewards."""
        return self.rewards / self.rewarded if self.rewarded else None

    @property
    def guess(self) -> float:
        """Of the next reward: the mean of these and of one more of 1/2."""
        return (self.rewards + 0.5) / (self.rewarded + 1.0)

    def around(self, centre: float) -> tuple[float, float]:
        """Sums of (x - centre) and of its squares."""
        first = self.rewards - self.rewarded * centre
        return first, max(self.squares - 2.0 * centre * self.rewards + self.rewarded * centre * centre, 0.0)


NOTHING = GroupSums()


@dataclass
class FloorTest:
    """A floor test and where it stands.

    Parameters
    ----------
    alpha : the share of the comparison group's reward that may be given up
    share : the probability with which a decision is routed, above 0 and below 1
    level : the probability that a floor that holds is ever called broken

    >>> rng, test = np.random.default_rng(1), FloorTest(alpha=0.05, share=0.5)
    >>> for _ in range(4000):
    ...     routed = rng.random() < 0.5
    ...     reward = float(rng.random() < (0.75 if routed else 0.9))
    ...     test.add(*((NOTHING.plus(reward), NOTHING) if routed else (NOTHING, NOTHING.plus(reward))))
    >>> test.broken, test.held, test.difference < -0.05
    (True, False, True)

    """

    alpha: float
    share: float
    routed: GroupSums = NOTHING
    compared: GroupSums = NOTHING
    excess: float = 0.0  # the sum of y
    spread: float = 0.0  # the sum of (y - its guess)^2
    level: float = LEVEL

    def add(self, routed: GroupSums, compared: GroupSums) -> None:
        """Take in the next batch of decisions, all of whose outcomes are known."""
        keep, f, g = 1.0 - self.alpha, self.routed.guess, self.compared.guess
        (above_f, around_f), (above_g, around_g) = routed.around(f), compared.around(g)
        of_routed, of_compared = 1.0 / self.share, keep / (1.0 - self.share)
        settled = routed.settled + compared.settled
        self.excess += settled * (keep * g - f) + of_compared * above_g - of_routed * above_f
        self.spread += of_compared**2 * around_g + of_routed**2 * around_f
        self.routed, self.compared = self.routed.joined(routed), self.compared.joined(compared)

    @property
    def scale(self) -> float:
        """No y is further from its guess."""
        return max(1.0 / self.share, (1.0 - self.alpha) / (1.0 - self.share))

    @property
    def decisions(self) -> int:
        """All that were taken in."""
        return self.routed.settled + self.compared.settled

    @property
    def broken(self) -> bool:
        """Whether the floor is broken beyond doubt, as far as the decisions so far tell."""
        return self._exceeds(self.excess)

    @property
    def held(self) -> bool:
        """Whether the floor is held beyond doubt."""
        return self._exceeds(-self.excess)

    def _exceeds(self, excess: float) -> bool:
        target = -log(self.level)
        if excess <= 0.0 or excess * excess < 2.0 * self.spread * target:
            return False  # a mixture is at most its largest term, which is at most exp(excess^2 / (2 spread))
        return self._log_wealth(excess) >= target

    def _log_wealth(self, excess: float) -> float:
        return float(log_wealth(np.array([excess / self.scale]), np.array([self.spread / self.scale**2]))[0])

    @property
    def p(self) -> float:
        """A p-value of "the floor holds" that may be looked at after every outcome; `LEVEL` or less if the floor is broken.

        A test that has only a part of `LEVEL`, because there are others, has its p-value multiplied by as much.
        """
        return min(float(np.exp(-max(self._log_wealth(self.excess), 0.0))) * LEVEL / self.level, 1.0)

    @property
    def difference(self) -> float:
        """The estimate of what routing brings, less the floor."""
        return -self.excess / max(self.decisions, 1)

    def interval(self) -> tuple[float, float]:
        """Ends of the difference; each holds at all times at once, but for a probability of `level`."""
        half = self.scale * float(boundary(np.array([self.spread / self.scale**2]), self.level)[0]) / max(self.decisions, 1)
        return max(self.difference - half, -1.0), min(self.difference + half, 1.0)

    def decisions_needed(self) -> int | None:
        """How many more until it is known on which side of the floor routing is, if all goes on as it did; None if far too many."""
        if self.broken or self.held:
            return 0
        if not self.spread or not self.excess:
            return None
        sizes = self.decisions * 2.0**_STEPS
        spreads = sizes / self.decisions * self.spread / self.scale**2
        known = sizes * abs(self.difference) >= self.scale * boundary(spreads, self.level)
        return int(sizes[int(np.argmax(known))] - self.decisions) if known.any() else None

    def dump(self) -> list[Any]:
        """Plain values; `FloorTest.load` takes them back."""
        return [self.alpha, self.share, list(self.routed), list(self.compared), self.excess, self.spread, self.level]

    @classmethod
    def load(cls, dumped: list[Any]) -> "FloorTest":
        """The test that was dumped."""
        alpha, share, routed, compared, *others = dumped  # older versions had no level
        return cls(alpha, share, GroupSums(*routed), GroupSums(*compared), *others)
