"""Simulated SMS traffic to watch: `python -m thrifty.cli.traffic URL ROUTER`, with the key in THRIFTY_KEY.

It makes and changes the router of that name, and knows the truth; the service does not.
"""

import os
import random
import sys
import time

from thrifty.client import Client, ServiceError, ServiceUnavailableError

PRICES = {"alpha-tel": 0.0079, "beta-sms": 0.0062, "gamma": 0.0041, "delta-direct": 0.0035}
DELIVERY = {
    "DE/vodafone": {"alpha-tel": 0.97, "beta-sms": 0.96, "gamma": 0.95, "delta-direct": 0.60},
    "DE/telekom": {"alpha-tel": 0.96, "beta-sms": 0.95, "gamma": 0.70, "delta-direct": 0.65},
    "FR/orange": {"alpha-tel": 0.95, "beta-sms": 0.80, "gamma": 0.94, "delta-direct": 0.93},
}
"""How often a message arrives, by segment and route."""


def run(url: str, router: str, key: str | None, *, seed: int = 1, seconds: float | None = None, report_s: float = 5.0) -> int:
    """Send messages until stopped, or for so many seconds; the number sent."""
    rng = random.Random(seed)
    client = Client(url, key, retries=10)
    print(f"making the router {router}; its policy is compiled on first use, which can take a minute", flush=True)
    while True:
        try:
            client.put_router(router, PRICES, 0.05, policy="cs-ts")
            break
        except ServiceUnavailableError:  # the service is still starting
            time.sleep(0.3)
    sent, started, reported = 0, time.monotonic(), time.monotonic()
    while seconds is None or time.monotonic() - started < seconds:
        segment = rng.choice(list(DELIVERY))
        choice = client.decide(router, segment)
        if choice.decision_id is not None and rng.random() < 0.98:  # some delivery reports never come
            client.record(choice.decision_id, reward=float(rng.random() < DELIVERY[segment][choice.arm]))
        sent += 1
        if time.monotonic() - reported > report_s:
            reported = time.monotonic()
            said = client.explain(router)
            shares = ", ".join(f"{arm['arm']} {arm['decisions'] / max(sent, 1):.0%}" for arm in said["arms"])
            print(f"{sent:,} messages; {shares}; saved {said['saved']:.2f}", flush=True)
    client.close()
    return sent


if __name__ == "__main__":
    try:
        run(sys.argv[1], sys.argv[2], os.environ.get("THRIFTY_KEY") or None)
    except (KeyboardInterrupt, ServiceError):
        sys.exit(0)
