from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.postgres import Postgres

# Kernels compile on first use, so there is no deadline; examples are the same on every run, so that a failure can be repeated.
settings.register_profile("thrifty", deadline=None, derandomize=True)
settings.load_profile("thrifty")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()
