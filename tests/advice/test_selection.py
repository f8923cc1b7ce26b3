"""Which candidates are played further, and which one a segment gets: by hand-made scores."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from thrifty.advice.criteria import Criteria
from thrifty.advice.play import Score
from thrifty.advice.selection import AS_GOOD, Candidates, choose_all, finalists, floor_held, mean_worth
from thrifty.policies import policy

TWO = Candidates([policy("cs-ts"), policy("cs-ucb")], [0.05, 0.1], Criteria(confidence=0.8))


def segment(name: str, rows: int) -> Any:
    return SimpleNamespace(name=name, rows=rows, arms=("cheap", "dear"), quality=np.array([0.8, 0.9]))


def scores(worth: float, given_up: list[float]) -> list[Score]:
    return [Score(1.0 - each, 1.0, 0.0, 0.0, worth, 0.0, 1.0, 2.0) for each in given_up]


def play(name: str, by_pair: dict[tuple[float, str], tuple[float, list[float]]]) -> dict[tuple[str, float, str], list[Score]]:
    return {(name, *pair): scores(*each) for pair, each in by_pair.items()}


NOTHING = {(0.1, "cs-ts"): (0.0, [0.01] * 10), (0.1, "cs-ucb"): (0.0, [0.01] * 10)}
KEPT, BROKEN = [0.01] * 10, [0.01] * 7 + [0.2] * 3


def test_a_candidate_that_breaks_its_alpha_too_often_is_out_however_much_it_is_worth() -> None:
    found = play(
        "s",
        {(0.05, "cs-ts"): (0.1, KEPT), (0.05, "cs-ucb"): (0.4, BROKEN), (0.1, "cs-ts"): (0.3, BROKEN), (0.1, "cs-ucb"): (0, KEPT)},
    )
    choices, refused = choose_all([segment("s", 100)], TWO, found)
    assert [(each.policy, each.alpha) for each in choices] == [("cs-ts", 0.05)]
    assert not refused
    soft = Candidates(TWO.policies, TWO.alphas, Criteria(confidence=0.0))
    (choice,), _ = choose_all([segment("s", 100)], soft, found)
    assert (choice.policy, choice.alpha) == ("cs-ucb", 0.05)


def test_a_segment_without_an_admissible_candidate_says_which_was_nearest_and_what_to_do() -> None:
    worse = [0.01] * 2 + [0.2] * 8
    found = play("s", dict.fromkeys([(a, p.label) for a, p in TWO.pairs], (0.4, worse)) | {(0.1, "cs-ts"): (0.1, BROKEN)})
    choices, refused = choose_all([segment("s", 100)], TWO, found)
    assert choices == ()
    assert refused["s"].startswith("no candidate keeps its alpha in 80% of the worlds; the nearest is cs-ts at alpha 0.1 with 70%")
    assert "Take dear, the best arm of the log" in refused["s"]


def test_segments_share_a_candidate_that_is_as_good_as_the_best_in_each() -> None:
    a, b = 0.3, 0.3 - 0.5 * AS_GOOD
    found = play("s", {(0.05, "cs-ts"): (a, KEPT), (0.05, "cs-ucb"): (b, KEPT), **NOTHING})
    found |= play("t", {(0.05, "cs-ts"): (b, KEPT), (0.05, "cs-ucb"): (a, KEPT), **NOTHING})
    choices, _ = choose_all([segment("s", 100), segment("t", 300)], TWO, found)
    assert {each.policy for each in choices} == {"cs-ucb"}


def test_segments_whose_best_candidates_differ_by_more_get_their_own() -> None:
    found = play("s", {(0.05, "cs-ts"): (0.3, KEPT), (0.05, "cs-ucb"): (0.2, KEPT), **NOTHING})
    found |= play("t", {(0.05, "cs-ts"): (0.2, KEPT), (0.05, "cs-ucb"): (0.3, KEPT), **NOTHING})
    choices, _ = choose_all([segment("s", 100), segment("t", 300)], TWO, found)
    assert [each.policy for each in choices] == ["cs-ts", "cs-ucb"]


def test_candidates_that_were_not_played_to_the_end_cannot_be_chosen() -> None:
    found = play("s", dict.fromkeys([(a, p.label) for a, p in TWO.pairs], (0.1, KEPT)))
    found["s", 0.1, "cs-ucb"] = scores(0.9, KEPT[:5])
    (choice,), _ = choose_all([segment("s", 100)], TWO, found)
    assert (choice.policy, choice.alpha) == ("cs-ts", 0.05)


def test_finalists_are_the_worthiest_that_may_keep_their_alpha_and_then_the_surest() -> None:
    many = Candidates([policy(f"cs-etc:tau={tau}") for tau in (10, 20, 30, 40, 50, 60)], [0.1], Criteria(confidence=0.8))
    held = {10: KEPT, 20: BROKEN, 30: [0.2] * 10, 40: [0.01] * 5 + [0.2] * 5, 50: [0.01] * 2 + [0.2] * 8, 60: [0.2] * 10}
    found = play("s", {(0.1, f"cs-etc:tau={tau}"): (tau / 100, given) for tau, given in held.items()})
    (chosen,) = finalists([segment("s", 100)], many, found)
    assert [each.label for _, each in chosen] == [f"cs-etc:tau={tau}" for tau in (10, 20, 40, 50)]


def test_worth_and_floor_are_means_over_worlds() -> None:
    assert mean_worth([*scores(0.1, [0.0]), *scores(0.3, [0.0])]) == 0.2
    assert floor_held(scores(0.0, [0.0, 0.05, 0.051, 0.2]), 0.05) == 0.5


def test_a_fixed_arm_is_taken_where_learning_costs_more_than_it_brings() -> None:
    fixed = Candidates(TWO.policies, TWO.alphas, TWO.criteria, fixed=True)
    found = play("s", dict.fromkeys([(a, p.label) for a, p in TWO.pairs], (0.1, KEPT)))
    found |= play("s", {(0.1, "always cheap"): (0.3, BROKEN), (0.1, "always dear"): (0.1 + 2 * AS_GOOD, KEPT)})
    (choice,), _ = choose_all([segment("s", 100)], fixed, found)
    assert (choice.policy, choice.alpha) == ("always dear", 0.1)
    found |= play("s", {(0.1, "always dear"): (0.1 + 0.5 * AS_GOOD, KEPT)})
    (choice,), _ = choose_all([segment("s", 100)], fixed, found)
    assert choice.policy == "cs-ts"  # as good, and it notices changes
    (choice,), _ = choose_all([segment("s", 100)], TWO, found | play("s", {(0.1, "always dear"): (0.9, KEPT)}))
    assert choice.policy == "cs-ts"  # fixed arms are no candidates


def test_a_segment_without_a_policy_that_keeps_its_alpha_gets_a_fixed_arm() -> None:
    fixed = Candidates(TWO.policies, TWO.alphas, TWO.criteria, fixed=True)
    found = play("s", dict.fromkeys([(a, p.label) for a, p in TWO.pairs], (0.4, BROKEN)))
    found |= play("s", {(0.1, "always cheap"): (0.3, BROKEN), (0.1, "always dear"): (0.0, KEPT)})
    (choice,), refused = choose_all([segment("s", 100)], fixed, found)
    assert choice.policy == "always dear"
    assert not refused


WARM = Candidates([policy("cs-ts"), policy("cs-worth")], [0.05, 0.1], Criteria(confidence=0.5), fixed=True, warm=True)


def warm_scores(gains: list[float], *, kept: list[float] = KEPT) -> Any:
    """The preferred candidate is worth 0.1 in every world; cs-ts at 0.1 is worth so much more in each."""
    found = play("s", {(0.1, "cs-worth"): (0.1, kept), (0.05, "cs-worth"): (0.0, KEPT), (0.05, "cs-ts"): (0.0, KEPT)})
    better = [Score(0.99, 1.0, 0.0, 0.0, 0.1 + gain, 0.0, 1.0, 2.0) for gain in gains]
    fixed = {("s", 0.1, f"always {arm}"): scores(-0.5, KEPT) for arm in ("cheap", "dear")}
    return {**found, ("s", 0.1, "cs-ts"): better, **fixed}


def chosen(found: Any) -> tuple[str, float]:
    (choice,), _ = choose_all([segment("s", 100)], WARM, found)
    return choice.policy, choice.alpha


def test_the_policy_that_aims_at_worth_is_preferred_unless_another_is_surely_better() -> None:
    lucky, sure = [-0.2, 0.3] * 5, [0.04, 0.06] * 5
    assert chosen(warm_scores(lucky)) == ("cs-worth", 0.1)
    assert chosen(warm_scores(sure)) == ("cs-ts", 0.1)
    assert chosen(warm_scores(lucky, kept=[0.2] * 10)) == ("cs-ts", 0.1)  # it breaks its alpha


def test_the_preferred_candidate_is_always_played_to_the_end() -> None:
    found = finalists([segment("s", 100)], WARM, warm_scores([0.0] * 10, kept=[0.2] * 10))
    assert (0.1, "cs-worth") in [(alpha, each.label) for alpha, each in found[0]]
    assert Candidates(WARM.policies, WARM.alphas, WARM.criteria).preferred is None  # from nothing it is one of many
