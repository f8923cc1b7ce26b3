"""What metrics cost: counting on the hot path, and one answer of /metrics. Run: python benchmarks/metrics.py --routers 200."""

import argparse
import os
import tempfile
import time
import timeit
from collections.abc import Callable

CALLS = 200_000


def nanoseconds(call: Callable[[], None]) -> float:
    """The best of seven series, for one call."""
    return min(timeit.repeat(call, timer=time.process_time, number=CALLS, repeat=7)) / CALLS * 1e9


def count() -> None:
    """Print what counting costs."""
    from thrifty.router.reward_histogram import RewardHistogram
    from thrifty.service.request_counts import RequestCounts

    requests, rewards = RequestCounts(), RewardHistogram()
    print(f"count a request: {nanoseconds(lambda: requests.add('/v1/decisions', 200, 0.0012)):.0f} ns")
    print(f"count a reward:  {nanoseconds(lambda: rewards.add('alpha-tel', 1.0)):.0f} ns")


def scrape(routers: int, arms: int) -> None:
    """Print what one answer costs when every arm has outcomes."""
    import msgspec

    from thrifty.service.app import App
    from thrifty.service.config import Config
    from thrifty.service.messages import RouterRequest
    from thrifty.store import open_store

    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/store.db")
        app = App(Config(), store)
        app.routers._listed = True
        body = {"arms": {f"arm {n}": 1.0 + n for n in range(arms)}, "alpha": 0.05, "policy": "cs-ucb", "memory_bytes": 65_536}
        for n in range(routers):
            router, _ = app.routers.put(f"r{n}", msgspec.convert(body, RouterRequest), by="benchmark")
            for _ in range(2 * arms):
                router.record_soon(router.decide_soon().id, 1.0)
        took, text = [], ""
        for _ in range(5):
            began = time.process_time()
            text = app.metrics.text()
            took.append(time.process_time() - began)
        series = sum(not line.startswith("#") for line in text.splitlines())
        print(f"{routers} routers of {arms} arms: {series:,} series, {len(text) / 1e6:.1f} MB, {min(took):.3f} s of processor")
        store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--routers", type=int, default=200)
    parser.add_argument("--arms", type=int, default=5)
    options = parser.parse_args()
    os.environ["THRIFTY_COMPILE"] = "wait"
    count()
    scrape(options.routers, options.arms)
