"""Levers in a real browser: each asks for confirmation with what it will do, is in the log, and can be undone."""

import re
from collections.abc import Callable

import httpx
from playwright.sync_api import Page, expect

from tests.dashboard.conftest import Watched
from tests.dashboard.test_pages import assert_accessible, decide, filled, make

Visit = Callable[..., Watched]


def router_page(visit: Visit, api: httpx.Client, name: str, **options: object) -> Page:
    """The page of a router of its own with some outcomes."""
    make(api, name, {"alder": 2.0, "birch": 1.0, "cedar": 3.0})
    decide(api, name, ["DE"] * 30)
    return filled(visit(**options).open(f"/routers/{name}"))


def shown(api: httpx.Client, name: str) -> dict[str, object]:
    found: dict[str, object] = api.get(f"/v1/routers/{name}").json()
    return found


def status(api: httpx.Client, name: str, arm: str) -> object:
    return shown(api, name)["arms"][arm]["status"]  # type: ignore[index]


def pull(page: Page, button: str, action: str | None = None, *, within: str = "table[data-of=arms]", **fields: str) -> None:
    """Open a lever, choose an action, fill in its fields, read what it will do, and confirm."""
    page.locator(within).get_by_role("button", name=button).click()
    dialog = page.locator("#lever-dialog")
    if action is not None:
        dialog.get_by_role("radio", name=re.compile(f"^{action}")).check()
    for label, value in fields.items():
        dialog.get_by_label(label.replace("_", " ")).fill(value)
    expect(dialog.locator("#lever-preview")).not_to_be_empty()
    expect(dialog.locator("#lever-confirm")).to_be_enabled()
    dialog.locator("#lever-confirm").click()
    expect(dialog).to_be_hidden()


def undo(page: Page) -> None:
    """Undo by the message that follows a change."""
    page.locator("#toast-undo").click()
    expect(page.locator("#lever-preview")).to_contain_text("taken back")
    page.locator("#lever-confirm").click()
    expect(page.locator("#toast-text")).to_have_text("Undone.")


def test_pause_says_what_it_will_do_and_can_be_undone(visit: Visit, api: httpx.Client) -> None:
    page = router_page(visit, api, "pausing")
    pull(page, "Change birch", "Pause")
    assert status(api, "pausing", "birch") == "paused"
    expect(page.locator("tr.paused th bdi")).to_have_text("birch")
    undo(page)
    assert status(api, "pausing", "birch") == "active"
    expect(page.locator("tr.paused")).to_have_count(0)
    expect(page.locator("[data-part=changes] tbody tr").first).to_contain_text("127.0.0.1")


def test_resume_can_be_undone(visit: Visit, api: httpx.Client) -> None:
    page = router_page(visit, api, "resuming")
    api.post("/v1/routers/resuming/arms/birch:pause").raise_for_status()
    expect(page.locator("tr.paused th bdi")).to_have_text("birch")
    pull(page, "Change birch", "Resume")
    assert status(api, "resuming", "birch") == "active"
    undo(page)
    assert status(api, "resuming", "birch") == "paused"


def test_a_price_is_changed_and_changed_back(visit: Visit, api: httpx.Client) -> None:
    page = router_page(visit, api, "pricing")
    pull(page, "Change birch", "Change price", New_price="1.5")
    assert shown(api, "pricing")["arms"]["birch"]["price"] == 1.5  # type: ignore[index]
    undo(page)
    assert shown(api, "pricing")["arms"]["birch"]["price"] == 1.0  # type: ignore[index]


def test_pin_and_unpin_can_be_undone(visit: Visit, api: httpx.Client) -> None:
    page = router_page(visit, api, "pinning")
    pull(page, "Change alder", "Pin")
    assert shown(api, "pinning")["pinned"] == "alder"
    expect(page.locator("[data-part=tags]")).to_contain_text("pinned: alder")
    undo(page)
    assert shown(api, "pinning")["pinned"] is None
    expect(page.locator("[data-part=tags]")).not_to_contain_text("pinned")
    api.post("/v1/routers/pinning/arms/alder:pin").raise_for_status()
    expect(page.locator("[data-part=tags]")).to_contain_text("pinned: alder")
    pull(page, "Change alder", "Unpin")
    assert shown(api, "pinning")["pinned"] is None


