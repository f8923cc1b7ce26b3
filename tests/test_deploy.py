"""The files in deploy/: every metric and label that they name exists in the metrics of a running service."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.pages import ROOT
from tests.promql import TARGET, named
from tests.service.test_http import SMS, running

DEPLOY = ROOT / "deploy"
RULES: list[Any] = yaml.safe_load((DEPLOY / "prometheus-rules.yml").read_text())["groups"][0]["rules"]
DASHBOARD: Any = json.loads((DEPLOY / "grafana-dashboard.json").read_text())


def queries() -> list[tuple[str, str]]:
    """Every query of both files, with where it stands; the variables of Grafana replaced."""
    panels = [(panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel["targets"]]
    variables = [(each["name"], each["query"]["query"]) for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    found = [(rule["alert"], rule["expr"]) for rule in RULES] + panels + variables
    return [(place, text.replace("$__rate_interval", "5m")) for place, text in found]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, set[str]]]:
    """The labels of every series of a service that has done a little, by its name. Series without samples have the label router."""
    with pytest.MonkeyPatch.context() as patch, running(tmp_path_factory.mktemp("deploy")) as client:
        patch.setenv("THRIFTY_COMPILE", "wait")
        client.put("/v1/routers/sms", json=SMS)
        decision = client.post("/v1/decisions", json={"router": "sms"}).json()
        client.post("/v1/outcomes", json={"decision_id": decision["decision_id"], "reward": 1})
        labels: dict[str, set[str]] = {}
        for family in text_string_to_metric_families(client.get("/metrics").text):
            if not family.samples:
                labels[family.name + "_total" * (family.type == "counter")] = {"router"}
            for sample in family.samples:
                labels.setdefault(sample.name, set()).update(sample.labels)
        yield labels


@pytest.mark.parametrize(("place", "text"), queries())
def test_every_metric_and_label_of_a_query_exists(place: str, text: str, shown: dict[str, set[str]]) -> None:
    found = named(text)
    assert found.metrics, place
    for metric, labels in found.metrics.items():
        known = TARGET if metric == "up" else shown[metric] | TARGET
        assert labels | found.grouped <= known, (place, metric)


def test_a_wrong_query_is_noticed(shown: dict[str, set[str]]) -> None:
    assert "thrifty_decision_total" not in shown
    assert named('sum by (router) (rate(thrifty_x{status=~"5.."}[5m]))').metrics == {"thrifty_x": {"status"}}
    for wrong in ("sum(rate(x[5m])", "x{a=1", "x)", "rate(x[5 minutes])", "x § 1", "sum(x}"):
        with pytest.raises(ValueError, match=r"not PromQL|closes nothing|not closed"):
            named(wrong)


def test_every_rule_says_how_bad_it_is_and_what_to_do() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES) > 8
    for rule in RULES:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("page", "warn", "info")
        assert set(rule["annotations"]) == {"summary", "action"}
        assert re.fullmatch(r"[0-9]+[mh]", rule["for"])
        by = named(rule["expr"]).grouped | TARGET
        assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= by, rule["alert"]


def test_panels_have_a_place_of_their_own_and_ask_the_chosen_source() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for at in (panel["gridPos"] for panel in panels)
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    sources = {target["datasource"]["uid"] for panel in panels for target in panel["targets"]}
    assert sources == {"${datasource}"}
    assert "://" not in Path(DEPLOY / "grafana-dashboard.json").read_text()
