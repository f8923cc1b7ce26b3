"""Snapshots: the whole state of a router but for its recent decisions, which the log keeps, as text that any program can read."""

import base64
import json
from typing import Any

from thrifty.router.settings import Settings
from thrifty.router.state import State

FORMAT = 5


def dump(state: State) -> bytes:
    """A state that nobody is changing meanwhile."""
    roster, tree = state.roster, state.tree
    segments = {
        name: {
            "sums": [_text(leaf.tobytes()) for leaf in segment.sums.leaves()],
            "main": [_text(leaf) for leaf in segment.main.dump()],
            "views": [[key, [_text(leaf) for leaf in view.dump()]] for key, view in segment.views.items()],
        }
        for name in tree.names()
        for segment in (tree.segment(name),)
    }
    body = {
        "format": FORMAT,
        "settings": state.settings.to_dict(),
        "arms": [list(each) for each in zip(roster.names, roster.prices, roster.status, strict=True)],
        "newcomers": sorted(roster.newcomers),
        "pinned": roster.pinned,
        "version": state.version,
        "deleted": state.deleted,
        "pruned_before": state.pruned_before,
        "sequence": state.sequence,
        "groups": state.groups,
        "counts": [state.decided, state.arrived, state.expired],
        "segments": segments,
    }
    return json.dumps(body, allow_nan=False).encode()


def load(fresh: State, body: bytes) -> State:
    """The dumped state of the router and replica that `fresh` is of; a ValueError or KeyError when it is of another format."""
    said: dict[str, Any] = json.loads(body)
    if said["format"] != FORMAT:
        raise ValueError(f"snapshot of format {said['format']}, this version reads {FORMAT}")
    arms = {name: price for name, price, _ in said["arms"]}
    state = State(fresh.name, arms, Settings.from_dict(said["settings"]), replica=fresh.replica, clock=fresh.clock)
    roster, tree = state.roster, state.tree
    roster.status = [status for _, _, status in said["arms"]]
    roster.newcomers, roster.pinned = set(said["newcomers"]), said["pinned"]
    state.version, state.deleted, state.sequence = said["version"], said["deleted"], said["sequence"]
    state.pruned_before = said["pruned_before"]
    state.groups = said["groups"]
    state.decided, state.arrived, state.expired = said["counts"]
    tree.rearrange(roster)
    for name, dumped in said["segments"].items():
        segment = tree.segment(name)
        for leaf, content in zip(segment.sums.leaves(), dumped["sums"], strict=True):
            leaf.view("u1")[:] = memoryview(_bytes(content))
        segment.main.load([_bytes(leaf) for leaf in dumped["main"]])
        for (arms_seen, prices), leaves in dumped["views"]:
            segment.view((tuple(arms_seen), tuple(prices))).load([_bytes(leaf) for leaf in leaves])
    return state


def _text(content: bytes) -> str:
    return base64.b85encode(content).decode()


def _bytes(text: str) -> bytes:
    return base64.b85decode(text)
