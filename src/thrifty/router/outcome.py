"""Outcomes: what a caller reports, as a row of the log."""

from math import isnan

from thrifty.router.records import (
    ARM,
    ARRIVED,
    MADE,
    OUTCOME_AT,
    OUTCOME_COST,
    OUTCOME_VALUE,
    PRICE,
    REPLICA,
    SEQUENCE,
    SETTLED,
    Numbers,
    number_or_none,
)
from thrifty.router.settings import checked_price
from thrifty.router.state import State
from thrifty.store.log import OUTCOME, Row

_new = tuple.__new__  # half the time of calling the class
_NUMBERS = (int, float)
_REWARDS = {"success": 1.0, "failure": 0.0, "void": None}


def checked_outcome(reward: float | None, status: str | None, cost: float | None) -> float | None:
    """The reward, or None for void.

    >>> checked_outcome(None, "success", None)
    1.0
    """
    if cost is None and status is None and type(reward) in _NUMBERS and 0.0 <= reward <= 1.0:  # type: ignore[operator] # nearly always
        return float(reward)  # type: ignore[arg-type]
    if (reward is None) == (status is None):
        raise ValueError("an outcome needs a reward in [0, 1] or a status of success, failure or void: one of the two")
    if cost is not None:
        checked_price("the outcome", cost)
    if status is not None:
        if status not in _REWARDS:
            raise ValueError(f"status must be one of success, failure, void, got {status!r:.80}")
        return _REWARDS[status]
    if isinstance(reward, bool) or not isinstance(reward, (int, float)) or not 0.0 <= reward <= 1.0:
        raise ValueError(f"reward must be a number in [0, 1], got {reward!r:.80}")
    return float(reward)


def checked_time(occurred_at: object) -> float:
    """Seconds since 1970; a ValueError for anything else."""
    if isinstance(occurred_at, bool) or not isinstance(occurred_at, (int, float)) or not abs(occurred_at) < 1e13:
        raise ValueError(f"occurred_at must be seconds since 1970, got {occurred_at!r:.80}")
    return float(occurred_at)


def outcome_row(
    state: State, numbers: Numbers, value: float | None, cost: float | None, arm: str | None, occurred_at: float | None
) -> Row | str:
    """The row that an outcome adds to the log, its code being the answer; or the answer where it adds none.

    `numbers` are those of the record of its decision. The cost of an earlier outcome still holds unless this one has another.
    """
    integers, floats, base = numbers
    arms, arrived, arm_before = state.arms, integers[base + SETTLED] == ARRIVED, integers[base + ARM]
    if occurred_at is not None and arrived and occurred_at < floats[base + OUTCOME_AT]:
        return "stale"
    used = arm_before if arm is None else arms.index(arm)
    name, again = arms.names[used], arrived and used == arm_before
    value_before, cost_before = floats[base + OUTCOME_VALUE], floats[base + OUTCOME_COST]
    if again:
        if value is None and isnan(value_before):
            return "duplicate"
        if cost is None and not isnan(value_before):
            cost = number_or_none(cost_before)
    if cost is None:
        cost = number_or_none(floats[base + PRICE]) if used == integers[base + MADE] else arms.prices[used]
    if cost is None and value is not None:
        raise ValueError(f"cost must come with the outcome of {name!r}, whose price is unknown")
    if again and number_or_none(value_before) == value and number_or_none(cost_before) == cost:
        return "duplicate"
    at, code = state.clock.time() if occurred_at is None else occurred_at, "corrected" if arrived else "recorded"
    return _new(Row, (OUTCOME, integers[base + REPLICA], integers[base + SEQUENCE], at, None, None, name, value, cost, code, None))


def default_row(state: State, slot: int) -> Row:
    """The outcome of a decision whose deadline has passed. An unknown price stays unknown."""
    records = state.records
    pending = records.get(slot, "sent") == 1 and records.get(slot, "seen") == 0
    value = 0.0 if state.settings.default_outcome == "failure" and pending else None
    arm, cost = state.arms.names[records.get(slot, "arm")], number_or_none(records.get(slot, "price"))
    replica, sequence = records.key_at(slot)
    return Row(OUTCOME, replica, sequence, state.clock.time(), None, None, arm, value, cost, "default", None)
