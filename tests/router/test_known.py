"""A router that starts with known outcomes: it learns from them, counts none as its own, and lets go of them like its own."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import Postgres
from thrifty import Router
from thrifty.router.changing import add_change
from thrifty.router.known_start import KnownStart
from thrifty.router.snapshot import capture, encode, load
from thrifty.store import open_store

ARMS = {"a": 0.2, "b": 0.5, "c": 1.0}
SOURCE = "log of 2026-11-01"


def known(*rewards: float, segment: str = "DE", outcomes: int = 400) -> dict[str, Any]:
    """So many outcomes of every arm with these mean rewards."""
    return {
        "source": SOURCE,
        "outcomes": [
            {"segment": segment, "arm": arm, "outcomes": outcomes, "rewards": outcomes * mean}
            for arm, mean in zip("abc", rewards, strict=True)
        ],
    }


START = known(0.7, 0.875, 0.9)


def remembered(router: Router, segment: str = "DE") -> list[float]:
    return [arm.remembered for arm in router.explain(segment).arms]


@pytest.mark.parametrize("policy", ["cs-ids", "cs-ids+restart", "cs-ucb", "cs-ucb+discount=0.999", "cs-ucb+window=2000"])
def test_a_router_that_knows_its_arms_takes_the_right_one_at_once(policy: str) -> None:
    router = Router(ARMS, 0.05, policy=policy, known=START)
    assert [router.decide("DE").arm for _ in range(20)] == ["b"] * 20
    assert router.counts == {"decisions": 20, "outcomes": 0, "expired": 0}


def test_known_outcomes_are_shown_and_are_none_of_the_routers_own() -> None:
    router = Router(ARMS, 0.05, policy="cs-ids", known=START)
    router.record(router.decide("DE").id, 1)
    b = router.explain("DE").arms[1]
    assert (b.decisions, b.outcomes, b.spent, b.known, b.remembered) == (1, 1, 0.5, 400, 401.0)
    assert router.explain().arms[1].known == 400  # all segments together
    assert "400 known from log of 2026-11-01" in str(router.explain("DE"))
    assert router.statistics("DE")["b"][:2] == (1, 1)
    assert router.explain("DE").saved == 0.0  # against c, which has no outcome of the router, so its cost is not known
    assert router.segments() == ["", "DE"]


def test_another_segment_borrows_from_known_outcomes() -> None:
    router = Router(ARMS, 0.05, policy="cs-ids", known=START)
    router.decide("FR")
    assert all(arm.borrowed > 0.0 and arm.known == 0 for arm in router.explain("FR").arms)


def test_a_restart_and_a_snapshot_change_nothing(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/x.db"
    for policy in ("cs-ids", "cs-ids+restart"):
        name = policy.replace("+", "-")
        with Router(ARMS, 0.05, policy=policy, known=START, store=store, name=name) as router:
            for _ in range(30):
                router.record(router.decide("DE").id, 1)
            before = router.explain("DE")
        with Router(ARMS, 0.05, policy=policy, known=START, store=store, name=name) as again:  # by its snapshot
            assert again.explain("DE") == before
            assert again.change_log.newest(1)[0]["text"].endswith(f"and started with known outcomes of {SOURCE}")


def test_a_log_without_its_snapshot_gives_the_same(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/x.db"
    with Router(ARMS, 0.05, policy="cs-ids", known=START, store=store) as router:
        router.record(router.decide("DE").id, 1)
        before = router.explain("DE")
        router.store.execute("DELETE FROM snapshots")
        again = Router.reopen("router", router.store)
        assert again.explain("DE") == before


def test_a_reset_takes_known_outcomes_away() -> None:
    router = Router(ARMS, 0.05, policy="cs-ids", known=START)
    router.change("reset", "b")
    assert remembered(router) == [400.0, 0.0, 400.0]
    assert [arm.known for arm in router.explain("DE").arms] == [400, 0, 400]
    router.change("reset")
    assert remembered(router) == [0.0, 0.0, 0.0]
    assert router.explain("DE").known_from == ""


def test_a_change_of_the_policy_keeps_them() -> None:
    router = Router(ARMS, 0.05, policy="cs-ids", known=START)
    for policy in ("cs-ucb", "cs-ucb+restart", "cs-ids"):
        router.adjust(policy=policy)
        assert remembered(router) == [400.0] * 3


def test_a_policy_that_a_router_could_not_start_with_is_refused_later_too() -> None:
    """Until nothing is left of what was known."""
    router = Router(ARMS, 0.05, policy="cs-ids", known=START)

    def put() -> None:
        router.configure(ARMS, replace(router.settings, policy="cs-exp3"))

    def adjust() -> None:
        router.adjust(policy="cs-exp3")

    for refused in (put, adjust):
        with pytest.raises(
            ValueError,
            match="policy cs-exp3 weighs every outcome by the probability of its decision, which known outcomes have not: take "
            "another policy, or reset the router first",
        ):
            refused()
    assert router.settings.policy == "cs-ids"
    router.change("reset", "a")
    with pytest.raises(ValueError, match="weighs every outcome"):
        router.adjust(policy="cs-exp3")
    router.change("reset")
    router.adjust(policy="cs-exp3")
    assert router.decide().arm in ARMS


def test_a_log_in_which_such_a_policy_was_taken_still_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier versions did not refuse it; other settings of such a router can be changed."""
    store = open_store(f"sqlite:///{tmp_path / 'a.db'}")
    with monkeypatch.context() as patched, Router(ARMS, 0.05, policy="cs-ids", known=START, store=store, name="r") as router:
        patched.setattr(KnownStart, "check_policy", lambda *_: None)
        router.adjust(policy="cs-exp3")
    with Router.reopen("r", store) as router:
        assert router.settings.policy == "cs-exp3"
        router.adjust(alpha=0.1)
        router.adjust(policy="cs-ids")
        assert remembered(router) == [400.0] * 3


