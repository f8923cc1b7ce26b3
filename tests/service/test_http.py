import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from tests.service.conftest import free_port
from thrifty.cli.main import main
from thrifty.service.app import App
from thrifty.service.config import Config
from thrifty.service.keys import digest
from thrifty.service.server import how_to_run
from thrifty.store import open_store

JSON = {"content-type": "application/json"}
SMS = {"arms": {"a": 0.0079, "b": 0.0041}, "alpha": 0.05, "policy": "cs-ucb"}


class Caller(httpx.Client):
    """A client of a service that runs in a thread of this process."""

    app: App


@contextmanager
def running(folder: Path, keys: dict[str, str] | None = None, *, opened: bool = True, **config: Any) -> Iterator[Caller]:
    """A service whose routers are open, unless `opened` is false."""
    config = {"store": f"sqlite:///{folder / 's.db'}", **config}
    store = open_store(config["store"], degraded_s=config.get("degraded_s", 60.0))
    for key, role in (keys or {}).items():
        store.add_key(digest(key), key, role)
    app, port = App(Config(**config), store), free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, **how_to_run(app)))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started or (opened and app.routers.starting):
        time.sleep(0.01)
    try:
        with Caller(base_url=f"http://127.0.0.1:{port}", timeout=300, headers=JSON) as client:
            client.app = app
            yield client
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Caller]:
    with running(tmp_path) as client:
        assert client.put("/v1/routers/sms", json=SMS).status_code == 201
        yield client


def decide(client: Caller, **more: Any) -> Any:
    response = client.post("/v1/decisions", json={"router": "sms", **more})
    assert response.status_code == 200, response.text
    return response.json()


def test_decide_record_and_explain(client: Caller) -> None:
    decision = decide(client, segment="DE/vodafone", request_id="r1", context={"hour": 3})
    assert set(decision) == {
        "decision_id",
        "arm",
        "fallbacks",
        "propensity",
        "explored",
        "reason",
        "version",
        "repeated",
        "degraded",
    }
    assert set(decision["reason"]) == {"code", "best_arm", "floor", "estimates", "saving", "text"}
    outcome = {"decision_id": decision["decision_id"], "status": "success"}
    assert client.post("/v1/outcomes", json=outcome).json()["result"] == "recorded"
    assert client.post("/v1/outcomes", json=outcome).json()["result"] == "duplicate"
    by_reference = {"router": "sms", "reference": "r1", "reward": 0.5}
    assert client.post("/v1/outcomes", json=by_reference).json() == {"decision_id": decision["decision_id"], "result": "corrected"}
    explained = client.get("/v1/routers/sms/segments/DE/vodafone").json()
    arm = next(arm for arm in explained["arms"] if arm["arm"] == decision["arm"])
    assert (arm["decisions"], arm["outcomes"], arm["pending"], arm["reward_sum"]) == (1, 1, 0, 0.5)
    assert client.get("/v1/routers/sms/segments").json()["segments"] == ["", "DE", "DE/vodafone"]
    assert client.get("/v1/routers/sms/segments/FR").status_code == 404


def test_a_retry_with_the_same_request_id_gets_the_same_decision(client: Caller) -> None:
    first, second = decide(client, request_id="x"), decide(client, request_id="x")
    assert first["decision_id"] == second["decision_id"]
    assert second["repeated"]


def test_batches_answer_item_by_item(client: Caller) -> None:
    asked = [{"router": "sms"}, {"router": "nobody"}, {"router": "sms", "eligible": [{"arm": "b", "cost": 0.1}]}]
    answers = client.post("/v1/decisions", json=asked).json()
    assert answers[1]["error"]["code"] == "router"
    assert answers[2]["arm"] == "b"
    told = [{"decision_id": answers[0]["decision_id"], "reward": 1}, {"decision_id": "sms.0.999", "reward": 1}]
    results = client.post("/v1/outcomes", json=told).json()
    assert results[0]["result"] == "recorded"
    assert results[1]["error"]["code"] == "decision"
    assert client.post("/v1/decisions", json=[]).status_code == 422


