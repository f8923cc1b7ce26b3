"""`thrifty recommend`: the policy and alpha to run in each segment, from a log."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from thrifty.cli.arguments import add_command, add_count, add_folder, add_policies, read_alphas, split_policies
from thrifty.cli.evidence import RowCount, add_log, bullets, describe, free_warning, refusals, show_range, show_share
from thrifty.cli.progress import ProgressBar
from thrifty.cli.what_if import add_prices, examine_log, price_notes
from thrifty.files import write_files

if TYPE_CHECKING:
    from thrifty.advice import Recommendation

_HEADER = ("segment", "rows", "policy", "alpha", "arm now", "quality", "change", "95%", "saved", "95%", "floor held")


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "recommend",
        run,
        purpose="recommend a policy and an alpha for each segment, from a log",
        description="Which policy and alpha to run in each segment, what it saves and what it costs in quality: one page.",
        example="thrifty recommend deliveries.csv --arm aggregator --reward delivered --cost price --segment country",
    )
    add_log(parser)
    parser.add_argument("--alpha", default="0.02,0.05,0.1", help="alphas to choose from, separated by commas; default %(default)s")
    add_policies(parser, "cs-worth,cs-ids,cs-balance,cs-ts,cs-ucb,fixed", "policies to choose from (fixed: always one arm)")
    parser.add_argument(
        "--exchange", type=float, default=3.0, help="per cent of cost that one per cent of quality is worth; default %(default)s"
    )
    parser.add_argument(
        "--confidence",
        type=float,
        metavar="SHARE",
        help="alpha is a limit: a policy that keeps it, learning included, in a smaller share of the simulated worlds is out; "
        "default 0.5, with --cold 0.7",
    )
    parser.add_argument("--cold", action="store_true", help="routers start from nothing, instead of with what the log knows")
    parser.add_argument("--soft", action="store_true", help="alpha is no limit: only --exchange counts")
    parser.add_argument("--name", default="advised", help="the name of the router to make; default %(default)s")
    add_prices(parser)
    add_count(parser, "--rounds", "decisions of a simulated run", 10_000)
    add_count(parser, "--worlds", "simulated worlds for each segment", 16)
    add_count(parser, "--most", "recommend for so many segments, those with the most rows", 60)
    add_folder(parser, "write recommendation.html, routers.json and CSV files there")


def run(options: argparse.Namespace) -> None:
    """Work out the recommendation, show it, and write it where asked."""
    from thrifty.advice import Criteria, Effort, recommend
    from thrifty.reports.recommendation import recommendation_files
    from thrifty.router.settings import checked_name

    checked_name("--name", options.name)
    if options.soft and options.confidence is not None:
        raise ValueError(
            f"--soft says that alpha is no limit, and --confidence {options.confidence:g} that it is one: give one of them"
        )
    with RowCount() as rows, ProgressBar("playing", "game") as bar:
        found = recommend(
            examine_log(options, rows),
            read_alphas(options.alpha),
            policies=split_policies(options.policies),
            criteria=Criteria(options.exchange, 0.0 if options.soft else options.confidence),
            effort=Effort(rounds=options.rounds, worlds=options.worlds, most=options.most),
            warm=not options.cold,
            progress=bar,
        )
    if options.out is not None:
        write_files(options.out, recommendation_files(found, name=options.name))
    print(_as_json(found, options.name) if options.json else "\n".join([_as_text(found), *bullets(price_notes(options))]))


def _as_json(found: "Recommendation", name: str) -> str:
    from thrifty.advice.routers import advised_routers
    from thrifty.logs.evidence import finite

    advised = advised_routers(found, name).to_dict()
    body = {"segments": found.segments.to_dicts(), "candidates": found.candidates.to_dicts(), "advised": advised}
    return json.dumps(finite({**describe(found.evidence), **body, "refused": found.refused}), allow_nan=False)


def _as_text(found: "Recommendation") -> str:
    from thrifty.logs.evidence import OVERALL, assumptions
    from thrifty.reports.recommendation import lead
    from thrifty.table import aligned

    simulated = f"{found.worlds} simulated worlds a segment, {found.rounds:,} decisions each; learning included"
    parts = [
        str(found.evidence.profile),
        *refusals(found.refused),
        "",
        lead(found),
        *free_warning(found.segments.filter(segment=OVERALL)["saving"], float(found.evidence.today[1][0])),
        "",
        aligned([_HEADER, *(_as_row(row) for row in found.segments.to_dicts())]),
        "",
        "saved and change are against today; floor held: the share of the worlds in which the policy, learning included, gave up",
        "no more than its alpha; assumptions:",
        *bullets([*assumptions(found.evidence), simulated]),
    ]
    return "\n".join(parts)


def _as_row(row: dict[str, Any]) -> tuple[str, ...]:
    overall = row["alpha"] is None
    return (
        row["segment"],
        f"{row['rows']:,}",
        row["policy"],
        "" if overall else f"{row['alpha']:g}",
        row["arm"],
        f"{row['quality']:.4f}",
        f"{row['quality_change']:+.4f}",
        show_range(row, "quality_change", "+.4f"),
        show_share(row["saving"]),
        show_range(row, "saving", ".1%"),
        f"{row['floor_held']:.0%}",
    )
