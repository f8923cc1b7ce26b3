"""The linear program of the instance-dependent bound, against every corner of its feasible set."""

from itertools import combinations

import numpy as np
import pytest

from thrifty.arrays import Floats
from thrifty.theory.linear import CuttingPlanes


def cheapest_corner(prices: Floats, least: Floats, rows: Floats) -> float:
    """The least price over all corners: points where as many constraints are tight as there are amounts."""
    sides = np.vstack([rows, np.eye(prices.size)])
    limits = np.r_[np.ones(len(rows)), least]
    found = np.inf
    for tight in combinations(range(len(sides)), prices.size):
        chosen = sides[list(tight)]
        if abs(np.linalg.det(chosen)) > 1e-9:
            corner = np.linalg.solve(chosen, limits[list(tight)])
            if (sides @ corner >= limits - 1e-9).all():
                found = min(found, float(prices @ corner))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_the_amounts_are_those_of_the_cheapest_corner_while_rows_are_added(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 5))
    prices, least = rng.uniform(0.1, 2.0, size), rng.choice([0.0, 0.3], size)
    program, rows = CuttingPlanes(prices, least), np.zeros((0, size))
    for _ in range(3):
        more = rng.uniform(0.05, 1.0, (2, size)) * (rng.random((2, size)) < 0.8)
        more[:, 0] += 0.05  # so that some amounts satisfy every row
        program.add(more)
        rows = np.vstack([rows, more])
        amounts = program.solve()
        assert (rows @ amounts >= 1.0 - 1e-9).all()
        assert (amounts >= least).all()
        assert float(prices @ amounts) == pytest.approx(cheapest_corner(prices, least, rows), rel=1e-9)


def test_equal_rows_and_tied_corners_end() -> None:
    program = CuttingPlanes(np.ones(3), np.zeros(3))
    program.add(np.ones((4, 3)))
    program.add(np.eye(3) + 1.0)
    assert program.solve().sum() == pytest.approx(1.0, rel=1e-12)


def test_of_tied_columns_the_oldest_leaves_and_a_step_of_no_length_is_taken() -> None:
    # Minimise a + b with a + b >= 1: both columns limit the row, and Bland's rule lets the first one go, so that a alone pays.
    program = CuttingPlanes(np.ones(2), np.zeros(2))
    program.add(np.array([[1.0, 1.0]]))
    assert program.solve().tolist() == [1.0, 0.0]
    # a/2 + 2 b >= 1 as well: the other column, at 0, limits it at once. The corner a = 2/3, b = 1/3 costs no more.
    program.add(np.array([[0.5, 2.0]]))
    assert program.solve() == pytest.approx([2 / 3, 1 / 3])


def test_after_the_greedy_steps_the_first_column_that_improves_enters(monkeypatch: pytest.MonkeyPatch) -> None:
    # Minimise a + b with a >= 1, a/2 + b >= 1, a/5 + b >= 1: columns 2, 3, 4 after those of a and b themselves. First column 2
    # enters: a = 1, b = 0. Then the others lack 0.5 and 0.8: greed takes column 4, which ends it, and Bland's rule column 3.
    entered: list[int] = []

    class Watched(CuttingPlanes):
        def _enter(self, column: int) -> None:
            entered.append(column)
            super()._enter(column)

    for greedy_steps, columns in ((1000, [2, 4]), (0, [2, 3, 4])):
        monkeypatch.setattr("thrifty.theory.linear._GREEDY_STEPS", greedy_steps)
        entered.clear()
        program = Watched(np.ones(2), np.zeros(2))
        program.add(np.array([[1.0, 0.0], [0.5, 1.0], [0.2, 1.0]]))
        assert program.solve() == pytest.approx([1.0, 0.8])
        assert entered == columns


def test_what_is_reached_by_the_least_amounts_costs_no_more() -> None:
    program = CuttingPlanes(np.array([1.0, 2.0]), np.array([3.0, 0.5]))
    program.add(np.array([[0.5, 0.0], [0.2, 1.0]]))
    assert program.solve().tolist() == [3.0, 0.5]


def test_a_row_that_nothing_satisfies_is_refused() -> None:
    program = CuttingPlanes(np.array([1.0, 2.0]), np.zeros(2))
    program.add(np.zeros((1, 2)))
    with pytest.raises(ArithmeticError, match="no amounts satisfy all constraints"):
        program.solve()
