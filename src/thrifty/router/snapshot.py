"""Snapshots: the whole state of a router but for its recent decisions, which the log keeps.

A snapshot is one line of JSON and then arrays of bytes, whose names and lengths the line gives. `capture` copies under the router's
lock and takes milliseconds; `encode` takes longer and needs no lock.
"""

import base64
import json
from typing import Any, NamedTuple

import numpy as np

from thrifty.borrowing import SPREAD_FIELDS, Spread
from thrifty.router.settings import Settings
from thrifty.router.state import State
from thrifty.statistics import ArmStatistics

FORMAT = 6

MOST_REPLICAS = 1000
"""Replicas whose last decision a snapshot knows, the newest ones: an old one does not come back under its number."""


class Capture(NamedTuple):
    """A state at one moment, detached from the router."""

    header: dict[str, Any]
    arrays: dict[str, bytes]
    rules: list[tuple[int, Any, list[bytes]]]  # segment, eligible arms and prices (None for all), memory


def capture(state: State) -> Capture:
    """Copy a state that nobody is changing meanwhile."""
    arms, segments = state.arms, state.segments
    header = {
        "format": FORMAT,
        "settings": state.settings.to_dict(),
        "arms": [list(each) for each in zip(arms.names, arms.prices, arms.status, strict=True)],
        "newcomers": sorted(arms.newcomers),
        "pinned": arms.pinned,
        "version": state.version,
        "created_at": state.created_at,
        "reset_at": state.reset_at,
        "sources": state.engine.fingerprint,
        "deleted": state.configuration.deleted,
        "pruned_before": state.pruned_before,
        "sequences": sorted({**state.sequences, state.replica: state.sequence}.items())[-MOST_REPLICAS:],
        "groups": {name: list(group) for name, group in state.groups.items()},
        "counts": [state.decided, state.arrived, state.expired, state.waiting],
        "periods": state.deadlines.dump(state.records),
        "segments": [segment.name for segment in segments.by_number],
    }
    rules: list[tuple[int, Any, list[bytes]]] = []
    for segment in segments.by_number:
        if segment.generation == segments.generation:
            if segment.main is not None:
                rules.append((segment.number, None, segment.main.dump()))
            rules.extend((segment.number, choice, rule.dump()) for choice, rule in segment.others.items())
    return Capture(header, segments.sums.dump(), rules)


def encode(captured: Capture) -> bytes:
    """The body of a snapshot."""
    header = {
        **captured.header,
        "arrays": [[name, len(content)] for name, content in captured.arrays.items()],
        "rules": [[number, choice, [len(part) for part in memory]] for number, choice, memory in captured.rules],
    }
    parts = [part for _, _, memory in captured.rules for part in memory]
    return b"".join([json.dumps(header).encode(), b"\n", *captured.arrays.values(), *parts])


def load(fresh: State, body: bytes, position: int) -> State:
    """The state of a snapshot of the router and replica that `fresh` is of; a ValueError or KeyError for an unknown format."""
    line, _, rest = body.partition(b"\n")
    header: dict[str, Any] = json.loads(line)
    if header["format"] not in (5, FORMAT):
        raise ValueError(f"a snapshot of format {header['format']}, this version reads 5 and {FORMAT}")
    arms = {name: price for name, price, _ in header["arms"]}
    state = State(fresh.name, arms, Settings.from_dict(header["settings"]), replica=fresh.replica, clock=fresh.clock)
    state.arms.status = [status for _, _, status in header["arms"]]
    state.arms.newcomers, state.arms.pinned = set(header["newcomers"]), header["pinned"]
    state.configuration.version, state.configuration.deleted = header["version"], header["deleted"]
    state.pruned_before, state.groups = header["pruned_before"], header["groups"]
    state.segments.change(state.settings, state.arms, state.engine)
    state.sequences = dict(header.get("sequences") or [(0, header["sequence"])])
    state.sequence = state.sequences.pop(state.replica, 0)
    if header["format"] == 5:
        _load_format_5(state, header, position)
        return state
    state.created_at, state.reset_at = header["created_at"], header["reset_at"]
    state.decided, state.arrived, state.expired, state.waiting = header["counts"]
    for name in header["segments"][1:]:
        state.segments.add(name)
    content = _Reader(rest)
    state.segments.sums.load({name: content.take(length) for name, length in header["arrays"]})
    for number, choice, lengths in header["rules"] if header["sources"] == state.engine.fingerprint else ():
        memory = [content.take(length) for length in lengths]
        eligible = None if choice is None else (tuple(choice[0]), tuple(choice[1]))
        state.segments.rule(state.segments.by_number[number], eligible).load(memory)
    state.deadlines.load(header["periods"], position)
    return state


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content, self._at = memoryview(content), 0

    def take(self, length: int) -> bytes:
        self._at += length
        if self._at > len(self._content):
            raise ValueError("a snapshot that is cut off")
        return bytes(self._content[self._at - length : self._at])


def _load_format_5(state: State, header: dict[str, Any], position: int) -> None:
    """A snapshot of version 0.x: statistics in base 85, without known costs per outcome and without deadlines."""
    for name in sorted(header["segments"]):
        if name:
            state.segments.add(name)
    sums = state.segments.sums
    for segment in state.segments.by_number:
        truth, spread, *_ = (base64.b85decode(leaf) for leaf in header["segments"][segment.name]["sums"])
        known = np.frombuffer(truth, ArmStatistics)
        for field in ("sent", "pending", "seen", "reward_sum", "cost_sum"):
            sums.sums[field][segment.number] = known[field]
        sums.sums["priced"][segment.number] = known["seen"]
        below = np.frombuffer(spread, Spread)
        for name, _ in SPREAD_FIELDS:
            sums.sums[name][segment.number] = below[name]
    state.decided, state.arrived, state.expired = header["counts"]
    state.waiting = int(sums.sums["pending"][0].sum())
    state.deadlines.load([[0, state.settings.deadline_s, 0]], position)
