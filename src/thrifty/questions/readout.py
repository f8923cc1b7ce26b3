"""The read-out of a test that runs: the holdout of a router, or two groups of an A/B test, from the log of a store.

One may look as often as one likes: every interval of every look holds at once with 95% (see `thrifty.sequences`). Both groups
share the error, and so do rewards and costs. The means are averages over the decisions of each group so far, so a router that
learns is compared as it was, learning included.
"""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from thrifty.arrays import Floats
from thrifty.findings import Findings, interval_table
from thrifty.logs.columns import Columns
from thrifty.logs.exported import unpack_store
from thrifty.logs.profile import moment
from thrifty.logs.source import SourceFormat, first_line, open_source, require_polars
from thrifty.problem import checked_alpha
from thrifty.questions.experiment import Experiment, split_groups
from thrifty.sequences import RunningMean, running_mean
from thrifty.table import Table

LEVEL = 0.05
"""The probability that any interval of a read-out is ever wrong."""

LOOKS = 60
"""Looks in the frame of a read-out, at most; the last is now."""

KEPT, BROKEN, OPEN = "kept", "broken", "open"
"""What is known about alpha."""


@dataclass(frozen=True, eq=False, repr=False)
class Readout(Findings):
    """What `readout` returns.

    `looks` is a polars frame with a row per look, the last one is now: outcomes, mean reward and mean cost of both groups, the
    difference of rewards (treated less control), the share of the control's cost that is saved, and the share of its reward that
    is given up, with intervals that hold for all looks at once. `verdict` is what is known about alpha now: kept, broken or open.
    `notes` say what was left out.
    """

    looks: Any
    experiment: Experiment
    alpha: float | None
    verdict: str
    notes: tuple[str, ...]

    @property
    def frames(self) -> dict[str, Any]:
        """One frame, the looks."""
        return {"looks": self.looks}

    def headline(self) -> str:
        """What is known now."""
        now = self.looks.to_dicts()[-1]
        about = f"{self.experiment.treated} against {self.experiment.control}"
        nothing = f"{self.experiment.control} has no reward so far, so no share of it is given up"
        lost = nothing if now["given_up"] is None else f"gives up {_range(now, 'given_up')} of its reward"
        saved = "" if now["saving"] is None else f", {_saved(now)}"
        known = "" if self.alpha is None else f"; alpha {self.alpha:g} is {self.verdict}"
        return f"{about}: {lost}{saved}{known}"

    def table(self) -> Table:
        """The last looks."""
        words = {"until": "", "treated": ",", "control": ",", "reward": ".4f", "control_reward": ".4f", "difference": "+.4f"}
        return interval_table(self.looks.tail(10).to_dicts(), words | {"given_up": ".2%", "saving": ".1%"})


def _saved(now: dict[str, Any]) -> str:
    """What is saved or paid on top, with its interval."""
    ends = f"[{now['saving_low']:.1%}, {now['saving_high']:.1%}]"
    if now["saving"] >= 0.0:
        return f"saves {now['saving']:.1%} {ends} of its cost"
    return f"costs {-now['saving']:.1%} more (saving {now['saving']:.1%} {ends})"


def _range(row: dict[str, Any], name: str) -> str:
    return f"{row[name]:.1%} [{row[f'{name}_low']:.1%}, {row[f'{name}_high']:.1%}]"


def readout(
    source: Any,
    *,
    columns: Columns | None = None,
    router: str | None = None,
    by: str | None = None,
    control: str | None = None,
    alpha: float | None = None,
) -> Readout:
    """Read out a test that may still run, as often as one likes.

    Parameters
    ----------
    source : a store such as "sqlite:///thrifty.db", a file that `thrifty export` wrote, or anything else that `Log` takes
    columns : what the columns of your own file mean: time (default at), reward, success and cost
    router : only this router; needed where there are several, unless they are the groups
    by : the column that names the groups of an A/B test, such as router; default: the holdout against all others
    control : the group that the other is compared with; for a holdout it is the holdout
    alpha : the share of the control's reward that may be given up; default: that of the router, for a holdout

    >>> import numpy, polars
    >>> rng = numpy.random.default_rng(1)
    >>> held = rng.random(20_000) < 0.2
    >>> rewards = 1.0 * (rng.random(20_000) < numpy.where(held, 0.9, 0.88))
    >>> rows = {"at": numpy.arange(20_000.0), "group": numpy.where(held, "best", "routed"), "reward": rewards, "cost": 1.0 + held}
    >>> found = readout(polars.DataFrame(rows), by="group", control="best", alpha=0.1)
    >>> found.verdict, found.looks["saving"].round(2).to_list()[-1]
    ('kept', 0.5)

    """
    if columns is not None and not isinstance(columns, Columns):
        raise ValueError(f"columns must be Columns(time=..., reward=...), got {columns!r:.80}")
    columns = replace(columns or Columns(), time=(columns and columns.time) or "at")
    frame = _frame(source, router, columns)
    experiment, notes = split_groups(frame, columns=columns, by=by, control=control, router=router)
    limit = experiment.alpha if alpha is None else checked_alpha(alpha)
    looks = _looks(experiment)
    frame = require_polars().DataFrame(looks, infer_schema_length=None)
    return Readout(frame, experiment, limit, _verdict(looks[-1], limit), notes)


