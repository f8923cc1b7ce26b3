"""A small linear program whose constraints are found one by one: the cheapest amounts that satisfy all of them."""

import numpy as np

from thrifty.arrays import Floats

_TOLERANCE = 1e-11
_GREEDY_STEPS = 1000  # afterwards the first improving column is taken, which cannot cycle (Bland's rule)


class CuttingPlanes:
    """Minimise prices @ n subject to rows @ n >= 1 and n >= least; rows can be added between two solutions.

    The dual, maximise r @ y subject to rows.T @ y <= prices with r = 1 - rows @ least, starts at y = 0, and a new row is a new
    column of it: the simplex method goes on from the last basis.

    Parameters
    ----------
    prices : (n,) all positive
    least : (n,) not negative

    >>> program = CuttingPlanes(np.array([1.0, 3.0]), np.zeros(2))
    >>> program.add(np.array([[1.0, 1.0], [0.5, 2.0]]))
    >>> program.solve().round(6).tolist()
    [0.666667, 0.333333]

    """

    def __init__(self, prices: Floats, least: Floats) -> None:
        self.prices, self.least = prices, least
        self.columns = np.eye(prices.size)
        self.gains = np.zeros(prices.size)
        self.basis = np.arange(prices.size)

    def add(self, rows: Floats) -> None:
        """Add the constraints rows @ n >= 1."""
        self.columns = np.hstack([self.columns, rows.T])
        self.gains = np.r_[self.gains, 1.0 - rows @ self.least]

    def solve(self) -> Floats:
        """(n,) the cheapest amounts."""
        step = 0
        while True:
            amounts = np.linalg.solve(self.columns[:, self.basis].T, self.gains[self.basis])
            gain = self.gains - amounts @ self.columns
            gain[self.basis] = 0.0
            improving = np.flatnonzero(gain > _TOLERANCE)
            if improving.size == 0:
                return np.asarray(self.least + np.maximum(amounts, 0.0))
            self._enter(int(improving[0] if step > _GREEDY_STEPS else np.argmax(gain)))
            step += 1

    def _enter(self, column: int) -> None:
        """Exchange `column` for the one of the basis that limits it."""
        held = np.linalg.solve(self.columns[:, self.basis], np.column_stack([self.prices, self.columns[:, column]]))
        limiting = np.flatnonzero(held[:, 1] > _TOLERANCE)
        if limiting.size == 0:
            raise ArithmeticError("no amounts satisfy all constraints: one of them has no positive number")
        ratios = held[limiting, 0] / held[limiting, 1]
        tied = limiting[ratios <= ratios.min() * (1.0 + 1e-12)]
        self.basis[tied[np.argmin(self.basis[tied])]] = column
