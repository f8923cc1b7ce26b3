"""Sums by the other columns of a log, for tests of confounding."""

import numpy as np
import polars
import pytest

from tests.logs.logs import frame
from thrifty.logs import Columns, Log, aggregate, context_columns, context_sums
from thrifty.logs.aggregates import C, N, R
from thrifty.logs.binning import EMPTY, OTHER
from thrifty.logs.context import HOUR

COLUMNS = Columns(segment="segment", time="at", propensity="p")


def with_context(n: int = 3000) -> polars.DataFrame:
    rng = np.random.default_rng(3)
    card = np.array(["visa", "amex", "", None, "rare1", "rare2"])[rng.choice(6, n, p=[0.5, 0.3, 0.1, 0.05, 0.03, 0.02])]
    return frame(n=n).with_columns(
        card=polars.Series(card, dtype=polars.String), amount=polars.Series(rng.exponential(50.0, n)), flag=rng.random(n) < 0.5
    )


def test_the_other_columns_and_the_hour_are_offered() -> None:
    assert context_columns(Log(with_context(), COLUMNS)) == ("card", "amount", "flag", HOUR)
    assert HOUR not in context_columns(Log(with_context()))


def test_sums_by_value_add_up_to_the_sums_of_the_log() -> None:
    log = Log(with_context(), COLUMNS)
    whole = {segment.name: segment for segment in aggregate(log).segments}
    for found in context_sums(log, [["card"], ["amount", "flag"], [HOUR]]):
        for name, (arms, sums) in found.segments.items():
            assert arms == whole[name].arms
            np.testing.assert_allclose(sums[:, :, [0, 1, 3]].sum(axis=1), whole[name].totals[:, [N, R, C]])


def test_frequent_values_numbers_and_empty_cells_have_cells_of_their_own() -> None:
    cards, amounts, hours = context_sums(Log(with_context(), COLUMNS), [["card"], ["amount"], [HOUR]], bins=2)
    assert cards.values == ("card = amex", "card = visa", f"card = {OTHER}", f"card = {EMPTY}")
    assert len(amounts.values) == 2
    halves = sum(each.sums[:, :, 0].sum(axis=0) for each in amounts.segments.values())
    assert abs(halves[0] - halves[1]) <= 1.0
    assert len(hours.values) == 2


def test_a_column_that_is_missing_or_has_a_meaning_is_refused() -> None:
    log = Log(with_context(), COLUMNS)
    with pytest.raises(ValueError, match="no column 'crad' to compare by: did you mean card"):
        context_sums(log, [["crad"]])
    with pytest.raises(ValueError, match="no column 'cost' to compare by"):
        context_sums(log, [["cost"]])
