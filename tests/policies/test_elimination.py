"""PE and PE-CS: the rounds of the published algorithm, by hand."""

import math
from typing import Any

import numpy as np
import pytest

from tests import oracles
from tests.policies.by_hand import memory_of, plain, statistics, terms_of
from thrifty import Instance, policy, simulate
from thrifty.policies import elimination
from thrifty.problem import Terms

# T = 173 has rounds 0, 1 and 2, because 173 / 4^2 = 10.8 is at least e and 173 / 4^3 = 2.7 is not. By hand, with gap = 2^-m:
# tau_2 = ceil(2 ln(10.8125) 16) = ceil(76.18) = 77 and beta_2 = sqrt(2.38070 / 154) = 0.12433.
T = 173


def test_a_round_has_the_samples_and_the_width_that_the_paper_prints() -> None:
    terms = terms_of("pe-cs", costs=[1.0, 0.0], alpha=0.1, horizon=T)
    samples, width, last = (plain(each) for each in (elimination._samples, elimination._width, elimination._last_round))
    assert [samples(terms, m) for m in range(3)] == [11, 31, 77]  # 2 ln 173 = 10.3, 8 ln 43.25 = 30.1, 32 ln 10.8 = 76.2
    assert [round(width(terms, m), 4) for m in range(3)] == [0.484, 0.2465, 0.1243]
    assert last(terms) == 2
    # The first horizon with a round m has T / 4^m >= e: 2.7, 10.9, 43.5, 173.98.
    horizons = (2, 3, 10, 11, 43, 44, 173, 174)
    assert [last(terms._replace(horizon=horizon)) for horizon in horizons] == [0, 0, 0, 1, 1, 2, 2, 3]


def test_the_limit_is_in_units_of_the_exploration_of_cs_etc() -> None:
    terms = terms_of("pe-cs:limit=2", costs=[1.0, 0.0], alpha=0.1, horizon=128)  # 2 (128 / 2)^(2/3) = 32
    spent = plain(elimination._spent)
    assert (spent(terms, 31), spent(terms, 32)) == (False, True)
    assert (spent(terms._replace(horizon=2), 1), spent(terms._replace(horizon=2), 2)) == (False, True)  # 2 (2 / 2)^(2/3) is just 2
    assert not spent(terms_of("pe-cs", costs=[1.0, 0.0], alpha=0.1, horizon=128), 10**9)


def decide(
    label: str, sums: list[tuple[int, float]], *, alpha: float = 0.1, horizon: int = T, costs: tuple[float, ...] = (1.0, 0.0)
) -> tuple[int, Any]:
    """The next arm after every arm was sampled n times with a reward sum, and the state of the rule."""
    terms = terms_of(label, costs=costs, alpha=alpha, horizon=horizon)
    memory = memory_of(label, terms)
    return int(plain(elimination.choose)(terms, statistics(sums), memory, None)), memory.state[0]


def test_the_last_round_of_the_search_drops_an_arm_too() -> None:
    # Means 0.75 and 0.45 are 0.3 apart: more than 2 beta_2 = 0.2487, less than 2 beta_1 = 0.493.
    arm, state = decide("pe-cs", [(77, 0.75 * 77), (77, 0.45 * 77)])
    assert state.reference == 0
    # (1 - 0.1) (0.75 - 0.1243) = 0.5631 is below 0.45 + 0.1243: the pair is not separated, and the cheap arm is sampled.
    assert (state.settled, arm) == (-1, 1)


def test_the_last_round_of_the_search_waits_for_its_samples() -> None:
    arm, state = decide("pe-cs", [(77, 0.75 * 77), (76, 0.45 * 76)])
    assert (state.reference, state.search_round, arm) == (-1, 2, 1)


def test_an_arm_is_dropped_only_when_its_upper_bound_is_below_the_highest_lower_one() -> None:
    close = 0.75 - 2 * math.sqrt(math.log(T / 16) / (2 * 77))
    for mean, found in ((close + 1e-9, -1), (close - 1e-9, 0)):
        assert decide("pe-cs", [(77, 0.75 * 77), (77, mean * 77)])[1].reference == found


