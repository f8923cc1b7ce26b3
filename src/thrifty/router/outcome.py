"""Outcomes: what a caller says came back, as a row of the log."""

from thrifty.router.sent import PENDING, Sent
from thrifty.router.settings import checked_price
from thrifty.router.state import State
from thrifty.store.row import OUTCOME, Row

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


def outcome_row(
    state: State, sent: Sent, value: float | None, cost: float | None, arm: str | None, occurred_at: float | None
) -> Row | str:
    """The row that an outcome adds to the log, its code being the answer; or the answer when it adds none.

    What an earlier outcome said the arm cost still holds, unless this one says otherwise.
    """
    roster, made, arrived = state.roster, sent.row, sent.arrived
    if arrived is None and arm is None and occurred_at is None and made.cost is not None:  # nearly always
        paid = made.cost if cost is None else cost
        return _new(
            Row, (OUTCOME, made.replica, made.sequence, state.clock(), None, None, made.arm, value, paid, "recorded", None)
        )  # fmt: skip
    if occurred_at is not None and arrived is not None and occurred_at < arrived.at:
        return "stale"
    used = sent.arm if arm is None else roster.index(arm)
    name = roster.names[used]
    if arrived is not None and arrived.arm == name:
        if value is None and arrived.value is None:
            return "duplicate"
        if cost is None and arrived.value is not None:
            cost = arrived.cost
    if cost is None:
        cost = sent.row.cost if name == sent.row.arm else roster.prices[used]
    if cost is None and value is not None:
        raise ValueError(f"cost must come with the outcome of {name!r}, whose price is unknown")
    if arrived is not None and arrived.arm == name and arrived.value == value and arrived.cost == cost:
        return "duplicate"
    code = "recorded" if arrived is None else "corrected"
    at = state.clock() if occurred_at is None else occurred_at
    return Row(OUTCOME, sent.row.replica, sent.row.sequence, at, None, None, name, value, cost, code, None)


def default_row(state: State, sent: Sent) -> Row:
    """What the deadline says of a decision without an outcome."""
    failed = state.settings.default_outcome == "failure" and sent.share is PENDING
    arm, paid = state.roster.names[sent.arm], sent.row.cost or 0.0
    row = sent.row
    return Row(OUTCOME, row.replica, row.sequence, state.clock(), None, None, arm, 0.0 if failed else None, paid, "default", None)
