"""Changes of a router in plain sentences."""

from typing import Any

Aspect = tuple[str, str | None]
"""A part of the configuration: ("status", arm), ("price", arm), ("pin", None) or ("setting", name)."""

Values = dict[Aspect, Any]

CHANGED = {"add": "added", "retire": "retired", "pause": "paused", "resume": "resumed", "pin": "pinned"}
"""What an arm is after an action."""


def aspect_text(aspect: Aspect) -> str:
    """What a part of the configuration is called.

    >>> aspect_text(("price", "beta-sms"))
    'the price of beta-sms'
    """
    kind, name = aspect
    return {"status": f"arm {name}", "price": f"the price of {name}", "pin": "the pin", "setting": f"{name}"}[kind]


def exact(value: float) -> str:
    """A number as somebody wrote it: whoever confirms a change must see all of its digits.

    >>> exact(0.00412345), exact(1234567.5), exact(0.1 + 0.2)
    ('0.00412345', '1234567.5', '0.3')
    """
    return f"{value:.15g}"


def change_text(
    action: str, singles: list[tuple[str, dict[str, Any]]], before: Values, after: Values, *, undoes: int | None = None
) -> str:
    """A change in one sentence, from the values of what it concerns before and after.

    >>> change_text("pause", [("pause", {"arm": "a", "price": None})], {("status", "a"): "active"}, {("status", "a"): "paused"})
    'a was paused'
    """
    texts = [_single_text(each, body, before, after) for each, body in singles]
    text = "; ".join(texts) or f"{action} had no effect: another change came first"
    return text if undoes is None else f"change {undoes} was undone: {text}"


def _single_text(action: str, body: dict[str, Any], before: Values, after: Values) -> str:
    arm = body.get("arm")
    if action in ACTION_TEXTS:
        return ACTION_TEXTS[action]
    if action == "settings":
        pairs = [(name, value, after[kind, name]) for (kind, name), value in before.items() if kind == "setting"]
        changed = [f"{name} was changed from {_plain(old)} to {_plain(new)}" for name, old, new in pairs if old != new]
        return ", ".join(changed) or "settings were written again as they were"
    if action == "create":
        known = body.get("known")
        start = f", and started with known outcomes of {known['source']}" if known else ""
        return f"the router was made with {len(body['arms'])} arms and alpha {_plain(body['settings'].get('alpha'))}{start}"
    if action == "rollout":
        share = f" of {body['share']:.3g} of the keys" if body["to"] == "canary" else ""
        return f"the rollout was moved to {body['to']}{share}"
    if action == "fallback":
        return f"the router fell back to its baseline: {body['text']}"
    if action == "price":
        return f"the price of {arm} was changed from {_price(before.get(('price', arm)))} to {_price(body['price'])}"
    if action == "add":
        return f"{arm} was added at {_price(body['price'])}"
    if action == "reset":
        return f"the statistics of {'all arms' if arm is None else arm} were reset"
    if action == "unpin":
        pinned = before.get(("pin", None))
        return "no arm was pinned, and none is" if pinned is None else f"{pinned} is pinned no more"
    if action == "graduate":
        return f"{arm} is a newcomer no more"
    if action not in CHANGED:
        return action
    unpinned = action in ("pause", "retire") and before.get(("pin", None)) == arm
    return f"{arm} was {CHANGED[action]}{', so it is pinned no more' if unpinned else ''}"


ACTION_TEXTS: dict[str, str] = {"delete": "the router was deleted", "declare": "the configuration file declared this"}
"""Sentences of changes that say all by their name."""


def inverse_text(arms: tuple[tuple[str, str | None, float | None], ...], settings: dict[str, Any]) -> str:
    """What an undo would do.

    >>> inverse_text((("resume", "a", None), ("price", "b", 0.2)), {"alpha": 0.05})
    'resume a; set the price of b to 0.2; set alpha to 0.05'
    """
    texts = [_order_text(action, arm, price) for action, arm, price in arms]
    return "; ".join([*texts, *(f"set {name} to {_plain(value)}" for name, value in settings.items())])


def _order_text(action: str, arm: str | None, price: float | None) -> str:
    if action == "price":
        return f"set the price of {arm} to {_price(price)}"
    return action if arm is None else f"{action} {arm}"


def _plain(value: Any) -> str:
    return exact(value) if isinstance(value, float) else str(value) or "none"


def _price(price: float | None) -> str:
    return "unknown" if price is None else exact(price)
