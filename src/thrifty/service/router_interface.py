"""What the service needs of a router and of a store, in one place."""

from typing import Any

from thrifty.router import Router

# The new router's names, or those of the one before it.
try:
    from thrifty.router import ACTIONS, ColdDecisionError  # type: ignore[attr-defined]
    from thrifty.router.decision import explain_code  # type: ignore[attr-defined]

    _BACKGROUND: dict[str, Any] = {"background": True}
except ImportError:
    from thrifty.router.decision import say_why as explain_code
    from thrifty.router.roster import ACTIONS

    _BACKGROUND = {}

    class ColdDecisionError(LookupError):  # type: ignore[no-redef]
        """The decision is not in memory: `record` has to look into the log."""


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
    arms: Any = router.arms if hasattr(router, "arms") else router.roster
    shown = {
        name: {"price": price, "status": status, "newcomer": arm in arms.newcomers}
        for arm, (name, price, status) in enumerate(zip(arms.names, arms.prices, arms.status, strict=True))
    }
    return {"arms": shown, "pinned": None if arms.pinned is None else arms.names[arms.pinned]}


def keys_required(store: Any) -> bool:
    """Whether a key was ever made in this store."""
    return bool(getattr(store, "keys_required", False))
