"""The guardrail: decisions are taken in in their own order, whatever the order of their outcomes, and each key counts once."""

import json
import random

import pytest

from tests.router.pair import shown_guardrail
from tests.router.twin_guardrail import TwinGuardrail
from thrifty.floor_test import LEVEL, NOTHING, FloorTest
from thrifty.router.guardrail import LATE_LEVEL, Contrast, Guardrail, contrast_of
from thrifty.router.ordered_test import BATCHES, SMALLEST_BATCH, OrderedTest
from thrifty.router.settings import Settings
from thrifty.store.log import DECISION, OUTCOME, Row

EXPLOIT, BASELINE, PINNED = "exploit", "baseline", "pinned"


def watching(alpha: float = 0.05, share: float = 0.5) -> Guardrail:
    guardrail = Guardrail()
    guardrail.watch(Contrast("baseline", alpha, share), 0.0)
    return guardrail


def floor_test(guardrail: Guardrail) -> FloorTest:
    return ordered_test(guardrail).test


def ordered_test(guardrail: Guardrail) -> OrderedTest:
    assert guardrail.main is not None
    return guardrail.main


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
    batches = guardrail.dump()["main"]["batches"]
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


def test_each_batch_is_looked_at_though_one_outcome_completes_many() -> None:
    """The floor is broken after 400 decisions and no longer after 2,000; one outcome that comes last lets all of them in."""
    guardrail, late = watching(), floor_test(watching())
    for number in range(1, 2001):
        code = (EXPLOIT, BASELINE)[number % 2]
        reward = float((code == BASELINE) == (number <= 400))
        guardrail.decided((0, number), code)
        late.add(*((NOTHING.plus(reward), NOTHING) if code == EXPLOIT else (NOTHING, NOTHING.plus(reward))))
        if number > 1:
            guardrail.settled((0, number), code, reward)
    assert not late.broken
    assert guardrail.broken_by is None
    guardrail.settled((0, 1), BASELINE, 1.0)
    assert floor_test(guardrail).decisions == 2000
    assert guardrail.dump()["broken_by"] == 0


def settle(guardrail: Guardrail, number: int, code: str, reward: float, bucket: int | None) -> None:
    """A decision with its outcome."""
    guardrail.decided((0, number), code, bucket=bucket, at=float(number))
    guardrail.settled((0, number), code, reward)


def test_a_key_counts_once_and_a_request_without_one_every_time() -> None:
    guardrail = watching()
    for number, bucket in enumerate([7, 7, 8, None, 7, None, 9, 8], start=1):
        guardrail.decided((0, number), EXPLOIT, bucket=bucket)
    assert (ordered_test(guardrail).n_keys, ordered_test(guardrail).left_out, guardrail.waiting) == (3, 3, 5)
    for number in (2, 5, 8, 1, 3, 4, 6, 7):  # those that are left out first
        assert floor_test(guardrail).decisions == 0 or number > 2
        guardrail.settled((0, number), EXPLOIT, number / 10)
    assert floor_test(guardrail).routed[:2] == (5, 5)
    assert floor_test(guardrail).routed.rewards == pytest.approx(0.1 + 0.3 + 0.4 + 0.6 + 0.7)


def test_without_keys_the_test_has_the_whole_level_and_with_the_first_key_it_begins_anew() -> None:
    guardrail = watching()
    for number in range(1, 11):
        settle(guardrail, number, EXPLOIT, 1.0, None)
    assert (guardrail.stage, floor_test(guardrail).decisions, floor_test(guardrail).level) == (2, 10, LEVEL)
    settle(guardrail, 11, EXPLOIT, 1.0, 5)
    assert (guardrail.stage, guardrail.began_at, floor_test(guardrail).decisions) == (3, 11.0, 1)
    assert floor_test(guardrail).level == LEVEL - LATE_LEVEL
    settle(guardrail, 12, EXPLOIT, 1.0, None)
    assert (guardrail.stage, floor_test(guardrail).decisions) == (3, 2)


def test_a_key_that_comes_when_the_floor_is_broken_does_not_hide_that() -> None:
    guardrail, number = watching(), 0
    while guardrail.broken_by is None:
        number += 1
        settle(guardrail, number, (EXPLOIT, BASELINE)[number % 2], float(number % 2), None)
    settle(guardrail, number + 1, EXPLOIT, 1.0, 5)
    assert (guardrail.broken_by, guardrail.stage) == (0, 2)


def visits(rng: random.Random, keys: int, *, share: float = 0.5) -> tuple[list[str], list[float]]:
    """The group and the success rate of each key; they differ much: a Beta law with mean 0.9, worth 5 observations."""
    return [EXPLOIT if rng.random() < share else BASELINE for _ in range(keys)], [rng.betavariate(4.5, 0.5) for _ in range(keys)]


