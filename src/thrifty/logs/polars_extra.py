"""polars, which comes with an extra."""

from typing import Any


def require_polars() -> Any:
    """polars, or a ValueError that says how to get it."""
    try:
        import polars
    except ImportError:
        raise ValueError("logs need polars: pip install 'thrifty[replay]'") from None
    return polars


def first_line(error: BaseException) -> str:
    """The first line of an error's message."""
    return next(iter(str(error).splitlines()), type(error).__name__)