def test_a_changed_world_is_noticed() -> None:
    """b fails from now on. The chance that it seems to work as before is below 1e-9: it would have to succeed 25 times."""
    router = Router(ARMS, 0.05, policy="cs-ids+restart", known=START)
    for _ in range(60):
        decision = router.decide("DE")
        router.record(decision.id, 0 if decision.arm == "b" else 1)
    assert router.explain("DE").arms[1].remembered < 60.0
    assert router.explain("DE").chosen == "c"


def test_unknown_prices_are_known_by_their_costs() -> None:
    start = {
        "outcomes": [{"arm": arm, "outcomes": 300, "rewards": 270, "costs": 300 * cost} for arm, cost in (("a", 0.2), ("b", 0.9))]
    }
    router = Router({"a": None, "b": None}, 0.05, policy="cs-ids", known=start)
    assert router.decide().arm == "a"
    assert [arm.cost for arm in router.explain().arms] == pytest.approx([0.2, 0.9])


def test_outcomes_without_costs_count_at_the_prices_of_the_start() -> None:
    router = Router({"a": 1.0, "b": 2.0}, 0.1, policy="cs-ids", known={"outcomes": START["outcomes"][1:2]})
    for _ in range(20):
        router.record(router.decide("DE", eligible=["a"]).id, 1)
    router.change("add", "c")  # nobody knows its price: from now on all costs are learnt
    assert router.explain("DE").chosen == "a"  # b costs 2, as it did at the start, and not nothing
    router.record(router.decide("DE", eligible=["b"]).id, 1, cost=4.0)
    b = router.state.segments.look(router.state.segments.by_number[1]).effective()[1]
    assert b[2:7:2] == pytest.approx((401.0, 804.0, 400 * 4.0 + 16.0))  # outcomes, costs and their squares


def test_a_start_whose_costs_no_number_holds_is_refused() -> None:
    for costs in (4.1e17, 1e308, math.inf):
        with pytest.raises(ValueError, match="costs must be a number from 0 to 4e\\+17"):
            Router({"a": 1.0}, 0.1, known={"outcomes": [{"arm": "a", "outcomes": 400, "rewards": 360, "costs": costs}]})


