"""The plan: a part of a log as one lazy polars expression, with canonical columns and a reason for every row that is left out.

Polars runs the expression on all cores while the rows stream by.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from thrifty.logs.cells import filled, is_blank, read_number, read_reward, read_seconds
from thrifty.logs.numbers import NumberStyle
from thrifty.logs.parts import Part
from thrifty.logs.polars_extra import require_polars
from thrifty.logs.recipe import Recipe
from thrifty.logs.tally import EMPTY_LEVEL, REASONS
from thrifty.problem import MOST_COST

_PLAIN = NumberStyle()
LEAST_PROPENSITY = 1e-9
"""A row whose arm had a smaller chance would weigh more than all others together."""


def make_plan(part: Part, recipe: Recipe, context: Sequence[str] = ()) -> Any:
    """A lazy frame with canonical columns and a reason for every row (0: it counts).

    The original columns stay beside them as raw_NAME, and other columns, named by `context`, as context_NAME.
    """
    pl = require_polars()
    columns = recipe.columns
    named = columns.named()
    raw = recipe.raw(part, context)
    schema = raw.collect_schema()
    _check_kinds(schema, named)
    none = pl.lit(None, pl.Float64)
    numbers = {meaning: recipe.numbers.get(meaning, _PLAIN) for meaning in ("cost", "reward", "propensity")}
    keys = [filled(pl, f"raw_{meaning}", schema).cast(pl.String) for meaning in named if meaning.startswith("chain")]
    read = raw.with_columns(
        arm=filled(pl, "raw_arm", schema).cast(pl.String),
        segment=segment_of(pl, recipe, schema),
        slashed=_is_slashed(pl, recipe, schema),
        time=read_seconds(pl, "raw_time", schema, recipe.times["time"]) if "time" in named else pl.lit(0.0),
        back=read_seconds(pl, "raw_outcome_time", schema, recipe.times["outcome_time"]) if "outcome_time" in named else none,
        answered=~is_blank(pl, "raw_reward", schema),
        reward=read_reward(pl, schema, columns.success, numbers["reward"], words=recipe.words),
        cost=read_number(pl, "raw_cost", schema, numbers["cost"]) if "cost" in named else pl.lit(0.0),
        propensity=read_number(pl, "raw_propensity", schema, numbers["propensity"]) if "propensity" in named else none,
        id=_id_of(pl, schema) if "id" in named else pl.lit(0, pl.UInt64),
        chain=pl.when(pl.all_horizontal([key.is_not_null() for key in keys])).then(pl.struct(keys).hash()) if keys else none,
    )
    reason = pl.lit(0, pl.UInt8)
    for name, wrong in reversed(_checks(pl, recipe, schema)):
        reason = pl.when(wrong).then(pl.lit(REASONS.index(name), pl.UInt8)).otherwise(reason)
    return read.with_columns(
        reason=reason,
        reward=pl.col("reward").fill_null(0.0),
        propensity=pl.col("propensity").fill_null(math.nan),
        delay_s=(pl.col("back") - pl.col("time")).fill_null(math.nan),
    )


def _check_kinds(schema: Any, named: Mapping[str, str]) -> None:
    """A ValueError if a column holds lists or records, where one value is needed."""
    for meaning, name in named.items():
        kind = schema[f"raw_{meaning}"]
        if kind.is_nested() or kind.is_object():
            raise ValueError(f"column {name!r} holds {kind}, and one value a row is needed: name another column")


def _id_of(pl: Any, schema: Any) -> Any:
    """The hash of an id; 0 where it is empty, which names nothing and is never repeated."""
    return pl.when(is_blank(pl, "raw_id", schema)).then(pl.lit(0, pl.UInt64)).otherwise(pl.col("raw_id").hash())


def _levels(pl: Any, recipe: Recipe, schema: Any) -> list[Any]:
    """The columns of the segment as text."""
    meanings = [meaning for meaning in recipe.columns.named() if meaning.startswith("segment")]
    return [filled(pl, f"raw_{meaning}", schema).cast(pl.String) for meaning in meanings]


def _is_slashed(pl: Any, recipe: Recipe, schema: Any) -> Any:
    """Whether a value of several columns of the segment holds the sign that joins them."""
    values = _levels(pl, recipe, schema)
    slashed = [value.str.contains("/", literal=True).fill_null(False) for value in values]
    return pl.any_horizontal(slashed) if len(values) > 1 else pl.lit(False)


def segment_of(pl: Any, recipe: Recipe, schema: Any) -> Any:
    """The segment: the values of its columns joined by "/", null if all of them are empty."""
    values = _levels(pl, recipe, schema)
    if not values:
        return pl.lit(None, pl.String)
    if len(values) == 1:
        return values[0]
    joined = pl.concat_str([value.fill_null(EMPTY_LEVEL) for value in values], separator="/")
    return pl.when(~pl.all_horizontal([value.is_null() for value in values])).then(joined)


def latest_time(parts: Sequence[Part], recipe: Recipe) -> float | None:
    """The latest time in a log that is not in the future, None if there is none."""
    pl = require_polars()
    found = []
    for part in parts:
        raw = recipe.raw(part)
        when = read_seconds(pl, "raw_time", raw.collect_schema(), recipe.times["time"])
        found.append(raw.select(when.filter(when <= recipe.now).max()).collect(engine="streaming").item())
    return max((time for time in found if time is not None), default=None)


def _checks(pl: Any, recipe: Recipe, schema: Any) -> list[tuple[str, Any]]:
    """(reason, condition) for everything that can be wrong with a row, in the order in which it is checked."""
    columns = recipe.columns
    named = columns.named()
    when, outcome, cost, p = (pl.col(name) for name in ("time", "reward", "cost", "propensity"))
    answered = pl.col("answered")
    checks = [("no arm", pl.col("arm").is_null())]
    if "time" in named:
        checks += [
            ("no time", is_blank(pl, "raw_time", schema)),
            ("time is not readable", when.is_null()),
            ("time in the future", (when > recipe.now).fill_null(False)),
        ]
    if columns.missing == "censored":
        young = when > (math.inf if recipe.end is None else recipe.end) - columns.deadline_s
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
            ("cost above 1e15", (cost > MOST_COST).fill_null(False)),
        ]
    if "propensity" in named:
        checks += [
            ("no propensity", is_blank(pl, "raw_propensity", schema)),
            ("propensity is not a number", p.is_null()),
            ("propensity outside (0, 1]", ((p <= 0.0) | (p > 1.0)).fill_null(False)),
            ("propensity below 1e-9", (p < LEAST_PROPENSITY).fill_null(False)),
        ]
    return checks