def test_arms_change_while_running_and_every_change_is_in_the_log(client: Caller) -> None:
    path = "/v1/routers/sms/arms"
    assert client.post(f"{path}/c:add", json={"price": 0.001}).json()["arms"]["c"]["newcomer"]
    assert client.post(f"{path}/a:pause").json()["arms"]["a"]["status"] == "paused"
    assert client.post(f"{path}/b:price", json={"price": 0.5}).json()["arms"]["b"]["price"] == 0.5
    assert client.post(f"{path}/b:pin").json()["pinned"] == "b"
    assert decide(client)["reason"]["code"] == "pinned"
    for action in ("unpin", "reset", "retire"):
        assert client.post(f"{path}/b:{action}").status_code == 200
    assert client.post(f"{path}/c:paint").status_code == 404
    refused = client.post(f"{path}/c:retire")
    assert refused.status_code == 422
    assert "last active" in refused.json()["error"]["message"]
    app = client.app
    rows = [row for _, row in app.store.journal("sms").read(0) if row.kind == "c"]
    assert [row.code for row in rows] == ["create", "add", "pause", "price", "pin", "unpin", "reset", "retire"]
    assert json.loads(rows[1].detail)["by"] == "127.0.0.1"


def test_putting_a_router_again_changes_it(client: Caller) -> None:
    answer = client.put("/v1/routers/sms", json={**SMS, "arms": {"b": 0.004, "c": 0.1}, "alpha": 0.2})
    assert answer.status_code == 200
    shown = client.get("/v1/routers/sms").json()
    assert (shown["alpha"], shown["arms"]["a"]["status"], shown["arms"]["b"]["price"]) == (0.2, "retired", 0.004)
    assert client.get("/v1/routers").json() == {"routers": ["sms"], "quarantined": {}}
    assert client.delete("/v1/routers/sms").status_code == 204
    assert client.delete("/v1/routers/sms").status_code == 404
    assert client.put("/v1/routers/sms", json=SMS).status_code == 201


