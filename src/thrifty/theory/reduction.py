"""The derived algorithm pi_0: any policy for alpha > 0, run on arms of an alpha = 0 instance through a Bernoulli factory.

[Sinha2021] appendix B. When the inner policy pulls the free arm 0, so does pi_0. When it pulls a dear arm, pi_0 pulls that arm as
often as the factory needs to make one reward with mean mu / (1 - alpha). The inner policy then lives in Phi_alpha while pi_0 lives
in Phi_0.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.compiled import driver, kernel
from thrifty.environments.families import HardFamily
from thrifty.environments.laws import Bernoulli
from thrifty.environments.sampling import draw_reward, tabulate
from thrifty.interruption import run_interruptibly
from thrifty.policies import Policy, policy
from thrifty.policies.binding import bind_rule, explaining_faults, given_terms
from thrifty.policies.step import decide, rule_terms, start_state, take_outcome
from thrifty.problem import Instance, Terms, checked_count
from thrifty.statistics import Outcome, counted
from thrifty.streams import make_streams
from thrifty.theory.factory import flip_scaled
from thrifty.theory.inequalities import flip_bound

_WORLD, _POLICY, _FACTORY = 0, 1, 2
_SLACK = 0.5  # the paper's delta


class Factory(NamedTuple):
    """How rewards of the inner policy are made from pulls of pi_0."""

    coins: Any  # the laws of the arms of the outer instance
    factor: float  # 1 / (1 - alpha)
    slack: float


class FactoryStreams(NamedTuple):
    """The random streams of all runs, (runs, 4)."""

    coins: Any
    own: Any  # the policy's
    factory: Any


@driver
def replicate_derived(rule, given, factory, streams, calls, pulls):
    """Whole runs of pi_0: `calls` (runs, K) are the inner policy's pulls, `pulls` (runs, K) those of pi_0."""
    terms = rule_terms(rule, given)
    for run in range(calls.shape[0]):
        mine = FactoryStreams(streams.coins[run], streams.own[run], streams.factory[run])
        derive_rounds(rule, terms, start_state(rule, terms), factory, mine, calls[run], pulls[run])


@kernel
def derive_rounds(rule, terms, state, factory, streams, calls, pulls):
    """One run: the inner policy decides `terms.horizon` times."""
    for t in range(terms.horizon):
        arm, propensity = decide(rule, terms, state, None, streams.own, t)
        if arm == 0:
            reward, flips = draw_reward(factory.coins, 0, streams.coins), 1
        else:
            reward, flips = flip_scaled(factory.coins, arm, factory.factor, factory.slack, streams.coins, streams.factory)
        calls[arm] += 1
        pulls[arm] += flips
        outcome = Outcome(arm, reward, np.nan, propensity)
        take_outcome(rule, terms, state, None, outcome, counted(outcome), None)


@dataclass(frozen=True, eq=False)
class Derived:
    """Runs of pi_0: what the inner policy pulled in `inner` (runs, K) and what pi_0 pulled in `outer` (runs, K)."""

    inner: Instance
    outer: Instance
    calls: Integers
    pulls: Integers

    @property
    def pulls_per_call(self) -> float:
        """The mean of S_l over calls of dear arms."""
        return float(self.pulls[:, 1:].sum() / max(self.calls[:, 1:].sum(), 1))

    @property
    def bound_per_call(self) -> float:
        """9.5 / (delta (1-alpha)) = 19 / (1-alpha)."""
        return flip_bound(1.0 / (1.0 - self.inner.alpha), _SLACK)

    @property
    def inner_regret(self) -> Floats:
        """(runs,) quality plus cost regret of the inner policy over its L rounds."""
        return self.inner.quality_regret(self.calls) + self.inner.cost_regret(self.calls)

    @property
    def outer_regret(self) -> Floats:
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
    chosen.check_keeps_all("the reduction")
    terms = Terms(n_arms=inside.n_arms, costs=inside.costs, alpha=family.theta, horizon=checked_count("rounds", rounds))
    truth = {name: float(getattr(inside, name)) for name in chosen.known_truths}
    numbers = chosen.numbers(terms, truth)
    play = bind_rule(replicate_derived, chosen, terms, numbers)
    calls = np.zeros((checked_count("runs", runs), inside.n_arms), np.int64)
    pulls = np.zeros_like(calls)
    keys = np.arange(runs)
    made = (make_streams(seed, np.column_stack([keys, np.full_like(keys, use)])) for use in (_WORLD, _POLICY, _FACTORY))
    streams = FactoryStreams(*made)
    coins = tabulate([Bernoulli(mean) for mean in outside.means.tolist()])
    factory = Factory(coins, 1.0 / (1.0 - family.theta), _SLACK)
    with explaining_faults(chosen, inside.n_arms, streams.own):
        run_interruptibly(lambda: play(given_terms(terms, numbers), factory, streams, calls, pulls))
    return Derived(inside, outside, calls, pulls)
