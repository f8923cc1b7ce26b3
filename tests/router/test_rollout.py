"""Rollouts: who is routed in a canary, and that a router falls back when routed traffic is below the floor beyond doubt."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from tests.clock import Clock
from thrifty.router import ConflictError, Decision, Router, Settings
from thrifty.router.changing import add_change
from thrifty.router.choice import BUCKETS, bucket_of, toss_of
from thrifty.router.rows import bucket_in
from thrifty.store import open_store
from thrifty.store.log import CHANGE, DECISION

ARMS: dict[str, float | None] = {"good": 1.0, "bad": 0.1}
MEANS = {"good": 0.9, "bad": 0.5, "fair": 0.9}


def make(**settings: Any) -> Router:
    """A policy that takes the cheapest arm, whatever it brings."""
    given = {"policy": "cheapest", "mode": "canary", "canary_share": 0.5, "baseline": "good", **settings}
    return Router(ARMS, 0.1, **{"clock": Clock(), **given})


def play(router: Router, rounds: int, *, seed: int = 1, until: str = "") -> list[Decision]:
    """Decisions with their outcomes, as many as asked for, or until one of a code is made."""
    rng, made = random.Random(seed), []
    for _ in range(rounds):
        made.append(router.decide())
        router.record(made[-1].id, reward=float(rng.random() < MEANS[made[-1].arm]))
        if made[-1].code == until:
            return made
    assert not until, f"no {until} in {rounds} decisions"
    return made


def test_a_share_of_the_keys_is_routed_and_the_rest_takes_the_baseline() -> None:
    router = make(canary_share=0.3)
    keys = [f"customer-{n}" for n in range(300)]
    made = {key: router.decide(key=key) for key in keys}
    for decision in made.values():
        assert (decision.arm, decision.code) in (("bad", "exploit"), ("bad", "explore"), ("good", "baseline"))
    routed = {key for key in keys if made[key].code != "baseline"}
    assert routed == {key for key in keys if toss_of("router", key) < 0.3}
    assert 60 <= len(routed) <= 120  # 90 expected; further away with a probability of 2e-4
    again = make(canary_share=0.6)
    assert routed < {key for key in keys if again.decide(key=key).code != "baseline"}
    for key, decision in made.items():
        assert decision.propensity == pytest.approx(0.3 if key in routed else 0.7)


def test_without_a_key_each_decision_has_a_coin_of_its_own() -> None:
    """The request_id is none: a client may use it again."""
    one, other = make(), make()
    assert [one.decide(request_id=f"r-{n}").code for n in range(50)] == [other.decide().code for _ in range(50)]
    assert {one.decide(request_id=f"s-{n}", key="same").code for n in range(30)} == {one.decide(key="same").code}


def test_the_log_has_a_bucket_of_a_key_in_a_canary_and_never_the_key(tmp_path: Path) -> None:
    with make(store=f"sqlite:///{tmp_path}/a.db") as router:
        router.decide(key="customer-17")
        router.decide(eligible=["good", "bad"], key="customer-17", context={"bucket": "red"})
        router.decide()
        router.decide(context={"bucket": 5})
        router.move_rollout("live")
        router.decide(key="customer-17")
        rows = [row for _, row in router.store.journal("router").scan() if row.kind == DECISION]
        assert [bucket_in(row) for row in rows] == [*[bucket_of("router", "customer-17")] * 2, None, None, None]
        assert not any("customer" in str(row) for row in rows)


def test_buckets_tell_nothing_of_the_group() -> None:
    """Of 20,000 keys half are routed, whichever half of the buckets they are in; off by 0.02 with a probability below 1e-4."""
    low = [toss_of("sms", str(n)) < 0.5 for n in range(20_000) if bucket_of("sms", str(n)) < BUCKETS // 2]
    assert len(low) / 20_000 == pytest.approx(0.5, abs=0.02)
    assert sum(low) / len(low) == pytest.approx(0.5, abs=0.02)


def test_keys_fall_to_groups_as_if_by_chance() -> None:
    """The share of 20,000 keys below each tenth is off by more than 0.01 with a probability below 1e-3."""
    tosses = [toss_of("sms", str(n)) for n in range(20_000)]
    for tenth in range(1, 10):
        assert sum(toss < tenth / 10 for toss in tosses) / 20_000 == pytest.approx(tenth / 10, abs=0.013)


def test_the_probability_of_an_arm_is_over_both_groups() -> None:
    """Where the rule would take the baseline too, it is certain; the weights 1 / p add up to the decisions, for every arm."""
    same = make(baseline="bad")
    assert {same.decide().propensity for _ in range(20)} == {1.0}
    draws = Router({"good": 1.0, "bad": 0.1}, 0.5, policy="cs-ts", mode="canary", canary_share=0.5, baseline="good", seed=3)
    weights = {"good": 0.0, "bad": 0.0}
    for n in range(400):
        decision = draws.decide()
        weights[decision.arm] += 1.0 / decision.propensity
        if n < 10:
            draws.record(decision.id, reward=1.0)
    assert weights["good"] == pytest.approx(400, rel=0.15)
    assert weights["bad"] == pytest.approx(400, rel=0.35)


def test_without_draws_no_probability_is_given_and_nothing_else_changes() -> None:
    router = make(propensity_draws=0)
    codes = {decision.code: decision.propensity for decision in play(router, 40)}
    assert math.isnan(codes["baseline"])


def test_the_router_falls_back_by_itself_and_stays_there_until_a_person_moves_it() -> None:
    router = make()
    made = play(router, 2000, until="fallback")
    assert {decision.code for decision in made[:-1]} <= {"baseline", "exploit", "explore"}
    assert (made[-1].arm, made[-1].propensity) == ("good", 1.0)
    assert str(made[-1].reason).startswith("fallback: the guardrail stopped the rollout")
    before = router.statistics()["good"]
    assert {decision.code for decision in play(router, 100, seed=2)} == {"fallback"}
    assert router.statistics()["good"][0] == before[0] + 100
    status = router.rollout()
    assert status.fallback is not None
    assert "the floor is broken beyond doubt" in status.text
    assert status.text in str(status)
    assert status.high is not None
    assert status.high < 0.0
    assert status.p is not None
    assert status.p <= 0.05
    explained = router.explain()
    assert explained.chosen == "good"
    assert "fallen back to the baseline good until a person moves the rollout on" in explained.why
    router.configure(ARMS, Settings(alpha=0.1, policy="cheapest", mode="canary", canary_share=0.9, baseline="good"))
    assert router.decide().code == "fallback"  # settings are no word of a person about the fallback
    router.move_rollout("canary", share=0.25, by="ann")
    assert router.rollout().fallback is None
    assert (router.settings.mode, router.settings.canary_share) == ("canary", 0.25)
    assert "fallback" not in {decision.code for decision in play(router, 10)}
    router.move_rollout("live")
    assert {decision.code for decision in play(router, 10)} <= {"exploit", "explore"}


def test_nothing_but_a_rollout_or_a_pin_changes_where_a_router_has_fallen_back_to(tmp_path: Path) -> None:
    same: dict[str, Any] = {"alpha": 0.1, "policy": "cheapest", "mode": "canary", "canary_share": 0.5}
    with make(store=f"sqlite:///{tmp_path}/a.db") as router:
        router.adjust(holdout=0.1, baseline="bad")
        router.adjust(baseline="good")
        play(router, 2000, until="fallback")
        version = router.version
        for baseline in ("", "bad"):
            with pytest.raises(
                ValueError, match=f"fallen back to its baseline, 'good', so baseline must stay 'good', got '{baseline}'"
            ):
                router.configure(ARMS, Settings(**same, baseline=baseline))
        with pytest.raises(ConflictError, match="cannot be undone now: the router has fallen back"):
            router.undo(router.changes(2)[1]["position"])
        assert (router.version, router.settings.baseline, router.decide().arm) == (version, "good", "good")
        router.configure(ARMS, Settings(**same, baseline="good", deadline_s=60.0))
        router.change("pin", "bad")
        assert router.decide().arm == "bad"
        router.change("unpin")
        router.move_rollout("canary")
        router.adjust(baseline="")
        assert router.settings.baseline == ""


def test_live_traffic_with_a_holdout_is_guarded_where_that_is_wanted() -> None:
    router = make(mode="live", holdout=0.5, guardrail="on", baseline="")
    made = play(router, 2000, until="fallback")
    assert {decision.code for decision in made[:-1]} <= {"holdout", "exploit", "explore"}
    assert "holdout outcomes" in router.rollout().text
    watched = make(mode="live", holdout=0.5)
    play(watched, len(made))
    assert watched.rollout().fallback is None
    assert "no guardrail watches" in watched.rollout().text


def test_corrections_do_not_change_the_test() -> None:
    router = make()
    made = play(router, 60)
    before = router.state.guardrail.dump()
    for decision in made:
        router.record(decision.id, reward=0.0)
        router.record(decision.id, status="void")
    assert router.state.guardrail.dump() == before


def test_pins_and_single_arms_go_before_the_canary_and_are_no_part_of_it() -> None:
    router = make()
    assert {router.decide(eligible=["bad"]).code for _ in range(10)} == {"only"}
    router.change("pin", "bad")
    assert {router.decide().code for _ in range(10)} == {"pinned"}
    assert router.state.guardrail.waiting == 0


def test_a_baseline_that_is_not_eligible_gives_way_to_the_best_arm_known() -> None:
    router = Router({**ARMS, "fair": 0.5}, 0.1, policy="cheapest", mode="canary", canary_share=0.01, baseline="good")
    for decision in [router.decide(eligible=["fair"]) for _ in range(3)]:
        router.record(decision.id, reward=1.0)
    assert router.decide(eligible=["bad", "fair"], key="a").arm == "fair"
    router.change("pause", "good")
    assert router.decide(key="a").arm == "fair"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make(baseline="nobody"), "baseline 'nobody' is no arm: name one of good, bad"),
        (lambda: make(canary_share=0.0), "canary_share must be a number from 0.001 to 0.99"),
        (lambda: make(canary_share=1.0), "canary_share must be"),
        (lambda: make(guardrail="maybe"), "guardrail must be one of canary, on, off"),
        (
            lambda: make().change("retire", "good"),
            "arm 'good' is the baseline, .* set baseline first, or in the same PUT, and name one of bad",
        ),
        (lambda: make().decide(key=""), "key must be 1 to 200 printable"),
        (lambda: make().decide_many([{"key": "x" * 201}]), "key must be 1 to 200 printable"),
        (lambda: make().move_rollout("dead"), "mode must be one of live, canary, shadow"),
        (lambda: make().move_rollout("canary", share=2.0), "canary_share must be"),
    ],
)
def test_wrong_input_is_refused_with_the_remedy(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(("graceful", "keyed"), [(True, True), (False, True), (False, False)])
def test_the_test_and_the_fallback_outlive_the_process(tmp_path: Path, graceful: bool, keyed: bool) -> None:
    """Once half-way through the test, once after the fallback; from a snapshot, and from the rows alone."""
    url, clock, rng = f"sqlite:///{tmp_path}/a.db", Clock(), random.Random(5)
    store = open_store(url)
    router = make(store=store, clock=clock)

    def reopened() -> Router:
        nonlocal store
        if graceful:
            router.close()
        store.close()
        store = open_store(url)
        return Router.reopen("router", store, clock=clock)

    codes: list[str] = []
    while "fallback" not in codes:
        decision = router.decide(key=f"customer-{len(codes) * 2 // 3}" if keyed else None)
        codes.append(decision.code)
        if len(codes) % 3:
            router.record(decision.id, reward=float(rng.random() < MEANS[decision.arm]))
        clock.now += 100.0
        if len(codes) % 50 == 0:
            before, groups = router.state.guardrail.dump(), router.groups
            router = reopened()
            assert router.state.guardrail.dump() == before
            assert router.groups == groups
        assert len(codes) < 2000
    before, shown = router.state.guardrail.dump(), router.rollout()
    router = reopened()
    assert router.state.guardrail.dump() == before
    assert router.rollout() == shown
    assert router.decide().code == "fallback"
    router.move_rollout("live", by="ann")
    rows = [row for _, row in store.journal("router").scan() if row.kind == CHANGE and row.code in ("fallback", "rollout")]
    assert [(row.code, json.loads(str(row.detail))["by"]) for row in rows] == [("fallback", "guardrail"), ("rollout", "ann")]
    store.close()


def test_a_fallback_that_was_not_written_before_the_end_is_written_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    store = open_store(url)
    router = make(store=store)
    with monkeypatch.context() as patch:
        patch.setattr("thrifty.router.router.fall_back", lambda _router: None)  # it is killed before the row is written
        while router.state.guardrail.broken_by is None:
            play(router, 1, seed=router.counts["decisions"])
    store.close()
    store = open_store(url)
    again = Router.reopen("router", store, clock=Clock())
    assert again.decide().code == "fallback"
    store.close()


def test_a_late_fallback_of_an_earlier_stage_has_no_effect() -> None:
    router = make()
    stale = {"at": 1.0, "text": "old", "by": "guardrail", "if_version": router.version}
    router.move_rollout("canary")
    version = router.version
    add_change(router, "fallback", stale, None)
    assert router.rollout().fallback is None
    assert router.version == version


def test_the_changes_say_what_happened_and_a_move_can_be_undone(tmp_path: Path) -> None:
    with make(store=f"sqlite:///{tmp_path}/a.db") as router:
        play(router, 600, until="fallback")
        router.move_rollout("canary", share=0.25, by="ann", version=router.version)
        with pytest.raises(ConflictError, match="look again"):
            router.move_rollout("live", version=router.version - 1)
        moved, fell = router.changes(2)
        assert (moved["text"], moved["by"]) == ("the rollout was moved to canary of 0.25 of the keys", "ann")
        assert fell["text"].startswith("the router fell back to its baseline: the floor is broken beyond doubt")
        assert (fell["by"], fell["undo"], fell["why_not"]) == (
            "guardrail",
            None,
            "a fallback ends when a person moves the rollout on",
        )
        router.move_rollout("live", by="ann")
        router.undo(router.changes(1)[0]["position"], by="bob")
        assert (router.settings.mode, router.settings.canary_share, router.rollout().fallback) == ("canary", 0.25, None)


def play_keys(router: Router, keys: list[str], *, seed: int = 1) -> None:
    """Decisions for these keys, ten seconds apart, with their outcomes."""
    rng = random.Random(seed)
    for key in keys:
        decision = router.decide(key=key)
        router.record(decision.id, reward=float(rng.random() < MEANS["good"]))
        router.state.clock.now += 10.0


def test_what_is_shown_says_how_many_keys_were_counted_and_how_many_are_missing() -> None:
    router = make()
    play_keys(router, [f"customer-{n}" for n in range(64) for _ in range(3)])
    status = router.rollout()
    assert (status.keys, status.left_out, status.blocks) == (64, 128, 0)
    assert status.routed is not None
    assert status.compared is not None
    assert status.routed.decisions + status.compared.decisions == 64
    assert "64 keys were counted, each once, and 128 later decisions of theirs left out" in status.text
    assert status.keys_needed is not None
    assert status.outcomes_needed == pytest.approx(3 * status.keys_needed, rel=0.1)  # one in three is of a new key
    assert status.days_needed == pytest.approx(30.0 * status.keys_needed / 86_400.0, rel=0.1)
    assert f"about {status.keys_needed:,} more keys are needed" in status.text
    play_keys(router, ["customer-1"] * 1000)
    status = router.rollout()
    assert (status.keys, status.blocks, status.outcomes_needed, status.days_needed) == (64, 1, None, None)
    assert "more keys are needed, and no new ones come" in status.text
    plain = make()
    play(plain, 50)
    assert (plain.rollout().keys, plain.rollout().left_out, plain.rollout().keys_needed) == (None, 0, None)


def test_harm_that_comes_late_to_known_keys_ends_in_a_fallback_that_says_so() -> None:
    router, rng, codes = make(), random.Random(2), list[str]()
    while "fallback" not in codes:
        decision = router.decide(key=f"customer-{rng.randrange(300)}")
        codes.append(decision.code)
        router.record(decision.id, reward=float(rng.random() < (0.9 if len(codes) < 3000 else MEANS[decision.arm])))
        assert len(codes) < 10_000
    assert len(codes) > 3000
    text = str((router.rollout().fallback or {})["text"])
    assert text.startswith("the floor is broken beyond doubt, in later decisions of keys that came again, (p = ")
    router.move_rollout("canary")
    assert (router.rollout().keys, router.rollout().blocks) == (None, 0)


def test_what_is_shown_says_how_far_it_is() -> None:
    router = make(canary_share=0.5)
    assert "waits for outcomes of both groups" in router.rollout().text
    router.decide()
    clock = router.state.clock
    for _ in range(60):
        play(router, 1, seed=1)  # always a success
        clock.now += 10.0
    status = router.rollout().to_dict()
    assert status["waiting"] == 61
    clock.now += 3600.0
    router.expire()
    status = router.rollout().to_dict()
    assert json.loads(json.dumps(status)) == status
    assert status["waiting"] == 0
    assert status["routed"]["decisions"] + status["compared"]["decisions"] == 61
    assert status["outcomes_needed"] == 0 or status["days_needed"] > 0.0
    assert status["low"] <= status["difference"] <= status["high"]
