"""Routers that the configuration file declares: made, changed by SIGHUP, and never undone by hand-made surprise; drift is shown."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.postgres import Postgres
from tests.service.conftest import Service
from tests.service.test_http import SMS, Caller, running
from thrifty.cli.main import main
from thrifty.router.changing import make_changes
from thrifty.service.declarations import ConfigFile
from thrifty.service.reconcile import Reconciler

FILE = """
reconcile = "{reconcile}"

[routers.sms]
alpha = {alpha}
policy = "cs-ucb"

[routers.sms.arms]
a = {price}
b = 0.0041
"""


class Declared:
    """A service in this process with a configuration file, whose reconciler is called by hand."""

    def __init__(self, client: Caller, file: Path) -> None:
        self.client, self.path = client, file
        self.reconciler: Reconciler | None = None

    def write(self, text: str = FILE, *, reconcile: str = "report", alpha: float = 0.05, price: float = 0.0079) -> None:
        self.path.write_text(text.replace("{reconcile}", reconcile).replace("{alpha}", str(alpha)).replace("{price}", str(price)))

    def carry_out(self) -> None:
        """Start, or SIGHUP."""
        if self.reconciler is None:
            self.restart()
        else:
            self.reconciler.request()
            self.reconciler.tick()

    def restart(self) -> None:
        app = self.client.app
        self.reconciler = app.reconciler = Reconciler(app.routers, ConfigFile.load({}, str(self.path)))
        self.reconciler.tick()

    def drift(self) -> Any:
        return self.client.get("/v1/drift").json()

    def differences(self, name: str = "sms") -> dict[str, tuple[Any, Any, Any]]:
        (router,) = [each for each in self.drift()["routers"] if each["name"] == name]
        return {each["field"]: (each["declared"], each["actual"], each["by"]) for each in router["differences"]}

    def shown(self, name: str = "sms") -> Any:
        return self.client.get(f"/v1/routers/{name}").json()


@contextmanager
def declared(folder: Path, **config: Any) -> Iterator[Declared]:
    with running(folder, **config) as client:
        found = Declared(client, folder / "thrifty.toml")
        found.write()
        found.carry_out()
        yield found


@pytest.fixture(params=["sqlite", "postgresql"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Declared]:
    more = {} if request.param == "sqlite" else {"store": request.getfixturevalue("postgres").database()}
    with declared(tmp_path, **more) as found:
        yield found


def test_a_declared_router_is_made_and_follows_the_file(service: Declared) -> None:
    assert service.shown()["alpha"] == 0.05
    assert service.drift()["routers"] == [{"name": "sms", "state": "as declared", "differences": [], "problem": None}]
    service.write(alpha=0.1, price=0.006)
    service.carry_out()
    assert (service.shown()["alpha"], service.shown()["arms"]["a"]["price"]) == (0.1, 0.006)
    service.write(FILE.replace("b = 0.0041", "c = 0.001"), alpha=0.1, price=0.006)
    service.carry_out()
    arms = service.shown()["arms"]
    assert {name: arm["status"] for name, arm in arms.items()} == {"a": "active", "b": "retired", "c": "active"}
    assert service.differences() == {}
    version = service.shown()["version"]
    for _ in range(3):
        service.carry_out()
        service.restart()
    assert service.shown()["version"] == version  # nothing to do, and nothing done


def test_a_lever_pulled_by_hand_stays_until_its_own_field_changes_in_the_file(service: Declared) -> None:
    client = service.client
    client.put("/v1/routers/sms", json={**SMS, "alpha": 0.01, "arms": {"a": 0.009, "b": 0.0041, "c": 0.002}})
    client.post("/v1/routers/sms/arms/b:pause")
    client.post("/v1/routers/sms/arms/c:pin")
    expected = {
        "alpha": (0.05, 0.01, "127.0.0.1"),
        "arms.a.price": (0.0079, 0.009, "127.0.0.1"),
        "arms.b.status": ("active", "paused", "127.0.0.1"),
        "arms.c.status": ("not declared", "active", "127.0.0.1"),
        "pinned": (None, "c", "127.0.0.1"),
    }
    assert service.differences() == expected
    service.carry_out()
    service.restart()
    assert service.differences() == expected
    at = [each["at"] for each in service.drift()["routers"][0]["differences"]]
    assert all(time.time() - 60 < each <= time.time() for each in at)
    service.write(price=0.005)  # a change of this field in the file, and of no other
    service.carry_out()
    assert service.shown()["arms"]["a"]["price"] == 0.005
    assert service.differences() == {field: values for field, values in expected.items() if field != "arms.a.price"}
    service.write(price=0.005, reconcile="enforce")
    service.carry_out()
    assert service.differences() == {"arms.b.status": expected["arms.b.status"]}  # a pause is undone by people; c is retired
    assert (service.shown()["alpha"], service.shown()["arms"]["c"]["status"]) == (0.05, "retired")


def test_known_outcomes_that_changed_in_the_file_are_shown_because_a_router_starts_once(tmp_path: Path) -> None:
    start = '[[routers.sms.known.outcomes]]\narm = "a"\noutcomes = 40\nrewards = 36\n'
    with running(tmp_path) as client:
        service = Declared(client, tmp_path / "thrifty.toml")
        service.write(FILE + start)
        service.carry_out()
        assert (service.shown()["known"]["outcomes"], service.differences()) == (40, {})
        service.write(FILE + start.replace("36", "30"))
        service.carry_out()
        said = "40 outcomes of 'known beforehand' with"
        assert service.differences() == {"known": (f"{said} 30 rewards", f"{said} 36 rewards", None)}
        client.post("/v1/routers/sms/arms/a:reset")
        service.write(FILE + start)
        service.carry_out()
        assert service.differences() == {}
        service.write()  # a file that names none declares none
        service.carry_out()
        assert service.differences() == {}


def test_a_router_that_was_there_before_is_shown_and_not_overwritten(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.put("/v1/routers/sms", json={**SMS, "alpha": 0.2})
        client.put("/v1/routers/mail", json=SMS)
        service = Declared(client, tmp_path / "thrifty.toml")
        service.write()
        service.carry_out()
        assert service.differences() == {"alpha": (0.05, 0.2, "127.0.0.1")}
        assert (service.shown()["alpha"], service.drift()["routers"][0]["state"]) == (0.2, "not declared")
        service.write(reconcile="enforce")
        service.carry_out()
        assert (service.shown()["alpha"], service.differences()) == (0.05, {})
        assert service.shown("mail")["alpha"] == 0.05


def test_a_setting_that_the_file_does_not_name_is_left_to_people(service: Declared) -> None:
    service.client.put("/v1/routers/sms", json={**SMS, "holdout": 0.1})
    assert service.differences() == {}
    service.write(FILE.replace("alpha =", "holdout = 0.2\nalpha ="))
    service.carry_out()
    assert service.shown()["holdout"] == 0.2
    service.write()  # which names it no more
    service.carry_out()
    assert (service.shown()["holdout"], service.differences()) == (0.2, {})


def test_a_router_deleted_by_hand_stays_deleted_until_its_table_changes(service: Declared) -> None:
    service.client.delete("/v1/routers/sms")
    service.carry_out()
    service.restart()
    assert service.client.get("/v1/routers/sms").status_code == 404
    assert service.differences() == {"router": ("in service", "missing", "127.0.0.1")}
    service.write(alpha=0.07)
    service.carry_out()
    assert (service.shown()["alpha"], service.differences()) == (0.07, {})


BROKEN = [
    ("alpha = ", "cannot read"),
    ("a = " + "[" * 5000, "cannot read"),
    ("\x00", "cannot read"),
    ("[routers.sms]\nalpha = nan\narms = {a = 1}", r"\[routers.sms\].*alpha"),
    ("[routers.sms]\nalpha = 0.1\narms = {a = inf}", r"\[routers.sms\].*arms"),
    ("[routers.sms]\nalpha = 0.1\narms = {a = 2026-01-01}", r"\[routers.sms\].*arms"),
    ("[routers.sms]\nalpha = 0.1", r"\[routers.sms\].*arms"),
    ("[routers.sms]\nalpha = 2.0\narms = {a = 1}", r"\[routers.sms\].*alpha"),
    ("[routers.sms]\nalpha = 0.1\narms = {a = -1}", r"\[routers.sms\]"),
    ("[routers.sms]\nalpha = 0.1\narms = {}", r"\[routers.sms\]"),
    ('[routers.sms]\nalpha = 0.1\narms = {a = "cheap"}', r"\[routers.sms\]"),
    ("[routers.sms]\nalpha = 0.1\ncolour = 1\narms = {a = 1}", "colour"),
    ('[routers.sms]\nalpha = 0.1\npolicy = "no-such"\narms = {a = 1}', "no-such"),
    ('[routers.sms]\nalpha = 0.1\npolicy = "/tmp/x.py"\narms = {a = 1}', "policy_folder"),
    ("[routers.'a b']\nalpha = 0.1\narms = {a = 1}", "1 to 64 letters"),
    ("routers = 3", "tables such as"),
    ("routers = {sms = 3}", "table"),
    ("[router.sms]\nalpha = 0.1", "no setting 'router'"),
    ('reconcile = "always"', "reconcile must be one of report, enforce"),
    ("max_batch = 0", "max_batch"),
]


@pytest.mark.parametrize(("text", "match"), BROKEN)
def test_a_broken_file_is_refused_whole(text: str, match: str, tmp_path: Path) -> None:
    (tmp_path / "thrifty.toml").write_text(text)
    with pytest.raises(ValueError, match=match):
        ConfigFile.load({}, str(tmp_path / "thrifty.toml"))
    assert main(["serve", "--config", str(tmp_path / "thrifty.toml")]) == 2


def test_an_unknown_price_and_names_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text('\ufeff[routers.sms]\nalpha = 0\n[routers.sms.arms]\n"a b / ☃" = "unknown"\nb = 1\n')
    wanted = ConfigFile.load({}, str(tmp_path / "t.toml")).routers["sms"]
    assert (wanted.arms, wanted.settings) == ({"a b / ☃": None, "b": 1.0}, {"alpha": 0.0})


def test_a_broken_file_on_sighup_changes_nothing_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with declared(tmp_path) as service:
        before = service.shown()
        service.write(FILE.replace("b = 0.0041", "b = 'free'"), alpha=0.3)
        caplog.clear()
        service.carry_out()
        assert service.shown() == before
        assert "[routers.sms]" in service.drift()["error"]
        assert "thrifty_config_refused 1.0" in service.client.get("/metrics").text
        (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
        assert "send SIGHUP again" in record.facts["remedy"]  # type: ignore[attr-defined]
        service.write(alpha=0.3)
        service.carry_out()
        assert (service.shown()["alpha"], service.drift()["error"]) == (0.3, None)


def test_a_router_that_cannot_work_is_refused_alone(tmp_path: Path) -> None:
    with declared(tmp_path) as service:
        service.client.app.routers.quarantine("mail", "a broken row")
        more = "[routers.mail]\nalpha = 0.1\narms = {a = 1}\n[routers.news]\nalpha = 0.1\narms = {a = 1}\n"
        service.write(FILE + more, alpha=0.02)
        service.carry_out()
        states = {each["name"]: (each["state"], each["problem"]) for each in service.drift()["routers"]}
        assert states["mail"][0] == "refused"
        assert "quarantined" in str(states["mail"][1])
        assert (states["news"], states["sms"]) == (("as declared", None), ("as declared", None))
        assert service.shown()["alpha"] == 0.02


def test_a_router_that_is_being_opened_is_waited_for(tmp_path: Path) -> None:
    with declared(tmp_path) as service:
        routers = service.client.app.routers
        opened = routers._routers.pop("sms")
        routers._loading.add("sms")  # as when another replica has just made it
        service.write(alpha=0.3)
        service.carry_out()
        assert service.drift()["routers"][0]["problem"] is None
        routers._loading.discard("sms")
        routers._add("sms", opened)
        assert service.reconciler is not None
        service.reconciler.tick()
        assert (service.shown()["alpha"], service.differences()) == (0.3, {})


def test_settings_that_need_a_restart_are_named(tmp_path: Path) -> None:
    with declared(tmp_path) as service:
        service.write("max_batch = 5\nadmin_key = 'secret'\n" + FILE)
        service.carry_out()
        assert service.drift()["needs_restart"] == ["max_batch", "admin_key"]
        assert "secret" not in json.dumps(service.drift())


def test_replicas_with_one_file_make_one_router(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.database()
    with declared(tmp_path, store=url) as one, running(tmp_path, store=url) as client:
        two = Declared(client, one.path)
        two.carry_out()
        one.write(alpha=0.2)
        for each in (one, two):
            each.carry_out()
        until = time.monotonic() + 5
        while two.shown()["alpha"] != 0.2 or one.shown()["version"] != two.shown()["version"]:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert one.differences() == two.differences() == {}


def test_a_noted_declaration_changes_no_router(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.put("/v1/routers/sms", json=SMS)
        before, router = client.get("/v1/routers/sms").json(), client.app.routers.router("sms")
        make_changes(router, lambda _state: [("declare", {"declared": {}, "by": "x"})])
        assert client.get("/v1/routers/sms").json() == before
    with running(tmp_path) as client:
        assert client.get("/v1/routers/sms").json() == before
        assert client.get("/v1/drift").json()["file"] is None


def test_sighup_reloads_a_service_and_drift_is_logged(launch: Callable[..., Service], tmp_path: Path) -> None:
    file = tmp_path / "thrifty.toml"
    file.write_text(FILE.format(reconcile="report", alpha=0.05, price=0.0079))
    service = launch("--config", str(file))
    assert service.process is not None

    def alpha() -> float:
        return float(httpx.get(f"{service.url}/v1/routers/sms").json()["alpha"])

    assert alpha() == 0.05
    httpx.put(f"{service.url}/v1/routers/sms", json={**SMS, "alpha": 0.02})
    for text, price in (("alpha = {", None), (FILE.format(reconcile="report", alpha=0.05, price=0.006), 0.006)):
        file.write_text(text)
        service.process.send_signal(signal.SIGHUP)
        until = time.monotonic() + 10
        while (price is None) != (httpx.get(f"{service.url}/v1/drift").json()["error"] is not None):
            assert time.monotonic() < until
            time.sleep(0.05)
    while httpx.get(f"{service.url}/v1/routers/sms").json()["arms"]["a"]["price"] != 0.006:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert alpha() == 0.02
    code, err = service.stop()
    events = [json.loads(line) for line in err.splitlines()]
    assert code == 0
    drift = next(event for event in events if event["event"] == "drift")
    assert (drift["field"], drift["declared"], drift["actual"], drift["by"]) == ("alpha", 0.05, 0.02, "127.0.0.1")
    assert drift["changed_at"] - 0.001 <= drift["at"] <= time.time()  # a line has the time of its writing, to the millisecond
    refused = next(event for event in events if event["event"] == "configuration file refused")
    assert "cannot read" in refused["error"]
