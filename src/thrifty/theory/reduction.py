"""The derived algorithm pi_0: any policy for alpha > 0, run on arms of an alpha = 0 instance through a Bernoulli factory.

[Sinha2021] appendix B. When the inner policy pulls the free arm 0 so does pi_0; when it pulls a dear arm, pi_0 pulls that arm as
often as the
factory needs to make one reward with mean mu / (1 - alpha). The inner policy then lives in Phi_alpha while pi_0 lives in Phi_0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thrifty.compiled import driver
from thrifty.environments.families import HardFamily
from thrifty.environments.laws import Bernoulli
from thrifty.environments.sampling import draw_reward, tabulate
from thrifty.policies import Policy, policy
from thrifty.policies.binding import bind_rule
from thrifty.policies.contract import RuleTerms, start
from thrifty.problem import Instance, Terms, checked_count
from thrifty.statistics import Outcome, fold, no_statistics
from thrifty.streams import make_streams
from thrifty.theory.factory import flip_scaled
from thrifty.theory.inequalities import flip_bound

_WORLD, _POLICY, _FACTORY = 0, 1, 2
_SLACK = 0.5  # the paper's delta


@driver
def replicate_derived(
    init, choose, observe, parts, Parameters, numbers, known_costs, by_cost, alpha, rounds,
    coins, slack, coin_streams, own_streams, factory_streams, calls, pulls,
):  # fmt: skip
    """Whole runs of pi_0: `calls` (runs, K) are the inner policy's pulls, `pulls` (runs, K) those of pi_0."""
    terms = RuleTerms(known_costs, by_cost, alpha, rounds, Parameters(*numbers), parts)
    for run in range(calls.shape[0]):
        stats = no_statistics(known_costs.size)
        memory = start(init, terms)
        for _ in range(rounds):
            arm = choose(terms, stats, memory, own_streams[run])
            stats[arm].sent += 1
            if arm == 0:
                reward, flips = draw_reward(coins, 0, coin_streams[run]), 1
            else:
                reward, flips = flip_scaled(coins, arm, 1.0 / (1.0 - alpha), slack, coin_streams[run], factory_streams[run])
            calls[run, arm] += 1
            pulls[run, arm] += flips
            fold(stats, arm, 1.0, reward, np.nan, None)
            observe(terms, stats, memory, Outcome(arm, reward, np.nan))


@dataclass(frozen=True, eq=False)
class Derived:
    """Runs of pi_0: what the inner policy pulled in `inner` (runs, K) and what pi_0 pulled in `outer` (runs, K)."""

    inner: Instance
    outer: Instance
    calls: NDArray[np.int64]
    pulls: NDArray[np.int64]

    @property
    def pulls_per_call(self) -> float:
        """The mean of S_l over calls of dear arms."""
        return float(self.pulls[:, 1:].sum() / max(self.calls[:, 1:].sum(), 1))

    @property
    def bound_per_call(self) -> float:
        """9.5 / (delta (1-alpha)) = 19 / (1-alpha)."""
        return flip_bound(1.0 / (1.0 - self.inner.alpha), _SLACK)

    @property
    def inner_regret(self) -> NDArray[np.float64]:
        """(runs,) quality plus cost regret of the inner policy over its L rounds."""
        return self.inner.quality_regret(self.calls) + self.inner.cost_regret(self.calls)

    @property
    def outer_regret(self) -> NDArray[np.float64]:
        """(runs,) modified quality regret (of arm 0 alone) plus cost regret of pi_0 over all its rounds."""
        modified = self.outer.quality_gaps[0] * self.pulls[:, 0]
        return np.asarray(modified + self.outer.cost_regret(self.pulls))


def derive(inner: str | Policy, family: HardFamily, *, member: int, rounds: int, runs: int, seed: int = 0) -> Derived:
    """Run pi_0, derived from `inner`, on Phi_0^member.

    Parameters
    ----------
    inner : a policy that knows the costs
    family : Phi_{alpha,p,epsilon} that the inner policy believes to live in; (p + epsilon) / (1-alpha) <= 1/2
    member : 0 to K
    rounds : L, how often the inner policy decides
    runs, seed : how many runs, and of which streams

    >>> family = HardFamily(theta=0.25, p=0.25, epsilon=0.1, n_dear=2)
    >>> derived = derive("cs-etc", family, member=1, rounds=500, runs=4)
    >>> derived.calls.sum(axis=1).tolist(), derived.pulls_per_call <= derived.bound_per_call
    ([500, 500, 500, 500], True)

    """
    highest = (family.p + family.epsilon) / (1.0 - family.theta)
    if highest > 1.0 - _SLACK:
        raise ValueError(f"(p + epsilon) / (1 - alpha) must be at most {1 - _SLACK:g} for the factory, got {highest:g}")
    inside = family.member(member)
    outside = HardFamily(0.0, family.p, family.epsilon, family.n_dear).member(member)
    chosen = policy(inner)
    terms = Terms(n_arms=inside.n_arms, costs=inside.costs, alpha=family.theta, horizon=checked_count("rounds", rounds))
    truth = {name: float(getattr(inside, name)) for name in chosen.told}
    numbers = chosen.numbers(terms, truth)
    kernel = bind_rule(replicate_derived, chosen, terms, numbers)
    calls = np.zeros((checked_count("runs", runs), inside.n_arms), np.int64)
    pulls = np.zeros_like(calls)
    keys = np.arange(runs)
    streams = [make_streams(seed, np.column_stack([keys, np.full_like(keys, use)])) for use in (_WORLD, _POLICY, _FACTORY)]
    with np.errstate(over="ignore"):
        kernel(
            tuple(numbers.values()), inside.costs, np.argsort(inside.costs, kind="stable"), family.theta, terms.horizon,
            tabulate([Bernoulli(mean) for mean in outside.means.tolist()]), _SLACK, *streams, calls, pulls,
        )  # fmt: skip
    return Derived(inside, outside, calls, pulls)
