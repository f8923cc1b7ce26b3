"""pybandits: one round of its cost-subsidised Thompson sampling (SmabBernoulliCC), the only peer that solves this problem."""

import json
import random
import sys
import time
from importlib.metadata import version

from pybandits.model import BetaCC
from pybandits.smab import SmabBernoulliCC


def microseconds(n_arms: int, rounds: int) -> float:
    random.seed(1)
    arms = {f"a{i}": BetaCC(cost=i / n_arms) for i in range(n_arms)}
    means = {name: 0.3 + 0.4 * random.random() for name in arms}
    bandit = SmabBernoulliCC(actions=arms, subsidy_factor=0.1)
    started = time.perf_counter()
    for _ in range(rounds):
        chosen, *_ = bandit.predict(n_samples=1)
        bandit.update(actions=chosen, rewards=[int(random.random() < means[chosen[0]])])
    return 1e6 * (time.perf_counter() - started) / rounds


print(
    json.dumps(
        {
            "name": "pybandits SmabBernoulliCC",
            "version": version("pybandits"),
            "microseconds": {k: microseconds(int(k), 3000 // int(k) + 300) for k in sys.argv[1:]},
        }
    )
)
