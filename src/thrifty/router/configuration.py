"""The configuration of a router, derived from the changes in its log: its arms and its settings."""

from collections.abc import Iterable
from typing import Any

from thrifty.actions import ACTIONS
from thrifty.router.arms import Arms
from thrifty.router.known_start import KnownStart

NOTES = ("by", "undoes", "if_version")
"""What the body of a change says besides the change: who asked, which change it undoes, which version it was meant for."""


class Configuration:
    """Arms and settings, as rows of the log change them; the same for live calls, restarts, replicas and exports.

    `values` are the settings as they stand in the log. `version` is how often anything was changed. `known` is what the router
    started with, or None; `known_left` is the same without the arms in `reset`, which were reset since.
    """

    def __init__(self, arms: dict[str, float | None], values: dict[str, Any], known: KnownStart | None = None) -> None:
        self.arms, self.values = Arms(arms), values
        self.start_from(known)
        self.version, self.deleted = 0, False
        self.fallback: dict[str, Any] | None = None  # what the guardrail wrote, until a person moves the rollout on

    def apply(self, action: str, body: dict[str, Any]) -> bool:
        """Make one change; False where it has no effect, because another replica made it impossible."""
        if action == "graduate":
            self.arms.change(action, body["arm"], None)
            return True
        if action == "create":
            if self.version and not self.deleted:
                return False
            self.arms, self.values, self.deleted, self.fallback = Arms(body["arms"]), body["settings"], False, None
            self.start_from(KnownStart.read(body["known"]) if body.get("known") else None)
        elif action == "delete":
            self.deleted = True
        elif action == "settings":
            self.values = {name: value for name, value in body.items() if name not in NOTES}
        elif action == "rollout":
            self.values, self.fallback = {**self.values, "mode": body["to"], "canary_share": body["share"]}, None
        elif action == "fallback":
            if self.fallback is not None:
                return False
            self.fallback = {"at": body["at"], "text": body["text"]}
        elif action in ACTIONS:
            if not self.arms.allows(action, body["arm"], body["price"]):
                return False
            if action == "reset":
                self.start_from(self.known, self.reset.union(self.arms.names if body["arm"] is None else [body["arm"]]))
            else:
                self.arms.change(action, body["arm"], body["price"])
        else:
            return False
        self.version += 1
        return True

    def start_from(self, known: KnownStart | None, reset: Iterable[str] = ()) -> None:
        """Have started with known outcomes, apart from those of arms that were reset."""
        self.known, self.reset = known, frozenset(reset)
        self.known_left = known.without(self.reset) if known is not None and self.reset else known

    def copy(self) -> "Configuration":
        """The same configuration, to be changed apart."""
        other = Configuration({}, dict(self.values))
        other.arms, other.version, other.deleted = self.arms.copy(), self.version, self.deleted
        other.fallback, other.known, other.reset, other.known_left = self.fallback, self.known, self.reset, self.known_left
        return other


def single_changes(action: str, body: dict[str, Any], version: int) -> list[tuple[str, dict[str, Any]]]:
    """The changes of one row: several where it says so, none if it was meant for another version of the configuration.

    >>> single_changes("pause", {"arm": "a", "price": None, "if_version": 3}, 4)
    []
    """
    if body.get("if_version") not in (None, version):
        return []
    return [(each, its_body) for each, its_body in body["changes"]] if action == "changes" else [(action, body)]
