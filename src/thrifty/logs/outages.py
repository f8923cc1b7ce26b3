"""Outages: stretches of time in which an arm succeeds far less often than otherwise, beyond what chance explains.

Every stretch of neighbouring blocks, up to half of the span, is compared with all other blocks. With n rows and rate p in the
stretch, n' and p' outside and q together, the evidence is n kl(p, q) + n' kl(p', q), kl being the divergence of two success rates.
The strongest stretch is an outage if its rate is below 60% of the rate outside and its evidence is above the logarithm of the
number of stretches looked at, over `CHANCE`. It is taken out, and the search goes on, so that two outages stay two.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from thrifty.arrays import Floats
from thrifty.compiled import builder, kept
from thrifty.logs.aggregates import N, R

CHANCE = 0.01
"""About the largest probability with which a log without outages is said to have one."""

_LOW = 0.6  # an outage has less than this share of the rate outside it
_MOST = 8  # outages of one arm


@dataclass(frozen=True)
class Outage:
    """The blocks `first` to `last` (both inside), the rate in them and the rate outside of all outages."""

    first: int
    last: int
    rate: float
    usual: float


def find_outages(cells: Floats, tests: int) -> list[Outage]:
    """The outages of one arm, in order of time.

    Parameters
    ----------
    cells : (B, SUMS) the sums of one arm by block
    tests : how many arms are looked at in all

    """
    used = np.flatnonzero(cells[:, N] > 0)
    rows, rewards = np.ascontiguousarray(cells[used, N]), np.ascontiguousarray(cells[used, R])
    level = math.log(max(used.size, 2) ** 2 / 2.0 * max(tests, 1) / CHANCE)
    stretches: list[slice] = []
    out = np.zeros(used.size, np.bool_)
    while len(stretches) < _MOST and rewards[~out].sum() * math.log(2.0) > level:
        start, end, evidence = _strongest(rows, rewards, out)
        if evidence < level:
            break
        stretches.append(slice(int(start), int(end)))
        out[stretches[-1]] = True
    usual = float(rewards[~out].sum() / max(rows[~out].sum(), 1.0))
    found = [(int(used[one.start]), int(used[one.stop - 1]), float(rewards[one].sum() / rows[one].sum())) for one in stretches]
    return [Outage(first, last, rate, usual) for first, last, rate in sorted(found)]


@kept
def _strongest(rows: Any, rewards: Any, out: Any) -> Any:
    """The start and end of the stretch with the most evidence of a low rate, and this evidence; stretches do not contain `out`."""
    count = rows.size
    all_rows, all_rewards = 0.0, 0.0
    for block in range(count):
        if not out[block]:
            all_rows += rows[block]
            all_rewards += rewards[block]
    best, best_start, best_end = -1.0, 0, 0
    for start in range(count):
        inside_rows, inside_rewards = 0.0, 0.0
        for end in range(start, min(count, start + count // 2)):
            if out[end]:
                break
            inside_rows += rows[end]
            inside_rewards += rewards[end]
            rest_rows, rest_rewards = all_rows - inside_rows, all_rewards - inside_rewards
            if rest_rows < 0.5 * all_rows:
                break
            if inside_rewards * rest_rows >= _LOW * rest_rewards * inside_rows:
                continue
            q = all_rewards / all_rows
            evidence = inside_rows * _kl(inside_rewards / inside_rows, q) + rest_rows * _kl(rest_rewards / rest_rows, q)
            if evidence > best:
                best, best_start, best_end = evidence, start, end + 1
    return best_start, best_end, best


@builder
def _kl(p: float, q: float) -> float:
    """The divergence of two success rates."""
    value = 0.0
    if p > 0.0:
        value += p * math.log(p / q)
    if p < 1.0 and q < 1.0:
        value += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return value
