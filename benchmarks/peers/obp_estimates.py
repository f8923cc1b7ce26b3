"""obp: the value of always one arm by its estimators, and row bootstrap intervals. Reads an .npz, prints JSON."""

import json
import sys
from importlib.metadata import version

import numpy as np
from obp.ope import DirectMethod, DoublyRobust, InverseProbabilityWeighting, SelfNormalizedInverseProbabilityWeighting

ESTIMATORS = {
    "ips": InverseProbabilityWeighting(),
    "snips": SelfNormalizedInverseProbabilityWeighting(),
    "dm": DirectMethod(),
    "dr": DoublyRobust(),
}


def main() -> None:
    log = np.load(sys.argv[1])
    rows, n_arms = log["means"].shape
    found: dict[str, list[list[float]]] = {name: [] for name in ESTIMATORS}
    for arm in range(n_arms):
        always = np.zeros((rows, n_arms, 1))
        always[:, arm] = 1.0
        given = {
            "reward": log["reward"],
            "action": log["action"],
            "pscore": log["pscore"],
            "action_dist": always,
            "estimated_rewards_by_reg_model": log["means"][:, :, np.newaxis],
            "position": np.zeros(rows, int),
        }
        for name, estimator in ESTIMATORS.items():
            interval = estimator.estimate_interval(**given, n_bootstrap_samples=200, random_state=1)
            ends = [value for key, value in interval.items() if "CI" in key]
            found[name].append([float(estimator.estimate_policy_value(**given)), *map(float, sorted(ends))])
    print(json.dumps({"version": version("obp"), "estimates": found}))


main()
