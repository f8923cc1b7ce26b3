"""Levers: previews change nothing, changes meant for another version are refused, and what was done can be undone."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import Postgres
from tests.service.test_http import SMS, Caller, decide, running
from thrifty.router import ConflictError

NO_SUCH = 999_999


@pytest.fixture(params=["sqlite", "postgres"], scope="module")
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[Caller]:
    config: dict[str, Any] = {} if request.param == "sqlite" else {"store": postgres.database()}
    with running(tmp_path_factory.mktemp("levers"), **config) as client:
        yield client


@pytest.fixture
def router(client: Caller, request: pytest.FixtureRequest) -> Iterator[str]:
    """A router of its own, in which b is nearly as good as a, and costs half."""
    name = f"r{abs(hash(request.node.name)) % 10**9}"
    assert client.put(f"/v1/routers/{name}", json=SMS).status_code == 201
    yield f"/v1/routers/{name}"
    client.delete(f"/v1/routers/{name}")


def learn(client: Caller, router: str, rewards: dict[str, list[int]]) -> None:
    name = router.rpartition("/")[2]
    for arm, outcomes in rewards.items():
        for reward in outcomes:
            made = decide(client, router=name, eligible=[{"arm": arm}])
            outcome = {"decision_id": made["decision_id"], "reward": reward}
            while client.post("/v1/outcomes", json=outcome).status_code == 503:  # on a busy machine the decision may not be stored
                time.sleep(0.01)


def changes(client: Caller, router: str, **query: Any) -> list[dict[str, Any]]:
    response = client.get(f"{router}/changes", params=query)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["changes"]
    return found


def undo(client: Caller, router: str, position: int, **more: Any) -> Any:
    return client.post(f"{router}/undo", json={"position": position, **more})


def test_a_preview_names_arm_cost_and_quality_and_changes_nothing(client: Caller, router: str) -> None:
    learn(client, router, {"a": [1] * 40, "b": [1] * 36 + [0] * 4})
    before = client.get(router).json()
    found = client.post(f"{router}/preview", json={"action": "alpha", "alpha": 0.2}).json()
    assert found["text"].startswith("at alpha 0.2 the chosen arm would be b: about 48% less, quality 0.900 instead of 1.000")
    assert (found["before"]["arm"], found["after"]["arm"], found["undoable"]) == ("a", "b", True)
    assert found["after"]["low"] < 0.9 < found["after"]["high"]
    assert client.get(router).json() == before
    assert [each["action"] for each in changes(client, router)] == ["create"]


def test_a_preview_of_alpha_takes_no_arm(client: Caller, router: str) -> None:
    refused = client.post(f"{router}/preview", json={"action": "alpha", "alpha": 0.2, "arm": "a"})
    assert refused.status_code == 422
    assert refused.json()["error"]["message"] == "a change of alpha takes no arm, got 'a': it is about all arms, so leave arm out"


def test_a_preview_of_a_reset_says_that_it_cannot_be_undone(client: Caller, router: str) -> None:
    learn(client, router, {"a": [1] * 3})
    found = client.post(f"{router}/preview", json={"action": "reset"}).json()
    assert not found["undoable"]
    assert "cannot be undone" in found["text"]


@pytest.mark.parametrize(
    ("lever", "body", "undone"),
    [
        ("arms/b:pause", {}, "resume b"),
        ("arms/b:retire", {}, "resume b"),
        ("arms/c:add", {"price": 0.1}, "retire c"),
        ("arms/b:price", {"price": 0.2}, "set the price of b to 0.0041"),
        ("arms/b:pin", {}, "unpin"),
        ("alpha", {"alpha": 0.2}, "set alpha to 0.05"),
    ],
)
def test_every_lever_can_be_undone_and_the_undo_too(
    client: Caller, router: str, lever: str, body: dict[str, Any], undone: str
) -> None:
    before = client.get(router).json()
    after = client.post(f"{router}/{lever}", json=body).json()
    change = changes(client, router)[0]
    assert (change["undo"]["text"], change["undone_by"]) == (undone, None)
    back = undo(client, router, change["position"])
    assert back.status_code == 200, back.text
    assert active(back.json()) == active(before)
    last, first = changes(client, router)[:2]
    assert (first["undone_by"], first["undo"], last["undoes"]) == (last["position"], None, first["position"])
    assert undo(client, router, change["position"]).status_code == 409
    again = undo(client, router, last["position"]).json()
    assert active(again) == active(after)


def active(shown: dict[str, Any]) -> Any:
    """What decides: the arms that are there with price and status, the pin and alpha."""
    arms = {name: (arm["price"], arm["status"]) for name, arm in shown["arms"].items() if arm["status"] != "retired"}
    return arms, shown["pinned"], shown["alpha"]


def test_an_undo_is_refused_where_a_later_change_is_in_the_way_and_allowed_once_that_is_undone(client: Caller, router: str) -> None:
    for price in (0.2, 0.3):
        client.post(f"{router}/arms/b:price", json={"price": price})
    second, first, created = changes(client, router)
    refused = undo(client, router, first["position"])
    assert refused.status_code == 409
    assert f"the price of b was changed again, by change {second['position']}" in refused.text
    assert undo(client, router, second["position"]).status_code == 200
    assert undo(client, router, first["position"]).json()["arms"]["b"]["price"] == 0.0041
    assert undo(client, router, created["position"]).status_code == 409
    assert undo(client, router, NO_SUCH).status_code == 404


def test_an_undo_that_would_leave_no_active_arm_is_refused(client: Caller, router: str) -> None:
    client.post(f"{router}/arms/c:add", json={"price": 0.1})
    added = changes(client, router)[0]
    for arm in "ab":
        client.post(f"{router}/arms/{arm}:pause")
    refused = undo(client, router, added["position"])
    assert refused.status_code == 409
    assert "the last active one" in refused.text


def test_an_arm_comes_back_at_the_price_it_was_retired_at_whatever_was_undone_between(client: Caller, router: str) -> None:
    before = client.get(router).json()
    client.post(f"{router}/arms/b:retire")
    client.post(f"{router}/arms/b:add", json={"price": 0.2})
    added, retired = changes(client, router)[:2]
    assert undo(client, router, added["position"]).status_code == 200
    assert active(undo(client, router, retired["position"]).json()) == active(before)


@pytest.mark.parametrize(("lever", "body"), [("arms/b:price", {"price": 0.2}), ("arms/a:pin", {})])
def test_what_needs_an_arm_that_was_retired_since_is_not_offered_as_an_undo(
    client: Caller, router: str, lever: str, body: dict[str, Any]
) -> None:
    client.post(f"{router}/arms/b:pin")
    client.post(f"{router}/{lever}", json=body)
    client.post(f"{router}/arms/b:retire")
    retired, change = changes(client, router)[:2]
    reason = f"arm b was changed again, by change {retired['position']}: undo that first"
    assert (change["undo"], change["why_not"]) == (None, reason)
    assert reason in undo(client, router, change["position"]).text
    assert undo(client, router, retired["position"]).status_code == 200
    assert undo(client, router, change["position"]).status_code == 200


def test_a_paused_arm_is_not_pinned_and_pausing_the_pinned_one_unpins_it(client: Caller, router: str) -> None:
    learn(client, router, {"a": [1] * 40, "b": [1] * 40})
    client.post(f"{router}/arms/b:pause")
    before = client.get(router).json()
    for answer in (client.post(f"{router}/arms/b:pin"), client.post(f"{router}/preview", json={"action": "pin", "arm": "b"})):
        assert answer.status_code == 422
        assert "arm 'b' is paused, so a pin would have no effect: resume it first" in answer.json()["error"]["message"]
    assert client.get(router).json() == before
    client.post(f"{router}/arms/b:resume")
    assert client.post(f"{router}/arms/b:pin").json()["pinned"] == "b"
    seen = client.post(f"{router}/preview", json={"action": "pause", "arm": "b"}).json()["text"]
    assert seen.startswith("with b paused and no more pinned the chosen arm would be a")
    assert client.post(f"{router}/arms/b:pause").json()["pinned"] is None
    change = changes(client, router)[0]
    assert (change["text"], change["undo"]["text"]) == ("b was paused, so it is pinned no more", "resume b; pin b")
    back = undo(client, router, change["position"]).json()
    assert (back["pinned"], back["arms"]["b"]["status"]) == ("b", "active")


def test_a_pin_is_not_given_back_to_an_arm_that_was_paused_since(client: Caller, router: str) -> None:
    client.post(f"{router}/arms/b:pin")
    client.post(f"{router}/arms/a:pin")
    client.post(f"{router}/arms/b:pause")
    paused, pinned = changes(client, router)[:2]
    assert pinned["why_not"] == f"arm b was changed again, by change {paused['position']}: undo that first"
    assert undo(client, router, pinned["position"]).status_code == 409
    assert undo(client, router, paused["position"]).status_code == 200
    assert undo(client, router, pinned["position"]).json()["pinned"] == "b"


def test_the_baseline_is_not_retired_unless_another_takes_its_place(client: Caller, router: str) -> None:
    client.put(router, json={**SMS, "baseline": "b"})
    refused = client.post(f"{router}/arms/b:retire")
    assert refused.status_code == 422
    assert "arm 'b' is the baseline" in refused.text
    assert "set baseline first, or in the same PUT, and name one of a" in refused.text
    only = {**SMS, "arms": {"a": 0.0079}}
    assert client.put(router, json={**only, "baseline": "b"}).status_code == 422
    assert client.put(router, json={**only, "baseline": "a"}).status_code == 200


def test_a_lever_that_waited_while_its_router_was_deleted_changes_nothing_of_the_one_made_since(
    client: Caller, router: str
) -> None:
    old = client.app.routers.router(router.rpartition("/")[2])
    client.delete(router)
    made = client.put(router, json=SMS).json()
    with pytest.raises(ConflictError, match="was deleted meanwhile"):
        old.change("pause", "b")
    assert client.get(router).json() == made
    assert [each["action"] for each in changes(client, router)] == ["create"]


def test_many_changes_of_one_thing_are_undone_one_by_one(client: Caller, router: str) -> None:
    for step in range(1, 71):
        client.post(f"{router}/alpha", json={"alpha": step / 100})
    for change in changes(client, router, limit=70):
        assert undo(client, router, change["position"]).status_code == 200
    assert client.get(router).json()["alpha"] == 0.05


def test_a_whole_put_is_undone_at_once(client: Caller, router: str) -> None:
    before = client.get(router).json()
    client.post(f"{router}/arms/b:pin", json={})
    pinned = client.get(router).json()
    client.put(router, json={**SMS, "arms": {"a": 0.1, "n": 0.2}, "alpha": 0.3, "holdout": 0.1})
    change = changes(client, router)[0]
    assert change["action"] == "changes"
    back = undo(client, router, change["position"]).json()
    assert active(back) == active(pinned) != active(before)
    assert back["holdout"] == 0.0


def test_of_two_people_with_the_same_version_one_is_refused(client: Caller, router: str) -> None:
    version = client.get(router).json()["version"]
    answers = [
        client.post(f"{router}/alpha", json={"alpha": 0.1, "version": version}),
        client.post(f"{router}/arms/b:pause", json={"version": version}),
        undo(client, router, 1, version=version),
    ]
    assert [answer.status_code for answer in answers[:2]] == [200, 409]
    assert answers[2].status_code in (404, 409)
    assert "look again" in answers[1].json()["error"]["message"]
    shown = client.get(router).json()
    assert (shown["alpha"], shown["arms"]["b"]["status"], shown["version"]) == (0.1, "active", version + 1)


def test_a_router_is_put_and_deleted_only_in_the_version_that_was_looked_at(client: Caller, router: str) -> None:
    version = client.get(router).json()["version"]
    put = client.put(router, json={**SMS, "alpha": 0.2}, params={"version": version})
    assert (put.status_code, put.json()["alpha"], put.json()["version"]) == (200, 0.2, version + 1)
    late = client.put(router, json={**SMS, "alpha": 0.3}, params={"version": version})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "conflict")
    assert f"has version {version + 1} by now, and the change was meant for {version}: look again" in late.text
    assert client.put(router, json={**SMS, "alpha": 0.2}, params={"version": version}).status_code == 409  # though nothing differs
    assert client.put(router, json={**SMS, "alpha": 0.2}, params={"version": version + 1}).status_code == 200
    gone = client.delete(router, params={"version": version})
    assert (gone.status_code, gone.json()["error"]["code"]) == (409, "conflict")
    assert (client.get(router).json()["alpha"], client.get(router).json()["version"]) == (0.2, version + 1)
    for wrong in ("x", "-1", "1.0", str(2**60)):
        assert client.delete(router, params={"version": wrong}).status_code == 422
    assert client.delete(router, params={"version": version + 1}).status_code == 204
    assert client.get(router).status_code == client.delete(router, params={"version": version}).status_code == 404
    refused = client.put(router, json=SMS, params={"version": 3})
    assert (refused.status_code, "leave version out to make one" in refused.text) == (409, True)
    assert client.get(router).status_code == 404
    assert client.put(router, json=SMS).status_code == 201


def test_a_reset_is_logged_and_stays(client: Caller, router: str) -> None:
    client.post(f"{router}/arms/b:reset")
    change = changes(client, router, limit=1)[0]
    assert (change["text"], change["undo"]) == ("the statistics of b were reset", None)
    assert undo(client, router, change["position"]).status_code == 409


def test_changes_are_listed_page_by_page(client: Caller, router: str) -> None:
    for price in range(1, 6):
        client.post(f"{router}/arms/b:price", json={"price": price})
    first = changes(client, router, limit=3)
    rest = changes(client, router, limit=500, before=first[-1]["position"])
    assert [each["price"] for each in first] == [5.0, 4.0, 3.0]
    assert [each["action"] for each in rest] == ["price", "price", "create"]


HOSTILE = [
    "limit=0",
    "limit=501",
    "limit=x",
    "limit=1&limit=2",
    "before=-1",
    "what=1",
    "limit=%00",
    "limit=1e9",
    "%0a=%0a",
    "limit",
]


@pytest.mark.parametrize("query", HOSTILE)
def test_hostile_queries_are_refused_with_one_line(client: Caller, router: str, query: str) -> None:
    response = client.get(f"{router}/changes?{query}")
    assert response.status_code == 422
    assert "\n" not in response.json()["error"]["message"]


def test_a_view_key_previews_and_pulls_no_lever(tmp_path: Path) -> None:
    view, admin = {"authorization": "Bearer v"}, {"authorization": "Bearer a"}
    with running(tmp_path, {"v": "view", "a": "admin"}) as client:
        client.put("/v1/routers/sms", json=SMS, headers=admin)
        assert client.post("/v1/routers/sms/preview", json={"action": "pause", "arm": "b"}, headers=view).status_code == 200
        assert client.get("/v1/routers/sms/changes", headers=view).status_code == 200
        for lever, body in (("alpha", {"alpha": 0.1}), ("undo", {"position": 1}), ("arms/b:pause", {})):
            assert client.post(f"/v1/routers/sms/{lever}", json=body, headers=view).status_code == 403
            assert client.post(f"/v1/routers/sms/{lever}", json=body).status_code == 401
        client.post("/v1/routers/sms/alpha", json={"alpha": 0.1}, headers=admin)
        assert client.get("/v1/routers/sms/changes", headers=view).json()["changes"][0]["by"].startswith("a@")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST"])
def test_of_two_replicas_one_whole_change_meant_for_a_version_holds(method: str, tmp_path: Path, postgres: Postgres) -> None:
    """One asks for the change of the method, the other changes alpha at the same time: one of them gets 409, whoever was second."""
    url = postgres.database()
    with running(tmp_path, store=url) as one, running(tmp_path, store=url) as other:
        for turn in range(8):
            path = f"/v1/routers/r{turn}"
            version = one.put(path, json={**SMS, "policy": "cheapest"}).json()["version"]
            while other.get(path).status_code != 200:
                time.sleep(0.005)
            whole = {
                "PUT": lambda path=path, v=version: one.put(path, json={**SMS, "alpha": 0.5}, params={"version": v}),
                "DELETE": lambda path=path, v=version: one.delete(path, params={"version": v}),
                "POST": lambda path=path, v=version: one.post(f"{path}/rollout", json={"to": "shadow", "version": v}),
            }[method]
            with ThreadPoolExecutor(2) as pool:
                first = pool.submit(whole)
                second = pool.submit(other.post, f"{path}/alpha", json={"alpha": 0.3, "version": version})
            answers = first.result().status_code, second.result().status_code
            made = 204 if method == "DELETE" else 200
            if method == "DELETE" and answers[0] == 204:
                assert answers[1] in (404, 409), answers
                assert one.get(path).status_code == 404
            else:
                assert answers in ((made, 409), (409, 200)), answers
                assert one.get(path).status_code == 200
                assert (one.get(path).json()["alpha"] == 0.3) == (answers[1] == 200)


def test_of_two_replicas_one_change_meant_for_a_version_holds(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.database()
    with running(tmp_path, store=url) as one, running(tmp_path, store=url) as other:
        one.put("/v1/routers/sms", json=SMS)
        while other.get("/v1/routers/sms").status_code != 200:
            time.sleep(0.02)
        for turn in range(10):
            version = one.get("/v1/routers/sms").json()["version"]
            while other.get("/v1/routers/sms").json()["version"] != version:
                time.sleep(0.005)
            with ThreadPoolExecutor(2) as pool:
                wanted = [
                    (client, {"alpha": 0.1 + turn / 100 + n / 1000, "version": version}) for n, client in enumerate((one, other))
                ]
                answers = list(pool.map(lambda each: each[0].post("/v1/routers/sms/alpha", json=each[1]), wanted))
            assert sorted(answer.status_code for answer in answers) == [200, 409], [answer.text for answer in answers]
            won = next(body["alpha"] for (_, body), answer in zip(wanted, answers, strict=True) if answer.status_code == 200)
            for client in (one, other):
                while client.get("/v1/routers/sms").json()["version"] == version:
                    time.sleep(0.005)
                assert client.get("/v1/routers/sms").json()["alpha"] == won
        newest = changes(other, "/v1/routers/sms")
        listed = [each for each in newest if each["undo"] is not None]
        assert len(listed) == 1  # the last of ten changes of the same setting
        with ThreadPoolExecutor(2) as pool:
            undone = list(pool.map(lambda each: undo(each, "/v1/routers/sms", listed[0]["position"]), (one, other)))
        assert sorted(answer.status_code for answer in undone) == [200, 409]
        assert changes(one, "/v1/routers/sms") == changes(other, "/v1/routers/sms")


def test_a_price_that_was_forgotten_changes_nothing_and_null_says_that_it_is_unknown(client: Caller, router: str) -> None:
    before = client.get(router).json()
    refusals = [
        client.post(f"{router}/arms/b:price"),
        client.post(f"{router}/arms/b:price", json={"version": before["version"]}),
        client.post(f"{router}/preview", json={"action": "price", "arm": "b"}),
    ]
    assert [(each.status_code, "price is missing" in each.text) for each in refusals] == [(422, True)] * 3
    forgotten = client.post(f"{router}/arms/b:pause", json={"price": 0.2})
    assert (forgotten.status_code, "pause takes no price" in forgotten.text) == (422, True)
    assert client.get(router).json() == before
    assert client.post(f"{router}/preview", json={"action": "price", "arm": "b", "price": None}).status_code == 200
    assert client.post(f"{router}/arms/b:price", json={"price": None}).json()["arms"]["b"]["price"] is None
