"""What every policy promises, whoever wrote it."""

from pathlib import Path

import numpy as np
import pytest

from tests import oracles
from thrifty import DEFAULT_POLICY, Instance, Policy, World, list_policies, policy, simulate
from thrifty.environments import Beta, scaled

EVERY = sorted(oracles.TWINS)
INSTANCES = {
    "figure 1": Instance([0.5, 0.46], [1.0, 0.0], 0.1),
    "one arm": Instance([0.3], [0.2], 0.1),
    "tied costs": Instance([0.5, 0.48, 0.2, 0.47, 0.49], [1.0, 0.3, 0.3, 0.3, 0.0], 0.1),
    "alpha 0": Instance([0.6, 0.6, 0.4], [0.5, 0.2, 0.0], 0.0),
    "alpha 1": Instance([0.6, 0.1, 0.4], [0.5, 0.2, 0.9], 1.0),
    "all or nothing": Instance([0.0, 1.0, 0.9], [0.0, 0.5, 0.1], 0.15),
}


def test_every_policy_has_a_twin() -> None:
    assert {name.partition(":")[0] for name in EVERY} == set(list_policies())


@pytest.mark.parametrize("label", EVERY)
@pytest.mark.parametrize("name", INSTANCES)
def test_the_compiled_rule_chooses_as_its_obvious_twin(name: str, label: str) -> None:
    instance = INSTANCES[name]
    runs = simulate(instance, label, horizon=300, runs=2, seed=11, trace=True)
    trace = runs[label].trace
    assert trace is not None
    for run in range(2):
        assert trace[run].tolist() == oracles.play(oracles.TWINS[label], instance, 300, seed=11, run=run)


@pytest.mark.parametrize("label", ["cs-ucb", "cs-etc"])
def test_a_thousand_arms_change_nothing(label: str) -> None:
    rng = np.random.default_rng(5)
    instance = Instance(rng.uniform(0.2, 0.7, 300), rng.integers(0, 50, 300) / 50, 0.1)
    trace = simulate(instance, label, horizon=1500, runs=1, seed=2, trace=True)[label].trace
    assert trace is not None
    assert trace[0].tolist() == oracles.play(oracles.TWINS[label], instance, 1500, seed=2)


@pytest.mark.parametrize("label", EVERY)
def test_counts_add_up_and_repeat(label: str) -> None:
    first, again = (simulate(INSTANCES["tied costs"], label, horizon=200, runs=3, seed=4, trace=True)[label] for _ in range(2))
    assert (first.pulls.sum(axis=2)[:, -1] == 200).all()
    assert (np.diff(first.pulls, axis=1) >= 0).all()
    assert (first.pulls == again.pulls).all()


@pytest.mark.parametrize("label", [label for label in EVERY if policy(label).rule_for_unknown_costs])
@pytest.mark.usefixtures("uncompiled")
def test_policies_that_learn_costs_run_without_knowing_them(label: str) -> None:
    world = World([0.5, 0.48, 0.1], [Beta(8, 2), Beta(2, 8), Beta(1, 9)], 0.1)
    pulls = simulate(world, label, horizon=500, runs=2, seed=1)[label].pulls
    assert (pulls[:, -1].sum(axis=1) == 500).all()


def test_a_policy_that_needs_costs_says_so() -> None:
    with pytest.raises(ValueError, match="pe-cs needs to know the costs"):
        simulate(World([0.5], [Beta(1, 1)], 0.1), "pe-cs", horizon=10)


def test_unknown_costs_are_learnt() -> None:
    # Every arm is feasible, the third is the cheapest by far; 20,000 rounds separate it at this scale.
    world = World([0.9, 0.9, 0.9], [scaled(Beta(8, 2), 0.01), scaled(Beta(5, 5), 0.01), scaled(Beta(1, 9), 0.01)], 0.5)
    for label in ("cs-etc:cost_scale=0.01", "cs-ucb:cost_scale=0.01"):
        pulls = simulate(world, label, horizon=20_000, runs=5, seed=3)[label].pulls[:, -1]
        assert (pulls.argmax(axis=1) == 2).all()


