"""Estimates from aggregates equal the textbook sums over rows, and converge to the truth."""

import numpy as np
import pytest

from tests.logs.logs import frame, truth
from thrifty.logs import Columns, Log, aggregate
from thrifty.logs.aggregates import MOST_BLOCKS, C, N, R, W
from thrifty.logs.bootstrap import block_groups, block_weights, interval, student
from thrifty.logs.bounds import bound_assumed, bound_logged
from thrifty.logs.estimators import estimate_segment, intervals, strata_of

COLUMNS = Columns(segment="segment", time="at", propensity="p")
UNWEIGHTED = Columns(segment="segment", time="at")


def test_sums_over_blocks_equal_sums_over_rows() -> None:
    rows = frame(n=5000)
    sums = aggregate(Log(rows, COLUMNS))
    assert sums.rows == 5000
    assert sums.starts.size <= MOST_BLOCKS
    for segment in sums.segments:
        for place, arm in enumerate(segment.arms):
            mine = rows.filter(segment=segment.name, arm=arm)
            expected = [mine.height, mine["reward"].sum(), mine["cost"].sum(), (1.0 / mine["p"]).sum()]
            assert segment.totals[place, [N, R, C, W]].tolist() == pytest.approx(expected)


def test_blocks_hold_the_rows_of_their_time() -> None:
    rows = frame(n=2000)
    sums = aggregate(Log(rows, COLUMNS))
    times = rows["at"].to_numpy()
    for start, count in zip(sums.starts, sum(segment.sums[:, :, N].sum(axis=0) for segment in sums.segments), strict=True):
        assert count == ((times >= start) & (times < start + sums.width)).sum()


def test_rows_in_any_order_give_the_same_counts() -> None:
    rows = frame(n=3000)
    straight, shuffled = (aggregate(Log(each, COLUMNS)) for each in (rows, rows.sample(fraction=1.0, shuffle=True, seed=3)))
    assert shuffled.tally.out_of_order > 1000
    np.testing.assert_array_equal(straight.starts, shuffled.starts)
    for one, other in zip(straight.segments, shuffled.segments, strict=True):
        np.testing.assert_array_equal(one.sums[:, :, N], other.sums[:, :, N])


def test_ips_snips_and_dr_equal_their_formulas() -> None:
    rows = frame(n=4000)
    sums = aggregate(Log(rows, COLUMNS))
    weights = block_weights(sums.starts.size, 5, seed=1)
    for segment in sums.segments:
        found = estimate_segment(segment, weights, weighted=True)
        here = rows.filter(segment=segment.name)
        stratum_of = np.zeros(sums.starts.size, int)
        for number, blocks in enumerate(strata_of(segment, sums.starts.size)):
            stratum_of[blocks] = number
        stratum = stratum_of[np.searchsorted(sums.starts, here["at"].to_numpy(), side="right") - 1]
        for place, arm in enumerate(segment.arms):
            mine = (here["arm"] == arm).to_numpy()
            w, r = mine / here["p"].to_numpy(), here["reward"].to_numpy()
            q = np.array([r[mine & (stratum == each)].mean() for each in range(stratum.max() + 1)])[stratum]
            assert found.reward("ips")[place] == pytest.approx((w * r).mean())
            assert found.reward("snips")[place] == pytest.approx((w * r).sum() / w.sum())
            assert found.reward("dm")[place] == pytest.approx(q.mean())
            assert found.reward("dr")[place] == pytest.approx((q + w * (r - q)).mean())
            assert found.effective[place] == pytest.approx(w.sum() ** 2 / (w**2).sum())


def test_without_propensities_all_estimators_agree() -> None:
    sums = aggregate(Log(frame(n=4000), UNWEIGHTED))
    found = estimate_segment(sums.segments[0], block_weights(sums.starts.size, 5, seed=1), weighted=False)
    for name in ("ips", "snips", "dr"):
        np.testing.assert_allclose(found.reward(name), found.reward("dm"))


