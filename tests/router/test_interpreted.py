"""A policy that is not compiled yet runs interpreted, with the same results to the bit, and is compiled in the background."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from thrifty.router import Router, engine

ARMS: dict[str, float | None] = {"a": 0.3, "b": 0.2, "c": 0.1}
MEANS = {"a": 0.9, "b": 0.5, "c": 0.85}


def play(policy: str, arms: dict[str, float | None], rounds: int) -> Any:
    """Everything that decisions and outcomes leave behind, in three segments, with an arm added halfway."""
    router, rng, made = Router(arms, 0.1, policy=policy), random.Random(1), []
    for n in range(rounds):
        if n == rounds // 2:
            router.change("add", "d", price=0.05)
        decision = router.decide(("", "DE", "DE/x")[n % 3])
        made.append((decision.arm, decision.code, decision.propensity, decision.reason))
        if rng.random() < 0.9:
            reward = float(rng.random() < MEANS.get(decision.arm, 0.3))
            router.record(decision.id, reward=reward, cost=round(rng.random(), 2))
    return made, {name: router.statistics(name) for name in router.segments()}, router.state.engine.compiled


@pytest.mark.parametrize("arms", [ARMS, {**ARMS, "b": None}], ids=["known", "unknown"])
@pytest.mark.parametrize("policy", ["cs-ids", "cs-ucb+restart"])
def test_interpreted_and_compiled_routers_do_the_same(
    policy: str, arms: dict[str, float | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_engines", {})
    monkeypatch.setattr(engine, "_countings", {})
    engine._shared_kernel.cache_clear()
    *interpreted, compiled = play(policy, arms, 120)
    assert not compiled
    monkeypatch.setenv("THRIFTY_COMPILE", "wait")
    monkeypatch.setattr(engine, "_engines", {})
    again = play(policy, arms, 120)
    assert again[2]
    assert list(again[:2]) == interpreted


SCRIPT = """
import sys, time
from thrifty.router import Router
started = time.perf_counter()
router = Router({"a": 0.3, "b": 0.2}, 0.1, policy="cheapest")
print(router.decide().arm, router.responsive, flush=True)
until = time.monotonic() + 120
while not router.responsive and time.monotonic() < until:
    time.sleep(0.1)
print(router.decide().arm, router.responsive)
"""


def test_an_empty_cache_is_filled_in_the_background(tmp_path: Path) -> None:
    environment = {**os.environ, "THRIFTY_CACHE": str(tmp_path), "THRIFTY_COMPILE": "background"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["b False", "b True"]
    started = time.monotonic()
    again = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True, capture_output=True, text=True)
    assert again.stdout.splitlines() == ["b True", "b True"]  # from the cache
    assert time.monotonic() - started < 60


def test_an_unknown_mode_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THRIFTY_COMPILE", "later")
    with pytest.raises(ValueError, match="THRIFTY_COMPILE must be one of background, wait, never, got 'later'"):
        Router(ARMS, 0.1, policy="pe")


def test_another_process_loads_every_kernel_of_a_router_and_compiles_none(tmp_path: Path) -> None:
    """A kernel that is kept but cannot be loaded would be compiled at every start, while all requests wait."""
    program = (
        "from thrifty.router import Router\n"
        "router = Router({'a': 1.0, 'b': 2.0}, alpha=0.1, policy='cheapest')\n"
        "router.record(router.decide().id, reward=1)\n"
        "import sys\n"
        "bound = [m.bound for name, m in sys.modules.items() if name.startswith('thrifty_') and hasattr(m, 'bound')]\n"
        "print(len(bound), sum(sum(each.stats.cache_misses.values()) for each in bound))\n"
    )
    env = {**os.environ, "THRIFTY_CACHE": str(tmp_path), "THRIFTY_COMPILE": "wait"}
    first, second = (
        subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True) for _ in range(2)
    )
    assert first.stdout.split() == ["3", "3"]
    assert (second.stdout.split(), second.stderr) == (["3", "0"], "")
