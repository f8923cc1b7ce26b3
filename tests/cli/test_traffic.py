"""The simulated traffic is that of the SMS world, of which the example log and the scenario are made too."""

import random

import numpy as np
import pytest

from thrifty.cli.traffic import OPERATORS, OUTAGE_S, ROUTERS, SPAN_S, WORLD, list_prices, message
from thrifty.examples import SMS
from thrifty.scenarios import checked_scenario


@pytest.mark.parametrize("when", [0.0, 0.45, 0.8])
def test_messages_have_the_arms_and_rates_of_their_country(when: float) -> None:
    rng = random.Random(1)
    for _ in range(50):
        sent = message(rng, when)
        country = ROUTERS[sent.router]
        factors = OPERATORS[country][sent.segment]
        rates = dict(zip(sent.rates, WORLD.rates(WORLD.segment(country), np.array([when]))[0].tolist(), strict=True))
        assert sent.rates == pytest.approx({arm: min(rate * factors.get(arm, 1.0), 1.0) for arm, rate in rates.items()})
        assert list(sent.rates) == [route.arm for route in SMS.segment(country).routes]


def test_countries_are_drawn_by_their_share_of_the_traffic() -> None:
    """The share of India among 20,000 messages: four standard errors, fails by chance for one seed in 10,000."""
    rng = random.Random(1)
    share = SMS.segment("IN").share / sum(SMS.segment(country).share for country in OPERATORS)
    found = sum(message(rng, 0.5).router == "sms-demo-in" for _ in range(20_000)) / 20_000
    assert abs(found - share) < 4.0 * np.sqrt(share * (1.0 - share) / 20_000)


def test_a_router_of_the_traffic_has_the_price_list_of_its_country() -> None:
    assert list_prices(SMS.segment("US")) == {"Alder": 0.0083, "Birch": 0.0074, "Cedar": 0.0052}


def test_an_operator_may_only_differ_in_arms_that_its_country_has() -> None:
    for country, operators in OPERATORS.items():
        arms = {route.arm for route in SMS.segment(country).routes}
        assert all(set(factors) <= arms for factors in operators.values())


def test_the_scenario_has_the_same_countries_and_begins_with_the_same_prices() -> None:
    for played in checked_scenario("sms").segments():
        segment = SMS.segment(played.name)
        assert played.arms == tuple(route.arm for route in segment.routes)
        assert played.world.instance.costs.tolist() == [route.price for route in segment.routes]


def test_an_outage_begins_after_two_minutes_and_ends_two_minutes_later() -> None:
    def rate(seconds: float) -> float:
        segment = WORLD.segment("GB")
        elm = [route.arm for route in segment.routes].index("Elm")
        return float(WORLD.rates(segment, np.array([seconds / SPAN_S]))[0, elm])

    assert OUTAGE_S == (120.0, 240.0)
    assert rate(119.0) > 0.85
    assert rate(121.0) < 0.2
    assert rate(239.0) < 0.2
    assert rate(241.0) > 0.85
