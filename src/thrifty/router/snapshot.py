"""Snapshots: the whole state of a router but for its recent decisions, which the log keeps, as text that any program can read."""

import base64
import json
from typing import TYPE_CHECKING, Any

from thrifty.router.roster import Roster
from thrifty.router.settings import Settings
from thrifty.router.tree import Tree

if TYPE_CHECKING:
    from thrifty.router.router import Router

FORMAT = 1


def dump(router: "Router") -> bytes:
    """The state of `router`, which nobody is using meanwhile."""
    roster, tree = router.roster, router._tree
    segments = {
        name: {
            "truth": _text(segment.truth.tobytes()),
            "outcomes": segment.outcomes,
            "main": [_text(leaf) for leaf in segment.main.dump()],
            "views": [[key, [_text(leaf) for leaf in view.dump()]] for key, view in segment.views.items()],
        }
        for name in tree.names()
        for segment in tree.levels(name)[:1]
    }
    body = {
        "format": FORMAT,
        "settings": router.settings.to_dict(),
        "arms": [list(each) for each in zip(roster.names, roster.prices, roster.status, strict=True)],
        "newcomers": sorted(roster.newcomers),
        "pinned": roster.pinned,
        "version": router.version,
        "sequence": router._sequence,
        "groups": router.groups,
        "counts": router.counts,
        "segments": segments,
    }
    return json.dumps(body, allow_nan=False).encode()


def load(router: "Router", body: bytes) -> None:
    """Put `router` into a dumped state; a ValueError or KeyError when it is of another format."""
    state: dict[str, Any] = json.loads(body)
    if state["format"] != FORMAT:
        raise ValueError(f"snapshot of format {state['format']}, this version reads {FORMAT}")
    router.settings = Settings(**state["settings"])
    roster = router.roster = Roster({name: price for name, price, _ in state["arms"]})
    roster.status = [status for _, _, status in state["arms"]]
    roster.newcomers, roster.pinned = set(state["newcomers"]), state["pinned"]
    router.version, router._sequence = state["version"], state["sequence"]
    router.groups, router.counts = state["groups"], state["counts"]
    tree = router._tree = Tree(router.settings, roster, router._replica)
    for name, dumped in state["segments"].items():
        segment = tree.levels(name)[0]
        segment.truth.view("u1")[:] = memoryview(_bytes(dumped["truth"]))
        segment.outcomes = dumped["outcomes"]
        segment.main.load([_bytes(leaf) for leaf in dumped["main"]])
        for (arms, prices), leaves in dumped["views"]:
            segment.view((tuple(arms), tuple(prices))).load([_bytes(leaf) for leaf in leaves])


def _text(content: bytes) -> str:
    return base64.b85encode(content).decode()


def _bytes(text: str) -> bytes:
    return base64.b85decode(text)
