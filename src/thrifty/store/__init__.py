"""The store: a durable log that is the truth, and snapshots of its fold. It knows nothing of bandits."""

from typing import Any

from thrifty.store.log import CHANGE, DECISION, OUTCOME, Journal, Row, StoreError

__all__ = ["CHANGE", "DECISION", "OUTCOME", "Journal", "Row", "StoreError", "open_store"]


def open_store(url: str, *, reading: bool = False, degraded_s: float = 60.0) -> Any:
    """The store that a URL names: sqlite:///FILE (relative), sqlite:////FILE (absolute) or postgresql://USER@HOST/DATABASE.

    `reading` looks at it beside whoever writes to it. `degraded_s` is for how long decisions go on while PostgreSQL is away.

    >>> open_store("redis://localhost")
    Traceback (most recent call last):
    ValueError: store must be sqlite:///FILE or postgresql://USER@HOST/DATABASE, got 'redis://localhost'
    """
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        from thrifty.store.sqlite import SqliteStore

        return SqliteStore(url.removeprefix("sqlite:///"), reading=reading)
    if url.startswith(("postgresql://", "postgres://")):
        try:
            from thrifty.store.postgres import PostgresStore
        except ImportError as error:
            raise ValueError(f"PostgreSQL needs {error.name}: pip install 'thrifty[postgres]'") from None
        return PostgresStore(url, reading=reading, degraded_s=degraded_s)
    raise ValueError(f"store must be sqlite:///FILE or postgresql://USER@HOST/DATABASE, got {url!r}")
