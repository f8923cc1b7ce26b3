"""The four scenarios, played small."""

import numpy as np
import pytest

from thrifty import list_policies
from thrifty.cli.main import main
from thrifty.scenarios import SCENARIOS, checked_scenario, play
from thrifty.scenarios.play import WHAT_PEOPLE_DO, left_out, usual_policies


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_policy_of_the_registry_plays_or_there_is_a_reason(name: str) -> None:
    scenario = SCENARIOS[name]
    played = {spec.partition("+")[0].partition(":")[0] for spec in usual_policies(scenario)}
    assert played == set(list_policies()) - set(left_out(scenario))
    assert played >= set(WHAT_PEOPLE_DO)
    assert set(left_out(scenario)) == ({"cs-exp3", "pe", "pe-cs", "oracle"} if name == "llm" else {"oracle"})


def test_the_sms_scenario_is_twelve_countries_with_three_to_eight_aggregators_that_change_over_time() -> None:
    segments = checked_scenario("sms").segments(120_000)
    assert len(segments) == 12
    assert {3, 8} <= {len(segment.arms) for segment in segments} <= set(range(3, 9))
    assert sum(segment.rounds for segment in segments) == pytest.approx(120_000, abs=12)
    mexico = next(segment for segment in segments if segment.name == "MX")
    elm = mexico.arms.index("Elm")
    rates = np.array([world.instance.means[elm] for _, world in mexico.world.pieces])
    assert rates.min() == pytest.approx(0.25 * 0.902, abs=0.01)


def test_quality_and_money_are_those_of_the_arms_that_were_played() -> None:
    result = play(checked_scenario("payments"), ["cheapest"], rounds=2000, runs=2)
    cheapest = next(line for line in result.lines() if line.policy == "cheapest")
    # Yew at home and Willow abroad, 7 to 3; neither drifts nor changes its price.
    assert cheapest.quality == pytest.approx(0.7 * 0.882 + 0.3 * 0.851, abs=1e-3)
    assert cheapest.money == pytest.approx(0.7 * 0.15 + 0.3 * 0.58, abs=1e-3)


def test_an_unknown_scenario_or_a_wrong_number_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenario", "smss"]) == 2
    assert "there are sms, llm, ads, payments" in capsys.readouterr().err
    assert main(["scenario", "sms", "--runs", "0"]) == 2
    assert "runs must be a whole number of at least 1, got 0" in capsys.readouterr().err
