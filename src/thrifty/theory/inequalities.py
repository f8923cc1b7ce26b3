"""The inequalities that the proofs stand on: logarithms, KL divergence, Thompson sampling's constant, a factory's flips."""

import math

import numpy as np

from thrifty.problem import Instance


def kl(x: float, y: float) -> float:
    """KL(Ber(x); Ber(y)) = x ln(x/y) + (1-x) ln((1-x)/(1-y)) in nats, also where x and y are so close that these terms cancel.

    >>> round(kl(0.5, 0.75), 4)
    0.1438
    """
    if not (0.0 <= x <= 1.0 and 0.0 <= y <= 1.0):
        raise ValueError(f"means must be in [0, 1], got {x} and {y}")
    if (x > 0.0 and y == 0.0) or (x < 1.0 and y == 1.0):
        return math.inf
    if x in (0.0, 1.0):
        return -math.log(y) if x == 1.0 else -math.log1p(-y)
    return _excess(x, y) + _excess(1.0 - x, 1.0 - y)


def _excess(a: float, b: float) -> float:
    """The value b - a - a ln(b/a), by its series where the difference would cancel. The sum of two such terms is kl."""
    if abs(b - a) > 1e-3 * a:
        return b - a - a * (math.log(b) - math.log(a))
    t = (b - a) / a
    return a * t * t * (1 / 2 - t * (1 / 3 - t * (1 / 4 - t * (1 / 5 - t / 6))))


def kl_bound(p: float, epsilon: float) -> float:
    """4 epsilon^2 / p, which KL(Ber(p); Ber(p + epsilon)) does not exceed for 0 < p <= 1/2, 0 < epsilon <= p/2 [Sinha2021] Lemma 4.

    >>> kl(0.4, 0.5) <= kl_bound(0.4, 0.1)
    True
    """
    if not (0.0 < p <= 0.5 and 0.0 < epsilon <= p / 2.0):
        raise ValueError(f"the bound needs 0 < p <= 1/2 and 0 < epsilon <= p/2, got p = {p}, epsilon = {epsilon}")
    return 4.0 * epsilon**2 / p


def log_slack(x: float) -> tuple[float, float]:
    """How much the two sides of [Sinha2021] Lemmas 2 and 3 differ at x.

    Not negative where the lemma holds, NaN where it has no meaning.
    ln(1+x) - (x - x^2/(1-x^2)) and ln(1-x) - (-x - x^2/(1-x)). The paper says x > 0; both need 0 < x < 1.

    >>> min(log_slack(0.5)) > 0, log_slack(2.0)[0] < 0
    (True, True)
    """
    first = math.log1p(x) - (x - x * x / (1.0 - x * x)) if x != 1.0 else math.nan
    second = math.log1p(-x) + x + x * x / (1.0 - x) if x < 1.0 else math.nan
    return first, second


def thompson_floor(n_arms: int, alpha: float, *, d: float = 1.0, sigma_0: float = 1.0, sigma_n: float = 1.0) -> float:
    """The share of rounds in which Gaussian CS-TS pulls a dear arm of `theorem_1` at least: the largest min(u/2, g(K)/4) over u.

    g(K) = 1 - (1 - exp(-14 (1/sigma_0^2 + 1/sigma_n^2) u d^2 / (1-alpha)^2) / (8 sqrt(pi)))^(K-1) with u = s sqrt(K) in (0, 1]
    [Sinha2021] appendix C. Cost regret is then at least this times T: either the dear arms are pulled u T times with probability
    1/2, or the conditional probability of pulling one is at least g(K)/2 with probability 1/2. The paper's exponent puts every
    pull on one arm; it could be divided by K - 1.

    >>> 0 < thompson_floor(2, 0.6) < 0.02
    True
    """
    u = np.linspace(1e-4, 1.0, 10_000)
    exponent = -14.0 * (1.0 / sigma_0**2 + 1.0 / sigma_n**2) * u * d**2 / (1.0 - alpha) ** 2
    g = 1.0 - (1.0 - np.exp(exponent) / (8.0 * math.sqrt(math.pi))) ** (n_arms - 1)
    return float(np.max(np.minimum(u / 2.0, g / 4.0)))


def flip_bound(factor: float, slack: float) -> float:
    """9.5 C / epsilon: the expected flips of Huber's factory for C p <= 1 - epsilon, at most [Huber2013] as cited by [Sinha2021].

    >>> flip_bound(2.0, 0.5)
    38.0
    """
    return 9.5 * factor / slack


def weight_range(instance: Instance) -> tuple[float, float]:
    """The lambdas for which the optimal arm maximises mu - lambda c: from the first to the second; none when the first is larger.

    A dearer arm j asks for lambda >= (mu_j - mu_i*) / (c_j - c_i*), a cheaper one for lambda <= (mu_i* - mu_j) / (c_i* - c_j)
    [Sinha2021] section 1.1.

    >>> weight_range(Instance([0.75, 0.5], [1.0, 0.0], 0.5))
    (0.25, inf)
    """
    chosen = instance.optimal_arm
    cost, quality = instance.costs - instance.costs[chosen], instance.means - instance.means[chosen]
    lowest = np.max(quality[cost > 0.0] / cost[cost > 0.0], initial=0.0)
    highest = np.min(quality[cost < 0.0] / cost[cost < 0.0], initial=np.inf)
    return float(lowest), float(highest)
