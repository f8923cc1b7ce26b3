"""The twin by itself, in cases small enough to be counted by hand: what the router is meant to do."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.router.pair import NAME, Clock
from tests.router.twin import Twin
from thrifty.router import Settings
from thrifty.store.log import OUTCOME, Row


class Played:
    """A twin, and decisions as if a router had made them."""

    def __init__(self, arms: dict[str, float | None], **settings: Any) -> None:
        self.clock = Clock()
        self.twin = Twin(NAME, self.clock.time)
        self.twin.create(arms, Settings(**{"alpha": 0.125, "policy": "cs-ucb", "deadline_s": 100.0, **settings}).to_dict())

    def decide(self, arm: str, **request: Any) -> str:
        id = f"{NAME}.0.{self.twin.sequences[0] + 1:x}"
        made = SimpleNamespace(id=id, arm=arm, code="explore", propensity=1.0, version=self.twin.version, repeated=False)
        self.twin.decided(made, **request)
        return id

    def set(self, **settings: Any) -> None:
        arms = {arm: price for arm, (price, _) in self.twin.arms.items()}
        self.twin.configure(arms, {**self.twin.settings, **settings})

    def expire(self, decision_id: str) -> None:
        made = self.twin.find(decision_id)
        self.twin.expired(Row(OUTCOME, 0, made.row.sequence, 0.0, None, None, None, None, None, "default", None))

    def sums(self, arm: str, segment: str = "") -> tuple[int, int, float, float]:
        return self.twin.statistics()[segment][arm]


def test_a_decision_waits_until_its_own_deadline_and_not_behind_a_longer_one() -> None:
    played = Played({"a": 0.5, "b": 0.25})
    long = played.decide("a")
    played.set(deadline_s=1.0)
    short = played.decide("b")
    played.clock.passed += 0.75
    assert played.twin.due() == []
    played.clock.passed += 0.25
    assert played.twin.due() == [short]
    with pytest.raises(AssertionError, match="was not due"):
        played.expire(long)
    played.expire(short)
    played.clock.passed += 99.0
    assert played.twin.due() == [long]


def test_an_outcome_after_the_deadline_costs_what_it_costs() -> None:
    played = Played({"a": 0.5})
    late = played.decide("a")
    played.clock.passed += 100.0
    played.expire(late)
    assert (played.sums("a"), played.twin.counts["expired"]) == ((1, 1, 0.0, 0.5), 1)
    assert played.twin.record(late, 1) == "recorded"
    assert (played.sums("a"), played.twin.counts["outcomes"]) == ((1, 1, 1.0, 0.5), 1)
    assert [row.cost for row in played.twin.rows if row.kind == OUTCOME] == [0.5, 0.5]


def test_an_expiry_without_a_price_says_nothing_about_the_cost() -> None:
    played = Played({"a": None})
    late = played.decide("a")
    played.clock.passed += 100.0
    played.expire(late)
    assert (played.twin.rows[-1].value, played.twin.rows[-1].cost) == (0.0, None)
    assert played.sums("a") == (1, 1, 0.0, 0.0)
    with pytest.raises(ValueError, match="is unknown"):
        played.twin.record(late, 1)
    assert played.twin.record(late, 1, cost=0.25) == "recorded"
    assert played.sums("a") == (1, 1, 1.0, 0.25)


def test_segments_stay_when_fewer_are_allowed_and_a_decision_counts_where_it_was_made() -> None:
    played = Played({"a": 0.5})
    played.decide("a", segment="DE/x")
    played.set(max_segments=1)
    elsewhere = played.decide("a", segment="DE/y")
    played.set(max_segments=10)
    played.twin.record(elsewhere, 1)
    assert played.twin.segments == ["", "DE", "DE/x"]
    assert [played.sums("a", segment)[:2] for segment in played.twin.segments] == [(2, 1), (2, 1), (1, 0)]


def test_a_reset_keeps_what_is_pending_and_what_it_forgot_cannot_be_corrected() -> None:
    played = Played({"a": 0.5, "b": 0.25})
    old, open = played.decide("a"), played.decide("a")
    played.twin.record(old, 1)
    played.twin.change("reset", "a")
    assert played.sums("a") == (1, 0, 0.0, 0.0)
    assert played.twin.record(old, 0) == "corrected"
    assert played.sums("a") == (1, 0, 0.0, 0.0)
    played.twin.record(open, 1, arm="b")
    assert (played.sums("a"), played.sums("b")) == ((0, 0, 0.0, 0.0), (1, 1, 1.0, 0.25))


def test_prune_keeps_whoever_waits_and_a_new_router_knows_no_old_decision() -> None:
    played = Played({"a": 0.5}, deadline_s=1000.0)
    done, waits = played.decide("a", request_id="q"), played.decide("a")
    played.twin.record(done, 1)
    played.set(deadline_s=1.0)
    played.clock.passed += 500.0
    assert played.twin.prune(played.clock.time()) == 0  # both were made at the same time, and one of them waits
    assert played.twin.record(waits, 1) == "recorded"
    assert played.twin.prune(played.clock.time()) == 4
    assert played.sums("a") == (2, 2, 2.0, 1.0)
    with pytest.raises(KeyError):
        played.twin.record(done, 0)
    played.twin.delete()
    played.twin.create({"a": 0.5}, played.twin.settings)
    assert played.decide("a", request_id="q") == f"{NAME}.0.3"
    assert played.sums("a") == (1, 0, 0.0, 0.0)


@pytest.mark.parametrize(
    "wrong", ["a.0.01", "a.00.1", "a.+0.1", "a.0.0_1", "a.0.\u0661", "a.0.A", "b.0.1", "a.0.1\n", "a.0x0.1", "a.0.2"]
)
def test_an_odd_id_is_unknown(wrong: str) -> None:
    played = Played({"a": 0.5})
    assert played.decide("a") == "a.0.1"
    with pytest.raises(KeyError):
        played.twin.record(wrong, 1)


def test_what_cannot_work_changes_nothing() -> None:
    played = Played({"a": 0.5, "b": 0.25}, policy="pe-cs")
    rows = list(played.twin.rows)
    for policy in ("oracle", "cs-ucb+window=2000000000", "cs-ucb+window=1"):
        with pytest.raises(ValueError, match=r"truth|window"):
            played.set(policy=policy)
    with pytest.raises(ValueError, match="all prices"):
        played.twin.change("add", "c")
    played.twin.change("pause", "b")
    with pytest.raises(ValueError, match="last active"):
        played.twin.configure({"b": 0.25}, played.twin.settings)
    assert played.twin.rows[:-1] == rows
