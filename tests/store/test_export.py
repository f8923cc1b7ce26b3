import csv
import json
from pathlib import Path

import polars
import pytest

from thrifty.router import Router
from thrifty.store.export import COLUMNS, export_log
from thrifty.store.sqlite import SqliteStore


def test_the_export_has_propensities_eligible_sets_and_last_outcomes(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "r.db")
    router = Router({"a": 0.3, "b": 0.2}, 0.1, store=store, policy="uniform", name="sms")
    first, second = router.decide("DE"), router.decide(eligible=["a"])
    router.change("pause", "a")
    third = router.decide()
    router.record(first.id, status="failure")
    router.record(first.id, status="success", cost=0.4)
    router.record(third.id, status="void")
    assert export_log(store.journal("sms"), "sms", tmp_path / "log.csv") == 3
    rows = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    assert [row["decision_id"] for row in rows] == [first.id, second.id, third.id]
    assert [json.loads(row["eligible"]) for row in rows] == [{"a": 0.3, "b": 0.2}, {"a": 0.3}, {"b": 0.2}]
    assert [float(row["propensity"]) for row in rows] == [first.propensity, 1.0, 1.0]
    assert [(row["outcome"], row["reward"], row["cost"]) for row in rows] == [
        ("corrected", "1.0", "0.4"),
        ("", "", ""),
        ("recorded", "", "0.2"),
    ]
    export_log(store.journal("sms"), "sms", tmp_path / "log.parquet")
    frame = polars.read_parquet(tmp_path / "log.parquet")
    assert frame.columns == list(COLUMNS)
    assert frame["reward"].to_list() == [1.0, None, None]
    with pytest.raises(ValueError, match=r"must end in .csv or .parquet"):
        export_log(store.journal("sms"), "sms", tmp_path / "log.txt")
    router.close()
    store.close()
