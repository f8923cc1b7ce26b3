"""Snapshots: the whole state of a router but for its recent decisions, which the log keeps.

A snapshot is one line of JSON, then arrays of bytes, whose names and lengths the line gives, then what each rule remembers.
`capture` copies all but the rules, which takes milliseconds under the router's lock. Rules are copied later, by `encode`, which
takes the lock for some of them at a time. A rule that is about to change before its turn is copied first.
"""

import base64
import json
from array import array
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from thrifty.borrowing import SPREAD_FIELDS, Spread
from thrifty.router.engine import engine_for
from thrifty.router.known_start import KnownStart
from thrifty.router.old_formats import add_squares, with_group_squares, with_squares, without_squares
from thrifty.router.rule_instance import RuleInstance
from thrifty.router.settings import Settings
from thrifty.router.spending import Spending
from thrifty.router.state import State
from thrifty.statistics import ArmStatistics

FORMAT = 8

RULES_AT_ONCE = 200
"""Rules that are copied while the lock is held once: some tenths of a millisecond."""

MOST_REPLICAS = 1000
"""Replicas whose last decision a snapshot knows, the newest ones: an old one does not come back under its number."""


class Capture(NamedTuple):
    """A state at one moment, detached from the router."""

    header: dict[str, Any]
    arrays: dict[str, bytes]
    memories: "RuleMemories"


class RuleMemories:
    """What rules remember at one moment, copied little by little: it is the `watcher` that a rule calls before it changes."""

    def __init__(self, rules: list[RuleInstance]) -> None:
        self._rules, self._copies = rules, dict[int, bytes]()  # by the id of the rule
        for rule in rules:
            if rule.watcher is not None:
                rule.watcher(rule)  # for another snapshot, which is not done
            rule.watcher = self

    def __call__(self, rule: RuleInstance) -> None:
        """Copy a rule that is about to change."""
        self._copies[id(rule)] = rule.dump()
        rule.watcher = None

    def take(self, lock: AbstractContextManager[Any]) -> Iterator[bytes]:
        """The memories of all rules in order, in pieces. `lock` is the router's; it is held for one piece at a time."""
        for first in range(0, len(self._rules), RULES_AT_ONCE):
            piece = self._rules[first : first + RULES_AT_ONCE]
            with lock:
                for rule in piece:
                    if rule.watcher is self:
                        self(rule)
            yield b"".join([self._copies.pop(id(rule)) for rule in piece])


def capture(state: State) -> Capture:
    """Copy a state that nobody is changing meanwhile."""
    arms, segments = state.arms, state.segments
    known = [segment for segment in segments.by_number if not segment.provisional]
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
        "rollout": {"fallback": state.configuration.fallback, "guardrail": state.guardrail.dump()},
        "counts": [state.decided, state.arrived, state.expired, state.waiting],
        "spending": state.spending.dump(),
        "periods": state.deadlines.dump(state.records),
        "segments": [segment.name for segment in known],
    }
    if state.configuration.known is not None:
        header["known"] = {"start": state.configuration.known, "reset": sorted(state.configuration.reset)}
    rules: list[RuleInstance] = []
    choices: dict[Any, int] = {}  # eligible arms and prices, None for all arms: their number
    sizes: list[int] = []  # of a memory, for each of them
    places = array("q")  # segment and choice of every rule
    numbers = {segment.number: number for number, segment in enumerate(known)}
    for choice, rule in segments.rules():
        if rule.number not in numbers:
            continue
        if choice not in choices:
            choices[choice] = len(choices)
            sizes.append(rule.n_bytes)
        rules.append(rule)
        places.extend((numbers[rule.number], choices[choice]))
    header["choices"] = list(zip(choices, sizes, strict=True))
    return Capture(header, {**segments.sums.dump(list(numbers)), "rules": places.tobytes()}, RuleMemories(rules))


def encode(captured: Capture, lock: AbstractContextManager[Any]) -> bytearray:
    """The body of a snapshot; `lock` is the router's. Made in small steps: other threads run between them."""
    lengths = [[name, len(content)] for name, content in captured.arrays.items()]
    line = json.dumps({**captured.header, "arrays": lengths}, default=KnownStart.to_dict).encode() + b"\n"
    parts = [line, *captured.arrays.values(), *captured.memories.take(lock)]
    body, at = bytearray(sum(map(len, parts))), 0
    for part in parts:
        body[at : at + len(part)] = part
        at += len(part)
    return body


def load(fresh: State, body: bytes, position: int) -> State:
    """The state of a snapshot of the router and replica that `fresh` is of; a ValueError or KeyError for an unknown format."""
    line, _, rest = body.partition(b"\n")
    header: dict[str, Any] = json.loads(line)
    if header["format"] not in (5, 6, 7, FORMAT):
        raise ValueError(f"a snapshot of format {header['format']}, this version reads 5, 6, 7 and {FORMAT}")
    arms = {name: price for name, price, _ in header["arms"]}
    settings, started = Settings.from_dict(header["settings"]), header.get("known")
    engine = engine_for(settings.policy, apart=started is not None)
    state = State(fresh.name, arms, settings, replica=fresh.replica, clock=fresh.clock, engine=engine)
    if started is not None:
        state.configuration.start_from(KnownStart.read(started["start"]), started["reset"])
    state.arms.status = [status for _, _, status in header["arms"]]
    state.arms.newcomers, state.arms.pinned = set(header["newcomers"]), header["pinned"]
    state.configuration.version, state.configuration.deleted = header["version"], header["deleted"]
    state.pruned_before, state.groups = header["pruned_before"], {**state.groups, **with_group_squares(header["groups"])}
    if "rollout" in header:  # not in snapshots of versions that had no canary
        state.configuration.fallback = header["rollout"]["fallback"]
        state.guardrail.load(header["rollout"]["guardrail"])
    state.spending = Spending.load(header.get("spending"))
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
    arrays = {name: content.take(length) for name, length in header["arrays"]}
    state.segments.sums.load(arrays if header["format"] == FORMAT else with_squares(arrays, state.segments.sums))
    if header["format"] == FORMAT and header["sources"] == state.engine.fingerprint:  # else rules begin from the statistics
        for number, choice, size in _listed_rules(header, arrays):
            eligible = None if choice is None else (tuple(choice[0]), tuple(choice[1]))
            state.segments.rule(state.segments.by_number[number], eligible).load(content.take(size))
    state.deadlines.load(header["periods"], position)
    return state


def _listed_rules(header: dict[str, Any], arrays: dict[str, bytes]) -> Iterator[tuple[int, Any, int]]:
    """Segment, eligible arms and size of every rule, in the order of their memories."""
    for number, choice in np.frombuffer(arrays["rules"], np.int64).reshape(-1, 2).tolist():
        yield (number, *header["choices"][choice])


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
        old = np.frombuffer(truth, without_squares(ArmStatistics))
        known = add_squares(old, ArmStatistics, old["cost_sum"] / np.maximum(old["seen"], 1.0))
        for field in ArmStatistics.names or ():
            sums.sums[field][segment.number] = known[field]
        sums.sums["priced"][segment.number] = known["seen"]
        below = np.frombuffer(spread, Spread)
        for name, _ in SPREAD_FIELDS:
            sums.sums[name][segment.number] = below[name]
    state.decided, state.arrived, state.expired = header["counts"]
    state.waiting = int(sums.sums["pending"][0].sum())
    state.deadlines.load([[0, state.settings.deadline_s, 0]], position)
