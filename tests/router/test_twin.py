"""The router against its twin: everything the interface allows, in any order; after every step both are the same.

THRIFTY_TWIN_STEPS says how many steps; rules run uncompiled, with the same bits.
"""

import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from tests.router import twin_input as given
from tests.router.pair import NAME, Pair
from thrifty.router import ColdDecisionError, Settings

STEPS = int(os.environ.get("THRIFTY_TWIN_STEPS", "2000"))
STEPS_A_RUN = 50


class RouterAndTwin(RuleBasedStateMachine):
    """Rules: what callers and operators do."""

    @initialize(arms=given.arm_prices, chosen=given.some_settings)
    def make(self, arms: dict[str, float | None], chosen: dict[str, Any]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="thrifty-twin-", dir=_fast_folder()))
        chosen = {"alpha": 0.125, "policy": "cs-ucb", "memory_bytes": 65_536, "deadline_s": 100.0, **chosen}
        if chosen["policy"] == "pe-cs":
            arms = {arm: price or 0.0 for arm, price in arms.items()}
        self.pair = Pair(self.folder, arms, chosen)
        self.twin = self.pair.twin
        self.ids: list[str] = []
        self.steps = 0

    def id_at(self, place: int) -> str:
        return self.ids[-1 - place % len(self.ids)] if self.ids else f"{NAME}.0.1"

    # -- deciding ----------------------------------------------------------------------------------------------------

    @rule(request=st.one_of(given.requests, given.requests, given.wrong_requests))
    def decide(self, request: dict[str, Any]) -> None:
        router = self.pair.router
        made = self.pair.both(lambda: router.decide(**request), lambda decision: self.twin.decided(decision, **request))
        if made is not None:
            self.ids.append(made.id)

    @rule(some=st.lists(given.requests, min_size=1, max_size=4), times=st.sampled_from([1, 1, 2, 30]))
    def decide_many(self, some: list[dict[str, Any]], times: int) -> None:
        asked = [{**each, "request_id": None} for each in some] * times
        for each in asked:
            if not set(each.get("eligible") or self.twin.arms) & {
                arm for arm, (_, status) in self.twin.arms.items() if status == "active"
            }:
                return  # refused; see `decide`
            if set(each.get("eligible") or ()) - set(self.twin.arms):
                return

        def expect(answers: list[Any]) -> None:
            for answer, each in zip(answers, asked, strict=True):
                self.twin.decided(answer, **each)

        made = self.pair.both(lambda: self.pair.router.decide_many(asked), expect)
        self.ids.extend(decision.id for decision in made)

    # -- learning ----------------------------------------------------------------------------------------------------

    @rule(place=given.places, outcome=st.one_of(given.outcomes, given.outcomes, given.outcomes, given.wrong_outcomes))
    def record(self, place: int, outcome: dict[str, Any]) -> None:
        self.tell(self.id_at(place), outcome)

    @rule(place=given.places, form=st.sampled_from(given.ODD_IDS), outcome=given.outcomes)
    def record_of_an_odd_id(self, place: int, form: str, outcome: dict[str, Any]) -> None:
        _, replica, sequence = self.id_at(place).split(".")
        arabic = "".join(chr(0x660 + int(digit)) if digit.isdecimal() else digit for digit in sequence)
        self.tell(form.format(name=NAME, replica=replica, sequence=sequence, arabic=arabic, upper=sequence.upper()), outcome)

    def tell(self, decision_id: str, outcome: dict[str, Any]) -> None:
        said = self.dated(outcome)
        self.pair.both(lambda: self.pair.router.record(decision_id, **said), lambda _: self.twin.record(decision_id, **said))

    def dated(self, outcome: dict[str, Any]) -> dict[str, Any]:
        return {**outcome, "occurred_at": self.pair.clock.time() + outcome["occurred_at"]} if "occurred_at" in outcome else outcome

    @rule(some=st.lists(st.tuples(given.places, given.outcomes), min_size=2, max_size=6))
    def record_many(self, some: list[tuple[int, dict[str, Any]]]) -> None:
        """Without waiting for each; whoever is not in memory is recorded the slow way."""
        told = [(self.id_at(place), self.dated(outcome)) for place, outcome in some]
        self.pair.both(
            lambda: [answer_of(self.record_soon, *each) for each in told],
            lambda _: [answer_of(self.twin.record, id, outcome) for id, outcome in told],
        )

    def record_soon(self, decision_id: str, **outcome: Any) -> str:
        try:
            answer, position = self.pair.router.record_soon(decision_id, **outcome)
        except ColdDecisionError:
            return self.pair.router.record(decision_id, **outcome)
        self.pair.router.wait(position)
        return answer

    @rule(place=given.places)
    def record_four_times_at_once(self, place: int) -> None:
        id = self.id_at(place)
        outcome: dict[str, Any] = {"reward": 1.0, "cost": 0.5}
        with ThreadPoolExecutor(4) as pool:
            self.pair.both(
                lambda: sorted(pool.map(lambda _: self.pair.router.record(id, **outcome), range(4))),
                lambda _: sorted([self.twin.record(id, **outcome) for _ in range(4)]),
            )

    # -- time --------------------------------------------------------------------------------------------------------

    @rule(seconds=given.times)
    def wait(self, seconds: float) -> None:
        self.pair.clock.passed += seconds
        self.pair.expire()

    @rule(seconds=given.times, request=given.requests, place=given.places, outcome=given.outcomes)
    def wait_and_call(self, seconds: float, request: dict[str, Any], place: int, outcome: dict[str, Any]) -> None:
        """A call that comes after deadlines, and before anybody asked for default outcomes."""
        self.pair.clock.passed += seconds
        self.tell(self.id_at(place), outcome)
        self.decide(request)
        self.pair.expire()

    # -- changing ----------------------------------------------------------------------------------------------------

    @rule(
        action=st.sampled_from(["add", "retire", "pause", "resume", "price", "reset", "pin", "unpin"]),
        arm=given.arm_names,
        price=given.prices,
    )
    def change(self, action: str, arm: str, price: float | None) -> None:
        self.change_arm(action, arm, price if action in ("add", "price") else None)

    @rule(said=st.sampled_from(given.WRONG_CHANGES))
    def change_all_or_wrongly(self, said: tuple[str, str | None, float | None]) -> None:
        self.change_arm(*said)

    def change_arm(self, action: str, arm: str | None, price: float | None) -> None:
        self.pair.both(
            lambda: self.pair.router.change(action, arm, price=price, by="ann"),
            lambda _: self.twin.change(action, arm, price=price, by="ann"),
        )

    @rule(arms=st.none() | given.arm_prices, chosen=given.some_settings)
    def configure(self, arms: dict[str, float | None] | None, chosen: dict[str, Any]) -> None:
        wanted = Settings(**{**self.twin.settings, **chosen})
        named = self.arms_now() if arms is None else arms
        self.pair.both(
            lambda: self.pair.router.configure(named, wanted, by="bob"),
            lambda _: self.twin.configure(named, wanted.to_dict(), by="bob"),
        )

    def arms_now(self) -> dict[str, float | None]:
        return {arm: price for arm, (price, status) in self.twin.arms.items() if status != "retired"}

    @rule(wrong=st.sampled_from(given.IMPOSSIBLE))
    def configure_impossibly(self, wrong: dict[str, Any]) -> None:
        def ask() -> None:
            self.pair.router.configure(self.arms_now(), Settings(**{**self.twin.settings, **wrong}))

        def refuse(_: Any) -> None:
            raise ValueError(wrong)

        self.pair.both(ask, refuse)

    # -- starting again ----------------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.0, 0.0, 10.0, 1000.0]))
    def restart(self, seconds: float) -> None:
        self.pair.restart(passed=seconds)

    @rule(seconds=st.sampled_from([0.0, 0.0, 10.0, 1000.0]))
    def kill(self, seconds: float) -> None:
        self.pair.kill(passed=seconds)

    @precondition(lambda self: self.steps > 5)
    @rule(age=given.times)
    def prune(self, age: float) -> None:
        self.pair.prune(self.pair.clock.time() - age)

    @precondition(lambda self: self.steps > 10)
    @rule(arms=given.arm_prices, chosen=given.some_settings)
    def delete_and_create(self, arms: dict[str, float | None], chosen: dict[str, Any]) -> None:
        chosen = {**self.twin.settings, **chosen}
        if chosen["policy"] == "pe-cs":
            arms = {arm: price or 0.0 for arm, price in arms.items()}
        self.pair.delete_and_create(arms, chosen)

    # -- comparing ---------------------------------------------------------------------------------------------------

    @invariant()
    def both_are_the_same(self) -> None:
        self.steps += 1
        self.pair.check()
        if self.steps % 10 == 0:
            self.pair.check_log()

    def teardown(self) -> None:
        """A router that was killed, and one that was stopped, come back as they were."""
        if not hasattr(self, "pair"):
            return
        try:
            if sys.exc_info()[0] is None:  # no step has failed
                self.pair.check_log()
                self.pair.kill()
                self.pair.check()
                self.pair.restart()
                self.pair.check()
        finally:
            self.pair.store.close()
            shutil.rmtree(self.folder)


def answer_of(record: Any, decision_id: str, outcome: dict[str, Any]) -> Any:
    """What it says, or how it refuses."""
    try:
        return record(decision_id, **outcome)
    except (ValueError, KeyError) as error:
        return ValueError if isinstance(error, ValueError) else KeyError


def _fast_folder() -> str | None:
    """Memory, where there is a file system of it: every step waits for a commit."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@pytest.fixture(autouse=True)
def _uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THRIFTY_COMPILE", "never")


def test_the_router_and_its_twin_are_the_same_whatever_is_done() -> None:
    run_state_machine_as_test(
        RouterAndTwin,
        settings=settings(
            max_examples=max(STEPS // STEPS_A_RUN, 1), stateful_step_count=STEPS_A_RUN, suppress_health_check=list(HealthCheck)
        ),
    )
