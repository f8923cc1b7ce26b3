"""What the service needs of a router and of a store, in one place."""

from typing import Any

from thrifty.router import ACTIONS, ColdDecisionError, Router
from thrifty.router.decision import explain_code

_BACKGROUND: dict[str, Any] = {"background": True}

__all__ = ["ACTIONS", "ColdDecisionError", "Router", "explain_code"]


def reopen(name: str, store: Any) -> Router:
    """A router as its log left it."""
    return Router.reopen(name, store, **_BACKGROUND)


def create(name: str, store: Any, arms: dict[str, float | None], settings: dict[str, Any]) -> Router:
    """A new router; `settings` has alpha."""
    return Router(arms, store=store, name=name, **_BACKGROUND, **settings)


def is_responsive(router: Router) -> bool:
    """Whether `decide_soon` and `record_soon` return within microseconds."""
    return getattr(router, "responsive", True)


def failure_of(router: Router) -> str | None:
    """Why a router can no longer follow its log, if so."""
    return getattr(router, "failed", None)


def gauges_of(router: Router) -> dict[str, float]:
    """Numbers for the metrics, by name."""
    gauges = getattr(router, "gauges", None)
    return dict(gauges()) if gauges is not None else {"pending": router.pending, "segments": len(router.segments())}


def arms_of(router: Router) -> dict[str, Any]:
    """Arms by name with price and status, and which one is pinned."""
    arms = router.arms
    shown = {
        name: {"price": price, "status": status, "newcomer": arm in arms.newcomers}
        for arm, (name, price, status) in enumerate(zip(arms.names, arms.prices, arms.status, strict=True))
    }
    return {"arms": shown, "pinned": None if arms.pinned is None else arms.names[arms.pinned]}


def keys_required(store: Any) -> bool:
    """Whether a key was ever made in this store."""
    return bool(getattr(store, "keys_required", False))