def test_an_arm_is_added_and_retired(visit: Visit, api: httpx.Client) -> None:
    page = router_page(visit, api, "adding")
    pull(page, "Change…", "Add an arm", within="[data-part=tags]", Name="<b>fir</b>", Price="0.5")
    assert status(api, "adding", "<b>fir</b>") == "active"
    undo(page)
    assert status(api, "adding", "<b>fir</b>") == "retired"
    pull(page, "Change cedar", "Retire")
    assert status(api, "adding", "cedar") == "retired"
    undo(page)
    assert status(api, "adding", "cedar") == "active"


def test_alpha_is_changed_and_changed_back(visit: Visit, api: httpx.Client) -> None:
    page = router_page(visit, api, "willing")
    pull(page, "Change…", "Change alpha", within="[data-part=tags]", New_alpha="0.25")
    assert shown(api, "willing")["alpha"] == 0.25
    expect(page.locator("[data-part=tags]")).to_contain_text("alpha 0.25")
    undo(page)
    assert shown(api, "willing")["alpha"] == 0.1


def test_the_statistics_of_an_arm_are_reset(visit: Visit, api: httpx.Client) -> None:
    page = router_page(visit, api, "resetting")
    pull(page, "Change birch", "Reset statistics")
    known = api.get("/v1/routers/resetting/segments").json()["all"]["arms"]
    assert {arm["arm"]: arm["remembered"] for arm in known}["birch"] == 0


def test_a_rollout_is_moved_to_a_canary_and_back(visit: Visit, api: httpx.Client) -> None:
    page = router_page(visit, api, "rolling")
    expect(page.locator(".steps [aria-current]")).to_have_text("live")
    pull(page, "Move…", "To canary", within="[data-part=rollout]", Share_of_traffic_in_the_canary="0.2")
    assert (shown(api, "rolling")["mode"], shown(api, "rolling")["canary_share"]) == ("canary", 0.2)
    expect(page.locator(".steps [aria-current]")).to_have_text("canary, 20% of keys")
    for n in range(40):
        decision = api.post("/v1/decisions", json={"router": "rolling", "key": f"customer-{n // 2}"}).json()
        assert api.post("/v1/outcomes", json={"decision_id": decision["decision_id"], "reward": 1}).status_code == 200
    rollout = page.locator("[data-part=rollout]")
    expect(rollout.locator("dl")).to_contain_text("Keys counted20each once; 20 later decisions left out", timeout=15_000)
    expect(rollout.locator("dl")).to_contain_text("more keys")
    undo(page)
    assert shown(api, "rolling")["mode"] == "live"


def test_the_dialog_of_a_rollout_says_what_ends_and_who_watches(visit: Visit, api: httpx.Client) -> None:
    make(
        api,
        "fallen",
        {"alder": 2.0, "birch": 1.0},
        policy="cheapest",
        mode="canary",
        canary_share=0.5,
        baseline="alder",
        holdout=0.1,
    )
    for _ in range(20):
        answers = api.post("/v1/decisions", json=[{"router": "fallen"}] * 50).json()
        outcomes = [{"decision_id": each["decision_id"], "reward": float(each["arm"] == "alder")} for each in answers]
        api.post("/v1/outcomes", json=outcomes).raise_for_status()
    api.post("/v1/routers/fallen/arms/alder:pin").raise_for_status()
    page = filled(visit().open("/routers/fallen"))
    expect(page.locator("[data-part=rollout]")).to_contain_text("Fell back to the baseline.")
    page.locator("#change-rollout").click()
    page.get_by_role("radio", name=re.compile("^To live")).check()
    told = page.locator("#lever-preview")
    expect(told).to_contain_text("The fallback ends, and the guardrail begins anew. All traffic will be routed from now on")
    expect(told).to_contain_text("but for the holdout of 10%. No guardrail watches live traffic")
    expect(told).to_contain_text("alder is pinned, and takes every decision")


