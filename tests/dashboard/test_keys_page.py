"""Keys in a real browser: asked for, wrong, revoked, expired; made and revoked on the page of keys."""

import time
from collections.abc import Callable

import httpx
from playwright.sync_api import Page, expect

from tests.dashboard.conftest import Watched
from tests.dashboard.test_pages import assert_accessible, filled, make
from tests.service.conftest import Service
from thrifty.service.keys import digest, make_key
from thrifty.store import open_store

Visit = Callable[..., Watched]

# The order of the tests matters: the first one makes the first key, and the others need it.
KEYS: dict[str, str] = {}


def enter(page: Page, key: str) -> None:
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Continue").click()


def admin() -> dict[str, str]:
    return {"Authorization": f"Bearer {KEYS['admin']}"}


def a_key(api: httpx.Client, name: str, role: str, **options: object) -> str:
    made = api.post("/v1/keys", json={"name": name, "role": role, **options}, headers=admin())
    return str(made.json()["key"])


def test_the_first_key_is_made_in_the_browser_shown_once_and_used_from_then_on(visit: Visit, api: httpx.Client) -> None:
    make(api, "sms", {"dear": 2.0, "cheap": 1.0})
    watched = visit()
    page = filled(watched.open("/keys"))
    expect(page.locator(".alert")).to_contain_text("No key is needed yet")
    page.get_by_label("Name").fill("<i>ann</i>")
    page.get_by_role("button", name="Make key").click()
    expect(page.locator("#new-key-text")).to_contain_text("thrifty_")
    KEYS["admin"] = page.locator("#new-key-text").inner_text()
    expect(page.locator("table.data tbody th bdi")).to_have_text("<i>ann</i>")
    assert_accessible(page)
    page.get_by_role("button", name="Hide").click()
    assert KEYS["admin"] not in page.content()
    assert api.get("/v1/routers").status_code == 401
    page = filled(watched.open("/"))
    expect(page.get_by_role("link", name="sms")).to_be_visible()
    assert page.evaluate("localStorage.length + document.cookie.length") == 0


def test_a_visitor_without_a_key_is_asked_for_one_and_sees_nothing_before(visit: Visit, api: httpx.Client) -> None:
    watched = visit(expected={401})
    page = watched.open("/routers/sms")
    expect(page.get_by_role("heading", name="This service asks for a key")).to_be_visible()
    assert watched.refused == []
    page.keyboard.press("Escape")
    expect(page.locator("#key-dialog")).to_be_visible()
    assert page.locator("[data-part] *").count() == 0
    assert_accessible(page)
    enter(page, "wrong")
    expect(page.locator("#key-error")).to_have_text("This key is not valid, or no longer.")
    assert page.locator("[data-part] *").count() == 0
    enter(page, a_key(api, "viewer", "view"))
    expect(page.locator("tr.is-chosen, table[data-of=arms] tbody tr").first).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 1
    assert "thrifty_" not in page.url


def test_a_key_for_viewing_shows_everything_and_no_lever(visit: Visit, api: httpx.Client) -> None:
    watched = visit(a_key(api, "reader", "view"))
    for path in ("/", "/routers/sms", "/keys"):
        page = filled(watched.open(path))
        expect(page.locator("table.data").first).to_be_visible()
        assert page.locator("main [data-lever], main form").count() == 0


def test_a_key_that_is_revoked_while_the_page_is_open_hides_everything(visit: Visit, api: httpx.Client) -> None:
    watched = visit(expected={401})
    page = watched.open("/routers/sms")
    enter(page, a_key(api, "leaver", "view"))
    expect(page.locator("table[data-of=arms] tbody tr").first).to_be_visible()
    api.delete("/v1/keys/leaver", headers=admin()).raise_for_status()
    api.post("/v1/decisions", json={"router": "sms"}, headers=admin()).raise_for_status()
    expect(page.locator("#key-error")).to_have_text("This key is not valid, or no longer.")
    assert page.locator("[data-part] *").count() == 0
    assert page.evaluate("sessionStorage.length") == 0


def test_a_key_that_has_expired_says_when(visit: Visit, service: Service) -> None:
    key = make_key()
    service.stop()
    store = open_store(service.store)
    store.add_key(digest(key), "short", "view", expires_at=time.time() - 1.0)
    store.close()
    service.start()
    page = visit(expected={401}).open("/")
    enter(page, key)
    expect(page.locator("#key-error")).to_contain_text("this key expired at")


def test_keys_are_revoked_on_their_page_after_a_confirmation(visit: Visit, api: httpx.Client) -> None:
    key = a_key(api, "gone/ <b>", "view")
    page = filled(visit(KEYS["admin"]).open("/keys"))
    page.get_by_role("button", name="Revoke all keys of gone/ <b>").click()
    expect(page.locator("#lever-preview")).to_contain_text("cannot be undone")
    page.locator("#lever-confirm").click()
    expect(page.get_by_role("button", name="Revoke all keys of gone/ <b>")).to_have_count(0)
    assert api.get("/v1/routers", headers={"Authorization": f"Bearer {key}"}).status_code == 401


def test_a_key_can_be_forgotten(visit: Visit) -> None:
    page = visit().open("/")
    enter(page, KEYS["admin"])
    expect(page.get_by_role("link", name="sms")).to_be_visible()
    page.get_by_role("button", name="Forget key").click()
    expect(page.locator("#key-dialog")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0
