"""Logs elsewhere: a query reads S3, Iceberg and PostgreSQL through DuckDB's extensions, which come as Python packages."""

import io
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars
import psycopg
import pytest

from tests.logs.bucket import KEY_ID, serve_bucket
from tests.logs.test_sources import COLUMNS, ROWS, expected, totals
from tests.postgres import Postgres
from thrifty.logs import Log, Query, extensions

ICEBERG = Path(__file__).parent / "iceberg"


def parquet(rows: polars.DataFrame) -> bytes:
    rows.write_parquet(file := io.BytesIO())
    return file.getvalue()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    objects = {f"pay/day={number}/part.parquet": parquet(ROWS[200 * number :][:200]) for number in range(2)}
    with serve_bucket("logs", objects) as address:
        for name, value in {
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": "hush",
            "AWS_REGION": "eu-west-1",
            "DUCKDB_S3_ENDPOINT": address,
            "DUCKDB_S3_USE_SSL": "false",
        }.items():
            monkeypatch.setenv(name, value)
        yield


@pytest.mark.usefixtures("bucket")
def test_a_query_reads_the_files_of_an_s3_bucket() -> None:
    assert totals(Query("select * from read_parquet('s3://logs/pay/*/part.parquet?s3_url_style=path')")) == expected()


@pytest.mark.usefixtures("bucket")
def test_a_bucket_that_cannot_be_read_is_one_line_without_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for url, words in (
        ("s3://logs/none.parquet", "404"),
        ("s3://others/a.parquet", "404"),
        ("s3://logs/none*.parquet", "No files found that match the pattern"),
    ):
        with pytest.raises(ValueError, match=rf"^--query .* failed: .*{words}") as caught:
            Log(Query(f"select * from read_parquet('{url}?s3_url_style=path&s3_secret_access_key=hush')"), COLUMNS)
        assert "hush" not in str(caught.value)
        assert "\n" not in str(caught.value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "stranger")
    with pytest.raises(ValueError, match="403"):
        Log(Query("select * from read_parquet('s3://logs/pay/day=1/part.parquet?s3_url_style=path')"), COLUMNS)


def test_ctrl_c_leaves_a_query_that_waits_for_a_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        keys = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": "hush", "AWS_REGION": "eu-west-1"}
        address = {"DUCKDB_S3_ENDPOINT": f"127.0.0.1:{silent.getsockname()[1]}", "DUCKDB_S3_USE_SSL": "false"}
        query = "select * from read_parquet('s3://logs/pay/*/part.parquet?s3_url_style=path')"
        command = [sys.executable, "-m", "thrifty.cli", "frontier", "--query", query]
        with subprocess.Popen(command, env=os.environ | keys | address, stderr=subprocess.PIPE, text=True) as process:
            asked, _ = silent.accept()
            with asked:
                process.send_signal(signal.SIGINT)
                _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert error == "thrifty frontier: stopped\n"


def test_a_query_reads_an_iceberg_table_as_it_is_now() -> None:
    """Its last snapshot deleted 20 rows, which are still in one of its files."""
    version = next(ICEBERG.glob("metadata/*.metadata.json")).name.removesuffix(".metadata.json")
    query = f"select * from iceberg_scan('{ICEBERG}', allow_moved_paths => true, version => '{version}')"
    assert totals(Query(query)) == expected()


def test_an_iceberg_table_without_a_version_asks_for_it() -> None:
    with pytest.raises(ValueError, match=r"name the table's newest \.metadata\.json file in iceberg_scan"):
        Log(Query(f"select * from iceberg_scan('{ICEBERG}')"), COLUMNS)


def test_a_query_reads_a_postgresql_database_and_cannot_write(postgres: Postgres) -> None:
    url = postgres.database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create table log (segment text, arm text, reward float8, cost float8, at float8, p float8)")
        with connection.cursor().copy("copy log from stdin (format csv, header)") as copy:
            copy.write(ROWS.write_csv())
    assert totals(Query("select * from log", url)) == expected()
    with pytest.raises(ValueError, match=r"failed: Catalog Error: Table with name nothing does not exist"):
        Log(Query("select * from nothing", url), COLUMNS)


def test_an_extension_that_is_not_to_be_had_is_one_line_with_the_package_that_has_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No package, nothing in the home folder, and a folder of extensions that is a file: there can be no download either."""
    monkeypatch.setattr(extensions, "find_spec", lambda name: None)  # noqa: ARG005
    (tmp_path / ".duckdb").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    for query, database, words in (
        ("select * from read_parquet('s3://logs/a.parquet')", None, "^--query .* needs DuckDB's extension httpfs, which cannot be"),
        ("select * from iceberg_scan('log')", None, "pip install duckdb-extension-iceberg"),
        ("select * from log", "postgresql://me@db/shop", r"^--from postgresql://\.\.\. needs .* duckdb-extension-postgres-scanner"),
    ):
        with pytest.raises(ValueError, match=words) as caught:
            Log(Query(query, database), COLUMNS)
        assert str(caught.value).endswith("where there is a network, or copy the rows to a file here")
        assert "\n" not in str(caught.value)


def test_a_package_for_another_duckdb_names_the_one_it_is_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(duckdb, "__version__", "99.0.0")
    (tmp_path / ".duckdb").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ValueError, match=r"duckdb-extension-httpfs is for DuckDB 1[.\d]+ while 99.0.0 runs: pip install duckdb==1"):
        Log(Query("select * from 's3://logs/a.parquet'"), COLUMNS)
