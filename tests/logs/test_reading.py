"""Logs of every kind are read alike: CSV, JSONL, Parquet, frames, a store."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest

from tests.logs.logs import START, frame
from thrifty import Router
from thrifty.logs import Columns, Log, PriceList, aggregate, examine
from thrifty.logs.aggregates import C, N, R
from thrifty.logs.duplicates import SeenIds
from thrifty.store import open_store

COLUMNS = Columns(segment="segment", time="at", propensity="p")


def totals(source: Any, columns: Columns = COLUMNS) -> dict[tuple[str, str], list[float]]:
    sums = aggregate(Log(source, columns))
    return {
        (segment.name, arm): segment.totals[place, [N, R, C]].round(6).tolist()
        for segment in sums.segments
        for place, arm in enumerate(segment.arms)
    }


def test_every_format_gives_the_same_sums(tmp_path: Path) -> None:
    rows = frame(n=1000)
    expected = totals(rows)
    rows.write_csv(tmp_path / "a.csv")
    rows.write_csv(tmp_path / "a.tsv", separator="\t")
    rows.write_parquet(tmp_path / "a.parquet")
    rows.write_ndjson(tmp_path / "a.jsonl")
    for name in ("a.csv", "a.tsv", "a.parquet", "a.jsonl"):
        assert totals(tmp_path / name) == expected, name
    assert totals(rows.lazy()) == expected
    assert totals(pandas.DataFrame({name: rows[name].to_list() for name in rows.columns})) == expected


@pytest.mark.parametrize(
    "form",
    [
        "%Y-%m-%dT%H:%M:%S%.3f",
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M:%SZ",
        "%d.%m.%Y %H:%M:%S",
        "%Y-%m-%d %H:%M:%S,%3f",
        "%Y-%m-%dT%H:%M:%S,%6fZ",
    ],
)
def test_times_are_read_in_the_usual_spellings(form: str) -> None:
    rows = frame(n=1000).with_columns(at=polars.from_epoch((polars.col("at") * 1000).cast(polars.Int64), time_unit="ms"))
    sums = aggregate(Log(rows, COLUMNS))
    spelled = aggregate(Log(rows.with_columns(polars.col("at").dt.strftime(form)), COLUMNS))
    assert abs(sums.first - START) < 200
    assert abs(spelled.first - sums.first) <= 1.0
    assert spelled.rows == 1000


def test_milliseconds_since_1970_are_recognised() -> None:
    rows = frame(n=500)
    assert aggregate(Log(rows.with_columns(polars.col("at") * 1000), COLUMNS)).first == pytest.approx(
        aggregate(Log(rows, COLUMNS)).first, abs=1.0
    )


def test_statuses_and_truth_values_are_rewards() -> None:
    rows = frame(n=500)
    status = rows.with_columns(
        reward=polars.when(polars.col("reward") > 0).then(polars.lit("read")).otherwise(polars.lit("failed"))
    )
    assert totals(status, Columns(segment="segment", time="at", propensity="p", success=("read", "delivered"))) == totals(rows)
    words = rows.with_columns(reward=polars.when(polars.col("reward") > 0).then(polars.lit("true")).otherwise(polars.lit("False")))
    assert totals(words) == totals(rows)
    assert totals(rows.with_columns(polars.col("reward").cast(polars.Boolean))) == totals(rows)


def test_prices_by_arm_stand_in_for_costs_and_change_with_time(tmp_path: Path) -> None:
    rows = frame(n=2000, segments=1).drop("cost")
    middle = START + 43_200
    (tmp_path / "prices.csv").write_text(f"arm,price,from\ndear,0.3,\nfair,0.2,\ncheap,0.1,\ncheap,0.05,{middle}\n")
    (tmp_path / "columns.toml").write_text('segment = "segment"\ntime = "at"\nprices = "prices.csv"\n')
    sums = aggregate(Log(rows, Columns.load({}, file=tmp_path / "columns.toml"))).segments[0]
    cheap = rows.filter(arm="cheap")["at"].to_numpy()
    assert sums.totals[sums.arms.index("cheap"), C] == pytest.approx(np.where(cheap >= middle, 0.05, 0.1).sum())
    assert sums.totals[sums.arms.index("dear"), C] == pytest.approx(0.3 * rows.filter(arm="dear").height)


def test_a_price_of_one_segment_beats_the_general_one(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("arm,price,segment,from\na,1,,\na,2,DE,\na,3,DE,2026-01-02\n")
    prices = PriceList.load(str(tmp_path / "p.csv"))
    assert prices.at("FR", "a", np.array([0.0])).tolist() == [1.0]
    assert prices.at("DE", "a", np.array([0.0, 1_767_400_000.0])).tolist() == [2.0, 3.0]
    assert np.isnan(prices.at("DE", "b", np.array([0.0]))).all()


def test_prices_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes(b"\xef\xbb\xbfarm,price\na,1\n")
    assert PriceList.load(str(tmp_path / "p.csv")).at(None, "a", np.array([0.0])).tolist() == [1.0]


def test_settings_of_the_columns_file_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('arn = "route"\n')
    with pytest.raises(ValueError, match="no setting 'arn': did you mean arm"):
        Columns.load({}, file=path)
    path.write_text('arm = "route"\nsuccess = ["sent", "read"]\nmissing = "ignore"\n')
    assert Columns.load({"missing": "failure"}, file=path) == Columns(arm="route", success=("sent", "read"), missing="failure")
    with pytest.raises(ValueError, match="missing must be one of failure, ignore, censored"):
        Columns(missing="drop")


def test_a_long_log_keeps_its_repeated_ids_apart() -> None:
    seen = SeenIds(1024)
    first = np.arange(1, 5001, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    assert not seen.repeated(first).any()
    assert seen.repeated(first[-1000:]).all()
    assert not seen.repeated(first[:100]).any()  # longer ago than the memory reaches


def test_blocks_are_made_of_rows_where_times_do_not_tell_them_apart() -> None:
    rows = frame(n=1000).with_columns(at=polars.lit(START))
    sums = aggregate(Log(rows, COLUMNS))
    assert sums.by_rows
    assert sums.starts.size >= 100
    assert aggregate(Log(frame(n=1000), Columns(segment="segment"))).by_rows


def test_memory_does_not_depend_on_the_rows() -> None:
    few, many = (aggregate(Log(frame(n=n), COLUMNS)) for n in (500, 50_000))
    assert few.segments[0].sums.shape[1:] <= (256, 14)
    assert many.segments[0].sums.shape[1:] <= (256, 14)


def test_a_store_is_read_as_what_was_decided_and_came_back(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'routes.db'}"
    store = open_store(url)
    router = Router({"a": 1.0, "b": 0.5}, 0.1, policy="uniform", name="sms", store=store, seed=1)
    rng = np.random.default_rng(1)
    counts = {"a": 0, "b": 0}
    for number in range(400):
        choice = router.decide("DE" if number % 2 else "FR")
        counts[choice.arm] += 1
        if number < 390:
            router.record(choice.id, reward=float(rng.random() < 0.8))
    router.close()
    store.close()
    evidence = examine(Log(url, router="sms"))
    assert evidence.log.tally.rows == 400
    assert evidence.log.tally.left_out == {"no outcome": 10}
    assert {segment.name for segment in evidence.aggregates.segments} == {"DE", "FR"}
    assert evidence.aggregates.weighted
    with pytest.raises(ValueError, match="the store has no router 'mail'; it has sms"):
        Log(url, router="mail")
