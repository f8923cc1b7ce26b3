"""Logs from anywhere: separators, encodings, compression, folders, pipes, queries and Arrow give the same rows."""

import functools
import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pytest
import zstandard

from tests.logs.logs import frame
from thrifty.cli.main import main
from thrifty.logs import Columns, Log, Query, aggregate, examine
from thrifty.logs.aggregates import C, N, R
from thrifty.logs.source import find_files
from thrifty.logs.unpacking import is_piped

COLUMNS = Columns(segment="segment", time="at", propensity="p")
ROWS = frame(n=400)


def totals(source: Any, columns: Columns = COLUMNS) -> dict[tuple[str, str], list[float]]:
    sums = aggregate(Log(source, columns))
    return {
        (segment.name, arm): segment.totals[place, [N, R, C]].round(6).tolist()
        for segment in sums.segments
        for place, arm in enumerate(segment.arms)
    }


TEXT = ROWS.write_csv()


@functools.cache
def expected() -> dict[tuple[str, str], list[float]]:
    return totals(ROWS)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_header_shows_the_separator(tmp_path: Path, separator: str) -> None:
    (tmp_path / "a.csv").write_text(ROWS.write_csv(separator=separator))
    assert totals(tmp_path / "a.csv") == expected()


def test_a_decimal_comma_and_a_currency_are_read(tmp_path: Path) -> None:
    cost = polars.format("{} €", polars.col("cost").cast(polars.String).str.replace(".", ",", literal=True))
    ROWS.with_columns(cost=cost).write_csv(tmp_path / "a.csv", separator=";")
    assert totals(tmp_path / "a.csv") == expected()


@pytest.mark.parametrize(
    ("encoding", "named"),
    [("utf-8-sig", None), ("utf-16", None), ("latin-1", "latin-1"), ("utf-16-le", "utf-16-le"), ("cp1252", "cp1252")],
)
def test_encodings_are_known_by_their_mark_or_named(tmp_path: Path, encoding: str, named: str | None) -> None:
    accented = TEXT.replace("dear", "cher\u00e9")
    (tmp_path / "a.csv").write_bytes(accented.encode(encoding))
    found = totals(tmp_path / "a.csv", Columns(segment="segment", time="at", propensity="p", encoding=named))
    assert found == {(segment, arm.replace("dear", "cher\u00e9")): sums for (segment, arm), sums in expected().items()}


def test_an_encoding_that_is_not_named_or_wrong_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT.replace("cheap", "g\u00fcnstig").encode("latin-1"))
    with pytest.raises(ValueError, match=r"the byte 0xfc in line \d+ is not UTF-8: name the encoding, such as --encoding latin-1"):
        Log(path, COLUMNS)
    with pytest.raises(ValueError, match="--encoding must be an encoding such as latin-1, cp1252 or utf-16, got 'klingon'"):
        Log(path, Columns(encoding="klingon"))
    with pytest.raises(ValueError, match="is not ascii"):
        Log(path, Columns(encoding="ascii"))
    path.write_bytes(TEXT.encode("utf-16-be"))
    with pytest.raises(ValueError, match="UTF-16 without a byte order mark: name it with --encoding"):
        Log(path, COLUMNS)


