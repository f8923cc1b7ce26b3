"""Rollouts: how far one is, moving it on, and falling back to the baseline when the guardrail says so."""

import logging
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from thrifty.floor_test import FloorTest, GroupSums
from thrifty.router.changing import add_change, make_changes
from thrifty.router.settings import Settings
from thrifty.router.state import State
from thrifty.store.log import StoreError

if TYPE_CHECKING:
    from thrifty.router.router import Router

log = logging.getLogger("thrifty.router")

RETRY_S = 2.0
"""How long a replica waits for another one to write a fallback, and for its own to come back, before it writes one."""


@dataclass(frozen=True)
class RolloutGroup:
    """One group of a rollout, as far as the guardrail's test has come: decisions, those with a reward, and their mean."""

    group: str
    decisions: int
    outcomes: int
    mean: float | None


@dataclass(frozen=True)
class RolloutStatus:
    """How far a rollout is.

    `difference` is the estimate of what routing brings less the floor, (1 - alpha) times what the comparison group brings. `low`
    and `high` are ends that hold at all times at once, each with 95% (96% with keys): the floor is broken beyond doubt when `high`
    is below 0, and held when `low` is above 0. They are of the test over all decisions; one of the `blocks` may break the floor
    before it. `p`, the stronger of the two, may be looked at after every outcome. `waiting` are decisions whose outcome, or that of
    an earlier one, has not come.

    With keys, the test counts each key once: `keys` are those that it counted, `left_out` the decisions of keys that it had counted
    before, and `blocks` how often keys were counted anew to find harm that comes late. `keys` is None if no request had a key.
    `outcomes_needed`, `keys_needed` and `days_needed` are about how many more until it is known, if all goes on as it did, and new
    keys come as they did lately; None if that cannot be told. `version` is the router's, as a move may name it.
    """

    version: int
    mode: str
    share: float
    baseline: str
    guardrail: str
    alpha: float
    fallback: dict[str, Any] | None
    routed: RolloutGroup | None
    compared: RolloutGroup | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    waiting: int
    keys: int | None
    left_out: int
    blocks: int
    outcomes_needed: int | None
    keys_needed: int | None
    days_needed: float | None
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def __str__(self) -> str:
        return self.text


def rollout(router: "Router") -> RolloutStatus:
    """How far a rollout is: both groups, the floor test, and about how long it will take; print it, or take its `to_dict()`."""
    with router.lock:
        router.refresh()
        read = _reading(router.state)
    return read()


def _reading(state: State) -> Callable[[], RolloutStatus]:
    """What makes the status from copies, without the lock."""
    version, settings, fallback, seen = state.version, state.settings, state.configuration.fallback, _seen(state)
    return lambda: _status(version, settings, fallback, seen)


class _Seen(NamedTuple):
    """Copies of what a guardrail knows; `test` is None if nothing is compared."""

    test: FloorTest | None
    block: FloorTest | None
    compared: str
    waiting: int
    keys: int | None
    left_out: int
    blocks: int
    decisions: int  # lately: in the time `passed_s`
    counted: int  # of these
    passed_s: float


def _seen(state: State) -> _Seen:
    guardrail, main = state.guardrail, state.guardrail.main
    if main is None:
        return _Seen(None, None, "", 0, None, 0, 0, 0, 0, 0.0)
    block = None if guardrail.block is None else replace(guardrail.block.test)
    shown = guardrail.compared, guardrail.waiting, main.n_keys if main.keyed else None, main.left_out, guardrail.blocks
    since, decisions, counted = guardrail.began_at, main.test.decisions, main.test.decisions
    if main.keyed and guardrail.pace is not None:
        since, seen, taken = guardrail.pace
        decisions, counted = main.taken + main.left_out - seen, main.taken - taken
    return _Seen(replace(main.test), block, *shown, decisions, counted, max(state.clock.time() - since, 0.0))


