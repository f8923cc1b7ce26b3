"""The fit draws worlds like the log's, the recommendation is the worthiest candidate, and a router takes it."""

from pathlib import Path

import numpy as np
import polars
import pytest
from benchmarks.honesty import confounded_log

from thrifty import Router
from thrifty.advice import Criteria, Effort, recommend
from thrifty.advice.fit import MOST_KNOWN, SegmentTruth, fit_segments
from thrifty.advice.fixed import fixed_label, score_arms
from thrifty.advice.play import play, worth
from thrifty.advice.routers import advised_routers
from thrifty.cli.main import main
from thrifty.environments import Changing
from thrifty.examples import LLM, SMS
from thrifty.examples.generator import generate, write_example
from thrifty.logs import Columns, Evidence, Log, examine
from thrifty.policies import policy
from thrifty.reports.recommendation import recommendation_page

COLUMNS = Columns(
    arm="aggregator",
    reward="status",
    success=("delivered",),
    cost="price",
    segment="country",
    time="sent_at",
    outcome_time="received_at",
)
SCORES = Columns(arm="model", reward="quality", cost="cost", segment="task", time="sent_at", propensity="propensity")
NOW = 2e9
SOFT = Criteria(confidence=0.0)


@pytest.fixture(scope="module")
def sms() -> Evidence:
    frame = next(generate(SMS, 60_000, seed=5)).filter(polars.col("country").is_in(["US", "EG"]))
    return examine(Log(frame, COLUMNS, now=NOW))


def test_drawn_worlds_scatter_around_the_estimates(sms: Evidence) -> None:
    """400 draws: their means lie within a fifth of the estimate's own error, five standard deviations of such a mean."""
    for fit in fit_segments(sms):
        rng = np.random.default_rng(1)
        levels = np.array([fit.draw(rng).overall[0] for _ in range(400)])
        assert (np.abs(levels.mean(axis=0) - fit.quality) < 0.4 * fit.error + 2e-3).all()
        assert (levels.std(axis=0) > 0.5 * fit.error).all()
        assert (levels.std(axis=0) < 2.5 * fit.error).all()


def test_prices_delay_and_kind_of_reward_are_those_of_the_log(sms: Evidence) -> None:
    us = next(fit for fit in fit_segments(sms) if fit.name == "US")
    assert us.listed
    assert us.arms == ("Cedar", "Birch", "Alder")  # the cheapest first
    np.testing.assert_allclose(us.prices[0], [0.0052, 0.0074, 0.0083], rtol=1e-4)
    np.testing.assert_allclose(us.latest[0], 0.9 * 0.0052, rtol=1e-4)
    assert (us.concentration == 0).all()
    assert 0.0 < us.delay < 0.1  # six seconds, a message every eight minutes
    assert us.feedback is None


def test_scores_and_random_costs_get_laws_with_their_moments() -> None:
    """50,000 calls: the fitted moments lie within a few per cent of the specification's."""
    fits = fit_segments(examine(Log(next(generate(LLM, 50_000, seed=2)), SCORES, now=NOW)))
    fit = next(fit for fit in fits if fit.name == "extract")
    assert not fit.listed
    world = fit.world(SegmentTruth(fit.quality[np.newaxis], fit.prices[:1], np.ones(1)), 0.1, 1000)
    assert not isinstance(world, Changing)
    assert not world.costs_known
    giant = fit.arms.index("giant")
    assert world.rewards[giant].mean == pytest.approx(0.925, abs=0.01)
    assert fit.concentration[giant] == pytest.approx(7.0, rel=0.15)
    assert world.instance.costs[giant] == pytest.approx(0.031 * 0.8, rel=0.05)
    assert fit.cost_ratio[giant] == pytest.approx(0.7, rel=0.15)


