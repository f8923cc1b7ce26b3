"""The posterior of rewards learns from the log whether dearer arms are better, and says how often the floor is held."""

from collections.abc import Callable

import numpy as np
import polars
import pytest

from thrifty.arrays import Floats
from thrifty.logs import Columns, Log, examine
from thrifty.logs.estimators import SegmentEstimates
from thrifty.logs.posterior import RewardPosterior
from thrifty.logs.selective import floor_choice

ALPHAS = (0.0, 0.05, 0.1)
World = Callable[[np.random.Generator], Floats]


def dearer_is_better(rng: np.random.Generator) -> Floats:
    """(7, 5) rewards in the order of prices, with gaps of every size."""
    return np.sort(rng.uniform(0.6, 0.95, (7, 5)), axis=1)


def prices_say_nothing(rng: np.random.Generator) -> Floats:
    """(7, 5) rewards that do not follow prices."""
    return rng.uniform(0.6, 0.95, (7, 5))


def segments_of(rewards: Floats, seed: int, prices: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0)) -> list[SegmentEstimates]:
    """What 3,000 rows say of the rewards."""
    rng = np.random.default_rng(seed)
    segment, arm = rng.integers(0, rewards.shape[0], 3000), rng.integers(0, rewards.shape[1], 3000)
    rows = {
        "segment": [f"s{code}" for code in segment],
        "arm": [f"a{code}" for code in arm],
        "reward": (rng.random(3000) < rewards[segment, arm]).astype(float),
        "cost": np.array(prices)[arm],
    }
    return examine(Log(polars.DataFrame(rows), Columns(segment="segment")), seed=seed).comparable


@pytest.mark.parametrize("world", [dearer_is_better, prices_say_nothing])
def test_the_floor_is_held_as_often_as_is_said(world: World) -> None:
    """20 logs of 7 segments: a standard error of 3 points or less at each alpha; 10 points are asserted."""
    for alpha, excess in zip(ALPHAS, np.mean([_excess(world, seed) for seed in range(20)], axis=0), strict=True):
        assert abs(excess) < 0.1, alpha


def _excess(world: World, seed: int) -> list[float]:
    """By how much the probability that is said is above the truth, by alpha."""
    rewards = world(np.random.default_rng([seed, 5]))
    estimates = segments_of(rewards, seed)
    posterior = RewardPosterior.learn(estimates, seed=seed)
    return list(np.mean([_said_less_true(posterior, each, rewards[int(each.sums.name[1:])]) for each in estimates], axis=0))


def _said_less_true(posterior: RewardPosterior, each: SegmentEstimates, rewards: Floats) -> list[float]:
    mine = posterior.of(each)
    arms = [floor_choice(each, alpha) for alpha in ALPHAS]
    true = [rewards[int(each.sums.arms[arm][1:])] >= (1.0 - alpha) * rewards.max() for arm, alpha in zip(arms, ALPHAS, strict=True)]
    return [mine.floor_held(arm, alpha) - held for arm, alpha, held in zip(arms, ALPHAS, true, strict=True)]


def test_the_share_in_order_is_learnt() -> None:
    """Means over 10 logs; the prior mean is 0.29."""
    rising, mixed = (
        np.mean([RewardPosterior.learn(segments_of(world(np.random.default_rng(s)), s), seed=s).shares.mean() for s in range(10)])
        for world in (dearer_is_better, prices_say_nothing)
    )
    assert mixed < 0.1
    assert rising > 0.6


def test_the_order_of_other_segments_speaks_for_the_dearest_arm() -> None:
    """The two dearest arms of the last segment are tied, and the dearest looks worse."""
    last = segments_of(np.tile([0.6, 0.7, 0.75, 0.85, 0.85], (7, 1)), 3)[6]
    assert last.reward()[4] < last.reward()[3]
    beside_order, beside_none = (
        RewardPosterior.learn([*segments_of(world(np.random.default_rng(1)), 3)[:6], last], seed=1).of(last).floor_held(4, 0.0)
        for world in (dearer_is_better, prices_say_nothing)
    )
    assert beside_order > beside_none + 0.2


def test_equal_prices_say_nothing_of_the_order() -> None:
    estimates = segments_of(dearer_is_better(np.random.default_rng(3)), 3, prices=(1.0, 2.0, 3.0, 3.0, 5.0))
    posterior = RewardPosterior.learn(estimates, seed=3)
    assert posterior.shares.mean() == pytest.approx(0.29, abs=0.05)  # the prior mean
    assert np.isfinite(posterior.of(estimates[0]).draws).all()


def test_the_same_seed_gives_the_same_draws() -> None:
    estimates = segments_of(dearer_is_better(np.random.default_rng(4)), 4)
    first, again = (RewardPosterior.learn(estimates, seed=9).of(estimates[2]).draws for _ in range(2))
    np.testing.assert_array_equal(first, again)
