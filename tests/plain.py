"""Fixtures for tests that need no compiler."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from thrifty.compiled import interpreted, stay_apart
from thrifty.fingerprint import Rebuilder


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulations run as plain Python, the same to the bit: short ones take longer to compile than to play."""
    _bind_with(monkeypatch, interpreted)


@pytest.fixture
def compiled_streams_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `uncompiled`, but random numbers are drawn by compiled code: half of the time of a sampling policy goes into them."""
    _bind_with(monkeypatch, _all_but_streams.rebuild)


def _bind_with(monkeypatch: pytest.MonkeyPatch, plain: Callable[[Any], Any]) -> None:
    def bind(drive: Callable[..., Any], constants: Mapping[str, Any], **_options: Any) -> Callable[..., Any]:
        return partial(plain(drive), *(plain(value) for value in constants.values()))

    monkeypatch.setattr("thrifty.policies.binding.bind", bind)


_all_but_streams = Rebuilder(
    lambda copy, _: copy,
    wanted=lambda each: each.py_func.__module__ != "thrifty.streams",
    rest=lambda value: (lambda: None) if value is stay_apart else value,
)
