"""Simulated SMS traffic to watch: `python -m thrifty.cli.traffic URL`, with the key in THRIFTY_KEY.

The traffic is that of some countries of the example world `thrifty.examples.SMS`: a router for each country, with its aggregators
as arms and its operators as segments. One more outage is added, so that there is something to see soon. This process makes the
routers and knows the truth; the service does not. Four weeks of the world pass in `SPAN_S` seconds, then they begin again.
"""

import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from thrifty.client import Client, ServiceError, ServiceUnavailableError
from thrifty.examples import SMS, ExampleSegment, Outage

PREFIX = "sms-demo"
"""The names of all routers of the traffic begin so."""

ALPHA, DEADLINE_S, HOLDOUT = 0.04, 10.0, 0.02
SPAN_S = 1200.0
"""How long the whole span of the world takes, in seconds of the clock."""

OUTAGE_S = (120.0, 240.0)
"""When an aggregator breaks in one country, and when it works again, in seconds of the clock."""

WORLD = replace(SMS, outages=(Outage("Elm", OUTAGE_S[0] / SPAN_S, OUTAGE_S[1] / SPAN_S, 0.02, segment="GB"), *SMS.outages))
"""The world of the traffic."""

OPERATORS = {
    "GB": {"ee": {}, "o2": {"Fir": 1.03}, "vodafone": {}},
    "IN": {"airtel": {"Fir": 1.04}, "jio": {}, "vi": {"Elm": 0.96}},
    "US": {"att": {}, "tmobile": {"Cedar": 1.01}, "verizon": {}},
}
"""The operators of each country, with the arms whose rate differs there, and by which factor."""

ROUTERS = {f"{PREFIX}-{country.lower()}": country for country in OPERATORS}
"""The country of each router, by the name of the router."""

PAUSE_S = 0.001
"""Between two messages: a dashboard is easier to read when it does not rush, and the machine has other work."""


@dataclass(frozen=True)
class Message:
    """One request of the simulated traffic: its router and segment, and the truth about each arm there."""

    router: str
    segment: str
    rates: dict[str, float]
    losses: dict[str, float]


def list_prices(country: ExampleSegment) -> dict[str, float]:
    """The price of each arm in a country.

    >>> list_prices(SMS.segment("US"))
    {'Alder': 0.0083, 'Birch': 0.0074, 'Cedar': 0.0052}
    """
    return {route.arm: route.price for route in country.routes}


def message(rng: random.Random, when: float) -> Message:
    """A request at time `when` in [0, 1]: the country is drawn by its share of the traffic.

    >>> message(random.Random(1), 0.5).router in ROUTERS
    True
    """
    names = list(ROUTERS)
    countries = [WORLD.segment(ROUTERS[name]) for name in names]
    number = rng.choices(range(len(names)), weights=[country.share for country in countries])[0]
    country = countries[number]
    operator, factors = rng.choice(list(OPERATORS[country.name].items()))
    rates = WORLD.rates(country, np.array([when]))[0].tolist()
    return Message(
        names[number],
        operator,
        {route.arm: min(rate * factors.get(route.arm, 1.0), 1.0) for route, rate in zip(country.routes, rates, strict=True)},
        {route.arm: route.loss for route in country.routes},
    )


def messages(rng: random.Random, seconds: float | None) -> Iterator[Message]:
    """Messages with a short pause after each, for so many seconds or for ever."""
    started = time.monotonic()
    while seconds is None or time.monotonic() - started < seconds:
        yield message(rng, (time.monotonic() - started) / SPAN_S % 1.0)
        time.sleep(PAUSE_S)


def run(url: str, key: str | None, *, seed: int = 1, seconds: float | None = None, report_s: float = 5.0) -> int:
    """Send messages until stopped, or for so many seconds; returns the number sent."""
    rng = random.Random(seed)
    client = Client(url, key, retries=10)
    for router in ROUTERS:
        print(f"making the router {router}", flush=True)
        _make_router(client, router)
    sent, reported = 0, time.monotonic()
    for each in messages(rng, seconds):
        choice = client.decide(each.router, each.segment)
        if choice.decision_id is not None and rng.random() >= each.losses[choice.arm]:
            client.record(choice.decision_id, reward=float(rng.random() < each.rates[choice.arm]))
        sent += 1
        if time.monotonic() - reported > report_s:
            reported = time.monotonic()
            print(f"{sent:,} messages", flush=True)
    client.close()
    return sent


def _make_router(client: Client, router: str) -> None:
    prices = list_prices(WORLD.segment(ROUTERS[router]))
    while True:
        try:
            client.put_router(router, prices, ALPHA, deadline_s=DEADLINE_S, holdout=HOLDOUT)
            return
        except ServiceUnavailableError:  # the service is still starting
            time.sleep(0.3)


if __name__ == "__main__":
    try:
        run(sys.argv[1], os.environ.get("THRIFTY_KEY") or None)
    except (KeyboardInterrupt, ServiceError):
        sys.exit(0)
