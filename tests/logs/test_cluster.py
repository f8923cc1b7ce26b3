"""A log is summed up on a Dask cluster with the same bits as here."""

import pickle
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars
import pytest

from tests.logs.logs import frame
from tests.test_sweep import dask_cluster
from thrifty.cli.main import main
from thrifty.logs import Aggregates, Columns, Log, aggregate
from thrifty.logs import parts as parts_module
from thrifty.logs.partial_sums import PartTask, sum_part

COLUMNS = Columns(segment="segment", time="at", propensity="p")


def as_bytes(sums: Aggregates) -> list[bytes]:
    arrays = [[each.sums, each.p_min, each.cost_max, each.delays] for each in sums.segments]
    names = repr([(each.name, each.arms) for each in sums.segments])
    return [names.encode(), sums.starts.tobytes(), *(array.tobytes() for group in arrays for array in group)]


def write(folder: Path, parts: int = 5) -> polars.DataFrame:
    rows = frame(n=4000, segments=3).with_columns(cost=polars.col("cost") * 1.1)
    rows = rows.with_columns(arm=polars.when(polars.int_range(4000) == 2500).then(None).otherwise("arm"))
    rows = rows.with_columns(number=polars.int_range(4000) % 1000)  # each id comes four times, in different files
    folder.mkdir()
    for number in range(parts):
        rows[number * 4000 // parts : (number + 1) * 4000 // parts].write_parquet(folder / f"part-{number}.parquet")
    return rows


def test_a_cluster_gives_the_same_bytes_and_the_same_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = write(tmp_path / "log")
    here = Log(tmp_path / "log", COLUMNS)
    expected = aggregate(here)
    with dask_cluster(tmp_path, 2) as (address, _):
        there = Log(tmp_path / "log", COLUMNS, backend=f"dask://{address}")
        assert as_bytes(aggregate(there)) == as_bytes(expected)
        assert there.tally == here.tally
        assert there.tally.left_out == {"no arm": 1}
        assert (there.arms.names, there.segments.names) == (here.arms.names, here.segments.names)
        untimed = [Log(tmp_path / "log", Columns(segment="segment"), backend=each) for each in ("local", f"dask://{address}")]
        assert as_bytes(aggregate(untimed[0])) == as_bytes(aggregate(untimed[1]))
        columns = replace(COLUMNS, id="number")
        doubled = [Log(tmp_path / "log", columns, backend=each, tolerated=0.8) for each in ("local", f"dask://{address}")]
        assert as_bytes(aggregate(doubled[0])) == as_bytes(aggregate(doubled[1]))
        assert doubled[0].tally == doubled[1].tally
        assert doubled[0].tally.left_out == {"repeated id": 2999, "no arm": 1}
        flags = ["--segment", "segment", "--time", "at", "--policies", "none", "--backend", f"dask://{address}"]
        assert main(["replay", str(tmp_path / "log"), *flags]) == 0
        assert "3,999 rows that count" in capsys.readouterr().out
        rows.write_csv(tmp_path / "a.csv")
        for source, settings, words in (
            (tmp_path / "log", {"chain": "arm"}, "--chain needs all rows in one place"),
            (rows, {}, "a frame in memory cannot be summed up on a cluster"),
        ):
            with pytest.raises(ValueError, match=words):
                aggregate(Log(source, Columns(time="at", **settings), backend=f"dask://{address}"))  # type: ignore[arg-type]


def test_a_worker_that_dies_in_the_middle_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "log", parts=40)
    expected = aggregate(Log(tmp_path / "log", COLUMNS))
    with dask_cluster(tmp_path, 2) as (address, workers):
        aggregate(Log(tmp_path / "log", COLUMNS, backend=f"dask://{address}"))  # both workers have begun
        killed: list[int] = []

        def kill_one(rows: int) -> None:
            if not killed:
                killed.append(rows)
                workers[0].send_signal(signal.SIGKILL)
                workers[0].wait()

        found = aggregate(Log(tmp_path / "log", COLUMNS, backend=f"dask://{address}"), kill_one)
        assert killed == [100]
        assert workers[0].poll() == -signal.SIGKILL
        assert as_bytes(found) == as_bytes(expected)

        def kill_the_other(_rows: int) -> None:
            workers[1].send_signal(signal.SIGKILL)

        monkeypatch.setattr("thrifty.logs.partial_sums._LOOK_S", 0.2)
        monkeypatch.setattr("thrifty.logs.partial_sums._ALONE_S", 0.5)
        with pytest.raises(ValueError, match=r"has lost its workers: start some with `dask worker`, and ask again"):
            aggregate(Log(tmp_path / "log", COLUMNS, backend=f"dask://{address}"), kill_the_other)


def test_a_backend_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "log")
    for backend, words in (
        ("dask://", "backend must be local, dask or dask://host:port, got 'dask://'"),
        ("spark", "backend must be local, dask or dask://host:port, got 'spark'"),
        ("dask://127.0.0.1:9", "no Dask scheduler answers at 127.0.0.1:9"),
    ):
        assert main(["replay", str(tmp_path / "log"), "--backend", backend]) == 2
        err = capsys.readouterr().err
        assert words in err
        assert err.count("\n") == 1


def test_parts_of_a_long_file_add_up_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = write(tmp_path / "log", parts=1)
    whole = aggregate(Log(rows, COLUMNS, now=2e9))
    monkeypatch.setattr(parts_module, "PART_ROWS", 700)
    log = Log(tmp_path / "log", COLUMNS, now=2e9)
    split = aggregate(log)
    assert len(log.parts) == 6
    for one, other in zip(whole.segments, split.segments, strict=True):
        np.testing.assert_allclose(one.sums, other.sums, rtol=1e-12)
    assert split.tally.lines() == whole.tally.lines() == ["1 of 4,000 rows left out: no arm (first in row 2,501)"]


def test_a_task_and_its_result_can_be_sent(tmp_path: Path) -> None:
    write(tmp_path / "log")
    log = Log(tmp_path / "log", COLUMNS)
    task = pickle.loads(pickle.dumps(PartTask(log.parts[1], log.recipe, 800, by_rows=False, several=True)))
    found = pickle.loads(pickle.dumps(sum_part(task)))
    assert found.cells.rows == 800
    assert found.tally.rows == 800
