import os
from pathlib import Path

import pytest

from tests.postgres import Postgres
from tests.service.conftest import Service
from tests.service.killing import kill_again_and_again, kill_replicas_again_and_again, kill_the_database_again_and_again

soak = pytest.mark.skipif("THRIFTY_SOAK" not in os.environ, reason="takes minutes: make soak")


def test_kill_9_under_load_loses_and_doubles_nothing(tmp_path: Path) -> None:
    service = Service(f"sqlite:///{tmp_path / 'k.db'}")
    assert kill_again_and_again(service, 3) > 20


def test_a_database_killed_under_load_loses_and_doubles_nothing(postgres: Postgres) -> None:
    service = Service(postgres.database())
    assert kill_the_database_again_and_again(service, postgres, 2) > 20


def test_a_replica_killed_under_load_loses_and_doubles_nothing(postgres: Postgres) -> None:
    url = postgres.database()
    assert kill_replicas_again_and_again([Service(url), Service(url)], 2) > 20


@soak
def test_fifty_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    service = Service(f"sqlite:///{tmp_path / 'k.db'}")
    assert kill_again_and_again(service, 50) > 1000


@soak
def test_fifty_kills_of_the_database_lose_and_double_nothing(postgres: Postgres) -> None:
    service = Service(postgres.database())
    assert kill_the_database_again_and_again(service, postgres, 50) > 1000


@soak
def test_fifty_kills_of_replicas_lose_and_double_nothing(postgres: Postgres) -> None:
    url = postgres.database()
    assert kill_replicas_again_and_again([Service(url), Service(url)], 50) > 1000
