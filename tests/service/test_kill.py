import os
from pathlib import Path

import pytest

from tests.service.conftest import Service
from tests.service.killing import kill_again_and_again


def test_kill_9_under_load_loses_and_doubles_nothing(tmp_path: Path) -> None:
    service = Service(f"sqlite:///{tmp_path / 'k.db'}")
    assert kill_again_and_again(service, 3) > 20


@pytest.mark.skipif("THRIFTY_SOAK" not in os.environ, reason="takes minutes: make soak")
def test_fifty_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    service = Service(f"sqlite:///{tmp_path / 'k.db'}")
    assert kill_again_and_again(service, 50) > 1000
