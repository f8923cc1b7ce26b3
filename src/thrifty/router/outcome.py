"""Outcomes: what a caller says came back, as a row of the log."""

from math import isnan

from thrifty.router.sent import ARRIVED, Sent, number_or_none
from thrifty.router.settings import checked_price
from thrifty.router.state import State
from thrifty.store.log import OUTCOME, Row

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


def outcome_row(
    state: State, sent: Sent, value: float | None, cost: float | None, arm: str | None, occurred_at: float | None
) -> Row | str:
    """The row that an outcome adds to the log, its code being the answer; or the answer when it adds none.

    What an earlier outcome said the arm cost still holds, unless this one says otherwise.
    """
    roster, arrived = state.roster, sent.settled == ARRIVED
    if occurred_at is not None and arrived and occurred_at < sent.said_at:
        return "stale"
    used = sent.arm if arm is None else roster.index(arm)
    name, again = roster.names[used], arrived and used == sent.arm
    if again:
        if value is None and isnan(sent.said_value):
            return "duplicate"
        if cost is None and not isnan(sent.said_value):
            cost = number_or_none(sent.said_cost)
    if cost is None:
        cost = number_or_none(sent.price) if used == sent.made else roster.prices[used]
    if cost is None and value is not None:
        raise ValueError(f"cost must come with the outcome of {name!r}, whose price is unknown")
    if again and number_or_none(sent.said_value) == value and number_or_none(sent.said_cost) == cost:
        return "duplicate"
    at = state.clock() if occurred_at is None else occurred_at
    return Row(
        OUTCOME, sent.replica, sent.sequence, at, None, None, name, value, cost, "corrected" if arrived else "recorded", None
    )


def default_row(state: State, sent: Sent) -> Row:
    """What the deadline says of a decision without an outcome."""
    value = 0.0 if state.settings.default_outcome == "failure" and sent.is_pending else None
    arm, paid = state.roster.names[sent.arm], number_or_none(sent.price) or 0.0
    return Row(OUTCOME, sent.replica, sent.sequence, state.clock(), None, None, arm, value, paid, "default", None)