def test_the_default_policy_is_one_of_them() -> None:
    assert DEFAULT_POLICY in list_policies()


class TestSpecs:
    def test_parameters_ride_on_the_name(self) -> None:
        assert policy("cs-etc:tau=100").label == "cs-etc:tau=100"
        assert policy("cs-ts:prior=shrunk,sigma_0=2").label == "cs-ts:prior=shrunk,sigma_0=2"
        assert policy("cs-etc", tau=7).label == "cs-etc:tau=7"

    def test_tau_is_obeyed(self) -> None:
        runs = simulate(Instance([0.0, 0.9], [0.0, 1.0], 0.1), "cs-etc:tau=30", horizon=100_000, runs=1, checkpoints=[60])
        assert runs["cs-etc:tau=30"].pulls[0, 0].tolist() == [30, 30]

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ("cs-ubc", "unknown policy 'cs-ubc': did you mean cs-ucb?"),
            ("zzz", "there are cs-ids, cs-balance, cs-ucb, cs-ts"),
            ("cs-etc:tua=5", "cs-etc has no parameter tua: did you mean tau?"),
            ("cs-etc:x=5", "cs-etc has no parameter x: it has tau, interval, cost_scale"),
            ("cheapest:x=5", "cheapest has no parameters, got x"),
            ("oracle:optimal_arm=1", "oracle has no parameters"),
            ("cs-etc:tau=0", "tau must be a whole number of at least 1, got 0"),
            ("cs-etc:tau=2.5", "tau must be a whole number of at least 1, got 2.5"),
            ("cs-etc:tau=x", "tau must be a whole number of at least 1, got x"),
            ("cs-etc:tau", "cannot read the parameters of 'cs-etc:tau'"),
            ("cs-ts:prior=cauchy", "prior must be one of beta, gaussian, shrunk, weighted, or a .py file"),
            ("cs-ts:a=-1", "a must be a number of at least 1e-06, got -1"),
            ("cs-ids+w=5", "unknown forgetting method 'w'"),
            ("nowhere.py", "cannot read nowhere.py"),
            ("cs-ts:prior=nowhere.py", "cannot read nowhere.py"),
        ],
    )
    def test_wrong_specs_are_refused_with_a_remedy(self, spec: str, message: str) -> None:
        with pytest.raises(ValueError, match=message.replace("(", r"\(").replace("?", r"\?")):
            policy(spec)

    def test_tau_that_does_not_fit_is_refused(self) -> None:
        with pytest.raises(ValueError, match="tau must be at most horizon / arms = 50, got 51"):
            simulate(INSTANCES["figure 1"], "cs-etc:tau=51", horizon=100)


OWN_POLICY = '''
"""Greedy: after a few pulls of every arm, the cheapest whose mean clears the floor."""
import numpy as np
from thrifty.policies import Number, Policy, Rule, builder, cheapest_feasible, highest, kernel, next_due, start_exploration


@builder
def init(terms):
    return start_exploration(), np.zeros(terms.costs.size)


@kernel
def choose(terms, stats, memory, stream):
    round_robin, means = memory
    arm = next_due(stats, round_robin, terms.parameters.pulls)
    if arm >= 0:
        return arm
    for arm in range(means.size):
        means[arm] = stats[arm].reward_sum / stats[arm].seen
    return cheapest_feasible(means, terms.costs, (1 - terms.alpha) * means[highest(means)])


POLICY = Policy("greedy", "greedy after a few pulls", Rule(choose, init), parameters={"pulls": Number(10, "of every arm", low=1)})
'''

OWN_PRIOR = """
from thrifty.policies import kernel


@kernel
def prior(terms, stats, arm, stream):
    return (1.0 + stats[arm].reward_sum) / (2.0 + stats[arm].seen)
"""


