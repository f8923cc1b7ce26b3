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
from thrifty.router import Router
from thrifty.store import open_store, sqlite_backup
from thrifty.store.sqlite_schema import MIGRATIONS


def counts(url: str) -> tuple[int, int]:
    text = httpx.get(f"{url}/metrics").text
    found = [re.search(rf'^thrifty_{what}_total{{router="sms"}} ([0-9.e+]+)$', text, re.M) for what in ("decisions", "outcomes")]
    return int(float(found[0][1])), int(float(found[1][1]))  # type: ignore[index]


class Load:
    """Decides and records until it is ended; counts what was answered."""

    def __init__(self, url: str) -> None:
        self._url, self._ended = url, threading.Event()
        self.answered, self.failed = (0, 0), list[Any]()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        with httpx.Client(base_url=self._url, timeout=60) as client:
            while not self._ended.is_set():
                made = client.post("/v1/decisions", json=[{"router": "sms", "segment": "DE"}] * 20)
                told = client.post("/v1/outcomes", json=[{"decision_id": each["decision_id"], "reward": 1} for each in made.json()])
                self.failed += [answer for answer in (made, told) if answer.status_code != 200]
                self.answered = self.answered[0] + 20, self.answered[1] + 20


def test_a_copy_under_load_opens_with_all_that_was_answered_before(
    launch: Callable[..., Service], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service = launch()
    httpx.put(f"{service.url}/v1/routers/sms", json={**SMS, "arms": {"a": 1.0, "b": 2.0}}, timeout=300)
    with Load(service.url) as load:
        while load.answered[1] < 200:
            time.sleep(0.05)
        for n in range(2):
            before = load.answered
            assert main(["backup", service.store, str(tmp_path / f"copy{n}.db")]) == 0
            after = counts(service.url)
            assert re.fullmatch(r"[0-9,]+ rows of the log copied to .*\n", capsys.readouterr().out)
            with sqlite3.connect(tmp_path / f"copy{n}.db") as copy:
                in_copy = [copy.execute(f"SELECT count(*) FROM log WHERE kind = '{kind}'").fetchone()[0] for kind in "do"]
                assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert all(low <= found <= high for low, found, high in zip(before, in_copy, after, strict=True))
    assert not load.failed
    store = open_store(f"sqlite:///{tmp_path / 'copy1.db'}")
    router = Router.reopen("sms", store)
    assert [router.counts[what] for what in ("decisions", "outcomes")] == in_copy
    assert sum(seen for _, seen, *_ in router.statistics("DE").values()) == in_copy[1]
    assert router.decide("DE").arm in ("a", "b")
    store.close()


def test_every_table_is_copied_or_left_out_for_a_reason() -> None:
    tables = set(re.findall(r"CREATE TABLE (\w+)", "".join(MIGRATIONS)))
    source = Path(sqlite_backup.__file__).read_text()
    copied = set(re.findall(r"INTO main\.(\w+)", source)) | set(sqlite_backup.SMALL)
    copied |= {table for table in tables if table.startswith("history")}  # which are copied at one moment
    assert copied | set(sqlite_backup.LEFT_OUT) == tables
