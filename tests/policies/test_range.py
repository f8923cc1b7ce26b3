"""An arm that is not there is an error in every driver, never a wrong result or a fault of memory."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.logs import logs
from thrifty import Instance, Policy, simulate
from thrifty.environments import Changing, Feedback, Fixed
from thrifty.environments.families import HardFamily
from thrifty.logs import Columns, Log
from thrifty.logs.evidence import examine
from thrifty.logs.rejection import replay_policy
from thrifty.policies import Rule, kernel, policy
from thrifty.policies.binding import explaining_faults
from thrifty.simulation.adversary import turned_against
from thrifty.simulation.segments import simulate_segments
from thrifty.theory.reduction import derive

TWO = Instance([0.5, 0.46], [1.0, 0.0], 0.1)


@pytest.fixture(autouse=True)
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial in plain Python would find these arms first; here the loops must find them by themselves."""
    monkeypatch.setattr("thrifty.policies.binding.check_users_rule", lambda *_: None)


def late(arm: int, after: int) -> Policy:
    """Plays arm 0 for some rounds, then an arm that is not there."""

    @kernel
    def choose(_terms, stats, _memory, _stream):  # type: ignore[no-untyped-def]
        return arm if stats[0].sent >= after else 0

    return Policy("late", "an arm that is not there", Rule(choose))


def refused(arm: int, played: int, n_arms: int = 2) -> str:
    return re.escape(f"late chose arm {arm} in round {played + 1}, and there are {n_arms} arms")


@pytest.mark.parametrize("arm", [2, 99, -1, 10**9, -(2**63), 2**63 - 1])
def test_an_arm_that_is_not_there_is_refused_with_its_policy_and_round(arm: int) -> None:
    with pytest.raises(ValueError, match=refused(arm, 7)):
        simulate(TWO, late(arm, 7), horizon=1000, runs=4)


def test_late_outcomes_other_pieces_and_traces_change_nothing() -> None:
    changing = Changing([(0, TWO), (300, Instance([0.5, 0.3], [1.0, 0.0], 0.1))])
    with pytest.raises(ValueError, match=refused(5, 600)):
        simulate(changing, late(5, 600), rounds=1000, runs=2, feedback=Feedback(Fixed(20)), trace=True)


def test_the_other_policies_do_not_hide_it() -> None:
    with pytest.raises(ValueError, match=refused(99, 500)):
        simulate(TWO, ["cheapest", late(99, 500), "cs-etc"], horizon=1000, runs=2)


def test_segments_refuse_it() -> None:
    with pytest.raises(ValueError, match=r"late chose arm 2 in round \d+, and there are 2 arms"):
        simulate_segments([TWO] * 3, late(2, 5), rounds=100, leaning=True, runs=2)


def test_the_reduction_refuses_it() -> None:
    with pytest.raises(ValueError, match=refused(-3, 40, 3)):
        derive(late(-3, 40), HardFamily(theta=0.25, p=0.25, epsilon=0.1, n_dear=2), member=1, rounds=100, runs=2)


def test_rejection_replay_refuses_it() -> None:
    log = Log(logs.frame(), Columns(segment="segment", time="at", propensity="p"))
    evidence = examine(log)
    with pytest.raises(ValueError, match=refused(3, 10, 3)):
        replay_policy(log, evidence.aggregates, evidence.estimates, late(3, 10), [0.1], plays=1)


FILE = """
from thrifty.policies import Policy, Rule, kernel

@kernel
def choose(terms, stats, memory, stream):
    return 99 if stats[0].sent > 6 else 0

POLICY = Policy("astray", "arm 99 in its eighth round", Rule(choose))
"""


def test_the_adversary_refuses_it(tmp_path: Path) -> None:
    (tmp_path / "astray.py").write_text(FILE)
    with pytest.raises(ValueError, match="astray"):
        turned_against(str(tmp_path / "astray.py"), [0.0, 1.0], 0.1, rounds=10, runs=2)


def test_rounds_that_are_not_counted_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from thrifty.simulation import runner

    class Forgetful(runner._Task):
        def play(self, *arguments: Any) -> None:
            super().play(*arguments)
            self.pulls[0, -1, 0] -= 1

    monkeypatch.setattr(runner, "_Task", Forgetful)
    with pytest.raises(AssertionError, match="cheapest: pulls do not sum to the rounds played, in 1 checkpoints"):
        simulate(TWO, "cheapest", horizon=100, runs=2, threads=1)


def test_a_fault_of_the_package_keeps_its_trace_and_one_of_a_users_rule_is_one_line() -> None:
    streams = np.ones((1, 4), np.uint64)
    with pytest.raises(ZeroDivisionError, match=r"^of the package$"), explaining_faults(policy("cs-etc"), 2, streams):
        raise ZeroDivisionError("of the package")
    with pytest.raises(ValueError, match=r"^late: "), explaining_faults(late(9, 9), 2, streams):
        raise ZeroDivisionError("of a user")
