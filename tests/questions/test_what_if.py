"""What if an arm had another price: the same as a log in which it had."""

import re

import polars
import pytest

from tests.questions.logs import frame
from thrifty.logs import Columns, Evidence, Log, examine, frontier
from thrifty.questions import with_prices

RATES = [[0.9, 0.88, 0.6], [0.5, 0.5, 0.7]]


def examined(rows: polars.DataFrame, *, weighted: bool) -> Evidence:
    return examine(Log(rows.with_columns(p=1 / 3), Columns(segment="segment", time="at", propensity="p" if weighted else None)))


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(("given", "price"), [(7.5, 7.5), ("-10%", 3.6), ("+50%", 6.0), ("0", 0.0)])
def test_estimates_are_those_of_a_log_with_these_prices(given: float | str, price: float, weighted: bool) -> None:
    rows = frame(RATES, 3000, 1)
    changed = rows.with_columns(cost=polars.when(polars.col("arm") == "Fir").then(price).otherwise(polars.col("cost")))
    asked, real = with_prices(examined(rows, weighted=weighted), {"Fir": given}), examined(changed, weighted=weighted)
    for one, other in zip(asked.estimates, real.estimates, strict=True):
        assert one.cost() == pytest.approx(other.cost())
        assert one.bound == pytest.approx(other.bound)
        assert (one.reward() == other.reward()).all()
    assert asked.today[1] == pytest.approx(real.today[1])


def test_a_cheaper_arm_is_chosen_at_a_smaller_alpha() -> None:
    evidence = examined(frame([[0.9, 0.88, 0.86]], 6000, 1), weighted=False)
    before, after = (frontier(each, [0.1]).points["arm"][0] for each in (evidence, with_prices(evidence, {"Elm": 0.5})))
    assert (before, after) == ("Oak", "Elm")


def test_wrong_prices_are_one_line() -> None:
    evidence = examined(frame(RATES, 600, 1), weighted=False)
    for prices, words in (
        ({"Elk": 1.0}, "the log has no arm 'Elk': did you mean Elm?"),
        ({"Elm": -1.0}, "the price of 'Elm' must be finite and not negative, or a change such as -10%, got '-1.0'"),
        ({"Elm": "cheap"}, "got 'cheap'"),
        ({"Elm": "-120%"}, "can change by -100% or more, got '-120%'"),
        ({"Elm": float("nan")}, "got 'nan'"),
        ({"Elm": "inf%"}, "got 'inf%'"),
    ):
        with pytest.raises(ValueError, match=re.escape(words)):
            with_prices(evidence, prices)