def _status(version: int, settings: Settings, fallback: dict[str, Any] | None, seen: _Seen) -> RolloutStatus:
    test, compared = seen.test, seen.compared
    known = test is not None and test.routed.rewarded > 0 and test.compared.rewarded > 0
    found: dict[str, Any] = dict.fromkeys(("difference", "low", "high", "p", "outcomes_needed", "keys_needed", "days_needed"))
    if test is not None and known:
        low, high = test.interval()
        found |= {"difference": test.difference, "low": low, "high": high, "p": strongest(test, seen.block).p}
        if fallback is None:
            found |= _needed(test, seen)
    status = RolloutStatus(
        version=version,
        mode=settings.mode,
        share=settings.canary_share,
        baseline=settings.baseline,
        guardrail=settings.guardrail,
        alpha=settings.alpha,
        fallback=fallback,
        routed=None if test is None else _group("routed", test.routed),
        compared=None if test is None else _group(compared, test.compared),
        waiting=seen.waiting,
        keys=seen.keys,
        left_out=seen.left_out,
        blocks=seen.blocks,
        text="",
        **found,
    )
    return replace(status, text=_text(status, seen if known else None))


def _needed(test: FloorTest, seen: _Seen) -> dict[str, Any]:
    """How many more outcomes, keys and days it takes until it is known; at the pace of late."""
    needed = test.decisions_needed()
    found: dict[str, Any] = {"keys_needed": None if seen.keys is None else needed, "outcomes_needed": needed, "days_needed": None}
    if needed and not seen.counted:
        return {**found, "outcomes_needed": None}  # no new key came lately
    if needed is not None and seen.counted:
        found["outcomes_needed"] = round(needed * seen.decisions / seen.counted)
        found["days_needed"] = needed * seen.passed_s / seen.counted / 86_400.0 if seen.passed_s else None
    return found


def strongest(test: FloorTest, block: FloorTest | None) -> FloorTest:
    """The test with the smaller p-value."""
    return test if block is None or test.p <= block.p else block


def _group(name: str, sums: GroupSums) -> RolloutGroup:
    return RolloutGroup(name, sums.settled, sums.rewarded, sums.mean)


def _text(status: RolloutStatus, seen: _Seen | None) -> str:
    """How it stands, in words."""
    baseline = f"the baseline {status.baseline}" if status.baseline else "the baseline, the best arm known"
    if status.fallback is not None and status.mode != "shadow":
        return f"fallback: everything takes {baseline}, until a person moves the rollout on. {status.fallback['text']}"
    begin = {
        "shadow": "shadow: the caller keeps its own choice",
        "canary": f"canary: {status.share:.3g} of the keys are routed, the others take {baseline}",
        "live": "live: everything is routed, but for the holdout",
    }[status.mode]
    if status.compared is None:
        remedy = {
            "shadow": "nothing is compared in shadow mode",
            "canary": 'the guardrail is off: set guardrail to "canary"',
            "live": 'no guardrail watches: set a holdout of at least 0.001, and guardrail to "on"',
        }
        return f"{begin}; {remedy[status.mode]}"
    if seen is None or seen.test is None:
        return f"{begin}; the guardrail waits for outcomes of both groups ({status.waiting} decisions wait)"
    return f"{begin}; {_verdict(seen.test, seen.block, status)}"


def _verdict(test: FloorTest, block: FloorTest | None, status: RolloutStatus) -> str:
    compared, most = "" if status.compared is None else status.compared.group, strongest(test, block)
    if most.broken:
        return explain_break(most, compared, late=most is block)
    about = f"{_means(test, compared)}; the difference to the floor is {_interval(status)}{_counted(status)}"
    if test.held:
        return f"the floor is held beyond doubt: {about}"
    return f"not known yet whether the floor is held: {about}; {_more(status)}"


def _counted(status: RolloutStatus) -> str:
    if status.keys is None:
        return ""
    return f"; {status.keys:,} keys were counted, each once, and {status.left_out:,} later decisions of theirs left out"