def test_a_router_starts_once(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/x.db"
    Router(ARMS, 0.05, store=store).close()
    with pytest.raises(ValueError, match="has started already, without known outcomes, and a router starts once: leave known out"):
        Router(ARMS, 0.05, store=store, known=START)


def test_nothing_takes_long_under_the_lock_because_much_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    router = Router(ARMS, 0.05, policy="cs-ids", known=START)
    router.change("reset", "a")

    def slow(*_values: Any) -> Any:
        raise AssertionError("20,000 entries take 60 ms")

    with monkeypatch.context() as patched:
        patched.setattr(KnownStart, "to_dict", slow)
        patched.setattr(KnownStart, "without", slow)
        assert [arm.known for arm in router.explain().arms] == [0, 400, 400]
        captured = capture(router.state)
    fresh = Router(ARMS, 0.05).state
    again = load(fresh, bytes(encode(captured, router.lock)), 1).configuration
    assert again.known == KnownStart.read(START)
    assert again.known_left == router.state.configuration.known_left


def test_the_order_in_which_a_start_is_given_does_not_matter(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/x.db"
    Router(ARMS, 0.05, store=store, known=START).close()
    Router(ARMS, 0.05, store=store, known={**START, "outcomes": START["outcomes"][::-1]}).close()


def test_a_router_that_is_refused_lets_go_of_its_store(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/x.db"
    Router(ARMS, 0.05, store=store, known=START).close()
    with pytest.raises(ValueError, match="has started already"):
        Router(ARMS, 0.05, store=store, known=known(0.5, 0.5, 0.5))
    with pytest.raises(ValueError, match="name must be"):
        Router(ARMS, 0.05, store=store, name="a b")
    Router(ARMS, 0.05, store=store, known=START).close()


def test_of_two_replicas_that_make_a_router_the_slower_one_learns_what_it_started_with(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, made = postgres.database(), list[str]()
    with Router(ARMS, 0.05, store=url, name="other") as other:

        def add_later(router: Router, action: str, *values: Any) -> int:
            if action == "create" and not made:
                made.append(action)
                Router(ARMS, 0.05, store=other.store, known=START)
            return add_change(router, action, *values)

        monkeypatch.setattr("thrifty.router.router.add_change", add_later)
        with pytest.raises(ValueError, match="has started already, with known outcomes: 1200 outcomes of"):
            Router(ARMS, 0.05, store=url, known=known(0.5, 0.5, 0.5))
        assert made == ["create"]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("x", "known must be"),
        ({}, "with 1 to 20000 entries, got None"),
        ({"outcomes": []}, "entries, got"),
        ({"outcomes": ["a"]}, "got the entry 'a'"),
        (
            {"outcomes": [{"arm": "a", "outcomes": 4, "rewards": 5}]},
            "known outcomes of 'a' in segment '': rewards must be a number",
        ),
        ({"outcomes": [{"arm": "a", "outcomes": 4}]}, "rewards must be a number from 0 to 4, got None"),
        ({"outcomes": [{"arm": "zz", "outcomes": 4, "rewards": 4}]}, "'zz', which is no arm: name one of a, b, c"),
        ({"outcomes": [{"arm": "a", "segment": "a//b", "outcomes": 4, "rewards": 4}]}, "parts that are not empty"),
        ({"outcomes": [{"arm": "a", "outcomes": 4, "rewards": 4}] * 2}, "given twice: add them up"),
        ({"outcomes": [{"arm": "a", "outcomes": 4, "rewards": 4, "odd": 1}]}, "got the entry"),
        ({"source": "", "outcomes": [{"arm": "a", "outcomes": 4, "rewards": 4}]}, "the source of known outcomes must be"),
    ],
)
def test_what_cannot_be_known_is_refused(given: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Router(ARMS, 0.05, known=given)


def test_a_start_must_fit_the_router() -> None:
    with pytest.raises(ValueError, match="more than max_segments, 2"):
        Router(ARMS, 0.05, max_segments=2, known=known(0.5, 0.5, 0.5, segment="a/b"))
    with pytest.raises(ValueError, match="weighs every outcome by the probability"):
        Router(ARMS, 0.05, policy="cs-exp3", known=START)
    with pytest.raises(ValueError, match="need the sum of their costs: 'a' has none"):
        Router({**ARMS, "c": None}, 0.05, policy="cs-ids", known=START)


def test_a_start_is_what_its_row_says() -> None:
    assert KnownStart.read(KnownStart.read(START).to_dict()) == KnownStart.read(START)
