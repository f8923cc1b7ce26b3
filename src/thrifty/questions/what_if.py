"""What if an arm had another price? Every estimate of a log again, with other costs; the log is not read again."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from thrifty.logs import Evidence, examine
from thrifty.logs.aggregates import CC, WC, WW, WWC, WWCC, C, LogSums, N, W
from thrifty.logs.estimators import SegmentEstimates, estimate_segment
from thrifty.logs.profile import profile
from thrifty.questions.checking import checked_arm


def with_prices(source: Any, prices: Mapping[str, float | str]) -> Evidence:
    """The evidence of a log, as if every use of an arm had cost what `prices` says: a number, or a change such as "-10%".

    `source` is anything that `examine` takes.

    Rewards stay as they are. Today's choices are valued at the new prices too, so that a saving is what routing saves, not what the
    price does.

    >>> import polars
    >>> frame = polars.DataFrame({"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0] * 250, "cost": [0.2, 0.1] * 500})
    >>> with_prices(frame, {"a": 0.05, "b": "+50%"}).estimates[0].cost().round(3).tolist()
    [0.05, 0.15]
    """
    evidence = examine(source)
    changes = {checked_arm(arm, evidence.aggregates.arms): _checked_change(arm, given) for arm, given in prices.items()}
    if not changes:
        return evidence
    segments = tuple(_repriced(each, changes) for each in evidence.aggregates.segments)
    aggregates = replace(evidence.aggregates, segments=segments)
    estimates = tuple(
        _with_costs(before, estimate_segment(each, evidence.weights, weighted=aggregates.weighted), changes)
        for before, each in zip(evidence.estimates, segments, strict=True)
    )
    return replace(evidence, aggregates=aggregates, estimates=estimates, profile=profile(aggregates, estimates))


def read_prices(given: list[str]) -> dict[str, str]:
    """Prices from texts such as "Cedar=0.03" and "Elm=-10%"; a text may have several, separated by commas.

    >>> read_prices(["Cedar=0.03,Elm=-10%"])
    {'Cedar': '0.03', 'Elm': '-10%'}
    """
    found: dict[str, str] = {}
    for item in ",".join(given).split(","):
        arm, equals, price = item.partition("=")
        if not equals or not arm.strip():
            raise ValueError(f"--price must be ARM=PRICE or ARM=-10%, got {item!r:.80}")
        if arm.strip() in found:
            raise ValueError(f"--price names {arm.strip()!r:.80} twice ({found[arm.strip()]} and {price.strip()}): give one price")
        found[arm.strip()] = price.strip()
    return found


def _checked_change(arm: str, given: float | str) -> tuple[float | None, float]:
    """(the new price or None, the factor of the old one)."""
    text = str(given).strip()
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    if text.endswith("%"):
        if not -100.0 <= value < math.inf:
            raise ValueError(f"the price of {arm!r:.80} can change by -100% or more, got {text!r:.80}")
        return None, 1.0 + value / 100.0
    if not 0.0 <= value < math.inf:
        raise ValueError(f"the price of {arm!r:.80} must be finite and not negative, or a change such as -10%, got {text!r:.80}")
    return value, 1.0


def _with_costs(
    before: SegmentEstimates, after: SegmentEstimates, changes: Mapping[str, tuple[float | None, float]]
) -> SegmentEstimates:
    """Estimates with the costs of repriced arms, and all else as it was: rewards may be adjusted for how arms were chosen."""
    bound = before.bound.copy()
    replicates = {name: (rewards, costs.copy()) for name, (rewards, costs) in before.replicates.items()}
    for place, arm in enumerate(before.sums.arms):
        if arm in changes:
            price, factor = changes[arm]
            bound[1, :, place] = after.bound[1, :, place]
            for name, (_, costs) in replicates.items():
                costs[:, place] = factor * costs[:, place] if price is None else after.replicates[name][1][:, place]
    return replace(before, sums=after.sums, replicates=replicates, bound=bound)


def _repriced(sums: LogSums, changes: Mapping[str, tuple[float | None, float]]) -> LogSums:
    cells, largest = sums.sums.copy(), sums.cost_max.copy()
    for place, arm in enumerate(sums.arms):
        if arm in changes:
            price, factor = changes[arm]
            cells[place] = _repriced_cells(cells[place], price, factor)
            largest[place] = factor * largest[place] if price is None else price
    return replace(sums, sums=cells, cost_max=largest)


def _repriced_cells(cells: Any, price: float | None, factor: float) -> Any:
    cells = np.array(cells)
    if price is None:
        for place, power in ((C, 1), (WC, 1), (WWC, 1), (CC, 2), (WWCC, 2)):
            cells[:, place] *= factor**power
        return cells
    for cost, weight, power in ((C, N, 1), (CC, N, 2), (WC, W, 1), (WWC, WW, 1), (WWCC, WW, 2)):
        cells[:, cost] = cells[:, weight] * price**power
    return cells