def test_a_rate_that_fell_falls_in_the_drawn_worlds_too() -> None:
    rng = np.random.default_rng(3)
    n = 40_000
    arm, at = rng.integers(0, 2, n), np.linspace(0.0, 1.0, n)
    rate = np.where(arm == 0, 0.9 - 0.5 * at, 0.7)
    frame = polars.DataFrame({"arm": [f"r{a}" for a in arm], "reward": 1.0 * (rng.random(n) < rate), "cost": 1.0 + arm})
    (fit,) = fit_segments(examine(Log(frame)))
    course = fit.draw(np.random.default_rng(1))
    assert course.means[0, 0] - course.means[-1, 0] == pytest.approx(0.5, abs=0.08)
    assert np.ptp(course.means[:, 1]) < 0.1


def test_worth_is_saving_less_exchange_times_what_is_given_up() -> None:
    course = SegmentTruth(np.array([[0.8, 0.72], [0.8, 0.72]]), np.array([[2.0, 1.0], [2.0, 1.0]]), np.array([0.5, 0.5]))
    assert float(worth(0.72, 1.0, course, 3.0)) == pytest.approx(0.5 - 3 * 0.1)
    assert float(worth(0.8, 2.0, course, 3.0)) == 0.0


def test_where_the_best_arm_is_free_a_cost_counts_by_the_mean_cost_of_the_arms() -> None:
    free = SegmentTruth(np.array([[0.9, 0.8]]), np.array([[0.0, 4.0]]), np.ones(1))
    assert float(worth(0.9, 0.0, free, 3.0)) == 0.0
    assert float(worth(0.9, 1.0, free, 3.0)) == pytest.approx(-0.5)
    nothing = SegmentTruth(np.array([[0.9, 0.8]]), np.zeros((1, 2)), np.ones(1))
    assert worth(np.array([0.9, 0.6]), np.zeros(2), nothing, 3.0).tolist() == pytest.approx([0.0, -1.0])


