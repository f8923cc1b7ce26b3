"""The outbox: how long a decision waits for a commit, learnt from how long commits take."""

import pytest

from tests.clock import Clock
from thrifty.store import postgres_outbox
from thrifty.store.log import Row
from thrifty.store.postgres_outbox import COMMIT_TIMEOUT_S, SHORTEST_PATIENCE_S, PostgresOutbox

ROW = Row("d", 1, 1, 0.0, "", None, "a", 1.0, 0.5, "only", None)


class Outbox(PostgresOutbox):
    """An outbox whose commits begin and end when the test says so."""

    def begin(self, clock: Clock) -> None:
        self._busy_since = clock.monotonic()

    def end(self) -> None:
        self._note_commit()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(postgres_outbox, "time", clock)
    return clock


def commit(outbox: Outbox, clock: Clock, seconds: float, times: int) -> None:
    for _ in range(times):
        outbox.begin(clock)
        clock.now += seconds
        outbox.end()


def test_a_decision_waits_for_a_commit_that_is_not_unusually_long(clock: Clock) -> None:
    outbox = Outbox(degraded_s=60.0)
    commit(outbox, clock, 0.02, 500)
    ticket = outbox.append("sms", ROW, keep=True)
    outbox.begin(clock)
    clock.now += 0.15
    assert not outbox.is_degraded(ticket)
    clock.now += 0.1
    assert outbox.is_degraded(ticket)


def test_where_commits_are_fast_a_decision_waits_for_thirty_milliseconds(clock: Clock) -> None:
    outbox = Outbox(degraded_s=60.0)
    commit(outbox, clock, 0.001, 500)
    ticket = outbox.append("sms", ROW, keep=True)
    outbox.begin(clock)
    clock.now += 0.9 * SHORTEST_PATIENCE_S
    assert not outbox.is_degraded(ticket)
    clock.now += 0.2 * SHORTEST_PATIENCE_S
    assert outbox.is_degraded(ticket)


def test_before_commits_are_known_a_decision_waits_until_the_database_counts_as_away(clock: Clock) -> None:
    outbox = Outbox(degraded_s=60.0)
    ticket = outbox.append("sms", ROW, keep=True)
    outbox.begin(clock)
    clock.now += 0.99 * COMMIT_TIMEOUT_S
    assert not outbox.is_degraded(ticket)
    clock.now += 0.02 * COMMIT_TIMEOUT_S
    assert outbox.is_degraded(ticket)


def test_an_outcome_is_never_given_out_before_it_is_stored(clock: Clock) -> None:
    outbox = Outbox(degraded_s=60.0)
    commit(outbox, clock, 0.001, 500)
    ticket = outbox.append("sms", ROW, keep=False)
    outbox.begin(clock)
    clock.now += 0.5
    assert not outbox.is_degraded(ticket)
    assert not outbox.is_durable(ticket)
