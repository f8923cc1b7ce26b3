"""The saving and its interval: it covers the truth as often as it says, measured by a holdout or modelled."""

from typing import Any

import numpy as np
import pytest

from thrifty.router import Router
from thrifty.router.frame import ArmSums
from thrifty.router.saving import SavingModel, may_be_best, measured_saving, saved_against, saved_everywhere
from thrifty.router.segment_table import segment_saving
from thrifty.router.summary import saving_in


def group(rewards: Any, costs: Any) -> list[Any]:
    return [len(costs), rewards.sum(), costs.sum(), (rewards**2).sum(), (costs**2).sum()]


def test_the_measured_interval_covers_the_truth_about_95_times_of_100() -> None:
    # 1,000 holdouts of 300 beside 3,000 routed outcomes with skewed costs. At a coverage of 0.95 the share has a standard deviation
    # of 0.007: it falls below 0.92 by chance about once in 100,000.
    rng, covered = np.random.default_rng(5), 0
    for _ in range(1000):
        routed, holdout = rng.gamma(2.0, 0.1, 3000), rng.gamma(2.0, 0.2, 300)
        found = measured_saving({"routed": group(np.ones(3000), routed), "holdout": group(np.ones(300), holdout)})
        truth = 3000 * (0.4 - routed.mean())  # what the routed ones would have cost on average, less what they did cost
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= truth <= found.high
    assert covered >= 920


def test_the_modelled_interval_covers_the_truth_while_the_best_arm_is_not_known() -> None:
    # 400 routers whose arms a and b are a point apart: the one that looks best is often not the best. The interval fails with
    # probability at most 0.05; more than 40 of 400 by chance once in 25,000.
    rng, failed, wrong = np.random.default_rng(6), 0, 0
    means, cost_means = np.array([0.91, 0.90, 0.6]), np.array([1.0, 0.4, 0.2])
    for _ in range(400):
        n = rng.integers(30, 300, 3)
        costs = [rng.gamma(4.0, mean / 4.0, count) for mean, count in zip(cost_means, n, strict=True)]
        sums = np.zeros((1, 3), ArmSums)
        sums["seen"][0], sums["reward_sum"][0] = n, rng.binomial(n, means)
        sums["cost_sum"][0], sums["cost_squares"][0] = [each.sum() for each in costs], [(each**2).sum() for each in costs]
        estimates = sums["reward_sum"][0] / n
        candidates = may_be_best((0, 1, 2), tuple(estimates), tuple(n.astype(float)))
        best = int(estimates.argmax())
        found = SavingModel(sums, np.array([-1])).saving(0, candidates=candidates, best=best)
        truth = n.sum() * cost_means[0] - sums["cost_sum"].sum()
        assert found.low is not None
        assert found.high is not None
        failed += not found.low <= truth <= found.high
        wrong += best != 0
    assert wrong > 40  # or the test would be too easy
    assert failed <= 40


def test_the_interval_of_a_segment_covers_the_truth() -> None:
    """600 routers with a small segment below a larger one, prices and means of its own. It fails with probability at most 0.05;
    more than 50 of 600 by chance once in 4,000.
    """
    rng, failed, wrong = np.random.default_rng(9), 0, 0
    means = np.array([[0.8, 0.9, 0.5], [0.92, 0.9, 0.5], [0.9, 0.92, 0.6]])
    costs = np.array([[1.0, 0.6, 0.3], [1.2, 0.5, 0.2], [0.8, 0.7, 0.1]])
    with Router({"a": 1.0, "b": 0.6, "c": 0.3}, 0.1, policy="cs-ucb") as router:
        router.decide("DE/x")
        copied = router.outlook.copy(router)
    for _ in range(600):
        sums = np.zeros((3, 3), ArmSums)
        for segment, n in enumerate((rng.integers(30, 300, 3), rng.integers(5, 60, 3), rng.integers(1, 40, 3))):
            paid = [rng.gamma(4.0, mean / 4.0, count) for mean, count in zip(costs[segment], n, strict=True)]
            added = n, rng.binomial(n, means[segment]), [each.sum() for each in paid], [(each**2).sum() for each in paid]
            for field, values in zip(("seen", "reward_sum", "cost_sum", "cost_squares"), added, strict=True):
                sums[field][: segment + 1] += np.asarray(values)
        estimates = sums["reward_sum"][2] / sums["seen"][2]
        best, model = int(estimates.argmax()), SavingModel(sums, copied.parents)
        found = saving_in(copied._replace(sums=sums, recent=None), model, 2, (0, 1, 2), best=best)
        truth = sums["seen"][2].sum() * costs[2, 1] - sums["cost_sum"][2].sum()
        assert found.low is not None
        assert found.high is not None
        failed += not found.low <= truth <= found.high
        wrong += best != 1
    assert wrong > 150  # or the test would be too easy
    assert failed <= 50