@pytest.mark.parametrize("columns", [COLUMNS, UNWEIGHTED])
def test_estimates_are_near_the_truth_where_plain_means_are_not(columns: Columns) -> None:
    """100,000 rows, six arms, four standard errors: fails by chance for one seed in 2,000. The dear arm's rate falls while its
    share grows.
    """
    rows = frame(n=100_000, drift=0.6)
    sums = aggregate(Log(rows, columns))
    weights = block_weights(sums.starts.size, 300, seed=1)
    for number, segment in enumerate(sums.segments):
        found = estimate_segment(segment, weights, weighted=sums.weighted)
        errors = found.replicates["dr"][0][1:].std(axis=0)
        for place, arm in enumerate(segment.arms):
            assert abs(found.reward()[place] - truth(number, 0.6)[arm]) < 4.0 * errors[place]
            low, high = found.bound[0][:, place]
            assert low <= truth(number, 0.6)[arm] <= high
        plain = segment.totals[segment.arms.index("dear"), R] / segment.totals[segment.arms.index("dear"), N]
        assert abs(plain - truth(number, 0.6)["dear"]) > 8.0 * errors[segment.arms.index("dear")]


def test_the_bootstrap_shows_the_variance_of_independent_blocks() -> None:
    """The spread of resampled means of 200 standard normal blocks is 1/sqrt(200) within 25%: five standard deviations of it."""
    values = np.random.default_rng(1).standard_normal(200)
    weights = block_weights(200, 2000, seed=2)
    spread = (weights[1:] @ values / 200).std()
    assert spread == pytest.approx(values.std() / np.sqrt(200), rel=0.25)


def test_a_trend_is_no_sampling_error() -> None:
    trend = np.linspace(0.0, 1.0, 200)
    replicates = block_weights(200, 500, seed=2) @ trend / 200
    assert replicates[1:].std() < 0.05 * trend.std() / np.sqrt(200)


def test_groups_cover_all_blocks_once() -> None:
    for count in range(1, 40):
        groups = block_groups(count)
        assert np.concatenate(groups).tolist() == list(range(count))
        assert all(group.size >= min(4, count) for group in groups)


def test_students_quantile() -> None:
    for freedom, exact in ((5, 2.571), (10, 2.228), (30, 2.042), (100, 1.984)):
        assert student(freedom) == pytest.approx(exact, rel=0.005)


def test_the_interval_is_centred_on_the_estimate() -> None:
    low, high = interval(np.array([[1.0], [0.0], [2.5]]), 40)
    assert (low[0] + high[0]) / 2 == pytest.approx(1.0)


def test_an_arm_whose_reward_never_varies_has_an_interval_all_the_same() -> None:
    rows = frame(n=4000, segments=1).with_columns(reward=1.0)
    sums = aggregate(Log(rows, COLUMNS))
    found = estimate_segment(sums.segments[0], block_weights(sums.starts.size, 100, seed=1), weighted=True)
    low, high = intervals(found)[0]
    assert (low < 1.0).all()
    assert (low > 0.98).all()
    np.testing.assert_allclose(high, 1.0)


def test_bounds_shrink_with_rows_and_stay_in_the_unit_interval() -> None:
    small, large = (aggregate(Log(frame(n=n, segments=1), COLUMNS)).segments[0] for n in (300, 30_000))
    widths = [float(np.diff(bound_logged([(sums, 0)]))[0]) for sums in (small, large)]
    assert widths[1] < widths[0] / 5
    assert bound_assumed(0.99, 0.01, 0.0, 1.0)[1] == 1.0


def test_an_arm_out_of_use_for_long_is_refused() -> None:
    rows = frame(n=6000, segments=1)
    middle = rows["at"].median()
    rows = rows.filter((rows["arm"] != "fair") | (rows["at"] > middle))
    sums = aggregate(Log(rows, UNWEIGHTED))
    found = estimate_segment(sums.segments[0], block_weights(sums.starts.size, 50, seed=1), weighted=False)
    reason = found.refusals[sums.segments[0].arms.index("fair")]
    assert "not in use during" in reason
    assert found.refusals[sums.segments[0].arms.index("dear")] == ""
