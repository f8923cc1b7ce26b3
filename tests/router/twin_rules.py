"""What the twin knows without any state: which requests and changes are refused, what becomes of arms, what an export shows."""

import hashlib
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from thrifty.router.export import Line
from thrifty.store.log import CHANGE, DECISION, OUTCOME, Row

ACTIONS = ("add", "retire", "pause", "resume", "price", "reset", "pin", "unpin")
REWARDS = {"success": 1.0, "failure": 0.0, "void": None}
NEEDS_PRICES = ("cs-exp3", "pe", "pe-cs")
NOT_FOR_ROUTERS = ("oracle",)
LONGEST_WINDOW = 1_000_000
"""No machine of ours holds one of two thousand million; the machine tries nothing in between."""

Arms = dict[str, tuple[float | None, str]]
"""Price and status by name, in the order in which they came."""

Change = tuple[str, str | None, float | None]
"""An action, the arm and the price."""


def path_of(segment: str) -> list[str]:
    """A segment and those above it, up to the root.

    >>> path_of("DE/vodafone")
    ['DE/vodafone', 'DE', '']
    """
    parts = segment.split("/") if segment else []
    return ["/".join(parts[:depth]) for depth in range(len(parts), -1, -1)]


def parse_id(name: str, decision_id: str) -> tuple[int, int]:
    """Replica and sequence of a decision of the router `name`; a KeyError when the id is not written as ids are."""
    match = re.fullmatch(r"([A-Za-z0-9_-]{1,64})\.(0|[1-9a-f][0-9a-f]*)\.(0|[1-9a-f][0-9a-f]*)", decision_id)
    if match is None or match[1] != name:
        raise KeyError(decision_id)
    return int(match[2], 16), int(match[3], 16)


def number_or_none(value: float | None) -> float | None:
    """None for NaN, as the log has it."""
    return None if value is None or math.isnan(value) else value


def toss(router: str, key: str) -> float:
    """Where a key falls in a canary, between 0 and 1."""
    digest = hashlib.blake2b(router.encode() + b"\0" + key.encode(), digest_size=6).hexdigest()
    return int(digest, 16) / 16**12


def bucket(router: str, key: str) -> int:
    """What the log keeps of a key: 20 bits of another hash."""
    digest = hashlib.blake2b(router.encode() + b"\0" + key.encode(), digest_size=3, person=b"bucket").hexdigest()
    return int(digest[-5:], 16)


def is_price(price: Any) -> bool:
    """Whether a price, or None for an unknown one."""
    return price is None or (is_number(price) and 0.0 <= price <= 1e15)


def is_number(value: Any) -> bool:
    """Whether a number that a float can hold, and finite."""
    return not isinstance(value, bool) and isinstance(value, int | float) and abs(value) <= sys.float_info.max


def is_text(text: Any) -> bool:
    """Whether 1 to 200 printable characters."""
    return isinstance(text, str) and 0 < len(text) <= 200 and text.isprintable()


def check_outcome(reward: Any, status: Any, cost: Any, occurred_at: Any) -> float | None:
    """The reward, or None for void."""
    if (reward is None) == (status is None):
        raise ValueError("a reward or a status")
    if not is_price(cost):
        raise ValueError(f"a cost of {cost}")
    if occurred_at is not None and not is_number(occurred_at):
        raise ValueError(f"it occurred at {occurred_at}")
    if status is not None:
        if status not in REWARDS:
            raise ValueError(f"a status of {status}")
        return REWARDS[status]
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not 0.0 <= reward <= 1.0:
        raise ValueError(f"a reward of {reward}")
    return float(reward)


def active(arms: Arms) -> dict[str, float | None]:
    """Prices of the arms that may be chosen."""
    return {arm: price for arm, (price, status) in arms.items() if status == "active"}


def check_request(arms: Arms, segment: Any, eligible: Any, request_id: Any, context: Any) -> dict[str, float | None]:
    """The arms to choose from with their prices, in the order of the arms; a ValueError when the request is wrong."""
    if request_id is not None and not is_text(request_id):
        raise ValueError(f"a request_id of {request_id!r}")
    if segment != "" and not (is_text(segment) and all(part.strip() for part in segment.split("/"))):
        raise ValueError(f"a segment of {segment!r}")
    if context is not None and len(json.dumps(context, allow_nan=False)) > 10_000:
        raise ValueError("a context that is too long")
    prices = active(arms)
    if eligible is None:
        return prices
    given: dict[str, Any] = dict(eligible) if isinstance(eligible, Mapping) else dict.fromkeys(eligible)
    for arm, price in given.items():
        if arm not in arms or not (is_price(price) or arm not in prices):
            raise ValueError(f"{arm} at {price} is not eligible")
    if not set(given) & set(prices):
        raise ValueError("no active arm is eligible")
    return {arm: price if given[arm] is None else given[arm] for arm, price in prices.items() if arm in given}


def refusal(arms: Arms, action: str, arm: str | None, price: Any) -> str:
    """Why a change to an arm cannot be made; empty when it can."""
    status = arms.get(arm or "", (None, "unknown"))[1]
    if action not in ACTIONS:
        return f"no action {action}"
    if arm is None:
        return "" if action in ("reset", "unpin") else f"{action} which arm?"
    if action in ("add", "price") and not is_price(price):
        return f"a price of {price}"
    if action == "add":
        return "it is there" if status in ("active", "paused") else "" if is_text(arm) else f"a name of {arm!r}"
    if status == "unknown":
        return f"no arm {arm}"
    if action in ("retire", "pause") and list(active(arms)) == [arm]:
        return f"{arm} is the last active one"
    return f"{arm} is retired" if status == "retired" and action in ("pin", "pause", "price") else ""


