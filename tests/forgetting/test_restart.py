"""The watch of `restart`, which computes without branches, against one that has them."""

import numpy as np

from tests.oracles import cusum
from thrifty.arrays import Floats
from thrifty.compiled import driver
from thrifty.forgetting.restart import begin_watch, take_in_watching
from thrifty.statistics import Outcome, counted, no_statistics


@driver
def evidence_after(rewards: Floats) -> Floats:
    """(outcomes, 12): evidence, outcomes, rewards and their squares, of the three tests of one arm after every outcome."""
    stats, watch = no_statistics(1), begin_watch(1, (1e9, np.inf, np.inf))
    kept = np.zeros((rewards.size, 12))
    for t in range(rewards.size):
        take_in_watching(stats, watch, 0, counted(Outcome(0, rewards[t], np.nan)), None)
        for number in range(3):
            test = watch.tests[number]
            kept[t, 4 * number] = test.evidence
            kept[t, 4 * number + 1] = test.seen
            kept[t, 4 * number + 2] = test.reward_sum
            kept[t, 4 * number + 3] = test.reward_squares
    return kept


def test_evidence_grows_and_vanishes_as_in_the_sum_with_branches() -> None:
    rng = np.random.default_rng(4)
    rewards = np.concatenate([rng.random(300) < 0.7, rng.random(200) < 0.3, rng.random(300)]).astype(float)
    np.testing.assert_allclose(evidence_after(rewards), np.array(cusum(rewards.tolist())), rtol=1e-12, atol=1e-12)
