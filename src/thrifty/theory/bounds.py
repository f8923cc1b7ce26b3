"""The paper's bounds on regret as functions of T, K and alpha, with explicit constants.

Each states its formula and where it is from. K counts all arms in upper bounds; in lower bounds it counts the dear arms of
`HardFamily`, which has K + 1 arms, as in the paper.
"""

import math

from thrifty.environments.families import HardFamily
from thrifty.problem import checked_alpha, checked_count


def mixture_bound(horizon: int, n_dear: int, *, alpha: float, p: float, epsilon: float) -> float:
    """The least regret, averaged over the mixture of Phi_{alpha,p,epsilon}, that any policy can have.

    epsilon T / 2 - epsilon^4 T^2 / (4 (1-alpha) p K (1-epsilon)), from the proof of Lemma 1 of [Sinha2021] with the dear arms'
    means divided by 1 - alpha: the KL lemma then gives 4 epsilon^2 / ((1-alpha) p), and no Bernoulli factory is needed. At
    alpha = 0 it is the paper's own last line.

    >>> round(mixture_bound(1000, 1, alpha=0.0, p=0.5, epsilon=0.025), 3)
    12.3
    """
    horizon, n_dear, alpha = _sizes(horizon, n_dear, alpha)
    if not 0.0 < epsilon <= p / 2.0 or not p <= (1.0 - alpha) / 2.0:
        raise ValueError(f"the bound needs 0 < epsilon <= p/2 and p <= (1 - alpha)/2, got epsilon = {epsilon}, p = {p}")
    return epsilon * horizon / 2.0 - epsilon**4 * horizon**2 / (4.0 * (1.0 - alpha) * p * n_dear * (1.0 - epsilon))


def paper_lower_bound(horizon: int, n_dear: int, *, alpha: float) -> float:
    """Theorem 2 as the paper proves it: (1-alpha)/19 times the bound at alpha = 0, of order (1-alpha)^2 K^(1/3) T^(2/3).

    p = (1-alpha)/3, epsilon = (p/2) (K/T)^(1/3), and the reduction loses delta (1-alpha) / 9.5 with delta = 1/2 [Sinha2021]
    appendix B.

    >>> round(paper_lower_bound(10**6, 1, alpha=0.1), 2)
    35.33
    """
    horizon, n_dear, alpha = _sizes(horizon, n_dear, alpha)
    p = (1.0 - alpha) / 3.0
    epsilon = p / 2.0 * (n_dear / horizon) ** (1 / 3)
    return (1.0 - alpha) / 19.0 * mixture_bound(horizon, n_dear, alpha=0.0, p=p, epsilon=epsilon)


def direct_lower_bound(horizon: int, n_dear: int, *, alpha: float) -> float:
    """Theorem 2 without the reduction, in closed form: at least (47/384) (1-alpha) K^(1/3) T^(2/3), for every T >= K.

    `mixture_bound` at p = (1-alpha)/2, epsilon = ((1-alpha)/4) (K/T)^(1/3). In units of (1-alpha) K^(1/3) T^(2/3) its first term
    is 1/8 = 48/384, and its second at most 1/384 because epsilon <= 1/4. `sharp_lower_bound` is larger, see docs/theory/bounds.md.

    >>> round(direct_lower_bound(10**6, 1, alpha=0.1), 1)
    1109.1
    """
    horizon, n_dear, alpha = _sizes(horizon, n_dear, alpha)
    p = (1.0 - alpha) / 2.0
    return mixture_bound(horizon, n_dear, alpha=alpha, p=p, epsilon=p / 2.0 * (n_dear / horizon) ** (1 / 3))


def sharp_lower_bound(horizon: int, n_dear: int, *, alpha: float) -> float:
    """The largest `mixture_bound`, at the p and epsilon of `HardFamily.hardest`: of order (1-alpha)^(2/3) K^(1/3) T^(2/3).

    For T >= 16 K / (1-alpha) it lies between 1/3 and 3/8 of 4^(-1/3) (1-alpha)^(2/3) K^(1/3) T^(2/3), and nears 3/8 as T grows. The
    proof is in docs/theory/bounds.md.

    >>> round(sharp_lower_bound(10**6, 1, alpha=0.1), 1)
    2197.8
    """
    horizon, n_dear, alpha = _sizes(horizon, n_dear, alpha)
    family = HardFamily.hardest(alpha, n_dear, horizon=horizon)
    return mixture_bound(horizon, n_dear, alpha=alpha, p=family.p, epsilon=family.epsilon)


def etc_bound(horizon: int, n_arms: int, *, tau: float) -> float:
    """Theorem 3: CS-ETC's quality plus cost regret, 2 K tau + 4 T sqrt(2 ln T / tau) + 4/T, for costs in [0, 1].

    K tau for each regret while exploring, 4 sqrt(2 ln T / tau) of quality a round afterwards, and 2T with probability at most
    2/T^2, when some mean leaves its interval [Sinha2021] appendix C. For costs in [0, c] multiply the second K tau by c.

    >>> round(etc_bound(10**6, 2, tau=6300))
    290104
    """
    horizon, n_arms, _ = _sizes(horizon, n_arms)
    return 2.0 * n_arms * tau + 4.0 * horizon * math.sqrt(2.0 * math.log(horizon) / tau) + 4.0 / horizon


