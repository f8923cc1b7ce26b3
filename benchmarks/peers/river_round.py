"""river: one round of plain Thompson sampling (it has no cost subsidy)."""

import json
import random
import sys
import time
from importlib.metadata import version

from river import bandit, proba


def microseconds(n_arms: int, rounds: int) -> float:
    random.seed(1)
    arms = list(range(n_arms))
    means = [0.3 + 0.4 * random.random() for _ in arms]
    policy = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=1)
    started = time.perf_counter()
    for _ in range(rounds):
        arm = policy.pull(arms)
        policy.update(arm, int(random.random() < means[arm]))
    return 1e6 * (time.perf_counter() - started) / rounds


print(
    json.dumps(
        {
            "name": "river ThompsonSampling",
            "version": version("river"),
            "microseconds": {k: microseconds(int(k), 30_000 // int(k) + 300) for k in sys.argv[1:]},
        }
    )
)
