"""Prints the measured numbers of docs/errata.md with their standard errors: `python docs/tooling/errata.py`, about a minute."""

import math

from thrifty import simulate
from thrifty.arrays import Floats
from thrifty.environments import World
from thrifty.environments.families import near_the_floor, random_costs, table_1, unseen_arm
from thrifty.problem import Instance
from thrifty.theory import consistent_bound


def measure(world: Instance | World, *policies: str, horizon: int, runs: int) -> dict[str, dict[str, str]]:
    """Policy -> regret -> "mean +- standard error" at the horizon."""
    played = simulate(world, list(policies), horizon=horizon, runs=runs, seed=1, checkpoints=1)
    return {policy: {name: shown(each) for name, each in played.samples(policy).items()} for policy in policies}


def shown(regrets: Floats) -> str:
    """The mean with its standard error."""
    return f"{regrets.mean():,.0f} +- {regrets.std(ddof=1) / math.sqrt(regrets.size):,.1f}"


def main() -> None:
    """Section 6, then the counterexamples to Theorem 4."""
    for cheap_mean in (0.30, 0.46, 0.60):
        found = measure(table_1(cheap_mean), "cs-ts", "cs-ucb", "cs-etc", horizon=5000, runs=4000)
        print(f"Table 1, mu_2 = {cheap_mean}: {found}")
    horizon = 10**6
    for name, world, runs in (
        ("unseen_arm", unseen_arm(), 40),
        ("near_the_floor", near_the_floor(horizon), 400),
        ("near_the_floor, Bernoulli costs", random_costs(near_the_floor(horizon)), 400),
    ):
        found = measure(world, "cs-ucb", horizon=horizon, runs=runs)
        n_arms = world.n_arms if isinstance(world, Instance) else world.instance.n_arms
        print(f"{name}: {found}, Theorem 4 says {consistent_bound(horizon, n_arms, delta=1.0):,.0f}")


if __name__ == "__main__":
    main()
