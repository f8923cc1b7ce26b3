"""mabwiser: one round of plain Thompson sampling (it has no cost subsidy)."""

import json
import random
import sys
import time
from importlib.metadata import version

from mabwiser.mab import MAB, LearningPolicy


def microseconds(n_arms: int, rounds: int) -> float:
    random.seed(1)
    arms = list(range(n_arms))
    means = [0.3 + 0.4 * random.random() for _ in arms]
    bandit = MAB(arms, LearningPolicy.ThompsonSampling())
    bandit.fit(arms, [1] * n_arms)
    started = time.perf_counter()
    for _ in range(rounds):
        arm = bandit.predict()
        bandit.partial_fit([arm], [int(random.random() < means[arm])])
    return 1e6 * (time.perf_counter() - started) / rounds


print(
    json.dumps(
        {
            "name": "mabwiser ThompsonSampling",
            "version": version("mabwiser"),
            "microseconds": {k: microseconds(int(k), 3000 // int(k) + 300) for k in sys.argv[1:]},
        }
    )
)
