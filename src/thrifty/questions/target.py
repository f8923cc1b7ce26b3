"""The value of a stochastic policy that looks at each request: a column of the log has its probability for the arm that was used.

With q that probability and p the logged one, a row counts w = q/p times. In each segment the value is the sum of w times the
outcomes over the sum of w (SNIPS, [Swaminathan2015]). The policy's probabilities of the other arms are not in the log, so there is
no model of outcomes to lean on, and intervals are wider than those of shares.

References
----------
[Swaminathan2015] Swaminathan, Joachims, "The self-normalized estimator for counterfactual learning", NeurIPS 2015.

"""

import numpy as np

from thrifty.arrays import Floats
from thrifty.logs import Evidence
from thrifty.logs.aggregates import C
from thrifty.logs.reading import LogBatch
from thrifty.logs.source import require_polars
from thrifty.suggestions import did_you_mean

FEWEST = 30.0
"""Effective rows of a segment, at least."""

_TOLERANCE, _SIGMAS = 0.1, 6.0
_WEIGHT, _REWARD, _COST, _SQUARE, _PAID = range(5)


def weigh_rows(evidence: Evidence, column: str) -> dict[str, Floats]:
    """Read the log once more: by segment, (blocks, 5) sums of w, w reward, w cost, w squared, and costs."""
    log, starts = evidence.log, evidence.aggregates.starts
    _check_column(evidence, column)
    cells: dict[int, Floats] = {}
    for batch in log.batches(context=[column]):
        weights = _read(batch, column) / batch.propensities
        places = np.clip(
            np.searchsorted(starts, batch.rows if evidence.aggregates.by_rows else batch.times, side="right") - 1, 0, None
        )
        kinds = np.column_stack([weights, weights * batch.rewards, weights * batch.costs, weights**2, batch.costs])
        for segment in np.unique(batch.segments):
            mine = batch.segments == segment
            sums = cells.setdefault(int(segment), np.zeros((starts.size, kinds.shape[1])))
            np.add.at(sums, places[mine], kinds[mine])
    found = {log.segments.names[code]: sums for code, sums in cells.items()}
    _check_sums(evidence, found, column)
    return found


def target_value(evidence: Evidence, sums: Floats) -> tuple[Floats, Floats] | str:
    """(1 + B,) mean reward and mean cost of the policy in one segment, with replicates; or why there is no estimate."""
    total, square = sums[:, _WEIGHT].sum(), sums[:, _SQUARE].sum()
    effective = total**2 / square if square > 0.0 else 0.0
    if effective < FEWEST:
        return f"only {effective:.0f} effective rows, {FEWEST:.0f} are needed: the policy takes other arms than the log has"
    weight = np.maximum(evidence.weights @ sums[:, _WEIGHT], 1e-9 * total)
    return evidence.weights @ sums[:, _REWARD] / weight, evidence.weights @ sums[:, _COST] / weight


def _check_column(evidence: Evidence, column: str) -> None:
    log = evidence.log
    if not evidence.aggregates.weighted:
        raise ValueError(f"--target {column!r:.80} needs the probabilities of the log too: name their column with --propensity")
    if column == log.columns.propensity:
        raise ValueError(f"--target and --propensity both name the column {column!r:.80}: that is the policy of the log itself")
    if column not in log.column_names:
        near = did_you_mean(column, log.column_names, otherwise=f"there are {', '.join(log.column_names[:20])}")
        raise ValueError(f"no column {column!r:.80} for --target: {near}")


def _read(batch: LogBatch, column: str) -> Floats:
    """The probabilities of the policy; a ValueError names the first that is none."""
    pl = require_polars()
    assert batch.context is not None
    values = np.asarray(batch.context[column].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy(), np.float64)
    wrong = np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))
    if wrong.size:
        value = str(batch.context[column][int(wrong[0])])
        raise ValueError(
            f"--target must be a probability in [0, 1], got {value!r:.60} in row {int(batch.rows[wrong[0]]) + 1:,} of column "
            f"{column!r:.80} (such cells: {wrong.size:,} so far): correct them or take these rows out"
        )
    return values


def _check_sums(evidence: Evidence, found: dict[str, Floats], column: str) -> None:
    """A ValueError if the weights cannot be right, or if the evidence has other prices than the log."""
    whole = np.add.reduce(list(found.values())).sum(axis=0)
    rows, logged = float(evidence.aggregates.rows), sum(float(each.totals[:, C].sum()) for each in evidence.aggregates.segments)
    if not np.isclose(whole[_PAID], logged, rtol=1e-6, atol=1e-12):
        raise ValueError("--target values the costs of the log row by row, and --price changes them: leave one of them out")
    error = np.sqrt(max(whole[_SQUARE] - whole[_WEIGHT] ** 2 / rows, 0.0))
    if whole[_WEIGHT] - rows > max(_TOLERANCE * rows, _SIGMAS * error) or whole[_WEIGHT] <= 0.0:
        raise ValueError(
            f"the sum of {column!r:.80} over the logged propensities is {whole[_WEIGHT]:,.0f}, and there are {rows:,.0f} requests: "
            "it must be the probability with which the policy takes the arm of that row"
        )


def target_notes(evidence: Evidence, found: dict[str, Floats], column: str) -> list[str]:
    """What a person should know about the weights."""
    rows, weight = float(evidence.aggregates.rows), sum(float(sums[:, _WEIGHT].sum()) for sums in found.values())
    square = sum(float(sums[:, _SQUARE].sum()) for sums in found.values())
    notes = [f"policy by column {column!r:.80}: {weight**2 / max(square, 1e-300):,.0f} effective rows of {rows:,.0f}"]
    if weight < (1.0 - _TOLERANCE) * rows:
        notes.append(
            f"its weights add up to {weight:,.0f} of {rows:,.0f} requests: it takes arms that the log never used there, and these "
            "are not valued"
        )
    return notes