def test_what_is_no_number_is_said_and_a_decimal_comma_is_taken(visit: Visit, api: httpx.Client) -> None:
    page = router_page(visit, api, "numbers")
    page.locator("table[data-of=arms]").get_by_role("button", name="Change birch").click()
    page.get_by_role("radio", name=re.compile("^Change price")).check()
    for wrong in ("cheap", "1,000", "12,500.50", "0.5.1"):
        page.get_by_label("New price").fill(wrong)
        expect(page.locator("#lever-error")).to_contain_text(f"“{wrong}” is no number here")
        expect(page.locator("#lever-confirm")).to_be_disabled()
    page.get_by_label("New price").fill("0,125")
    expect(page.locator("#lever-preview")).to_contain_text("With birch at 0.125")
    expect(page.locator("#lever-error")).to_be_empty()


def test_the_slider_shows_another_alpha_and_a_lever_takes_it_over(visit: Visit, api: httpx.Client) -> None:
    page = router_page(visit, api, "dragging")
    slider = page.get_by_role("slider")
    expect(slider).to_be_visible(timeout=30_000)
    before = page.locator("#alpha-value").inner_text()
    slider.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    after = page.locator("#alpha-value").inner_text()
    assert float(after) > float(before)
    expect(page.locator("#what-if-quality-interval")).to_contain_text("to")
    page.get_by_role("button", name="Use this alpha…").click()
    expect(page.locator("#lever-preview")).not_to_be_empty()
    page.locator("#lever-confirm").click()
    expect(page.locator("[data-part=tags]")).to_contain_text(f"alpha {after}")
    assert shown(api, "dragging")["alpha"] == float(after)


def test_a_change_that_somebody_else_made_in_between_is_not_overwritten(visit: Visit, api: httpx.Client) -> None:
    page = router_page(visit, api, "racing", expected={409})
    page.locator("table[data-of=arms]").get_by_role("button", name="Change birch").click()
    expect(page.locator("#lever-confirm")).to_be_enabled()
    api.post("/v1/routers/racing/arms/alder:pause").raise_for_status()
    page.locator("#lever-confirm").click()
    expect(page.locator("#lever-error")).to_contain_text("look again")
    assert status(api, "racing", "birch") == "active"


def test_levers_pulled_before_the_page_shows_the_last_one_are_not_refused(visit: Visit, api: httpx.Client) -> None:
    page = router_page(visit, api, "hurrying")
    page.route("**/dashboard/routers/hurrying?*", lambda _: None)  # from now on no part is fetched anew
    pull(page, "Change birch", "Change price", New_price="1.5")
    undo(page)
    pull(page, "Change cedar", "Retire")
    pull(page, "Move…", "To canary", within="[data-part=rollout]", Share_of_traffic_in_the_canary="0.2")
    pull(page, "Change birch", "Pause")
    found = shown(api, "hurrying")
    assert (status(api, "hurrying", "cedar"), status(api, "hurrying", "birch")) == ("retired", "paused")
    assert (found["mode"], found["arms"]["birch"]["price"]) == ("canary", 1.0)  # type: ignore[index]


def test_a_lever_can_be_left_with_escape_and_is_accessible(visit: Visit, api: httpx.Client) -> None:
    page = router_page(visit, api, "leaving")
    page.locator("table[data-of=arms]").get_by_role("button", name="Change birch").click()
    expect(page.locator("#lever-preview")).not_to_be_empty()
    assert_accessible(page)
    page.keyboard.press("Escape")
    expect(page.locator("#lever-dialog")).to_be_hidden()
    assert status(api, "leaving", "birch") == "active"


def test_a_wrong_price_cannot_be_confirmed(visit: Visit, api: httpx.Client) -> None:
    page = router_page(visit, api, "wrong", expected={422})
    page.locator("table[data-of=arms]").get_by_role("button", name="Change birch").click()
    page.locator("#lever-dialog").get_by_role("radio", name=re.compile("^Change price")).check()
    for wrong in ("abc", "1e999", "", "-1"):
        page.get_by_label("New price").fill(wrong)
        expect(page.locator("#lever-confirm")).to_be_disabled()
        page.wait_for_timeout(400)
        expect(page.locator("#lever-confirm")).to_be_disabled()
    expect(page.locator("#lever-error")).to_contain_text("price")
