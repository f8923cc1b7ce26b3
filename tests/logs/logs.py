"""Logs for tests, and the rows behind them as plain Python."""

from typing import Any

import numpy as np
import polars

START = 1_700_000_000.0


def make_rows(n: int = 3000, *, seed: int = 1, segments: int = 2, drift: float = 0.2) -> dict[str, Any]:
    """Columns segment, arm, reward, cost, at, p: three arms whose shares and rates move with time."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.uniform(0.0, 1.0, n))
    shares = np.column_stack([0.2 + 0.4 * at, np.full(n, 0.3), 0.5 - 0.4 * at])
    arms = (rng.random((n, 1)) > np.cumsum(shares, axis=1)[:, :2]).sum(axis=1)
    segment = rng.integers(0, segments, n)
    rates = np.array([0.9, 0.85, 0.6])[arms] - drift * at * (arms == 0) - 0.1 * segment
    return {
        "segment": [f"s{code}" for code in segment],
        "arm": [("dear", "fair", "cheap")[arm] for arm in arms],
        "reward": (rng.random(n) < rates).astype(float),
        "cost": np.array([0.3, 0.2, 0.1])[arms],
        "at": START + 86_400.0 * at,
        "p": shares[np.arange(n), arms],
    }


def truth(segment: int, drift: float = 0.2) -> dict[str, float]:
    """The mean rates of the arms over the span of `make_rows`."""
    return {"dear": 0.9 - drift / 2 - 0.1 * segment, "fair": 0.85 - 0.1 * segment, "cheap": 0.6 - 0.1 * segment}


def frame(**options: Any) -> polars.DataFrame:
    """`make_rows` as a frame."""
    return polars.DataFrame(make_rows(**options))