def test_an_arm_whose_upper_bound_is_the_highest_lower_one_stays() -> None:
    # Means 0.75, 0.25 and 0 with a width of 1/4: 0.25 + 0.25 is just 0.75 - 0.25, and 0 + 0.25 is below it.
    memory = memory_of("pe-cs", terms_of("pe-cs", costs=[1.0, 0.5, 0.0], alpha=0.1, horizon=T))
    plain(elimination._eliminate)(statistics([(4, 3.0), (4, 1.0), (4, 0.0)]), memory, 0.25)
    assert memory.active.tolist() == [True, True, False]


def test_after_the_last_round_tied_arms_are_sampled_in_turn_and_tested_after_each_sample() -> None:
    assert decide("pe-cs", [(77, 40.0), (77, 40.0)])[0] == 0
    assert decide("pe-cs", [(78, 40.0), (77, 40.0)])[0] == 1
    assert decide("pe-cs", [(80, 60.0), (79, 30.0)])[1].reference == 0


def test_with_a_limit_the_highest_mean_is_the_reference_after_the_last_round() -> None:
    assert decide("pe-cs:limit=9", [(77, 40.0), (77, 41.0)])[1].reference == 1
    assert decide("pe-cs:limit=9", [(77, 40.0), (77, 40.0)])[1].reference == 0  # equal means go to the lower index


@pytest.mark.parametrize("label", ["pe-cs", "pe-cs:limit=9", "pe-cs:kappa=0"])
def test_a_run_through_the_last_round_is_that_of_the_twin(label: str) -> None:
    # Means 0.35 apart; by the binomial law the search ends in the last round or after it in most runs.
    instance = Instance([0.75, 0.45], [1.0, 0.0], 0.1)
    twins = {
        "pe-cs": oracles.Elimination(),
        "pe-cs:limit=9": oracles.Elimination(limit=9.0),
        "pe-cs:kappa=0": oracles.Elimination(kappa=0),
    }
    trace = simulate(instance, label, horizon=T, runs=8, seed=3, trace=True)[label].trace
    assert trace is not None
    for run in range(8):
        assert trace[run].tolist() == oracles.play(twins[label], instance, T, seed=3, run=run)


def test_the_search_that_ends_in_the_last_round_plays_the_reference_for_good() -> None:
    # Deterministic rewards 0.75 and 0.45 at alpha = 0: the cheap arm is dropped by the pair test as soon as the search ends.
    arm, state = decide("pe-cs", [(77, 0.75 * 77), (77, 0.45 * 77)], alpha=0.0)
    assert (state.reference, state.settled, arm) == (0, 0, 0)


def test_one_arm_needs_no_test() -> None:
    assert decide("pe-cs", [(1, 1.0)], horizon=1, costs=(0.5,))[0] == 0


