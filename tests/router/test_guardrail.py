"""The guardrail: decisions are taken in in their own order, whatever the order of their outcomes."""

import json
import random

import pytest

from thrifty.floor_test import NOTHING, FloorTest
from thrifty.router.guardrail import BATCHES, SMALLEST_BATCH, Contrast, Guardrail, contrast_of
from thrifty.router.settings import Settings

EXPLOIT, BASELINE, PINNED = "exploit", "baseline", "pinned"


def watching(alpha: float = 0.05, share: float = 0.5) -> Guardrail:
    guardrail = Guardrail()
    guardrail.watch(Contrast("baseline", alpha, share), 0.0)
    return guardrail


def floor_test(guardrail: Guardrail) -> FloorTest:
    assert guardrail.test is not None
    return guardrail.test


@pytest.mark.parametrize("seed", range(20))
def test_outcomes_may_come_in_any_order_from_several_replicas(seed: int) -> None:
    """Everything counts once, nothing before its turn; a copy made half-way goes on alike."""
    rng, guardrail = random.Random(seed), watching()
    made: list[tuple[tuple[int, int], str, float | None]] = []
    waiting: list[int] = []
    numbers = [rng.randrange(1000) for _ in range(3)]
    other = Guardrail()
    for step in range(2000):
        if step == 1000:
            other.load(json.loads(json.dumps(guardrail.dump())))
        both = [guardrail] if step < 1000 else [guardrail, other]
        if rng.random() < 0.5:
            replica = rng.randrange(3)
            numbers[replica] += rng.randint(1, 2)
            key, code = (replica, numbers[replica]), rng.choice([EXPLOIT, BASELINE, PINNED])
            made.append((key, code, rng.choice([None, 0.0, 0.5, 1.0])))
            waiting.append(len(made) - 1)
            for each in both:
                each.decided(key, code)
        elif waiting:
            settled = waiting.pop(rng.randrange(len(waiting)))
            for each in both:
                each.settled(*made[settled])
        done = floor_test(guardrail).decisions
        counting = [n for n, (_, code, _) in enumerate(made) if code != PINNED]
        assert done + guardrail.waiting == len(counting)
        assert not set(counting[:done]) & set(waiting)  # nobody before the last that was taken in waits
    for settled in waiting:
        guardrail.settled(*made[settled])
        other.settled(*made[settled])
    assert guardrail.waiting == 0
    for code, sums in ((EXPLOIT, floor_test(guardrail).routed), (BASELINE, floor_test(guardrail).compared)):
        rewards = [reward for _, each, reward in made if each == code]
        known = [reward for reward in rewards if reward is not None]
        assert tuple(sums) == (len(rewards), len(known), sum(known), sum(reward**2 for reward in known))
    assert other.dump() == guardrail.dump()


def test_quick_failures_are_not_taken_for_a_broken_floor() -> None:
    """The routed arm fails at once and succeeds late; the baseline succeeds at once and fails late. Both succeed in 90%."""
    rng, guardrail = random.Random(1), watching()
    late: list[tuple[tuple[int, int], str, float]] = []
    in_order_of_arrival = FloorTest(0.05, 0.5)
    for number in range(1, 4001):
        code, reward = rng.choice([EXPLOIT, BASELINE]), float(rng.random() < 0.9)
        guardrail.decided((0, number), code)
        if (code == EXPLOIT) == (reward == 0.0):
            guardrail.settled((0, number), code, reward)
            one = NOTHING.plus(reward)
            in_order_of_arrival.add(*((one, NOTHING) if code == EXPLOIT else (NOTHING, one)))
        else:
            late.append(((0, number), code, reward))
    assert in_order_of_arrival.broken
    assert floor_test(guardrail).decisions < SMALLEST_BATCH
    for each in late:
        guardrail.settled(*each)
        assert guardrail.broken_by is None
    assert floor_test(guardrail).decisions == 4000


def test_batches_stay_few_however_many_decisions_wait() -> None:
    guardrail = watching()
    for number in range(1, 20_001):
        guardrail.decided((0, number), EXPLOIT)
    batches = guardrail.dump()["batches"]
    assert len(batches) < 10 * BATCHES
    assert max(batch[2] for batch in batches) <= 20_000 // BATCHES


def test_decisions_before_the_test_and_second_outcomes_do_not_count() -> None:
    guardrail = watching()
    guardrail.decided((0, 5), EXPLOIT)
    guardrail.settled((0, 4), EXPLOIT, 1.0)
    guardrail.settled((1, 9), BASELINE, 1.0)
    guardrail.settled((0, 5), EXPLOIT, 0.0)
    guardrail.settled((0, 5), EXPLOIT, 1.0)
    assert floor_test(guardrail).routed == (1, 1, 0.0, 0.0)
    assert floor_test(guardrail).compared.settled == 0


def test_it_says_once_that_the_floor_is_broken_and_stops_when_told() -> None:
    guardrail = watching()
    for number in range(1, 400):
        code = (EXPLOIT, BASELINE)[number % 2]
        guardrail.decided((3, number), code)
        guardrail.settled((3, number), code, float(number % 2))
    assert guardrail.dump()["broken_by"] == 3
    guardrail.stop()
    known = floor_test(guardrail).decisions
    guardrail.decided((3, 400), EXPLOIT)
    guardrail.settled((3, 400), EXPLOIT, 1.0)
    assert (guardrail.broken_by, floor_test(guardrail).decisions, guardrail.waiting) == (None, known, 0)
    stage = guardrail.stage
    guardrail.watch(Contrast("holdout", 0.1, 0.9), 7.0)
    assert (guardrail.stage, guardrail.began_at, floor_test(guardrail).decisions) == (stage + 1, 7.0, 0)


@pytest.mark.parametrize(
    ("chosen", "wanted"),
    [
        ({"mode": "canary"}, Contrast("baseline", 0.1, 0.05)),
        ({"mode": "canary", "canary_share": 0.5, "holdout": 0.2, "guardrail": "on"}, Contrast("baseline", 0.1, 0.5)),
        ({"mode": "canary", "guardrail": "off"}, None),
        ({"mode": "live", "holdout": 0.25, "guardrail": "on"}, Contrast("holdout", 0.1, 0.75)),
        ({"mode": "live", "holdout": 0.25}, None),
        ({"mode": "live", "guardrail": "on"}, None),
        ({"mode": "live", "holdout": 1e-300, "guardrail": "on"}, None),
        ({"mode": "shadow", "holdout": 0.25, "guardrail": "on"}, None),
    ],
)
def test_what_is_compared_follows_from_the_settings(chosen: dict[str, object], wanted: Contrast | None) -> None:
    assert contrast_of(Settings(alpha=0.1, **chosen)) == wanted  # type: ignore[arg-type]
