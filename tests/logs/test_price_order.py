"""The posterior of rewards that rise with prices is that of a slow, obvious twin."""

import numpy as np
import pytest

from thrifty.arrays import Floats
from thrifty.logs.price_order import SortedRewards, has_order

REWARDS, ERRORS, SPREAD = np.array([0.70, 0.66, 0.80, 0.79]), np.array([0.03, 0.05, 0.02, 0.04]), 0.06
HALF_WIDTH = 3.0**0.5 * SPREAD


def weighted_samples(number: int) -> tuple[Floats, Floats, float]:
    """The twin: sorted draws of the law at random levels, their likelihoods, and the range of levels."""
    rng = np.random.default_rng(5)
    low, high = REWARDS.min() - 0.3, REWARDS.max() + 0.3
    level = rng.uniform(low, high, (number, 1))
    draws = np.sort(level + rng.uniform(-HALF_WIDTH, HALF_WIDTH, (number, REWARDS.size)), axis=1)
    likelihood = np.exp(-0.5 * ((draws - REWARDS) / ERRORS) ** 2) / (np.sqrt(2.0 * np.pi) * ERRORS)
    return draws, likelihood.prod(axis=1), float(high - low)


def drawn(rewards: Floats, errors: Floats, spread: float = SPREAD) -> Floats:
    """4,000 draws from the posterior."""
    found = SortedRewards.of(rewards, errors**2, np.array([0.01, spread]))
    return found.draw(np.ones(4000, dtype=np.int64), np.random.default_rng(2))


def test_means_and_deviations_are_those_of_weighted_sorted_samples() -> None:
    """4,000 draws and 10,000 effective samples: a mean is known to 0.0004; 5 standard errors are allowed."""
    samples, weight, _ = weighted_samples(1_000_000)
    mean = weight @ samples / weight.sum()
    deviation = np.sqrt(weight @ (samples - mean) ** 2 / weight.sum())
    draws = drawn(REWARDS, ERRORS)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.002)
    np.testing.assert_allclose(draws.std(axis=0), deviation, atol=0.002)


def test_the_evidence_is_the_mean_likelihood_of_sorted_samples() -> None:
    """The mean of a million likelihoods is known to 1%; 5% are allowed."""
    _, likelihood, levels = weighted_samples(1_000_000)
    found = SortedRewards.of(REWARDS, ERRORS**2, np.array([0.01, SPREAD]))
    assert np.exp(found.of_spread()[1]) == pytest.approx(levels * likelihood.mean(), rel=0.05)


def test_a_dearer_arm_is_better_in_every_draw_up_to_a_cell_of_the_grid() -> None:
    draws = drawn(REWARDS, ERRORS)
    assert np.diff(draws, axis=1).min() > -0.4 * ERRORS.max()
    assert (np.diff(draws, axis=1) > 0.0).mean() > 0.97


def test_precise_estimates_far_apart_stay_where_they_are() -> None:
    rewards = np.array([0.2, 0.5, 0.9])
    draws = drawn(rewards, np.full(3, 1e-6), spread=0.3)
    np.testing.assert_allclose(draws.mean(axis=0), rewards, atol=1e-3)
    assert (np.abs(draws - rewards) < 1e-5).mean() > 0.99


def test_estimates_far_out_of_order_have_no_evidence() -> None:
    found = SortedRewards.of(np.array([0.9, 0.2]), np.full(2, 1e-8), np.array([0.1, 0.3]))
    assert (found.of_spread() < -1e5).all()


def test_equal_costs_and_very_many_arms_have_no_order() -> None:
    assert has_order(np.array([0.4, -0.4, 0.0]))
    assert not has_order(np.array([0.4, -0.2, -0.2]))
    assert not has_order(np.arange(1000.0))
