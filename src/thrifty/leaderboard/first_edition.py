"""The sixty instances of the first edition of the leaderboard. They stand first on the page, so that figures compare."""

import numpy as np

from thrifty.environments import Beta, ClippedGaussian, World
from thrifty.environments.families import HardFamily, ad_audiences, figure_1, random_costs, table_1, unseen_arm
from thrifty.leaderboard.entry import HELD_OUT, TUNING, Entry, make_entry
from thrifty.problem import Instance

_TUNED_ON = (0.30, 0.34, 0.36, 0.38, 0.40, 0.42, 0.44, 0.45, 0.46, 0.48, 0.50, 0.55, 0.60)
_NOT_TUNED_ON = (0.31, 0.33, 0.37, 0.39, 0.41, 0.49, 0.51, 0.53, 0.57)


def first_edition() -> list[Entry]:
    """All of them, in the order of the page."""
    return [
        *(make_entry(f"Table 1, mu_2 = {mean:.2f}", table_1(mean), 5000, TUNING) for mean in _TUNED_ON),
        *(make_entry(f"Table 1, mu_2 = {mean:.2f}", table_1(mean), 5000, HELD_OUT) for mean in _NOT_TUNED_ON),
        make_entry("Figure 1", figure_1(), 10_000, TUNING),
        make_entry("Figure 1, T = 100,000", figure_1(100_000), 100_000, HELD_OUT),
        *_hard(),
        make_entry("ten arms, .3 to .75", Instance(np.linspace(0.3, 0.75, 10), np.linspace(0, 1, 10), 0.15), 10_000, TUNING),
        make_entry("tiny rates, 4 arms", Instance([0.05, 0.048, 0.02, 0.01], [1, 0.5, 0.2, 0], 0.1), 20_000, TUNING),
        make_entry("tiny rates, ad audiences", ad_audiences(40), 20_000, HELD_OUT),
        make_entry("well separated, 2 arms", Instance([0.8, 0.4], [1, 0], 0.1), 10_000, HELD_OUT),
        make_entry("well separated, 5 arms", Instance([0.9, 0.2, 0.6, 0.4, 0.3], [1, 0.1, 0.6, 0.3, 0], 0.1), 10_000, HELD_OUT),
        make_entry("well separated, cheap is best", Instance([0.9, 0.5, 0.3], [0, 0.5, 1], 0.1), 10_000, HELD_OUT),
        make_entry("near ties, 8 arms", Instance(0.5 + 0.01 * np.arange(-4, 4), np.linspace(0, 1, 8), 0.05), 10_000, HELD_OUT),
        make_entry(
            "near ties around the floor", Instance([0.6, 0.53, 0.545, 0.535, 0.55], [1, 0, 0.2, 0.4, 0.6], 0.1), 10_000, HELD_OUT
        ),
        make_entry("tied tops, one free", Instance([0.5, 0.5], [1, 0], 0.1), 10_000, HELD_OUT),
        make_entry("tied tops, four arms", Instance([0.5, 0.5, 0.46, 0.3], [1, 0.9, 0.2, 0], 0.1), 10_000, HELD_OUT),
        make_entry("alpha = 0, tied costs", Instance([0.6, 0.55, 0.5], [1, 1, 0.5], 0.0), 10_000, HELD_OUT),
        make_entry("Theorem 4 counterexample", unseen_arm(), 100_000, HELD_OUT),
        *_drawn(),
        *(_random(f"random, K = {k}", k, seed=k, horizon=10_000) for k in (20, 50, 100)),
        _random("random, T = 1,000", 5, seed=31, horizon=1000),
        _random("random, T = 100,000", 5, seed=32, horizon=100_000),
        make_entry("two arms, T = 1,000", Instance([0.7, 0.66], [1, 0], 0.1), 1000, HELD_OUT),
        make_entry("two arms, T = 1,000,000", Instance([0.5, 0.44], [1, 0], 0.1), 1_000_000, HELD_OUT),
        Entry("random costs, Figure 1", random_costs(figure_1()), 10_000, HELD_OUT),
        Entry("random costs, 4 arms", random_costs(Instance([0.6, 0.58, 0.4, 0.57], [0.9, 0.5, 0.1, 0.6], 0.1)), 10_000, HELD_OUT),
        Entry("scores, not 0/1", World([Beta(6, 4), Beta(5.6, 4.4), Beta(3, 7)], [1.0, 0.3, 0.0], 0.1), 10_000, HELD_OUT),
        Entry(
            "scores of low variance",
            World([ClippedGaussian(m, 0.1) for m in (0.7, 0.64, 0.5)], [1.0, 0.3, 0.0], 0.1),
            10_000,
            HELD_OUT,
        ),
    ]


def _hard() -> list[Entry]:
    """The lower bound's instances: the free arm on the floor, and just below it, with the epsilon of `direct_lower_bound`."""
    return [
        make_entry(
            f"hard family, {n_dear} dear, member {member}",
            HardFamily(0.1, 0.45, 0.225 * (n_dear / 10_000) ** (1 / 3), n_dear).member(member),
            10_000,
            HELD_OUT,
        )
        for n_dear in (1, 4)
        for member in (0, 1)
    ]


def _random(name: str, n_arms: int, *, seed: int, horizon: int) -> Entry:
    rng = np.random.default_rng(seed)
    return make_entry(name, Instance(rng.uniform(0.1, 0.9, n_arms), rng.uniform(0, 1, n_arms), 0.1), horizon, HELD_OUT)


def _drawn() -> list[Entry]:
    """Instances drawn from several priors: uniform, success rates of payments, and dear arms that tend to be better."""
    found = []
    for seed in (1, 2, 3):
        rng = np.random.default_rng(100 + seed)
        found.append(
            make_entry(f"drawn: uniform {seed}", Instance(rng.uniform(0, 1, 5), rng.uniform(0, 1, 5), 0.1), 10_000, HELD_OUT)
        )
        found.append(
            make_entry(f"drawn: payments {seed}", Instance(rng.beta(30, 3, 6), rng.uniform(0.1, 1, 6), 0.02), 10_000, HELD_OUT)
        )
        means = np.sort(rng.uniform(0.3, 0.7, 4))
        found.append(
            make_entry(f"drawn: dear is better {seed}", Instance(means, np.sort(rng.uniform(0, 1, 4)), 0.1), 10_000, HELD_OUT)
        )
    return found
