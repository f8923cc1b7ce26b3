"""Snapshots: of one moment, though rules are copied later and go on meanwhile."""

import base64
import json
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest

from thrifty.compiled import interpreted
from thrifty.router import Router
from thrifty.router.frame import ArmSums
from thrifty.router.old_formats import without_squares
from thrifty.router.settings import Settings
from thrifty.router.snapshot import RULES_AT_ONCE, capture, encode, load
from thrifty.router.state import State
from thrifty.statistics import SumsChange
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
    *arrays, (name, _) = header["arrays"]
    assert name == "rules"  # format 6 had this list in its header
    sums = np.frombuffer(rest[: lengths["sums"]], ArmSums)
    old_sums = np.zeros(sums.size, without_squares(ArmSums))
    for field in old_sums.dtype.names or ():
        old_sums[field] = sums[field]
    arrays[0] = ["sums", old_sums.nbytes]
    old = {**header, "format": 6, "arrays": arrays, "rules": []}
    del old["choices"]
    end = sum(lengths[each] for each, _ in arrays)
    state = loaded(json.dumps(old).encode() + b"\n" + old_sums.tobytes() + rest[lengths["sums"] : end])
    np.testing.assert_array_equal(state.segments.sums.sums["reward_squares"], router.state.segments.sums.sums["reward_squares"])
    assert state.segments.statistics(0)[0][:5] == router.state.segments.statistics(0)[0][:5]


@pytest.mark.parametrize("kind", ["keeps all", "window", "restart", "discount"])
def test_a_snapshot_of_format_7_gets_squares_that_overstate_the_variance(kind: str) -> None:
    # Written by the last version of that format, after 40 outcomes, every seventh of which was corrected.
    kept = json.loads(Path(__file__).with_name("format_7.json").read_text())[kind]
    body = zlib.decompress(base64.b85decode(kept["body"]))
    state = loaded(body)
    table = state.segments.sums
    for name, arms in kept["statistics"].items():
        number = state.segments.nearest(name).number
        assert [(row[0], row[2], row[3], row[4]) for row in state.segments.statistics(number)] == [
            tuple(arm) for arm in arms.values()
        ]
        recent = table.recent[number]
        assert [list(row)[:5] for row in recent.tolist()] == kept["recent"][name]
        np.testing.assert_array_equal(recent["reward_squares"], recent["reward_sum"])
        np.testing.assert_allclose(recent["cost_squares"] * recent["seen"], 2.0 * recent["cost_sum"] ** 2, rtol=1e-12)
    line, _, rest = body.partition(b"\n")
    header = json.loads(line)
    header["arrays"][0][1] -= 8
    with pytest.raises(ValueError, match="a snapshot whose sums have"):
        loaded(json.dumps(header).encode() + b"\n" + rest)


def test_squares_of_an_old_window_leave_it_with_its_outcomes() -> None:
    kept = json.loads(Path(__file__).with_name("format_7.json").read_text())["window"]
    state = loaded(zlib.decompress(base64.b85decode(kept["body"])))
    number, sums = state.segments.nearest("DE").number, state.segments.sums
    take_in, unpack = state.engine.forgetting.take_in, sums.recollection_layout
    assert unpack is not None
    ring = unpack.views(sums.recollections[number])
    for _ in range(ring.kept.size):
        interpreted(take_in)(sums.recent[number], ring, 0, SumsChange(1.0, 0.5, 0.25, 0.25, 0.0625), True)
    arms = sums.recent[number][["seen", "reward_squares", "cost_squares"]].tolist()
    assert arms[0] == pytest.approx((12.0, 3.0, 0.75), abs=1e-12)
    assert arms[1] == (0.0, 0.0, 0.0)


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
