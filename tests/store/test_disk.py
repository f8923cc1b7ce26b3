"""SQLite on a disk that is full, and on one that cannot be written: real file systems, where mounting is allowed."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.test_sqlite import ARMS, everything
from thrifty.cli.main import main
from thrifty.router import Router
from thrifty.store import StoreError, open_store
from thrifty.store.sqlite import SqliteStore


def _mount(*arguments: str) -> int:
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        code = _mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder))
    except FileNotFoundError:
        code = 1
    if code:
        pytest.skip("mounting a file system is not allowed here; the other tests pretend")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def open_router(store: SqliteStore) -> Router:
    return Router(ARMS, 0.1, store=store, policy="cs-ts", propensity_draws=0)


def test_a_disk_that_is_full_loses_nothing_and_counts_nothing_wrong(disk: Path) -> None:
    store = SqliteStore(disk / "r.db")
    router = open_router(store)
    done, failed = [], 0
    for n in range(20_000):
        try:
            done.append(router.decide("s" * 150 + str(n % 3)).id)
        except StoreError as error:
            failed += "full" in str(error) or "disk" in str(error)
            if failed == 5:
                break
    assert failed == 5
    assert sum(row[0] for row in router.statistics().values()) == len(done)
    with pytest.raises(StoreError):
        router.record(done[0], status="success")
    assert _mount("-o", "remount,size=16m", str(disk)) == 0
    assert [router.record(each, status="success") for each in done] == ["recorded"] * len(done)
    done.append(router.decide().id)
    before = everything(router)
    store.close()
    store = SqliteStore(disk / "r.db")
    again = open_router(store)
    assert everything(again) == before
    store.close()


def test_a_disk_that_cannot_be_written_is_a_clear_error_and_can_be_exported(
    disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Router(ARMS, 0.1, store=f"sqlite:///{disk / 'r.db'}", policy="cs-ts", propensity_draws=0) as router:
        router.decide()
    assert _mount("-o", "remount,ro", str(disk)) == 0
    with pytest.raises(StoreError, match=r"cannot open .*r.db: Read-only file system"):
        open_store(f"sqlite:///{disk / 'r.db'}")
    assert main(["export", f"sqlite:///{disk / 'r.db'}", "--out", str(tmp_path / "log.csv")]) == 0
    assert capsys.readouterr().out.startswith("1 decisions written")