def test_few_keys_that_differ_do_not_look_like_a_broken_floor() -> None:
    """A policy exactly at the floor, 100 keys. Where every decision counted, 34 of 100 rollouts stopped; now none of 1,000 did
    (`benchmarks/rollouts.py --only keys`), so more than none of these 12 is a defect.
    """
    for seed in range(12):
        rng, guardrail = random.Random(seed), watching()
        codes, rates = visits(rng, 100)
        for number in range(1, 15_001):
            key = rng.randrange(100)
            rate = rates[key] * (0.95 if codes[key] == EXPLOIT else 1.0)
            settle(guardrail, number, codes[key], float(rng.random() < rate), key)
        assert guardrail.broken_by is None
        assert ordered_test(guardrail).n_keys == 100
        assert guardrail.blocks >= 3


def test_harm_that_comes_after_all_keys_were_seen_is_found() -> None:
    """The main test never sees it. Half of the routed rewards are lost from decision 20,000 on."""
    rng, guardrail, number = random.Random(3), watching(), 0
    codes, rates = visits(rng, 2000)
    while guardrail.broken_by is None:
        number += 1
        key = rng.randrange(2000)
        rate = rates[key] * (0.5 if codes[key] == EXPLOIT and number > 20_000 else 1.0)
        settle(guardrail, number, codes[key], float(rng.random() < rate), key)
        assert number < 40_000
    assert number > 20_000
    assert not floor_test(guardrail).broken
    assert guardrail.block is not None
    assert guardrail.block.test.level == LATE_LEVEL / (guardrail.blocks * (guardrail.blocks + 1))
    assert guardrail.block.test.p <= LEVEL


@pytest.mark.parametrize("seed", range(4))
def test_with_keys_it_is_what_a_plain_twin_is(seed: int) -> None:
    """Keys that come again, late outcomes in any order, three replicas; through blocks, and through copies made half-way."""
    rng, guardrail, twin, numbers = random.Random(seed), watching(0.2), TwinGuardrail(), [0, 10, 500]
    twin.watch({"guardrail": "canary", "mode": "canary", "alpha": 0.2, "canary_share": 0.5})
    twin.stage = guardrail.stage  # that of a router is made, created and then watched
    keys, waiting = rng.choice([30, 150]), list[Row]()
    for step in range(8000):
        if rng.random() < 0.5 or not waiting:
            replica = rng.randrange(3)
            numbers[replica] += rng.randint(1, 2)
            detail = None if rng.random() < 0.02 else json.dumps({"bucket": rng.randrange(keys)})
            code = rng.choice([EXPLOIT, BASELINE, PINNED])
            row = Row(DECISION, replica, numbers[replica], float(step), "", None, "a", 1.0, 1.0, code, detail)
            bucket = None if detail is None else json.loads(detail)["bucket"]
            guardrail.decided((replica, row.sequence), code, bucket=bucket, at=row.at)
            twin.decided(row)
            waiting.append(row)
        else:
            row = waiting.pop(rng.randrange(len(waiting)) if len(waiting) < 100 else 0)
            reward = rng.choice([None, 0.0, 0.5, 1.0])
            guardrail.settled((row.replica, row.sequence), row.code, reward)
            twin.settled(row._replace(kind=OUTCOME, value=reward))
        if step % 500 == 0:
            before, guardrail = guardrail, Guardrail()
            guardrail.load(json.loads(json.dumps(before.dump())))
            assert guardrail.dump() == before.dump()
        assert shown_guardrail(guardrail) == twin.facts()
    assert guardrail.blocks == twin.blocks >= 1


def test_a_dump_of_an_older_version_is_read() -> None:
    """It had one test, which counted every decision."""
    old = {
        "stage": 2,
        "began_at": 5.0,
        "contrast": ["baseline", 0.05, 0.5],
        "compared": "baseline",
        "test": [0.05, 0.5, [3, 3, 2.0, 2.0], [4, 4, 4.0, 4.0], 1.25, 2.5],
        "broken_by": None,
        "done": [[0, 7]],
        "batches": [[[[0, 9]], True, 2, 1, [1, 1, 1.0, 1.0], [0, 0, 0.0, 0.0]]],
        "taken": 9,
    }
    guardrail = Guardrail()
    guardrail.load(old)
    assert (guardrail.stage, guardrail.waiting, floor_test(guardrail).level) == (2, 2, LEVEL)
    guardrail.settled((0, 9), BASELINE, 1.0)
    assert (floor_test(guardrail).decisions, floor_test(guardrail).compared.rewarded) == (9, 5)
    settle(guardrail, 10, EXPLOIT, 1.0, 5)
    assert (guardrail.stage, floor_test(guardrail).decisions) == (3, 1)  # what counted every decision is no ground to go on from
    nothing = Guardrail()
    nothing.load({**old, "contrast": None, "test": None, "batches": [], "compared": ""})
    assert (nothing.main, nothing.waiting) == (None, 0)


def test_what_it_takes_in_a_snapshot() -> None:
    """Hundreds of bytes without keys; with any number of keys, two sets of buckets."""
    without, with_keys = watching(), watching()
    for number in range(1, 5001):
        settle(without, number, EXPLOIT, 1.0, None)
        settle(with_keys, number, EXPLOIT, 1.0, number * 7919 % 2**20)
    assert len(json.dumps(without.dump())) < 600
    assert len(json.dumps(with_keys.dump())) < 4 / 3 * 2**17 + 600


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
