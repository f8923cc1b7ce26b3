"""No horizon, late and missing outcomes, worlds that change, statistics that forget: against a slow loop in plain Python."""

import math
import os
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests import oracles
from thrifty import Instance, World, list_policies, simulate
from thrifty.compiled import interpreted
from thrifty.environments import Changing, Exponential, Feedback, Fixed, HeavyTailed, abrupt, outage, repriced
from thrifty.simulation.calendar import new_calendar
from thrifty.simulation.loop import send, take_due_outcomes
from thrifty.statistics import Outcome, no_statistics
from thrifty.streams import Stream, exponential, make_streams, uniform

FIGURE_1 = Instance([0.5, 0.46], [1.0, 0.0], 0.1)
FOUR = Instance([0.8, 0.75, 0.4, 0.6], [1.0, 0.5, 0.0, 0.2], 0.1)
LEARNERS = sorted(set(list_policies()) - {"oracle"})


def first_trace(policy: str, world: Instance | World | Changing, rounds: int, feedback: Feedback | None = None) -> list[int]:
    trace = simulate(world, policy, rounds=rounds, runs=1, seed=7, feedback=feedback, trace=True)[policy].trace
    assert trace is not None
    return [int(arm) for arm in trace[0]]


@pytest.mark.parametrize("name", ["cs-ucb", "cs-direct"])
def test_without_a_horizon_the_twin_with_a_growing_one_makes_the_same_choices(name: str) -> None:
    assert first_trace(name, FOUR, 400) == oracles.play_late(oracles.TWINS[name], [(0, FOUR)], 400, seed=7)


def play_everything() -> None:
    """Every policy and every way to forget, without a horizon, late and in a world whose rewards and prices change."""
    other = Instance([0.3, 0.75, 0.8, 0.6], FOUR.costs[::-1], 0.1)
    for name in LEARNERS:
        for way in ("", "+window=20", "+discount=0.9", "+restart"):
            late = Feedback(Exponential(10), lost=0.1, deadline=50)
            runs = simulate(abrupt(FOUR, other, at=60), name + way, rounds=120, runs=1, feedback=late, checkpoints=3, threads=1)
            assert runs[name + way].pulls[0, -1].sum() == 120, name + way


def test_every_policy_plays_without_a_horizon_late_and_in_a_world_that_changes() -> None:
    # Uncompiled: sixty kernels take minutes to compile, and the same code runs as plain Python.
    script = "from tests.simulation.test_world_as_it_is import play_everything; play_everything()"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.getcwd()}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


def test_exploration_without_a_horizon_keeps_pace_with_two_thirds_of_the_exponent() -> None:
    runs = simulate(Instance([0.9, 0.1], [1.0, 0.0], 0.0), "cs-etc", rounds=100_000, runs=2, checkpoints=[1000, 10_000, 100_000])
    explored = runs["cs-etc"].pulls[0, :, 1]
    quota = (np.array([1000, 10_000, 100_000]) / 2) ** (2 / 3)
    assert (explored >= 0.9 * quota).all()
    assert explored[-1] <= 1.15 * quota[-1] + 2  # at first it is played more often, until it is ruled out