def test_a_deleted_router_stays_deleted_and_others_come_back(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.put("/v1/routers/sms", json=SMS)
        client.put("/v1/routers/mail", json=SMS)
        client.delete("/v1/routers/mail")
        decision = decide(client)
    with running(tmp_path) as client:
        assert client.get("/v1/routers").json() == {"routers": ["sms"], "quarantined": {}}
        told = {"decision_id": decision["decision_id"], "reward": 1}
        assert client.post("/v1/outcomes", json=told).json()["result"] == "recorded"


@pytest.mark.parametrize(
    ("path", "body", "status", "named"),
    [
        ("decisions", b"{", 400, "JSON"),
        ("decisions", b"\xff\xfe", 400, "JSON"),
        ("decisions", b"[" * 100_000, 422, "got `array`"),
        ("decisions", b"{}", 422, "router"),
        ("decisions", b'{"router": 5}', 422, "router"),
        ("decisions", b'{"router": "sms", "colour": 1}', 422, "colour"),
        ("decisions", b'{"router": "sms", "segment": "a\\nb"}', 422, "segment"),
        ("decisions", b'{"router": "sms", "eligible": []}', 422, "eligible"),
        ("decisions", b'{"router": "sms", "eligible": [{"arm": "zz"}]}', 422, "'zz'"),
        ("decisions", b'{"router": "sms", "eligible": [{"arm": "a", "cost": 1e400}]}', 422, "umber"),
        ("decisions", b'{"router": "sms", "eligible": [{"arm": "a", "cost": -1}]}', 422, "eligible[0].cost"),
        ("decisions", b'{"router": "other"}', 404, "other"),
        ("outcomes", b'{"decision_id": "sms.0.1", "reward": NaN}', 400, "JSON"),
        ("outcomes", b'{"decision_id": "sms.0.1", "reward": 2}', 422, "reward"),
        ("outcomes", b'{"decision_id": "sms.0.1", "reward": true}', 422, "reward"),
        ("outcomes", b'{"decision_id": "sms.0.1", "status": "won"}', 422, "status"),
        ("outcomes", b'{"decision_id": "sms.0.1"}', 422, "reward"),
        ("outcomes", b'{"reward": 1}', 422, "decision_id"),
        ("outcomes", b'{"decision_id": "sms.0.77", "reward": 1}', 404, "sms.0.77"),
        ("outcomes", b'{"decision_id": "x\' OR 1=1 --", "reward": 1}', 404, "OR 1=1"),
        ("outcomes", b'{"decision_id": "sms.0.1", "reward": 1, "cost": 1' + b"0" * 400 + b"}", 422, "umber"),
    ],
)
def test_wrong_bodies_are_refused_with_the_field(client: Caller, path: str, body: bytes, status: int, named: str) -> None:
    response = client.post(f"/v1/{path}", content=body)
    assert response.status_code == status
    assert named in response.json()["error"]["message"]


def test_large_bodies_and_batches_are_refused(client: Caller) -> None:
    assert client.post("/v1/decisions", content=b" " * 10_000_000).status_code == 413
    assert client.put("/v1/routers/x", content=b" " * 10_000_000).status_code == 413
    assert client.post("/v1/decisions", content=iter([b" " * 600_000] * 2)).status_code == 413
    assert client.post("/v1/decisions", json=[{"router": "sms"}] * 1001).status_code == 422


@pytest.mark.parametrize(
    "body", [b'{"arms": {}, "alpha": 0.1}', b'{"arms": {"a": 1}, "alpha": 7}', b'{"arms": {"a": 1}, "alpha": 0, "policy": "x"}']
)
def test_wrong_routers_are_refused(client: Caller, body: bytes) -> None:
    assert client.put("/v1/routers/new", content=body).status_code == 422
    assert client.put("/v1/routers/a b", json=SMS).status_code == 422


def test_keys_and_roles(tmp_path: Path) -> None:
    with running(tmp_path, {"ann": "admin", "dan": "decide", "oz": "outcome"}) as client:

        def status(key: str | None, method: str, path: str, body: Any) -> int:
            headers = {"authorization": f"Bearer {key}"} if key is not None else {}
            return int(client.request(method, path, json=body, headers=headers).status_code)

        assert status("ann", "PUT", "/v1/routers/sms", SMS) == 201
        for key, expected in ((None, 401), ("wrong", 401), ("dan", 200), ("oz", 403), ("ann", 200)):
            assert status(key, "POST", "/v1/decisions", {"router": "sms"}) == expected
        told = {"decision_id": "sms.0.1", "reward": 1}
        for key, expected in ((None, 401), ("dan", 403), ("oz", 200), ("ann", 200)):
            assert status(key, "POST", "/v1/outcomes", told) == expected
        for key, expected in ((None, 401), ("dan", 403), ("oz", 403), ("ann", 200)):
            assert status(key, "GET", "/v1/routers/sms", None) == expected
            assert status(key, "POST", "/v1/routers/sms/arms/a:reset", None) == expected
        changes = [row for _, row in client.app.store.journal("sms").read(0) if row.kind == "c"]
        assert json.loads(changes[-1].detail)["by"] == "ann@127.0.0.1"
        assert status(None, "GET", "/healthz", None) == 200
        refused = client.post("/v1/decisions", json={"router": "sms"})
        assert refused.headers["www-authenticate"] == "Bearer"


def test_every_key_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from thrifty.service import keys

    compared: list[bytes] = []
    compare = hmac.compare_digest

    def watched(known: bytes, presented: bytes) -> bool:
        compared.append(known)
        return compare(known, presented)

    monkeypatch.setattr(hmac, "compare_digest", watched)
    ring = keys.KeyRing([(digest(name), "decide") for name in "abc"])
    for key in ("a", "c", "wrong", None):
        compared.clear()
        ring.allows(key, "decide")
        assert len(compared) == 3


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_keys_are_given_out_and_taken_back(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}" if kind == "sqlite" else request.getfixturevalue("postgres").database()
    assert main(["keys", "ann", "--role", "admin", "--store", url, "--create"]) == 0
    key = capsys.readouterr().out.strip()
    assert key.startswith("thrifty_")
    store = open_store(url)
    (known,) = store.keys()
    assert known[:3] == (digest(key), "admin", "ann")
    store.close()
    assert main(["keys", "ann", "--revoke", "--store", url]) == 0
    assert main(["keys", "ann", "--revoke", "--store", url]) == 2
    assert "there is no key of the name 'ann'" in capsys.readouterr().err
    store = open_store(url)
    assert store.keys() == []
    store.close()


def test_without_keys_only_loopback_is_served(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 's.db'}")
    with pytest.raises(ValueError, match="there are no keys"):
        App(Config(host="0.0.0.0"), store)
    assert App(Config(host="0.0.0.0", admin_key="k"), store).access.keys.allows("k", "decide")
    store.close()


def test_health_metrics_and_documents(client: Caller) -> None:
    decide(client)
    assert client.get("/healthz").text == "ok\n"
    assert client.get("/readyz").text == "ready\n"
    metrics = client.get("/metrics").text
    assert 'thrifty_decisions_total{router="sms"} 1' in metrics
    assert 'thrifty_requests_total{route="/v1/decisions",status="200"} 1' in metrics
    assert client.get("/openapi.json").json()["openapi"] == "3.1.0"
    assert "POST /v1/decisions" in client.get("/docs").text
    assert client.get("/nowhere").status_code == 404
    for path in ("/v1/decisions", "/v1/outcomes"):
        refused = client.get(path)
        assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


def test_a_store_that_fails_is_a_503_with_retry_after(client: Caller) -> None:
    app = client.app
    decide(client)
    (pages,) = app.store._writing.execute("PRAGMA page_count").fetchone()
    app.store._writing.execute(f"PRAGMA max_page_count = {pages}")
    last = None
    for n in range(200):
        last = client.post("/v1/decisions", json=[{"router": "sms", "segment": "x" * 150 + str(n % 3)}] * 50)
        if last.status_code != 200:
            break
    assert last is not None
    assert last.status_code == 503
    assert last.headers["retry-after"] == "1"
    assert client.get("/readyz").status_code == 503
    app.store._writing.execute("PRAGMA max_page_count = 1000000")
    assert client.post("/v1/decisions", json={"router": "sms"}).status_code == 200
    assert client.get("/readyz").status_code == 200


def test_flags_beat_the_environment_and_that_beats_the_file(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('port = 1\nhost = "::1"\nmax_batch = 7\n')
    config = Config.load(
        {"port": 3, "host": None}, environment={"THRIFTY_PORT": "2", "THRIFTY_MAX_BATCH": "8"}, file=str(tmp_path / "c.toml")
    )
    assert (config.port, config.host, config.max_batch, config.loopback) == (3, "::1", 8, True)
    (tmp_path / "c.toml").write_text("colour = 1\n")
    with pytest.raises(ValueError, match="has no setting 'colour'"):
        Config.load({}, environment={}, file=str(tmp_path / "c.toml"))
    with pytest.raises(ValueError, match="port must be a whole number from 0 to 65535, got 'many'"):
        Config.load({}, environment={"THRIFTY_PORT": "many"})


def test_the_server_stops_gracefully_and_continues(launch: Callable[..., Any]) -> None:
    service = launch()
    httpx.put(f"{service.url}/v1/routers/sms", json=SMS, timeout=300)
    ids = [httpx.post(f"{service.url}/v1/decisions", json={"router": "sms"}).json()["decision_id"] for _ in range(5)]
    code, err = service.stop()
    assert code == 0
    events = [json.loads(line)["event"] for line in err.splitlines()]
    assert events[0] == "listening"
    assert events[-1] == "stopped"
    service.start()
    answers = [httpx.post(f"{service.url}/v1/outcomes", json={"decision_id": each, "reward": 1}).json()["result"] for each in ids]
    assert answers == ["recorded"] * 5


def test_a_deleted_router_leaves_a_snapshot_so_that_its_name_can_be_used_again_at_once(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        assert client.put("/v1/routers/sms", json=SMS).status_code == 201
        first = client.post("/v1/decisions", json={"router": "sms"}).json()["decision_id"]
        assert client.delete("/v1/routers/sms").status_code == 204
        store = open_store(f"sqlite:///{next(tmp_path.glob('*.db'))}", reading=True)
        journal, until = store.journal("sms"), time.monotonic() + 20
        while next(journal.snapshots(), (0, b""))[0] != journal.end():  # it is written in the background
            assert time.monotonic() < until
            time.sleep(0.01)
        store.close()
        assert client.put("/v1/routers/sms", json=SMS).status_code == 201
        assert (first, client.post("/v1/decisions", json={"router": "sms"}).json()["decision_id"]) == ("sms.0.1", "sms.0.2")


def test_a_rollout_is_shown_moved_and_guarded_over_http(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = {"arms": {"good": 1.0, "bad": 0.1}, "alpha": 0.1, "policy": "cheapest", "mode": "canary", "baseline": "good"}
    with running(tmp_path, {"secret": "admin", "looks": "view"}) as client:
        client.headers["authorization"] = "Bearer secret"
        url, command = "/v1/routers/sms/rollout", ["rollout", str(client.base_url), "sms", "--key"]
        assert client.put("/v1/routers/sms", json={**body, "canary_share": 0.5}).status_code == 201
        shown = client.get(url).json()
        assert (shown["mode"], shown["share"], shown["fallback"], shown["compared"]["group"]) == ("canary", 0.5, None, "baseline")
        assert client.put("/v1/routers/sms", json=client_settings(client.get("/v1/routers/sms").json())).status_code == 200
        codes: list[str] = []
        while "fallback" not in codes:
            decision = decide(client, key=f"customer-{len(codes) // 2}")
            client.post("/v1/outcomes", json={"decision_id": decision["decision_id"], "reward": float(decision["arm"] == "good")})
            codes.append(decision["reason"]["code"])
            assert len(codes) < 600
        assert len(codes) > 10
        assert all((one == "baseline") == (other == "baseline") for one, other in zip(codes[:10:2], codes[1:10:2], strict=True))
        shown = client.get(url).json()
        assert "the floor is broken beyond doubt" in shown["fallback"]["text"]
        assert (shown["keys"], shown["left_out"]) == (len(codes) // 2, (len(codes) - 1) // 2)
        assert "fallen back to the baseline good" in client.get("/v1/routers/sms/segments").json()["all"]["why"]
        assert main([*command, "looks"]) == 1
        out = capsys.readouterr().out
        assert "fallback: everything takes the baseline good" in out
        assert f"{len(codes) // 2:,} keys counted, each once; {(len(codes) - 1) // 2:,} later decisions of theirs left out" in out
        assert main([*command, "looks", "--to", "live"]) == 2
        assert "admin" in capsys.readouterr().err
        assert main([*command, "secret", "--to", "canary", "--share", "0.01", "--json"]) == 0
        moved = json.loads(capsys.readouterr().out)
        assert (moved["mode"], moved["share"], moved["fallback"], moved["routed"]["decisions"]) == ("canary", 0.01, None, 0)
        for wrong in ({}, {"to": "dead"}, {"to": "canary", "share": 0}, {"to": "live", "share": "x"}, {"to": "live", "more": 1}):
            assert client.post(url, json=wrong).status_code == 422
        assert client.post("/v1/routers/nobody/rollout", json={"to": "live"}).status_code == 404
        assert client.post("/v1/decisions", json={"router": "sms", "key": ""}).status_code == 422
        assert main([*command, "secret", "--share", "0.5"]) == 2
        assert "give --to canary with it" in capsys.readouterr().err


def client_settings(shown: dict[str, Any]) -> dict[str, Any]:
    """The body that leaves a router as it is shown."""
    arms = {arm: facts["price"] for arm, facts in shown["arms"].items()}
    return {**{name: value for name, value in shown.items() if name not in ("name", "version", "pinned")}, "arms": arms}
