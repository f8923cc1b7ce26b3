"""What `replay`, `frontier` and `recommend` share: the arguments that describe a log, and what they print about it."""

import argparse
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from thrifty.cli.arguments import add_json, add_seed, whole_number
from thrifty.cli.progress import ProgressBar

if TYPE_CHECKING:
    from thrifty.logs import Evidence, Log

_COLUMN_FLAGS = {
    "--arm": "the name of the arm; default arm",
    "--reward": "a number in [0, 1], or a status with --success; default reward",
    "--cost": "what the row cost; default cost",
    "--segment": "the kind of request, one column or several separated by commas; without it all rows are one segment",
    "--time": "the time of the decision; without it the order of the rows counts",
    "--propensity": "the probability with which the arm was chosen; without it shares by segment and time are used",
    "--id": "identifies a row; a second row with the same id is left out, one without an id is kept",
    "--outcome-time": "the time when the outcome came back",
}
_COST_FLAGS = {
    "--prices": (
        "PRICES",
        "in place of a cost column: arm=price,... or a CSV file with arm and price; it may have segment and from",
    ),
    "--fees": (
        "FEES",
        "added to the cost by outcome: success=0.30,failure=0.05, arm:status=fee or a CSV file with outcome and fee",
    ),
    "--chain": ("COLUMNS", "columns that the attempts of one request share, such as customer,amount: they count as one request"),
    "--within": ("TIME", "the longest time between two attempts of a chain, such as 60s or 5m; default 60s"),
}
_CAUSE_FLAGS = {
    "--after": ("COLUMNS", "other columns that became known only after the choice, such as latency: it is not tested against them"),
}
_TEXT_FLAGS = {
    "--decimal": ("SIGN", "comma or point, if the numbers do not show it"),
    "--time-format": ("FORMAT", "day-first, month-first, s, ms, us, ns (since 1970) or a pattern such as %%d.%%m.%%y"),
    "--zone": ("ZONE", "the zone of times that have none, such as Europe/Berlin; default UTC"),
    "--separator": ("SIGN", "of a CSV file: tab or one sign such as , ; | or ^; default: what its header shows"),
    "--encoding": ("NAME", "of a text file, such as latin-1; default UTF-8, or UTF-16 with a byte order mark"),
}
_MOST_REFUSALS = 40
_OTHERS = ("success", "missing", "deadline_s", "rare")
_COLUMNS = (*(flag[2:].replace("-", "_") for flag in (*_COLUMN_FLAGS, *_COST_FLAGS, *_CAUSE_FLAGS, *_TEXT_FLAGS)), *_OTHERS)


def add_log(parser: Any) -> None:
    """Add what every command that reads a log takes."""
    parser.add_argument(
        "log",
        nargs="?",
        help="a .csv, .tsv, .parquet, .jsonl or .arrow file (also with .gz or .zst), a folder or pattern of such files, - for what "
        "is piped in, or a store such as sqlite:///thrifty.db",
    )
    parser.add_argument("--query", metavar="SQL", help="in place of a file: the rows of a DuckDB query")
    parser.add_argument(
        "--from", dest="database", metavar="FILE", help="what --query is about: a DuckDB file, or postgresql://USER@HOST/DATABASE"
    )
    parser.add_argument(
        "--backend",
        default="local",
        help="where a log of several parts is summed up: local, dask or dask://host:port; default %(default)s",
    )
    _add_columns(parser.add_argument_group("columns"))
    _add_rows(parser.add_argument_group("rows"))
    add_seed(parser)
    add_json(parser)


def _add_columns(group: Any) -> None:
    for flag, meaning in _COLUMN_FLAGS.items():
        group.add_argument(flag, metavar="COLUMN", help=meaning)
    group.add_argument("--success", metavar="STATUSES", help="statuses that count as a reward of 1, separated by commas")
    for flag, (value, meaning) in (_COST_FLAGS | _CAUSE_FLAGS | _TEXT_FLAGS).items():
        group.add_argument(flag, metavar=value, help=meaning)
    group.add_argument("--columns", metavar="FILE", help="a TOML file with any of these settings")


