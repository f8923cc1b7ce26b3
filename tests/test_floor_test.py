"""The floor test: what it adds up, that it is seldom wrong when it is looked at after every outcome, and that it finds a break."""

import json

import numpy as np
import pytest
from numpy.typing import NDArray

from thrifty.floor_test import LEVEL, NOTHING, FloorTest, GroupSums
from thrifty.sequences import log_wealth

Floats = NDArray[np.float64]


def sums_of(rewards: list[float | None]) -> GroupSums:
    found = NOTHING
    for reward in rewards:
        found = found.plus(reward)
    return found


def in_the_open(
    batches: list[tuple[list[float | None], list[float | None]]], alpha: float, share: float
) -> tuple[float, float, float]:
    """The sum of y, of (y - its guess)^2, and the largest distance, decision by decision as the module says."""
    known: tuple[list[float], list[float]] = ([], [])
    total = squares = furthest = 0.0
    for batch in batches:
        f, g = ((sum(each) + 0.5) / (len(each) + 1.0) for each in known)
        guess = (1 - alpha) * g - f
        for group, rewards in enumerate(batch):
            for reward in rewards:
                y = guess
                if reward is not None:
                    y = guess - (reward - f) / share if group == 0 else guess + (1 - alpha) * (reward - g) / (1 - share)
                total, squares, furthest = total + y, squares + (y - guess) ** 2, max(furthest, abs(y - guess))
        for kept, rewards in zip(known, batch, strict=True):
            kept.extend(reward for reward in rewards if reward is not None)
    return total, squares, furthest


@pytest.mark.parametrize(("alpha", "share"), [(0.0, 0.5), (0.05, 0.05), (0.2, 0.95), (1.0, 0.3), (0.0, 0.001), (0.0, 0.999)])
def test_a_batch_adds_what_its_decisions_add_one_by_one(alpha: float, share: float) -> None:
    rng, test = np.random.default_rng(3), FloorTest(alpha, share)
    values = [None, 0.0, 0.25, 1.0]
    batches = [tuple([values[n] for n in rng.integers(0, 4, rng.integers(0, 6))] for _ in range(2)) for _ in range(40)]
    for routed, compared in batches:
        test.add(sums_of(routed), sums_of(compared))
    total, squares, furthest = in_the_open(batches, alpha, share)  # type: ignore[arg-type]
    assert test.excess == pytest.approx(total)
    assert test.spread == pytest.approx(squares)
    assert furthest <= test.scale
    assert test.decisions == sum(len(routed) + len(compared) for routed, compared in batches)
    assert FloorTest.load(json.loads(json.dumps(test.dump()))) == test


def first_break(routed: NDArray[np.bool_], rewards: Floats, *, alpha: float, share: float) -> int:
    """After how many outcomes the floor counts as broken, if each is a batch of its own; 0 for never."""
    guesses = []
    for mask in (routed, ~routed):
        before = np.cumsum(mask * rewards) - mask * rewards, np.cumsum(mask) - mask
        guesses.append((before[0] + 0.5) / (before[1] + 1.0))
    moved = np.where(routed, -(rewards - guesses[0]) / share, (1 - alpha) * (rewards - guesses[1]) / (1 - share))
    excess, spread = np.cumsum((1 - alpha) * guesses[1] - guesses[0] + moved), np.cumsum(moved**2)
    scale = max(1 / share, (1 - alpha) / (1 - share))
    broken = log_wealth(excess / scale, spread / scale**2) >= -np.log(LEVEL)
    return int(np.argmax(broken)) + 1 if broken.any() else 0


def test_the_open_sums_break_where_the_test_does() -> None:
    rng = np.random.default_rng(5)
    routed = rng.random(3000) < 0.3
    rewards = (rng.random(3000) < np.where(routed, 0.6, 0.9)).astype(np.float64)
    found, test = first_break(routed, rewards, alpha=0.1, share=0.3), FloorTest(0.1, 0.3)
    for count, (is_routed, reward) in enumerate(zip(routed.tolist(), rewards.tolist(), strict=True), start=1):
        one = NOTHING.plus(reward)
        test.add(*((one, NOTHING) if is_routed else (NOTHING, one)))
        if test.broken:
            assert count == found
            return
    raise AssertionError(f"broken after {found} in the open, and never here")


