"""What `thrifty export` writes, and a store itself, as a log: docs/reference/log-columns.md describes the columns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thrifty.logs.columns import Columns
from thrifty.logs.polars_extra import require_polars
from thrifty.logs.unpacking import in_a_query

if TYPE_CHECKING:
    import polars

_NAMES = frozenset(
    {"router", "decision_id", "at", "arm", "segment", "propensity", "price", "used_arm", "shadow", "outcome", "cost"}
)


def is_exported(names: list[str]) -> bool:
    """Whether a log with these columns was written by `thrifty export`."""
    return set(names) >= _NAMES


@dataclass(frozen=True)
class Export:
    """How an exported log is read: whether it is of several routers."""

    several_routers: bool

    def fit(self, frame: "polars.LazyFrame") -> "polars.LazyFrame":
        """The frame with the used arm and its cost in plain columns.

        The arm is the one that the outcome is about. If there are several routers, the router is the first part of the segment.
        """
        pl = require_polars()
        segment = pl.col("segment").fill_null("")
        if self.several_routers:
            segment = pl.concat_str([pl.col("router"), segment], separator="/").str.strip_chars_end("/")
        cost = pl.coalesce(_filled(pl, "cost"), _filled(pl, "price"))
        return frame.with_columns(arm=_used_arm(pl), segment=segment, cost=cost)


def fit_export(frames: Sequence["polars.LazyFrame"], columns: Columns) -> tuple[Export, Columns]:
    """How to read an exported log, and its columns.

    The arm of a shadow decision was chosen by the caller, not drawn, so propensities are used only if every row has one and no row
    is a shadow.
    """
    pl = require_polars()
    other = (_shadow(pl) | (_used_arm(pl) != _filled(pl, "arm"))).fill_null(True)
    drawn = _filled(pl, "propensity").is_not_null() & ~other
    has_segment = _filled(pl, "segment").is_not_null().any()
    wanted = {"routers": pl.col("router").unique().implode(), "drawn": drawn.all(), "has_segment": has_segment}
    facts = [frame.select(**wanted).collect(engine="streaming") for frame in frames]
    routers = {name for fact in facts for name in fact["routers"].item()}
    usual = {"id": "decision_id", "outcome_time": "outcome_at"}
    if len(routers) > 1 or any(fact["has_segment"].item() for fact in facts):
        usual["segment"] = "segment"
    if all(fact["drawn"].item() for fact in facts):
        usual["propensity"] = "propensity"
    given: dict[str, Any] = {meaning: getattr(columns, meaning) or name for meaning, name in usual.items()}
    return Export(len(routers) > 1), replace(columns, time="at", missing=columns.missing or "ignore", **given)


def _shadow(pl: Any) -> Any:
    return pl.col("shadow").cast(pl.String) == "true"


def _used_arm(pl: Any) -> Any:
    return pl.coalesce(_filled(pl, "used_arm"), pl.when(~_shadow(pl)).then(_filled(pl, "arm")))


def _filled(pl: Any, name: str) -> Any:
    """The column as text, null where it is empty."""
    text = pl.col(name).cast(pl.String)
    return pl.when(text != "").then(text)


def unpack_store(url: str, router: str | None, folder: Path) -> Path:
    """Write the log of a store to a Parquet file in the folder.

    A service may be running on the store.
    """
    from thrifty.router.export import decisions, export_log
    from thrifty.store import StoreError, open_store

    require_polars()
    if not url.startswith(("sqlite:", "postgresql:", "postgres:")):
        raise ValueError(f"{url!r:.200} is no store such as sqlite:///thrifty.db; {in_a_query(url)}")
    path = folder / "store.parquet"
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
