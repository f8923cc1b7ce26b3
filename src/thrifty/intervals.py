"""Confidence bounds on the mean of rewards in [0, 1]: five of them, each one kernel `(terms, stats, arm, side) -> bound`.

`side` is +1.0 for the upper bound and -1.0 for the lower one. All are clipped to [0, 1], and are 1 and 0 before the first outcome.
All but `mixture` hold for all arms and all T rounds at once when the horizon is T. Where the horizon is unknown, T is at least the
number of decisions so far, and the chances of failing after round t sum to at most 1 / t for `hoeffding`, `kl` and `bernstein`.
`mixture` needs no horizon. `bernstein` is for rewards that vary little, such as scores: it is the only one that looks at their
variance.

References
----------
[Sinha2021] "Multi-Armed Bandits with Cost Subsidy", AISTATS 2021.
[Garivier2011] Garivier, Cappe, "The KL-UCB algorithm for bounded stochastic bandits and beyond", COLT 2011.
[Maurer2009] Maurer, Pontil, "Empirical Bernstein bounds and sample variance penalization", COLT 2009.
[Robbins1970] Robbins, "Statistical methods related to the law of the iterated logarithm", Annals of Mathematical Statistics 41.
[Howard2021] Howard, Ramdas, McAuliffe, Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences", Annals of
Statistics 49.

"""

import math

from thrifty.compiled import kernel, rare, stay_apart
from thrifty.statistics import mean_reward, reward_variance

_STEPS = 40  # of bisection: 2^-40 is far below any width that matters


@kernel
def paper(terms, stats, arm, side):
    """Mean +- sqrt(2 ln T / n) [Sinha2021] Algorithms 1 to 3."""
    return _around(stats[arm].seen, stats[arm].reward_sum, side, paper_level(terms.horizon))


@kernel
def hoeffding(terms, stats, arm, side):
    """Mean +- sqrt(ln(2 K T^2) / (2 n)).

    Hoeffding's inequality and a union over arms and rounds; fails with probability at most 1 / T.
    """
    return _around(stats[arm].seen, stats[arm].reward_sum, side, 0.5 * _union_level(terms))


@kernel
def kl(terms, stats, arm, side):
    """The q on that side where n times the divergence of q from the mean is ln(2 K T^2) [Garivier2011]; within `hoeffding`."""
    seen = stats[arm].seen
    if seen <= 0.0:
        return 0.5 + 0.5 * side
    return _solve_kl(stats[arm].reward_sum / seen, _union_level(terms) / seen, side)


@kernel
def bernstein(terms, stats, arm, side):
    """Mean +- (sqrt(2 V l / n) + 7 l / (3 (n - 1))), with l = ln(4 K T^2) and the sample variance V [Maurer2009] Theorem 4.

    Fails with probability at most 1 / T, as `hoeffding` does. Narrower than `kl` where V is far below m (1 - m) for a mean of m.
    """
    seen = stats[arm].seen
    if seen <= 1.0:
        return 0.5 + 0.5 * side
    level = math.log(2.0) + _union_level(terms)
    reach = math.sqrt(2.0 * reward_variance(stats, arm) * level / seen) + 7.0 * level / (3.0 * (seen - 1.0))
    return min(max(mean_reward(stats, arm) + side * reach, 0.0), 1.0)


@kernel
def mixture(terms, stats, arm, side):
    """The end of {p : ln B(S + 1, n - S + 1) - S ln p - (n - S) ln(1 - p) < ln(K / delta)} with delta = 0.05.

    After [Robbins1970] and [Howard2021]: with a uniform mixture over p, the set holds the mean for all n at once, and the
    sets of all K arms do together, with probability 1 - delta.
    """
    return mixture_bound(stats[arm].seen, stats[arm].reward_sum, math.log(terms.costs.size / 0.05), side)


@kernel
def mixture_bound(seen, reward_sum, level, side):
    """`mixture`, from the outcomes, their sum and ln(K / delta)."""
    if seen <= 0.0:
        return 0.5 + 0.5 * side
    return _solve_mixture(seen, min(max(reward_sum, 0.0), seen), level, side)


INTERVALS = {"paper": paper, "hoeffding": hoeffding, "kl": kl, "bernstein": bernstein, "mixture": mixture}


@kernel
def paper_level(horizon):
    """2 ln T: the paper's radius is sqrt(2 ln T / n)."""
    return 2.0 * math.log(horizon)


@kernel
def radius(level, seen):
    """sqrt(level / n)."""
    return math.sqrt(level / seen)


@kernel
def _union_level(terms):
    return math.log(2.0 * terms.costs.size) + 2.0 * math.log(terms.horizon)


@kernel
def _around(seen, reward_sum, side, level):
    n = max(seen, 1.0)  # before the first outcome the radius is more than 1, and clipping says 0 and 1
    bound = reward_sum / n + side * radius(level, n)
    if side > 0.0:  # known when compiled; an upper bound needs no clipping at 0, nor a lower one at 1
        return bound if bound < 1.0 else 1.0
    return bound if bound > 0.0 else 0.0


@rare
def _solve_kl(mean, level, side):
    stay_apart()
    inside, outside = mean, 0.5 + 0.5 * side
    for _ in range(_STEPS):
        middle = 0.5 * (inside + outside)
        if middle <= 0.0 or middle >= 1.0:  # the mean is as close to 0 or 1 as numbers come
            return outside
        if divergence(mean, middle) <= level:
            inside = middle
        else:
            outside = middle
    return outside


@kernel
def divergence(p, q):
    """Kullback-Leibler divergence of Bernoulli(p) from Bernoulli(q), 0 < q < 1."""
    divergence = 0.0
    if p > 0.0:
        divergence += p * math.log(p / q)
    if p < 1.0:
        divergence += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return divergence


@rare
def _solve_mixture(seen, reward_sum, level, side):
    stay_apart()
    losses = seen - reward_sum
    log_beta = math.lgamma(reward_sum + 1.0) + math.lgamma(losses + 1.0) - math.lgamma(seen + 2.0)
    inside, outside = reward_sum / seen, 0.5 + 0.5 * side
    for _ in range(_STEPS):
        middle = 0.5 * (inside + outside)
        if middle <= 0.0 or middle >= 1.0:
            return outside
        evidence = log_beta
        if reward_sum > 0.0:
            evidence -= reward_sum * math.log(middle)
        if losses > 0.0:
            evidence -= losses * math.log(1.0 - middle)
        if evidence < level:
            inside = middle
        else:
            outside = middle
    return outside
