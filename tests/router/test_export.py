import csv
import json
from collections.abc import Iterator
from pathlib import Path

import polars
import pytest

from thrifty.cli.main import main
from thrifty.router import Router
from thrifty.router.export import COLUMNS, decisions, export_log
from thrifty.store import StoreError, open_store
from thrifty.store.log import CHANGE, DECISION, OUTCOME, Row
from thrifty.store.sqlite import SqliteStore


def test_the_export_has_propensities_eligible_sets_and_last_outcomes(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "r.db")
    router = Router({"a": 0.3, "b": 0.2}, 0.1, store=store, policy="uniform", name="sms")
    first, second = router.decide("DE", request_id="q"), router.decide(eligible=["a"])
    router.change("pause", "a")
    third = router.decide()
    router.record(first.id, status="failure")
    router.record(first.id, status="success", cost=0.4)
    router.record(third.id, status="void")
    lines = list(decisions(store.journal("sms"), "sms"))
    assert [(line.decision_id, line.segment, line.request_id) for line in lines] == [
        (first.id, "DE", "q"),
        (second.id, "", None),
        (third.id, "", None),
    ]
    assert [json.loads(line.eligible) for line in lines] == [{"a": 0.3, "b": 0.2}, {"a": 0.3}, {"b": 0.2}]
    assert [line.propensity for line in lines] == [first.propensity, 1.0, 1.0]
    assert [(line.outcome, line.reward, line.cost, line.void, line.corrections) for line in lines] == [
        ("corrected", 1.0, 0.4, False, 1),
        ("none", None, None, False, 0),
        ("recorded", None, 0.2, True, 0),
    ]
    assert {(line.router, line.alpha, line.policy, line.context) for line in lines} == {("sms", 0.1, "uniform", None)}
    assert export_log(lines, tmp_path / "log.csv") == 3
    rows = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    assert list(rows[0]) == list(COLUMNS)
    assert [(row["reward"], row["void"]) for row in rows] == [("1.0", "false"), ("", "false"), ("", "true")]
    assert export_log(lines, tmp_path / "log.parquet") == 3
    frame = polars.read_parquet(tmp_path / "log.parquet")
    assert [tuple(row) for row in frame.rows()] == [tuple(line) for line in lines]
    with pytest.raises(ValueError, match=r"must end in .csv or .parquet"):
        export_log(lines, tmp_path / "log.txt")
    router.close()
    store.close()


