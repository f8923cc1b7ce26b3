"""The routes of the dashboard without a browser: headers, roles, foreign pages, and nothing secret where it could be read."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.service.conftest import Service

PAGES = ("/", "/routers/sms", "/routers/sms/segments/DE", "/keys")
ASSETS = ("/dashboard/dashboard.js", "/dashboard/dashboard.css", "/dashboard/icon.svg")
ROUTER_PARTS = ("tags", "head", "picture", "arms", "series", "frontier", "rollout", "segments", "decisions", "changes")
PARTS = (
    "/dashboard/overview?part=overview",
    "/dashboard/overview?part=alerts",
    "/dashboard/keys?part=keys",
    *(f"/dashboard/routers/sms?part={part}" for part in ROUTER_PARTS),
    *(f"/dashboard/routers/sms?part={part}&segment=DE" for part in ROUTER_PARTS),
    *(f"/dashboard/routers/sms?part=series&range={span}" for span in ("live", "hours", "day", "month", "year")),
)
LEVERS: tuple[tuple[str, str, dict[str, object] | None], ...] = (
    ("POST", "/v1/routers/sms/arms/a:pause", {}),
    ("POST", "/v1/routers/sms/alpha", {"alpha": 0.2}),
    ("POST", "/v1/routers/sms/undo", {"position": 1}),
    ("POST", "/v1/routers/sms/rollout", {"to": "shadow"}),
    ("POST", "/v1/keys", {"name": "x"}),
    ("DELETE", "/v1/keys/shop", None),
)


class Guarded:
    """A service with a router, an admin key and a view key."""

    def __init__(self, service: Service) -> None:
        self.service = service
        client = self.client = httpx.Client(base_url=service.url)
        client.put("/v1/routers/sms", json={"arms": {"a": 2.0, "b": 1.0}, "alpha": 0.1}).raise_for_status()
        client.post("/v1/decisions", json={"router": "sms", "segment": "DE"}).raise_for_status()
        self.admin = client.post("/v1/keys", json={"name": "ann-key", "role": "admin"}).json()["key"]
        made = client.post("/v1/keys", json={"name": "view-key", "role": "view"}, headers=self.headers(self.admin))
        self.view = made.json()["key"]

    def headers(self, key: str, **others: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}", **others}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder: Path = tmp_path_factory.mktemp("guarded")
    service = Service(f"sqlite:///{folder / 'service.db'}").start()
    made = Guarded(service)
    yield made
    made.client.close()
    if service.process is not None and service.process.poll() is None:
        service.kill()


@pytest.mark.parametrize("path", [*PAGES, *ASSETS])
def test_pages_have_no_data_and_a_strict_policy(guarded: Guarded, path: str) -> None:
    answer = guarded.client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    for secret in ("ann-key", "view-key", guarded.admin, guarded.view):
        assert secret not in answer.text
    if path in PAGES:
        assert re.findall(r"<script(?! src=)|<style| style=| on[a-z]+=", answer.text) == []


def test_a_page_that_the_browser_has_is_not_sent_again(guarded: Guarded) -> None:
    first = guarded.client.get("/dashboard/dashboard.js")
    again = guarded.client.get("/dashboard/dashboard.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", PARTS)
def test_parts_need_a_key_that_may_view(guarded: Guarded, path: str) -> None:
    assert guarded.client.get(path).status_code == 401
    assert guarded.client.get(path, headers=guarded.headers("wrong")).status_code == 401
    answer = guarded.client.get(path, headers=guarded.headers(guarded.view))
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("path", PARTS)
def test_whoever_may_only_view_is_shown_no_lever(guarded: Guarded, path: str) -> None:
    seen = guarded.client.get(path, headers=guarded.headers(guarded.view)).text
    assert "data-lever" not in seen
    assert "key-maker" not in seen


def test_whoever_may_change_things_is_shown_levers(guarded: Guarded) -> None:
    for part in ("tags", "arms"):
        seen = guarded.client.get(f"/dashboard/routers/sms?part={part}", headers=guarded.headers(guarded.admin)).text
        assert "data-lever" in seen


@pytest.mark.parametrize(("method", "path", "body"), LEVERS)
def test_no_lever_without_the_role_admin(guarded: Guarded, method: str, path: str, body: object) -> None:
    answer = guarded.client.request(method, path, json=body, headers=guarded.headers(guarded.view))
    assert answer.status_code == 403
    assert "admin" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", [*PAGES, *PARTS, *ASSETS])
def test_a_name_that_somebody_else_gave_this_address_is_refused(guarded: Guarded, path: str) -> None:
    """DNS rebinding: a foreign page lets its own name point to 127.0.0.1, and would be of the same origin."""
    answer = guarded.client.get(path, headers=guarded.headers(guarded.admin, Host="rebound.example"))
    assert answer.status_code == 421


@pytest.mark.parametrize(("method", "path", "body"), LEVERS)
def test_a_foreign_page_can_pull_no_lever(guarded: Guarded, method: str, path: str, body: object) -> None:
    """Cross-site requests: neither with JSON from a foreign origin, nor with a form, which needs no permission to be sent."""
    foreign = guarded.headers(guarded.admin, Origin="https://evil.example")
    assert guarded.client.request(method, path, json=body, headers=foreign).status_code == 403
    nowhere = guarded.headers(guarded.admin, Origin="null")
    assert guarded.client.request(method, path, json=body, headers=nowhere).status_code == 403
    if body is not None:
        form = guarded.headers(guarded.admin, **{"Content-Type": "text/plain"})
        assert guarded.client.request(method, path, content=json.dumps(body), headers=form).status_code == 415


@pytest.mark.parametrize(
    "path",
    [
        "/dashboard/routers/sms?part=arms&sort=price;drop",
        "/dashboard/routers/sms?part=arms&offset=-1",
        "/dashboard/routers/sms?part=arms&offset=9999999999999999",
        "/dashboard/routers/sms?part=segments&sort=%00",
    ],
)
def test_wrong_parameters_are_refused_in_words(guarded: Guarded, path: str) -> None:
    answer = guarded.client.get(path, headers=guarded.headers(guarded.admin))
    assert answer.status_code == 422
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "path",
    [
        "/dashboard/routers/sms?part=nothing",
        "/dashboard/routers/sms",
        "/dashboard/routers/nobody?part=arms",
        "/dashboard/routers/sms?part=arms&segment=XX",
        "/dashboard/secrets.txt",
        "/dashboard/..%2fparts.py",
    ],
)
def test_what_is_not_there_is_not_found(guarded: Guarded, path: str) -> None:
    assert guarded.client.get(path, headers=guarded.headers(guarded.admin)).status_code == 404


def test_no_key_is_written_to_the_log(guarded: Guarded) -> None:
    """The last test: it stops the service to read what it wrote."""
    guarded.client.post("/v1/routers/sms/arms/a:pause", headers=guarded.headers(guarded.admin)).raise_for_status()
    _, written = guarded.service.stop()
    assert "changed" in written
    assert guarded.admin not in written
    assert guarded.view not in written
