"""`thrifty compare`: several policies in one world, as a table, JSON, CSV or a picture."""

import argparse
import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thrifty.cli.arguments import add_command, add_count, add_json, add_policies, add_runs, add_seed, read_numbers, split_policies
from thrifty.cli.progress import ProgressBar
from thrifty.files import check_file

if TYPE_CHECKING:
    from thrifty.environments import Feedback, World
    from thrifty.simulation import Runs

_HORIZON = 10_000


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "compare",
        run,
        purpose="simulate several policies on one instance",
        description="Simulate several policies on one instance and show quality and cost regret.",
        example="thrifty compare --means 0.5,0.46 --costs 1,0 --alpha 0.1 --policies cs-ucb,cs-ts,cs-etc:tau=100",
    )
    _add_world(parser)
    add_policies(parser, "cs-balance,cs-ucb,cs-ts,cs-etc")
    add_count(parser, "--horizon", f"rounds of a run; the policies know this number; default {_HORIZON}")
    add_count(parser, "--rounds", "rounds of a run, in place of --horizon; the policies do not know this number")
    _add_feedback(parser)
    add_runs(parser, 50)
    add_seed(parser)
    add_count(parser, "--threads", "default: all cores")
    parser.add_argument("--tapes", action="store_true", help="the n-th pull of an arm has the same reward under every policy")
    _add_output(parser)


def _add_world(parser: Any) -> None:
    parser.add_argument("--means", help="expected rewards in [0, 1], separated by commas")
    parser.add_argument("--costs", help="costs, separated by commas")
    parser.add_argument("--alpha", type=float, help="the subsidy factor in [0, 1]")
    parser.add_argument("--instance", metavar="FILE", help="read the arms from a .json or .toml file instead")


def _add_feedback(parser: Any) -> None:
    parser.add_argument(
        "--delay",
        metavar="LAW:DECISIONS",
        help="outcomes come late: fixed:100, or with a mean of 100 decisions exponential:100 or heavy-tailed:100",
    )
    add_count(parser, "--batch", "outcomes come in batches, one batch after every N decisions")
    parser.add_argument("--lost", type=float, metavar="SHARE", help="the share of outcomes that never come, in [0, 1]")
    add_count(parser, "--deadline", "a decision without an outcome counts as a failure after N decisions")


def _add_output(parser: Any) -> None:
    parser.add_argument("--checkpoints", choices=("linear", "log"), default="linear", help="the spacing of the curve's rounds")
    add_json(parser)
    parser.add_argument("--csv", metavar="FILE", type=Path, help="write the curves")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="draw the curves (.png, .svg or .pdf)")
    parser.add_argument(
        "--band", choices=("interval", "quantiles"), default="interval", help="what the bands of --plot show: the mean or the runs"
    )
    parser.add_argument("--save", metavar="FILE", type=Path, help="keep the runs for Runs.load (.npz)")


def run(options: argparse.Namespace) -> None:
    """Simulate and show; after Ctrl-C, show the runs that were completed."""
    from thrifty.simulation import SimulationInterrupted

    _check_output(options)
    try:
        runs = _simulate(options)
    except SimulationInterrupted as stopped:
        if stopped.runs.results:
            _show(stopped.runs, options, min(result.pulls.shape[0] for result in stopped.runs))
        raise
    _show(runs, options, options.runs)


def _check_output(options: argparse.Namespace) -> None:
    """A ValueError if a file cannot be written, before minutes are spent."""
    for flag, path in (("--csv", options.csv), ("--plot", options.plot), ("--save", options.save)):
        if path is not None:
            check_file(path, flag)
    if options.plot is not None:
        from thrifty.reports.drawing import check_pictures, checked_picture_path

        checked_picture_path(options.plot)
        check_pictures()


def _simulate(options: argparse.Namespace) -> "Runs":
    from thrifty.simulation import simulate

    world = _world(options)
    with ProgressBar("playing", "round") as bar:
        return simulate(
            world,
            split_policies(options.policies),
            horizon=_horizon(options),
            rounds=options.rounds,
            feedback=_feedback(options),
            runs=options.runs,
            seed=options.seed,
            checkpoints=options.checkpoints,
            tapes=options.tapes,
            threads=options.threads,
            progress=bar,
        )


def _show(runs: "Runs", options: argparse.Namespace, n_runs: int) -> None:
    from thrifty.files import write_whole

    if options.csv:
        write_whole(options.csv, runs.to_csv().encode())
    if options.plot:
        runs.plot(options.plot, band=options.band)
    if options.save:
        runs.save(options.save)
    print(json.dumps(as_json(runs, n_runs, options.seed)) if options.json else as_table(runs, n_runs, options.seed))


