"""Snapshots: of one moment, though rules are copied later and go on meanwhile."""

import json
import threading
from pathlib import Path

import pytest

from thrifty.router import Router
from thrifty.router.settings import Settings
from thrifty.router.snapshot import RULES_AT_ONCE, capture, encode, load
from thrifty.router.state import State
from thrifty.store import open_store

ARMS: dict[str, float | None] = {"a": 0.3, "b": 0.2, "c": 0.1}
SEGMENTS = [f"s{n}" for n in range(RULES_AT_ONCE + 20)]


@pytest.fixture
def router() -> Router:
    made = Router(ARMS, 0.1, policy="cs-ts", seed=5)
    for segment in SEGMENTS:
        made.record(made.decide(segment).id, reward=1)
    made.decide("s1", eligible=["a", "b"])
    return made


def memories(state: State) -> dict[object, bytes]:
    return {(rule.number, choice): rule.dump() for choice, rule in state.segments.rules()}


def loaded(body: bytes | bytearray) -> State:
    return load(State("router", {"none": 0.0}, Settings(alpha=0.0, policy="cheapest")), bytes(body), 0)


def test_a_snapshot_is_of_the_moment_it_was_captured_though_the_router_goes_on(router: Router) -> None:
    before, statistics = memories(router.state), router.statistics()
    captured = capture(router.state)
    for segment in SEGMENTS[::-3]:
        router.record(router.decide(segment).id, reward=0)
    router.decide("s1", eligible=["a", "b"])
    assert memories(router.state) != before
    state = loaded(encode(captured, router.lock))
    assert memories(state) == before
    assert sum(row[0] for row in state.segments.statistics(0)) == sum(sent for sent, *_ in statistics.values())


def test_two_snapshots_under_way_at_once_are_each_of_their_own_moment(router: Router) -> None:
    first, first_memories = capture(router.state), memories(router.state)
    router.decide("s3")
    second, second_memories = capture(router.state), memories(router.state)
    router.decide("s3")
    router.decide("s4")
    assert memories(loaded(encode(second, router.lock))) == second_memories
    assert memories(loaded(encode(first, router.lock))) == first_memories


def test_the_lock_is_free_between_pieces(router: Router) -> None:
    captured, pieces = capture(router.state), 0
    for _ in captured.memories.take(router.lock):
        pieces += 1
        elsewhere = threading.Thread(target=lambda: router.decide("s0"))
        elsewhere.start()
        elsewhere.join(20)
        assert not elsewhere.is_alive()
    assert pieces == 2


def test_a_snapshot_of_format_6_can_be_read(router: Router) -> None:
    body = bytes(encode(capture(router.state), router.lock))
    line, _, rest = body.partition(b"\n")
    header = json.loads(line)
    lengths = dict(header["arrays"])
    *arrays, (name, size) = header["arrays"]
    assert name == "rules"  # format 6 had this list in its header, with the lengths of the four parts of every memory
    start = sum(lengths.values()) - size
    listed = memoryview(rest[start : start + size]).cast("q").tolist()
    pairs = [(number, header["choices"][choice]) for number, choice in zip(listed[::2], listed[1::2], strict=True)]
    rules = [[number, choice, [8, 32, n_bytes - 40, 0]] for number, (choice, n_bytes) in pairs]
    old = {**header, "format": 6, "arrays": arrays, "rules": rules}
    del old["choices"]
    state = loaded(json.dumps(old).encode() + b"\n" + rest[:start] + rest[start + size :])
    assert memories(state) == memories(router.state)


def test_a_snapshot_that_is_cut_off_is_passed_over(tmp_path: Path, router: Router) -> None:
    body = encode(capture(router.state), router.lock)
    with pytest.raises(ValueError, match="cut off"):
        loaded(body[:-1])
    url = f"sqlite:///{tmp_path / 'r.db'}"
    with Router(ARMS, 0.1, store=url, policy="cs-ts") as kept:
        kept.record(kept.decide("s1").id, reward=1)
        known = kept.statistics("s1")
    store = open_store(url)
    journal = store.journal("router")
    journal.save_snapshot(journal.durable_position(), body[:-1])
    assert Router.reopen("router", store).statistics("s1") == known
    store.close()
