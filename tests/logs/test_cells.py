"""Numbers, times, statuses and names as people write them: read right, asked about, or counted; never guessed."""

from pathlib import Path
from typing import Any

import polars
import pytest

from thrifty.logs import Columns, Log, aggregate
from thrifty.logs.aggregates import C

NOON = 1_769_860_800.0  # 2026-01-31 12:00 UTC


def log_of(column: str, values: list[Any], **settings: Any) -> Log:
    """A log of two arms in which one column repeats the values."""
    n = 40 * len(values)
    rows = {"arm": ["a", "b"] * (n // 2), "reward": ["1", "0"] * (n // 2), "cost": ["1"] * n, "at": ["2026-01-31"] * n}
    rows[column] = sorted(values * 40, key=lambda value: values.index(value))
    return Log(polars.DataFrame(rows), Columns(time="at", **settings), now=2e9)


@pytest.mark.parametrize(
    ("spelling", "decimal"),
    [
        ("1234.5", None),
        ("$1,234.50", None),
        ("1.234,50 €", None),
        ("1 234,5", None),
        ("1'234.5", None),
        ("EUR 1234,5", None),
        ("1234.50 USD", None),
        ("1,234.5", "point"),
        ("1234,5", "comma"),
        ("+1.2345e3", None),
    ],
)
def test_numbers_are_read_as_they_are_written(spelling: str, decimal: str | None) -> None:
    sums = aggregate(log_of("cost", [spelling], decimal=decimal))
    assert sums.segments[0].totals[:, C].sum() == pytest.approx(40 * 1234.5)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["1,234"], r"column 'cost' holds '1,234': is it 1.234 \(--decimal comma\) or 1234 \(--decimal point\)\?"),
        (["$1", "2 €"], "column 'cost' mixes \\$ and €: bring it to one currency first"),
        (["0,5", "0.5"], "holds '0,5', where the comma is the decimal sign, and '0.5', where the point is"),
    ],
)
def test_numbers_with_two_readings_are_asked_about(values: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        aggregate(log_of("cost", values))


def test_a_later_number_that_does_not_fit_is_counted() -> None:
    rows = polars.DataFrame({"arm": ["a", "b"] * 1000, "reward": [1, 0] * 1000, "cost": ["0,5"] * 1999 + ["$0,5"]})
    log = Log(rows)
    aggregate(log)
    assert log.tally.lines() == ["1 of 2,000 rows left out: cost is not a number (first in row 2,000, '$0,5')"]


@pytest.mark.parametrize(
    "spelling",
    [
        "2026-01-31T12:00:00",
        "2026-01-31 12:00:00.000",
        "2026-01-31 12:00",
        "2026-01-31T13:00:00+01:00",
        "2026-01-31 07:00:00 -0500",
        "2026-01-31 12:00:00 UTC",
        "2026/01/31 12:00",
        "31/01/2026 12:00",
        "01/31/2026 12:00:00 PM",
        "31.01.2026 12:00:00",
        "31-01-2026 12:00",
        "31 Jan 2026 12:00:00",
        "31/Jan/2026:13:00:00 +0100",
        "Sat, 31 Jan 2026 12:00:00 GMT",
        "1769860800",
        "1769860800000",
        "1769860800000000",
        "1769860800000000000",
    ],
)
def test_times_are_read_in_every_spelling(spelling: str) -> None:
    assert aggregate(log_of("at", [spelling])).first == NOON


def test_formats_and_zones_may_be_mixed() -> None:
    mixed = ["2026-01-31T12:00:00Z", "1769860800", "31.01.2026 12:00", "2026-01-31 14:00:00+02:00", "1769860800000"]
    log = log_of("at", mixed)
    sums = aggregate(log)
    assert log.tally.lines() == [
        "some times in 'at' have a zone and others have none, such as '31.01.2026 12:00': these are taken as UTC (--zone)"
    ]
    assert (sums.rows, sums.first, sums.last) == (200, NOON, NOON)


@pytest.mark.parametrize(
    ("settings", "spelling", "seconds"),
    [
        ({"zone": "Europe/Berlin"}, "2026-01-31 13:00", NOON),
        ({"zone": "Europe/Berlin"}, "2026-07-31 14:00", 1_785_499_200.0),
        ({"time_format": "day-first"}, "03/04/2026", 1_775_174_400.0),
        ({"time_format": "month-first"}, "03/04/2026", 1_772_582_400.0),
        ({"time_format": "%Y%m%d"}, "20260131", NOON - 43_200.0),
        ({"time_format": "s"}, "20260131", 20_260_131.0),
        ({"time_format": "ms"}, "1769860800", 1_769_860.8),
        ({"time_format": "%d.%m.%y %H:%M"}, "31.01.26 12:00", NOON),
    ],
)
def test_what_the_times_do_not_show_can_be_named(settings: dict[str, str], spelling: str, seconds: float) -> None:
    assert aggregate(log_of("at", [spelling], **settings)).first == seconds


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            ["03/04/2026"],
            r"column 'at' holds '03/04/2026': is it 3 April 2026 \(--time-format day-first\) or 4 March 2026 "
            r"\(--time-format month-first\)\?",
        ),
        (["13/04/2026", "04/13/2026"], "'13/04/2026', where the day is first, and '04/13/2026', where the month is"),
        (["20260131"], r"is it a date \(--time-format %Y%m%d\) or seconds since 1970 \(--time-format s\)\?"),
    ],
)
def test_times_with_two_readings_are_asked_about(values: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        aggregate(log_of("at", values))


def test_a_date_with_two_readings_far_down_is_counted_not_guessed() -> None:
    at = ["2026-01-31"] * 1999 + ["03/04/2026"]
    log = Log(
        polars.DataFrame({"arm": ["a", "b"] * 1000, "reward": [1, 0] * 1000, "cost": [1] * 2000, "at": at}), Columns(time="at")
    )
    aggregate(log)
    assert log.tally.left_out == {"time is not readable": 1}


def test_wrong_settings_are_refused_with_the_value() -> None:
    for settings, words in (
        ({"decimal": "dot"}, "--decimal must be comma or point, got 'dot'"),
        ({"time_format": "european"}, "--time-format must be day-first, month-first, s, ms, us, ns or a pattern"),
        ({"zone": "Berlin"}, "--zone must be the name of a time zone such as Europe/Berlin, got 'Berlin'"),
        ({"rare": -1}, "--rare must be a number of rows, got -1"),
        ({"within": "soon"}, "--within must be a time such as 60s, 5m or 1h, got 'soon'"),
        ({"within": "0s"}, "--within must be a time such as 60s, 5m or 1h, got '0s'"),
        ({"arm": 3}, "--arm must be the name of a column, got 3"),
        ({"segment": ""}, "--segment must name a column, or several separated by commas, got ''"),
        ({"chain": "customer"}, "chains of attempts need the time of every row"),
    ):
        with pytest.raises(ValueError, match=words):
            Columns(**settings)


def statuses(**settings: Any) -> Log:
    words = ["delivered"] * 3 + ["failed"]
    rows = {"arm": ["a", "b"] * 200, "status": words * 100, "cost": [1] * 400}
    return Log(polars.DataFrame(rows), Columns(reward="status", **settings))


def test_a_success_that_matches_nothing_is_refused_with_the_nearest_status() -> None:
    with pytest.raises(ValueError, match="--success 'deliverd' matches no row: did you mean 'delivered'"):
        aggregate(statuses(success="deliverd"))
    with pytest.raises(ValueError, match=r"column 'status' holds 'delivered' \(300\), 'failed' \(100\)"):
        aggregate(statuses(success=("xyz",)))
    with pytest.raises(ValueError, match="did you mean 'delivered'"):
        aggregate(statuses(success=("DELIVERED ",)))


def test_one_word_of_success_that_matches_nothing_is_pointed_out() -> None:
    log = statuses(success=("delivered", "faild"))
    aggregate(log)
    assert log.tally.lines() == ["no row has the status 'faild' of --success: did you mean 'failed'?"]


def test_statuses_and_arms_that_differ_by_case_or_spaces_are_pointed_out() -> None:
    arms = ["Alder", "alder ", "Birch", "Cedar"] * 100
    rows = {"arm": arms, "status": ["ok"] * 399 + ["OK"], "cost": [1] * 400}
    log = Log(polars.DataFrame(rows), Columns(reward="status", success=("ok",)))
    aggregate(log)
    assert log.tally.lines() == [
        "1 rows have the status 'OK', which differs from 'ok' only by case or spaces: "
        "they count as failures unless --success names it",
        "arms that differ only by case or spaces are taken as different: 'Alder' and 'alder '",
    ]


def test_a_log_without_any_outcome_is_refused() -> None:
    rows = polars.DataFrame({"arm": ["a", "b"] * 100, "reward": [None] * 200, "cost": [1] * 200})
    with pytest.raises(ValueError, match="no row has an outcome in column 'reward': name another with --reward"):
        aggregate(Log(rows))
    with pytest.raises(ValueError, match=r"^no row can be used: 200 of 200 rows left out: no outcome"):
        aggregate(Log(rows, Columns(missing="ignore")))


def test_spellings_of_no_value_are_empty_cells() -> None:
    reward = ["1", "NULL", "", "  ", "\\N"] * 40
    log = Log(polars.DataFrame({"arm": ["a", "b"] * 100, "reward": reward, "cost": [1] * 200}))
    aggregate(log)
    assert log.tally.no_outcome == 160


def test_several_columns_make_a_segment_and_rare_ones_are_pooled(tmp_path: Path) -> None:
    country = ["DE"] * 150 + ["FR"] * 46 + ["IT"] * 4
    operator = ["big"] * 100 + ["small", "tiny"] * 25 + ["big"] * 46 + [""] * 4
    rows = polars.DataFrame({"arm": ["a", "b"] * 100, "reward": [1] * 200, "cost": [1] * 200, "c": country, "o": operator})
    rows.write_csv(tmp_path / "a.csv")
    sums = aggregate(Log(tmp_path / "a.csv", Columns(segment="c,o")))
    assert {each.name: each.rows for each in sums.segments} == {
        "DE/big": 100, "DE/small": 25, "DE/tiny": 25, "FR/big": 46, "IT/(empty)": 4
    }  # fmt: skip
    log = Log(tmp_path / "a.csv", Columns(segment=("c", "o"), rare=40))
    assert {each.name: each.rows for each in aggregate(log).segments} == {"DE/big": 100, "DE/other": 50, "FR/big": 46, "other": 4}
    assert log.tally.lines() == ["3 of 5 segments have fewer than 40 rows and are pooled (54 rows, --rare): DE/other, other"]
    with pytest.raises(ValueError, match="no column 'op' for --segment: did you mean 'o'"):
        Log(tmp_path / "a.csv", Columns(segment="c,op"))


def test_beyond_five_thousand_segments_the_rare_ones_are_pooled_by_themselves() -> None:
    names = [f"s{number}" for number in range(6000)] + ["big"] * 2000
    rows = polars.DataFrame({"arm": ["a", "b"] * 4000, "reward": [1, 0] * 4000, "cost": [1] * 8000, "merchant": names})
    log = Log(rows, Columns(segment="merchant"))
    assert {each.name: each.rows for each in aggregate(log).segments} == {"big": 2000, "other": 6000}
    assert log.tally.lines() == ["6,000 of 6,001 segments have fewer than 60 rows and are pooled (6,000 rows, --rare): other"]
