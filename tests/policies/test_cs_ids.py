"""CS-IDS and the elimination family: what they promise beyond the contract."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import oracles
from thrifty import Bernoulli, Instance, World, simulate
from thrifty.policies.information import best_of_two

positive = st.floats(1e-3, 1.0)


@given(st.lists(st.tuples(positive, positive), min_size=2, max_size=5), st.sampled_from([2.0, 4.0]))
def test_the_closed_form_beats_every_mixture_on_a_grid(arms: list[tuple[float, float]], power: float) -> None:
    regret, information = (np.array(column) for column in zip(*arms, strict=True))
    coin = np.zeros(3)
    assert best_of_two(regret, information, power, coin) == coin[0]
    first, second, weight = int(coin[0]), int(coin[1]), coin[2]
    reached = ((1 - weight) * regret[first] + weight * regret[second]) ** power
    reached /= (1 - weight) * information[first] + weight * information[second]
    grid = np.linspace(0, 1, 51)
    for a in range(regret.size):
        for b in range(regret.size):
            ratios = (grid * regret[a] + (1 - grid) * regret[b]) ** power / (grid * information[a] + (1 - grid) * information[b])
            assert reached <= ratios.min() * (1 + 1e-9)


@given(st.lists(st.tuples(positive, positive), min_size=2, max_size=30), st.sampled_from([2.0, 4.0]))
def test_no_pair_of_arms_beats_the_neighbours_on_the_hull(arms: list[tuple[float, float]], power: float) -> None:
    regret, information = (np.array(column) for column in zip(*arms, strict=True))
    coin = np.zeros(3)
    best_of_two(regret, information, power, coin)
    first, second, weight = int(coin[0]), int(coin[1]), coin[2]
    reached = ((1 - weight) * regret[first] + weight * regret[second]) ** power
    reached /= (1 - weight) * information[first] + weight * information[second]
    for a in range(regret.size):
        dr, dv = regret - regret[a], information - information[a]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip((dv * regret[a] - power * dr * information[a]) / ((power - 1) * dr * dv), 0, 1)
        share = np.where((dr > 0) & (dv > 0), share, 0.0)
        ratios = (regret[a] + share * dr) ** power / (information[a] + share * dv)
        assert reached <= ratios.min() * (1 + 1e-9)


@pytest.mark.parametrize(
    "instance",
    [
        Instance([0.6, 0.6, 0.55, 0.4], [1.0, 0.9, 0.3, 0.0], 0.1),
        Instance([0.2, 0.3, 0.4, 0.5, 0.5, 0.45, 0.5, 0.46], [0.0, 0.2, 0.1, 1.0, 0.9, 0.3, 0.8, 0.4], 0.1),
    ],
)
def test_it_chooses_as_its_twin_when_arms_have_been_tried(instance: Instance) -> None:
    # The other comparisons with the twin are too short for the 60 outcomes after which an arm counts as tried.
    trace = simulate(instance, "cs-ids:draws=10", horizon=1000, runs=1, seed=7, trace=True)["cs-ids:draws=10"].trace
    assert trace is not None
    assert np.sum(np.bincount(trace[0]) >= 60) >= 2
    assert trace[0].tolist() == oracles.play(oracles.InformationDirected(draws=10), instance, 1000, seed=7)


def test_where_all_draws_agree_it_plays_the_arm_they_agree_on() -> None:
    for regret in ([0.5, 0.0, 0.2], [0.5, 0.1, 0.2]):
        coin = np.zeros(3)
        assert best_of_two(np.array(regret), np.zeros(3), 4.0, coin) == 1
        assert coin.tolist() == [1.0, 1.0, 0.0]


def test_it_is_good_on_both_sides_of_the_floor() -> None:
    # The best worst case of the paper's policies over Table 1 is 722 (CS-ETC); the target is 0.40 of it. 100 runs a point, and
    # the worst
    # point has a standard error of some 45: 5 of them below 722 * 0.7.
    for mean in (0.30, 0.40, 0.46, 0.50, 0.60):
        final = simulate(Instance([0.5, mean], [1.0, 0.0], 0.1), "cs-ids", horizon=5000, runs=100, seed=5, checkpoints=1).final()
        assert final["cs-ids"]["total"]["mean"] < 0.7 * 722


def test_exchange_trades_quality_for_cost() -> None:
    instance = Instance([0.5, 0.42], [1.0, 0.0], 0.1)
    careful, thrifty = "cs-ids:exchange=8", "cs-ids:exchange=0.3"
    final = simulate(instance, [careful, thrifty], horizon=5000, runs=60, seed=1, checkpoints=1).final()
    assert final[careful]["quality"]["mean"] < 0.8 * final[thrifty]["quality"]["mean"]


def test_the_unit_of_cost_does_not_matter() -> None:
    dollars, cents = (Instance([0.5, 0.46, 0.2], np.array([1.0, 0.4, 0.2]) * unit, 0.1) for unit in (1.0, 128.0))
    traces = [simulate(each, "cs-ids", horizon=500, runs=2, seed=3, trace=True)["cs-ids"].trace for each in (dollars, cents)]
    assert traces[0] is not None
    assert (traces[0] == traces[1]).all()


def test_unknown_costs_are_learnt_in_any_unit() -> None:
    world = World([0.6, 0.59, 0.3], [Bernoulli(0.9), Bernoulli(0.3), Bernoulli(0.1)], 0.1)
    for label in ("cs-ids", "cs-ts"):
        pulls = simulate(world, label, horizon=10_000, runs=20, seed=1, checkpoints=1)[label].pulls[:, -1]
        assert (pulls.argmax(axis=1) == 1).mean() >= 0.9


@pytest.mark.parametrize(("plain", "repaired"), [("pe-cs", "pe-cs:limit=1")])
def test_the_repair_ends_the_search_among_tied_tops(plain: str, repaired: str) -> None:
    # Tied top arms: the published search for the best never ends (reading of section 5 of the PE-CS paper); the limit ends it.
    final = simulate(
        Instance([0.5, 0.5], [1.0, 0.0], 0.1), [plain, repaired], horizon=100_000, runs=4, seed=1, checkpoints=1
    ).final()
    assert final[plain]["cost"]["mean"] > 10 * final[repaired]["cost"]["mean"]


def test_pairwise_elimination_settles_for_good_when_arms_are_apart() -> None:
    trace = simulate(Instance([0.9, 0.1, 0.7], [1.0, 0.0, 0.5], 0.5), "pe-cs", horizon=20_000, runs=3, seed=1, trace=True)[
        "pe-cs"
    ].trace
    assert trace is not None
    assert all(set(row[-5000:].tolist()) == {2} for row in trace)


def test_a_reference_that_is_no_arm_is_refused() -> None:
    with pytest.raises(ValueError, match="reference must be an arm from 0 to 1, got 2"):
        simulate(Instance([0.5, 0.4], [1.0, 0.0], 0.1), "pe:reference=2", horizon=100)