def ineffective(arms: Arms, action: str, arm: str | None, _price: Any) -> str:
    """Why a change that a log may have is not made any more; empty when it is."""
    return f"{arm} is paused" if action == "pin" and arms[arm or ""][1] == "paused" else ""


def check_fallback(fallback: bool, before: dict[str, Any], after: dict[str, Any]) -> None:
    """A ValueError for settings that would change where a router has fallen back to."""
    if fallback and before["baseline"] != after["baseline"]:
        raise ValueError(f"fallen back to {before['baseline']!r}")


def check_known(known: Iterable[Any], before: dict[str, Any], after: dict[str, Any]) -> None:
    """A ValueError for a change to a policy that weighs outcomes by probabilities, which known outcomes have not."""
    if any(known) and before["policy"] != after["policy"] and after["policy"].startswith("cs-exp3"):
        raise ValueError(f"{after['policy']} after a start with known outcomes")


def changed(arms: Arms, action: str, arm: str | None, price: float | None) -> Arms:
    """The arms after a change that is not refused."""
    if arm is None or action in ("reset", "pin", "unpin"):
        return arms
    old, status = arms.get(arm, (None, "active"))
    status = {"add": "active", "resume": "active", "pause": "paused", "retire": "retired"}.get(action, status)
    return {**arms, arm: (price if action in ("add", "price") else old, status)}


def changed_all(arms: Arms, changes: Iterable[Change]) -> Arms:
    """The arms after several changes; a ValueError when one of them is refused."""
    for change in changes:
        why = refusal(arms, *change) or ineffective(arms, *change)
        if why:
            raise ValueError(why)
        arms = changed(arms, *change)
    return arms


def differences(arms: Arms, wanted: Mapping[str, float | None]) -> list[Change]:
    """The changes that leave the wanted arms at the wanted prices, additions first. A paused arm stays paused."""
    found: list[Change] = []
    for arm, price in wanted.items():
        old, status = arms.get(arm, (None, "retired"))
        if status == "retired":
            found.append(("add", arm, price))
        elif old != price:
            found.append(("price", arm, price))
    return [*found, *(("retire", arm, None) for arm, (_, status) in arms.items() if arm not in wanted and status != "retired")]


def check_works(arms: Arms, settings: dict[str, Any]) -> None:
    """A ValueError when the policy cannot work with these arms."""
    name, _, forgetting = settings["policy"].partition("+")
    name, prices = name.partition(":")[0], active(arms)
    baseline = settings["baseline"]
    if baseline and arms.get(baseline, (None, "retired"))[1] == "retired":
        raise ValueError(f"no baseline {baseline}")
    if name in NOT_FOR_ROUTERS:
        raise ValueError(f"{name} needs to know the truth")
    if name in NEEDS_PRICES and None in prices.values():
        raise ValueError(f"{name} needs all prices")
    if forgetting.startswith("window=") and not len(prices) <= int(forgetting[7:]) <= LONGEST_WINDOW:
        raise ValueError(f"{forgetting} for {len(prices)} arms")


def export(rows: Iterable[Row], name: str) -> Iterator[Line]:
    """One line per decision of a log."""
    rows = list(rows)
    last: dict[tuple[int, int], Row] = {}
    corrections: dict[tuple[int, int], int] = {}
    for row in rows:
        key = row.replica, row.sequence
        if row.kind == OUTCOME and (row.code != "default" or key not in last):
            last[key] = row
            corrections[key] = corrections.get(key, 0) + (row.code == "corrected")
    arms: Arms = {}
    settings: dict[str, Any] = {}
    for row in [each for several in rows for each in _single(several)]:
        detail = json.loads(row.detail or "{}")
        if row.kind == CHANGE:
            if row.code == "create":
                arms = {arm: (price, "active") for arm, price in detail["arms"].items()}
            if row.code in ("create", "settings"):
                settings = detail.get("settings", detail)
            if row.code == "rollout":
                settings = {**settings, "mode": detail["to"], "canary_share": detail["share"]}
            if row.code in ACTIONS:
                arms = changed(arms, row.code, detail["arm"], detail["price"])
        if row.kind == DECISION:
            key = row.replica, row.sequence
            yield _line(row, name, detail, settings, active(arms), last.get(key), corrections.get(key, 0))


def _single(row: Row) -> list[Row]:
    """The changes of a row that makes several at once."""
    if row.kind != CHANGE or row.code != "changes":
        return [row]
    return [row._replace(code=action, detail=json.dumps(body)) for action, body in json.loads(str(row.detail))["changes"]]


def _line(
    row: Row,
    name: str,
    detail: dict[str, Any],
    settings: dict[str, Any],
    prices: dict[str, float | None],
    last: Row | None,
    corrections: int,
) -> Line:
    eligible = dict(detail["eligible"]) if "eligible" in detail else prices
    return Line(
        router=name,
        decision_id=f"{name}.{row.replica:x}.{row.sequence:x}",
        at=row.at,
        segment=row.segment or "",
        request_id=row.request_id,
        arm=str(row.arm),
        propensity=row.value,
        price=row.cost,
        code=row.code,
        shadow=detail.get("shadow", False),
        degraded=detail.get("degraded", False),
        alpha=settings["alpha"],
        policy=settings["policy"],
        eligible=json.dumps(eligible),
        context=json.dumps(detail["context"]) if "context" in detail else None,
        outcome="none" if last is None else last.code,
        outcome_at=None if last is None else last.at,
        used_arm=None if last is None else last.arm,
        reward=None if last is None else last.value,
        cost=None if last is None else last.cost,
        void=last is not None and last.value is None and last.code != "default",
        corrections=corrections,
        holdout=settings["holdout"],
    )