@pytest.mark.parametrize(
    ("feedback", "arrivals", "deadline"),
    [
        (Feedback(0), lambda t, _: t, math.inf),
        (Feedback(Fixed(30)), lambda t, _: t + 30, math.inf),
        (Feedback(Fixed(200)), lambda t, _: t + 200, math.inf),  # more than one turn of the calendar
        (Feedback(Fixed(0), batch=25), lambda t, _: (t // 25 + 1) * 25 - 1, math.inf),
        (Feedback(Exponential(15)), lambda t, s: t + math.floor(15.0 * exponential(s)), math.inf),
        (Feedback(Exponential(15), deadline=20), lambda t, s: t + math.floor(15.0 * exponential(s)), 20),
        (Feedback(HeavyTailed(10, tail=2.0)), lambda t, s: t + math.floor(10.0 * (math.exp(0.5 * exponential(s)) - 1.0)), math.inf),
        (Feedback(Fixed(5), lost=0.3, deadline=40), lambda t, s: math.inf if uniform(s) < 0.3 else t + 5, 40),
        (Feedback(Fixed(5), lost=0.3), lambda t, s: math.inf if uniform(s) < 0.3 else t + 5, math.inf),
        # Nothing counts at the deadline: for a rule that does not look at pending decisions it is as if there were none.
        (Feedback(Exponential(15), deadline=20, default=None), lambda t, s: t + math.floor(15.0 * exponential(s)), math.inf),
    ],
)
def test_late_outcomes_arrive_as_in_the_slow_loop(
    feedback: Feedback, arrivals: Callable[[int, Stream], float], deadline: float
) -> None:
    for name in ("cs-ucb", "cs-ts:pending=0"):
        twin = oracles.TWINS[name.partition(":")[0]]
        expected = oracles.play_late(twin, [(0, FOUR)], 500, arrivals=arrivals, deadline=deadline, seed=7)
        assert first_trace(name, FOUR, 500, feedback) == expected


@pytest.mark.filterwarnings("ignore:overflow encountered")  # random words wrap around
def test_a_lost_outcome_that_counts_as_nothing_is_pending_until_its_deadline() -> None:
    plain: Callable[[Any], Any] = interpreted
    calendar, state = plain(new_calendar)(64, 8), SimpleNamespace(stats=plain(no_statistics)(1))
    numbers = Feedback(0, lost=1.0, deadline=3, default=None).numbers
    state.stats[0].pending += 1
    plain(send)(calendar, numbers, 0, Outcome(0, 1.0, math.nan), make_streams(1, np.array([[0, 0]]))[0])
    pending = []
    for t in range(5):
        assert not plain(take_due_outcomes)(None, None, state, None, calendar, t, None)
        pending.append(int(state.stats[0].pending))
    assert pending == [1, 1, 1, 0, 0]
    assert state.stats[0].seen == 0.0


def test_no_delay_is_the_plain_loop() -> None:
    assert first_trace("cs-ids", FOUR, 600, Feedback(0)) == first_trace("cs-ids", FOUR, 600)


def test_a_window_forgets_as_in_the_slow_loop() -> None:
    world = outage(FOUR, 1, start=150, end=300)
    pieces = [(start, each.instance) for start, each in world.pieces]
    expected = oracles.play_late(oracles.TWINS["cs-ucb"], pieces, 500, window=60, seed=7)
    assert first_trace("cs-ucb+window=60", world, 500) == expected


def test_a_change_of_prices_is_known_at_once_and_quality_is_not_learnt_again() -> None:
    world = repriced(Instance([0.9, 0.9, 0.2], [1.0, 0.0, 0.5], 0.1), [0.0, 1.0, 0.5], at=4000)
    for name in ("cs-etc", "cs-ids"):
        pulls = simulate(world, name, rounds=5000, runs=20, checkpoints=[4000, 5000])[name].pulls.mean(axis=0)
        after = pulls[1] - pulls[0]
        assert after[0] > 0.9 * 1000, name
        assert after[2] < 40, name  # CS-ETC explores on as time goes by


def test_dynamic_regret_counts_every_pull_against_the_optimum_of_its_time() -> None:
    world = abrupt(Instance([0.5, 0.9], [0.0, 1.0], 0.1), Instance([0.9, 0.9], [0.0, 1.0], 0.1), at=30)
    runs = simulate(world, ["cheapest"], rounds=100, runs=2, checkpoints=[10, 50])
    assert runs.checkpoints.tolist() == [10, 30, 50, 100]
    assert runs.samples("cheapest")["quality"][0].tolist() == pytest.approx([3.1, 9.3, 9.3, 9.3])
    assert runs.samples("cheapest")["cost"][0].tolist() == [0.0, 0.0, 0.0, 0.0]


def test_change_detection_leaves_a_dead_arm_and_comes_back() -> None:
    # Ten runs; each test raises its alarm after some 15 failures in a row, so a run that needs 50 has a chance below 1e-6.
    world = outage(Instance([0.9, 0.85], [0.0, 1.0], 0.1), 0, start=2000, end=4000)
    runs = simulate(world, "cs-ids+restart", rounds=6000, runs=10, trace=True)
    trace = runs["cs-ids+restart"].trace
    assert trace is not None
    assert (trace[:, 2060:2160] == 0).mean() < 0.2
    assert (trace[:, 4500:] == 0).mean() > 0.9


def test_statistics_that_forget_do_not_change_a_world_they_remember_whole() -> None:
    assert first_trace("cs-ucb+window=1000", FOUR, 500) == first_trace("cs-ucb", FOUR, 500)
    assert first_trace("cs-ucb+discount=1", FOUR, 500) == first_trace("cs-ucb", FOUR, 500)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: simulate(FOUR, "cs-ucb+window=3", rounds=100), "window must hold at least one outcome of every arm, got window=3"),
        (lambda: simulate(FOUR, "cs-ucb+window=0", rounds=100), "window must be a whole number of at least 1, got 0"),
        (lambda: simulate(FOUR, "cs-ucb+discount=0", rounds=100), r"discount must be in \(0, 1\], got 0"),
        (lambda: simulate(FOUR, "cs-ucb+discount=1.5", rounds=100), r"discount must be in \(0, 1\], got 1.5"),
        (lambda: simulate(FOUR, "cs-ucb+discount", rounds=100), "discount needs a number"),
        (lambda: simulate(FOUR, "cs-ucb+restrat", rounds=100), "did you mean restart"),
        (lambda: simulate(FOUR, "cs-ucb", runs=2), "say how long to play"),
        (lambda: simulate(FOUR, "cs-ucb", rounds=3), "rounds must be at least the number of arms"),
        (lambda: Feedback(-1), "a fixed delay must be a number of decisions, 0 or more, got -1"),
        (lambda: Feedback(Exponential(-5)), "mean of an exponential delay must be a number of decisions, 0 or more, got -5"),
        (lambda: Feedback(HeavyTailed(5, tail=1.0)), "must be above 1"),
        (lambda: Feedback(5, deadline=0), "deadline must be a whole number of at least 1, got 0"),
        (lambda: Feedback(5, lost=1.2), r"lost must be in \[0, 1\], got 1.2"),
        (lambda: Feedback(5, batch=0), "batch must be a whole number of at least 1, got 0"),
        (lambda: Changing([(5, World.of(FOUR))]), "must begin at round 0"),
        (lambda: Changing([(0, World.of(FOUR)), (9, World.of(FIGURE_1))]), "the one from round 9 differs"),
        (lambda: outage(FOUR, 4, start=1, end=2), "arm must be one of 0 to 3, got 4"),
        (lambda: simulate(abrupt(FOUR, FOUR, at=5), "oracle", rounds=10), "this world changes"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong()