def test_the_page_describes_every_column() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "log-columns.md").read_text()
    assert [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")] == list(COLUMNS)


class Pages:
    """A journal whose rows come from nowhere, so that only the export can hold them."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows

    def end(self) -> int:
        return len(self.rows)

    def scan(self, upto: int) -> Iterator[tuple[int, Row]]:
        return enumerate(self.rows[:upto], start=1)

    def outcomes(self, replica: int, first: int, last: int, *, upto: int) -> list[tuple[int, Row]]:
        rows = [(position, row) for position, row in self.scan(upto) if row.kind == OUTCOME and row.replica == replica]
        return [(position, row) for position, row in rows if first <= row.sequence <= last]


def test_outcomes_before_and_after_pruning_and_a_late_default_are_told_apart() -> None:
    created = json.dumps({"arms": {"a": 1.0}, "settings": {"alpha": 0.2, "policy": "cs-ts"}})
    rows = [
        Row(CHANGE, 0, 0, 1.0, None, None, None, None, None, "create", created),
        Row(OUTCOME, 0, 1, 2.0, None, None, "a", 1.0, 1.0, "recorded", None),  # its decision was pruned
        Row(DECISION, 0, 2, 3.0, "", None, "a", 1.0, 1.0, "only", '{"context": {"hour": 3}, "degraded": true}'),
        Row(DECISION, 1, 2, 3.5, "", None, "a", None, 1.0, "only", None),
        Row(OUTCOME, 0, 2, 4.0, None, None, "a", 0.5, 1.0, "recorded", None),
        Row(OUTCOME, 0, 2, 5.0, None, None, "a", 0.0, 1.0, "default", None),  # another replica's, too late to count
        Row(OUTCOME, 1, 2, 6.0, None, None, "a", None, 1.0, "default", None),
    ]
    first, second = decisions(Pages(rows), "x")  # type: ignore[arg-type]
    assert (first.decision_id, first.outcome, first.reward, first.outcome_at) == ("x.0.2", "recorded", 0.5, 4.0)
    assert (first.context, first.degraded, first.alpha) == ('{"hour": 3}', True, 0.2)
    assert (second.decision_id, second.outcome, second.reward, second.void, second.propensity) == (
        "x.1.2",
        "default",
        None,
        False,
        None,
    )


def test_parquet_is_written_in_parts_and_an_empty_log_has_the_columns_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thrifty.router.export.CHUNK", 3)
    rows = [Row(DECISION, 0, n, float(n), "s", None, "a", 0.5, 1.0, "explore", None) for n in range(10)]
    assert export_log(decisions(Pages(rows), "x"), tmp_path / "l.parquet") == 10  # type: ignore[arg-type]
    assert polars.read_parquet(tmp_path / "l.parquet")["at"].to_list() == [float(n) for n in range(10)]
    assert export_log([], tmp_path / "none.parquet") == 0
    assert polars.read_parquet(tmp_path / "none.parquet").columns == list(COLUMNS)
    assert {path.name for path in tmp_path.iterdir()} == {"l.parquet", "none.parquet"}


def test_the_command_reads_beside_a_running_router(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path / 'r.db'}"
    with Router({"a": 0.3}, 0.1, store=url, policy="uniform", name="sms") as router:
        for _ in range(3):
            router.decide()
        assert main(["export", url, "--out", str(tmp_path / "log.csv")]) == 0
        assert capsys.readouterr().out.startswith("3 decisions written to")
        assert main(["export", url, "--router", "mail", "--out", str(tmp_path / "log.csv")]) == 2
        assert "has no router 'mail'; it has sms" in capsys.readouterr().err
    assert main(["export", "sqlite:////nowhere/at/all.db", "--out", str(tmp_path / "log.csv")]) == 2
    assert "there is no store /nowhere/at/all.db" in capsys.readouterr().err
    assert main(["export", url, "--out", str(tmp_path / "no" / "log.csv")]) == 2
    words = f"cannot write {tmp_path / 'no' / 'log.csv'}: there is no folder {tmp_path / 'no'}; name another file with --out"
    assert capsys.readouterr().err == f"thrifty export: {words}\n"


def test_a_store_that_was_opened_for_reading_does_not_write(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "r.db").close()
    store = open_store(f"sqlite:///{tmp_path / 'r.db'}", reading=True)
    with pytest.raises(StoreError, match="opened for reading"):
        store.add_key("d", "n", "admin")
    store.close()


def test_pages_and_gaps_of_numbers_lose_no_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thrifty.router.export.PIECE", 4)
    monkeypatch.setattr("thrifty.router.export.LONGEST_GAP", 2)
    numbers = [(0, 1), (1, 1), (0, 2), (0, 9), (1, 7), (0, 3), (0, 30), (1, 8), (1, 2)]
    rows = [Row(DECISION, *key, 1.0, "s", None, "a", 0.5, 1.0, "explore", None) for key in numbers]
    rows += [Row(OUTCOME, *key, 2.0, None, None, "a", key[0] / 2 + key[1] / 64, 1.0, "recorded", None) for key in numbers[::-1]]
    lines = list(decisions(Pages(rows), "x"))  # type: ignore[arg-type]
    assert [line.decision_id for line in lines] == [f"x.{replica:x}.{sequence:x}" for replica, sequence in numbers]
    assert [line.reward for line in lines] == [replica / 2 + sequence / 64 for replica, sequence in numbers]