def _frame(source: Any, router: str | None, columns: Columns) -> Any:
    """All rows in memory, as the source has them."""
    pl = require_polars()
    with tempfile.TemporaryDirectory(prefix="thrifty-readout-") as folder:
        if isinstance(source, str) and "://" in source:
            return pl.read_parquet(unpack_store(source, router, Path(folder)))
        form = SourceFormat(columns.separator, columns.encoding, (columns.time or "", columns.reward))
        parts, _ = open_source(source, form, Path(folder))
        ragged = next((part for part in parts if part.ragged is not None and (part.ragged[:, 2] > 0).any()), None)
        if ragged is not None and ragged.ragged is not None:
            line = next(line for _, line, fields in ragged.ragged.tolist() if fields)
            raise ValueError(f"{ragged.name}: line {line:,} does not have the fields of the header: correct it or take it out")
        try:
            return pl.concat([part.scan() for part in parts], how="diagonal_relaxed").collect()
        except pl.exceptions.PolarsError as error:
            raise ValueError(f"cannot read {parts[0].name}: {first_line(error)}") from None


def _looks(experiment: Experiment) -> list[dict[str, Any]]:
    """A row per look: at most `LOOKS`, evenly over the decisions, the last after all of them."""
    size = experiment.at.size
    ends = np.unique(np.linspace(0, size, LOOKS + 1).round().astype(int)[1:])
    treated_before = np.r_[0, np.cumsum(experiment.is_treated)]
    counts = treated_before[ends].astype(float), (ends - treated_before[ends]).astype(float)
    groups = experiment.is_treated, ~experiment.is_treated
    largest = float(experiment.cost.max(initial=0.0))
    share = LEVEL / 4.0  # two groups, rewards and costs
    rewards = [running_mean(experiment.reward[mask], count, level=share) for mask, count in zip(groups, counts, strict=True)]
    costs = [
        running_mean(experiment.cost[mask], count, level=share, largest=largest) if largest > 0.0 else None
        for mask, count in zip(groups, counts, strict=True)
    ]
    rows = []
    for place, end in enumerate(ends):
        if min(counts[0][place], counts[1][place]) < 1.0:
            continue
        row: dict[str, Any] = {
            "until": moment(float(experiment.at[end - 1])) if experiment.timed else f"{end:,} outcomes",
            "treated": int(counts[0][place]),
            "control": int(counts[1][place]),
        }
        rows.append({**row, **_compared(rewards, costs, place)})
    return rows


def _compared(rewards: list[RunningMean], costs: list[RunningMean | None], place: int) -> dict[str, Any]:
    one, other = (_ends(each, place) for each in rewards)
    found = {**_named("reward", one), **_named("control_reward", other)}
    found |= _named("difference", np.array([one[0] - other[0], one[1] - other[2], one[2] - other[1]]))
    found |= _named("given_up", _share_lost(one, other))
    paid, control_paid = costs
    nothing = np.full(3, np.nan)
    spent = [nothing if each is None else _ends(each, place) for each in (paid, control_paid)]
    found |= {**_named("cost", spent[0]), **_named("control_cost", spent[1])}
    return {**found, **_named("saving", _share_lost(spent[0], spent[1]))}


def _ends(found: RunningMean, place: int) -> Floats:
    return np.array([found.means[place], found.low[place], found.high[place]])


def _share_lost(one: Floats, other: Floats) -> Floats:
    """(3,) the share by which one value is below another, with its interval; NaN where the other may be 0."""
    if not other[1] > 0.0:
        return np.array([1.0 - one[0] / other[0] if other[0] > 0.0 else np.nan, np.nan if not other[2] > 0.0 else -np.inf, 1.0])
    return np.array([1.0 - one[0] / other[0], 1.0 - one[2] / other[1], 1.0 - one[1] / other[2]])


def _named(name: str, values: Floats) -> dict[str, float | None]:
    """A value and its interval as columns; None where there is none."""
    names = (name, f"{name}_low", f"{name}_high")
    return {each: None if np.isnan(value) else float(value) for each, value in zip(names, values, strict=True)}


def _verdict(now: dict[str, Any], alpha: float | None) -> str:
    """What is known about alpha."""
    if alpha is None or now["given_up"] is None:
        return OPEN
    if now["given_up_high"] <= alpha:
        return KEPT
    return BROKEN if now["given_up_low"] > alpha else OPEN