def test_compressed_files_are_read_and_cut_ones_refused(tmp_path: Path) -> None:
    packed = {"a.csv.gz": gzip.compress(TEXT.encode()), "a.csv.zst": zstandard.compress(TEXT.encode())}
    packed["a.jsonl.gz"] = gzip.compress(ROWS.write_ndjson().encode())
    for name, content in packed.items():
        (tmp_path / name).write_bytes(content)
        assert totals(tmp_path / name) == expected(), name
        (tmp_path / name).write_bytes(content[: len(content) // 2])
        with pytest.raises(ValueError, match=r"cannot unpack .*cut off or is not (gzip|zstd); make it again"):
            Log(tmp_path / name, COLUMNS)
    (tmp_path / "a.csv.zst").write_bytes(zstandard.compress(TEXT[:1000].encode()) + zstandard.compress(TEXT[1000:].encode()))
    assert totals(tmp_path / "a.csv.zst") == expected()


def test_a_compressed_file_is_called_by_its_own_name(tmp_path: Path) -> None:
    """Not by that of the plain copy in a temporary folder."""
    for content, words in (
        (b"", r"^\S+/a\.csv\.gz is empty: it has no header$"),
        (gzip.compress(TEXT.encode()), r"^\S+/a\.csv\.gz is compressed twice: decompress it once$"),
        (b"arm\n\xfc\n", r"^\S+/a\.csv\.gz: the byte 0xfc in line 2 is not UTF-8"),
        (b'arm\n"b\n', r"^\S+/a\.csv\.gz: the quote that opens a field in line 2 is never closed"),
    ):
        (tmp_path / "a.csv.gz").write_bytes(gzip.compress(content))
        with pytest.raises(ValueError, match=words) as caught:
            Log(tmp_path / "a.csv.gz", COLUMNS)
        assert "thrifty-log-" not in str(caught.value)


def test_endings_may_be_upper_case(tmp_path: Path) -> None:
    (tmp_path / "A.CSV.GZ").write_bytes(gzip.compress(TEXT.encode()))
    assert totals(tmp_path / "A.CSV.GZ") == expected()
    (tmp_path / "A.JSONL").write_text(ROWS.write_ndjson())
    assert totals(tmp_path / "A.JSONL") == expected()


def test_json_lines_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + ROWS.write_ndjson().encode())
    assert totals(tmp_path / "a.jsonl") == expected()


@pytest.mark.parametrize("name", ["done", "d\u00f6ne", 'd"ne'])
def test_json_lines_may_leave_out_what_is_not_known_yet(tmp_path: Path, name: str) -> None:
    """Also in all of the first 1,000 lines."""
    lines = [{"arm": "ab"[place % 2], "cost": 0.1, **({name: 1} if place >= 1200 else {})} for place in range(1500)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert totals(tmp_path / "a.jsonl", Columns(reward=name)) == {("all", arm): [750, 150, 75] for arm in "ab"}
    with pytest.raises(ValueError, match="no column 'gone' for --reward"):
        Log(tmp_path / "a.jsonl", Columns(reward="gone"))


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_patterns_folders_and_hive_partitions_are_one_log(tmp_path: Path, kind: str) -> None:
    write: dict[str, Callable[[polars.DataFrame, Path], Any]] = {
        "csv": polars.DataFrame.write_csv,
        "parquet": polars.DataFrame.write_parquet,
        "jsonl": polars.DataFrame.write_ndjson,
    }
    for segment in ("s0", "s1"):
        folder = tmp_path / "logs" / f"segment={segment}"
        folder.mkdir(parents=True)
        mine = ROWS.filter(segment=segment).drop("segment")
        for part in range(2):
            write[kind](mine[part * mine.height // 2 : (part + 1) * mine.height // 2], folder / f"part-{part}.{kind}")
    (tmp_path / "logs" / "_SUCCESS").touch()
    assert totals(tmp_path / "logs") == expected()
    assert totals(str(tmp_path / "logs" / "*" / f"*.{kind}")) == expected()
    (tmp_path / "logs" / "notes.md").write_text("a note")
    log = Log(tmp_path / "logs", COLUMNS)
    aggregate(log)
    assert "1 files are not logs and were not read: notes.md" in log.tally.lines()


def test_folders_that_are_no_log_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no log: a log ends in"):
        Log(tmp_path)
    (tmp_path / "a.csv").write_text("arm,reward,cost\na,1,1\n")
    (tmp_path / "b.jsonl").write_text('{"arm": "a"}\n')
    with pytest.raises(ValueError, match=r"several kinds \(csv, jsonl\): name one kind"):
        Log(tmp_path)
    (tmp_path / "b.jsonl").unlink()
    (tmp_path / "b.csv").write_text("arm,reward\na,1\n")
    with pytest.raises(ValueError, match=r"b\.csv: no column 'cost' for --cost"):
        Log(tmp_path)
    with pytest.raises(ValueError, match="no file matches"):
        Log(str(tmp_path / "*.tsv"))


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "arrow"])
def test_signs_of_patterns_in_the_name_of_a_file_mean_themselves(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"log [1] {{*}}.{kind}"
    write: dict[str, Any] = {
        "csv": ROWS.write_csv,
        "parquet": ROWS.write_parquet,
        "jsonl": ROWS.write_ndjson,
        "arrow": ROWS.write_ipc,
    }
    write[kind](path)
    assert totals(path) == expected()


def test_files_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        (tmp_path / f"part-{number}.csv").write_text("x")
    assert [path.stem for path in find_files(str(tmp_path))[0]] == ["part-1", "part-2", "part-10"]


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "csv.zst", "jsonl", "parquet"])
def test_what_is_piped_in_is_recognised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str) -> None:
    ROWS.write_parquet(tmp_path / "a.parquet")
    content = {
        "csv": TEXT.encode(),
        "csv.gz": gzip.compress(TEXT.encode()),
        "csv.zst": zstandard.compress(TEXT.encode()),
        "jsonl": ROWS.write_ndjson().encode(),
        "parquet": (tmp_path / "a.parquet").read_bytes(),
    }[kind]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert totals("-") == expected()
    assert not is_piped(tmp_path / "a.parquet")


def test_a_closed_standard_input_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match=r"^the log is - and nothing is piped in: pipe a log in, or name a file$"):
        totals("-")