def test_the_table_has_the_interval_of_each_segment() -> None:
    rng = np.random.default_rng(10)
    with Router({"a": 3.0, "b": 1.0, "c": None}, 0.1, policy="cs-ucb") as router:
        for name in rng.choice(["", "DE", "DE/x", "FR"], 300).tolist():
            router.record(router.decide(name).id, float(rng.random() < 0.8), cost=float(rng.gamma(4.0)))
        rows, summary = {row["name"]: row for row in router.segment_table()["segments"]}, router.summary()
        for name, row in rows.items():
            assert segment_saving(router, name)[:3] == pytest.approx((row["saving"], row["saving_low"], row["saving_high"]))
            assert row["saving_low"] < row["saving"] < row["saving_high"]
        for name in ("saving", "saving_low", "saving_high"):
            assert rows[""][name] == pytest.approx(summary[name])
        assert segment_saving(router, "nobody").basis == "none"


def test_an_arm_that_was_not_tried_in_a_segment_is_reckoned_at_what_it_cost_above() -> None:
    sums = np.zeros((2, 2), ArmSums)
    sums["seen"], sums["cost_sum"], sums["cost_squares"] = (
        [[10, 4], [10, 0]],
        [[10.0, 8.0], [10.0, 0.0]],
        [[10.0, 16.0], [10.0, 0.0]],
    )
    found = SavingModel(sums, np.array([-1, 0])).saving(1, candidates=[0, 1], best=0)
    assert found == (0.0, 0.0, 10.0, 0.0, "model")  # ten outcomes at 2 each in place of 1
    assert SavingModel(sums, np.array([-1, 0])).saving(1, candidates=[0, 1], best=1).basis == "none"


def test_an_arm_that_is_surely_worse_is_no_candidate() -> None:
    assert may_be_best((4, 7, 9), (0.9, 0.5, 0.899), (5000.0, 5000.0, 5000.0)) == [4, 9]
    assert may_be_best((4, 7), (1.0, -1.0), (3.0, 0.0)) == [4, 7]  # nothing is known of the second


def test_the_saving_of_all_segments_at_once_is_that_of_each() -> None:
    rng = np.random.default_rng(7)
    with Router({"a": 3.0, "b": 1.0, "c": 2.0}, 0.1, policy="cs-ucb") as router:
        for _ in range(300):
            prices = {arm: float(price) for arm, price in zip("abc", rng.integers(1, 9, 3), strict=True)}
            made = router.decide(str(rng.choice(["", "DE", "DE/o2", "DE/o2/x", "FR/a", "FR/b"])), eligible=prices)
            router.record(made.id, float(rng.random() < 0.7))
        copied = router.outlook.copy(router)
        everywhere = saved_everywhere(copied.sums, copied.parents)
        for number, name in enumerate(copied.names):
            for arm in range(3):
                if copied.sums["seen"][number, arm] > 0:
                    assert everywhere[number, arm] == pytest.approx(saved_against(copied.sums, copied.parents, number, arm)), name
                else:
                    assert np.isnan(everywhere[number, arm])
        summary, explained = router.summary(), router.explain()
        assert summary["saving"] == pytest.approx(explained.saved)
        assert summary["floor"] == explained.floor
        assert (summary["chosen"], summary["best_arm"]) == (explained.chosen, explained.best_arm)


def test_a_holdout_measures_once_both_groups_have_outcomes_and_a_snapshot_keeps_that(tmp_path: Any) -> None:
    rng, store = np.random.default_rng(8), f"sqlite:///{tmp_path}/s.db"
    settings: dict[str, Any] = {"policy": "cs-ucb", "holdout": 0.3, "store": store, "name": "sms"}
    with Router({"a": 3.0, "b": 1.0}, 0.3, **settings) as router:
        assert router.summary()["saving_basis"] == "none"
        for _ in range(400):
            made = router.decide()
            router.record(made.id, float(rng.random() < {"a": 0.9, "b": 0.85}[made.arm]), cost=float(rng.gamma(2.0)))
        found = router.summary()
        assert found["saving_basis"] == "holdout"
        assert found["saving_low"] < found["saving"] < found["saving_high"]
        groups = router.groups
        assert sum(each[4] for each in groups.values()) == pytest.approx(router.outlook.copy(router).sums["cost_squares"].sum())
    with Router({"a": 3.0, "b": 1.0}, 0.3, **settings) as router:
        assert router.groups == groups
        assert router.summary()["saving"] == found["saving"]