def _more(status: RolloutStatus) -> str:
    """How long it will take, in words."""
    days = "" if status.days_needed is None else f", {status.days_needed:.3g} days"
    outcomes = "far more outcomes" if status.outcomes_needed is None else f"about {status.outcomes_needed:,} more outcomes{days}"
    if status.keys is None:
        return f"{outcomes} at this pace"
    if status.keys_needed is None:
        return "far more keys are needed"
    keys = f"about {status.keys_needed:,} more keys are needed"
    if status.outcomes_needed is None:
        return f"{keys}, and no new ones come"
    return f"{keys}, {outcomes} if new keys come as they did lately"


def explain_break(test: FloorTest, compared: str, *, late: bool = False) -> str:
    r"""Why the floor is broken beyond doubt, in words; `late` if it is by a test that counted keys anew.

    >>> test = FloorTest(0.05, 0.5)
    >>> for _ in range(2):
    ...     test.add(GroupSums(400, 400, 280.0, 280.0), GroupSums(400, 400, 360.0, 360.0))
    >>> print(explain_break(test, "holdout").replace(": ", ":\n"))
    the floor is broken beyond doubt (p = 4.9e-08):
    routed 0.7000 of 800 outcomes, floor 0.8550 = (1 - 0.05) x 0.9000 of 800 holdout outcomes
    """
    when = ", in later decisions of keys that came again," if late else ""
    return f"the floor is broken beyond doubt{when} (p = {test.p:.2g}): {_means(test, compared)}"


def _means(test: FloorTest, compared: str) -> str:
    routed, other = test.routed.mean or 0.0, test.compared.mean or 0.0
    floor = f"floor {(1.0 - test.alpha) * other:.4f} = (1 - {test.alpha:g}) x {other:.4f}"
    return f"routed {routed:.4f} of {test.routed.rewarded:,} outcomes, {floor} of {test.compared.rewarded:,} {compared} outcomes"


def _interval(status: RolloutStatus) -> str:
    return f"{status.difference or 0.0:+.4f} [{status.low or 0.0:+.4f}, {status.high or 0.0:+.4f}]"


def move_rollout(router: "Router", to: str, *, share: float | None = None, by: str = "", version: int | None = None) -> None:
    """Move the rollout to "shadow", "canary" or "live". This ends a fallback, and the guardrail begins anew.

    Parameters
    ----------
    to : the new mode
    share : of keys that are routed in a canary; default: as it was
    by : who asked, for the log
    version : of the router that the change is meant for; a ConflictError if it has changed since

    """

    def change(state: State) -> list[tuple[str, dict[str, Any]]]:
        wanted = replace(state.settings, mode=to, canary_share=state.settings.canary_share if share is None else share)
        return [("rollout", {"to": wanted.mode, "share": wanted.canary_share, "by": by})]

    make_changes(router, change, version=version)


def fall_back(router: "Router") -> None:
    """Log a fallback if the guardrail found the floor broken, unless another replica is about to. Called under the lock.

    The row has no effect if anything was changed before it: a person may have moved the rollout on, or another replica was faster.
    """
    state, journal = router.state, router.log.journal
    guardrail, now, shared = state.guardrail, state.clock.monotonic(), journal is not None and journal.shared
    main, block = guardrail.main, guardrail.block
    if guardrail.broken_by is None or main is None or state.configuration.deleted:
        return
    if router.fallback_due[0] != guardrail.stage:
        ours = not shared or guardrail.broken_by == state.replica
        router.fallback_due = guardrail.stage, now if ours else now + RETRY_S + state.replica % 4
    if now < router.fallback_due[1]:
        return
    router.fallback_due = guardrail.stage, now + RETRY_S
    test = strongest(main.test, None if block is None else block.test)
    text, at = explain_break(test, guardrail.compared, late=test is not main.test), state.clock.time()
    log.warning("a rollout falls back to its baseline", extra={"facts": {"router": router.name, "text": text}})
    with suppress(StoreError) if shared else nullcontext():  # a shared log that is away takes it later: this is tried again
        add_change(router, "fallback", {"at": at, "text": text, "by": "guardrail", "if_version": state.version}, None)