class TestThePair:
    """Arm 1 costs 0, the reference 0 costs 1; both have 77 samples, so that the widths are beta_2 = 0.12433 for both."""

    WIDTH = math.sqrt(math.log(T / 16) / (2 * 77))

    def settled(self, mean: float, label: str = "pe") -> int:
        terms = terms_of(label, costs=[1.0, 0.0], alpha=0.2, horizon=T)
        memory = memory_of(label, terms)
        plain(elimination.choose_with_reference)(terms, statistics([(77, 0.5 * 77), (77, mean * 77)]), memory, None)
        return int(memory.state[0].settled)

    def test_it_settles_on_an_arm_whose_lower_bound_clears_the_share_of_the_references_upper_bound(self) -> None:
        bar = 0.8 * (0.5 + self.WIDTH) + self.WIDTH
        assert (self.settled(bar - 1e-9), self.settled(bar + 1e-9)) == (-1, 1)

    def test_it_drops_an_arm_whose_upper_bound_is_below_the_share_of_the_references_lower_bound(self) -> None:
        bar = 0.8 * (0.5 - self.WIDTH) - self.WIDTH
        assert (self.settled(bar + 1e-9), self.settled(bar - 1e-9)) == (-1, 0)

    def test_with_a_limit_an_arm_in_doubt_gets_the_benefit_of_it(self) -> None:
        assert self.settled(0.4, "pe:limit=9") == 1

    def test_the_reference_runs_kappa_rounds_ahead(self) -> None:
        for label, wanted in (("pe:kappa=0", 11), ("pe:kappa=1", 31), ("pe", 77)):
            terms = terms_of(label, costs=[1.0, 0.0], alpha=0.2, horizon=T)
            choose = plain(elimination.choose_with_reference)
            stats = statistics([(wanted - 1, 0.5 * (wanted - 1)), (11, 5.5)])
            assert int(choose(terms, stats, memory_of(label, terms), None)) == 0
            stats = statistics([(wanted, 0.5 * wanted), (11, 5.5)])
            assert int(choose(terms, stats, memory_of(label, terms), None)) == 1

    def test_the_test_of_the_next_arm_begins_with_the_first_round(self) -> None:
        # The reference gives the bar 0.8 (1 - 0.1243) = 0.7005. The cheapest arm has 31 samples of mean 0.4 and is dropped in
        # round 1: 0.4 + 0.484 is above the bar, 0.4 + 0.2465 is not. The next, with 11 of mean 0, is dropped in round 0.
        terms = terms_of("pe", costs=[1.0, 0.0, 0.5], alpha=0.2, horizon=T)
        memory, stats = memory_of("pe", terms), statistics([(77, 77.0), (31, 0.4 * 31), (11, 0.0)])
        assert int(plain(elimination.choose_with_reference)(terms, stats, memory, None)) == 0
        assert memory.state[0].settled == 0

    def test_an_arm_as_dear_as_the_reference_is_not_tested(self) -> None:
        terms = terms_of("pe:reference=1", costs=[0.5, 0.5], alpha=0.2, horizon=T)
        memory = memory_of("pe", terms)
        assert int(plain(elimination.choose_with_reference)(terms, statistics([(9, 9.0), (9, 0.0)]), memory, None)) == 1
        assert memory.state[0].settled == 1


def test_an_arm_without_outcomes_counts_as_one_half() -> None:
    assert plain(elimination._mean)(statistics([(3, 1.5)], seen=[0]), 0) == 0.5
    assert plain(elimination._mean)(statistics([(4, 1.0)]), 0) == 0.25
    assert plain(elimination._mean)(statistics([(1, 1.0)]), 0) == 1.0


def test_the_reference_of_pe_is_the_dearest_arm_unless_it_is_named() -> None:
    assert terms_of("pe", costs=[0.1, 0.9, 0.5], alpha=0.1, horizon=9).parameters.reference == 1.0
    assert terms_of("pe:reference=2", costs=[0.1, 0.9, 0.5], alpha=0.1, horizon=9).parameters.reference == 2.0


def test_the_reference_of_pe_must_be_an_arm() -> None:
    with pytest.raises(ValueError, match="reference must be an arm from 0 to 1, got 2"):
        terms_of("pe:reference=2", costs=[0.1, 0.9], alpha=0.1, horizon=9)
    unknown = Terms(n_arms=1, costs=None, alpha=0.1, horizon=9)  # refused by `rule_under`, which says why; any arm will do here
    assert policy("pe").numbers(unknown)["reference"] == 0.0


def test_all_tests_are_made_again_when_the_horizon_grows() -> None:
    for label, choose, reference in (("pe", elimination.choose_with_reference, 0), ("pe-cs", elimination.choose, -1)):
        terms = terms_of(label, costs=[1.0, 0.0], alpha=0.1, horizon=T)
        memory = memory_of(label, terms)
        state = memory.state[0]
        state.settled, state.reference, state.search_round, state.rung, state.pair_round = 1, 1, 2, 1, 2
        memory.active[:] = False
        plain(elimination._begin)(memory, 999, reference)
        assert state.tolist() == (999, -1, reference, 0, 0, 0)
        assert memory.active.all()
        state.settled = 1
        assert int(plain(choose)(terms._replace(horizon=999), statistics([(1, 1.0), (1, 0.0)]), memory, None)) == 1
        state.settled = 1
        plain(choose)(terms, statistics([(1, 1.0), (1, 0.0)]), memory, None)
        assert (state.horizon, state.settled) == (T, -1)


def test_the_means_of_late_outcomes_are_those_that_came_back() -> None:
    assert np.isclose(plain(elimination._mean)(statistics([(10, 3.0)], seen=[4]), 0), 0.75)
