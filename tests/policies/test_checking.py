"""`thrifty check-policy`, and the same checks before a user's policy is played."""

import re
import sys
from pathlib import Path

import pytest

from thrifty import Instance, Policy, simulate
from thrifty.cli.main import main
from thrifty.policies import Rule, kernel
from thrifty.policies.checking import check_policy
from thrifty.policies.inspection import is_users
from thrifty.policies.registry import list_policies

TWO = Instance([0.5, 0.46], [1.0, 0.0], 0.1)
HEAD = """import math
import random
import numpy as np
from thrifty.policies import Number, Policy, Rule, builder, kernel

"""
FIRST_LINE = HEAD.count("\n") + 1


def write(folder: Path, body: str, rule: str = "Rule(choose)") -> str:
    """A policy file; the first line of the body has the number FIRST_LINE."""
    path = folder / "mine.py"
    path.write_text(f'{HEAD}{body}\n\nPOLICY = Policy("mine", "of a user", {rule})\n')
    return str(path)


def choosing(*lines: str) -> str:
    return "@kernel\ndef choose(terms, stats, memory, stream):\n" + "\n".join(f"    {line}" for line in lines)


FAULTS = {
    "an arm that is not there": (choosing("return 2 if stats[0].sent > 3 else 0"), 2, "choose returned arm 2 in round 5"),
    "a negative arm": (choosing("return -1"), 2, "choose returned arm -1 in round 1, and the number of arms is 2: return 0 to 1"),
    "an arm that is no number": (choosing("if stats[0].sent < 9:", "    return 0"), 2, "choose returned None in round 10"),
    "an exception": (choosing("return terms.prices[0]"), 2, "choose in round 1 raises AttributeError"),
    "an index": (choosing("return int(terms.costs[stats.size])"), 2, "choose in round 1 raises IndexError"),
    "np.random": (choosing("return np.random.randint(2)"), 2, "draws random numbers that the seed does not reach"),
    "random": (choosing("x = 1", "return int(random.random() < 0.5)"), 3, "draws random numbers that the seed does not reach"),
    "no decorator": ("def choose(terms, stats, memory, stream):\n    return 0", 0, "choose is not compiled: put @kernel above it"),
    "zeros": (choosing("scores = np.zeros(3)", "return int(scores[0])"), 2, "allocates memory, which a kernel must not"),
    "a list": (choosing("arms = [arm for arm in range(2)]", "return arms[0]"), 2, "allocates memory, which a kernel must not"),
    "an expression of arrays": (choosing("return int(np.argmax(terms.costs * 2.0)) * 0"), 2, "allocates memory"),
    "a plain helper": ("def pick():\n    return 0\n\n" + choosing("return pick()"), 5, "calls pick, which is not compiled"),
    "two types": (choosing("x = 0", "if terms.alpha > 2:", '    x = "a"', "return int(x == 1)"), 5, "gives x values of two types"),
    "a division by zero": (choosing("return int(1.0 / (terms.alpha - terms.alpha) < 0)"), 2, "raises ZeroDivisionError"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_line_with_file_line_and_remedy(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body, offset, message = FAULTS[name]
    path = write(tmp_path, body)
    assert main(["check-policy", path]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    assert line.startswith(f"{path}:{FIRST_LINE + offset}: ")
    assert message in line


@pytest.mark.parametrize("name", ["an arm that is not there", "an index", "np.random", "a list", "a plain helper"])
def test_a_simulation_refuses_it_with_the_same_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body, offset, message = FAULTS[name]
    path = write(tmp_path, body)
    arms = ["--means", "0.5,0.46", "--costs", "1,0", "--alpha", "0.1", "--horizon", "50", "--runs", "2"]
    assert main(["compare", *arms, "--policies", f"cheapest,{path}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"thrifty compare: mine: {path}:{FIRST_LINE + offset}: ")
    assert message in line


def test_the_leaderboard_refuses_it_with_the_same_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, FAULTS["zeros"][0])
    assert main(["leaderboard", "--enter", path, "--quick", "--only", "two arms"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"thrifty leaderboard: mine: {path}:{FIRST_LINE + 2}: allocates memory")


def test_a_loop_without_end_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thrifty.policies.trial._LIMIT_S", 0.3)
    path = write(tmp_path, choosing("while stats[0].sent > 20:", "    pass", "return 0"))
    (fault,) = check_policy(path)
    where, _, what = fault.partition(": ")
    assert where in (f"{path}:{FIRST_LINE + 2}", f"{path}:{FIRST_LINE + 3}")  # wherever the loop was
    assert what == "choose in round 22 did not return within 0.3 seconds: let the loop end"
    with pytest.raises(ValueError, match=r"mine: .* choose in round 22 did not return"):
        simulate(TWO, path, horizon=100)
    assert sys.gettrace() is None or "coverage" in repr(sys.gettrace())


def test_a_rule_that_has_much_to_do_with_many_arms_is_not_called_endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thrifty.policies.trial._LIMIT_S", 0.2)
    work = ["total = 0", "for i in range(stats.size * 20_000):", "    total += i & 1", "return total % stats.size"]
    path = write(tmp_path, choosing(*work))
    arms = Instance([0.5] * 60, [1.0] * 60, 0.1)
    assert simulate(arms, path, horizon=60, runs=1, checkpoints=1).results[0].pulls.sum() == 60


def test_a_memory_that_is_no_array_is_named_with_its_init(tmp_path: Path) -> None:
    path = write(tmp_path, "@builder\ndef init(terms):\n    return [1]\n\n" + choosing("return 0"), "Rule(choose, init)")
    assert check_policy(path) == [
        f"{path}:{FIRST_LINE}: init raises TypeError: the memory holds a list: keep arrays, numbers and (named) tuples of them"
    ]


def test_faults_of_neighbours_and_of_the_rule_for_unknown_costs_are_found(tmp_path: Path) -> None:
    (tmp_path / "near.py").write_text("from thrifty.policies import kernel\n\n@kernel\ndef pick(stats):\n    return stats.size\n")
    good = choosing("return 0").replace("def choose", "def known")
    body = "from near import pick\n\n" + good + "\n\n" + choosing("return pick(stats)")
    (fault,) = check_policy(write(tmp_path, body, "Rule(known), Rule(choose)"))
    assert "choose returned arm 2 in round 1" in fault


def test_a_good_policy_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = "@builder\ndef init(terms):\n    return np.zeros(terms.costs.size), 1.5\n\n" + choosing(
        "draws, scale = memory", "draws[0] = scale", "return stats[0].sent % stats.size"
    )
    path = write(tmp_path, body, "Rule(choose, init)")
    assert main(["check-policy", path]) == 0
    assert capsys.readouterr().out == f"{path}: no fault found\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "must define POLICY"),
        ("\n1 / 0", r"mine.py:2 does not run: ZeroDivisionError"),
        ("def", "mine.py:1 does not run: Syn"),
    ],
)
def test_a_file_that_does_not_run_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    assert main(["check-policy", str(tmp_path / "mine.py")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(message, line)


def test_policies_of_the_package_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(is_users(each) for each in list_policies().values())
    monkeypatch.setattr("thrifty.policies.trial.look_at_functions", None)  # would fail if it were called
    assert simulate(TWO, "cheapest", horizon=10, runs=1)["cheapest"].pulls[0, -1].sum() == 10


def test_arithmetic_that_only_plain_python_refuses_is_played() -> None:
    @kernel
    def choose(terms, _stats, _memory, _stream):  # type: ignore[no-untyped-def]
        return int(1.0 / (terms.alpha - terms.alpha) < 0)

    pulls = simulate(TWO, Policy("careless", "divides by zero", Rule(choose)), horizon=10, runs=1)["careless"].pulls
    assert pulls[0, -1].tolist() == [10, 0]
