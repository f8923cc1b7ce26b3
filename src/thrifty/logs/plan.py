"""The plan: a log as one lazy polars expression, with canonical columns and a reason for every row that is left out.

Polars runs the expression on all cores while the rows stream by.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from thrifty.logs.cells import filled, is_blank, read_number, read_reward, read_seconds
from thrifty.logs.columns import Columns
from thrifty.logs.source import require_polars
from thrifty.logs.tally import REASONS

if TYPE_CHECKING:
    import polars


def make_plan(frame: "polars.LazyFrame", columns: Columns, now: float, context: Sequence[str] = ()) -> Any:
    """A lazy frame with canonical columns and a reason for every row (0: it counts).

    The original columns stay beside them as raw_NAME, and other columns, named by `context`, as context_NAME. Rows later than
    `now` are in the future.
    """
    pl = require_polars()
    named = columns.named()
    raw = frame.select(**{f"raw_{meaning}": pl.col(name) for meaning, name in named.items()}, **_context(pl, context))
    schema, sample = raw.collect_schema(), raw.head(1000).collect()
    none = pl.lit(None, pl.Float64)
    read = raw.with_columns(
        arm=filled(pl, "raw_arm", schema).cast(pl.String),
        segment=filled(pl, "raw_segment", schema).cast(pl.String) if "segment" in named else pl.lit(None, pl.String),
        time=read_seconds(pl, "raw_time", schema, sample) if "time" in named else pl.lit(0.0),
        back=read_seconds(pl, "raw_outcome_time", schema, sample) if "outcome_time" in named else none,
        answered=~is_blank(pl, "raw_reward", schema),
        reward=read_reward(pl, columns.success, columns.reward, schema, sample),
        cost=read_number(pl, "raw_cost", schema) if "cost" in named else pl.lit(0.0),
        propensity=read_number(pl, "raw_propensity", schema) if "propensity" in named else none,
        id=pl.col("raw_id").hash() if "id" in named else pl.lit(0, pl.UInt64),
    )
    reason = pl.lit(0, pl.UInt8)
    for name, wrong in reversed(_checks(pl, columns, now, schema, read)):
        reason = pl.when(wrong).then(pl.lit(REASONS.index(name), pl.UInt8)).otherwise(reason)
    return read.with_columns(
        reason=reason,
        reward=pl.col("reward").fill_null(0.0),
        propensity=pl.col("propensity").fill_null(math.nan),
        delay_s=(pl.col("back") - pl.col("time")).fill_null(math.nan),
    )


def _context(pl: Any, names: Sequence[str]) -> dict[str, Any]:
    return {f"context_{name}": pl.col(name) for name in names}


def _checks(pl: Any, columns: Columns, now: float, schema: Any, read: Any) -> list[tuple[str, Any]]:
    """(reason, condition) for everything that can be wrong with a row, in the order in which it is checked."""
    named = columns.named()
    when, outcome, cost, p = (pl.col(name) for name in ("time", "reward", "cost", "propensity"))
    answered = pl.col("answered")
    checks = [("no arm", pl.col("arm").is_null())]
    if "time" in named:
        checks += [
            ("no time", is_blank(pl, "raw_time", schema)),
            ("time is not readable", when.is_null()),
            ("time in the future", (when > now).fill_null(False)),
        ]
    if columns.missing == "censored":
        end = read.select(when.filter(when <= now).max()).collect(engine="streaming").item()
        young = when > (math.inf if end is None else end) - columns.deadline_s
        checks.append(("outcome not due yet", young.fill_null(False)))
    if columns.missing == "ignore":
        checks.append(("no outcome", ~answered))
    checks += [
        ("reward is not a number", answered & outcome.is_null()),
        ("reward outside [0, 1]", (answered & ((outcome < 0.0) | (outcome > 1.0))).fill_null(False)),
    ]
    if "cost" in named:
        checks += [
            ("no cost", is_blank(pl, "raw_cost", schema)),
            ("cost is not a number", cost.is_null() | cost.is_infinite()),
            ("negative cost", (cost < 0.0).fill_null(False)),
        ]
    if "propensity" in named:
        checks += [
            ("no propensity", is_blank(pl, "raw_propensity", schema)),
            ("propensity is not a number", p.is_null()),
            ("propensity outside (0, 1]", ((p <= 0.0) | (p > 1.0)).fill_null(False)),
        ]
    return checks
