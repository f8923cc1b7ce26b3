"""Sources: a file, a frame or a thrifty store as one lazy polars frame."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars

SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson")


def require_polars() -> Any:
    """polars, or a ValueError that says how to get it."""
    try:
        import polars
    except ImportError:
        raise ValueError("replay needs polars: pip install 'thrifty[replay]'") from None
    return polars


def scan(source: Any) -> "polars.LazyFrame":
    """`source` as a lazy frame: a path ending in .csv, .tsv, .parquet or .jsonl, a polars frame (lazy or not), or a pandas frame.

    Every column of a text file is read as text, so that an error can show a wrong value as it is in the file.

    >>> import polars
    >>> scan(polars.DataFrame({"arm": ["a"]})).collect_schema().names()
    ['arm']
    """
    pl = require_polars()
    if isinstance(source, pl.LazyFrame):
        return source  # type: ignore[no-any-return]
    if isinstance(source, pl.DataFrame):
        return source.lazy()  # type: ignore[no-any-return]
    if isinstance(source, (str, os.PathLike)):
        return _scan_file(pl, Path(source))
    if type(source).__module__.split(".")[0] == "pandas":
        return pl.DataFrame({str(name): source[name].to_numpy() for name in source.columns}).lazy()  # type: ignore[no-any-return]
    raise ValueError(f"a log is a path, a polars frame or a pandas frame, got {type(source).__name__}")


def _scan_file(pl: Any, path: Path) -> "polars.LazyFrame":
    if path.suffix not in SUFFIXES:
        raise ValueError(f"a log must end in {', '.join(SUFFIXES)}, or be a store such as sqlite:///thrifty.db; got {str(path)!r}")
    try:
        size = path.stat().st_size
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    if size == 0:
        raise ValueError(f"{path} is empty: it has no header")
    try:
        if path.suffix == ".parquet":
            frame = pl.scan_parquet(path)
        elif path.suffix in (".jsonl", ".ndjson"):
            schema = pl.scan_ndjson(path, infer_schema_length=1000).collect_schema()
            as_text = {name: pl.String for name, kind in schema.items() if not kind.is_nested()}
            frame = pl.scan_ndjson(path, infer_schema_length=1000, schema_overrides=as_text)
        else:
            frame = pl.scan_csv(path, infer_schema=False, separator="\t" if path.suffix == ".tsv" else ",")
        frame.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ValueError(f"cannot read {path} as {path.suffix[1:]}: {first_line(error)}{_remedy(path)}") from None
    return frame  # type: ignore[no-any-return]


def _remedy(path: Path) -> str:
    if path.suffix == ".parquet":
        return " (a Parquet file ends with a footer; one that was cut off while it was written or copied has none: make it again)"
    return ""


def first_line(error: BaseException) -> str:
    """The first line of an error's message."""
    return next(iter(str(error).splitlines()), type(error).__name__)
