"""What a young segment takes over from the others."""

import numpy as np
import pytest

from thrifty import Instance
from thrifty.borrowing import Spread, borrow, count_segment, unlikeness
from thrifty.simulation.segments import simulate_segments
from thrifty.statistics import ArmStatistics


def unlikeness_of(means: np.ndarray, outcomes: int, seed: int) -> float:
    """rho as estimated from `outcomes` per segment and arm; `means` is (segments, arms)."""
    rng = np.random.default_rng(seed)
    spread = np.zeros(means.shape[1], Spread)
    for segment in means:
        for arm, mean in enumerate(segment):
            won = float(rng.binomial(outcomes, mean))
            count_segment(spread[arm], 1.0, float(outcomes), won)
    return float(unlikeness(spread))


def test_unlikeness_is_the_share_of_variance_between_segments() -> None:
    # Uniform means have variance 1/12 and m (1 - m) = 1/4: rho = 1/3. Two hundred segments give it to about 0.02.
    rng = np.random.default_rng(1)
    assert unlikeness_of(rng.uniform(0, 1, (200, 3)), 50, seed=2) == pytest.approx(1 / 3, abs=0.06)
    assert unlikeness_of(np.full((200, 3), 0.7), 50, seed=3) < 0.01


def test_counting_out_undoes_counting_in() -> None:
    spread = np.zeros(1, Spread)
    count_segment(spread[0], 1.0, 8.0, 3.0)
    count_segment(spread[0], 1.0, 5.0, 5.0)
    count_segment(spread[0], -1.0, 8.0, 3.0)
    assert spread[0].tolist() == pytest.approx((1.0, 5.0, 5.0, 5.0, 25.0))


def test_a_segment_sees_its_own_sums_and_the_others_as_far_as_they_are_alike() -> None:
    own, parent, eyes = (np.zeros(2, ArmStatistics) for _ in range(3))
    own[0].seen, own[0].reward_sum, own[0].sent, own[0].pending = 10.0, 4.0, 12, 2
    parent[0].seen, parent[0].reward_sum = 110.0, 84.0
    own[0].reward_squares, parent[0].reward_squares, own[0].cost_squares, parent[0].cost_squares = 3.0, 73.0, 2.0, 10.0
    eyes[:] = own
    for arm in range(2):
        borrow(own[arm], parent[arm], 0.01, eyes[arm])
    taken = 50.0  # a hundred outcomes of others, of which no more than a hundred would count: half of either
    assert eyes[0].seen == pytest.approx(10.0 + taken)
    assert eyes[0].reward_sum == pytest.approx(4.0 + 0.8 * taken)
    assert (eyes[0].sent, eyes[0].pending) == (12 + int(taken), 2)
    assert eyes[0].reward_squares == pytest.approx(3.0 + 0.5 * 70.0)
    assert eyes[0].cost_squares == pytest.approx(2.0 + 0.5 * 8.0)
    assert eyes[1].tolist() == (0, 0, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_similar_segments_learn_together_and_unrelated_ones_lose_little() -> None:
    # Ratios of 0.17 and 1.13 with standard errors below 0.07 at ten runs: either bound is missed less than once in 10,000 seeds.
    rng = np.random.default_rng(5)
    costs = [1.0, 0.5, 0.2, 0.0]
    similar = [Instance(np.array([0.85, 0.82, 0.7, 0.6]) + rng.normal(0, 0.01, 4), costs, 0.1) for _ in range(50)]
    unrelated = [Instance(rng.uniform(0, 1, 4), costs, 0.1) for _ in range(50)]
    ratios = []
    for segments in (similar, unrelated):
        alone, leaning = (
            simulate_segments(segments, "cs-ts", rounds=25_000, leaning=leaning, runs=10).total_regret.mean()
            for leaning in (False, True)
        )
        ratios.append(leaning / alone)
    assert ratios[0] < 0.5
    assert ratios[1] < 1.4


def test_operators_lean_on_their_country_more_than_on_the_others() -> None:
    # Ratios of 0.3 for the tree and 0.9 for a list of the same segments with cs-ids; they lie many standard errors apart.
    rng = np.random.default_rng(8)
    tree = {}
    for country in range(5):
        means = rng.uniform(0.2, 0.95, 4)
        for operator in range(10):
            tree[f"{country}/{operator}"] = Instance(np.clip(means + rng.normal(0, 0.01, 4), 0, 1), [1.0, 0.5, 0.2, 0.0], 0.1)
    listed, below = (
        simulate_segments(each, "cs-ts", rounds=25_000, leaning=True, runs=6).total_regret.mean()
        for each in (list(tree.values()), tree)
    )
    assert below < 0.7 * listed


def test_a_path_is_a_leaf_with_parts_that_are_not_empty() -> None:
    one = Instance([0.5, 0.4], [1, 0], 0.1)
    with pytest.raises(ValueError, match="parts that are not empty, such as DE/vodafone, got 'DE//x'"):
        simulate_segments({"DE//x": one}, "cs-ts", rounds=10, leaning=True)
    with pytest.raises(ValueError, match="different leaves of the tree, got 'DE'"):
        simulate_segments({"DE": one, "DE/x": one}, "cs-ts", rounds=10, leaning=True)


def test_segments_that_do_not_share_their_arms_are_refused() -> None:
    with pytest.raises(ValueError, match="same costs"):
        simulate_segments([Instance([0.5, 0.4], [1, 0], 0.1), Instance([0.5, 0.4], [2, 0], 0.1)], "cs-ts", rounds=10, leaning=True)
    with pytest.raises(ValueError, match="at least one instance"):
        simulate_segments([], "cs-ts", rounds=10, leaning=True)


def test_segments_refuse_a_policy_that_forgets() -> None:
    with pytest.raises(
        ValueError, match=r"a simulation of segments plays policies that keep all they have seen, got cs-ts\+restart"
    ):
        simulate_segments([Instance([0.5, 0.4], [1, 0], 0.1)], "cs-ts+restart", rounds=10, leaning=True)
