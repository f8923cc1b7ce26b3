"""The store: a durable log that is the truth, and snapshots of its fold. It knows nothing of bandits."""

from typing import Any

from thrifty.store.row import CHANGE, DECISION, OUTCOME, Journal, Row, StoreError

__all__ = ["CHANGE", "DECISION", "OUTCOME", "Journal", "Row", "StoreError", "open_store"]


def open_store(url: str, *, reading: bool = False) -> Any:
    """The store that a URL names: sqlite:///FILE (relative), sqlite:////FILE (absolute). `reading`: beside whoever writes to it.

    >>> open_store("redis://localhost")
    Traceback (most recent call last):
    ValueError: store must be sqlite:///FILE, got 'redis://localhost'
    """
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        from thrifty.store.sqlite import SqliteStore

        return SqliteStore(url.removeprefix("sqlite:///"), reading=reading)
    raise ValueError(f"store must be sqlite:///FILE, got {url!r}")
