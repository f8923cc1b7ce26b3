"""Known outcomes over HTTP and in the configuration file: a router starts with them once."""

from pathlib import Path
from typing import Any

import pytest

from tests.service.test_http import Caller, running
from thrifty.service.declarations import ConfigFile

ENTRIES = [
    {"segment": "DE", "arm": "a", "outcomes": 400, "rewards": 360},
    {"segment": "DE", "arm": "b", "outcomes": 400, "rewards": 356},
]
SMS: dict[str, Any] = {
    "arms": {"a": 0.0079, "b": 0.0041},
    "alpha": 0.05,
    "policy": "cs-ids",
    "known": {"source": "<b>sms.csv</b>", "outcomes": ENTRIES},
}


def put(client: Caller, **changes: Any) -> Any:
    return client.put("/v1/routers/sms", json={**SMS, **changes})


def test_a_router_starts_with_what_the_request_says_and_only_once(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        made = put(client)
        assert made.status_code == 201
        assert made.json()["known"] == {"source": "<b>sms.csv</b>", "outcomes": 800}
        decision = client.post("/v1/decisions", json={"router": "sms", "segment": "DE"}).json()
        assert (decision["arm"], decision["explored"]) == ("b", False)
        arms = client.get("/v1/routers/sms/segments/DE").json()["arms"]
        assert [(arm["known"], arm["outcomes"], arm["decisions"]) for arm in arms] == [(400, 0, 0), (400, 0, 1)]
        assert put(client).status_code == 200  # the same again
        assert put(client, known=None).status_code == 200  # left out
        other = put(client, known={"outcomes": ENTRIES[:1]})
        assert other.status_code == 422
        assert "starts once: leave known out" in other.json()["error"]["message"]
        weighing = put(client, known=None, policy="cs-exp3")
        assert weighing.status_code == 422
        assert "take another policy, or reset the router first" in weighing.json()["error"]["message"]
        page = client.get("/dashboard/routers/sms?part=arms&segment=DE").text
        assert "400 known at the start" in page
        assert "&lt;b&gt;sms.csv" in page
        assert "<b>sms.csv" not in page
    with running(tmp_path) as client:  # after a restart
        assert client.get("/v1/routers/sms").json()["known"]["outcomes"] == 800
        assert client.post("/v1/routers/sms/arms/b:reset", json={}).status_code == 200
        assert client.get("/v1/routers/sms").json()["known"]["outcomes"] == 400


@pytest.mark.parametrize(
    "known",
    [
        {},
        {"outcomes": []},
        {"outcomes": [{"arm": "a", "outcomes": 0, "rewards": 0}]},
        {"outcomes": [{"arm": "a", "outcomes": 4, "rewards": -1}]},
        {"outcomes": [{"arm": "a", "outcomes": 4, "rewards": 5}]},
        {"outcomes": [{"arm": "nosuch", "outcomes": 4, "rewards": 4}]},
        {"outcomes": [{"arm": "a", "outcomes": 4, "rewards": 4, "odd": 1}]},
        {"outcomes": [{"arm": "a", "outcomes": 4, "rewards": 4, "segment": "a//b"}]},
        {"outcomes": [{"arm": "a", "outcomes": 4, "rewards": 4}], "source": "a\nb"},
        {"outcomes": [{"arm": "a", "outcomes": 4, "rewards": 4}] * 2},
        [1],
        "x",
    ],
)
def test_what_no_router_can_start_with_is_refused_in_words(tmp_path: Path, known: Any) -> None:
    with running(tmp_path) as client:
        refused = put(client, known=known)
        assert refused.status_code in (400, 422), refused.text
        assert client.get("/v1/routers/sms").status_code == 404  # nothing was made


def test_a_file_can_declare_what_a_router_starts_with(tmp_path: Path) -> None:
    file = tmp_path / "thrifty.toml"
    table = """[routers.sms]
alpha = 0.05
arms = {{ a = 0.0079, b = 0.0041 }}
[routers.sms.known]
source = "sms.csv"
outcomes = [{{ arm = "{arm}", outcomes = 40, rewards = 36 }}]
"""
    file.write_text(table.format(arm="a"))
    start = ConfigFile.load({}, str(file)).routers["sms"].request.start()
    assert start is not None
    assert start.total == 40
    file.write_text(table.format(arm="zz"))
    with pytest.raises(ValueError, match="'zz', which is no arm"):
        ConfigFile.load({}, str(file))
