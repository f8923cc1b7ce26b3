"""The routers of a recommendation: one for segments of one policy and alpha, which the service and a router take as they are."""

import html
import json
import re
import shlex
import subprocess
from typing import Any

import msgspec
import numpy as np
import polars
import pytest

from tests.reports.hostile import NAMES
from thrifty import Router
from thrifty.advice import Criteria, Effort, Recommendation, recommend
from thrifty.advice.routers import AdvisedRouters, advised_routers
from thrifty.logs import Columns, Log
from thrifty.reports.recommendation import decision_body, recommendation_page
from thrifty.service.messages import DecisionRequest, RouterRequest

SOFT = Criteria(confidence=0.0)


def advice(prices: dict[str, dict[str, float]], columns: Columns | None = None, *, policy: str = "cs-ts") -> Recommendation:
    """A recommendation from 1500 rows of each segment, in which each arm costs what it says."""
    rng = np.random.default_rng(8)
    frames = []
    for segment, arms in prices.items():
        arm = rng.integers(0, len(arms), 1500)
        rows = {
            "arm": np.array(list(arms))[arm],
            "cost": np.array(list(arms.values()))[arm],
            "reward": 1.0 * (rng.random(1500) < 0.9),
        }
        frames.append(polars.DataFrame(rows).with_columns(segment=polars.lit(segment)))
    log = Log(polars.concat(frames), columns or Columns(segment="segment"))
    return recommend(log, [0.1], policies=[policy], criteria=SOFT, effort=Effort(rounds=100, worlds=2))


def test_segments_of_one_policy_and_alpha_share_a_router_and_name_prices_of_their_own() -> None:
    same, other = {"Elm": 0.2, "Fir": 0.1}, {"Fir": 0.3, "Oak": 0.4}
    advised = advised_routers(advice({"DE": same, "FR": same, "US/west": other}), "sms")
    assert list(advised.routers) == ["sms"]
    assert advised.routers["sms"]["arms"] == {"Fir": 0.1, "Elm": 0.2, "Oak": 0.4}
    assert advised.segments["US/west"].eligible == other
    assert advised.segments["DE"].eligible == same  # Oak is no arm of DE
    alone = advised_routers(advice({"DE": same, "FR": same}))
    assert [route.eligible for route in alone.segments.values()] == [None, None]


def test_a_log_without_segments_needs_none() -> None:
    found = advice({"any": {"Elm": 0.2, "Fir": 0.1}}, Columns())
    (route,) = advised_routers(found).segments.values()
    assert (route.segment, route.eligible) == (None, None)


@pytest.mark.parametrize(("policy", "knows"), [("cs-ts", True), ("cs-exp3", False)])
def test_a_policy_that_weighs_outcomes_starts_from_nothing(policy: str, knows: bool) -> None:
    found = advice({"DE": {"Elm": 0.2, "Fir": 0.1}}, policy=policy)
    body = advised_routers(found).routers["advised"]
    assert ("known" in body) == knows
    assert found.segments["start"].to_list()[0] == 0.0 or knows
    rest = {key: value for key, value in body.items() if key not in ("arms", "alpha")}
    Router(body["arms"], body["alpha"], **rest)


@pytest.mark.parametrize("segment", ["DE", "a//b", "/", " ", "tab\there", "x" * 400, NAMES[1]])
def test_a_router_takes_every_body_and_every_segment(segment: str) -> None:
    prices = {"$(touch x) `y` 'z' \"w\"": 0.2, NAMES[0]: 0.1}
    advised = advised_routers(advice({segment: prices, "other": {"Elm": 0.2, "Fir": 0.3}}))
    routers = {}
    for name, body in advised.routers.items():
        request: Any = msgspec.json.decode(json.dumps(body), type=RouterRequest)
        assert request.alpha == 0.1
        rest = {key: value for key, value in body.items() if key not in ("arms", "alpha")}
        routers[name] = Router(body["arms"], body["alpha"], **rest)
    for route in advised.segments.values():
        asked = msgspec.json.decode(json.dumps(decision_body(route)), type=DecisionRequest)
        wanted = None if asked.eligible is None else {each.arm: each.cost for each in asked.eligible}
        assert routers[route.router].decide(asked.segment, eligible=wanted).arm in (
            route.eligible or advised.routers[route.router]["arms"]
        )


def test_a_shell_passes_on_every_command_as_it_is() -> None:
    prices = {"$(touch x) `y` 'z' \"w\" \\ !": 0.2, "Ä": 0.1}
    found = advice({"it's; rm $HOME": prices, "DE": prices})
    advised = advised_routers(found)
    page = recommendation_page(found, advised)
    shown = re.search("<pre>(.*?)</pre>", page, re.DOTALL)
    assert shown is not None
    lines = html.unescape(shown[1]).splitlines()
    assert len(lines) == len(advised.routers) + len(advised.segments)
    for line in lines:
        script = 'curl() { printf "%s\\0" "$@"; }; ' + line
        heard = subprocess.run(["sh", "-c", script], capture_output=True, check=True, text=True).stdout.split("\0")[:-1]
        assert heard == shlex.split(line)[1:]
        assert json.loads(heard[-1]) in [*advised.routers.values(), *map(decision_body, advised.segments.values())]


def test_a_wrong_name_of_a_router_is_named() -> None:
    found = advice({"DE": {"Elm": 0.2, "Fir": 0.1}})
    with pytest.raises(ValueError, match="name must be 1 to 64 letters, digits, - or _, got 'a b'"):
        advised_routers(found, "a b")
    assert isinstance(advised_routers(found, "a-b"), AdvisedRouters)