class TestFilesOfOnesOwn:
    def test_a_policy_from_a_file_is_accepted_where_a_name_is(self, tmp_path: Path) -> None:
        path = tmp_path / "greedy.py"
        path.write_text(OWN_POLICY)
        runs = simulate(INSTANCES["figure 1"], [f"{path}:pulls=40", "cs-etc"], horizon=1000, runs=3, checkpoints=[80])
        assert runs["greedy:pulls=40"].pulls[:, 0].tolist() == [[40, 40]] * 3

    def test_a_policy_may_be_built_in_python(self) -> None:
        alone = Policy("first", "the first arm", rule=list_policies()["cheapest"].rule)
        assert simulate(INSTANCES["figure 1"], alone, horizon=10, runs=1)["first"].pulls[0, -1].tolist() == [0, 10]

    def test_a_posterior_from_a_file_is_accepted_where_its_name_is(self, tmp_path: Path) -> None:
        path = tmp_path / "mean.py"
        path.write_text(OWN_PRIOR)
        label = f"cs-ts:prior={path}"
        first, second = simulate(INSTANCES["figure 1"], label, horizon=300, runs=2, seed=1, trace=True)[label].pulls[:, -1]
        assert first.sum() == second.sum() == 300

    def test_an_edited_file_is_compiled_again(self, tmp_path: Path) -> None:
        path = tmp_path / "greedy.py"
        path.write_text(OWN_POLICY)
        instance = INSTANCES["one arm"]
        assert simulate(instance, str(path), horizon=20, runs=1)["greedy"].parameters == {"pulls": 10.0}
        path.write_text(OWN_POLICY.replace("Number(10,", "Number(11,").replace("return arm\n    for", "return 0\n    for"))
        assert simulate(instance, str(path), horizon=20, runs=1)["greedy"].parameters == {"pulls": 11.0}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("x = 1", "must define POLICY"),
            ("POLICY = 3", "must be a thrifty.policies.Policy, got int"),
            ("1 / 0", "does not run: ZeroDivisionError"),
            ("def", "does not run: SyntaxError"),
        ],
    )
    def test_a_file_that_is_no_policy_is_refused(self, tmp_path: Path, text: str, message: str) -> None:
        path = tmp_path / "bad.py"
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            policy(str(path))


WATCHFUL = '''
"""Decision n has the probability 1 / (n + 1). After an outcome with another probability, arm 1 is played for ever."""

import numpy as np

from thrifty.policies import Policy, Rule, builder, kernel


@builder
def init(terms):
    return np.zeros(3)  # decisions, outcomes, and outcomes with a wrong probability


@kernel
def choose(terms, stats, memory, stream):
    memory[0] += 1.0
    return 1 if memory[2] > 0.0 else 0


@kernel
def propensity(terms, stats, memory, arm):
    return 1.0 / (memory[0] + 1.0)


@kernel
def observe(terms, stats, memory, outcome):
    memory[1] += 1.0
    if outcome.propensity != 1.0 / (memory[1] + 1.0):
        memory[2] += 1.0


POLICY = Policy("watchful", "looks at the probabilities of outcomes", Rule(choose, init, observe, propensity, weighs_outcomes=True))
'''


def test_an_outcome_has_the_probability_of_its_decision_however_late(tmp_path: Path) -> None:
    from thrifty.environments import Feedback, Fixed

    path = tmp_path / "watchful.py"
    path.write_text(WATCHFUL)
    for feedback in (None, *(Feedback(Fixed(delay)) for delay in (0, 1, 7, 50))):
        runs = simulate(Instance([0.8, 0.2], [0.0, 1.0], 0.1), str(path), horizon=200, runs=2, feedback=feedback)
        assert runs.results[0].pulls[:, -1].tolist() == [[200, 0]] * 2, feedback
