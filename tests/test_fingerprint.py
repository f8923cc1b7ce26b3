"""Fingerprints: equal for equal code, different for any difference that a kernel could show."""

import subprocess
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from thrifty.compiled import bind, driver, kernel, rare
from thrifty.fingerprint import fingerprint

SOURCE = """
import math
import numpy as np
from thrifty.compiled import kernel

LEVEL = {level}
TABLE = np.array([1.0, {entry}])

@kernel
def helper(x):  # {comment}
    return x + {step}

@kernel
def choose(x, y={default}):
    return helper(x) * LEVEL + TABLE[1] + y
"""
GIVEN = {"level": 2.0, "entry": 3.0, "step": 1, "default": 0.5, "comment": "", "decorator": "kernel"}


def made(**changes: Any) -> Any:
    """The compiled `choose` of the source above, in a module of its own."""
    module = ModuleType("made")
    exec(SOURCE.format(**{**GIVEN, **changes}), module.__dict__)
    return module.choose


@pytest.mark.parametrize("change", [{"level": 2.5}, {"entry": 4.0}, {"step": 2}, {"step": 1.0}, {"default": 0.25}])
def test_a_change_of_a_global_an_array_a_callee_or_a_default_is_noticed(change: dict[str, float]) -> None:
    assert fingerprint(made(**change)) != fingerprint(made())


def test_a_comment_and_the_place_of_a_function_do_not_count() -> None:
    assert fingerprint(made(comment="another\n    # and more lines")) == fingerprint(made())


def test_closures_differ_by_what_they_close_over() -> None:
    def add(amount: float) -> Any:
        return kernel(lambda x: x + amount)

    assert fingerprint(add(1.0)) == fingerprint(add(1.0))
    assert fingerprint(add(1.0)) != fingerprint(add(2.0))
    assert fingerprint(add(1.0)) != fingerprint(add(1))


def test_how_a_function_is_compiled_counts() -> None:
    def function(x):  # type: ignore[no-untyped-def]
        return x

    assert fingerprint(kernel(function)) != fingerprint(rare(function))


def test_a_function_that_calls_itself_has_a_fingerprint() -> None:
    assert fingerprint(countdown) == fingerprint(countdown)


@kernel
def countdown(n):  # type: ignore[no-untyped-def]
    return 0 if n == 0 else countdown(n - 1)  # type: ignore[no-untyped-call]


def test_what_is_taken_from_a_module_counts() -> None:
    def uses(amount: float) -> Any:
        module = ModuleType("of_a_user")
        module.amount = amount  # type: ignore[attr-defined]
        scope = {"of_a_user": module, "kernel": kernel}
        exec("f = kernel(lambda x: x + of_a_user.amount)", scope)
        return scope["f"]

    assert fingerprint(uses(1.0)) == fingerprint(uses(1.0))
    assert fingerprint(uses(1.0)) != fingerprint(uses(2.0))


def test_a_value_that_cannot_be_understood_is_never_the_same() -> None:
    odd = SimpleNamespace(a=1)
    assert fingerprint(odd) != fingerprint(odd)


def test_fingerprints_are_the_same_in_another_process() -> None:
    line = "import thrifty, thrifty.fingerprint as f; print(f.fingerprint(thrifty.policy('cs-ids').rule.choose))"
    found = {
        subprocess.run(
            [sys.executable, "-c", line], check=True, capture_output=True, text=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_a_users_function_is_bound_as_it_is_now_though_it_was_compiled_before() -> None:
    scope: dict[str, Any] = {"kernel": kernel}
    exec("step = kernel(lambda x: x + 1.0)\nmove = kernel(lambda x: step(x))", scope)

    @driver
    def drive(move, x):  # type: ignore[no-untyped-def]
        return move(x)

    assert bind(drive, {"move": scope["move"]}, name="notebook")(1.0) == 2.0
    exec("step = kernel(lambda x: x + 10.0)", scope)  # `move` is the same function, and holds a compiled call of the old `step`
    assert scope["move"](1.0) in (2.0, 11.0)
    assert bind(drive, {"move": scope["move"]}, name="notebook")(1.0) == 11.0


def test_arrays_count_by_their_content() -> None:
    assert fingerprint(np.arange(3.0)) == fingerprint(np.arange(3.0))
    assert fingerprint(np.arange(3.0)) != fingerprint(np.arange(3))
