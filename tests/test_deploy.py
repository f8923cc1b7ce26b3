"""The files in deploy/: metrics, labels, commands and variables that they name exist."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.pages import ROOT
from tests.promql import result_labels
from tests.service.test_http import SMS, running
from thrifty.cli.main import build_parser
from thrifty.described import described
from thrifty.router import Router
from thrifty.service.config import Config
from thrifty.service.declarations import ConfigFile

DEPLOY = ROOT / "deploy"
RULES: list[Any] = yaml.safe_load((DEPLOY / "prometheus-rules.yml").read_text())["groups"][0]["rules"]
DASHBOARD: Any = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
PANELS: list[Any] = DASHBOARD["panels"]


def queries() -> list[tuple[str, str]]:
    """Every query of both files, with where it stands; the variables of Grafana replaced."""
    panels = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
    found = [(rule["alert"], rule["expr"]) for rule in RULES] + panels
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
def test_every_query_is_promql_and_its_metrics_and_labels_exist(place: str, text: str, shown: dict[str, set[str]]) -> None:
    labels = result_labels(text, shown)
    rules = {rule["alert"]: rule for rule in RULES}
    legends = {
        target["expr"].replace("$__rate_interval", "5m"): target["legendFormat"] for each in PANELS for target in each["targets"]
    }
    used = re.findall(r"\$labels\.(\w+)", str(rules[place])) if place in rules else re.findall(r"{{(\w+)}}", legends[text])
    assert set(used) <= labels, "a label in a text would be empty"


def test_the_list_of_routers_is_that_of_a_label_that_exists(shown: dict[str, set[str]]) -> None:
    (variable,) = [each["query"]["query"] for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable).groups()  # type: ignore[union-attr]
    assert label in shown[metric]


@pytest.mark.parametrize(
    "wrong",
    [
        *("sum(rate(thrifty_decisions_total[5m])", "rate(thrifty_decisions_total)", "rate(thrifty_decisions_total[5 minutes])"),
        *("thrifty_decision_total", 'thrifty_decisions_total{arm="a"}', "sum by (arm) (thrifty_decisions_total)"),
        *("nosuch(thrifty_pending)", "thrifty_pending unless > 0", "histogram_quantile(0.9, thrifty_pending, 1)"),
        "sum by (router) (thrifty_pending) / sum by (instance) (thrifty_pending)",
    ],
)
def test_a_wrong_query_is_noticed(wrong: str, shown: dict[str, set[str]]) -> None:
    with pytest.raises(ValueError, match=r"."):
        result_labels(wrong, shown)


def test_every_rule_says_how_bad_it_is_and_what_to_do() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES) > 8
    for rule in RULES:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("page", "warn", "info")
        assert set(rule["annotations"]) == {"summary", "action"}
        assert re.fullmatch(r"[0-9]+[mh]", rule["for"])


def test_panels_have_a_place_of_their_own_and_ask_the_chosen_source() -> None:
    assert len({panel["id"] for panel in PANELS}) == len({panel["title"] for panel in PANELS}) == len(PANELS)
    cells = [
        (x, y)
        for at in (panel["gridPos"] for panel in PANELS)
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    sources = {target["datasource"]["uid"] for panel in PANELS for target in panel["targets"]}
    assert sources == {"${datasource}"}
    assert "://" not in Path(DEPLOY / "grafana-dashboard.json").read_text()


# -- systemd and containers ------------------------------------------------------------------------------------------------


def unit() -> dict[str, list[str]]:
    """The settings of the unit, by name; a setting may stand there more than once."""
    found: dict[str, list[str]] = {}
    for line in (DEPLOY / "thrifty.service").read_text().splitlines():
        if line and line[0] not in "#[":
            name, equals, value = line.partition("=")
            assert equals, line
            found.setdefault(name, []).append(value)
    return found


def test_the_unit_starts_a_command_that_exists_and_reloads_by_sighup() -> None:
    (start,), (reload,) = unit()["ExecStart"], unit()["ExecReload"]
    program, *words = shlex.split(start)
    options = build_parser().parse_args(words)
    assert (Path(program).name, options.command, options.config) == ("thrifty", "serve", "/etc/thrifty/thrifty.toml")
    assert reload == "/bin/kill -HUP $MAINPID"
    assert unit()["RestartPreventExitStatus"] == ["2"]  # the exit code of wrong input
    assert float(unit()["TimeoutStopSec"][0]) > Config().drain_s


def test_the_example_of_a_configuration_file_is_taken() -> None:
    file = ConfigFile.load({}, str(DEPLOY / "thrifty.toml"))
    assert (file.config.reconcile, file.config.loopback) == ("report", True)
    assert list(file.routers["sms"].arms.values()) == [0.0079, 0.0041, None]
    Router(file.routers["sms"].arms, **file.routers["sms"].settings)


def variables(text: str) -> set[str]:
    return set(re.findall(r"\bTHRIFTY_\w+", text))


def test_every_variable_that_a_file_sets_is_one_that_the_service_reads() -> None:
    known = {each.variable for each in described(Config)} | {"THRIFTY_CACHE"}
    for name in ("thrifty.service", "Containerfile"):
        found = variables((DEPLOY / name).read_text())
        assert found <= known
        assert {"THRIFTY_STORE", "THRIFTY_CACHE"} <= found


def test_the_unit_writes_only_where_it_may() -> None:
    settings = unit()
    assert settings["ProtectSystem"] == ["strict"]
    for kind in ("State", "Cache"):
        assert settings[f"{kind}Directory"] == ["thrifty"]
    assert "sqlite:////var/lib/thrifty/" in settings["Environment"][0]
    assert "THRIFTY_CACHE=/var/cache/thrifty" in settings["Environment"][0]
    assert "MemoryDenyWriteExecute" not in settings  # rules are compiled while it runs


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile, lines that go on joined."""
    text = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^#.*\n", "", (DEPLOY / "Containerfile").read_text()))
    found = [line.partition(" ") for line in text.splitlines() if line.strip()]
    return [(name, rest) for name, _, rest in found]


