"""Evidence that an arm is good enough, or that it is not: generalised likelihood ratios of Bernoulli rewards.

Arm i has the mean m_i after n_i outcomes, and kl is the Kullback-Leibler divergence of two Bernoulli laws. The evidence against a
statement is ln(highest likelihood of all / highest likelihood where the statement holds). Rewards between 0 and 1 are counted as
fractions of a success; where they vary less, the caller counts them for more outcomes.

*i is good enough beside j* means mu_i >= (1 - alpha) mu_j. Where one of the two is true by the means, the evidence against it is

    min over x of  n_i kl(m_i, x) + n_j kl(m_j, x / (1 - alpha)).

The minimum is where a quadratic is zero, between m_i and (1 - alpha) m_j.

*i is good enough* means that for all j at once. The evidence against it is R_i, to which every better arm adds:

    R_i = min over x of  n_i kl(m_i, x) 1{x > m_i} + sum_j n_j kl(m_j, x / (1 - alpha)) 1{(1 - alpha) m_j > x}.

*i is not good enough* means that some j shows it: the evidence against that is the least of the pairs' evidence.

Chance alone makes the sum over many equally good arms large: half for every arm that is above its mean. Therefore a rival counts
only with what it has beyond a `debit`: n_j kl - debit, and 0 if that is negative. With a debit of 0 this is R_i as above.
"""

import math

from thrifty.compiled import kernel
from thrifty.intervals import divergence

_STEPS = 40  # of bisection: 2^-40 is far below any difference that matters


@kernel
def meeting_point(keep, n_i, m_i, n_j, m_j):
    """The x that minimises n_i kl(m_i, x) + n_j kl(m_j, x / keep), where 0 < keep <= 1 and 0 < m < 1.

    There n_i (x - m_i) (1 - x / keep) + n_j (x / keep - m_j) (1 - x) = 0; the other root is above keep.
    """
    b = n_i * (keep + m_i) + n_j * (1.0 + keep * m_j)
    c = keep * (n_i * m_i + n_j * m_j)
    return 2.0 * c / (b + math.sqrt(max(b * b - 4.0 * (n_i + n_j) * c, 0.0)))


@kernel
def pair_evidence(keep, n_i, m_i, n_j, m_j):
    """How strongly j's outcomes and i's own say that i is good enough; negative where they say that it is not."""
    x = meeting_point(keep, n_i, m_i, n_j, m_j)
    evidence = n_i * divergence(m_i, x) + n_j * divergence(m_j, x / keep)
    return evidence if m_i >= keep * m_j else -evidence


@kernel
def infeasibility(keep, trials, means, arm, top, debit, odds):
    """R_i of an arm below the floor of the top arm; or more than that, as soon as `tail` of it is more than `odds`.

    Parameters
    ----------
    keep : 1 - alpha
    trials, means : (K,) outcomes and means
    arm, top : i, and the arm with the highest mean
    debit : what a rival must have before it counts
    odds : the tail at which to stop, 1 to find the minimum

    """
    low, high = means[arm], keep * means[top]
    for _ in range(_STEPS):
        x = 0.5 * (low + high)
        evidence, slope = _evidence_at(keep, trials, means, arm, x, debit)
        if tail(evidence) > odds:
            return evidence
        if slope > 0.0:
            high = x
        else:
            low = x
    return evidence


@kernel
def _evidence_at(keep, trials, means, arm, x, debit):
    """What R_i minimises, at x, and its derivative."""
    evidence = trials[arm] * divergence(means[arm], x)
    slope = trials[arm] * (x - means[arm]) / (x * (1.0 - x))
    for rival in range(means.size):
        if keep * means[rival] > x:
            own = trials[rival] * divergence(means[rival], x / keep)
            if own > debit:
                evidence += own - debit
                slope += trials[rival] * (x / keep - means[rival]) / (x * (1.0 - x / keep))
    return evidence, slope


@kernel
def tail(evidence):
    """The chance that a standard normal is beyond sqrt(2 evidence), at most exp(-evidence) / 2. Rounding may leave less than 0."""
    return 0.5 * math.erfc(math.sqrt(max(evidence, 0.0)))
