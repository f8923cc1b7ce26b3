"""What an experiment is: settings to simulate, and a finding from the results: a table, a figure as data, claims with verdicts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thrifty.experiments.verdict import Claim
from thrifty.figures import FigureData
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.table import Table

POLICIES = ("cs-ucb", "cs-ts", "cs-etc")


@dataclass(frozen=True)
class Scale:
    """How large to run: `quick` sizes fit into two minutes in all; `runs` overrides an experiment's own number of runs.

    >>> Scale(quick=True).pick(10, 100), Scale(quick=False).number_of_runs(50)
    (10, 50)
    """

    quick: bool
    runs: int | None = None
    seed: int = 1

    def pick(self, quick: Any, full: Any) -> Any:
        """The first at the quick size, the second at the full one."""
        return quick if self.quick else full

    def number_of_runs(self, usual: int) -> int:
        """The number asked for, else the usual one."""
        return usual if self.runs is None else self.runs


@dataclass(frozen=True, eq=False)
class Finding:
    """What came out: one table, one figure as data, and what they say.

    `claims` judge sentences of the paper: each sentence once in the whole catalogue. `corrections` judge what this project says
    instead, or beyond the paper.
    """

    table: Table
    figure: FigureData
    claims: tuple[Claim, ...] = ()
    corrections: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """One figure, table or claim of the paper, or a question beside it.

    `settings` lists what to simulate at a scale; `conclude` turns the results, in the same order, into a finding.
    """

    name: str
    title: str
    about: str
    settings: Callable[[Scale], list[Setting]]
    conclude: Callable[[Scale, list[Runs]], Finding]
