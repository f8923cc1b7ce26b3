"""Looking from outside: copies are whole while others decide and change, and a preview says what the change then does."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from thrifty.router import ConflictError, Router, outlook
from thrifty.router.changing import add_change
from thrifty.router.outlook import copy_sums

ARMS = {"a": 0.5, "b": 0.3, "c": 0.1}
RATES = {"a": 0.95, "b": 0.9, "c": 0.6}


def filled(rewards: dict[str, float], store: Any = None, **settings: Any) -> Router:
    router = Router(ARMS, 0.05, **{"policy": "cs-ucb", "store": store, "name": "sms", **settings})
    rng = np.random.default_rng(1)
    for n in range(150):
        made = router.decide(("DE/o2", "FR")[n % 2], eligible=["abc"[n % 3]])
        router.record(made.id, float(rng.random() < rewards[made.arm]))
    return router


CHANGES: list[dict[str, Any]] = [
    {"action": "alpha", "alpha": 0.5},
    {"action": "pause", "arm": "a"},
    {"action": "price", "arm": "a", "price": 0.01},
    {"action": "pin", "arm": "c"},
    {"action": "retire", "arm": "b"},
]


@pytest.mark.parametrize("policy", ["cs-ucb", "cs-ucb+restart"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: str(change["action"]))
def test_a_preview_says_what_the_change_then_does(change: dict[str, Any], policy: str) -> None:
    router = filled({"a": 0.95, "b": 0.9, "c": 0.6}, policy=policy)
    for segment in ("FR", "DE/o2"):
        promised = router.preview(**change, segment=segment)
        assert promised["before"]["arm"] == router.explain(segment).chosen
        twin = filled({"a": 0.95, "b": 0.9, "c": 0.6}, policy=policy)
        if change["action"] == "alpha":
            twin.adjust(alpha=change["alpha"])
        else:
            twin.change(**change)
        after = twin.explain(segment)
        arm = next(each for each in after.arms if each.arm == after.chosen)
        assert promised["after"]["arm"] == after.chosen
        assert promised["after"]["quality"] == pytest.approx(arm.mean)
        assert promised["after"]["cost"] == arm.cost


def test_a_preview_of_all_segments_weighs_them_by_their_decisions() -> None:
    router = filled({"a": 1.0, "b": 1.0, "c": 1.0})
    for _ in range(100):
        router.record(router.decide("FR", eligible=["c"]).id, 0.0)
    found = router.preview("alpha", alpha=1.0)
    assert (found["segments"], found["covered"]) == (2, 1.0)
    assert found["before"]["arm"] is None  # FR has left c
    parts = [router.preview("alpha", alpha=1.0, segment=name)["after"]["quality"] for name in ("FR", "DE/o2")]
    assert found["after"]["quality"] == pytest.approx((175 * parts[0] + 75 * parts[1]) / 250)


def test_a_preview_refuses_what_the_change_would_refuse() -> None:
    router = filled({"a": 0.9, "b": 0.9, "c": 0.9})
    for wrong in ({"action": "pause", "arm": "x"}, {"action": "paint"}, {"action": "alpha"}, {"action": "alpha", "alpha": 2.0}):
        with pytest.raises(ValueError, match=r"."):
            router.preview(**wrong)
    strays: tuple[tuple[dict[str, Any], str], ...] = (
        (
            {"action": "alpha", "alpha": 0.2, "arm": "a"},
            "a change of alpha takes no arm, got 'a': it is about all arms, so leave arm out",
        ),
        ({"action": "alpha", "alpha": 0.2, "price": 1.0}, r"a change of alpha takes no price, got 1\.0"),
        (
            {"action": "pause", "arm": "a", "alpha": 0.2},
            r"pause takes no alpha, got 0\.2: leave alpha out, or preview the action alpha",
        ),
    )
    for stray, words in strays:
        with pytest.raises(ValueError, match=words):
            router.preview(**stray)
    for arm in "ab":
        router.change("pause", arm)
    with pytest.raises(ValueError, match="the last active one"):
        router.preview("pause", "c")


def test_copies_are_whole_while_others_decide_and_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlook, "PIECE_BYTES", 1)  # a row at a time: everything happens in between
    router, stop = filled({"a": 0.9, "b": 0.9, "c": 0.9}, policy="cs-ucb+restart"), threading.Event()

    def work() -> None:
        n = 0
        while not stop.is_set():
            router.record(router.decide(f"s{n % 30}").id, 1.0)
            if n % 20 == 0:
                router.adjust(alpha=0.01 + (n % 7) / 100)
            if n % 33 == 0:
                router.change("add", f"new{n}", price=0.2)
            n += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(20):
            copied = copy_sums(router)
            assert copied.sums.shape == (len(copied.names), len(copied.arms.names))
            assert (copied.own("sent") >= -30).all()  # rows are a little apart
            assert copied.sums["seen"][0].sum() <= copied.sums["sent"][0].sum()
            router.summary()
            router.segment_table(sort="saving")
            router.recent_decisions(20, segment="s1")
    finally:
        stop.set()
        thread.join()
    copied = copy_sums(router)
    assert (copied.own("sent") >= 0).all()


def test_changes_undo_and_versions_survive_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/s.db"
    with Router(ARMS, 0.05, policy="cs-ucb", store=store, name="sms") as router:
        router.change("price", "a", price=0.9, by="ann", version=router.version)
        with pytest.raises(ConflictError, match="look again"):
            router.change("pause", "a", version=router.version - 1)
        router.undo(router.changes()[0]["position"], by="bob")
        router.change("pause", "c", by="<script>")
        version, shown = router.version, router.changes()
        assert [each["by"] for each in shown] == ["<script>", "bob", "ann", ""]
        assert [each["text"] for each in shown[:2]] == ["c was paused", f"change {shown[2]['position']} was undone: {PRICED}"]
    with Router({**ARMS}, 0.05, policy="cs-ucb", store=store, name="sms") as router:
        assert (router.version, router.changes()) == (version, shown)
        router.undo(shown[0]["position"])
        assert router.arms.active() == ["a", "b", "c"]


PRICED = "the price of a was changed from 0.9 to 0.5"


def test_a_router_without_a_store_has_no_changes_to_undo() -> None:
    with pytest.raises(ValueError, match="without a store"):
        Router(ARMS, 0.05, policy="cs-ucb").changes()


def test_an_old_undo_is_refused_after_the_router_was_made_anew(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/s.db"
    with Router(ARMS, 0.05, policy="cs-ucb", store=store, name="sms") as router:
        router.change("pause", "a")
        old = router.changes()[0]["position"]
        router.delete()
    with Router(ARMS, 0.05, policy="cs-ucb", store=store, name="sms") as router:
        assert [each["action"] for each in router.changes()] == ["create"]
        with pytest.raises(KeyError, match=str(old)):
            router.undo(old)


def test_what_ended_a_fallback_is_not_undone_and_a_preview_says_that_the_router_fell_back(tmp_path: Path) -> None:
    with filled({"a": 0.95, "b": 0.9, "c": 0.6}, f"sqlite:///{tmp_path}/s.db", mode="canary", baseline="a") as router:
        with router.lock:
            position = add_change(router, "fallback", {"at": 1.0, "text": "the floor is broken", "by": "guardrail"}, None)
        router.wait(position)
        assert router.summary()["fallback"]
        assert "fallen back to its baseline" in router.preview("alpha", alpha=0.2)["text"]
        router.move_rollout("live", by="ann")
        moved, fell = router.changes(2)
        assert (moved["action"], moved["undo"]) == ("rollout", None)
        assert "ended a fallback" in moved["why_not"]
        assert fell["undo"] is None
        router.move_rollout("canary", share=0.1, by="ann")
        router.undo(router.changes(1)[0]["position"])
        assert (router.settings.mode, router.settings.canary_share) == ("live", 0.05)


def fallen(router: Router) -> Router:
    with router.lock:
        add_change(router, "fallback", {"at": 1.0, "text": "the floor is broken", "by": "guardrail"}, None)
    return router


def test_the_baseline_of_a_fallback_is_retired_in_the_order_that_the_refusal_names() -> None:
    router = fallen(filled(RATES, mode="canary", baseline="a"))
    words = "move the rollout first, which ends the fallback, then set baseline, and name one of b, c"
    for refused in (lambda: router.change("retire", "a"), lambda: router.preview("retire", "a")):
        with pytest.raises(ValueError, match=f"arm 'a' is the baseline that the router has fallen back to, .* {words}"):
            refused()
    router.move_rollout("canary", by="ann")
    with pytest.raises(ValueError, match="set baseline first, or in the same PUT, and name one of b, c"):
        router.change("retire", "a")
    router.adjust(baseline="b")
    router.change("retire", "a")
    assert "a" not in router.arms.active()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"action": "pin", "arm": "c"}, "a pin goes before that"),
        ({"action": "pause", "arm": "a"}, "with a paused the chosen arm would be b"),
        ({"action": "price", "arm": "a", "price": 0.01}, "the chosen arm stays a: about 98% less"),
        ({"action": "reset", "arm": "a"}, "the chosen arm stays a: its quality is not known yet"),
        ({"action": "pause", "arm": "b"}, "shows once the rollout is moved on"),
    ],
    ids=str,
)
def test_a_preview_after_a_fallback_is_about_the_baseline_that_all_traffic_takes(change: dict[str, Any], told: str) -> None:
    router = fallen(filled(RATES, mode="canary", baseline="a"))
    found = router.preview(**change)
    assert told in found["text"]
    assert found["before"]["arm"] == router.decide().arm == "a"
    router.change(**change)
    decision = router.decide()
    assert found["after"]["arm"] == decision.arm
    assert found["after"]["cost"] in (None, router.arms.prices[router.arms.index(decision.arm)])


def test_a_preview_of_alpha_after_a_fallback_says_that_nothing_moves_until_the_rollout_does() -> None:
    found = fallen(filled(RATES, mode="canary", baseline="a")).preview("alpha", alpha=1.0)
    assert (found["before"]["arm"], found["after"]["arm"], found["segments_moved"]) == ("a", "a", 0)


@pytest.mark.parametrize(
    ("change", "others"),
    [
        ({"action": "pin", "arm": "c"}, "all other keys would take c: about 80% less"),
        ({"action": "pause", "arm": "a"}, "all other keys would take b: about 40% less"),
        ({"action": "price", "arm": "a", "price": 0.25}, "all other keys stay with a: about 50% less"),
        ({"action": "price", "arm": "c", "price": 0.05}, ""),
        ({"action": "alpha", "alpha": 1.0}, ""),
    ],
    ids=str,
)
def test_a_preview_in_a_canary_says_what_all_other_keys_would_take(change: dict[str, Any], others: str) -> None:
    router = filled(RATES, mode="canary", canary_share=0.25, baseline="a")
    text = router.preview(**change)["text"]
    assert "; in 0.25 of the keys, the canary" in text
    assert others in text
    assert others or "other keys" not in text


def test_a_preview_of_another_pin_is_about_all_traffic_of_a_canary() -> None:
    router = filled(RATES, mode="canary", baseline="a")
    router.change("pin", "b")
    assert "canary" not in router.preview("pin", "c")["text"]
    assert "tried once b is pinned no more" in router.preview("add", "d", price=0.1)["text"]


def test_prices_and_alpha_are_told_with_all_their_digits(tmp_path: Path) -> None:
    with Router(ARMS, 0.05, policy="cs-ucb", store=f"sqlite:///{tmp_path}/s.db", name="sms") as router:
        assert "b at 0.12345678" in router.preview("price", "b", price=0.12345678)["text"]
        assert "alpha 0.0123456789" in router.preview("alpha", alpha=0.0123456789)["text"]
        router.change("price", "b", price=0.12345678)
        router.change("price", "b", price=1234567.25)
        shown = router.changes()[0]
        assert shown["text"] == "the price of b was changed from 0.12345678 to 1234567.25"
        assert shown["undo"]["text"] == "set the price of b to 0.12345678"


def test_a_preview_of_a_pin_without_outcomes_says_which_arm_is_taken() -> None:
    router = Router(ARMS, 0.05, policy="cs-ucb")
    assert router.preview("pin", "b")["text"] == "with b pinned the chosen arm would be b: its quality is not known yet"
    router.change("pin", "b")
    assert "stays b" in router.preview("price", "b", price=0.2)["text"]


def test_a_log_in_which_a_paused_arm_was_pinned_still_opens(tmp_path: Path) -> None:
    """Versions before this one wrote such rows, which had no effect until the arm was resumed."""
    url = f"sqlite:///{tmp_path}/a.db"
    with Router({"a": 1.0, "b": 0.5}, 0.1, store=url, policy="cheapest") as router:
        router.change("pause", "b")
        router.wait(add_change(router, "pin", {"arm": "b", "price": None, "by": "ann"}, None))
        assert router.decide().code != "pinned"
    with Router({"a": 1.0, "b": 0.5}, 0.1, store=url, policy="cheapest") as router:
        assert router.arms.pinned == 1
        router.change("price", "a", price=2.0)
        router.change("resume", "b")
        assert (router.decide().arm, router.decide().code) == ("b", "pinned")
