import functools
from collections.abc import Callable, Iterator

import pytest

from tests.client.both import Driver
from tests.client.servers import Server, serving
from tests.service.conftest import Service

Make = Callable[..., Driver]


@pytest.fixture(params=["Client", "AsyncClient"])
def make(request: pytest.FixtureRequest) -> Make:
    """Makes clients of one kind."""
    return functools.partial(Driver, request.param)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A real service with a router `sms`."""
    service = Service(f"sqlite:///{tmp_path_factory.mktemp('client') / 'service.db'}").start()
    try:
        with Driver("Client", service.url) as client:
            client.put_router("sms", {"a": 0.0079, "b": 0.0041}, 0.05, policy="cs-ucb")
        yield service
    finally:
        service.stop()
