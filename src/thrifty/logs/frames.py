"""Frames and tables in memory as polars frames: polars, pandas, Arrow, and whatever else speaks the Arrow interface."""

from typing import TYPE_CHECKING, Any

import numpy as np

from thrifty.logs.polars_extra import first_line, require_polars

if TYPE_CHECKING:
    import polars


def frame_of(source: Any) -> tuple["polars.LazyFrame", int]:
    """`source` as a lazy frame, and its rows: a polars frame (lazy or not), a pandas frame, or an Arrow table or stream.

    >>> import pandas
    >>> frame, rows = frame_of(pandas.DataFrame({"at": pandas.to_datetime(["2026-01-31 10:00+01:00"])}))
    >>> frame.collect()["at"].dt.to_string().item(), rows
    ('2026-01-31 09:00:00.000000+00:00', 1)
    """
    pl = require_polars()
    if isinstance(source, pl.LazyFrame):
        try:
            return source, int(source.select(pl.len()).collect(engine="streaming").item())
        except (pl.exceptions.PolarsError, OSError) as error:
            raise ValueError(f"cannot read the lazy frame: {first_line(error)}") from None
    if isinstance(source, pl.DataFrame):
        return source.lazy(), source.height
    if _is_pandas(source) and hasattr(source, "iloc") and hasattr(source, "columns"):
        frame = _from_pandas(source)
    elif hasattr(source, "__arrow_c_stream__") and not _is_pandas(source):
        try:
            frame = pl.DataFrame(source)
        except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
            raise ValueError(f"cannot read the {type(source).__name__}: {first_line(error)}") from None
    else:
        shown = repr(source).splitlines()[0]
        raise ValueError(
            f"a log is a path, a polars or pandas frame, an Arrow table or a Query, got {type(source).__name__}: {shown:.60}"
        )
    return frame.lazy(), frame.height


def _is_pandas(source: Any) -> bool:
    return type(source).__module__.split(".")[0] == "pandas"


def _from_pandas(source: Any) -> Any:
    pl = require_polars()
    names = [str(name) for name in source.columns]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise ValueError(f"the frame has {names.count(repeated)} columns named {repeated!r}: rename all but one")
    return pl.DataFrame([_column(name, source.iloc[:, place]) for place, name in enumerate(names)])


def _column(name: str, values: Any) -> "polars.Series":
    """A column of a pandas frame. What numpy has no plain type for goes as text."""
    pl = require_polars()
    kind = values.dtype
    if getattr(kind, "tz", None) is not None:
        plain = values.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
        return pl.Series(name, plain).dt.replace_time_zone("UTC")  # type: ignore[no-any-return]
    if isinstance(kind, np.dtype) and kind.kind in "biuf":
        return pl.Series(name, values.to_numpy())  # type: ignore[no-any-return]
    if isinstance(kind, np.dtype) and kind.kind == "M":
        return pl.Series(name, values.to_numpy().astype("datetime64[us]"))  # type: ignore[no-any-return]
    empty = values.isna().to_numpy()
    if getattr(kind, "kind", "O") in "biuf":  # pandas' own types, which have empty cells
        numbers = [None if missing else value for value, missing in zip(values.tolist(), empty, strict=True)]
        return pl.Series(name, numbers)  # type: ignore[no-any-return]
    texts = [None if missing else str(value) for value, missing in zip(values.tolist(), empty, strict=True)]
    return pl.Series(name, texts, dtype=pl.String)  # type: ignore[no-any-return]
