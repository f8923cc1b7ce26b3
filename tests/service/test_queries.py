"""Query strings: every route refuses what it does not know, and takes numbers in one way of writing."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.routing import Route

from tests.service.test_http import SMS, Caller, decide, running
from thrifty.service.errors import ServiceProblemError
from thrifty.service.queries import ChangesQuery, HistoryParameters, NoQuery, SegmentsQuery, parsed

PATHS = {"{name:path}": "nobody", "{name}": "sms", "{segment:path}": "DE", "{change:path}": "a:pause", "{asset}": "icon.svg"}
NEEDED = {"/dashboard/overview": "part=overview&", "/dashboard/keys": "part=keys&", "/dashboard/routers/{name}": "part=arms&"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with running(tmp_path_factory.mktemp("queries")) as client:
        client.put("/v1/routers/sms", json=SMS)
        decide(client, segment="DE")
        yield client


def routes(client: Caller) -> list[tuple[str, str]]:
    """Every method and path that the service has, with names that exist; what a path needs besides is in its query."""
    found = [("POST", "/v1/decisions?"), ("POST", "/v1/outcomes?")]
    for route in client.app._admin.routes:
        assert isinstance(route, Route)
        path = route.path
        for part, value in PATHS.items():
            path = path.replace(part, value)
        assert "{" not in path, path
        found += [(method, f"{path}?{NEEDED.get(route.path, '')}") for method in route.methods or ()]
    return found


def test_every_route_refuses_an_unknown_parameter_and_does_nothing(client: Caller) -> None:
    before, asked = client.get("/v1/routers/sms").json(), routes(client)
    assert len(asked) > 50
    for method, path in asked:
        answer = client.request(method, f"{path}nonsense=1", json={} if method in ("POST", "PUT") else None)
        assert answer.status_code == 422, (method, path, answer.text)
        assert method == "HEAD" or "there is no parameter 'nonsense'" in answer.json()["error"]["message"], (method, path)
    assert client.get("/v1/routers/sms").json() == before


@pytest.mark.parametrize(
    "path",
    [
        "/v1/alerts?limit=5&limit=6",
        "/v1/routers/sms/history?step=day&step=day",
        "/v1/routers/sms/decisions?segment=a&segment=b",
        "/dashboard/overview?part=overview&part=alerts",
        "/routers/sms/segments/?segment=a&segment=b",
    ],
)
def test_a_parameter_is_given_once(client: Caller, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 422
    assert "must be given once" in answer.json()["error"]["message"]


WRONG_NUMBERS = ("1e2", "1_0", "٣", "+1", " 1", "1 ", "1.0", "0x1", "", "true", "null", "9" * 30)


@pytest.mark.parametrize("text", WRONG_NUMBERS)
@pytest.mark.parametrize(
    "path", ["/v1/alerts?limit=", "/v1/routers/sms/decisions?limit=", "/dashboard/routers/sms?part=arms&offset="]
)
def test_whole_numbers_are_plain_digits(client: Caller, path: str, text: str) -> None:
    base, _, query = path.partition("?")
    pairs = dict(each.split("=") for each in query.split("&"))
    answer = client.get(base, params={**pairs, list(pairs)[-1]: text})
    assert answer.status_code == 422, answer.text
    assert list(pairs)[-1] in answer.json()["error"]["message"]


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1_0", "٣", "1e", "", "1e14", "null"])
def test_times_are_numbers_as_json_has_them(client: Caller, text: str) -> None:
    answer = client.get("/v1/routers/sms/history", params={"since": text})
    assert answer.status_code == 422, answer.text
    assert "since" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/routers/sms/history?since=1.5e3&until=9e9&step=day&by=",
        "/v1/routers/sms/segments?details=true",
        "/v1/events?router=null",
        "/routers/sms/segments/?segment=..",
        "/dashboard/routers/sms?part=tags,arms&size=narrow&moment=ab12&segment=DE&search=x&sort=-mean&offset=0&range=year",
        "/healthz?",
    ],
)
def test_what_is_documented_is_taken(client: Caller, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == (404 if path.endswith("=null") else 200), answer.text  # a name like another


def test_queries_are_read_in_python_too() -> None:
    assert parsed(SegmentsQuery, [("details", "1"), ("search", "null")]) == SegmentsQuery(details=True, search="null")
    assert parsed(HistoryParameters, []).by == ["arm"]
    assert parsed(HistoryParameters, [("by", "arm,group"), ("since", "-3")]) == HistoryParameters(by=["arm", "group"], since=-3.0)
    assert parsed(ChangesQuery, [("before", "007")]).before == 7
    many: list[Any] = [(f"p{n}", "") for n in range(100_000)]
    with pytest.raises(ServiceProblemError, match="there is no parameter 'p0'; there is none here"):
        parsed(NoQuery, many)
