"""Policies are played as their code is now, and unchanged code is compiled once: tried through `simulate`, as one would."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from thrifty import Instance, Policy, policy, simulate
from thrifty.policies import Number, Rule, kernel

TWO = Instance([0.5, 0.46], [1.0, 0.0], 0.1)


def played(spec: str | Policy) -> int:
    """The arm that a policy plays in every round."""
    pulls = simulate(TWO, spec, horizon=10, runs=1).results[0].pulls[0, -1]
    assert pulls.max() == 10
    return int(pulls.argmax())


def notebook(cell: str, scope: dict[str, Any] | None = None) -> dict[str, Any]:
    """The names of a notebook after one more cell."""
    scope = {"__name__": "__main__"} if scope is None else scope
    exec("from thrifty.policies import Policy, Rule, kernel\nimport numpy as np\nimport enum\nimport numba\n" + cell, scope)
    return scope


CHOOSE = "@kernel\ndef choose(terms, stats, memory, stream):\n    return {}\n"
MADE = "mine = Policy('mine', 'of a notebook', Rule(choose))\n"


def test_an_edited_cell_of_a_notebook_is_played_as_it_is_now() -> None:
    scope = notebook(CHOOSE.format(0) + MADE)
    assert played(scope["mine"]) == 0
    notebook(CHOOSE.format(1) + MADE, scope)
    assert played(scope["mine"]) == 1
    notebook(CHOOSE.format(0) + MADE, scope)
    assert played(scope["mine"]) == 0


def test_two_closures_are_two_policies() -> None:
    def always(arm: int) -> Policy:
        @kernel
        def choose(_terms, _stats, _memory, _stream):  # type: ignore[no-untyped-def]
            return arm

        return Policy("always", "one arm", Rule(choose))

    assert [played(always(arm)) for arm in (0, 1, 0)] == [0, 1, 0]


def test_a_kernel_that_is_given_as_a_parameter_is_played_as_it_is() -> None:
    for better in (0, 1):

        @kernel
        def prior(_terms, _stats, arm, _stream, better=better):  # type: ignore[no-untyped-def]
            return 0.9 if arm == better else 0.1

        spec = policy("cs-ts", prior=prior)
        pulls = simulate(TWO, spec, horizon=100, runs=1).results[0].pulls[0, -1]
        assert pulls.argmax() == better


@pytest.mark.parametrize(
    ("before", "after", "chosen"),
    [
        ("ARMS = np.array([0, 0])", "ARMS[:] = 1", "ARMS[0]"),  # changed in place
        ("ARMS = ((0, 1), (0, 0))", "ARMS = ((0, 1), (0, 1))", "ARMS[1][1]"),
        ("class Arm(enum.Enum):\n    MINE = 0", "class Arm(enum.Enum):\n    MINE = 1", "Arm.MINE.value"),
        ("@kernel\ndef pick():\n    return 0", "@kernel\ndef pick():\n    return 1", "pick()"),
        (
            "def pick(): pass\n@numba.extending.overload(pick)\ndef _():\n    return lambda: 0",
            "def pick(): pass\n@numba.extending.overload(pick)\ndef _():\n    return lambda: 1",
            "pick()",
        ),
    ],
    ids=["array in place", "nested tuple", "enumeration", "callee", "overload"],
)
def test_what_a_kernel_reads_is_read_as_it_is_now(before: str, after: str, chosen: str) -> None:
    """`choose` itself stays the same object, and was compiled with what it read before."""
    overloaded = "overload" in before
    scope = notebook(before + "\n" + CHOOSE.format(chosen) + MADE)
    if overloaded:  # plain Python cannot run an overload, so the policy is not tried in it
        scope["pick"].__code__ = (lambda: 0).__code__
    assert played(scope["mine"]) == 0
    notebook(after, scope)
    if overloaded:
        scope["pick"].__code__ = (lambda: 0).__code__
    assert played(scope["mine"]) == 1


def test_a_module_that_changes_is_read_as_it_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "from thrifty.policies import kernel\nARM = 0\n\n@kernel\ndef pick():\n    return ARM\n"
    (tmp_path / "helpers_of_a_notebook.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    scope = notebook("import helpers_of_a_notebook\n" + CHOOSE.format("helpers_of_a_notebook.pick()") + MADE)
    assert played(scope["mine"]) == 0
    scope["helpers_of_a_notebook"].ARM = 1  # `pick` was compiled with 0
    assert played(scope["mine"]) == 1


def test_parameters_that_are_numbers_need_no_second_kernel() -> None:
    @kernel
    def choose(terms, _stats, _memory, _stream):  # type: ignore[no-untyped-def]
        return int(terms.parameters.arm)

    mine = Policy("numbered", "the arm of its number", Rule(choose), parameters={"arm": Number(0, "the arm", low=0, whole=True)})
    assert [played(mine.configured(arm=arm)) for arm in (0, 1)] == [0, 1]


SCRIPT = """
import json, sys
import numba.core.event as event, numba
import thrifty
from thrifty.policies import Policy, Rule, kernel

@kernel
def choose(terms, stats, memory, stream):
    return {arm}

def always(arm):
    @kernel
    def choose(terms, stats, memory, stream):
        return arm
    return Policy("always", "one arm", Rule(choose))

mine, near = Policy("mine", "of a script", Rule(choose)), thrifty.policy(sys.argv[1])
world = thrifty.Instance([0.5, 0.46], [1.0, 0.0], 0.1)
with event.install_recorder("numba:compile") as compiled:
    arms = [int(thrifty.simulate(world, each, horizon=10, runs=1).results[0].pulls[0, -1].argmax())
            for each in (mine, always(0), always(1), near)]
print(json.dumps([arms, len(compiled.buffer)]))
"""
FILE = """
from thrifty.policies import Policy, Rule, kernel
import helpers

@kernel
def choose(terms, stats, memory, stream):
    return helpers.pick()

POLICY = Policy("near", "what a neighbour says", Rule(choose))
"""
HELPERS = "from thrifty.policies import kernel\n\n@kernel\ndef pick():\n    return {arm}  # {comment}\n"


def run(folder: Path, *, arm: int, near: int, comment: str = "") -> tuple[list[int], int]:
    """The arms that a script's policies play in a process of its own, and how much it compiled."""
    (folder / "script.py").write_text(SCRIPT.format(arm=arm))
    (folder / "mine.py").write_text(FILE)
    (folder / "helpers.py").write_text(HELPERS.format(arm=near, comment=comment))
    environment = {**os.environ, "THRIFTY_CACHE": str(folder / "cache")}
    command = [sys.executable, str(folder / "script.py"), str(folder / "mine.py")]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, timeout=300).stdout
    arms, compiled = json.loads(shown)
    return arms, compiled


def test_the_next_process_plays_the_code_as_it_is_and_compiles_nothing_that_is_unchanged(tmp_path: Path) -> None:
    arms, compiled = run(tmp_path, arm=0, near=0)
    assert arms == [0, 0, 1, 0]
    assert compiled > 0
    assert run(tmp_path, arm=0, near=0) == ([0, 0, 1, 0], 0)
    arms, compiled = run(tmp_path, arm=1, near=1)  # `return 0` became `return 1`, in the script and in the neighbour
    assert arms == [1, 0, 1, 1]
    assert compiled > 0
    assert run(tmp_path, arm=0, near=1, comment="a remark") == ([0, 0, 1, 1], 0)  # both were there before
