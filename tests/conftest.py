import os
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

from tests.postgres import Postgres

# Kernels compile on first use, so there is no deadline; examples are the same on every run, so that a failure can be repeated.
settings.register_profile("thrifty", deadline=None, derandomize=True)
settings.load_profile("thrifty")

# Routers run their policies interpreted, which gives the same results, unless a test says otherwise.
os.environ["THRIFTY_COMPILE"] = "never"


pytest_plugins = ["tests.plain"]

# They are programs, and turn the compiler off for their process.
collect_ignore = ["mutation/run.py", "mutation/trial.py"]

LONGEST = (
    "tests/policies/test_twins.py",
    "tests/service/test_kill.py",
    "tests/test_docs.py",
    "tests/service/test_replicas.py",
    "tests/test_tutorials.py",
    "tests/router/test_twin.py",
    "tests/service/test_fuzz.py",
    "tests/router/test_router.py",
    "tests/test_as_it_is_now.py",
    "tests/policies/test_contract.py",
    "tests/reports/test_scenario.py",
    "tests/router/test_interpreted.py",
    "tests/test_compiled.py",
    "tests/golden/test_golden.py",
    "tests/dashboard/test_levers.py",
    "tests/dashboard/test_pages.py",
    "tests/router/test_soundness.py",
    "tests/test_intervals.py",
    "tests/policies/test_files.py",
    "tests/router/test_twin_replicas.py",
    "tests/client/test_outage.py",
    "tests/experiments/test_experiments.py",
    "tests/simulation/test_simulate.py",
    "tests/cli/test_cli.py",
)
"""Files that take ten seconds or more, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files begin first, so that no process is left alone with one at the end."""
    place = {path: number for number, path in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.nodeid.partition("::")[0], len(place)))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()


@pytest.fixture
def remember(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], int]:
    """The `memory_bytes` with which a router keeps so many decisions in memory, whatever one takes."""

    def least(decisions: int) -> int:
        monkeypatch.setattr("thrifty.router.records.BYTES_OF_RECORD", 65_536 // decisions)
        monkeypatch.setattr("thrifty.router.state.BYTES_OF_RECORD", 65_536 // decisions)
        return 65_536

    return least
