"""`thrifty replay`: from a log, estimate what other choices would have brought and cost."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from thrifty.cli.arguments import add_command, add_count, add_folder, read_alphas, split_policies
from thrifty.cli.evidence import RowCount, add_log, bullets, describe, open_log, refusals, show_range, show_share
from thrifty.files import write_files

if TYPE_CHECKING:
    from thrifty.logs import Replay

_HEADER = ("policy", "alpha", "estimator", "rows", "reward", "95%", "sure", "cost", "95%", "per success", "saving", "95%")


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "replay",
        run,
        purpose="estimate from a log what other choices would have brought and cost",
        description="Profile a log, and estimate what other choices would have brought and cost.",
        example="thrifty replay deliveries.csv --arm aggregator --reward status --success delivered,read --cost price "
        "--segment country --time sent_at --alpha 0.02,0.05,0.1",
    )
    add_log(parser)
    parser.add_argument("--alpha", default="0.02,0.05,0.1", help="subsidy factors, separated by commas; default %(default)s")
    parser.add_argument(
        "--policies",
        default="cs-ids",
        help="policies to play through the log, without forgetting: names, name:parameter=value or .py files, separated by commas; "
        "or none; default %(default)s",
    )
    add_count(parser, "--plays", "how often each policy is played through the log", 4)
    add_folder(parser, "also write profile.csv, policies.csv and segments.csv there")


def run(options: argparse.Namespace) -> None:
    """Evaluate and show."""
    from thrifty.logs import replay

    alphas = read_alphas(options.alpha)
    policies = [] if options.policies == "none" else split_policies(options.policies)
    with RowCount() as rows:
        progress = rows.show_rows
        found = replay(open_log(options), alphas, policies=policies, seed=options.seed, plays=options.plays, progress=progress)
    if options.out is not None:
        frames = {"profile": found.evidence.profile.arms, "policies": found.policies, "segments": found.segments}
        write_files(options.out, {f"{name}.csv": frame.write_csv().encode() for name, frame in frames.items()})
    print(_as_json(found) if options.json else _as_text(found))


def _as_json(found: "Replay") -> str:
    from thrifty.logs.evidence import finite

    body = {
        "profile": found.evidence.profile.arms.to_dicts(),
        "policies": found.policies.to_dicts(),
        "segments": found.segments.to_dicts(),
    }
    return json.dumps(finite({**describe(found.evidence), **body}), allow_nan=False)


def _as_text(found: "Replay") -> str:
    from thrifty.table import aligned

    rows = [_as_row(row) for row in found.policies.to_dicts()]
    arms = found.evidence.profile.arms
    refused = arms.filter(arms["refused"] != "").select("segment", "arm", "refused").rows()
    parts = [
        str(found.evidence.profile),
        *refusals({f"{arm} in {segment}": reason for segment, arm, reason in refused}),
        "",
        aligned([_HEADER, *rows]),
        "",
        found.evidence.confounding.verdict(),
        "saving is against today; assumptions:",
        *bullets(found.assumptions),
    ]
    return "\n".join(parts)


def _as_row(row: dict[str, Any]) -> tuple[str, ...]:
    alpha = "" if row["alpha"] is None else f"{row['alpha']:g}"
    first = (row["policy"], alpha, row["estimator"], f"{row['rows']:,}")
    if row["refused"]:
        return (*first, f"no estimate: {row['refused']}", *[""] * 7)
    return (
        *first,
        f"{row['reward']:.4f}",
        show_range(row, "reward", ".4f"),
        show_range(row, "reward_sure", ".3f"),
        f"{row['cost']:.4g}",
        show_range(row, "cost", ".4g"),
        f"{row['cost_per_success']:.4g}",
        show_share(row["saving"]),
        show_range(row, "saving", ".1%"),
    )