def test_the_containerfile_has_two_stages_and_ends_as_a_user_without_rights() -> None:
    names = [name for name, _ in instructions()]
    known = "FROM ARG ENV WORKDIR COPY RUN USER VOLUME EXPOSE STOPSIGNAL HEALTHCHECK ENTRYPOINT CMD"
    assert set(names) <= set(known.split())
    assert (names[0], names.count("FROM")) == ("FROM", 2)
    last = dict(instructions()[names.index("FROM", 1) :])
    assert last["USER"] == "10001"
    assert json.loads(last["ENTRYPOINT"]) + json.loads(last["CMD"]) == ["thrifty", "serve"]
    assert json.loads(last["HEALTHCHECK"].partition("CMD ")[2])[0] == "python"
    assert int(last["EXPOSE"]) == Config().port
    copied = [rest.split() for name, rest in instructions() if name == "COPY"]
    for source in (each for words in copied if "--from=build" not in words for each in words[:-1]):
        assert (ROOT / source).exists(), source


def test_the_image_is_warmed_for_the_processor_that_it_will_think_it_has() -> None:
    stages = " ".join(f"\n{name} {rest}" if name == "FROM" else rest for name, rest in instructions()).split("\n")[1:]
    for words in ("NUMBA_CPU_NAME=generic", 'NUMBA_CPU_FEATURES=""', "THRIFTY_CACHE=/var/cache/thrifty"):
        assert all(words in stage for stage in stages)
    (warm,) = [rest for name, rest in instructions() if name == "RUN" and "thrifty warm" in rest]
    assert build_parser().parse_args(warm.replace("$POLICIES", "").split()[1:]).unknown_costs
