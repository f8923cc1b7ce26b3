"""The calls of those who run a service: routers, levers, what is known, keys. `thrifty.client.calls` has those of its traffic."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from thrifty.actions import Action, checked_action
from thrifty.client.call import Call


def put_router(
    name: str, arms: Mapping[str, float | None], alpha: float, *, version: int | None = None, **settings: Any
) -> Call[dict[str, Any]]:
    """Create a router, or give it these arms (prices by name, None where unknown), this alpha and these settings.

    With `version`, only if the router has not been changed since.

    >>> put_router("sms", {"a": 0.1}, 0.05, policy="cs-ts").body
    {'arms': {'a': 0.1}, 'alpha': 0.05, 'policy': 'cs-ts'}
    """
    body = {"arms": dict(arms), "alpha": alpha, **settings}
    return Call("PUT", _versioned(name, version), _same, body, idempotent=version is None, budget="admin")


def router(name: str) -> Call[dict[str, Any]]:
    """A router with its arms and settings."""
    return Call("GET", _router(name), _same)


def routers() -> Call[list[str]]:
    """The names of all routers."""
    return Call("GET", "/v1/routers", lambda answer: list(answer["routers"]))


def drift() -> Call[dict[str, Any]]:
    """How routers differ from the configuration file of the service: fields, what is declared, what is, who set it and when."""
    return Call("GET", "/v1/drift", _same)


def alerts(limit: int = 100) -> Call[list[dict[str, Any]]]:
    """The newest alerts of the service, the newest first; `until` is None for those that last.

    >>> alerts(5).path
    '/v1/alerts?limit=5'
    """
    return Call("GET", f"/v1/alerts?limit={limit}", lambda answer: list(answer["alerts"]))


def budget(router: str) -> Call[dict[str, Any]]:
    """What a router has spent today (UTC), what is to be expected until midnight, and whether `daily_budget` can be kept.

    >>> budget("sms").path
    '/v1/routers/sms/budget'
    """
    return Call("GET", f"{_router(router)}/budget", _same)


def delete_router(name: str, *, version: int | None = None) -> Call[None]:
    """Take a router out of service; its log stays. With `version`, only if the router has not been changed since.

    >>> delete_router("sms", version=12).path
    '/v1/routers/sms?version=12'
    """
    again = version is None  # a second one with a version would be refused because of the first
    return Call("DELETE", _versioned(name, version), _nothing, idempotent=again, budget="admin", deletes=again)


def change(
    router: str, action: Action, arm: str, *, price: float | None = None, version: int | None = None
) -> Call[dict[str, Any]]:
    """Add, retire, pause, resume, price, reset, pin or unpin an arm. Returns the router.

    `price` is for add and price, None if it is unknown. With `version`, only if the router has not been changed since.

    >>> change("sms", "add", "new route", price=0.003).path
    '/v1/routers/sms/arms/new%20route:add'
    """
    checked_action(action)
    body = {name: value for name, value in (("price", price), ("version", version)) if value is not None or name == action}
    return Call("POST", f"{_router(router)}/arms/{quote(arm, safe='')}:{action}", _same, body, idempotent=False, budget="admin")


def set_alpha(router: str, alpha: float, *, version: int | None = None) -> Call[dict[str, Any]]:
    """Change alpha and leave all other settings. With `version`, only if the router has not been changed since. Returns the router.

    >>> set_alpha("sms", 0.08, version=3).body
    {'alpha': 0.08, 'version': 3}
    """
    body = {"alpha": alpha} if version is None else {"alpha": alpha, "version": version}
    return Call("POST", f"{_router(router)}/alpha", _same, body, idempotent=False, budget="admin")


def preview(
    router: str, action: str, arm: str | None = None, *, price: float | None = None, alpha: float | None = None, segment: str = ""
) -> Call[dict[str, Any]]:
    """What a change would do to choice, quality and cost; nothing is changed. `action` is one of `change`, or "alpha".

    >>> preview("sms", "alpha", alpha=0.08).body
    {'action': 'alpha', 'segment': '', 'alpha': 0.08}
    """
    given = {"arm": arm, "price": price, "alpha": alpha}
    kept = {name: value for name, value in given.items() if value is not None or name == action == "price"}
    body = {"action": action, "segment": segment, **kept}
    return Call("POST", f"{_router(router)}/preview", _same, body)


def changes(router: str, limit: int = 50, *, before: int | None = None) -> Call[list[dict[str, Any]]]:
    """The newest changes of a router, newest first; `before` a position of the log for older ones.

    >>> changes("sms", 10, before=400).path
    '/v1/routers/sms/changes?limit=10&before=400'
    """
    query = f"limit={limit:d}" if before is None else f"limit={limit:d}&before={before:d}"
    return Call("GET", f"{_router(router)}/changes?{query}", lambda answer: list(answer["changes"]))


def undo(router: str, position: int, *, version: int | None = None) -> Call[dict[str, Any]]:
    """Undo the change at a position, by another change. Returns the router.

    >>> undo("sms", 17).body
    {'position': 17}
    """
    body = {"position": position} if version is None else {"position": position, "version": version}
    return Call("POST", f"{_router(router)}/undo", _same, body, idempotent=False, budget="admin")


def overview() -> Call[dict[str, Any]]:
    """All routers at a glance."""
    return Call("GET", "/v1/overview", _same)


def rollout(router: str) -> Call[dict[str, Any]]:
    """How far the rollout of a router is: both groups, the floor test, and whether it fell back."""
    return Call("GET", f"{_router(router)}/rollout", _same)


def move_rollout(router: str, to: str, *, share: float | None = None, version: int | None = None) -> Call[dict[str, Any]]:
    """Move a rollout to "shadow", "canary" (of this share of keys) or "live"; this ends a fallback.

    >>> move_rollout("sms", "canary", share=0.1).body
    {'to': 'canary', 'share': 0.1}
    """
    given = {"to": to, "share": share, "version": version}
    body = {name: value for name, value in given.items() if value is not None}
    return Call("POST", f"{_router(router)}/rollout", _same, body, idempotent=False, budget="admin")


def segments(router: str) -> Call[list[str]]:
    """The segments that a router has seen."""
    return Call("GET", f"{_router(router)}/segments", lambda answer: list(answer["segments"]))


def segment_table(
    router: str, *, search: str = "", sort: str = "-decisions", limit: int = 50, offset: int = 0
) -> Call[dict[str, Any]]:
    """The segments of a router as a table: `segments` has the rows, `total` says how many there are.

    >>> segment_table("sms", search="DE/", limit=10).path
    '/v1/routers/sms/segments?details=1&search=DE%2F&sort=-decisions&limit=10&offset=0'
    """
    query = f"details=1&search={quote(search, safe='')}&sort={quote(sort, safe='')}&limit={limit:d}&offset={offset:d}"
    return Call("GET", f"{_router(router)}/segments?{query}", _same)


def explain(router: str, segment: str = "") -> Call[dict[str, Any]]:
    """What the service knows about a segment, by default about the whole router.

    >>> explain("sms", "DE/vodafone").path
    '/v1/routers/sms/segments/DE/vodafone'
    """
    path = f"{_router(router)}/segments"
    if not segment:
        return Call("GET", path, lambda answer: dict(answer["all"]))
    return Call("GET", f"{path}/{quote(segment, safe='/')}", _same)


def history(
    router: str,
    *,
    step: str = "minute",
    since: float | None = None,
    until: float | None = None,
    segment: str = "",
    by: Sequence[str] = ("arm",),
) -> Call[dict[str, Any]]:
    """Decisions, outcomes, rewards and costs of a router per minute, hour or day, as rows.

    Parameters
    ----------
    step : "minute", "hour" or "day"
    since, until : seconds since 1970; by default the last 120 minutes, 72 hours or 90 days
    segment : only this segment and those below it
    by : which of segment, arm and group to keep apart; all others are added up

    >>> history("sms", step="day", by=["arm", "group"]).path
    '/v1/routers/sms/history?step=day&by=arm%2Cgroup'

    """
    asked = {"step": step, "since": since, "until": until, "segment": segment or None, "by": ",".join(by)}
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    return Call("GET", f"{_router(router)}/history?{query}", _same)


def keys() -> Call[list[dict[str, Any]]]:
    """The keys that were not revoked: names, roles, and when they were made, last used and expire; never the keys themselves."""
    return Call("GET", "/v1/keys", lambda answer: list(answer["keys"]))


def add_key(name: str, role: str = "decide,outcome", *, days: float | None = None) -> Call[str]:
    """A new key, which the service shows this once and keeps as a digest.

    Parameters
    ----------
    role : roles separated by commas
    days : until it expires; None for never

    >>> add_key("shop", days=90).body
    {'name': 'shop', 'role': 'decide,outcome', 'days': 90}

    """
    body = {"name": name, "role": role} if days is None else {"name": name, "role": role, "days": days}
    return Call("POST", "/v1/keys", lambda answer: str(answer["key"]), body, idempotent=False)


def revoke_keys(name: str) -> Call[None]:
    """Make all keys of a name invalid."""
    return Call("DELETE", f"/v1/keys/{quote(name, safe='')}", _nothing, deletes=True)


def health() -> Call[str]:
    """ "ok" if the process of the service is alive."""  # noqa: D210
    return Call("GET", "/healthz", str.strip, text=True, probe=True)


def ready() -> Call[str]:
    """What the service says of itself if it can decide: "ready", or "degraded" while its store is away."""
    return Call("GET", "/readyz", str.strip, text=True, probe=True)


def metrics() -> Call[str]:
    """The metrics, as text for Prometheus."""
    return Call("GET", "/metrics", str, text=True)


def _versioned(name: str, version: int | None) -> str:
    return _router(name) if version is None else f"{_router(name)}?version={version:d}"


def _router(name: str) -> str:
    return f"/v1/routers/{quote(name, safe='')}"


def _same(answer: Any) -> dict[str, Any]:
    return dict(answer)


def _nothing(_answer: Any) -> None:
    return None
