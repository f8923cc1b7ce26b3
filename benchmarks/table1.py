"""The default policy over Table 1 of the paper: mu_2 from .30 to .60 in steps of .01, against the best of the paper's three.

python benchmarks/table1.py --runs 400
"""

import argparse

import numpy as np

from thrifty import DEFAULT_POLICY, simulate
from thrifty.environments.families import table_1

PAPER = ("cs-etc", "cs-ucb", "cs-ts")


def main() -> None:
    """Print worst and mean total regret of each policy, and the ratios to the best of the paper's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=101)
    options = parser.parse_args()
    means = np.round(np.arange(0.30, 0.6001, 0.01), 2)
    policies = [DEFAULT_POLICY, *PAPER]
    totals, errors = (np.zeros((means.size, len(policies))) for _ in range(2))
    for row, mean in enumerate(means):
        final = simulate(table_1(float(mean)), policies, horizon=5000, runs=options.runs, seed=options.seed, checkpoints=1).final()
        totals[row] = [final[name]["total"]["mean"] for name in policies]
        errors[row] = [final[name]["total"]["se"] for name in policies]
    for column, name in enumerate(policies):
        worst = int(totals[:, column].argmax())
        spread = float(np.sqrt((errors[:, column] ** 2).sum())) / means.size
        print(
            f"{name:<8} worst {totals[worst, column]:7.1f} +- {errors[worst, column]:.1f} at mu_2 = {means[worst]:.2f}; "
            f"mean {totals[:, column].mean():7.1f} +- {spread:.1f}"
        )
    print(f"worst / best worst of the paper's: {totals[:, 0].max() / totals[:, 1:].max(axis=0).min():.2f}")
    print(f"mean / best mean of the paper's: {totals[:, 0].mean() / totals[:, 1:].mean(axis=0).min():.2f}")


if __name__ == "__main__":
    main()
