"""`thrifty backup` while a service decides: the copy opens, and has all that was answered before it began."""

import re
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.conftest import Service
from tests.service.test_http import SMS
from thrifty.cli.main import main
from thrifty.store import sqlite_backup
from thrifty.store.sqlite_schema import MIGRATIONS


def counts(url: str) -> tuple[int, int]:
    text = httpx.get(f"{url}/metrics").text
    found = [re.search(rf'^thrifty_{what}_total{{router="sms"}} ([0-9.e+]+)$', text, re.M) for what in ("decisions", "outcomes")]
    return int(float(found[0][1])), int(float(found[1][1]))  # type: ignore[index]


def keep_asking(url: str, ended: threading.Event, failed: list[Any]) -> None:
    with httpx.Client(base_url=url) as client:
        while not ended.is_set():
            made = client.post("/v1/decisions", json=[{"router": "sms", "segment": "DE"}] * 20)
            told = client.post("/v1/outcomes", json=[{"decision_id": each["decision_id"], "reward": 1} for each in made.json()])
            failed += [answer for answer in (made, told) if answer.status_code != 200]


def test_a_copy_under_load_opens_with_all_that_was_answered_before(
    launch: Callable[..., Service], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service, ended, failed = launch(), threading.Event(), list[Any]()
    httpx.put(f"{service.url}/v1/routers/sms", json={**SMS, "arms": {"a": 1.0, "b": 2.0}}, timeout=300)
    asking = threading.Thread(target=keep_asking, args=(service.url, ended, failed))
    asking.start()
    while counts(service.url)[1] < 200:
        time.sleep(0.05)
    for n in range(2):
        before = counts(service.url)
        assert main(["backup", service.store, str(tmp_path / f"copy{n}.db")]) == 0
        after = counts(service.url)
        assert re.fullmatch(r"[0-9,]+ rows of the log copied to .*\n", capsys.readouterr().out)
        with sqlite3.connect(tmp_path / f"copy{n}.db") as copy:
            in_copy = [copy.execute(f"SELECT count(*) FROM log WHERE kind = '{kind}'").fetchone()[0] for kind in "do"]
            assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert all(low <= found <= high for low, found, high in zip(before, in_copy, after, strict=True)), (before, in_copy, after)
    ended.set()
    asking.join()
    assert not failed
    restored = launch(store=f"sqlite:///{tmp_path / 'copy1.db'}")
    assert counts(restored.url) == tuple(in_copy)
    known = httpx.get(f"{restored.url}/v1/routers/sms/segments").json()["all"]["arms"]
    assert sum(arm["outcomes"] for arm in known) == in_copy[1]


def test_every_table_is_copied_or_left_out_for_a_reason() -> None:
    tables = set(re.findall(r"CREATE TABLE (\w+)", "".join(MIGRATIONS)))
    source = Path(sqlite_backup.__file__).read_text()
    copied = set(re.findall(r"INTO main\.(\w+)", source)) | set(sqlite_backup.SMALL)
    copied |= {table for table in tables if table.startswith("history")}  # which are copied at one moment
    assert copied | set(sqlite_backup.LEFT_OUT) == tables
