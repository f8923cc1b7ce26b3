"""The simulated traffic is that of the SMS world, of which the example log and the scenario are made too."""

import random

import numpy as np
import pytest

from thrifty.cli.traffic import list_prices, message
from thrifty.examples import SMS
from thrifty.scenarios import checked_scenario


@pytest.mark.parametrize("when", [0.0, 0.45, 0.8])
def test_messages_have_the_arms_prices_and_rates_of_their_country(when: float) -> None:
    rng = random.Random(1)
    for _ in range(50):
        sent = message(SMS, rng, when)
        segment = SMS.segment(sent.segment)
        assert list(sent.prices) == [route.arm for route in segment.routes]
        assert list(sent.prices.values()) == SMS.prices(segment, np.array([when]))[0].tolist()
        assert list(sent.rates.values()) == SMS.rates(segment, np.array([when]))[0].tolist()


def test_countries_are_drawn_by_their_share_of_the_traffic() -> None:
    """The share of India among 20,000 messages: four standard errors, fails by chance for one seed in 10,000."""
    rng = random.Random(1)
    share = SMS.segment("IN").share / sum(segment.share for segment in SMS.segments)
    found = sum(message(SMS, rng, 0.5).segment == "IN" for _ in range(20_000)) / 20_000
    assert abs(found - share) < 4.0 * np.sqrt(share * (1.0 - share) / 20_000)


def test_the_router_of_the_traffic_has_every_aggregator_once() -> None:
    assert set(list_prices(SMS)) == {route.arm for segment in SMS.segments for route in segment.routes}
    assert list_prices(SMS)["Ginkgo"] == pytest.approx(
        (4 * 0.129 + 9 * 0.0425 + 8 * 0.161 + 14 * 0.0275 + 6 * 0.133) / 41, abs=1e-6
    )


def test_the_scenario_has_the_same_countries_and_begins_with_the_same_prices() -> None:
    for played in checked_scenario("sms").segments():
        segment = SMS.segment(played.name)
        assert played.arms == tuple(route.arm for route in segment.routes)
        assert played.world.instance.costs.tolist() == [route.price for route in segment.routes]
