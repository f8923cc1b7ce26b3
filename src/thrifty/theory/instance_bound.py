"""The instance-dependent lower bound: the least regret per ln T of a policy that is good on every instance.

It is the bound of [GravesLai1997] for this problem, derived in docs/theory/instance-bound.md. An alternative is another instance in
which no arm without regret keeps its place. A policy must pull the other arms often enough to tell every alternative apart:
sum_j N_j kl(mu_j, mu'_j) >= ln T. With i* the optimal arm, two kinds of alternatives matter:

- some arm j rises above mu_i* / (1-alpha), so that i* misses the floor;
- a cheaper arm k moves to x, and every better arm falls to x / (1-alpha) at most, so that k is feasible.

The first bounds each N_j by itself. The second is a linear constraint for every x: the linear program with the constraints found so
far is solved, the most violated one of every k is added, until none is violated.
"""

from dataclasses import dataclass

import numpy as np

from thrifty.arrays import Booleans, Floats
from thrifty.problem import Instance, reaches_floor
from thrifty.theory.inequalities import kl
from thrifty.theory.linear import CuttingPlanes

_PRECISION = 1e-10
_MOST_ROUNDS = 1000  # about 20 are needed
_divergence = np.vectorize(kl, otypes=[np.float64])


@dataclass(frozen=True, eq=False)
class InstanceBound:
    """Regret per ln T that no consistent policy can beat in the long run, and the pulls that reach it.

    Parameters
    ----------
    instance : the truth
    pulls : (K,) pulls of every arm per ln T; 0 for arms without regret, which get all other rounds; infinite where no multiple of
        ln T is enough

    """

    instance: Instance
    pulls: Floats

    @property
    def quality(self) -> float:
        """The quality regret per ln T of these pulls."""
        return _total(self.pulls, self.instance.quality_gaps)

    @property
    def cost(self) -> float:
        """The cost regret per ln T of these pulls."""
        return _total(self.pulls, self.instance.cost_gaps)

    @property
    def constant(self) -> float:
        """The least total regret per ln T: quality plus cost."""
        return self.quality + self.cost


def instance_lower_bound(instance: Instance) -> InstanceBound:
    """The least regret per ln T on Bernoulli arms with known costs, for any policy that is consistent, and the pulls per ln T.

    Consistent means that its regret grows slower than every power of T on every instance with the same costs and alpha. Then
    liminf regret / ln T >= `constant`. The result is exact up to a relative error of 1e-10. The constant is infinite where the
    optimal arm lies on the floor of a better arm (or of an equal, dearer one): no multiple of ln T is then enough. It is 0 where
    only void constraints are left.

    Parameters
    ----------
    instance : the truth

    >>> bound = instance_lower_bound(Instance([0.5, 0.4], [1.0, 0.0], 0.1))
    >>> bound.pulls.round(2).tolist(), round(bound.constant, 3)
    ([0.0, 196.32], 9.816)
    >>> round(1 / kl(0.4, 0.45), 2)
    196.32

    """
    pulls = _pulls_to_keep_the_floor(instance)
    gaps = instance.quality_gaps + instance.cost_gaps
    known = (gaps == 0.0) | np.isinf(pulls)
    lowest = float(instance.means[known].max())
    high = np.flatnonzero(~known & (instance.means > lowest))
    cheap = np.flatnonzero(~known & (instance.costs < instance.costs[instance.optimal_arm]))
    if high.size == 0 or cheap.size == 0:
        pulls[cheap] = [1.0 / kl(mean, instance.floor) for mean in instance.means[cheap].tolist()]
        return InstanceBound(instance, pulls)
    search = _Search(instance.means[high], instance.means[cheap], 1.0 - instance.alpha, lowest)
    chosen = np.r_[high, cheap]
    pulls[chosen] = search.run(gaps[chosen], pulls[chosen])
    return InstanceBound(instance, pulls)


def _pulls_to_keep_the_floor(instance: Instance) -> Floats:
    """(K,) 1 / kl(mu_j, mu_i* / (1-alpha)), where the optimal arm would miss the floor; 0 where a mean of 1 would not do it."""
    optimal, pulls = float(instance.means[instance.optimal_arm]), np.zeros(instance.n_arms)
    if reaches_floor(optimal, 1.0, instance.alpha):
        return pulls
    threatening = optimal / (1.0 - instance.alpha)
    for arm in np.flatnonzero(instance.quality_gaps + instance.cost_gaps > 0.0):
        mean = float(instance.means[arm])
        on_the_floor = reaches_floor(mean, threatening, 0.0)
        pulls[arm] = np.inf if on_the_floor else 1.0 / kl(mean, threatening)
    return pulls


def _total(pulls: Floats, gaps: Floats) -> float:
    return float(pulls[gaps > 0.0] @ gaps[gaps > 0.0])


class _Search:
    """The linear program over the pulls of `high` and then `cheap` arms, with a constraint for every cheap arm k and every x.

    N_k kl(mu_k, x) + sum_h N_h kl(mu_h, x / share) 1{mu_h > x / share} >= 1, for x from max(mu_k, share * lowest) to the floor. Its
    left side is convex in x with a continuous derivative, so bisection finds its least value.
    """

    def __init__(self, high: Floats, cheap: Floats, share: float, lowest: float) -> None:
        self.high, self.cheap, self.share = high, cheap, share
        self.start = np.maximum(cheap, share * lowest)
        self.end = np.full(cheap.size, share * high.max())

    def run(self, gaps: Floats, least: Floats) -> Floats:
        """The cheapest pulls, (high + cheap,), each at least `least`."""
        told = np.r_[
            _divergence(self.high, np.minimum(self.start.min() / self.share, self.high)), _divergence(self.cheap, self.end)
        ]
        scale = 1.0 / np.maximum(told, 1e-12)  # so that all numbers of the program are near 1
        program = CuttingPlanes(gaps * scale, least / scale)
        for x in (self.start, self.end):
            program.add(self.constraints(x) * scale)
        for _ in range(_MOST_ROUNDS):
            pulls = program.solve() * scale
            rows = self.constraints(self.weakest(pulls))
            reached = float((rows @ pulls).min())
            if reached >= 1.0 - _PRECISION:
                return np.asarray(pulls / min(reached, 1.0))
            program.add(rows * scale)
        raise ArithmeticError(f"the bound did not settle in {_MOST_ROUNDS} rounds: are two means nearly equal to the floor?")

    def constraints(self, x: Floats) -> Floats:
        """(cheap, high + cheap) what a pull of every arm tells against the alternative x of every cheap arm."""
        fallen = np.minimum(x[:, None] / self.share, self.high)
        return np.hstack([_divergence(self.high, fallen), np.diag(_divergence(self.cheap, x))])

    def weakest(self, pulls: Floats) -> Floats:
        """(cheap,) the x of every cheap arm at which the left side is smallest."""
        low, high = self.start.copy(), self.end.copy()
        for _ in range(60):
            x = (low + high) / 2.0
            falling = self._slope(x, pulls) < 0.0
            low, high = np.where(falling, x, low), np.where(falling, high, x)
        return np.where(low == self.start, self.start, np.where(high == self.end, self.end, (low + high) / 2.0))

    def _slope(self, x: Floats, pulls: Floats) -> Floats:
        z = x[:, None] / self.share
        falling: Booleans = self.high > z
        inner = np.where(falling, z, 0.5)
        terms = np.where(falling, (inner - self.high) / (inner * (1.0 - inner)), 0.0)
        own = (x - self.cheap) / (x * (1.0 - x))
        return np.asarray(terms @ pulls[: self.high.size] / self.share + own * pulls[self.high.size :])
