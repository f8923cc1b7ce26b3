"""The store: a durable append-only log of rows, snapshots of router states, and API keys. It knows nothing of bandits."""

from typing import Any

from thrifty.store.log import CHANGE, DECISION, OUTCOME, Journal, Row, StoredKey, StoreError

__all__ = ["CHANGE", "DECISION", "OUTCOME", "Journal", "Row", "StoreError", "StoredKey", "open_store"]


def open_store(url: str, *, reading: bool = False, degraded_s: float = 60.0, create: bool = True) -> Any:
    """Open the store that a URL names: sqlite:///FILE (relative), sqlite:////FILE (absolute) or postgresql://USER@HOST/DATABASE.

    Parameters
    ----------
    reading : open it for reading only, while others may write; it must exist
    degraded_s : for how long decisions are taken while PostgreSQL cannot be reached
    create : make the file or the tables if there are none; otherwise a StoreError

    >>> open_store("redis://localhost")
    Traceback (most recent call last):
    ValueError: store must be sqlite:///FILE or postgresql://USER@HOST/DATABASE, got 'redis://localhost'

    """
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        from thrifty.store.sqlite import SqliteStore

        return SqliteStore(url.removeprefix("sqlite:///"), reading=reading, create=create)
    if url.startswith(("postgresql://", "postgres://")):
        try:
            from thrifty.store.postgres import PostgresStore
        except ImportError as error:
            raise ValueError(f"PostgreSQL needs {error.name}: pip install 'thrifty[postgres]'") from None
        return PostgresStore(url, reading=reading, degraded_s=degraded_s, create=create)
    raise ValueError(f"store must be sqlite:///FILE or postgresql://USER@HOST/DATABASE, got {url!r}")
