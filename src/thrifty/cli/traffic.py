"""Simulated SMS traffic to watch: `python -m thrifty.cli.traffic URL ROUTER`, with the key in THRIFTY_KEY.

The traffic is that of the example world `thrifty.examples.SMS`. This process makes the router and knows the truth; the service
does not. Four weeks of the world pass in `SPAN_S` seconds, then they begin again.
"""

import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from thrifty.client import Client, ServiceError, ServiceUnavailableError
from thrifty.examples import SMS, Specification

ALPHA = 0.05
SPAN_S = 1200.0
"""How long the whole span of the world takes, in seconds of the clock."""


@dataclass(frozen=True)
class Message:
    """One request of the simulated traffic: its segment, the prices of the arms there, and the truth about each arm."""

    segment: str
    prices: dict[str, float]
    rates: dict[str, float]
    losses: dict[str, float]


def list_prices(specification: Specification) -> dict[str, float]:
    """The price of each arm where a request names none: the mean of its prices over the segments, weighted by their traffic.

    >>> round(list_prices(SMS)["Hazel"], 4)
    0.0394
    """
    totals: dict[str, tuple[float, float]] = {}
    for segment in specification.segments:
        for route in segment.routes:
            money, share = totals.get(route.arm, (0.0, 0.0))
            totals[route.arm] = money + segment.share * route.price, share + segment.share
    return {arm: round(money / share, 6) for arm, (money, share) in totals.items()}


def message(specification: Specification, rng: random.Random, when: float) -> Message:
    """A request at time `when` in [0, 1]: the segment is drawn by its share.

    >>> message(SMS, random.Random(1), 0.5).segment
    'DE'
    """
    segment = rng.choices(specification.segments, weights=[each.share for each in specification.segments])[0]
    moment = np.array([when])
    arms = [route.arm for route in segment.routes]
    return Message(
        segment.name,
        dict(zip(arms, specification.prices(segment, moment)[0].tolist(), strict=True)),
        dict(zip(arms, specification.rates(segment, moment)[0].tolist(), strict=True)),
        {route.arm: route.loss for route in segment.routes},
    )


def messages(rng: random.Random, seconds: float | None) -> Iterator[Message]:
    """Messages without a pause, for so many seconds or for ever."""
    started = time.monotonic()
    while seconds is None or time.monotonic() - started < seconds:
        yield message(SMS, rng, (time.monotonic() - started) / SPAN_S % 1.0)


def run(url: str, router: str, key: str | None, *, seed: int = 1, seconds: float | None = None, report_s: float = 5.0) -> int:
    """Send messages until stopped, or for so many seconds; returns the number sent."""
    rng = random.Random(seed)
    client = Client(url, key, retries=10)
    print(f"making the router {router}", flush=True)
    _make_router(client, router)
    sent, reported = 0, time.monotonic()
    for each in messages(rng, seconds):
        choice = client.decide(router, each.segment, eligible=each.prices)
        if choice.decision_id is not None and rng.random() >= each.losses[choice.arm]:
            client.record(choice.decision_id, reward=float(rng.random() < each.rates[choice.arm]))
        sent += 1
        if time.monotonic() - reported > report_s:
            reported = time.monotonic()
            _report(client, router, sent)
    client.close()
    return sent


def _make_router(client: Client, router: str) -> None:
    while True:
        try:
            client.put_router(router, list_prices(SMS), ALPHA, policy="cs-ts")
            return
        except ServiceUnavailableError:  # the service is still starting
            time.sleep(0.3)


def _report(client: Client, router: str, sent: int) -> None:
    """Print the share of each arm, and the saving."""
    known = client.explain(router)
    shares = ", ".join(f"{arm['arm']} {arm['decisions'] / max(sent, 1):.0%}" for arm in known["arms"])
    print(f"{sent:,} messages; {shares}; saved {known['saved']:.2f}", flush=True)


if __name__ == "__main__":
    try:
        run(sys.argv[1], sys.argv[2], os.environ.get("THRIFTY_KEY") or None)
    except (KeyboardInterrupt, ServiceError):
        sys.exit(0)
