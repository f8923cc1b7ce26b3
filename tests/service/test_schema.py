"""Whatever the OpenAPI document allows, and what it forbids: answers are as documented, and none is a server error."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from tests.service.test_http import SMS, Caller, running
from thrifty.service.openapi import describe

schema = schemathesis.openapi.from_dict(describe()).exclude(path="/v1/events")  # which never ends; tests/service/test_events.py
ADMIN = {"authorization": "Bearer k"}
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    folder: Path = tmp_path_factory.mktemp("schema")
    with running(folder, admin_key="k") as client:
        client.put("/v1/routers/sms", json=SMS, headers=ADMIN)
        yield client


IGNORED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@schema.parametrize()
@settings(max_examples=25, deadline=None, derandomize=True, database=None, phases=[Phase.generate], suppress_health_check=IGNORED)
def test_every_answer_is_as_documented(service: Caller, case: Any) -> None:
    case.call_and_validate(
        base_url=str(service.base_url), checks=CHECKS, timeout=120, headers=ADMIN
    )  # a first policy takes long to compile


def test_the_document_names_every_route(service: Caller) -> None:
    shown = service.get("/openapi.json").json()
    assert set(shown["paths"]) == set(describe()["paths"])
