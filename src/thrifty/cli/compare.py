"""`thrifty compare`: several policies in one world, as a table, JSON, CSV or a picture."""

import argparse
import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thrifty.cli.progress import ProgressBar

if TYPE_CHECKING:
    from thrifty.environments import Feedback, World
    from thrifty.simulation import Runs

_HORIZON = 10_000


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "compare",
        help="simulate several policies on one instance",
        description="Simulate several policies on one instance and show quality and cost regret.",
        epilog="Example: thrifty compare --means 0.5,0.46 --costs 1,0 --alpha 0.1 --policies cs-ucb,cs-ts,cs-etc:tau=100",
    )
    parser.add_argument("--means", help="expected rewards in [0, 1], separated by commas")
    parser.add_argument("--costs", help="costs, separated by commas")
    parser.add_argument("--alpha", type=float, help="the subsidy factor in [0, 1]")
    parser.add_argument("--instance", metavar="FILE", help="read the arms from a .json or .toml file instead")
    parser.add_argument(
        "--policies",
        default="cs-ids,cs-ucb,cs-ts,cs-etc",
        help="names, name:parameter=value, name+restart, or .py files; default %(default)s",
    )
    parser.add_argument("--horizon", type=int, help=f"rounds of a run, which the policies are told; default {_HORIZON}")
    parser.add_argument("--rounds", type=int, help="rounds of a run, in place of --horizon, which the policies are not told")
    parser.add_argument(
        "--delay", metavar="LAW:DECISIONS", help="outcomes come late: fixed:100, exponential:100 or heavy-tailed:100 (a mean)"
    )
    parser.add_argument("--batch", type=int, help="outcomes come together, after every so many decisions")
    parser.add_argument("--lost", type=float, help="the share of outcomes that never comes, in [0, 1]")
    parser.add_argument("--deadline", type=int, help="after so many decisions without an outcome it counts as a failure")
    parser.add_argument("--runs", type=int, default=50, help="independent runs; default %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default %(default)s")
    parser.add_argument("--threads", type=int, help="default: all cores")
    parser.add_argument("--checkpoints", choices=("linear", "log"), default="linear", help="how the curve's rounds are spaced")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--csv", metavar="FILE", type=Path, help="write the curves")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="draw the curves (.png, .svg or .pdf)")
    parser.add_argument("--save", metavar="FILE", type=Path, help="keep the runs for Runs.load (.npz)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Simulate and show."""
    from thrifty.files import write_whole
    from thrifty.simulation import simulate

    world = _world(options)
    bar = ProgressBar("playing", "round")
    try:
        runs = simulate(
            world,
            split_policies(options.policies),
            horizon=_horizon(options),
            rounds=options.rounds,
            feedback=_feedback(options),
            runs=options.runs,
            seed=options.seed,
            checkpoints=options.checkpoints,
            threads=options.threads,
            progress=bar,
        )
    finally:
        bar.close()
    if options.csv:
        write_whole(options.csv, runs.regret().to_csv().encode())
    if options.plot:
        runs.plot(options.plot)
    if options.save:
        runs.save(options.save)
    print(json.dumps(as_json(runs, options.runs, options.seed)) if options.json else as_table(runs, options.runs, options.seed))


def split_policies(text: str) -> list[str]:
    """The policies in a comma-separated list, whose parameters are separated by commas as well.

    >>> split_policies("cs-ts:prior=shrunk,sigma_0=2,cs-etc")
    ['cs-ts:prior=shrunk,sigma_0=2', 'cs-etc']
    """
    specs: list[str] = []
    for item in text.split(","):
        if specs and "=" in item and not {":", "+"} & set(item.partition("=")[0]):
            specs[-1] += f",{item}"
        else:
            specs.append(item)
    return specs


def as_json(runs: "Runs", n_runs: int, seed: int) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "instance": runs.instance.to_dict(),
        "horizon": runs.rounds,
        "told_horizon": runs.horizon,
        "feedback": runs.feedback,
        "runs": n_runs,
        "seed": seed,
        "results": [
            {
                "policy": policy,
                **{f"{metric}_regret": summary for metric, summary in metrics.items()},
                "pulls": runs[policy].pulls[:, -1].mean(axis=0).tolist(),
            }
            for policy, metrics in runs.final().items()
        ],
    }


def as_table(runs: "Runs", n_runs: int, seed: int) -> str:
    """What a person reads."""
    from thrifty.table import aligned

    instance = runs.instance
    shown = list(range(instance.n_arms)) if instance.n_arms <= 6 else []
    header = ("policy", "quality regret", "cost regret", "total regret", *(f"pulls of arm {arm}" for arm in shown))
    rows = [
        (
            policy,
            *(f"{summary['mean']:,.1f} +- {summary['se']:,.1f}" for summary in metrics.values()),
            *(f"{pulls:,.0f}" for pulls in runs[policy].pulls[:, -1].mean(axis=0)[shown]),
        )
        for policy, metrics in runs.final().items()
    ]
    about = (
        f"{instance.n_arms} arms, best arm {instance.best_arm}, optimal arm {instance.optimal_arm}, floor {instance.floor:g} "
        f"(alpha {instance.alpha:g}); T = {runs.rounds:,}{_circumstances(runs)}, {n_runs} runs, seed {seed}; "
        "mean +- standard error"
    )
    return f"{about}\n\n{aligned([header, *rows])}"


def _circumstances(runs: "Runs") -> str:
    """What differs from a known horizon and outcomes at once, in words."""
    said = ["" if runs.horizon is not None else ", not told"]
    if runs.feedback is not None:
        delay = dict(runs.feedback["delay"])
        said.append(f", {delay.pop('law')} delay of {next(iter(delay.values())):g} decisions")
        said.append(f" in batches of {runs.feedback['batch']}" if runs.feedback["batch"] > 1 else "")
        said.append(f", {runs.feedback['lost']:.3g} lost" if runs.feedback["lost"] > 0.0 else "")
        said.append(f", deadline {runs.feedback['deadline']}" if runs.feedback["deadline"] is not None else "")
    return "".join(said)


def _horizon(options: argparse.Namespace) -> int | None:
    """What the policies are told; None for nothing."""
    if options.rounds is None:
        return _HORIZON if options.horizon is None else int(options.horizon)
    if options.horizon is not None:
        raise ValueError(
            "give --horizon, which the policies are told, or --rounds, which they are not; "
            f"got {options.horizon} and {options.rounds}"
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
        {"means": _floats("means", options.means), "costs": _floats("costs", options.costs), "alpha": options.alpha}
    )


def _floats(name: str, text: str) -> list[float]:
    try:
        return [float(item) for item in text.split(",")]
    except ValueError:
        raise ValueError(f"--{name} must be numbers separated by commas, got {text!r}") from None


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
