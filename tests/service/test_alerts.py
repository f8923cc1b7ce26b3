"""Alerts from the rule to the receiver. Times are made up where rules look, and real where messages are sent."""

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from tests.clock import Clock
from tests.postgres import Postgres
from tests.service.conftest import Service
from tests.service.receivers import SECRET, Receiver
from tests.service.test_http import JSON, SMS, running
from tests.service.test_webhook import receive
from thrifty.router import Router, Settings
from thrifty.router.changing import add_change
from thrifty.router.monitor import LOOK_S
from thrifty.service.alerts import Alerts
from thrifty.service.config import Config
from thrifty.store import StoreError, open_store

__all__ = ["receive"]

ARMS = {"a": 0.3, "b": 0.2}


class World:
    """A router under traffic in made-up time, and the alerts of one process about it."""

    def __init__(self, url: str) -> None:
        self.clock, self.random, self.config = Clock(), random.Random(5), Config()
        self.store = open_store(url)
        self.router = Router(ARMS, 0.1, store=self.store, name="sms", clock=self.clock, policy="cs-ucb", deadline_s=600.0)
        self.means = {"a": 0.95, "b": 0.9}
        self.answers = True
        self.quarantined, self.starting = dict[str, str](), list[str]()
        self.alerts = self.process()

    def process(self, store: Any = None) -> Alerts:
        return Alerts(self.config, store or self.store, self)  # type: ignore[arg-type]

    def all(self) -> list[tuple[str, Router]]:
        return [("sms", self.router)]

    def pass_time(self, looks: int, decisions: int = 10) -> None:
        for _ in range(looks):
            made = self.router.decide_many([{}] * decisions)
            while any(self.router.is_degraded(each.position) for each in made):  # a slow store is no reason to fail
                time.sleep(0.01)
            self.clock.now += LOOK_S
            last = 0
            for each in made if self.answers else ():
                _, last = self.router.record_soon(each.id, float(self.random.random() < self.means[each.arm]))
            self.router.wait(last)
            self.router.expire()
            self.alerts.look(self.clock.time())

    def rules(self) -> list[tuple[str, str, bool]]:
        return [(each["rule"], each["arm"], each["until"] is None) for each in reversed(self.alerts.newest(100))]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(f"sqlite:///{tmp_path / 'w.db'}")
    yield made
    made.store.close()


def test_an_arm_that_collapses_is_one_alert_which_ends_when_it_recovers(world: World) -> None:
    world.pass_time(80)
    assert world.rules() == []
    world.means["b"] = 0.2
    world.pass_time(30)
    assert ("arm collapsed", "b", True) in world.rules()
    (found,) = (each for each in world.alerts.open() if each["rule"] == "arm collapsed")
    assert found["severity"] == "warn"
    assert found["text"].startswith("arm b has collapsed: mean reward 0.")
    world.means["b"] = 0.9
    world.router.change("pin", "b")  # so that it is tried again
    world.pass_time(60)
    assert [each for each in world.rules() if each[0] == "arm collapsed"] == [("arm collapsed", "b", False)]


def test_outcomes_that_stop_blame_no_arm_and_the_alert_ends_when_they_come_again(world: World) -> None:
    world.pass_time(80)
    world.answers = False
    world.pass_time(30)
    assert world.rules() == [("outcomes stopped", "", True)]
    world.answers = True
    world.pass_time(40)
    assert world.rules() == [("outcomes stopped", "", False)]


def test_a_quiet_night_is_no_alert(world: World) -> None:
    """Failures come by the deadline only, so that after the traffic ends nothing but failures comes."""
    world.means = {"a": 0.0, "b": 0.0}
    for _ in range(80):
        made = [world.router.decide_soon() for _ in range(10)]
        world.clock.now += LOOK_S
        for each in made:
            if world.random.random() < 0.8:
                world.router.record_soon(each.id, 1.0)
        world.router.expire()
        world.alerts.look(world.clock.time())
    world.pass_time(200, decisions=0)
    assert world.router.counts["expired"] > 100
    assert world.rules() == []


def test_a_paused_arm_ends_its_alert(world: World) -> None:
    world.pass_time(80)
    world.means["b"] = 0.2
    world.pass_time(30)
    world.router.change("pause", "b")
    world.pass_time(1)
    assert [each for each in world.rules() if each[0] == "arm collapsed"] == [("arm collapsed", "b", False)]


