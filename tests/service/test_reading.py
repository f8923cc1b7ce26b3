"""Reads of a router: its segments as a table, its recent decisions, and its frontier."""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import Postgres
from tests.service.test_http import SMS, Caller, decide, running
from thrifty.cli.router_frontier import router_frontier
from thrifty.router.export import decisions, recent_decisions_of
from thrifty.service import frontiers

PLACES = ("DE/o2", "DE/vodafone", "FR", "fr<b>")


@pytest.fixture(params=["sqlite", "postgres"], scope="module")
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[Caller]:
    config: dict[str, Any] = {} if request.param == "sqlite" else {"store": postgres.database()}
    with running(tmp_path_factory.mktemp("reading"), **config) as client:
        client.put("/v1/routers/sms", json={**SMS, "holdout": 0.0})
        draw = random.Random(3)
        asked = [{"router": "sms", "segment": PLACES[n % 4]} for n in range(400)]
        made = client.post("/v1/decisions", json=asked).json()
        ids = [each["decision_id"] for each in made]
        outcomes = [{"decision_id": id, "reward": float(draw.random() < 0.9), "arm": "ab"[n // 4 % 2]} for n, id in enumerate(ids)]
        while any("error" in each for each in client.post("/v1/outcomes", json=outcomes).json()):
            time.sleep(0.05)  # on a busy machine decisions may not be stored yet
        yield client


def get(client: Caller, path: str, **query: Any) -> Any:
    response = client.get(f"/v1/routers/sms/{path}", params=query)
    assert response.status_code == 200, response.text
    return response.json()


def test_segments_as_a_table(client: Caller) -> None:
    plain = get(client, "segments")
    found = get(client, "segments", details=1, sort="name")
    rows = found["segments"]
    assert [row["name"] for row in rows] == plain["segments"] == sorted(("", "DE", *PLACES))
    assert found["total"] == 6
    assert (rows[0]["decisions"], rows[0]["outcomes"], rows[1]["decisions"]) == (400, 400, 200)
    for row in rows:
        explained = (
            plain["all"] if not row["name"] else get(client, f"segments/{row['name'].replace('<', '%3C').replace('>', '%3E')}")
        )
        assert row["floor"] == pytest.approx(explained["floor"])
        assert (row["chosen"], row["saving"]) == (explained["chosen"], pytest.approx(explained["saved"]))
        assert row["spend"] == pytest.approx(sum(arm["spent"] for arm in explained["arms"]))
        assert row["quality_low"] < row["quality"] < row["quality_high"]
        assert row["saving_low"] <= row["saving"] <= row["saving_high"]
    overview = next(each for each in client.get("/v1/overview").json()["routers"] if each["name"] == "sms")
    for name in ("saving", "saving_low", "saving_high"):
        assert rows[0][name] == pytest.approx(overview[name])


def test_the_table_is_searched_sorted_and_cut(client: Caller) -> None:
    def names(**query: Any) -> list[str]:
        return [row["name"] for row in get(client, "segments", details=1, **query)["segments"]]

    assert names(search="FR", sort="-name") == ["fr<b>", "FR"]
    assert names(sort="-decisions", limit=2) == ["", "DE"]
    assert names(sort="-decisions", limit=1, offset=1) == ["DE"]
    assert names(offset=1000) == []
    for column in ("quality", "floor", "saving", "spend", "outcomes", "chosen"):
        rows = get(client, "segments", details=1, sort=column)["segments"]
        values = [row[column] for row in rows if row[column] is not None]
        assert values == sorted(values)
        back = get(client, "segments", details=1, sort=f"-{column}")["segments"]
        assert [row[column] for row in back if row[column] is not None] == sorted(values, reverse=True)


def test_recent_decisions_have_reason_and_outcome(client: Caller) -> None:
    made = decide(client, segment="FR", request_id="r-17")
    newest = get(client, "decisions", limit=5)["decisions"]
    assert (newest[0]["decision_id"], newest[0]["segment"], newest[0]["request_id"]) == (made["decision_id"], "FR", "r-17")
    assert (newest[0]["outcome"], newest[0]["code"]) == (None, made["reason"]["code"])
    assert newest[0]["text"] in made["reason"]["text"]
    client.post("/v1/outcomes", json={"decision_id": made["decision_id"], "reward": 0.5, "cost": 2.0})
    told = get(client, "decisions", limit=1)["decisions"][0]["outcome"]
    assert (told["reward"], told["cost"], told["default"]) == (0.5, 2.0, False)
    below = get(client, "decisions", segment="DE", limit=500)["decisions"]
    assert {each["segment"] for each in below} == {"DE/o2", "DE/vodafone"}
    assert len(below) == 200
    assert get(client, "decisions", segment="nowhere")["decisions"] == []


def test_the_newest_lines_are_those_of_an_export(client: Caller) -> None:
    journal = client.app.store.journal("sms")
    client.put("/v1/routers/sms", json={**SMS, "alpha": 0.06})
    made = decide(client, segment="FR")
    whole = list(decisions(journal, "sms"))
    assert recent_decisions_of(journal, "sms", 10_000) == whole
    assert recent_decisions_of(journal, "sms", 7) == whole[-7:]
    assert (whole[-1].decision_id, whole[-1].alpha, whole[-2].alpha) == (made["decision_id"], 0.06, 0.05)


def test_the_frontier_from_sums_and_from_the_log(client: Caller) -> None:
    sums = get(client, "frontier")
    assert (sums["basis"], len(sums["rows"])) == ("sums", 31)
    assert "without the extra `replay`" in sums["note"]
    assert [row["alpha"] for row in sums["rows"]] == sorted(row["alpha"] for row in sums["rows"])
    costs = [row["cost"] for row in sums["rows"]]
    assert costs == sorted(costs, reverse=True)
    if client.app.store.shared:
        return  # the lines that the other part reads are compared above
    client.app.frontiers._from_log = router_frontier
    assert get(client, "frontier") == sums  # kept
    logged = get(client, "frontier", segment="DE")
    assert logged["basis"] == "log", logged["note"]
    assert {"quality", "quality_low", "quality_high", "cost", "saving"} <= set(logged["rows"][0])
    assert logged["rows"][0]["quality_low"] < logged["rows"][0]["quality"] < logged["rows"][0]["quality_high"]
    client.post("/v1/routers/sms/alpha", json={"alpha": 0.2})
    assert get(client, "frontier")["basis"] == "log"  # made anew for the new version
    assert get(client, "frontier", segment="fr<b>/x")["basis"] == "sums"  # nothing there


@pytest.mark.parametrize(
    ("decisions", "reward", "reason"),
    [
        (0, None, "there are no decisions yet"),
        (20, None, "none of the newest 20 decisions has an outcome that counts yet"),
        (20, 0, "none of the newest 20 decisions was a success"),
        (50, 1, "two arms need 30 outcomes each, and among the newest 50 decisions only b has so many"),
    ],
)
def test_a_frontier_that_the_log_does_not_allow_says_why_in_the_words_of_a_router(
    tmp_path: Path, decisions: int, reward: int | None, reason: str
) -> None:
    with running(tmp_path) as client:
        client.app.frontiers._from_log = router_frontier
        client.put("/v1/routers/sms", json={**SMS, "policy": "cheapest"})
        for _ in range(decisions):
            made = decide(client)
            if reward is not None:
                client.post("/v1/outcomes", json={"decision_id": made["decision_id"], "reward": reward})
        found = get(client, "frontier")
        assert (found["basis"], found["note"].partition(" (")[2]) == ("sums", f"not from its log: {reason})")
        page = client.get("/dashboard/routers/sms?part=frontier").text
        assert f"{reason[0].upper()}{reason[1:]}" in page or not decisions or reward is None


def test_frontiers_are_kept_within_bounds(client: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontiers, "MOST_KEPT", 3)
    for n in range(6):
        get(client, "frontier", segment=f"x{n}")
    assert len(client.app.frontiers._kept) <= 4


HOSTILE = [
    "segments?details=2",
    "segments?details=1&sort=__class__",
    "segments?details=1&sort=decisions;drop",
    "segments?details=1&limit=501",
    "segments?details=1&offset=-1",
    "segments?details=1&offset=1e400",
    f"segments?details=1&search={'x' * 201}",
    "segments?detail=1",
    "decisions?limit=nan",
    "decisions?segment=a&segment=b",
    f"decisions?segment={'%E2%98%83' * 201}",
    "frontier?alpha=0.1",
    "changes?before=99999999999999999999",
]


@pytest.mark.parametrize("path", HOSTILE)
def test_hostile_queries_are_refused_with_one_line(client: Caller, path: str) -> None:
    response = client.get(f"/v1/routers/sms/{path}")
    assert response.status_code == 422, response.text
    message = response.json()["error"]["message"]
    assert "\n" not in message
    assert len(message) < 400


def test_ten_thousand_segments_are_a_table(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.put("/v1/routers/sms", json={**SMS, "policy": "cheapest", "max_segments": 20_000})
        for first in range(0, 3000, 1000):
            asked = [{"router": "sms", "segment": f"c{n % 50}/o{n}"} for n in range(first, first + 1000)]
            assert client.post("/v1/decisions", json=asked).status_code == 200
        found = get(client, "segments", details=1, search="O29", sort="-name", limit=3)
        assert [row["name"] for row in found["segments"]] == ["c9/o2959", "c9/o2909", "c8/o2958"]
        assert found["total"] == 111


def test_what_an_outcome_costs_on_the_page_is_of_those_that_the_spend_is_of(client: Caller) -> None:
    """The totals of decisions and outcomes go on through a reset; the spend and the quality begin anew."""
    client.put("/v1/routers/each", json={"arms": {"a": 0.5, "b": 0.5}, "alpha": 0.1})
    for number in range(12):
        made = client.post("/v1/decisions", json={"router": "each"}).json()
        client.post("/v1/outcomes", json={"decision_id": made["decision_id"], "reward": 1})
        if number == 7:
            for arm in "ab":
                assert client.post(f"/v1/routers/each/arms/{arm}:reset").status_code == 200
    time.sleep(1.1)  # an overview may be a second old
    (seen,) = (each for each in client.get("/v1/overview").json()["routers"] if each["name"] == "each")
    assert (seen["decisions"], seen["outcomes"], seen["counted"], seen["spend"]) == (12, 12, 4, 2.0)
    page = client.get("/dashboard/routers/each?part=head").text
    assert "0.5 each" in page
