from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import Postgres
from thrifty.store import open_store
from thrifty.store.alerts import GIVEN_UP, MOST_WAITING, AlertTable

KEY = ("arm collapsed", "sms", "DE", "a")


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    postgres: Callable[[], Postgres] = lambda: request.getfixturevalue("postgres")  # noqa: E731
    url = f"sqlite:///{tmp_path / 'a.db'}" if request.param == "sqlite" else postgres().database()
    opened = open_store(url)
    opened.url = url
    yield opened
    opened.close()


def begin(table: AlertTable, key: tuple[str, str, str, str] = KEY, since: float = 100.0, *, send: bool = True) -> None:
    table.begin(key, severity="warn", since=since, text="began", send=send)


def test_an_alert_is_open_once_whoever_writes_it(store: Any) -> None:
    table = store.alerts
    begin(table)
    begin(table, since=101.0)
    (alert,) = table.open()
    assert (alert.key, alert.since, alert.until, alert.text) == (KEY, 100.0, None, "began")
    table.end(alert.id, at=200.0, text="over")
    table.end(alert.id, at=300.0, text="over again")
    assert table.open() == []
    (ended,) = table.newest(10)
    assert (ended.until, ended.text, ended.ending) == (200.0, "began", "over")
    begin(table, since=201.0)
    assert [each.since for each in table.newest(10)] == [201.0, 100.0]


def test_messages_of_an_alert_wait_in_order_until_they_are_confirmed(store: Any) -> None:
    table = store.alerts
    begin(table)
    (alert,) = table.due(0.0, 10)
    assert (alert.event, alert.happened_at) == ("began", 100.0)
    table.postpone(alert, 50.0)
    assert table.due(49.0, 10) == []
    (alert,) = table.due(50.0, 10)
    assert alert.attempts == 1
    table.end(alert.id, at=200.0, text="over")
    (alert,) = table.due(50.0, 10)
    assert alert.event == "began"
    table.confirm(alert)
    table.confirm(alert)  # a second confirmation of the same message changes nothing
    (alert,) = table.due(0.0, 10)
    assert (alert.event, alert.happened_at, alert.attempts) == ("ended", 200.0, 0)
    table.confirm(alert)
    assert (table.due(1e9, 10), table.waiting()) == ([], 0)


def test_an_alert_of_one_moment_has_one_message_and_one_row_an_occasion(store: Any) -> None:
    table, key = store.alerts, ("newcomer proven", "sms", "", "d")
    for occasion in (7, 7, 8):
        table.note(key, severity="info", at=5.0, text="proven", occasion=occasion, send=True)
    assert table.open() == []
    assert [each.event for each in table.due(0.0, 10)] == ["began", "began"]
    for each in table.due(0.0, 10):
        table.confirm(each)
    assert table.waiting() == 0


def test_an_end_is_later_than_the_beginning_whatever_the_clock_says(store: Any) -> None:
    begin(store.alerts)
    (alert,) = store.alerts.due(0.0, 1)
    store.alerts.confirm(alert)
    store.alerts.end(alert.id, at=50.0, text="over")
    (alert,) = store.alerts.due(0.0, 1)
    assert alert.event == "ended"
    assert alert.until == pytest.approx(100.001)


def test_messages_that_are_too_old_or_too_many_are_given_up(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = store.alerts
    for number in range(6):
        begin(table, ("arm collapsed", "sms", "", f"arm {number}"), since=100.0 + number)
    assert table.give_up(102.0) == 2
    assert [each.since for each in table.due(0.0, 10)] == [102.0, 103.0, 104.0, 105.0]
    assert [each.sent for each in table.newest(10)] == [0] * 4 + [GIVEN_UP] * 2
    assert table.give_up(102.0) == 0
    monkeypatch.setattr("thrifty.store.alerts.MOST_WAITING", 3)
    assert MOST_WAITING == 1000
    assert table.give_up(0.0) == 1
    assert [each.since for each in table.due(0.0, 10)] == [103.0, 104.0, 105.0]


def test_without_a_webhook_nothing_waits(store: Any) -> None:
    begin(store.alerts, send=False)
    assert (len(store.alerts.open()), store.alerts.waiting()) == (1, 0)


def test_old_alerts_are_pruned_and_open_ones_stay(store: Any) -> None:
    table = store.alerts
    begin(table)
    table.end(table.open()[0].id, at=200.0, text="over")
    begin(table, since=201.0)
    table.prune(150.0)
    assert len(table.newest(10)) == 2
    table.prune(1e9)
    assert [each.since for each in table.newest(10)] == [201.0]


def test_what_rules_remember_is_kept(store: Any) -> None:
    table = store.alerts
    assert table.memory("sms") is None
    table.remember("sms", "one")
    table.remember("sms", "two")
    assert table.memory("sms") == "two"


def test_one_replica_leads_and_another_takes_over_when_its_lease_ends(postgres: Postgres) -> None:
    url = postgres.database()
    one, two = open_store(url), open_store(url)
    assert [one.lead("alerts"), two.lead("alerts"), one.lead("alerts"), two.lead("other")] == [True, False, True, True]
    one.query("UPDATE leases SET until = now() - interval '1 s' WHERE name = 'alerts'")
    assert [two.lead("alerts"), one.lead("alerts")] == [True, False]
    one.close()
    two.close()
