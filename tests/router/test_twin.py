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

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from tests.router import twin_input as given
from tests.router.pair import NAME, Pair
from thrifty.router import ColdDecisionError, Settings

STEPS = int(os.environ.get("THRIFTY_TWIN_STEPS", "2000"))
STEPS_A_RUN = 50


class RouterAndTwin(RuleBasedStateMachine):
    """Rules: what callers and operators do."""

    @initialize(arms=given.arm_prices, chosen=given.some_settings, known=st.lists(given.known_outcomes, max_size=3))
    def make(self, arms: dict[str, float | None], chosen: dict[str, Any], known: list[dict[str, Any]]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="thrifty-twin-", dir=_fast_folder()))
        usual = {"alpha": 0.125, "policy": "cs-ucb", "memory_bytes": 65_536, "deadline_s": 100.0, "propensity_draws": 4}
        chosen = {**usual, **chosen}
        prices, possible_settings = possible(arms, chosen)
        start = {(each["segment"], each["arm"]): each for each in known if each["arm"] in prices}
        if start and chosen["policy"] != "cs-exp3" and chosen.get("max_segments", 9) > 8:
            possible_settings["known"] = {"source": "before", "outcomes": list(start.values())}
        self.pair = Pair(self.folder, prices, possible_settings)
        self.twin = self.pair.twin
        self.ids: list[str] = []
        self.steps = 0

    def id_at(self, place: int) -> str:
        return self.ids[-1 - place % len(self.ids)] if self.ids else f"{NAME}.0.1"

    # -- deciding ----------------------------------------------------------------------------------------------------

    @rule(some=st.lists(st.tuples(given.requests, given.places, st.none() | given.outcomes), min_size=1, max_size=10))
    def decide_and_record(self, some: list[tuple[dict[str, Any], int, dict[str, Any] | None]]) -> None:
        """What a router does most of the time: outcomes come in any order, and some never."""
        for request, place, outcome in some:
            self.decide(request)
            if outcome is not None:
                self.tell(self.id_at(place), self.dated(outcome))
            self.pair.check()

    def decide(self, request: dict[str, Any]) -> None:
        self.ask(self.named(request))

    def ask(self, asked: dict[str, Any]) -> None:
        made = self.pair.both(lambda: self.pair.router.decide(**asked), lambda decision: self.twin.decided(decision, **asked))
        if made is not None:
            self.ids.append(made.id)

    def named(self, request: dict[str, Any]) -> dict[str, Any]:
        """A request whose eligible arms have names instead of numbers."""
        eligible, names = request.get("eligible"), list(self.twin.arms)
        if isinstance(eligible, dict):
            return {**request, "eligible": {arm_of(names, number): price for number, price in eligible.items()}}
        return request if eligible is None else {**request, "eligible": [arm_of(names, number) for number in eligible]}

    @rule(some=st.lists(given.requests, min_size=1, max_size=4), times=st.sampled_from([1, 2, 30]))
    def decide_many(self, some: list[dict[str, Any]], times: int) -> None:
        """Enough that some leave memory."""
        asked = [{name: value for name, value in each.items() if name in ("segment", "context")} for each in some] * times

        def expect(answers: list[Any]) -> None:
            for answer, each in zip(answers, asked, strict=True):
                self.twin.decided(answer, **each)

        made = self.pair.both(lambda: self.pair.router.decide_many(asked), expect)
        self.ids.extend(decision.id for decision in made)

    # -- learning ----------------------------------------------------------------------------------------------------

    def tell(self, decision_id: str, said: dict[str, Any]) -> None:
        self.pair.both(lambda: self.pair.router.record(decision_id, **said), lambda _: self.twin.record(decision_id, **said))

    def dated(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """An outcome with a name instead of the number of an arm, and a time instead of an age."""
        said = dict(outcome)
        if "occurred_at" in said:
            said["occurred_at"] += self.pair.clock.time()
        if isinstance(said.get("arm"), int):
            said["arm"] = arm_of(list(self.twin.arms), said["arm"])
        return said

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
        self.tell(self.id_at(place), self.dated(outcome))
        self.decide(request)
        self.pair.expire()

    # -- changing ----------------------------------------------------------------------------------------------------

    @rule(some=st.lists(given.changes, min_size=1, max_size=3))
    def change(self, some: list[tuple[str, str | None, float | None]]) -> None:
        for action, arm, price in some:
            self.pair.both(
                lambda: self.pair.router.change(action, arm, price=price, by="ann"),  # noqa: B023
                lambda _: self.twin.change(action, arm, price=price, by="ann"),  # noqa: B023
            )

    @rule(arms=st.none() | given.arm_prices, chosen=given.some_settings)
    def configure(self, arms: dict[str, float | None] | None, chosen: dict[str, Any]) -> None:
        wanted = Settings(**{**self.twin.settings, **chosen})
        named = self.arms_now() if arms is None else arms
        self.pair.both(
            lambda: self.pair.router.configure(named, wanted, by="bob"),
            lambda _: self.twin.configure(named, wanted.to_dict(), by="bob"),
        )

    @precondition(lambda self: self.twin.known)
    @rule()
    def weigh_outcomes(self) -> None:
        """A policy that cannot use what is known."""
        wanted = Settings(**{**self.twin.settings, "policy": "cs-exp3"})
        self.pair.both(
            lambda: self.pair.router.configure(self.arms_now(), wanted),
            lambda _: self.twin.configure(self.arms_now(), wanted.to_dict()),
        )
        assert self.twin.settings["policy"] != "cs-exp3"

    @rule(to=st.sampled_from(["live", "canary", "canary", "shadow", "odd"]), share=st.sampled_from([None, 0.25, 0.5, 0.0]))
    def move_rollout(self, to: str, share: float | None) -> None:
        self.pair.both(
            lambda: self.pair.router.move_rollout(to, share=share, by="ann"),
            lambda _: self.twin.move_rollout(to, share=share, by="ann"),
        )

    @rule(some=st.lists(st.sampled_from([0, 1]), min_size=20, max_size=40))
    def play(self, some: list[int]) -> None:
        """Enough outcomes that a guardrail may say something: the baseline succeeds, others seldom do."""
        for luck in some:
            self.ask({})
            code = self.twin.decisions[max(self.twin.decisions)].row.code if self.twin.decisions else ""
            self.tell(self.id_at(0), {"reward": 1.0 if code in ("baseline", "holdout") else luck * 0.25, "cost": 0.25})

    def arms_now(self) -> dict[str, float | None]:
        return {arm: price for arm, (price, status) in self.twin.arms.items() if status != "retired"}

    # -- what is refused ---------------------------------------------------------------------------------------------

    @rule(
        request=given.wrong_requests,
        outcome=given.wrong_outcomes,
        other=given.outcomes,
        place=given.places,
        form=st.sampled_from(given.ODD_IDS),
        wrong=st.sampled_from(given.IMPOSSIBLE),
    )
    def ask_wrongly(
        self, request: dict[str, Any], outcome: dict[str, Any], other: dict[str, Any], place: int, form: str, wrong: dict[str, Any]
    ) -> None:
        """A wrong request, a wrong outcome, an odd id and settings that cannot work leave nothing behind."""
        self.ask(request)
        self.tell(self.id_at(place), outcome)
        _, replica, sequence = self.id_at(place).split(".")
        arabic = "".join(chr(0x660 + int(digit)) if digit.isdecimal() else digit for digit in sequence)
        self.tell(
            form.format(name=NAME, replica=replica, sequence=sequence, arabic=arabic, upper=sequence.upper()), self.dated(other)
        )

        def refuse(_: Any) -> None:
            raise ValueError(wrong)

        settings = {**self.twin.settings, **wrong}
        self.pair.both(lambda: self.pair.router.configure(self.arms_now(), Settings(**settings)), refuse)

    # -- starting again ----------------------------------------------------------------------------------------------

    @rule(how=st.sampled_from([Pair.restart, Pair.kill]), seconds=st.sampled_from([0.0, 0.0, 10.0, 1000.0]))
    def start_again(self, how: Any, seconds: float) -> None:
        how(self.pair, passed=seconds)

    @rule(arms=st.none() | given.arm_prices, chosen=given.some_settings)
    def start_again_as(self, arms: dict[str, float | None] | None, chosen: dict[str, Any]) -> None:
        self.pair.restart_as(self.arms_now() if arms is None else arms, {**self.twin.settings, **chosen})

    @precondition(lambda self: self.steps > 5)
    @rule(age=given.times, create=st.booleans(), arms=given.arm_prices, chosen=given.some_settings)
    def prune_or_create(self, age: float, create: bool, arms: dict[str, float | None], chosen: dict[str, Any]) -> None:
        if create:
            self.pair.delete_and_create(*possible(arms, {**self.twin.settings, **chosen}))
        else:
            self.pair.prune(self.pair.clock.time() - age)

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


SHRINK = os.environ.get("THRIFTY_TWIN_SHRINK") == "1"
"""Whether a failure is made as short as possible, which can take many minutes."""


def arm_of(names: list[str], number: int) -> str:
    """An arm by its number, whatever their number."""
    return names[number % len(names)]


def possible(arms: dict[str, float | None], chosen: dict[str, Any]) -> tuple[dict[str, float | None], dict[str, Any]]:
    """Arms and settings that fit each other: this policy needs all prices, and a baseline is an arm."""
    chosen = {**chosen, "baseline": chosen["baseline"] if chosen.get("baseline") in arms else ""}
    return ({arm: price or 0.0 for arm, price in arms.items()} if chosen["policy"] == "pe-cs" else arms), chosen


def answer_of(record: Any, decision_id: str, outcome: dict[str, Any]) -> Any:
    """What it says, or how it refuses."""
    try:
        return record(decision_id, **outcome)
    except (ValueError, KeyError) as error:
        return ValueError if isinstance(error, ValueError) else KeyError


def _fast_folder() -> str | None:
    """Memory, where there is a file system of it: every step waits for a commit."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def test_the_router_and_its_twin_are_the_same_whatever_is_done() -> None:
    run_state_machine_as_test(
        RouterAndTwin,
        settings=settings(
            max_examples=max(STEPS // STEPS_A_RUN, 1),
            stateful_step_count=STEPS_A_RUN,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink] if SHRINK else [Phase.generate],
            report_multiple_bugs=SHRINK,
        ),
    )
