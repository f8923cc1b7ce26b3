"""What an experiment is: settings to simulate, and a finding from the results: a table, a figure as data, claims with verdicts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thrifty.figures import FigureData
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.table import Table

POLICIES = ("cs-ucb", "cs-ts", "cs-etc")
HOLDS, FAILS, IMPRECISE = "holds", "does not hold", "imprecise"


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


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, whether it holds, and what was measured."""

    place: str
    text: str
    verdict: str
    measured: str


@dataclass(frozen=True, eq=False)
class Finding:
    """What came out: one table, one figure as data, and what they say about the paper's claims."""

    table: Table
    figure: FigureData
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class Experiment:
    """One figure, table or claim of the paper.

    `settings` lists what to simulate at a scale; `conclude` turns the results, in the same order, into a finding.
    """

    name: str
    title: str
    about: str
    settings: Callable[[Scale], list[Setting]]
    conclude: Callable[[Scale, list[Runs]], Finding]


def verdict(condition: bool, otherwise: str = FAILS) -> str:
    """The verdict "holds" when the condition is met.

    >>> verdict(True), verdict(False, IMPRECISE)
    ('holds', 'imprecise')
    """
    return HOLDS if condition else otherwise