def test_a_ragged_line_is_counted_with_its_number(tmp_path: Path) -> None:
    lines = TEXT.splitlines()
    lines[7] += ",too,many"
    lines[9] = ",".join(lines[9].split(",")[:4])
    lines[11] = ""
    (tmp_path / "a.csv").write_text("\n".join(lines))
    log = Log(tmp_path / "a.csv", COLUMNS)
    assert aggregate(log).rows == 397
    assert log.tally.left_out == {"ragged line": 2, "blank line": 1}
    assert log.tally.lines()[0] == "2 of 400 rows left out: ragged line (first in row 7, 'line 8 has 8 fields')"


def test_broken_text_files_are_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for text, words in (
        ('arm,reward,cost\na,1,1\nb,"1,1\n', r"the quote that opens a field in line 3 is never closed"),
        ('arm,reward,cost\na,1,1\nb"x,1,1\n', "line 3 has a quote inside a field"),
        ("arm,reward,cost\ra,1,1\r", "lines end with a carriage return alone"),
        ("arm,cost,reward,cost\na,1,1,1\n", "has 2 columns named 'cost': rename all but one"),
    ):
        path.write_text(text, newline="")
        with pytest.raises(ValueError, match=words):
            Log(path)
    (tmp_path / "a.jsonl").write_text('{"arm": "a", "reward": 1, "cost": 1}\nnot json\n')
    with pytest.raises(ValueError, match="line 2 is not a JSON object, 'not json': correct or remove it"):
        aggregate(Log(tmp_path / "a.jsonl"))
    path.write_text("arm,reward,cost\na,1,1\n")
    with pytest.raises(ValueError, match=r"--separator must be one sign such as , ; \| \^, a space or tab, got 'x'"):
        Log(path, Columns(separator="x"))


def test_a_query_reads_a_duckdb_file_and_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TEXT)
    with duckdb.connect(str(tmp_path / "log.duckdb")) as connection:
        connection.execute(f"create table log as select * from '{tmp_path / 'a.csv'}'")
    assert totals(Query("select * from log;", str(tmp_path / "log.duckdb"))) == expected()
    assert totals(Query(f"select * from '{tmp_path / 'a.csv'}'")) == expected()
    for query, words in (
        (Query("select nothing from log", str(tmp_path / "log.duckdb")), "failed: Binder Error"),
        (Query("drop table log", str(tmp_path / "log.duckdb")), "--query must be one select, got 'drop table log'"),
        (Query(f"copy (select 1) to '{tmp_path / 'out.csv'}'"), "--query must be one select"),
        (Query("select 1; select 2"), "--query must be one select"),
        (Query(""), "--query must be one select, got ''"),
        (Query("select * from log", str(tmp_path / "none.duckdb")), "there is no such DuckDB file"),
        (Query("select * from log", str(tmp_path / "a.csv")), "failed: "),
    ):
        with pytest.raises(ValueError, match=words):
            Log(query, COLUMNS)
    assert not (tmp_path / "out.csv").exists()


def test_a_query_on_the_command_line_stands_in_for_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text(TEXT)
    query = f"select arm, reward, cost from '{tmp_path / 'a.csv'}'"
    assert main(["replay", "--query", query, "--policies", "none"]) == 0
    assert "400 rows that count" in capsys.readouterr().out
    for flags, words in (
        (["a.csv", "--query", query], "name one log"),
        ([], "name one log"),
        (["a.csv", "--from", "x.duckdb"], "--from names the file of a --query"),
    ):
        assert main(["replay", *flags]) == 2
        assert words in capsys.readouterr().err


class ArrowTable:
    """Anything that speaks the Arrow interface, such as a pyarrow table."""

    def __init__(self, rows: polars.DataFrame) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)


def test_lists_and_records_are_no_values() -> None:
    rows = polars.DataFrame({"arm": [["a"], ["b"]], "reward": [1, 0], "cost": [{"net": 1}, {"net": 2}]})
    with pytest.raises(ValueError, match=r"column 'arm' holds List\(String\), and one value a row is needed"):
        aggregate(Log(rows))
    with pytest.raises(ValueError, match="column 'cost' holds Struct"):
        aggregate(Log(rows.with_columns(arm=polars.Series(["a", "b"]))))


def test_arrow_tables_and_files_are_read(tmp_path: Path) -> None:
    assert totals(ArrowTable(ROWS)) == expected()
    ROWS.write_ipc(tmp_path / "a.arrow")
    assert totals(tmp_path / "a.arrow") == expected()
    with pytest.raises(ValueError, match="a log is a path, a polars or pandas frame, an Arrow table or a Query, got dict"):
        Log({"arm": ["a"]})
    with pytest.raises(ValueError, match="cannot read the lazy frame"):
        Log(polars.scan_csv(tmp_path / "none.csv"))
    with pytest.raises(ValueError, match=r"a query must be text such as 'select \* from log', got 3"):
        Query(3)  # type: ignore[arg-type]


