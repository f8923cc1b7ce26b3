"""The generator: logs of an example world, and the truth beside them. Needs polars; memory does not grow with the rows.

Traffic follows the hours of the day. For every request a segment is drawn by its share, then an arm from the operator's mix in that
segment. The mix shifts over time, so that arms and times are confounded as they are in real logs. A share `exploration` of the
requests is spread evenly over the arms. The probability of the arm is logged. An outcome comes back late or never; one that would
come after the end of the log is missing.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats
from thrifty.examples.specification import DELAY_SPREAD, ExampleSegment, Route, Specification
from thrifty.files import replacing, write_whole
from thrifty.problem import checked_count

if TYPE_CHECKING:
    import polars

START = 1_767_225_600.0
"""The first second of an example log: 2026-01-01 UTC."""

EXPLORATION = 0.2
CHUNK = 250_000
_GRID = 20_000
COLUMNS = ("id", "sent_at", "segment", "arm", "propensity", "cost", "status", "score", "received_at")


def shares(segment: ExampleSegment, when: Floats, exploration: float = EXPLORATION) -> Floats:
    """(n, K) the probabilities with which the operator chose each route at times `when` in [0, 1].

    >>> from thrifty.examples import SMS
    >>> shares(SMS.segment("US"), np.array([0.3]), exploration=1.0).round(3).tolist()
    [[0.333, 0.333, 0.333]]
    """
    n_arms = len(segment.routes)
    waves = 1.0 + 0.6 * np.sin(2.0 * np.pi * (2.0 * when[:, np.newaxis] + np.arange(n_arms) / n_arms))
    mix = np.array([route.weight for route in segment.routes]) * waves
    return np.asarray((1.0 - exploration) * mix / mix.sum(axis=1, keepdims=True) + exploration / n_arms)


def arrivals(specification: Specification, positions: Floats) -> Floats:
    """Times in [0, 1] of requests at `positions` in [0, 1] of the log: by day come three times as many as by night.

    >>> from thrifty.examples import SMS
    >>> arrivals(SMS, np.array([0.0, 0.5, 1.0])).round(3).tolist()
    [0.0, 0.5, 1.0]
    """
    grid = np.linspace(0.0, 1.0, _GRID + 1)
    cycle = 2.0 * np.pi * specification.days
    passed = grid - 0.5 * np.sin(cycle * grid) / cycle
    return np.interp(positions, passed / passed[-1], grid)


def generate(
    specification: Specification, rows: int | None = None, *, seed: int = 0, exploration: float = EXPLORATION
) -> Iterator["polars.DataFrame"]:
    """A log, in order of time, as frames of at most `CHUNK` rows.

    The columns are `COLUMNS`, under the names that the specification gives them. A log of scores has no status, and a log of
    successes and failures has no score.

    Parameters
    ----------
    specification : the world
    rows : how many; default the specification's own number
    seed : a non-negative integer
    exploration : the share of requests spread evenly over the routes; 1 for a uniformly logged one

    >>> from thrifty.examples import SMS
    >>> frame = next(generate(SMS, 1000, seed=1))
    >>> frame.height, frame["country"].n_unique()
    (1000, 12)

    """
    rows = checked_count("rows", specification.rows if rows is None else rows)
    for chunk, first in enumerate(range(0, rows, CHUNK)):
        rng = np.random.default_rng([checked_count("seed", seed, low=0), chunk])
        positions = (first + np.arange(count := min(CHUNK, rows - first)) + rng.random(count)) / rows
        yield _frame(specification, first, _draw(specification, rng, arrivals(specification, positions), exploration))


@dataclass
class _Requests:
    """Requests as arrays of the same length: times in [0, 1], the segment and arm of each, and what came of it."""

    when: Floats
    segment: NDArray[np.int64]
    arm: NDArray[np.object_]
    propensity: Floats
    cost: Floats
    reward: Floats
    delay_s: Floats
    lost: NDArray[np.bool_]


def _draw(specification: Specification, rng: np.random.Generator, when: Floats, exploration: float) -> _Requests:
    """Segments, arms and outcomes of requests at times `when`."""
    weights = np.array([segment.share for segment in specification.segments])
    of_segment = rng.choice(weights.size, when.size, p=weights / weights.sum())
    arm, lost = np.empty(when.size, dtype=object), np.empty(when.size, dtype=np.bool_)
    propensity, cost, reward, delay_s = (np.empty(when.size) for _ in range(4))
    drawn = _Requests(when, of_segment, arm, propensity, cost, reward, delay_s, lost)
    for number, segment in enumerate(specification.segments):
        _draw_segment(specification, segment, rng, np.flatnonzero(of_segment == number), drawn, exploration)
    return drawn


def _draw_segment(
    specification: Specification,
    segment: ExampleSegment,
    rng: np.random.Generator,
    here: NDArray[np.int64],
    drawn: _Requests,
    exploration: float,
) -> None:
    """Fill the rows `here`, which belong to one segment."""
    when = drawn.when[here]
    mix = shares(segment, when, exploration)
    arm = (rng.random((here.size, 1)) > np.cumsum(mix, axis=1)[:, :-1]).sum(axis=1)
    row = np.arange(here.size)

    def of_arm(read: Callable[[Route], float]) -> Floats:
        return np.asarray(np.array([read(route) for route in segment.routes])[arm])

    drawn.arm[here] = np.array([route.arm for route in segment.routes], dtype=object)[arm]
    drawn.propensity[here] = mix[row, arm]
    rates = specification.rates(segment, when)[row, arm]
    drawn.reward[here] = _rewards(rng, rates, of_arm(lambda route: route.concentration))
    prices = specification.prices(segment, when)[row, arm]
    drawn.cost[here] = _costs(rng, prices, of_arm(lambda route: route.cost_cv))
    drawn.delay_s[here] = of_arm(lambda route: route.delay_s) * np.exp(DELAY_SPREAD * rng.standard_normal(here.size))
    drawn.lost[here] = rng.random(here.size) < of_arm(lambda route: route.loss)


def _frame(specification: Specification, first: int, drawn: _Requests) -> "polars.DataFrame":
    """The requests as rows of a log, the first of which has the id m`first`."""
    import polars

    span_s = 86_400.0 * specification.days
    count = drawn.when.size
    scored = specification.scored
    come = ~drawn.lost & (drawn.when * span_s + drawn.delay_s <= span_s)
    status = np.full(count, "done") if scored else np.where(drawn.reward > 0.0, specification.success, "failed")
    frame = polars.DataFrame(
        {
            "id": np.arange(first, first + count),
            "sent_at": ((START + drawn.when * span_s) * 1e3).astype(np.int64),
            "segment": np.array([segment.name for segment in specification.segments], dtype=object)[drawn.segment],
            "arm": drawn.arm,
            "propensity": drawn.propensity,
            "cost": drawn.cost,
            "status": status.astype(object),
            "score": drawn.reward,
            "received_at": ((START + drawn.when * span_s + drawn.delay_s) * 1e3).astype(np.int64),
        },
        schema_overrides=dict.fromkeys(("segment", "arm", "status"), polars.String),
    )
    stamps = [polars.from_epoch(name, time_unit="ms").alias(name) for name in ("sent_at", "received_at")]
    blank = [polars.when(polars.Series(come)).then(polars.col(name)).alias(name) for name in ("status", "score", "received_at")]
    frame = frame.with_columns(*stamps, polars.format("m{}", "id").alias("id")).with_columns(*blank)
    frame = frame.drop("status" if scored else "score")
    return frame.rename({name: shown for name, shown in specification.names.items() if name in frame.columns})


def _rewards(rng: np.random.Generator, rates: Floats, concentrations: Floats) -> Floats:
    scored = concentrations > 0.0
    rewards = (rng.random(rates.size) < rates).astype(np.float64)
    a = rates[scored] * concentrations[scored]
    rewards[scored] = rng.beta(a, concentrations[scored] - a).round(4)
    return rewards


def _costs(rng: np.random.Generator, prices: Floats, cvs: Floats) -> Floats:
    costs = prices.copy()
    random = cvs > 0.0
    shape = 1.0 / cvs[random] ** 2
    costs[random] = rng.gamma(shape, prices[random] / shape)
    return costs.round(7)


def truth(specification: Specification, exploration: float = EXPLORATION) -> dict[str, Any]:
    """The truth over the span of a log, for every segment and arm.

    `rate` and `price` are means over the traffic, `reported` is the rate when outcomes that never come count as failures, and
    `logged` is what the operator's mix achieved.

    >>> from thrifty.examples import LLM
    >>> round(truth(LLM)["segments"]["code"]["arms"]["giant"]["rate"], 3)
    0.78
    """
    when = arrivals(specification, (np.arange(_GRID) + 0.5) / _GRID)
    total = sum(segment.share for segment in specification.segments)
    segments = {}
    for segment in specification.segments:
        rates, prices = specification.rates(segment, when), specification.prices(segment, when)
        mix = shares(segment, when, exploration)
        segments[segment.name] = {
            "share": segment.share / total,
            "logged": {"rate": float((mix * rates).sum(axis=1).mean()), "price": float((mix * prices).sum(axis=1).mean())},
            "arms": {
                route.arm: {
                    "rate": float(rates[:, column].mean()),
                    "reported": float(rates[:, column].mean() * (1.0 - route.loss)),
                    "price": float(prices[:, column].mean()),
                    "drift": route.drift,
                    "delay_s": route.delay_s,
                    "loss": route.loss,
                }
                for column, route in enumerate(segment.routes)
            },
        }
    return {"name": specification.name, "about": specification.about, "days": specification.days, "segments": segments}


def write_example(
    specification: Specification,
    folder: Path,
    *,
    rows: int | None = None,
    seed: int = 0,
    exploration: float = EXPLORATION,
    kind: str = "csv",
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Path, Path]:
    """Write NAME.csv (or .parquet) and NAME-truth.json into `folder`; their paths."""
    if kind not in ("csv", "parquet"):
        raise ValueError(f"an example log is csv or parquet, got {kind!r}")
    rows = checked_count("rows", specification.rows if rows is None else rows)
    folder.mkdir(parents=True, exist_ok=True)
    path, beside = folder / f"{specification.name}.{kind}", folder / f"{specification.name}-truth.json"
    frames = generate(specification, rows, seed=seed, exploration=exploration)
    writers = {"csv": _write_csv, "parquet": _write_parquet}
    writers[kind](path, frames, lambda done: progress(done, rows) if progress is not None else None)
    described = {**truth(specification, exploration), "rows": rows, "seed": seed, "exploration": exploration}
    write_whole(beside, (json.dumps(described, indent=1) + "\n").encode())
    return path, beside


def _write_csv(path: Path, frames: Iterator["polars.DataFrame"], report: Callable[[int], None]) -> None:
    done = 0
    with replacing(path) as part, part.open("wb") as file:
        for frame in frames:
            file.write(frame.write_csv(include_header=done == 0, datetime_format="%Y-%m-%dT%H:%M:%S%.3f").encode())
            done += frame.height
            report(done)


def _write_parquet(path: Path, frames: Iterator["polars.DataFrame"], report: Callable[[int], None]) -> None:
    """Write parts, then join them: polars streams a scan of the parts, so the whole log is never in memory."""
    import tempfile

    import polars

    with replacing(path) as whole, tempfile.TemporaryDirectory(dir=path.parent) as parts:
        done = 0
        for number, frame in enumerate(frames):
            frame.write_parquet(Path(parts) / f"{number:06}.parquet")
            done += frame.height
            report(done)
        polars.scan_parquet(Path(parts) / "*.parquet").sink_parquet(whole)