@pytest.mark.parametrize("costs", [(0.0, 0.0), (0.0, 3.0)])
def test_no_share_is_saved_of_what_is_free(costs: tuple[float, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    arm = rng.integers(0, 2, 600)
    rewards = 1.0 * (rng.random(600) < np.where(arm == 0, 0.9, 0.6))
    frame = polars.DataFrame({"arm": [f"r{code}" for code in arm], "reward": rewards, "cost": np.array(costs)[arm]})
    frame.write_csv(tmp_path / "log.csv")
    few = ["--policies", "cs-ts", "--alpha", "0.1", "--rounds", "300", "--worlds", "2", "--soft"]
    assert main(["recommend", str(tmp_path / "log.csv"), *few, "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert ("nothing costs anything in this log: there is no saving; check --cost" in shown) == (max(costs) == 0.0)
    assert ("that arm may be free" in shown) == (max(costs) > 0.0)
    assert "nan" not in shown
    assert "nan%" not in (tmp_path / "recommendation.html").read_text()
    assert max(len(word) for word in shown.split()) < 60


def test_the_headline_of_a_free_log_has_no_cost_to_save() -> None:
    free = polars.DataFrame({"arm": ["a", "b"] * 300, "reward": [1, 1, 1, 0, 1, 1] * 100, "cost": [0.0] * 600})
    found = recommend(Log(free), [0.1], policies=["cs-ts"], criteria=SOFT, effort=Effort(rounds=100, worlds=2))
    assert "has no cost to save, quality" in found.headline()


def test_a_policy_that_knows_is_near_the_worthiest_arm_and_a_dear_one_is_not() -> None:
    """Two arms far apart, 3000 rounds, ten runs: CS-TS gives up less than a tenth of what always taking the best arm does."""
    rng = np.random.default_rng(4)
    arm = rng.integers(0, 2, 4000)
    frame = polars.DataFrame({"arm": [f"r{a}" for a in arm], "reward": 1.0 * (rng.random(4000) < 0.9), "cost": 1.0 + 3.0 * arm})
    (fit,) = fit_segments(examine(Log(frame)))
    course = SegmentTruth(np.array([[0.89, 0.9]]), np.array([[1.0, 4.0]]), np.ones(1))
    scores = play(fit, course, 0.1, [policy("cs-ts"), policy("ts")], rounds=3000, seed=1, exchange=3.0, runs=10)
    assert np.mean([score.regret for score in scores["cs-ts"]]) < 0.1 * np.mean([score.regret for score in scores["ts"]])


@pytest.mark.parametrize("listed", [True, False])
def test_the_recommendation_does_not_depend_on_the_names_of_the_arms(listed: bool) -> None:
    """Two arms whose names are exchanged: the same numbers to the last bit, in dollars of a thousandth, known or learnt."""
    rng = np.random.default_rng(6)
    arm = rng.integers(0, 2, 4000)
    cost = np.array([0.002, 0.0005])[arm] * (1.0 if listed else rng.gamma(2.0, 0.5, 4000))
    found = [
        recommend(
            Log(polars.DataFrame({"arm": np.array(names)[arm], "reward": reward, "cost": cost})),
            [0.05, 0.1],
            policies=["cs-ts", "cs-ucb"],
            effort=Effort(rounds=1000, worlds=2),
        )
        for reward in [1.0 * (rng.random(4000) < np.array([0.9, 0.88])[arm])]
        for names in (["dear", "cheap"], ["a", "b"])
    ]
    assert found[0].choices[0].fit.listed == listed
    for name, first in found[0].frames.items():
        assert first.drop("arm", strict=False).equals(found[1].frames[name].drop("arm", strict=False))


def test_floor_held_is_about_the_policy_with_its_learning() -> None:
    """A policy that always takes the cheaper and worse arm never keeps an alpha of 0.05; the log leaves no doubt which is best."""
    rng = np.random.default_rng(4)
    arm = rng.integers(0, 2, 4000)
    reward = 1.0 * (rng.random(4000) < np.array([0.9, 0.7])[arm])
    log = Log(polars.DataFrame({"arm": np.array(["good", "bad"])[arm], "reward": reward, "cost": np.array([1.0, 0.1])[arm]}))
    effort = Effort(rounds=4000, worlds=2)
    hard = recommend(log, [0.05], policies=["cs-ts", "cheapest"], effort=effort)
    assert [(each.policy, each.alpha) for each in hard.choices] == [("cs-ts", 0.05)]
    held = {row["policy"]: row for row in hard.candidates.to_dicts()}
    assert held["cheapest"]["floor_held"] == 0.0
    assert held["cheapest"]["given_up"] == pytest.approx(1 - 0.7 / 0.9, abs=0.05)
    assert hard.segments["floor_held"].to_list()[0] >= 0.85
    soft = recommend(log, [0.05], policies=["cs-ts", "cheapest"], criteria=SOFT, effort=effort)
    assert [each.policy for each in soft.choices] == ["cheapest"]
    assert soft.segments["floor_held"].to_list() == [0.0, 0.0]


def test_segments_beyond_the_largest_are_named_not_dropped(sms: Evidence) -> None:
    found = recommend(sms, [0.05], policies=["cs-ts"], criteria=SOFT, effort=Effort(rounds=200, worlds=2, most=1))
    assert [choice.fit.name for choice in found.choices] == ["US"]
    assert "raise --most" in found.refused["EG"]


def test_wrong_candidates_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = write_example(LLM, tmp_path, rows=2000)
    flags = ["recommend", str(path), "--arm", "model", "--reward", "quality", "--now", "2e9"]
    for more, words in (
        (["--policies", "oracle"], "oracle knows the true means"),
        (["--policies", "fixed"], "fixed stands for the arms of the log, and is no policy: name a policy beside it"),
        (["--name", "a/b"], "--name must be 1 to 64 letters, digits, - or _, got 'a/b'"),
        (["--exchange", "-1"], "exchange must be 0 or more"),
        (["--confidence", "95"], "confidence must be a share from 0 to 1, got 95.0"),
        (
            ["--policies", "ts", "--alpha", "0", "--rounds", "100", "--worlds", "2"],
            "no segment has a candidate that keeps its alpha",
        ),
        (["--worlds", "1"], "worlds must be a whole number of at least 2"),
        (["--worlds", "1000000000000"], "worlds must be a whole number of at most 10000, got 1000000000000"),
        (["--rounds", "10"], "rounds must be a whole number of at least 100"),
    ):
        assert main([*flags, *more]) == 2
        err = capsys.readouterr().err
        assert words in err
        assert err.count("\n") == 1


def test_a_fixed_arm_is_scored_exactly_over_all_stretches(sms: Evidence) -> None:
    fit = fit_segments(sms)[0]
    n = len(fit.arms)
    means, costs = np.linspace(0.5, 0.9, n), np.arange(1.0, n + 1.0)
    truth = SegmentTruth(np.array([means, means[::-1]]), np.array([costs, costs]), np.array([0.75, 0.25]))
    first = score_arms(fit, [truth, truth], 0.1, 3.0)[fixed_label(fit.arms[0])]
    assert len(first) == 2
    assert first[0].quality == pytest.approx(0.75 * 0.5 + 0.25 * 0.9)
    assert first[0].best_cost == n
    assert first[0].quality_regret == pytest.approx(0.75 * (0.9 * 0.9 - 0.5))
    assert first[0].worth == pytest.approx(float(worth(first[0].quality, 1.0, truth, 3.0)))


def test_few_decisions_to_come_get_a_fixed_arm_and_a_route_that_names_it() -> None:
    """Three arms that differ clearly, 400 rows each: learning again what the log knows would cost a twelfth of the decisions."""
    rng = np.random.default_rng(5)
    arm = rng.integers(0, 3, 1200)
    rates, costs = np.array([0.9, 0.88, 0.3]), np.array([2.0, 1.0, 0.9])
    rows = {"arm": np.array(["Elm", "Fir", "Oak"])[arm], "reward": 1.0 * (rng.random(1200) < rates[arm]), "cost": costs[arm]}
    found = recommend(polars.DataFrame(rows), policies=["cs-ts", "fixed"], effort=Effort(worlds=4), warm=False)
    assert [(each.policy, each.alpha) for each in found.choices] == [("always Fir", 0.1)]
    assert "known" not in advised_routers(found).routers["advised"]
    assert found.segments["arm"].to_list()[0] == "Fir"
    advised = advised_routers(found)
    assert advised.segments["all"].eligible == {"Fir": 1.0}
    body = advised.routers["advised"]
    router = Router(body["arms"], body["alpha"], policy=body["policy"])
    assert router.decide(eligible=advised.segments["all"].eligible).arm == "Fir"
    assert "Always taking one arm is a candidate too" in recommendation_page(found, advised)


def test_a_page_shows_candidates_of_segments_with_and_without_a_choice() -> None:
    rng = np.random.default_rng(5)
    arm, hard = rng.integers(0, 2, 2400), rng.integers(0, 2, 2400)
    rates = np.where(hard == 1, np.where(arm == 0, 0.9, 0.3), 0.9)
    rows = {"arm": np.array(["Elm", "Fir"])[arm], "reward": 1.0 * (rng.random(2400) < rates), "cost": 2.0 - arm}
    log = Log(polars.DataFrame(rows).with_columns(segment=np.array(["easy", "hard"])[hard]), Columns(segment="segment"))
    found = recommend(log, 0.1, policies="cheapest", effort=Effort(rounds=200, worlds=2))
    assert [each.fit.name for each in found.choices] == ["easy"]
    assert "Take Elm, the best arm of the log" in found.refused["hard"]
    assert "no estimate for hard: no candidate keeps its alpha" in recommendation_page(found, advised_routers(found))


def test_a_recommended_router_starts_with_what_the_log_knows() -> None:
    """Three arms, 400 rows each; Fir is worth the most by far. Its router takes it at once, and says what it started with."""
    rng = np.random.default_rng(5)
    arm = rng.integers(0, 3, 1200)
    rates, costs = np.array([0.9, 0.88, 0.3]), np.array([2.0, 1.0, 0.9])
    rows = {"arm": np.array(["Elm", "Fir", "Oak"])[arm], "reward": 1.0 * (rng.random(1200) < rates[arm]), "cost": costs[arm]}
    found = recommend(polars.DataFrame(rows), policies=["cs-worth", "cs-ts", "fixed"], effort=Effort(worlds=4))
    assert [(each.policy, each.alpha) for each in found.choices] == [("cs-worth", 0.1)]
    assert found.segments["start"].to_list()[0] > 0.05  # it would have to learn that Oak is bad
    assert "the start from the log is worth" in found.headline()
    advised = advised_routers(found)
    assert "Routers start with what the log knows" in recommendation_page(found, advised)
    body = advised.routers["advised"]
    router = Router(body["arms"], body["alpha"], policy=body["policy"], known=body["known"])
    assert [router.decide().arm for _ in range(10)] == ["Fir"] * 10
    assert [arm.known for arm in router.explain().arms] == [int((arm == code).sum()) for code in (2, 1, 0)]
    assert router.explain().known_from == "a log of 1,200 rows"


def test_what_is_known_of_an_arm_is_what_the_log_says_and_no_more_than_its_error_is_worth() -> None:
    (plain,) = fit_segments(examine(Log(confounded_log(3, confounded=False).select("arm", "reward", "cost"))))
    assert sum(each.outcomes for each in plain.known) == min(6000, 3 * MOST_KNOWN)
    np.testing.assert_allclose([each.rewards / each.outcomes for each in plain.known], plain.quality)
    (adjusted,) = fit_segments(examine(Log(confounded_log(3, confounded=True, rows=2400))))
    np.testing.assert_allclose([each.rewards / each.outcomes for each in adjusted.known], adjusted.quality)
    assert all(each.outcomes < rows for each, rows in zip(adjusted.known, (1000, 1000, 1000), strict=True))


def test_rare_large_costs_are_known_too() -> None:
    # Their squares are more than so few outcomes, as which the log counts, could have.
    rng = np.random.default_rng(1)
    arm = rng.integers(0, 2, 20_000)
    cost = np.where(rng.random(20_000) < 1 / 4000, np.where(arm == 0, 100.0, 50.0), 0.0)
    log = polars.DataFrame({"arm": np.where(arm == 0, "a", "b"), "reward": (rng.random(20_000) < 0.8).astype(int), "cost": cost})
    found = recommend(log, [0.1], policies=["cs-ts"], effort=Effort(rounds=200, worlds=2))
    assert [known.outcomes for known in found.choices[0].fit.known] == [1000, 1000]


def test_a_log_that_is_not_to_be_trusted_starts_no_router() -> None:
    """The choice follows the difficulty alone, in 60 values: too few rows are left to adjust for it."""
    rng = np.random.default_rng(2)
    hard = rng.integers(0, 2, 3000)
    arm = np.where(rng.random(3000) < 0.999, hard, 1 - hard)  # nearly always the arm of its kind
    rows = {
        "arm": np.array(["Elm", "Fir"])[arm],
        "reward": 1.0 * (rng.random(3000) < 0.9 - 0.4 * hard),
        "cost": 2.0 - arm,
        "hard": hard,
    }
    found = recommend(
        polars.DataFrame(rows), 0.1, policies=["cs-worth", "fixed"], criteria=SOFT, effort=Effort(rounds=200, worlds=2)
    )
    assert "not to be trusted" in found.headline()
    assert not found.warm
    assert all("known" not in body for body in advised_routers(found).routers.values())


def test_a_policy_that_aims_at_worth_is_told_the_price_of_quality() -> None:
    rng = np.random.default_rng(5)
    arm = rng.integers(0, 2, 1000)
    frame = polars.DataFrame({"arm": np.array(["Elm", "Fir"])[arm], "reward": 1.0 * (rng.random(1000) < 0.8), "cost": 2.0 - arm})
    for given, wanted in (("cs-worth", "cs-worth:exchange=7"), ("cs-worth:exchange=2", "cs-worth:exchange=2")):
        criteria = Criteria(exchange=7.0, confidence=0.0)
        found = recommend(frame, 0.1, policies=[given], criteria=criteria, effort=Effort(rounds=100, worlds=2))
        assert [each.policy for each in found.choices] == [wanted]
