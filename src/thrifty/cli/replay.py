"""`thrifty replay`, `frontier`, `recommend` and `example-log`: ask a log, and make one to ask."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thrifty.cli.progress import ProgressBar
from thrifty.files import write_files

if TYPE_CHECKING:
    from thrifty.advice import Recommendation
    from thrifty.replay import Evidence, Frontier, Log, Replay

_COLUMNS = (
    "arm",
    "reward",
    "cost",
    "segment",
    "time",
    "propensity",
    "id",
    "outcome_time",
    "success",
    "missing",
    "deadline_s",
    "prices",
)


def add_to(commands: Any) -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser(
        "replay",
        help="ask a log what other choices would have brought and cost",
        description="Profile a log, and estimate what other choices would have brought and cost.",
        epilog="Example: thrifty replay deliveries.csv --arm aggregator --reward status --success delivered,read --cost price "
        "--segment country --time sent_at --alpha 0.02,0.05,0.1",
    )
    add_log_flags(parser)
    parser.add_argument("--alpha", default="0.02,0.05,0.1", help="subsidy factors, separated by commas; default %(default)s")
    parser.add_argument("--policies", default="cs-ids", help="policies to play through the log, or none; default %(default)s")
    parser.add_argument("--plays", type=int, default=4, help="how often each is played through; default %(default)s")
    parser.add_argument("--out", metavar="DIR", type=Path, help="also write profile.csv, policies.csv and segments.csv there")
    parser.set_defaults(run=run_replay)
    parser = commands.add_parser(
        "frontier",
        help="quality against cost as alpha moves, from a log",
        description="Quality against cost as alpha moves, per segment and overall: a table, a picture, CSV and a page.",
        epilog="Example: thrifty frontier deliveries.csv --arm aggregator --reward delivered --cost price --out out",
    )
    add_log_flags(parser)
    parser.add_argument("--alpha", help="subsidy factors, separated by commas; default 0, 0.01, ... 0.3")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write frontier.html, .csv, .png and .svg there")
    parser.set_defaults(run=run_frontier)
    parser = commands.add_parser(
        "recommend",
        help="which policy and alpha to run, from a log",
        description="Which policy and alpha to run in each segment, what it saves and what it costs in quality: one page.",
        epilog="Example: thrifty recommend deliveries.csv --arm aggregator --reward delivered --cost price --segment country",
    )
    add_log_flags(parser)
    parser.add_argument("--alpha", default="0.02,0.05,0.1", help="what may be chosen, separated by commas; default %(default)s")
    parser.add_argument("--policies", default="cs-ids,cs-ts,cs-ucb,cs-etc", help="the candidates; default %(default)s")
    parser.add_argument(
        "--exchange", type=float, default=3.0, help="per cent of cost that one per cent of quality is worth; default %(default)s"
    )
    parser.add_argument("--rounds", type=int, default=10_000, help="decisions of a simulated run; default %(default)s")
    parser.add_argument("--worlds", type=int, default=16, help="worlds drawn for each segment; default %(default)s")
    parser.add_argument("--most", type=int, default=60, help="segments to choose for, the largest; default %(default)s")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write recommendation.html, routers.json and CSV there")
    parser.set_defaults(run=run_recommend)
    parser = commands.add_parser(
        "example-log",
        help="write an example log with the truth beside it",
        description="Write an example log, made by a generator that is documented in thrifty.examples, with the truth beside it.",
    )
    parser.add_argument("name", choices=("sms", "llm"), help="SMS routing in 12 countries, or six language models")
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path(), help="default: here")
    parser.add_argument("--rows", type=int, help="default: 1,000,000 for sms, 200,000 for llm")
    parser.add_argument("--seed", type=int, default=0, help="default %(default)s")
    parser.add_argument("--exploration", type=float, default=0.2, help="share of rows whose arm is uniform; default %(default)s")
    parser.add_argument("--format", choices=("csv", "parquet"), default="csv", help="default %(default)s")
    parser.set_defaults(run=run_example)


def add_log_flags(parser: Any) -> None:
    """What every command that reads a log takes."""
    parser.add_argument("log", help="a .csv, .parquet or .jsonl file, or a store such as sqlite:///thrifty.db")
    columns = parser.add_argument_group("columns")
    columns.add_argument("--arm", help="the column that names the arm; default arm")
    columns.add_argument("--reward", help="a number in [0, 1], or a status with --success; default reward")
    columns.add_argument("--success", help="statuses that count as a reward of 1, separated by commas")
    columns.add_argument("--cost", help="what the row cost; default cost")
    columns.add_argument(
        "--prices", help="in place of a cost column: arm=price,... or a CSV with arm, price and, if need be, segment and from"
    )
    columns.add_argument("--segment", help="the kind of request; without it all rows are one segment")
    columns.add_argument("--time", help="when it was; without it rows are taken in their order")
    columns.add_argument("--propensity", help="the probability of the choice; without it shares by segment and time stand in")
    columns.add_argument("--id", help="what names a row once; a second row of the same id is left out")
    columns.add_argument("--outcome-time", help="when the outcome came back")
    columns.add_argument("--columns", metavar="FILE", help="a TOML file with any of these settings")
    rows = parser.add_argument_group("rows")
    rows.add_argument(
        "--missing", choices=("failure", "ignore", "censored"), help="what a row without an outcome is; default failure"
    )
    rows.add_argument("--deadline", dest="deadline_s", type=float, metavar="SECONDS", help="for censored; default 3600")
    rows.add_argument("--tolerate", type=float, default=0.05, metavar="SHARE", help="of unreadable rows; default %(default)s")
    rows.add_argument(
        "--now", type=float, metavar="SECONDS", help="rows later than this (since 1970) are left out; default: the clock"
    )
    rows.add_argument("--router", help="of a store, this router only")
    parser.add_argument("--seed", type=int, default=0, help="default %(default)s")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def open_log(options: argparse.Namespace) -> "Log":
    """The log that the flags describe."""
    from thrifty.replay import Columns, Log

    columns = Columns.load({name: getattr(options, name) for name in _COLUMNS}, file=options.columns)
    return Log(options.log, columns, router=options.router, now=options.now, tolerated=options.tolerate)


def read_alphas(text: str) -> list[float]:
    """Subsidy factors from a comma-separated list.

    >>> read_alphas("0.02,0.1")
    [0.02, 0.1]
    """
    from thrifty.problem import checked_alpha

    try:
        return sorted({checked_alpha(float(item)) for item in text.split(",")})
    except ValueError as error:
        raise ValueError(f"--alpha must be numbers in [0, 1] separated by commas, got {text!r}") from error


class RowCount:
    """Shows how many rows were read, for a person; rows in all are not known beforehand."""

    def __init__(self) -> None:
        self._bar = ProgressBar("", "row")

    def __call__(self, what: str, rows: int) -> None:
        """Show it."""
        self._bar.say(f"{what}: {rows:,} rows")

    def close(self) -> None:
        """Clear the line."""
        self._bar.close()


def run_replay(options: argparse.Namespace) -> None:
    """Evaluate and show."""
    from thrifty.cli.compare import split_policies
    from thrifty.replay import replay

    alphas = read_alphas(options.alpha)
    policies = [] if options.policies == "none" else split_policies(options.policies)
    rows = RowCount()
    try:
        found = replay(open_log(options), alphas, policies=policies, seed=options.seed, plays=options.plays, progress=rows)
    finally:
        rows.close()
    if options.out is not None:
        frames = {"profile": found.evidence.profile.arms, "policies": found.policies, "segments": found.segments}
        write_files(options.out, {f"{name}.csv": frame.write_csv().encode() for name, frame in frames.items()})
    print(_replay_json(found) if options.json else _replay_text(found))


def run_frontier(options: argparse.Namespace) -> None:
    """Work out the frontier, show it, and write it where asked."""
    from thrifty.replay import frontier
    from thrifty.replay.frontier import GRID

    rows = RowCount()
    try:
        alphas = GRID if options.alpha is None else read_alphas(options.alpha)
        found = frontier(open_log(options), alphas, seed=options.seed, progress=rows)
    finally:
        rows.close()
    if options.out is not None:
        from thrifty.reports.frontier import frontier_files

        write_files(options.out, frontier_files(found))
    if options.json:
        body = {
            "points": found.points.to_dicts(),
            "changes": found.changes.to_dicts(),
            "knees": found.knees,
            "refused": found.refused,
        }
        print(json.dumps({**_about(found.evidence), **body}))
    else:
        print(_frontier_text(found))


def run_recommend(options: argparse.Namespace) -> None:
    """Work out the recommendation, show it, and write it where asked."""
    from thrifty.advice import recommend
    from thrifty.advice.routers import router_bodies
    from thrifty.cli.compare import split_policies
    from thrifty.reports.recommendation import recommendation_files

    rows, bar = RowCount(), ProgressBar("playing", "game")
    try:
        found = recommend(
            open_log(options),
            read_alphas(options.alpha),
            policies=split_policies(options.policies),
            exchange=options.exchange,
            rounds=options.rounds,
            worlds=options.worlds,
            most=options.most,
            seed=options.seed,
            reading=rows,
            progress=bar,
        )
    finally:
        rows.close()
        bar.close()
    if options.out is not None:
        write_files(options.out, recommendation_files(found))
    if options.json:
        from thrifty.replay.evidence import finite

        body = {"segments": found.segments.to_dicts(), "candidates": found.candidates.to_dicts(), "routers": router_bodies(found)}
        print(json.dumps(finite({**_about(found.evidence), **body, "refused": found.refused}), allow_nan=False))
    else:
        print(_recommend_text(found))


def _recommend_text(found: "Recommendation") -> str:
    from thrifty.replay.evidence import assumptions
    from thrifty.reports.recommendation import lead
    from thrifty.table import aligned

    header = ("segment", "rows", "policy", "alpha", "arm now", "quality", "change", "95%", "saved", "95%", "floor held")
    rows = [
        (
            row["segment"], f"{row['rows']:,}", row["policy"], "" if row["alpha"] is None else f"{row['alpha']:g}", row["arm"],
            f"{row['quality']:.4f}", f"{row['quality_change']:+.4f}", _range(row, "quality_change", "+.4f"), f"{row['saving']:.1%}",
            _range(row, "saving", ".1%"), "" if row["alpha"] is None else f"{row['floor_held']:.0%}",
        )
        for row in found.segments.to_dicts()
    ]  # fmt: skip
    refused = [f"- nothing said about {segment}: {reason}" for segment, reason in found.refused.items()]
    rests = [
        *assumptions(found.evidence),
        f"{found.worlds} simulated worlds a segment, {found.rounds:,} decisions each; learning included",
    ]
    parts = [str(found.evidence.profile), *refused, "", lead(found), "", aligned([header, *rows]), ""]
    return "\n".join([*parts, "saved and change are against today; rests on:", *(f"- {line}" for line in rests)])


def run_example(options: argparse.Namespace) -> None:
    """Write an example log, and the command to read it."""
    from thrifty.examples import EXAMPLES
    from thrifty.examples.generator import write_example

    if not 0.0 < options.exploration <= 1.0:
        raise ValueError(f"--exploration must be in (0, 1], got {options.exploration}: an arm that is never used cannot be judged")
    specification = EXAMPLES[options.name]
    bar = ProgressBar("writing", "row")
    try:
        path, beside = write_example(
            specification, options.out, rows=options.rows, seed=options.seed, exploration=options.exploration,
            kind=options.format, progress=bar
        )  # fmt: skip
    except OSError as error:
        raise ValueError(f"cannot write into {options.out}: {error.strerror}") from None
    finally:
        bar.close()
    names = {name: specification.names.get(name, name) for name in ("arm", "cost", "segment", "score")}
    reward = "--reward status --success delivered" if options.name == "sms" else f"--reward {names['score']}"
    print(path)
    print(beside)
    print(
        f"thrifty replay {path} --arm {names['arm']} {reward} --cost {names['cost']} --segment {names['segment']} --time sent_at "
        "--propensity propensity --outcome-time received_at"
    )


def _about(evidence: "Evidence") -> dict[str, Any]:
    from thrifty.replay.evidence import assumptions

    tally = evidence.aggregates.tally
    return {
        "rows": tally.rows,
        "used": tally.used,
        "left_out": tally.left_out,
        "span": evidence.profile.span,
        "notes": list(evidence.profile.notes),
        "assumptions": list(assumptions(evidence)),
    }


def _replay_json(found: "Replay") -> str:
    from thrifty.replay.evidence import finite

    body = {
        "profile": found.evidence.profile.arms.to_dicts(),
        "policies": found.policies.to_dicts(),
        "segments": found.segments.to_dicts(),
    }
    return json.dumps(finite({**_about(found.evidence), **body}), allow_nan=False)


def _replay_text(found: "Replay") -> str:
    from thrifty.table import aligned

    header = ("policy", "alpha", "estimator", "rows", "reward", "95%", "sure", "cost", "95%", "saving", "95%")
    rows = [
        (
            row["policy"],
            "" if row["alpha"] is None else f"{row['alpha']:g}",
            row["estimator"],
            f"{row['rows']:,}",
            *(
                [f"nothing said: {row['refused']}"] + [""] * 6
                if row["refused"]
                else [
                    f"{row['reward']:.4f}",
                    _range(row, "reward", ".4f"),
                    f"[{row['reward_sure_low']:.3f}, {row['reward_sure_high']:.3f}]",
                    f"{row['cost']:.4g}",
                    _range(row, "cost", ".4g"),
                    f"{row['saving']:.1%}",
                    _range(row, "saving", ".1%"),
                ]
            ),
        )
        for row in found.policies.to_dicts()
    ]
    refused = [
        f"- nothing said about {arm} in {segment}: {reason}"
        for segment, arm, reason in found.evidence.profile.arms.filter(found.evidence.profile.arms["refused"] != "")
        .select("segment", "arm", "refused")
        .rows()
    ]
    parts = [str(found.evidence.profile), *refused, "", aligned([header, *rows]), "", "saving is against today; rests on:"]
    return "\n".join([*parts, *(f"- {line}" for line in found.assumptions)])


def _frontier_text(found: "Frontier") -> str:
    from thrifty.replay.evidence import OVERALL, assumptions
    from thrifty.table import aligned

    header = ("alpha", "quality", "95%", "cost", "saving", "95%", "given up", "floor held")
    rows = [
        (
            f"{row['alpha']:g}", f"{row['quality']:.4f}", _range(row, "quality", ".4f"), f"{row['cost']:.4g}",
            f"{row['saving']:.1%}", _range(row, "saving", ".1%"), f"{row['given_up']:.2%}", f"{row['floor_held']:.0%}",
        )
        for row in found.points.filter(segment=OVERALL).to_dicts()
    ]  # fmt: skip
    lines = [
        f"- {row['segment']}: from {row['from_arm']} to {row['to_arm']} at alpha {row['alpha']:.3f} [{row['alpha_low']:.3f}, "
        f"{row['alpha_high']:.3f}], saving {row['saving']:.1%}"
        for row in found.changes.to_dicts()
    ]
    refused = [f"- nothing said about {segment}: {reason}" for segment, reason in found.refused.items()]
    parts = [str(found.evidence.profile), *refused, "", aligned([header, *rows]), "", f"knee at alpha {found.knees[OVERALL]:g}"]
    parts += ["where the choice changes:", *lines[:40], *([f"- and {len(lines) - 40} more"] if len(lines) > 40 else [])]
    return "\n".join(
        [*parts, "", "saving is against always the best; rests on:", *(f"- {line}" for line in assumptions(found.evidence))]
    )


def _range(row: dict[str, Any], name: str, form: str) -> str:
    return f"[{row[f'{name}_low']:{form}}, {row[f'{name}_high']:{form}}]"
