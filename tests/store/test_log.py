from pathlib import Path

from tests.postgres import Postgres
from thrifty.store.log import Journal, Store
from thrifty.store.postgres import PostgresStore
from thrifty.store.sqlite import SqliteStore


def test_both_stores_keep_the_same_promises(tmp_path: Path, postgres: Postgres) -> None:
    """The type checker compares the signatures here; both begin empty and ready."""
    stores: list[Store] = [SqliteStore(tmp_path / "r.db"), PostgresStore(postgres.database())]
    for store in stores:
        journal: Journal = store.journal("sms")
        assert (store.routers(), store.logged(), store.keys(), store.turnover) == ([], [], [], 0)
        assert list(journal.scan()) == list(journal.read(0)) == []
        assert list(journal.snapshots()) == []
        assert journal.find(0, 1) == journal.recent(10, upto=5) == []
        assert journal.shared == store.shared
        assert store.check() == "ready"
        assert store.remove_keys("nobody") == 0
        store.close()
