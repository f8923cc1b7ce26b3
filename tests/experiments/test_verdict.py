import numpy as np
import pytest

from thrifty.experiments.verdict import (
    FAILS,
    FEWEST_RUNS,
    HOLDS,
    IMPRECISE,
    REDRAWS,
    UNDECIDED,
    UNTESTABLE,
    Judge,
    Means,
    UpperBound,
    exact,
    first_testable,
    verdict,
    with_error,
)


def is_positive(means: Means) -> bool:
    return bool(means["gain"] > 0.0)


def judged(values: object) -> tuple[str, int | None]:
    claim = Judge({"gain": values}).claim("here", "gains are positive", is_positive, "")
    return claim.verdict, claim.flips


def test_a_sentence_is_imprecise_where_only_some_of_its_parts_are_true() -> None:
    assert [verdict(parts) for parts in ([True, True], [True, False], [False, False])] == [HOLDS, IMPRECISE, FAILS]


def test_a_clear_difference_never_flips() -> None:
    rng = np.random.default_rng(1)
    gains = 1.0 + rng.standard_normal(100)  # ten standard errors from 0
    assert judged(gains) == (HOLDS, 0)
    assert judged(-gains) == (FAILS, 0)


def test_a_difference_of_one_standard_error_is_undecided_and_flips_as_often_as_the_normal_law_says() -> None:
    gains = np.tile([-1.0, 1.0], 200)
    gains += gains.std() / np.sqrt(gains.size)  # the mean is one standard error above 0
    found, flips = judged(gains)
    assert found == UNDECIDED
    assert flips is not None
    # A re-draw is negative with probability 0.159, or a little more for ties: 1,000 of them leave this range once in 10^5 seeds.
    assert 110 <= flips <= 225


def test_an_undecided_claim_says_what_its_own_runs_say() -> None:
    claim = Judge({"gain": [-1.0, 1.5] * 10}).claim("here", "gains are positive", is_positive, "measured")
    assert claim.verdict == UNDECIDED
    assert claim.measured == "measured. By the runs themselves: holds"
    assert claim.certainty == f"flips in {claim.flips:,} of {REDRAWS:,} re-draws"


def test_a_few_runs_decide_nothing_even_if_they_agree() -> None:
    claim = Judge({"gain": [1.0] * (FEWEST_RUNS - 1)}).claim("here", "gains are positive", is_positive, "")
    assert (claim.verdict, claim.flips) == (UNDECIDED, 0)
    assert "A verdict needs 10 runs, there are 9" in claim.measured
    assert judged([1.0] * FEWEST_RUNS) == (HOLDS, 0)


def test_values_of_one_run_stay_together_and_groups_do_not() -> None:
    rng = np.random.default_rng(2)
    noise = 100.0 * rng.standard_normal(50)
    together = Judge({"pair": np.column_stack([noise, noise + 1.0])})
    apart = Judge({"a": noise, "b": noise + 1.0})
    assert together.claim("", "", lambda means: means["pair"][0] < means["pair"][1], "").flips == 0
    flips = apart.claim("", "", lambda means: means["a"] < means["b"], "").flips
    assert flips is not None
    assert 400 <= flips <= 560  # about one half


def test_many_runs_are_redrawn_in_blocks_with_the_same_spread() -> None:
    rng = np.random.default_rng(3)
    gains = rng.standard_normal(20_500)
    gains += 1.0 / np.sqrt(gains.size) - gains.mean()  # one standard error above 0
    flips = judged(gains)[1]
    assert flips is not None
    assert 110 <= flips <= 215  # as above


def test_the_same_runs_are_judged_the_same_twice() -> None:
    gains = np.random.default_rng(4).standard_normal(40)
    assert judged(gains) == judged(gains)


def bounds(*pairs: tuple[float, float]) -> list[UpperBound]:
    return [UpperBound("regret", bound, largest) for bound, largest in pairs]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(6.0, 10.0)], HOLDS),
        ([(4.0, 10.0)], FAILS),
        ([(6.0, 10.0), (4.0, 10.0)], FAILS),
        ([(11.0, 10.0)], UNTESTABLE),
        ([(10.0, 10.0)], UNTESTABLE),
        ([(4.0, 3.0), (6.0, 10.0)], HOLDS),
    ],
)
def test_an_upper_bound_is_tested_only_where_a_policy_could_break_it(pairs: list[tuple[float, float]], expected: str) -> None:
    judge = Judge({"regret": [5.0] * 20})
    claim = judge.claim_bounds("Theorem 9", "small", bounds(*pairs), measured="", testable_from="T >= 401")
    assert claim.verdict == expected
    assert "T >= 401" in claim.measured


def test_a_claim_that_is_not_testable_has_nothing_to_flip() -> None:
    claim = Judge({"regret": [5.0] * 20}).claim_bounds("", "", bounds((11.0, 10.0)), measured="", testable_from="more")
    assert (claim.flips, claim.certainty) == (None, "no runs to re-draw")
    assert exact("", "", True, "").certainty == "exact"


def test_the_first_testable_horizon_is_the_first() -> None:
    assert first_testable(lambda t: 7.0 * t**0.5, 1.0) == 50  # at T = 49 the bound equals T
    assert first_testable(lambda t: 7.0 * t**0.5, 0.5) == 197  # at T = 196 it equals T / 2


@pytest.mark.parametrize(
    ("mean", "error", "shown"),
    [
        (3262.0, 41.0, "3,300 +- 41"),
        (3262.0, 29.0, "3,260 +- 29"),
        (12.44, 0.56, "12 +- 0.56"),
        (79_431.0, 2_400.0, "79,000 +- 2,400"),
        (79_431.0, 4_834.0, "80,000 +- 4,800"),
        (0.0972, 0.0031, "0.10 +- 0.0031"),
        (5.0, 80.0, "5 +- 80"),
    ],
)
def test_numbers_are_shown_to_the_digits_that_their_standard_error_allows(mean: float, error: float, shown: str) -> None:
    spread = error * np.sqrt(999)  # 1,000 values at this distance have this standard error
    assert with_error(mean + spread * np.tile([-1.0, 1.0], 500)) == shown
