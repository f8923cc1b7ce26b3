"""Prints the measured numbers of docs/errata.md with their standard errors: `python docs/tooling/errata.py [SEED]`, some minutes.

There are so many runs that another seed prints the same digits, but for the last one.
"""

import sys

from thrifty import simulate
from thrifty.environments import World
from thrifty.environments.families import near_the_floor, random_costs, table_1, unseen_arm
from thrifty.experiments.verdict import with_error
from thrifty.problem import Instance
from thrifty.theory import consistent_bound

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1


def measure(world: Instance | World, *policies: str, horizon: int, runs: int) -> dict[str, dict[str, str]]:
    """Policy -> regret -> "mean +- standard error" at the horizon."""
    played = simulate(world, list(policies), horizon=horizon, runs=runs, seed=SEED, checkpoints=1)
    return {policy: {name: with_error(each) for name, each in played.samples(policy).items()} for policy in policies}


def main() -> None:
    """Section 6, then the counterexamples to Theorem 4."""
    for cheap_mean in (0.30, 0.46, 0.60):
        found = measure(table_1(cheap_mean), "cs-ts", "cs-ucb", "cs-etc", horizon=5000, runs=100_000)
        print(f"Table 1, mu_2 = {cheap_mean}: {found}")
    horizon = 10**6
    for name, world, runs in (
        ("unseen_arm", unseen_arm(), 40),
        ("near_the_floor", near_the_floor(horizon), 2000),
        ("near_the_floor, Bernoulli costs", random_costs(near_the_floor(horizon)), 2000),
    ):
        found = measure(world, "cs-ucb", horizon=horizon, runs=runs)
        n_arms = world.n_arms if isinstance(world, Instance) else world.instance.n_arms
        print(f"{name}: {found}, Theorem 4 says {consistent_bound(horizon, n_arms, delta=1.0):,.0f}")


if __name__ == "__main__":
    main()
