"""Delays have the laws that they are called after."""

import math

import numpy as np
import pytest

from thrifty.arrays import Floats
from thrifty.compiled import builder
from thrifty.environments import Exponential, Feedback, HeavyTailed
from thrifty.environments.feedback import NEVER, FeedbackNumbers, draw_arrival
from thrifty.streams import Stream, make_streams

N = 200_000


@builder
def _delays(numbers: FeedbackNumbers, stream: Stream, n: int) -> Floats:
    return np.array([1.0 * (draw_arrival(numbers, 7, stream) - 7) for _ in range(n)])


def delays(feedback: Feedback) -> Floats:
    drawn: Floats = _delays(feedback.numbers, make_streams(3, np.array([[0]]))[0], N)
    return drawn


@pytest.mark.parametrize("share", [0.01, 0.25, 0.5, 0.9, 0.999])
@pytest.mark.parametrize(
    ("delay", "survival"),
    [
        (Exponential(100), lambda d: math.exp(-d / 100)),
        (HeavyTailed(100), lambda d: (1.0 + d / 50) ** -1.5),
        (HeavyTailed(30, tail=3.0), lambda d: (1.0 + d / 60) ** -3.0),
    ],
)
def test_as_many_delays_exceed_a_length_as_the_law_says(delay: Exponential | HeavyTailed, survival, share: float) -> None:  # type: ignore[no-untyped-def]
    drawn = delays(Feedback(delay))
    length = math.ceil(float(np.quantile(drawn, share)))
    expected = survival(length)
    # A delay in whole decisions is at least `length` when the one in fractions is. 5 standard errors: 6e-7.
    assert abs((drawn >= length).mean() - expected) < 5 * math.sqrt(expected * (1 - expected) / N) + 1e-12


def test_the_mean_delay_is_the_one_that_was_asked_for() -> None:
    # Rounding down takes off half a decision, within a thousandth; 5 standard errors.
    assert abs(delays(Feedback(Exponential(100))).mean() + 0.5 - 100) < 5 * 100 / math.sqrt(N) + 0.001


def test_the_longest_delays_and_lost_outcomes_are_whole_numbers() -> None:
    drawn = delays(Feedback(HeavyTailed(1e300, tail=1.01), lost=0.5))
    # 5 standard errors of a fair coin.
    assert abs((drawn == NEVER - 7).mean() - 0.5) < 5 * 0.5 / math.sqrt(N)
    assert (drawn[drawn < NEVER - 7] <= 2.0**60).all()