@pytest.mark.parametrize("share", [0.5, 0.05, 0.95])
def test_a_policy_that_holds_the_floor_exactly_is_seldom_stopped_though_the_world_moves(share: float) -> None:
    """200 rollouts of 2,000 outcomes, with an outage of all arms and a policy that is exactly at the floor at all times.

    At a level of 5%, more than 18 stops have a chance of 1%.
    """
    rng = np.random.default_rng(11)
    compared = np.clip(0.7 + 0.25 * np.sin(np.linspace(0.0, 20.0, 2000)), 0.0, 1.0)
    compared[600:900] = 0.0
    stopped = 0
    for _ in range(200):
        routed = rng.random(2000) < share
        rewards = (rng.random(2000) < np.where(routed, 0.9, 1.0) * compared).astype(np.float64)
        stopped += first_break(routed, rewards, alpha=0.1, share=share) > 0
    assert stopped <= 18


def test_comparing_two_intervals_for_one_look_stops_often() -> None:
    """Why all this: the usual test, looked at after every outcome, stops a policy that holds the floor in every third rollout."""
    rng, stopped = np.random.default_rng(11), 0
    for _ in range(100):
        routed = rng.random(2000) < 0.5
        rewards = (rng.random(2000) < np.where(routed, 0.81, 0.9)).astype(np.float64)
        n, m = np.maximum(np.cumsum(routed), 1), np.maximum(np.cumsum(~routed), 1)
        one, other = np.cumsum(routed * rewards) / n, np.cumsum(~routed * rewards) / m
        error = np.sqrt(one * (1 - one) / n + 0.81 * other * (1 - other) / m)
        stopped += bool((0.9 * other - one > 1.645 * error)[50:].any())
    assert stopped > 25


def test_a_policy_that_breaks_the_floor_by_ten_points_is_stopped() -> None:
    """50 rollouts of 8,000 outcomes: each is stopped with a probability of more than 0.9999."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        routed = rng.random(8000) < 0.5
        rewards = (rng.random(8000) < np.where(routed, 0.755, 0.9)).astype(np.float64)
        assert first_break(routed, rewards, alpha=0.05, share=0.5) > 0


def test_what_is_shown_agrees_with_what_is_done() -> None:
    rng, test, seen = np.random.default_rng(4), FloorTest(0.05, 0.5), set[str]()
    for rate in (0.855, 1.0, 0.4):
        for _ in range(60):
            test.add(*(sums_of((rng.random(100) < mean).astype(np.float64).tolist()) for mean in (rate, 0.9)))
            low, high = test.interval()
            assert low <= test.difference <= high
            assert test.broken == (high < 0.0) == (test.p <= LEVEL)
            assert test.held == (low > 0.0)
            assert (test.decisions_needed() == 0) == (test.broken or test.held)
            seen.add("broken" if test.broken else "held" if test.held else "open")
    assert seen == {"broken", "held", "open"}


def test_how_many_outcomes_are_needed_is_about_right() -> None:
    test = FloorTest(0.05, 0.5)
    test.add(GroupSums(500, 500, 420.0, 420.0), GroupSums(500, 500, 450.0, 450.0))
    needed = test.decisions_needed()
    assert needed is not None
    assert needed > 0
    more = 1.0 + needed / 1000.0
    later = FloorTest(0.05, 0.5, excess=more * test.excess, spread=more * test.spread)
    later.routed = GroupSums(int(500 * more), int(500 * more), 420.0 * more, 420.0 * more)
    later.compared = GroupSums(int(500 * more), int(500 * more), 450.0 * more, 450.0 * more)
    assert later.broken
    assert FloorTest(0.05, 0.5).decisions_needed() is None
