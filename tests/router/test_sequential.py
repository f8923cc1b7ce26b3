import math
import random
import statistics

import pytest

from thrifty.router.monitor import Monitor
from thrifty.router.sequential import DropTest, log_ratio, lower_bound, ratios_of

FACTORS = (0.9, 0.6, 0.2)


def looks_until_bad(mean: float, m0: float, rng: random.Random, *, batch: int, beta: bool = False, most: int = 100_000) -> int:
    test = DropTest(FACTORS, math.log(200.0), math.inf)
    for look in range(1, most):
        draws = [rng.betavariate(4 * mean, 4 * (1 - mean)) if beta else float(rng.random() < mean) for _ in range(batch)]
        test.take(*ratios_of(batch, sum(draws), m0, FACTORS, m0))
        if test.bad:
            return look
    return most


@pytest.mark.parametrize(("batch", "beta"), [(1, False), (7, False), (3, True)])
def test_a_false_alarm_takes_at_least_as_many_looks_as_the_threshold_says(batch: int, beta: bool) -> None:
    """The mean is m0 itself, the hardest case. The true mean is about 250 looks for one outcome a look, and more for others: that
    150 runs have a mean below 200 has a chance of 0.1%, and the seed is fixed.
    """
    rng = random.Random(11)
    found = [looks_until_bad(0.7, 0.7, rng, batch=batch, beta=beta, most=1000) for _ in range(150)]
    assert statistics.mean(found) >= 200


def test_a_real_drop_is_found_within_some_tens_of_outcomes() -> None:
    rng = random.Random(12)
    found = [looks_until_bad(0.3, 0.72, rng, batch=1) for _ in range(100)]
    assert statistics.median(found) < 25


def test_rewards_between_0_and_1_count_no_more_than_a_fair_bet_would() -> None:
    rng = random.Random(13)
    for _ in range(1000):
        m0, m1, x = (rng.uniform(0.01, 0.99) for _ in range(3))
        stake = (m0 - m1) / (m0 * (1 - m0))
        assert log_ratio(1.0, x, m0, m1) <= math.log1p(stake * (m0 - x)) + 1e-9


def test_a_drop_that_passes_within_the_hold_is_no_alarm_and_one_that_lasts_is() -> None:
    for lasts in (False, True):
        test = DropTest(FACTORS, math.log(200.0), math.log(200.0), hold=5)
        states = []
        for look in range(40):
            wins = 2.0 if look < 4 or lasts else 10.0
            test.take(*ratios_of(10, wins, 0.7, FACTORS, 0.9))
            states.append(test.bad)
        assert any(states) == lasts
        assert not any(states[:6])


def test_an_alarm_ends_only_on_evidence() -> None:
    test = DropTest(FACTORS, math.log(200.0), math.log(200.0))
    test.reset(bad=True)
    for _ in range(500):
        test.take(*ratios_of(10, 7.0, 0.7, FACTORS, 0.9))  # exactly at the border
    assert test.bad
    for _ in range(40):
        test.take(*ratios_of(10, 9.0, 0.7, FACTORS, 0.9))
    assert not test.bad


@pytest.mark.parametrize("n", [1.0, 30.0, 1e6])
def test_a_lower_bound_lies_between_nothing_and_the_mean(n: float) -> None:
    for mean in (0.0, 0.01, 0.5, 1.0):
        assert 0.0 <= lower_bound(n, n * mean) <= mean + 1e-12


def test_a_monitor_goes_on_as_it_was_after_a_dump() -> None:
    monitor = Monitor(5.0)
    monitor.mark("arm collapsed", "DE", "a")
    monitor.lags.counts[7] = 3.0
    monitor.share.add(10.0, 9.0)
    again = Monitor.load(monitor.dump(), 9.0)
    assert again.cursor == 9.0
    assert again.dump() == monitor.dump()
    assert [each[:3] for each in again.verdicts()] == [("arm collapsed", "DE", "a")]