def test_an_open_alert_survives_a_restart_with_and_without_what_the_tests_knew(world: World) -> None:
    world.pass_time(80)
    world.means["b"] = 0.2
    world.pass_time(30)
    before = world.rules()
    for forget in (False, True):
        if forget:
            world.store.alerts.forget("sms")
        world.alerts = world.process()
        world.pass_time(3)
        assert [each for each in world.rules() if each[0] == "arm collapsed"] == [("arm collapsed", "b", True)]
    assert before[0][0] in ("arm collapsed", "floor broken")


def test_a_deleted_router_has_no_open_alert(world: World) -> None:
    world.store.alerts.begin(("arm collapsed", "gone", "", "a"), severity="warn", since=1.0, text="x", send=False)
    world.pass_time(1)
    assert world.rules() == [("arm collapsed", "a", False)]


def test_a_newcomer_that_has_proven_itself_is_news_once(world: World) -> None:
    world.pass_time(5)
    world.router.change("add", "c", price=0.1)
    world.means["c"] = 0.93
    for _ in range(200):
        world.pass_time(1)
        if not world.router.arms.newcomers:
            break
    world.pass_time(2)
    world.alerts = world.process()
    world.pass_time(2)
    assert [each for each in world.rules() if each[0] == "newcomer proven"] == [("newcomer proven", "c", False)]


def test_a_rollout_that_fell_back_is_a_page_until_a_person_moves_it_on(world: World) -> None:
    world.pass_time(1)
    add_change(world.router, "fallback", {"at": world.clock.time(), "text": "the floor was broken", "by": "guardrail"}, None)
    world.pass_time(1)
    (found,) = world.alerts.open()
    assert (found["rule"], found["severity"], found["text"]) == ("guardrail fell back", "page", "the floor was broken")
    world.router.move_rollout("live", by="ann")
    world.pass_time(1)
    assert world.rules() == [("guardrail fell back", "", False)]


def test_a_budget_that_cannot_be_kept_and_one_that_is_spent_are_alerts_until_they_are_raised(world: World) -> None:
    settings = world.router.settings.to_dict()
    world.router.configure(ARMS, Settings(**{**settings, "daily_budget": 100.0}))
    world.pass_time(2)
    assert world.rules() == []  # nothing is known of the rest of the day yet
    world.pass_time(78)
    assert sorted(world.rules()) == [("budget cannot be kept", "", True), ("spend above budget", "", True)]
    world.router.configure(ARMS, Settings(**{**settings, "daily_budget": 1e6}))
    world.pass_time(1)
    assert sorted(world.rules()) == [("budget cannot be kept", "", False), ("spend above budget", "", False)]


def test_two_replicas_write_an_alert_once(postgres: Postgres) -> None:
    world = World(postgres.database())
    other = open_store(world.store._url)
    second = world.process(other)
    second.look(world.clock.time())  # it leads now
    world.pass_time(2)
    other.query("UPDATE leases SET until = now() - interval '1 s'")
    world.pass_time(80)
    world.means["b"] = 0.1
    world.pass_time(30)
    assert [each for each in world.rules() if each[0] == "arm collapsed"] == [("arm collapsed", "b", True)]
    assert second.newest(10) == world.alerts.newest(10)
    second.look(world.clock.time())
    assert second.open() == world.alerts.open()
    other.close()
    world.store.close()


def test_a_store_that_is_away_is_told_at_once_and_written_down_afterwards(
    world: World, receive: Callable[..., Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = receive()
    world.config = Config(alert_url=receiver.url, alert_secret=SECRET)
    world.alerts = world.process()
    world.pass_time(1)
    with monkeypatch.context() as patch:
        patch.setattr(world.store, "check", lambda: (_ for _ in ()).throw(StoreError("the disk is full")))
        for _ in range(4):
            world.clock.now += LOOK_S
            world.alerts.look(world.clock.time())
    receiver.wait(1)
    sent = json.loads(receiver.got[0][1])
    assert (sent["event"], sent["alert"]["rule"]) == ("began", "store degraded")
    assert "the disk is full" in sent["alert"]["text"]
    world.pass_time(10)
    assert world.rules() == [("store degraded", "", False)]
    (due,) = world.store.alerts.due(1e12, 10)
    assert due.event == "ended"


# -- over HTTP and to the receiver -----------------------------------------------------------------------------------------


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thrifty.service.outbox.LOOK_S", 0.02)
    monkeypatch.setattr("thrifty.service.alerts.LOOK_S", 0.05)
    monkeypatch.setattr("thrifty.service.outbox.pause_s", lambda _attempts, _draw: 0.05)


@pytest.mark.usefixtures("_quick")
def test_a_test_alert_is_retried_until_it_is_confirmed_and_has_one_body(tmp_path: Path, receive: Callable[..., Receiver]) -> None:
    receiver = receive(500, 302, 404, 200)
    with running(tmp_path, alert_url=receiver.url, alert_secret=SECRET) as client:
        assert client.post("/v1/alerts/test").status_code == 202
        receiver.wait(4)
        time.sleep(0.3)
        (shown,) = client.get("/v1/alerts").json()["alerts"]
    assert len(receiver.got) == 4
    assert len({body for _, body in receiver.got}) == 1
    assert json.loads(receiver.got[0][1]) == {"event": "test", "alert": shown}
    assert (shown["rule"], shown["severity"]) == ("test", "info")
    assert shown["since"] == shown["until"]


def test_a_test_alert_without_a_webhook_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        answer = client.post("/v1/alerts/test")
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "webhook")
        assert client.get("/v1/alerts").json() == {"alerts": []}


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "x", "", "1e2", "\u00b2", "9" * 5000])
def test_a_limit_that_is_none_is_refused(tmp_path: Path, limit: str) -> None:
    with running(tmp_path) as client:
        assert client.get("/v1/alerts", params={"limit": limit}).status_code == 422