def unknown_costs_bound(horizon: int, n_arms: int, *, tau: float) -> float:
    """Theorem 3 where costs are unknown: 2 K tau + 6 T sqrt(2 ln T / tau) + 8/T.

    The chosen arm has the lowest lower bound on cost, so it costs at most 2 beta more than the optimal one: 2 sqrt(2 ln T / tau)
    more a round; the clean event has twice as many intervals [Sinha2021] section 5.2, worked out here.

    >>> unknown_costs_bound(10**6, 2, tau=6300) > etc_bound(10**6, 2, tau=6300)
    True
    """
    horizon, n_arms, _ = _sizes(horizon, n_arms)
    return 2.0 * n_arms * tau + 6.0 * horizon * math.sqrt(2.0 * math.log(horizon) / tau) + 8.0 / horizon


def paper_tau(horizon: int, n_arms: int) -> float:
    """(T/K)^(2/3), the paper's exploration per arm before rounding.

    >>> round(paper_tau(5000, 2))
    184
    """
    horizon, n_arms, _ = _sizes(horizon, n_arms)
    return float((horizon / n_arms) ** (2 / 3))


def optimal_tau(horizon: int, n_arms: int) -> float:
    """(2 ln T)^(1/3) (T/K)^(2/3): the tau that minimises `etc_bound`, and takes its sqrt(log T) down to (log T)^(1/3).

    The zero of 2K - 2T sqrt(2 ln T) tau^(-3/2). The quality half alone, K tau + 4T sqrt(2 ln T / tau), is smallest at 2 (ln
    T)^(1/3) (T/K)^(2/3).

    >>> etc_bound(10**6, 2, tau=optimal_tau(10**6, 2)) < etc_bound(10**6, 2, tau=paper_tau(10**6, 2))
    True
    """
    return float((2.0 * math.log(horizon)) ** (1 / 3)) * paper_tau(horizon, n_arms)


def consistent_quality_bound(horizon: int, n_arms: int) -> float:
    """Theorem 4's quality half for CS-UCB: sqrt(8 K T ln T) + 2/T, for every alpha and all costs [Sinha2021] appendix C.

    The proof is off by one pull. It holds for K <= 1 + 8 ln T; add K - 1 where there are more arms: see docs/errata.md.

    >>> round(consistent_quality_bound(10**6, 3))
    18209
    """
    horizon, n_arms, _ = _sizes(horizon, n_arms)
    return math.sqrt(8.0 * n_arms * horizon * math.log(horizon)) + 2.0 / horizon


def consistent_bound(horizon: int, n_arms: int, *, delta: float) -> float:
    """What Theorem 4 claims for CS-UCB's quality plus cost regret: (1 + delta) sqrt(8 K T ln T) + 4/T.

    Proved at alpha = 0 only: see docs/errata.md.

    >>> round(consistent_bound(10**6, 3, delta=1.0))
    36418
    """
    return (
        consistent_quality_bound(horizon, n_arms) + delta * (consistent_quality_bound(horizon, n_arms) - 2 / horizon) + 2 / horizon
    )


def first_rejection(cheap_mean: float, dear_mean: float, *, alpha: float, n_arms: int = 2) -> int:
    """The smallest horizon at which CS-ETC, fed exact means, ever rejects the cheap arm.

    By the last round the dear arm was pulled tau times and the cheap one T - (K-1) tau times; the cheap arm is out when
    mu_cheap + sqrt(2 ln T / n_cheap) < (1-alpha) (mu_dear - sqrt(2 ln T / tau)). The report compares it with simulations.

    Parameters
    ----------
    cheap_mean : below (1 - alpha) dear_mean
    dear_mean, alpha, n_arms : of the other arms

    >>> 60_000 < first_rejection(0.30, 0.5, alpha=0.1) < 70_000
    True

    """
    if not cheap_mean < (1.0 - alpha) * dear_mean:
        raise ValueError(f"cheap_mean must be below the floor {(1 - alpha) * dear_mean:g}, got {cheap_mean}: it is never rejected")

    def rejects(horizon: int) -> bool:
        tau = math.ceil(paper_tau(horizon, n_arms))
        level = 2.0 * math.log(horizon)
        upper = cheap_mean + math.sqrt(level / (horizon - (n_arms - 1) * tau))
        return upper < (1.0 - alpha) * (dear_mean - math.sqrt(level / tau))

    high = 2 * n_arms
    while not rejects(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rejects(middle) else (middle, high)
    return high


def _sizes(horizon: int, n_arms: int, alpha: float = 0.0) -> tuple[int, int, float]:
    horizon, n_arms = checked_count("horizon", horizon), checked_count("the number of arms", n_arms)
    if horizon < n_arms:
        raise ValueError(f"horizon must be at least the number of arms, got {horizon} rounds for {n_arms} arms")
    if checked_alpha(alpha) == 1.0:
        raise ValueError("alpha must be below 1 here, got 1: every arm is then feasible and the bound is 0")
    return horizon, n_arms, alpha
