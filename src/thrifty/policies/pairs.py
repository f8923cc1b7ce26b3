"""Two arms compared: how likely one is good enough beside the other, and the quality that it is expected to lose.

For an arm i and a rival j, let D = (1 - alpha) mu_j - mu_i, which is positive if j shows that i is not good enough. Take D as
normal, with the mean d that the estimates give and the variance s^2 that they would have if i were just on the floor, as in a score
test [Wilson1927]: an arm that failed five times out of five may be a good one. With z = d / s and the standard normal phi and Phi,

    clear     = P(D <= 0)    = Phi(-z)                          the chance that i is good enough beside j, and
    shortfall = E[max(D, 0)] = s (phi(z) + z Phi(z))            the quality that every decision for i is expected to lose.

Estimates are shrunk to the mean of all arms, more where the arms look alike. The highest of several equally good arms would put the
floor too high otherwise. Rewards between 0 and 1 vary less than successes and failures of the same mean: `dispersion` is the ratio
of the two variances.

References
----------
[Wilson1927] Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the American Statistical
Association 22.

"""

import math

import numpy as np

from thrifty.compiled import kernel, record
from thrifty.policies.posteriors import expected

_LEAST_VARIANCE = 0.01
"""Of one outcome: a floor close to 0 or 1 would leave no room for an error."""

_NEUTRAL = 100.0
"""Outcomes of mean 1/2 that are added where the mean of all arms is estimated; also the most that an arm is shrunk by."""

ArmView = record(
    [
        ("price", np.float64),  # the cost, divided by the range of costs
        ("looks", np.float64),  # outcomes that have come or will
        ("paid", np.float64),  # looks that this rule has paid for: none that were borrowed, none that are forgotten
        ("estimate", np.float64),  # of the mean reward
        ("shortfall", np.float64),  # the quality that a decision is expected to lose
        ("clear", np.float64),  # the chance that the arm is good enough
        ("cheaper_clear", np.float64),  # the chance that an arm before it in the order of costs is
        ("regret", np.float64),  # that a decision is expected to cost
        ("information", np.float64),  # that an outcome is expected to give about which arm is optimal
        ("is_rival", np.int64),  # 1 if other arms are compared with it
        ("strongest", np.int64),  # the rival beside which the shortfall is largest; -1 if there is none
    ]
)
"""What a plan knows of an arm."""


@kernel
def estimate(terms, stats, arms):
    """Write looks and the estimate of every arm: its mean, shrunk to the centre of all means. Returns the dispersion."""
    n_arms = stats.size
    total = sent = within = binary = 0.0
    for arm in range(n_arms):
        seen, reward_sum = max(stats[arm].seen, 0.0), stats[arm].reward_sum
        arms[arm].looks = seen + expected(terms, stats, arm)
        arms[arm].paid = min(arms[arm].looks, float(stats[arm].sent))
        arms[arm].estimate = (reward_sum + 0.5) / (seen + 1.0)
        total += arms[arm].estimate
        sent += arms[arm].looks
        if seen > 0.0:
            within += max(stats[arm].reward_squares - reward_sum * reward_sum / seen, 0.0)
            binary += max(reward_sum - reward_sum * reward_sum / seen, 0.0)
    dispersion = min((within + 1.0) / (binary + 1.0), 1.0)
    average = total / n_arms
    centre = (average * sent + 0.5 * _NEUTRAL) / (sent + _NEUTRAL)
    strength = dispersion * min(max(centre * (1.0 - centre) / between_arms(stats, arms, average, dispersion), 2.0), _NEUTRAL)
    for arm in range(n_arms):
        arms[arm].estimate = (stats[arm].reward_sum + strength * centre) / (max(stats[arm].seen, 0.0) + strength)
    return dispersion


@kernel
def between_arms(stats, arms, average, dispersion):
    """The variance of the means between arms, less what chance alone makes of it. One arm of a uniform mean is added."""
    n_arms = stats.size
    beyond_chance = 0.0
    for arm in range(n_arms):
        mean = arms[arm].estimate
        chance = dispersion * mean * (1.0 - mean) / (max(stats[arm].seen, 0.0) + 1.0)
        beyond_chance += (mean - average) * (mean - average) - chance * (1.0 - 1.0 / n_arms)
    return (1.0 / 12.0 + max(beyond_chance, 0.0)) / n_arms


@kernel
def difference(terms, memory, arm, rival):
    """The mean, over its standard deviation, of how far the floor that a rival sets is above an arm; and that deviation."""
    keep = 1.0 - terms.alpha
    s = math.sqrt(own_part(terms, memory, arm, rival) + rival_part(terms, memory, arm, rival))
    return (keep * memory.arms[rival].estimate - memory.arms[arm].estimate) / s, s


@kernel
def own_part(terms, memory, arm, rival):
    """The variance that the estimate of an arm would have if the arm were on the floor that a rival sets."""
    at_floor = (1.0 - terms.alpha) * memory.arms[rival].estimate
    return memory.dispersion[0] * variance_of_one(at_floor) / max(memory.arms[arm].looks, 0.5)


@kernel
def rival_part(terms, memory, arm, rival):
    """The variance that the estimate of a rival's floor would have if the arm were on it."""
    keep, mean = 1.0 - terms.alpha, memory.arms[arm].estimate
    at_floor = mean / keep if keep > mean else 1.0
    return memory.dispersion[0] * keep * keep * variance_of_one(at_floor) / max(memory.arms[rival].looks, 0.5)


@kernel
def variance_of_one(mean):
    """The variance of one success or failure, and a little where the mean is 0 or 1."""
    return max(mean * (1.0 - mean), _LEAST_VARIANCE)


@kernel
def clear_chance(z):
    """Phi(-z)."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


@kernel
def density(z):
    """The standard normal phi."""
    return math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


@kernel
def excess(z):
    """E[max(Z + z, 0)] of a standard normal Z: phi(z) + z Phi(z)."""
    return density(z) + z * clear_chance(-z)


@kernel
def shortfall_beside(terms, memory, arm, z, s):
    """E[max(D, 0)], given z and s of the pair. No mean is above 1, so D is at most (1 - alpha) less the estimate of the arm."""
    highest = ((1.0 - terms.alpha) - memory.arms[arm].estimate) / s
    return s * (excess(z) - excess(z - highest))