def test_alerts_need_the_roles_view_and_admin(tmp_path: Path) -> None:
    with running(tmp_path, {"see": "view", "do": "decide,outcome", "all": "admin"}) as client:
        for key, expected in (("see", (200, 403)), ("do", (403, 403)), ("all", (200, 409))):
            headers = {"authorization": f"Bearer {key}"}
            answers = client.get("/v1/alerts", headers=headers), client.post("/v1/alerts/test", headers=headers)
            assert tuple(each.status_code for each in answers) == expected


def test_the_budget_of_a_router_is_shown(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        assert client.put("/v1/routers/sms", json={**SMS, "daily_budget": 2.5}).status_code == 201
        arm, prices = client.post("/v1/decisions", json={"router": "sms"}).json()["arm"], cast("dict[str, float]", SMS["arms"])
        shown = client.get("/v1/routers/sms/budget").json()
        assert (shown["budget"], shown["spent"], shown["decisions"]) == (2.5, prices[arm], 1)
        assert client.get("/v1/routers/none/budget").status_code == 404
        for wrong in (-1, "x", 1e300, None):
            assert client.put("/v1/routers/sms", json={**SMS, "daily_budget": wrong}).status_code == 422


@pytest.mark.usefixtures("_quick")
def test_a_receiver_that_hangs_keeps_no_decision_waiting(tmp_path: Path, receive: Callable[..., Receiver]) -> None:
    receiver = receive("hang")
    with running(tmp_path, alert_url=receiver.url, alert_secret=SECRET) as client:
        assert client.put("/v1/routers/sms", json=SMS).status_code == 201
        assert client.post("/v1/alerts/test").status_code == 202
        receiver.wait(1)
        started = time.monotonic()
        for _ in range(20):
            assert client.post("/v1/decisions", json={"router": "sms"}).status_code == 200
        assert time.monotonic() - started < 5
        receiver.close()


def test_kill_9_after_an_alert_was_written_and_before_it_was_confirmed_loses_nothing(tmp_path: Path) -> None:
    receiver = Receiver("hang")
    flags = ("--alert-url", receiver.url, "--alert-secret", SECRET)
    service = Service(f"sqlite:///{tmp_path / 'k.db'}", *flags).start()
    assert httpx.post(f"{service.url}/v1/alerts/test", headers=JSON).status_code == 202
    receiver.wait(1)
    service.kill()
    service.start()
    receiver.wait(2)
    time.sleep(1.5)
    code, logged = service.stop()
    receiver.close()
    assert code == 0
    assert len({body for _, body in receiver.got}) == 1
    assert len(receiver.got) == 2
    assert SECRET not in logged
    assert "hook-with-a-token" not in logged


@pytest.mark.parametrize("secret", ["", "short"])
def test_a_service_does_not_start_with_a_webhook_that_it_cannot_sign_for(tmp_path: Path, secret: str) -> None:
    service = running(tmp_path, alert_url="https://ops.example/hook", alert_secret=secret)
    with pytest.raises(ValueError, match="alert_secret, of at least 16 characters"), service:
        pass


def test_neither_secret_is_in_the_configuration_as_text() -> None:
    config = Config(alert_url="https://ops.example/hook-with-a-token", alert_secret=SECRET, admin_key="the admin key")
    assert SECRET not in repr(config)
    assert "token" not in repr(config)
    assert "the admin key" not in repr(config)
    with pytest.raises(ValueError, match="alert_secret must be a text, got a value of type int"):
        Config.load({"alert_secret": 12345})
