"""Fees: costs that depend on the outcome."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from thrifty import Bernoulli, Beta, Deterministic, Fees, Policy, Resampled, World, scaled, simulate
from thrifty.arrays import Floats
from thrifty.cli.main import main
from thrifty.compiled import builder, kernel
from thrifty.environments import Feedback, outage, repriced
from thrifty.environments.law_reading import law_from_dict
from thrifty.environments.laws import Law
from thrifty.environments.sampling import LawTable, draw_cost, tabulate
from thrifty.policies.contract import Rule
from thrifty.streams import Stream, make_streams

SEVERAL = Fees(success=scaled(Beta(2, 6), 4.0), failure=scaled(Resampled((0.25, 0.75)), 2.0))


@builder
def _draws(table: LawTable, arm: int, reward: float, stream: Stream, n: int) -> Floats:
    return np.array([draw_cost(table, arm, reward, stream) for _ in range(n)])


def drawn(law: Law, reward: float, n: int = 20_000) -> Floats:
    """Between neighbours with data and fees of their own, so that all offsets are exercised."""
    table = tabulate([Resampled((0.1, 0.2)), Fees(5, scaled(Resampled((0.5,)), 9)), law, Fees(7, 8)])
    return _draws(table, 2, reward, make_streams(1, np.array([[0]]))[0], n)


def test_a_fee_is_drawn_given_the_outcome() -> None:
    assert set(drawn(Fees(success=0.5, failure=0.125), 1.0, 50)) == {0.5}
    assert set(drawn(Fees(success=0.5, failure=0.125), 0.0, 50)) == {0.125}
    assert set(drawn(SEVERAL, 0.0)) == {0.5, 1.5}
    assert drawn(SEVERAL, 1.0).mean() == pytest.approx(1.0, abs=0.03)  # five standard errors of 0.0041
    assert set(drawn(scaled(SEVERAL, 0.5), 0.0)) == {0.25, 0.75}
    assert set(drawn(Fees(0, 3), 1.0, 50)) == {0.0}


def test_a_reward_between_0_and_1_is_a_success_with_that_probability() -> None:
    paid = drawn(Fees(success=1, failure=0), 0.3)
    assert paid.mean() == pytest.approx(0.3, abs=0.017)  # five standard errors
    assert set(paid) == {0.0, 1.0}


def test_the_mean_cost_follows_from_the_mean_reward() -> None:
    assert SEVERAL.mean_at(0.25) == pytest.approx(0.25 * 1.0 + 0.75 * 1.0)
    assert Fees(0.3, 0.1).mean_at(0.75) == pytest.approx(0.25)
    assert scaled(Fees(0.3, 0.1), 10).mean_at(0.75) == pytest.approx(2.5)
    assert Bernoulli(0.3).mean_at(0.9) == 0.3
    world = World([0.5, Beta(1, 3)], [Fees(1, 0), scaled(Beta(1, 1), 4)], 0.1)
    assert world.instance.costs.tolist() == [0.5, 2.0]
    broken = outage(World([0.5, 0.8], [Fees(1, 0), Fees(1, 0.5)], 0.1), arm=1, start=10, end=20)
    assert [each.instance.costs.tolist() for _, each in broken.pieces] == [[0.5, 0.9], [0.5, 0.5], [0.5, 0.9]]
    with pytest.raises(ValueError, match=r"use mean_at\(mean reward\)"):
        SEVERAL.mean  # noqa: B018


@kernel
def choose_while_fees_follow(terms: Any, stats: Any, memory: Any, stream: Any) -> Any:  # noqa: ARG001
    """Arm 0, as long as its costs are 0.5 for each success and 0.125 for each failure; else arm 1."""
    won, lost = stats[0].reward_sum, stats[0].seen - stats[0].reward_sum
    follow = stats[0].cost_sum == 0.5 * won + 0.125 * lost and stats[0].cost_squares == 0.25 * won + 0.015625 * lost
    return 0 if follow else 1


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("feedback", [None, Feedback(3)], ids=["at once", "late"])
def test_fees_follow_outcomes_in_a_simulation(feedback: Feedback | None) -> None:
    rule = Rule(choose_while_fees_follow)
    watcher = Policy("watcher", "", rule, rule_for_unknown_costs=rule)
    world = World([0.6, 0.58], [Fees(success=0.5, failure=0.125), Fees(0, 0)], 0.1)
    runs = simulate(world, watcher, horizon=200, runs=2, seed=2, feedback=feedback)
    assert runs["watcher"].pulls[:, -1].tolist() == [[200, 0], [200, 0]]
    assert runs.samples("watcher")["cost"][:, -1].tolist() == pytest.approx(
        [200 * 0.35] * 2
    )  # against arm 1, which is free and good enough


def test_a_policy_learns_what_fees_amount_to() -> None:
    # 0.59 against 0.63; by the fees on success alone arm 0 would be far ahead, by those on failure arm 1.
    apart = World([0.9, 0.9], [Fees(success=0.1, failure=5.0), Fees(success=0.7, failure=0.0)], 0.5)
    assert apart.instance.costs.tolist() == pytest.approx([0.59, 0.63])
    far = World([0.9, 0.9], [Fees(success=0.1, failure=5.0), Fees(success=0.3, failure=0.0)], 0.5)
    pulls = simulate(far, "cs-ids", horizon=3000, runs=4, seed=2)["cs-ids"].pulls[:, -1]
    assert (pulls[:, 1] > 2000).all()  # 0.27


def test_a_change_of_prices_may_bring_fees() -> None:
    changed = repriced(World([0.9, 0.8], [Deterministic(1.0), Deterministic(0.5)], 0.1), [Fees(1, 0.5), Fees(0.5, 0)], at=50)
    runs = simulate(changed, "cs-ucb", horizon=100, runs=2, seed=1)["cs-ucb"]
    assert (runs.pulls[:, -1].sum(axis=1) == 100).all()


@pytest.mark.parametrize("law", [SEVERAL, scaled(SEVERAL, 0.01), Fees(0.3, 0)], ids=str)
def test_fees_survive_json(law: Law) -> None:
    again = law_from_dict(json.loads(json.dumps(law.to_dict())))
    assert again == law
    assert World.from_dict(World([0.5], [law], 0.1).to_dict()) == World([0.5], [law], 0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Fees(-0.1, 0), "the fee on success must be a law or a number of at least 0, got -0.1"),
        (lambda: Fees(0, float("inf")), "the fee on failure must be a law or a number of at least 0, got inf"),
        (lambda: Fees(0, float("nan")), "the fee on failure must be a law or a number of at least 0, got nan"),
        (lambda: Fees(True, 0), "the fee on success must be a law or a number"),
        (lambda: Fees("0.3", 0), "the fee on success must be a law or a number"),  # type: ignore[arg-type]
        (lambda: Fees(Fees(1, 2), 0), "must not depend on the outcome again"),
        (lambda: Fees(0, scaled(Fees(1, 2), 3)), "must not depend on the outcome again"),
        (lambda: World([Fees(1, 0)], [1.0], 0.1), "rewards are what fees depend on"),
        (lambda: World([0.5, 0.4], [Fees(1, 0), 0.3], 0.1), "costs must be all numbers"),
        (lambda: World([0.5], [Fees(1, 0), Fees(1, 0)], 0.1), "one per arm|same length|as many"),
        (lambda: law_from_dict({"law": "fees", "success": 1}), "cannot read the law"),
        (lambda: law_from_dict({"law": "fees", "won": 1, "lost": 0}), "cannot read the law"),
        (lambda: law_from_dict({"law": "fees", "success": [1], "failure": 0}), "the fee on success must be a law or a number"),
    ],
)
def test_wrong_fees_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


def test_fees_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "arms.toml"
    fees = '{law = "fees", success = 0.3, failure = 0.05}, {law = "fees", success = 0.2, failure = 0}'
    file.write_text(f"alpha = 0.1\nrewards = [0.9, 0.85]\ncosts = [{fees}]\n")
    assert main(["compare", "--instance", str(file), "--horizon", "200", "--runs", "2", "--policies", "uniform", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["instance"]["costs"] == pytest.approx([0.275, 0.17])
    file.write_text('alpha = 0.1\nrewards = [0.9]\ncosts = [{law = "fees", success = 0.3}]\n')
    assert main(["compare", "--instance", str(file), "--horizon", "200"]) == 2
    assert "cannot read the law" in capsys.readouterr().err