def _add_rows(group: Any) -> None:
    group.add_argument(
        "--missing",
        choices=("failure", "ignore", "censored"),
        help="how a row without an outcome counts: as a failure, not at all, or as a failure after --deadline; default failure",
    )
    group.add_argument("--deadline", dest="deadline_s", type=float, metavar="SECONDS", help="for --missing censored; default 3600")
    group.add_argument(
        "--tolerate",
        type=float,
        default=0.05,
        metavar="SHARE",
        help="the share of rows that may be unreadable; default %(default)s",
    )
    group.add_argument(
        "--now", type=float, metavar="SECONDS", help="rows later than this time (since 1970) are left out; default: the clock"
    )
    group.add_argument(
        "--rare", type=whole_number, metavar="ROWS", help="segments with fewer rows are pooled as other; default: only beyond 5,000"
    )
    group.add_argument("--router", help="only the rows of this router, if the log is a store")


def open_log(options: argparse.Namespace) -> "Log":
    """The log that the arguments describe."""
    from thrifty.logs import Columns, Log, Query

    if (options.log is None) == (options.query is None):
        raise ValueError("name one log: a file, a folder, a pattern, - or a store, or a query with --query")
    if options.database is not None and options.query is None:
        raise ValueError("--from names the file of a --query: write the query too, such as --query 'select * from log'")
    source = options.log if options.query is None else Query(options.query, options.database)
    columns = Columns.load({name: getattr(options, name) for name in _COLUMNS}, file=options.columns)
    return Log(source, columns, router=options.router, now=options.now, tolerated=options.tolerate, backend=options.backend)


class RowCount(ProgressBar):
    """Shows how many rows were read so far. The number of all rows is not known beforehand."""

    def __init__(self) -> None:
        super().__init__("reading", "row")

    def show_rows(self, step: str, rows: int) -> None:
        """Show the current step and its rows."""
        self.say(f"{step}: {rows:,} rows")


def describe(evidence: "Evidence") -> dict[str, Any]:
    """What the JSON of every command says about the log."""
    from thrifty.logs.evidence import assumptions

    tally = evidence.aggregates.tally
    return {
        "rows": tally.rows,
        "used": tally.used,
        "left_out": tally.left_out,
        "span": evidence.profile.span,
        "notes": list(evidence.profile.notes),
        "assumptions": list(assumptions(evidence)),
        "verdict": evidence.confounding.verdict(),
        "choice_follows": [each.__dict__ for each in evidence.confounding.followed],
    }


def show_share(value: float) -> str:
    """A share in per cent; a dash if it is not known.

    >>> show_share(0.251), show_share(float("nan"))
    ('25.1%', '-')
    """
    return "-" if math.isnan(value) else f"{value:.1%}"


def free_warning(savings: Iterable[float], cost: float) -> list[str]:
    """A line if a saving is not known, because there is no cost to save; `cost` is the mean cost of the log.

    >>> free_warning([0.1], 1.0)
    []
    >>> free_warning([0.1, math.nan], 1.0)
    ['where the best arm is free there is no saving against it: a dash stands there']
    """
    if cost <= 0.0:
        return ["nothing costs anything in this log: there is no saving; check --cost or give --prices"]
    unknown = any(math.isnan(saving) for saving in savings)
    return ["where the best arm is free there is no saving against it: a dash stands there"] if unknown else []


def show_range(row: dict[str, Any], name: str, form: str) -> str:
    """An interval of a row; a dash if it is not known.

    >>> show_range({"cost_low": 0.5, "cost_high": 1.0}, "cost", ".2f")
    '[0.50, 1.00]'
    """
    if math.isnan(row[f"{name}_low"]):
        return "-"
    return f"[{row[f'{name}_low']:{form}}, {row[f'{name}_high']:{form}}]"


def bullets(lines: Iterable[str]) -> list[str]:
    """Lines of a list."""
    return [f"- {line}" for line in lines]


def refusals(refused: Mapping[str, str]) -> list[str]:
    """A line for each segment without an estimate, as far as a person reads them; the JSON has all.

    >>> refusals(dict.fromkeys(map(str, range(45)), "only 7 rows"))[-1]
    '- and no estimate for 5 more (see --json)'
    """
    lines = [f"no estimate for {segment}: {reason}" for segment, reason in refused.items()]
    more = [f"and no estimate for {len(lines) - _MOST_REFUSALS:,} more (see --json)"] if len(lines) > _MOST_REFUSALS else []
    return bullets([*lines[:_MOST_REFUSALS], *more])
