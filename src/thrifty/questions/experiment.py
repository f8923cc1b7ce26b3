"""The two groups of a test, from the rows of an export: which decisions count, and in which order."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats
from thrifty.logs.cells import is_blank, read_number, read_seconds
from thrifty.logs.columns import Columns
from thrifty.logs.numbers import NumberStyle
from thrifty.logs.source import require_polars
from thrifty.logs.statuses import check_statuses
from thrifty.logs.times import time_style
from thrifty.problem import MOST_COST
from thrifty.suggestions import did_you_mean

HOLDOUT, ROUTED = "holdout", "routed"
DEADLINE_S = 3600.0
FEWEST = 2


@dataclass(frozen=True, eq=False)
class Experiment:
    """The outcomes of two groups in the order of their decisions: (n,) times, whether treated, rewards and costs."""

    treated: str
    control: str
    at: Floats
    is_treated: NDArray[np.bool_]
    reward: Floats
    cost: Floats
    timed: bool
    alpha: float | None


def split_groups(
    frame: Any, *, columns: Columns, by: str | None, control: str | None, router: str | None
) -> tuple[Experiment, tuple[str, ...]]:
    """The experiment in some rows, and notes on the rows that are left out."""
    pl = require_polars()
    _check_columns(frame, columns, by)
    frame = _read_cells(pl, frame, columns)
    if router is not None:
        frame = _of_router(frame, router)
    frame, alpha = _holdout_groups(pl, frame, control) if by is None else (_named_groups(pl, frame, by), None)
    frame, notes = _finished(frame.sort("at", maintain_order=True))
    frame, notes = _with_costs(frame, notes)
    treated, control = _pair(frame["group"].drop_nulls().unique(maintain_order=True).to_list(), by, control)
    at = frame["at"].to_numpy()
    found = Experiment(
        treated,
        control,
        at,
        is_treated=(frame["group"] == treated).to_numpy(),
        reward=frame["reward"].to_numpy(),
        cost=frame["cost"].to_numpy(),
        timed=bool(at.size) and float(at[0]) > 1e8,
        alpha=alpha,
    )
    return found, notes


def _check_columns(frame: Any, columns: Columns, by: str | None) -> None:
    wanted = {"--time": columns.time, "--reward": columns.reward, "--by": by}
    for flag, name in wanted.items():
        if name is not None and name not in frame.columns:
            near = did_you_mean(name, frame.columns, otherwise=f"there are {', '.join(frame.columns[:20])}")
            raise ValueError(f"the log has no column {name!r:.80} for {flag}: {near}")
    if by is None and "code" not in frame.columns:
        raise ValueError(
            "the log has no column 'code', which names the decisions of a holdout: name the column of the groups with --by"
        )
    if not {columns.cost, "price"} & set(frame.columns):
        raise ValueError(
            f"the log has no column {columns.cost!r:.80} and no column 'price': name what a decision cost with --cost, a read-out "
            "compares it"
        )


def _read_cells(pl: Any, frame: Any, columns: Columns) -> Any:
    """The frame with times in seconds, rewards, and costs (the price where there is none); empty rewards and costs are null."""
    schema, when, success = frame.schema, columns.time or "", columns.success
    is_text = schema[when] == pl.String
    style = time_style(frame[when], columns.time_style, when) if is_text else columns.time_style
    at = read_seconds(pl, when, schema, style)
    _refuse(frame, when, frame.select(wrong=at.is_null())["wrong"], "a time must be a date and time or seconds since 1970")
    if success:
        reward = pl.when(~is_blank(pl, columns.reward, schema)).then(pl.col(columns.reward).cast(pl.String).is_in(list(success)))
        found = frame[columns.reward].cast(pl.String).drop_nulls().value_counts().iter_rows()
        check_statuses(success, dict(found), columns.reward)
    else:
        reward = _read_number(pl, frame, columns.reward, 1.0, "a reward must be in [0, 1], or a status with --success")
    paid = [name for name in dict.fromkeys((columns.cost, "price")) if name is not None and name in frame.columns]
    costs = [_read_number(pl, frame, name, MOST_COST, f"a {name} must be a number from 0 to {MOST_COST:g}") for name in paid]
    return frame.with_columns(at=at, reward=reward.cast(pl.Float64), cost=pl.coalesce(*costs))


def _read_number(pl: Any, frame: Any, name: str, most: float, rule: str) -> Any:
    """A column of numbers from 0 to `most`, null where a cell is empty; a ValueError if one is none."""
    value = read_number(pl, name, frame.schema, NumberStyle())
    wrong = ~is_blank(pl, name, frame.schema) & ~value.is_between(0.0, most).fill_null(False)
    _refuse(frame, name, frame.select(wrong=wrong)["wrong"], rule)
    return value


def _refuse(frame: Any, name: str, wrong: Any, rule: str) -> None:
    """A ValueError if cells of a column are wrong: how many, the first, and what to do."""
    if wrong.any():
        row, count = int(wrong.arg_max()), int(wrong.sum())
        value = str(frame[name][row])
        raise ValueError(
            f"{rule}, got {value!r:.80} in row {row + 1:,} of column {name!r} "
            f"(such cells: {count:,}): correct these rows or take them out"
        )


def _with_costs(frame: Any, notes: tuple[str, ...]) -> tuple[Any, tuple[str, ...]]:
    """The rows that have a cost; all of them, at no cost, if none has one."""
    empty = frame["cost"].null_count()
    if not empty:
        return frame, notes
    if empty == frame.height:
        return frame.with_columns(frame["cost"].fill_null(0.0)), (*notes, "no decision has a cost: only rewards are compared")
    return frame.filter(frame["cost"].is_not_null()), (*notes, f"{empty:,} decisions have no cost and are left out")


def _of_router(frame: Any, router: str) -> Any:
    if "router" not in frame.columns:
        raise ValueError(f"--router {router!r:.80}: the log has no column 'router'; leave it out, or name a store or an export")
    names = frame["router"].unique(maintain_order=True).to_list()
    if router not in names:
        raise ValueError(f"the log has no router {router!r:.80}: {did_you_mean(router, names, otherwise=f'it has {names[:10]}')}")
    return frame.filter(frame["router"] == router)


def _holdout_groups(pl: Any, frame: Any, control: str | None) -> tuple[Any, float | None]:
    """Decisions that a holdout could have taken, from the first one that it took; and the alpha of the router."""
    routers = frame["router"].unique(maintain_order=True).to_list() if "router" in frame.columns else [""]
    if len(routers) > 1:
        raise ValueError(
            f"the log has {len(routers)} routers ({', '.join(routers[:5])}): name one with --router, or use --by router"
        )
    if control not in (None, HOLDOUT):
        raise ValueError(f"the control of a holdout is the holdout, got {control!r:.80}: name the column of other groups with --by")
    frame = frame.sort("at", maintain_order=True)
    held = (frame["code"] == HOLDOUT).to_numpy()
    if not held.any():
        raise ValueError("no decision was taken by a holdout: set one (holdout=0.05), or name the column of the groups with --by")
    frame = frame.slice(int(np.argmax(held)))
    frame = frame.filter(~frame["code"].is_in(["pinned", "only", "baseline", "fallback"]))
    if "holdout" in frame.columns:
        frame = frame.filter(frame["holdout"].cast(pl.Float64, strict=False).fill_null(1.0) > 0.0)
    alphas = frame["alpha"].drop_nulls().unique().to_list() if "alpha" in frame.columns else []
    group = pl.when(pl.col("code") == HOLDOUT).then(pl.lit(HOLDOUT)).otherwise(pl.lit(ROUTED))
    return frame.with_columns(group=group), float(alphas[-1]) if len(alphas) == 1 else None


def _named_groups(pl: Any, frame: Any, by: str) -> Any:
    return frame.with_columns(group=pl.col(by).cast(pl.String))


def _finished(frame: Any) -> tuple[Any, tuple[str, ...]]:
    """The rows whose outcome is known, up to the first that still waits for one: quick outcomes are not like slow ones."""
    notes = []
    if "outcome" in frame.columns:
        waiting = frame.filter(frame["outcome"] == "none")
        recent = waiting.filter(waiting["at"] > float(frame["at"].max() or 0.0) - DEADLINE_S)
        if recent.height:
            first = float(recent["at"].min())
            left = frame.filter(frame["at"] >= first).height
            notes.append(f"{left:,} decisions since the first that still waits for its outcome are left out")
            frame = frame.filter(frame["at"] < first)
    silent = frame.filter(frame["reward"].is_null() | frame["group"].is_null()).height
    if silent:
        notes.append(f"{silent:,} decisions have no reward or no group and are left out")
    return frame.filter(frame["reward"].is_not_null() & frame["group"].is_not_null()), tuple(notes)


def _pair(groups: list[str], by: str | None, control: str | None) -> tuple[str, str]:
    """The treated group and the control."""
    if len(groups) != FEWEST:
        found = ", ".join(map(repr, groups[:8])) or "none"
        raise ValueError(f"a read-out compares two groups with outcomes, column {by or 'code'!r} has {len(groups)} ({found})")
    if by is None:
        return ROUTED, HOLDOUT
    if control is None:
        raise ValueError(f"say which group is the control, with --control: {' or '.join(map(repr, groups))}")
    if control not in groups:
        near = did_you_mean(control, groups, otherwise=f"there are {', '.join(groups)}")
        raise ValueError(f"the control {control!r:.80} is no group of column {by!r}: {near}")
    return next(group for group in groups if group != control), control
