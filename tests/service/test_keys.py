"""Keys on a running service: made, listed, revoked; what each role may do; how often."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.postgres import Postgres
from tests.service.conftest import Service
from tests.service.test_http import SMS, Caller, running
from thrifty.cli.main import main
from thrifty.service.access import Access
from thrifty.service.config import Config
from thrifty.service.keys import digest, make_key, written
from thrifty.store import StoredKey

ROUTES: list[tuple[str, str, Any]] = [
    ("POST", "/v1/decisions", {"router": "sms"}),
    ("POST", "/v1/outcomes", {"decision_id": "sms.0.1", "reward": 1}),
    ("GET", "/v1/routers", None),
    ("GET", "/v1/routers/sms", None),
    ("GET", "/v1/routers/sms/segments", None),
    ("GET", "/v1/keys", None),
    ("PUT", "/v1/routers/sms", SMS),
    ("POST", "/v1/routers/sms/arms/a:reset", None),
    ("POST", "/v1/keys", {"name": "another", "role": "view"}),
    ("DELETE", "/v1/keys/another", None),
]


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def make(client: Caller, name: str, role: str, key: str = "") -> str:
    answer = client.post("/v1/keys", json={"name": name, "role": role}, headers=bearer(key) if key else {})
    assert answer.status_code == 201, answer.text
    assert (answer.json()["name"], answer.json()["role"]) == (name, role)
    return str(answer.json()["key"])


def statuses(client: Caller, key: str) -> list[int]:
    """The answers to all routes, with a key or without one."""
    headers = bearer(key) if key else {}
    return [client.request(method, path, json=body, headers=headers).status_code for method, path, body in ROUTES]


def test_keys_are_made_listed_and_revoked_while_the_service_runs(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.put("/v1/routers/sms", json=SMS)
        refused = client.post("/v1/keys", json={"name": "dan", "role": "decide"})
        assert (refused.status_code, "first key" in refused.text) == (422, True)
        assert client.get("/v1/routers").status_code == 200
        ann = make(client, "ann", "admin")
        assert statuses(client, "") == [401] * len(ROUTES)
        assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200
        dan, vic = make(client, "dan", "decide,outcome", ann), make(client, "vic", "view", ann)
        assert statuses(client, dan) == [200, 200] + [403] * 8
        assert statuses(client, vic) == [403, 403, 200, 200, 200, 200] + [403] * 4
        assert statuses(client, ann) == [200, 200, 200, 200, 200, 200, 200, 200, 201, 204]
        listed = client.get("/v1/keys", headers=bearer(vic))
        shown = [(key["name"], key["role"], key["expires_at"], key["expired"]) for key in listed.json()["keys"]]
        assert shown == [("ann", "admin", None, False), ("dan", "decide,outcome", None, False), ("vic", "view", None, False)]
        assert all(time.time() - 60 < key["made_at"] <= key["used_at"] <= time.time() for key in listed.json()["keys"])
        assert not any(secret in listed.text for key in (ann, dan, vic) for secret in (key, digest(key)))
        assert client.delete("/v1/keys/dan", headers=bearer(ann)).status_code == 204
        assert client.delete("/v1/keys/dan", headers=bearer(ann)).status_code == 404
        assert client.post("/v1/decisions", json={"router": "sms"}, headers=bearer(dan)).status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "x", "role": "king"},
        {"name": "x", "role": "admin,"},
        {"name": "x", "role": "admin\n"},
        *({"name": name} for name in ("k\n", "\n", "a\x00b", "a\x7f", "a\x85b", "a\u2028b", "\u202eevil", "a\u200bb", "x" * 201)),
        {"name": "x", "colour": 1},
        *({"name": "x", "days": days} for days in (0, -1, 1e-9, 0.0099, 1e9, "1", True)),
    ],
)
def test_wrong_keys_are_refused(tmp_path: Path, body: Any) -> None:
    with running(tmp_path, admin_key="k") as client:
        assert client.post("/v1/keys", json=body, headers=bearer("k")).status_code == 422
        assert client.get("/v1/keys", headers=bearer("k")).json() == {"keys": []}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_service_that_asks_for_keys_keeps_an_admin_key_that_does_not_expire(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    more = {} if kind == "sqlite" else {"store": request.getfixturevalue("postgres").database()}
    with running(tmp_path, **more) as client:
        refused = client.post("/v1/keys", json={"name": "ann", "role": "admin", "days": 30})
        assert (refused.status_code, "must not expire" in refused.text) == (422, True)
        assert client.get("/v1/routers").status_code == 200
        ann = make(client, "ann", "admin")
        make(client, "ann", "admin", ann)
        eve = client.post("/v1/keys", json={"name": "eve", "role": "admin", "days": 30}, headers=bearer(ann)).json()["key"]
        make(client, "vic", "view", ann)
        refused = client.delete("/v1/keys/ann", headers=bearer(ann))
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "last")
        assert "under another name first" in refused.text
        assert client.get("/v1/routers", headers=bearer(ann)).status_code == 200
        make(client, "bob", "decide,admin", ann)
        with ThreadPoolExecutor(2) as pool:  # each is the last one once the other is gone
            answers = list(
                pool.map(lambda name: client.delete(f"/v1/keys/{name}", headers=bearer(eve)).status_code, ("ann", "bob"))
            )
        assert sorted(answers) == [204, 409]


def test_the_last_key_of_the_store_can_go_where_the_configuration_has_one(tmp_path: Path) -> None:
    with running(tmp_path, {"ann": "admin"}, admin_key="k") as client:
        assert client.delete("/v1/keys/ann", headers=bearer("ann")).status_code == 204
        assert client.get("/v1/routers", headers=bearer("k")).status_code == 200


def test_a_store_whose_keys_were_all_revoked_opens_closed(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.put("/v1/routers/sms", json=SMS)
        ann = make(client, "ann", "admin")
    assert main(["keys", "ann", "--revoke", "--store", f"sqlite:///{tmp_path / 's.db'}"]) == 0
    with running(tmp_path) as client:
        for key in (ann, ""):
            assert statuses(client, key) == [401] * len(ROUTES)
        assert client.get("/healthz").status_code == 200
    with running(tmp_path, admin_key="k") as client:
        assert client.get("/v1/routers", headers=bearer("k")).status_code == 200


def test_replicas_notice_keys_within_a_second(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.database()
    with running(tmp_path, store=url) as one, running(tmp_path, store=url) as two:
        ann = make(one, "ann", "admin")
        dan = make(one, "dan", "view", ann)
        time.sleep(1.0)
        assert two.get("/v1/routers").status_code == 401
        assert two.get("/v1/routers", headers=bearer(dan)).status_code == 200
        bob = make(one, "bob", "admin", ann)
        for name in ("dan", "ann"):
            assert one.delete(f"/v1/keys/{name}", headers=bearer(bob)).status_code == 204
        time.sleep(1.0)
        for key in (dan, ann):
            assert two.get("/v1/routers", headers=bearer(key)).status_code == 401


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_key_expires_and_says_so(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    more = {} if kind == "sqlite" else {"store": request.getfixturevalue("postgres").database()}
    with running(tmp_path, {"k": "admin"}, **more) as client:
        answer = client.post("/v1/keys", json={"name": "long", "role": "view", "days": 0.01}, headers=bearer("k"))
        assert 860 < answer.json()["expires_at"] - time.time() <= 864
        assert client.delete("/v1/keys/long", headers=bearer("k")).status_code == 204
        vic, expires_at = make_key(), time.time() + 2.0
        client.app.store.add_key(digest(vic), "vic", "view", expires_at=expires_at)
        client.app.access.refresh()
        assert client.get("/v1/routers", headers=bearer(vic)).status_code == 200
        time.sleep(max(0.0, expires_at - time.time()) + 0.01)
        refused = client.get("/v1/routers", headers=bearer(vic))
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "expired")
        assert vic not in refused.text
        assert client.post("/v1/decisions", json={"router": "sms"}, headers=bearer(vic)).json()["error"]["code"] == "expired"
        _, listed = client.get("/v1/keys", headers=bearer("k")).json()["keys"]
        assert (listed["name"], listed["expires_at"], listed["expired"]) == ("vic", expires_at, True)
        assert listed["made_at"] <= listed["used_at"] < expires_at
        assert client.delete("/v1/keys/vic", headers=bearer("k")).status_code == 204
        assert client.get("/v1/routers", headers=bearer(vic)).json()["error"]["code"] == "key"
        used_at = {key["name"]: key["used_at"] for key in client.get("/v1/keys", headers=bearer("k")).json()["keys"]}
    with running(tmp_path, **more) as client:  # the last use is kept
        (stored,) = client.app.store.keys()
        assert used_at["k"] <= stored.used_at <= time.time()


def test_each_key_has_a_rate(tmp_path: Path) -> None:
    with running(tmp_path, {"ann": "admin", "dan": "decide"}, rate_limit=5.0) as client:
        client.put("/v1/routers/sms", json=SMS, headers=bearer("ann"))
        time.sleep(1.1)
        answers = [client.post("/v1/decisions", json={"router": "sms"}, headers=bearer("dan")) for _ in range(20)]
        assert [answer.status_code for answer in answers][:5] == [200] * 5
        refused = [answer for answer in answers if answer.status_code == 429]
        assert len(refused) >= 10
        assert refused[0].headers["retry-after"] == "1"
        assert refused[0].json()["error"]["code"] == "rate"
        assert client.get("/v1/routers", headers=bearer("ann")).status_code == 200
        assert client.get("/v1/routers", headers=bearer("dan")).status_code in (403, 429)
        time.sleep(0.5)
        assert client.post("/v1/decisions", json={"router": "sms"}, headers=bearer("dan")).status_code == 200


def test_the_command_makes_keys_in_a_running_service(
    launch: Callable[..., Service], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = launch()

    def keys(*arguments: str) -> tuple[int, str]:
        code = main(["keys", *arguments])
        said = capsys.readouterr()
        return code, (said.out + said.err).strip()

    code, ann = keys("ann", "--role", "admin", "--url", service.url)
    assert (code, ann.startswith("thrifty_")) == (0, True)
    assert keys("--list", "--url", service.url)[0] == 2
    code, said = keys("--list", "--url", service.url, "--key", ann)
    assert said.splitlines()[0].split("\t") == ["name", "role", "made", "last used", "expires"]
    today = time.strftime("%Y-%m-%d", time.gmtime())
    name, role, made, used, expires = said.splitlines()[1].split("\t")
    assert (name, role, made[:10], used[:10], expires) == ("ann", "admin", today, today, "-")
    monkeypatch.setenv("THRIFTY_KEY", ann)
    code, vic = keys("vic / o", "--role", "view", "--days", "1.5", "--url", service.url)
    ends = [written(time.time() + 1.5 * 86_400 - past) for past in (0, 60)]
    assert keys("--list", "--url", service.url)[1].splitlines()[2].split("\t")[4] in ends
    assert httpx.get(f"{service.url}/v1/routers", headers=bearer(vic)).status_code == 200
    assert keys("vic / o", "--revoke", "--url", service.url) == (0, "no key of vic / o is valid any more")
    assert httpx.get(f"{service.url}/v1/routers", headers=bearer(vic)).status_code == 401
    assert keys("ann", "--url", "http://127.0.0.1:9")[0] == 2
    code, said = keys("bob", "--store", service.store)
    assert (code, "in use" in said, "--url" in said) == (2, True, True)
    code, said = keys("--list", "--store", service.store)  # which only reads
    assert (code, said.splitlines()[1].split("\t")[:2]) == (0, ["ann", "admin"])


def test_the_last_use_of_a_key_is_listed_while_it_is_being_stored() -> None:
    key, listed = make_key(), []

    class SlowStore:
        keys_required = True
        used_at: dict[str, float] = {}  # noqa: RUF012

        def keys(self) -> list[StoredKey]:
            return [StoredKey(digest(key), "admin", "ann", None, 1.0, self.used_at.get(digest(key)))]

        def note_uses(self, used_at: dict[str, float]) -> None:
            listed.extend(access.listed())
            self.used_at = used_at

    access = Access(Config(), SlowStore())
    assert [each.used_at for each in access.listed()] == [None]
    access.authorise([(b"authorization", f"Bearer {key}".encode())], "admin")
    access.note_uses()
    access.note_uses()
    assert len(listed) == 1
    assert listed[0].used_at is not None
    assert access.listed() == listed


def test_the_command_makes_no_store_by_accident(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("THRIFTY_STORE", raising=False)
    assert main(["keys", "ann"]) == 2
    assert "there is no store thrifty.db" in capsys.readouterr().err
    monkeypatch.setenv("THRIFTY_STORE", "sqlite:///other.db")
    assert main(["keys", "ann"]) == 2
    assert "there is no store other.db" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    assert main(["keys", "ann", "--create"]) == 0
    assert main(["keys", "--list"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split("\t")[:2] == ["ann", "decide,outcome"]
    days = [["keys", "ann", "--days", days] for days in ("0", "-1", "nan", "1e9", "1e-9")]
    days += [["keys", name] for name in ("k\n", "", "x" * 201)]
    for wrong in (["keys"], ["keys", "ann", "--list"], ["keys", "ann", "--role", "king"], ["keys", "--list", "--days", "3"], *days):
        assert main(wrong) == 2
    assert {path.name for path in tmp_path.iterdir()} >= {"other.db"}
