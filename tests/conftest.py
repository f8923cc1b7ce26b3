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