def test_pandas_frames_keep_zones_empty_cells_and_whole_numbers() -> None:
    at = pandas.to_datetime(pandas.Series(ROWS["at"].to_list()), unit="s", utc=True).dt.tz_convert("Asia/Tokyo")
    rows = {name: pandas.Series(ROWS[name].to_list()) for name in ("segment", "arm", "reward", "cost", "p")}
    rows["segment"] = rows["segment"].astype("category")
    rows["reward"] = rows["reward"].astype("Int64")
    assert totals(pandas.DataFrame({**rows, "at": at})) == expected()
    mixed = at.map(lambda moment: moment.isoformat()).astype(object)
    assert totals(pandas.DataFrame({**rows, "at": mixed})) == expected()
    numbered = pandas.DataFrame({"arm": [1, 2] * 50, "reward": pandas.array([1, None] * 50, "Int64"), "cost": [1.0] * 100})
    evidence = examine(Log(numbered))
    assert evidence.aggregates.arms == ("1", "2")
    assert evidence.log.tally.no_outcome == 50
    twice = pandas.DataFrame(np.ones((2, 2)), columns=["arm", "arm"])
    with pytest.raises(ValueError, match="the frame has 2 columns named 'arm': rename all but one"):
        Log(twice)


def test_a_database_that_cannot_be_reached_is_one_line_without_its_password() -> None:
    """Without a network DuckDB's extension is missing; with one, nothing answers at port 1."""
    with pytest.raises(
        ValueError, match=r"--from postgresql://\.\.\. needs DuckDB's extension postgres|--query .* failed: "
    ) as caught:
        Log(Query("select * from log", "postgresql://me:secret@127.0.0.1:1/shop"))
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", ["s3://logs/day.parquet", Query("select 1", "s3://logs/day.parquet")])
def test_files_elsewhere_are_refused_with_the_query_that_reads_them(source: str | Query) -> None:
    with pytest.raises(ValueError, match=r"--query \"select \* from read_parquet\('s3://logs/day.parquet'\)\""):
        Log(source)


@pytest.mark.parametrize("source", [pandas.Series([1, 2]), np.ones((3, 3))])
def test_what_is_no_table_is_refused_in_one_line(source: Any) -> None:
    with pytest.raises(ValueError, match=r"^a log is a path, a polars or pandas frame, an Arrow table or a Query, got \w+: .*$"):
        Log(source)


@pytest.mark.parametrize("kind", ["uuid", "interval", "hugeint", "timetz", "bit"])
def test_a_query_may_have_columns_of_types_that_only_databases_have(kind: str) -> None:
    """They are read as text, whether they are named or not: an id is often a UUID."""
    values = {
        "uuid": "('00000000-0000-0000-0000-00000000000' || range % 2)::uuid",
        "interval": "to_days((1 + range % 2)::int)",
        "hugeint": "(range % 2 + 10)::hugeint",
        "timetz": "('10:0' || range % 2 || ':00+00')::timetz",
        "bit": "('1' || range % 2)::bit",
    }
    query = f'select {values[kind]} as "the ""arm", range % 3 > 0 as reward, 0.1 as cost from range(100)'
    found = totals(Query(query), Columns(arm='the "arm'))
    assert [sums[0] for sums in found.values()] == [50, 50]
    assert not any("." in arm for _, arm in found)


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        ("timestamp 'infinity'", "9223372036854775807 us since 1970"),
        ("timestamptz '-infinity'", "-9223372036854775807 us since 1970"),
        ("timestamp '0001-01-01'", "-62135596800000000 us since 1970"),
        ("date 'infinity'", "2147483647 days since 1970"),
    ],
)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_times_that_databases_write_for_none_are_counted_with_their_value(moment: str, shown: str, zone: str | None) -> None:
    query = (
        "select if(range % 2 = 0, 'a', 'b') as arm, range % 3 > 0 as reward, 0.1 as cost, "
        f"if(range = 7, {moment}, timestamp '2026-01-31' + to_minutes(range)) as moment from range(100)"
    )
    if "date" in moment:
        query = query.replace("timestamp '2026-01-31' + to_minutes(range)", "date '2026-01-31' + (range // 10)::int")
    log = Log(Query(query), Columns(time="moment", zone=zone))
    aggregate(log)
    assert log.tally.left_out == {"time is not readable": 1}
    assert log.tally.lines()[0] == f"1 of 100 rows left out: time is not readable (first in row 8, '{shown}')"
