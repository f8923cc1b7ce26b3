"""Instance families: the ones the paper proves or plots with, those that contradict it, and the two scenarios of its introduction.

Every family checks what makes its members valid. Where the paper counts arms from 1, arms here count from 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thrifty.arrays import Floats
from thrifty.environments.laws import Bernoulli, Deterministic
from thrifty.environments.world import World
from thrifty.examples import SMS_REGIONS
from thrifty.problem import FLOOR_TOLERANCE, Instance, checked_count, reaches_floor


@dataclass(frozen=True)
class HardFamily:
    """Phi^0..Phi^K_{theta,p,epsilon}: one free arm of mean p, K dear ones of mean p / (1 - theta) [Sinha2021] section 3.1.

    In Phi^0 the free arm 0 just reaches the floor and is optimal. In Phi^a the dear arm a has mean (p + epsilon) / (1 - theta),
    and the free arm misses the floor by epsilon. Telling one from the other takes 1 / epsilon^2 pulls of dear arms.

    Parameters
    ----------
    theta : the subsidy factor alpha of every member, in [0, 1)
    p : the mean of the free arm, in (0, 1/2]
    epsilon : how far the free arm misses the floor in Phi^1..Phi^K, positive, with (p + epsilon) / (1 - theta) < 1
    n_dear : K, the number of dear arms

    >>> family = HardFamily(theta=0.1, p=0.45, epsilon=0.05, n_dear=3)
    >>> family.member(0).optimal_arm, family.member(2).optimal_arm
    (0, 2)

    """

    theta: float
    p: float
    epsilon: float
    n_dear: int

    def __post_init__(self) -> None:
        checked_count("n_dear", self.n_dear)
        if not 0.0 <= self.theta < 1.0:
            raise ValueError(f"theta must be in [0, 1), got {self.theta}")
        if not 0.0 < self.p <= 0.5:
            raise ValueError(f"p must be in (0, 1/2], got {self.p}")
        if not self.epsilon > 0.0:
            raise ValueError(f"epsilon must be positive, got {self.epsilon}")
        if reaches_floor(self.p, (self.p + self.epsilon) / (1.0 - self.theta), self.theta):
            raise ValueError(
                f"epsilon must be larger than rounding, got {self.epsilon}: the free arm misses the floor by no more than "
                f"the tolerance {FLOOR_TOLERANCE:g} of the best mean"
            )
        if not (self.p + self.epsilon) / (1.0 - self.theta) < 1.0:
            raise ValueError(
                f"(p + epsilon) / (1 - theta) must be below 1, got ({self.p:g} + {self.epsilon:g}) / {1 - self.theta:g}: "
                "take a smaller p or epsilon"
            )

    @classmethod
    def hardest(cls, alpha: float, n_dear: int, *, horizon: int) -> "HardFamily":
        """The family for which `thrifty.theory.mixture_bound` is largest: p = (1-alpha)/2, and epsilon the zero of its slope.

        That is epsilon^3 (4 - 3 epsilon) / (1 - epsilon)^2 = (1-alpha)^2 K / T, or (1-alpha)/4, the largest epsilon that the bound
        allows, where the zero lies above it. For T >= 16 K / (1-alpha) it is a little less than ((1-alpha)^2 K / (4 T))^(1/3).
        The proof is in docs/theory/bounds.md.

        >>> round(HardFamily.hardest(0.0, 1, horizon=1000).epsilon, 4)
        0.0613
        """
        if horizon < n_dear:
            raise ValueError(f"horizon must be at least the number of dear arms, got {horizon} rounds for {n_dear}")
        share = 1.0 - alpha
        low, high = 0.0, share / 4.0
        for _ in range(200):  # until low and high are neighbours
            middle = (low + high) / 2.0
            rising = middle**3 * (4.0 - 3.0 * middle) / (1.0 - middle) ** 2 < share**2 * n_dear / horizon
            low, high = (middle, high) if rising else (low, middle)
        return cls(alpha, share / 2.0, high, n_dear)

    def member(self, a: int) -> Instance:
        """Phi^a, with a from 0 to K."""
        if not 0 <= a <= self.n_dear:
            raise ValueError(f"the members are 0 to {self.n_dear}, got {a}")
        means = np.full(self.n_dear + 1, self.p / (1.0 - self.theta))
        means[0] = self.p
        if a > 0:
            means[a] = (self.p + self.epsilon) / (1.0 - self.theta)
        return Instance(means, np.r_[0.0, np.ones(self.n_dear)], self.theta)

    @property
    def weights(self) -> Floats:
        """(K + 1,) how likely each member is in the random mixture: 1/2 for Phi^0 and 1/(2K) for every other."""
        return np.asarray(np.r_[0.5, np.full(self.n_dear, 0.5 / self.n_dear)])

    def draw(self, rng: np.random.Generator) -> Instance:
        """A member drawn from the mixture.

        >>> HardFamily(0.0, 0.4, 0.1, 2).draw(np.random.default_rng(1)).n_arms
        3
        """
        return self.member(int(rng.choice(self.n_dear + 1, p=self.weights)))


def theorem_1(alpha: float, n_arms: int, *, horizon: int, d: float = 1.0) -> World:
    """Theorem 1's deterministic instance, on which Gaussian CS-TS has linear cost regret [Sinha2021] appendix C.

    Arm 0 is free with reward (1-alpha) q + d/sqrt(T) = 2d/sqrt(T), the others cost 1 with reward q = d / ((1-alpha) sqrt(T)).

    Parameters
    ----------
    alpha : in [0, 1)
    n_arms : K >= 2
    horizon : T
    d : in (0, min(1/2, 1-alpha) sqrt(T))

    >>> theorem_1(0.6, 3, horizon=10_000).instance.optimal_arm
    0

    """
    if checked_count("n_arms", n_arms) < 2:
        raise ValueError(f"n_arms must be at least 2, got {n_arms}")
    root = math.sqrt(checked_count("horizon", horizon))
    largest = min(0.5, 1.0 - alpha) * root
    if not 0.0 < d < largest:
        raise ValueError(f"d must be between 0 and min(1/2, 1 - alpha) sqrt(T) = {largest:g}, got {d}")
    q = d / ((1.0 - alpha) * root)
    rewards = [Deterministic((1.0 - alpha) * q + d / root), *[Deterministic(q)] * (n_arms - 1)]
    return World(rewards, [0.0, *[1.0] * (n_arms - 1)], alpha)


def figure_1(horizon: int = 10_000, alpha: float = 0.1) -> Instance:
    """Figure 1: a free arm 1/sqrt(T) above the floor of an arm of mean 1/2 that costs 1 [Sinha2021] section 2.

    >>> figure_1().means.tolist(), figure_1().optimal_arm
    ([0.46, 0.5], 0)
    """
    return Instance([0.5 * (1.0 - alpha) + 1.0 / math.sqrt(checked_count("horizon", horizon)), 0.5], [0.0, 1.0], alpha)


def table_1(cheap_mean: float) -> Instance:
    """Table 1: arm 0 has mean 1/2 and costs 1, arm 1 has mean 0.3 to 0.6 and is free, alpha = 0.1 [Sinha2021] section 6.

    >>> table_1(0.46).optimal_arm, table_1(0.44).optimal_arm
    (1, 0)
    """
    return Instance([0.5, cheap_mean], [1.0, 0.0], 0.1)


def cost_consistent(means: Sequence[float], delta: float, *, alpha: float) -> Instance:
    """Costs that follow quality: c_i = delta (mu_i - min mu), so that |c_i - c_j| = delta |mu_i - mu_j| [Sinha2021] Theorem 4.

    >>> minimal_delta(cost_consistent([0.25, 0.75, 0.5], 0.5, alpha=0.0))
    0.5
    """
    if not 0.0 < delta < math.inf:
        raise ValueError(f"delta must be positive, got {delta}")
    return Instance(means, delta * (np.asarray(means) - np.min(means)), alpha)


def minimal_delta(instance: Instance) -> float:
    """The smallest delta with |c_i - c_j| <= delta |mu_i - mu_j| for all arms; infinite when equal means have different costs.

    >>> minimal_delta(Instance([0.5, 0.5], [0.0, 1.0], 0.0))
    inf
    """
    first, second = np.triu_indices(instance.n_arms, 1)
    cost = np.abs(instance.costs[first] - instance.costs[second])
    quality = np.abs(instance.means[first] - instance.means[second])
    differing = cost > 0.0
    if (quality[differing] == 0.0).any():
        return math.inf
    return float(np.max(cost[differing] / quality[differing], initial=0.0))


def unseen_arm() -> Instance:
    """A counterexample to Theorem 4 for alpha > 0: a dear, bad third arm that CS-UCB has no reason to pull twice.

    Its upper bound stays 1, so the floor stays 1 - alpha = 0.65, above the cheap arm's 0.6: the cheap arm looks infeasible for
    ever. The hypothesis holds with delta = 1.

    >>> unseen_arm().optimal_arm
    0
    """
    return Instance([0.6, 0.75, 0.3], [0.0, 0.15, 0.3], 0.35)


def near_the_floor(horizon: int) -> Instance:
    """A counterexample to Theorem 4 with two arms: the cheap one lies 1/sqrt(T) above the floor, and delta = 1.

    CS-UCB keeps (1-alpha) beta_dear close to beta_cheap, so it pulls the dear arm about (1-alpha)^2 times as often as the cheap
    one.

    >>> near_the_floor(10_000).optimal_arm, round(minimal_delta(near_the_floor(10_000)), 9)
    (0, 1.0)
    """
    alpha, best = 0.4, 0.9
    cheap = (1.0 - alpha) * best + 1.0 / math.sqrt(checked_count("horizon", horizon))
    if cheap >= best:
        raise ValueError(f"horizon must be at least 8, got {horizon}: the cheap arm must not be the better one")
    return Instance([cheap, best], [0.0, best - cheap], alpha)


def random_costs(instance: Instance) -> World:
    """The same arms with unknown costs that are Bernoulli with the same means [Sinha2021] section 5.2.

    >>> random_costs(Instance([0.5, 0.46], [0.9, 0.1], 0.1)).costs_known
    False
    """
    if instance.costs.max() > 1.0:
        raise ValueError(f"random costs are in [0, 1], got the cost {instance.costs.max():g}: divide costs by the largest")
    return World(instance.means.tolist(), [Bernoulli(float(cost)) for cost in instance.costs], instance.alpha)


def sms_regions(alpha: float = 0.05) -> dict[str, Instance]:
    """SMS routing: different aggregators in every region, prices in dollars, delivery rates close to each other.

    After [Sinha2021] section 1.

    >>> {name: region.optimal_arm for name, region in sms_regions().items()}
    {'north': 1, 'east': 1, 'south': 1, 'islands': 1}
    """
    return {
        region.name: Instance([route.rate for route in region.routes], [route.price for route in region.routes], alpha)
        for region in SMS_REGIONS.segments
    }


def ad_audiences(n_audiences: int = 40, *, alpha: float = 0.2, seed: int = 1) -> Instance:
    """Ad audiences: many arms, click rates near zero, bids in dollars that follow the click rates only loosely.

    After [Sinha2021] section 1.

    >>> audiences = ad_audiences()
    >>> audiences.n_arms, bool(audiences.means.max() < 0.1)
    (40, True)
    """
    rng = np.random.default_rng(seed)
    clicks = np.clip(0.012 * np.exp(0.5 * rng.standard_normal(checked_count("n_audiences", n_audiences))), 0.001, 0.09)
    bids = 40.0 * clicks * np.exp(0.6 * rng.standard_normal(n_audiences))
    return Instance(clicks, bids.round(3), alpha)
