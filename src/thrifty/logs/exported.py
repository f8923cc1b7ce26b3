"""What `thrifty export` writes, and a store itself, as a log: docs/reference/log-columns.md describes the columns."""

import tempfile
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thrifty.logs.columns import Columns
from thrifty.logs.source import require_polars

if TYPE_CHECKING:
    import polars

_NAMES = frozenset(
    {"router", "decision_id", "at", "arm", "segment", "propensity", "price", "used_arm", "shadow", "outcome", "cost"}
)


def is_exported(names: list[str]) -> bool:
    """Whether a log with these columns was written by `thrifty export`."""
    return set(names) >= _NAMES


def fit_export(frame: "polars.LazyFrame", columns: Columns) -> tuple["polars.LazyFrame", Columns]:
    """The frame with the used arm and its cost in plain columns, and the columns to read.

    The arm is the one that the outcome is about. The arm of a shadow decision was chosen by the caller, not drawn, so propensities
    are used only if every row has one and no row is a shadow. If there are several routers, the router is the first part of the
    segment.
    """
    pl = require_polars()
    shadow = pl.col("shadow").cast(pl.String) == "true"
    used = pl.coalesce(_filled(pl, "used_arm"), pl.when(~shadow).then(_filled(pl, "arm")))
    other = (shadow | (used != _filled(pl, "arm"))).fill_null(True)
    propensity = _filled(pl, "propensity")
    facts = frame.select(routers=pl.col("router").n_unique(), drawn=(propensity.is_not_null() & ~other).all()).collect(
        engine="streaming"
    )
    segment = pl.col("segment").fill_null("")
    if facts["routers"].item() > 1:
        segment = pl.concat_str([pl.col("router"), segment], separator="/").str.strip_chars_end("/")
    fitted = frame.with_columns(arm=used, segment=segment, cost=pl.coalesce(_filled(pl, "cost"), _filled(pl, "price")))
    usual = {"segment": "segment", "id": "decision_id", "outcome_time": "outcome_at"}
    if facts["drawn"].item():
        usual["propensity"] = "propensity"
    given: dict[str, Any] = {meaning: getattr(columns, meaning) or name for meaning, name in usual.items()}
    return fitted, replace(columns, time="at", missing=columns.missing or "ignore", **given)


def _filled(pl: Any, name: str) -> Any:
    """The column as text, null where it is empty."""
    text = pl.col(name).cast(pl.String)
    return pl.when(text != "").then(text)


def unpack_store(url: str, router: str | None) -> Path:
    """Write the log of a store to a Parquet file in a new folder, which the caller must remove.

    A service may be running on the store.
    """
    from thrifty.router.export import decisions, export_log
    from thrifty.store import StoreError, open_store

    require_polars()
    path = Path(tempfile.mkdtemp(prefix="thrifty-replay-")) / "log.parquet"
    try:
        store = open_store(url, reading=True)
        try:
            names = store.logged()
            if not names or (router is not None and router not in names):
                raise ValueError(f"the store has no router {router or ''!r}; it has {', '.join(names) or 'none'}")
            wanted = names if router is None else [router]
            export_log(chain.from_iterable(decisions(store.journal(name), name) for name in wanted), path)
        finally:
            store.close()
    except (StoreError, OSError) as error:
        raise ValueError(str(error)) from None
    return path
