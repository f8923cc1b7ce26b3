"""Rejection replay equals its slow twin, and estimates what a policy does live."""

import numpy as np
import polars
import pytest

from thrifty.logs import Columns, Log
from thrifty.logs.evaluation import replay
from thrifty.logs.evidence import examine
from thrifty.logs.rejection import replay_policy
from thrifty.policies import policy
from thrifty.policies.binding import bind_rule, given_terms
from thrifty.policies.step import start_rule
from thrifty.problem import Instance, Terms
from thrifty.router.engine import engine_for
from thrifty.router.packing import flatten
from thrifty.simulation import simulate

MEANS, COSTS = [0.8, 0.76, 0.4], [1.0, 0.5, 0.1]


def uniform_log(n: int, seed: int) -> polars.DataFrame:
    rng = np.random.default_rng(seed)
    arms = rng.integers(0, 3, n)
    return polars.DataFrame(
        {
            "arm": [f"arm{arm}" for arm in arms],
            "reward": (rng.random(n) < np.array(MEANS)[arms]).astype(float),
            "cost": np.array(COSTS)[arms],
            "p": np.full(n, 1 / 3),
        }
    )


def test_the_cheapest_arm_rule_matches_exactly_its_rows() -> None:
    rows = uniform_log(3000, seed=1)
    log = Log(rows, Columns(propensity="p"))
    evidence = examine(log)
    (found,) = replay_policy(log, evidence.aggregates, evidence.estimates, "cheapest", [0.1], plays=1)[0.1]
    mine = rows.filter(arm="arm2")
    assert found.matches == mine.height
    assert found.sums[0, :, 1].sum() == mine["reward"].sum()
    assert found.sums[0, :, 2].sum() == pytest.approx(mine["cost"].sum())


def test_cs_ucb_sees_the_rows_that_a_plain_loop_over_the_log_shows_it() -> None:
    """The twin asks the rule at every row, as [Li2011] do; CS-UCB draws no random numbers, so that both match the same rows."""
    rows = uniform_log(2000, seed=2)
    log = Log(rows, Columns(propensity="p"))
    evidence = examine(log)
    (found,) = replay_policy(log, evidence.aggregates, evidence.estimates, "cs-ucb", [0.1], plays=1)[0.1]
    arms = rows["arm"].str.slice(3).cast(polars.Int64).to_numpy()
    rewards = rows["reward"].to_numpy()
    horizon = int(rows.height / 3)
    seen, won = np.zeros(3), np.zeros(3)
    matched = 0
    for arm, reward in zip(arms, rewards, strict=True):
        fresh = np.flatnonzero(seen == 0)
        if fresh.size:
            chosen = int(fresh[0])
        else:
            score = np.minimum(won / seen + np.sqrt(2.0 * np.log(horizon) / seen), 1.0)
            feasible = np.flatnonzero(score >= 0.9 * score.max())
            chosen = int(min(feasible, key=lambda each: (COSTS[each], -score[each], each)))
        if chosen == arm:
            seen[arm] += 1
            won[arm] += reward
            matched += 1
    assert found.matches == matched
    assert found.sums[0, :, 1].sum() == won.sum()


def test_replay_agrees_with_simulation_of_the_same_world() -> None:
    """CS-TS on 60,000 uniform rows, eight plays, beside 200 simulated runs: within five standard errors; fails once in 10^6
    seeds.
    """
    found = replay(Log(uniform_log(60_000, seed=3), Columns(propensity="p")), [0.1], policies=["cs-ts"], plays=8)
    row = found.policies.filter(policy="cs-ts").to_dicts()[0]
    runs = simulate(Instance(MEANS, COSTS, 0.1), ["cs-ts"], horizon=row["rows"], runs=200, seed=4)
    pulls = runs["cs-ts"].pulls[:, -1] / row["rows"]
    error = (row["reward_high"] - row["reward_low"]) / 3.92
    assert abs(row["reward"] - float((pulls @ MEANS).mean())) < 5.0 * error
    error = (row["cost_high"] - row["cost_low"]) / 3.92
    assert abs(row["cost"] - float((pulls @ COSTS).mean())) < 5.0 * error + 0.01


def test_a_log_that_is_not_uniform_is_thinned_to_one_that_is() -> None:
    """`uniform` draws arms evenly whatever the log did: its value is the plain mean over arms. 50,000 rows, five standard
    errors.
    """
    rng = np.random.default_rng(5)
    p = np.array([0.7, 0.2, 0.1])
    arms = rng.choice(3, 50_000, p=p)
    rows = {
        "arm": [f"arm{arm}" for arm in arms],
        "reward": (rng.random(arms.size) < np.array(MEANS)[arms]).astype(float),
        "cost": np.array(COSTS)[arms],
        "p": p[arms],
    }
    for columns in (Columns(propensity="p"), Columns()):
        found = replay(Log(polars.DataFrame(rows), columns), [0.1], policies=["uniform"], plays=4).policies
        row = found.filter(policy="uniform").to_dicts()[0]
        assert row["rows"] == pytest.approx(0.1 * 50_000, rel=0.1 if columns.propensity else 0.25)
        assert abs(row["reward"] - np.mean(MEANS)) < 5.0 * (row["reward_high"] - row["reward_low"]) / 3.92


def test_the_same_seed_gives_the_same_replay_whatever_the_threads() -> None:
    rows = uniform_log(20_000, seed=6)
    one, other = (replay(Log(rows, Columns(propensity="p")), [0.1], policies=["cs-ids"], seed=7).policies for _ in range(2))
    assert one.equals(other)


def test_random_costs_are_unknown_to_the_rule() -> None:
    rng = np.random.default_rng(8)
    rows = uniform_log(6000, seed=8)
    rows = rows.with_columns(cost=rows["cost"] * rng.exponential(1.0, rows.height))
    log = Log(rows, Columns(propensity="p"))
    evidence = examine(log)
    with pytest.raises(ValueError, match="needs to know the costs"):
        replay_policy(log, evidence.aggregates, evidence.estimates, "pe-cs", [0.1])
    (found,) = replay_policy(log, evidence.aggregates, evidence.estimates, "cs-ucb", [0.1])[0.1]
    assert found.matches > 1000


def test_the_driver_starts_rules_as_the_router_does() -> None:
    terms = Terms(3, np.array([1.0, 0.0, 0.5]), 0.1, 100)
    chosen = policy("cs-ucb")
    numbers = chosen.numbers(terms)
    state = bind_rule(start_rule, chosen, terms, numbers)(given_terms(terms, numbers))
    routed = engine_for("cs-ucb").code(True).new_memory(terms, numbers, 100)
    assert [leaf.tolist() for leaf in flatten(state.memory)] == [leaf.tolist() for leaf in flatten(routed)]
    assert not any(state.stats.tolist()[0])