def as_json(runs: "Runs", n_runs: int, seed: int) -> dict[str, Any]:
    """The object that `--json` prints."""
    return {
        "version": runs.results[0].version,
        "digest": runs.results[0].digest,
        "instance": runs.instance.to_dict(),
        "world": runs.world,
        "horizon": runs.rounds,
        "told_horizon": runs.horizon,
        "feedback": runs.feedback,
        "tapes": runs.tapes,
        "runs": n_runs,
        "seed": seed,
        "results": [
            {
                "policy": policy,
                "parameters": runs[policy].parameters,
                **{f"{metric}_regret": summary for metric, summary in metrics.items()},
                "pulls": runs[policy].pulls[:, -1].mean(axis=0).tolist(),
            }
            for policy, metrics in runs.final().items()
        ],
    }


def as_table(runs: "Runs", n_runs: int, seed: int) -> str:
    """The table that a person reads."""
    from thrifty.table import aligned

    instance, summary = runs.instance, runs.summary()
    shown = list(range(instance.n_arms)) if instance.n_arms <= 6 else []
    header = (*summary.columns, *(f"pulls of arm {arm}" for arm in shown))
    rows = [(*texts, *(f"{pulls:,.0f}" for pulls in runs[texts[0]].pulls[:, -1].mean(axis=0)[shown])) for texts in summary.rows()]
    about = (
        f"{instance.n_arms} arms, best arm {instance.best_arm}, optimal arm {instance.optimal_arm}, floor {instance.floor:g} "
        f"(alpha {instance.alpha:g}); T = {runs.rounds:,}{_circumstances(runs)}, {n_runs} runs, seed {seed}; "
        "mean [95% interval], quantiles of the total"
    )
    return f"{about}\n\n{aligned([header, *rows])}"


def _circumstances(runs: "Runs") -> str:
    """What differs from a known horizon and immediate outcomes, in words."""
    notes = ["" if runs.horizon is not None else ", not known to the policies"]
    if runs.feedback is not None:
        delay = dict(runs.feedback["delay"])
        notes.append(f", {delay.pop('law')} delay of {next(iter(delay.values())):g} decisions")
        notes.append(f" in batches of {runs.feedback['batch']}" if runs.feedback["batch"] > 1 else "")
        notes.append(f", {runs.feedback['lost']:.3g} lost" if runs.feedback["lost"] > 0.0 else "")
        notes.append(f", deadline {runs.feedback['deadline']}" if runs.feedback["deadline"] is not None else "")
    notes.append(", on tapes" if runs.tapes else "")
    return "".join(notes)


def _horizon(options: argparse.Namespace) -> int | None:
    """The horizon that the policies know; None if they know none."""
    if options.rounds is None:
        return _HORIZON if options.horizon is None else int(options.horizon)
    if options.horizon is not None:
        raise ValueError(
            f"give --horizon (the policies know it) or --rounds (they do not), not both; got {options.horizon} and {options.rounds}"
        )
    return None


def _feedback(options: argparse.Namespace) -> "Feedback | None":
    from thrifty.environments import Feedback, read_delay

    given = {name: getattr(options, name) for name in ("batch", "lost", "deadline") if getattr(options, name) is not None}
    if options.delay is None and not given:
        return None
    return Feedback(0 if options.delay is None else read_delay(options.delay), **given)


def _world(options: argparse.Namespace) -> "World":
    from thrifty.environments import World

    if options.instance:
        if options.means or options.costs:
            raise ValueError("give the arms by --means and --costs or by --instance, not both")
        described = _read(Path(options.instance))
        return World.from_dict(described if options.alpha is None else {**described, "alpha": options.alpha})
    if options.means is None or options.costs is None or options.alpha is None:
        raise ValueError("give the arms: --means, --costs and --alpha, or --instance FILE")
    return World.from_dict(
        {
            "means": read_numbers("--means", options.means),
            "costs": read_numbers("--costs", options.costs),
            "alpha": options.alpha,
        }
    )


def _read(path: Path) -> dict[str, Any]:
    readers = {".json": json.loads, ".toml": tomllib.loads}
    if path.suffix not in readers:
        raise ValueError(f"an instance file must end in .json or .toml, got {path}")
    try:
        described = readers[path.suffix](path.read_text())
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    except (json.JSONDecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not {path.suffix[1:].upper()}: {error}") from None
    if not isinstance(described, dict):
        raise ValueError(f"{path} must hold one instance: means (or rewards), costs and alpha")
    return described
