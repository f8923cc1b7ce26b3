"""A fixture for tests that need no compiler."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from thrifty.compiled import interpreted


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulations run as plain Python, the same to the bit: short ones take longer to compile than to play."""

    def bind(drive: Callable[..., Any], constants: Mapping[str, Any], **_options: Any) -> Callable[..., Any]:
        return partial(interpreted(drive), *(interpreted(value) for value in constants.values()))

    monkeypatch.setattr("thrifty.policies.binding.bind", bind)
