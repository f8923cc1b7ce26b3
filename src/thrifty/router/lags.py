"""Lags: how long after a decision its outcome comes, learnt from what arrives."""

import numpy as np

from thrifty.router.records import ARRIVED, DecisionRecords

LEAST_ARRIVALS = 50
"""Arrivals that are needed before anything is said about lags."""

SHARE = 0.99
"""Of outcomes, this share has come by `age_s`."""

SHORTEST_S = 2.0
_BINS = 64
_HALF = 0.5  # a bin spans a factor of 2 ** 0.5
_KEPT = 10_000.0  # arrivals that are remembered; older ones count less


class Lags:
    """A histogram of lags on a logarithmic scale.

    A lag is measured by the clock of this process when the outcome is first seen, not by `occurred_at`: outcomes that are sent once
    an hour come late, whenever they occurred.
    """

    def __init__(self) -> None:
        self.counts = np.zeros(_BINS)
        self.position = -1  # of the last outcome that was counted

    def learn(self, records: DecisionRecords, now: float) -> None:
        """Count what arrived since the last call."""
        table = records.used_table()
        positions = table["position"]
        last = int(positions.max(initial=0))
        if self.position >= 0 and last > self.position:
            new = (positions > self.position) & (table["settled"] == ARRIVED)
            lags = np.maximum(now - table["at"][new], SHORTEST_S / 4)
            places = np.clip(np.ceil(np.log2(lags) / _HALF) + 4, 0, _BINS - 1).astype(np.int64)
            self.counts += np.bincount(places, minlength=_BINS)
            total = self.counts.sum()
            if total > _KEPT:
                self.counts *= _KEPT / total
        self.position = max(last, self.position)

    def age_s(self, deadline_s: float) -> float:
        """Age by which nearly every outcome that comes has come; the deadline while that is not known."""
        total = self.counts.sum()
        if total < LEAST_ARRIVALS:
            return deadline_s
        place = int(np.searchsorted(np.cumsum(self.counts), SHARE * total))
        return float(min(max(2.0 ** ((place - 4) * _HALF), SHORTEST_S), deadline_s))
