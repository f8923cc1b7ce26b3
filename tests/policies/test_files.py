"""Policy files may import their neighbours, and nobody else's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from thrifty import Instance, policy, simulate

TWO = Instance([0.5, 0.46], [1.0, 0.0], 0.1)
BY_NAME = """
from thrifty.policies import Policy, Rule, kernel
from helpers import pick

@kernel
def choose(terms, stats, memory, stream):
    return pick(terms)

POLICY = Policy("near", "what a neighbour says", Rule(choose))
"""
BY_MODULE = BY_NAME.replace("from helpers import pick", "import helpers").replace("pick(terms)", "helpers.pick(terms)")
HELPERS = """
from thrifty.policies import kernel
from constants import ARM

@kernel
def pick(terms):
    return ARM
"""


def write(folder: Path, arm: int, text: str = BY_NAME) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text(text)
    (folder / "helpers.py").write_text(HELPERS)
    (folder / "constants.py").write_text(f"ARM = {arm}\n")
    return str(folder / "mine.py")


def played(spec: str) -> int:
    pulls = simulate(TWO, spec, horizon=10, runs=1).results[0].pulls[0, -1]
    return int(pulls.argmax()) if pulls.max() == 10 else -1


@pytest.mark.parametrize("text", [BY_NAME, BY_MODULE], ids=["from helpers import pick", "import helpers"])
def test_folders_do_not_get_each_others_neighbours_and_an_edit_of_one_is_noticed(tmp_path: Path, text: str) -> None:
    first, second = write(tmp_path / "a", 0, text), write(tmp_path / "b", 1, text)
    assert (played(first), played(second)) == (0, 1)
    write(tmp_path / "a", 1, text)  # the neighbour's neighbour; the policy file is the same
    write(tmp_path / "b", 0, text)
    assert (played(first), played(second)) == (1, 0)
    assert "helpers" not in sys.modules
    assert str(tmp_path / "a") not in sys.path


def test_sources_hold_the_neighbours_so_that_sweeps_and_routers_notice_an_edit(tmp_path: Path) -> None:
    before = policy(write(tmp_path, 0)).sources
    assert len(before) == 3
    assert policy(write(tmp_path, 1)).sources != before


def test_a_router_decides_with_a_neighbours_help(tmp_path: Path) -> None:
    from thrifty import Router

    for arm, name in enumerate("ab"):
        router = Router({"a": 1.0, "b": 0.5}, alpha=0.1, policy=write(tmp_path / name, arm))
        assert [router.decide().arm for _ in range(3)] == [name] * 3


@pytest.mark.parametrize("text", [BY_NAME, BY_MODULE], ids=["from helpers import pick", "import helpers"])
def test_the_process_that_compiles_for_a_router_finds_the_neighbours(tmp_path: Path, text: str) -> None:
    spec = write(tmp_path / "files", 1, text)
    environment = {**os.environ, "THRIFTY_CACHE": str(tmp_path / "cache"), "THRIFTY_COMPILE": "wait"}
    command = [sys.executable, "-m", "thrifty.router.compile_policy", spec, "known"]
    subprocess.run(command, check=True, env=environment, cwd=tmp_path, timeout=120)
    script = (
        "import sys, thrifty; from thrifty.router.engine import engine_for; code = engine_for(sys.argv[1]).code(True); "
        "print(code.choose.cached, thrifty.Router({'a': 1.0, 'b': 0.5}, alpha=0.1, policy=sys.argv[1]).decide().arm)"
    )
    shown = subprocess.run([sys.executable, "-c", script, spec], check=True, capture_output=True, text=True, env=environment)
    assert shown.stdout == "True b\n"


def test_a_neighbour_that_fails_is_named_with_its_line(tmp_path: Path) -> None:
    spec = write(tmp_path, 0)
    (tmp_path / "constants.py").write_text("\n1 / 0\n")
    with pytest.raises(ValueError, match=r"constants.py:2 does not run: ZeroDivisionError"):
        policy(spec)


def test_installed_modules_are_found_as_ever_and_neighbours_first(tmp_path: Path) -> None:
    spec = write(tmp_path, 0)
    (tmp_path / "statistics.py").write_text("ARM = 1\n")  # the name of a module of Python
    (tmp_path / "helpers.py").write_text(HELPERS.replace("from constants", "import json\nfrom statistics"))
    assert played(spec) == 1
    import statistics

    assert statistics.mean([1, 3]) == 2
