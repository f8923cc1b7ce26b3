"""Whatever numba refuses in a user's rule is one line: file, line, what is not possible, and what to write instead."""

import re
from collections import namedtuple
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

from tests.policies.test_checking import FIRST_LINE, choosing, write
from thrifty import Instance, Router, policy, simulate
from thrifty.cli.main import main
from thrifty.policies.binding import explaining_refusals
from thrifty.policies.checking import check_policy
from thrifty.policies.contract import RuleTerms
from thrifty.policies.refusals import explain_refusal
from thrifty.statistics import ArmStatistics

TWO = Instance([0.5, 0.46], [1.0, 0.0], 0.1)
ALLOCATES = "allocates memory, which a kernel must not: make the array in init"
LATE = "if stats[0].sent > 500:"  # a branch that a trial in plain Python does not reach

REFUSED = {
    "an array": (choosing("x = np.zeros(2)", "return int(x[0])"), 2, ALLOCATES),
    "a copy": (choosing("x = terms.costs.copy()", "return int(x[0]) * 0"), 2, ALLOCATES),
    "a sort": (choosing("return int(np.argsort(terms.costs)[0])"), 2, ALLOCATES),
    "a dict": (choosing("best = {0: 0}", "return best[0]"), 3, ALLOCATES),
    "a set": (choosing("seen = {0, 1}", "return len(seen) - 2"), 2, ALLOCATES),
    "a list of lists": (choosing("rows = [[1, 2], [3]]", "return len(rows) - 2"), 2, ALLOCATES),
    "a formatted string": (choosing("name = f'{stats.size}'", "return len(name) - 1"), 2, ALLOCATES),
    "an old formatted string": (choosing("return len('a%d' % stats.size) - 2"), 2, "calls mod(str, int64), which compiled code"),
    "an exception caught": (
        choosing("try:", "    return int(terms.costs[0]) * 0", "except ZeroDivisionError:", "    return 1"),
        4,
        "catches an exception, which compiled code cannot: test for the case before it arises",
    ),
    "a global dict": ("table = {0: 0}\n\n" + choosing("return table[0]"), 4, "reads the global table, a dict, which compiled code"),
    "a global list": ("table = [0]\n\n" + choosing("return table[0]"), 4, "reads the global table, a list, which compiled code"),
    "a global object": (
        "class Pick:\n    arm = 0\n\npick = Pick()\n\n" + choosing("return pick.arm"),
        7,
        "reads the global pick, a Pick, which compiled code cannot: use numbers, arrays or tuples",
    ),
    "a list around it": (
        "def make():\n    table = [0]\n\n    @kernel\n    def choose(terms, stats, memory, stream):\n        return table[0]\n\n"
        "    return choose\n\nchoose = make()",
        5,
        "reads table of the function around it, which compiled code cannot: use a number or a tuple",
    ),
    "a plain function": ("def pick():\n    return 0\n\n" + choosing("return pick()"), 5, "calls pick, which is not compiled"),
    "a module": ("import os\n\n" + choosing("return len(os.getcwd()) * 0"), 4, "uses os.getcwd, which compiled code does not know"),
    "a builtin": (choosing("open('/dev/null')", "return 0"), 2, "reads the global open, a builtin_function_or_method"),
    "a data frame": ("import pandas as pd\n\n" + choosing("return int(pd.Series([0]).iloc[0])"), 4, "uses pandas.Series"),
    "two returned types": (choosing(LATE, "    return 0, 1", "return 0"), 4, "returns values of several types, "),
    "an unknown statistic": (
        choosing(LATE, "    return int(stats[0].pulls)", "return 0"),
        3,
        "reads pulls, which the statistics of an arm do not have: there are sent, pending, seen, reward_sum",
    ),
    "an unknown term": (choosing(LATE, "    return int(terms.prices[0])", "return 0"), 3, "reads terms.prices, which there is not"),
    "an unknown parameter": (
        choosing(LATE, "    return int(terms.parameters.tau)", "return 0"),
        3,
        "reads the parameter tau, which the policy does not have: name it in parameters=, as a Number",
    ),
    "an unknown name": (choosing(LATE, "    return nothing", "return 0"), 3, "uses nothing, which is not defined"),
    "other arguments": (
        "@kernel\ndef pick(a, b):\n    return 0\n\n" + choosing(LATE, "    return pick(1)", "return 0"),
        7,
        "calls a function with other arguments than it takes: missing a required argument: 'b'",
    ),
    "a generator": (choosing("return sum(0 for arm in range(2))"), 2, "uses a generator: write a plain loop"),
    "a with statement": (
        "import contextlib\n\n" + choosing("with contextlib.nullcontext():", "    return 0"),
        4,
        "uses a with statement, which compiled code cannot: leave it out",
    ),
    "a recursion without end": (
        "@kernel\ndef down(n):\n    return down(n - 1)\n\n" + choosing(LATE, "    return down(3)", "return 0"),
        2,
        "calls itself without end: write a loop",
    ),
    "two types": (choosing("x = 0", LATE, "    x = 'a'", "return int(x == 1)"), 5, "gives x values of two types, int and str"),
    "two kinds of arrays": (
        choosing("x = terms.costs", "if terms.alpha > 2:", "    x = stats", "return 0 * len(x)"),
        5,
        "gives x values of two types, an array of float64 and the statistics: use one",
    ),
    "a type that grows": (choosing("x = 0", "for i in range(3):", "    x = (x, i)", "return 0"), 3, "gives x values of two types"),
    "a class": (choosing("class A:", "    pass", "return 0"), 2, "defines a class in a kernel: define it above"),
    "an import": (choosing("import math as m", "return int(m.floor(0.5))"), 2, "imports in a kernel: import at the top"),
    "a changed global": ("n = 0\n\n" + choosing("global n", "n += 1", "return 0"), 5, "changes a global, which compiled"),
    "a deleted name": (choosing("x = 1", "del x", "return 0"), 3, "deletes x, which compiled code cannot: leave it out"),
    "an unknown call": (choosing("return int('0')"), 2, "calls int(str), which compiled code does not know: use math, numpy"),
}  # fmt: skip


def compile_choose(path: str) -> None:
    """Compile the one function, not a whole driver around it."""
    chosen = policy(path)
    terms = RuleTerms(np.zeros(2), np.arange(2), 0.1, 100, namedtuple("Parameters", ())(), ())
    with explaining_refusals(chosen):
        chosen.rule.choose(terms, np.zeros(2, ArmStatistics), (), np.zeros(4, np.uint64))


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_compiler_refuses_is_one_line(name: str, tmp_path: Path) -> None:
    body, offset, message = REFUSED[name]
    path = write(tmp_path, body)
    with pytest.raises(ValueError, match=r"^mine: ") as caught:
        compile_choose(path)
    assert str(caught.value).startswith(f"mine: {path}:{FIRST_LINE + offset}: {message}")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert caught.value.__cause__ is None


WHOLE = {
    "None on some path": (
        choosing(LATE, "    return None", "return 0"),
        0,
        "choose returns int64 or None on some path: return the",
    ),
    "a float on some path": (choosing(LATE, "    return 0.5", "return 0"), 0, "choose returns a float64 on some path: return the"),
}
TRIED = {
    "a float": (choosing("return 0.0"), 2, "choose returned 0.0 in round 1, which is no whole number: return the number of an arm"),
    "a yield": (choosing("yield 0"), 0, "choose yields or awaits: return the number of an arm"),
    "an await": ("@kernel\nasync def choose(terms, stats, memory, stream):\n    return 0", 0, "choose yields or awaits"),
    "a text in a statistic": (choosing("stats[0].sent = 'a'", "return 0"), 2, "choose in round 1 raises ValueError: invalid"),
    "an unknown statistic": (choosing("return int(stats[0].pulls)"), 2, "docs/how-to/own-policy.md has all that a rule sees"),
    "too few arguments": (
        "@kernel\ndef choose(terms, stats):\n    return 0", 0, "choose takes (terms, stats, memory, stream)",
    ),
    "a print": (choosing("print(stats[0].sent)", "return 0"), 2, "prints in every round: leave it out"),
    "a generator of numbers": (
        "rng = np.random.default_rng(1)\n\n" + choosing("return int(rng.integers(2))"), 4, "draws random numbers that the seed",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [*WHOLE, *TRIED])
def test_a_check_says_the_same_as_a_simulation(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body, offset, message = {**WHOLE, **TRIED}[name]
    path = write(tmp_path, body)
    (line,) = check_policy(path)
    assert line.startswith(f"{path}:{FIRST_LINE + offset}: ")
    assert message in line
    with pytest.raises(ValueError, match=re.escape(line)):
        simulate(TWO, path, horizon=20, runs=1)
    assert capfd.readouterr().out == ""  # a rule that prints is not even tried


def test_an_unknown_complaint_is_its_first_sentence() -> None:
    def choose() -> None: ...

    assert isinstance(choose, FunctionType)

    class NumbaLikeError(Exception):
        pass

    NumbaLikeError.__module__ = "numba.core.errors"
    error = NumbaLikeError("Failed in nopython mode\n\nThe moon is full. Wait until tomorrow.\nDuring: lowering\n")
    line = explain_refusal(error, [choose])
    assert line.endswith("numba cannot compile it: The moon is full (THRIFTY_TRACE=1 shows all)")
    assert re.match(r".*test_refusals\.py:\d+: ", line)
    assert explain_refusal(RuntimeError("no"), [choose]).endswith("the compiled rule raises RuntimeError: no")


def test_the_whole_message_is_shown_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, REFUSED["a deleted name"][0])
    monkeypatch.setenv("THRIFTY_TRACE", "1")
    with pytest.raises(ValueError, match="deletes x") as caught:
        compile_choose(path)
    assert "Illegal IR" in str(caught.value.__cause__)
    assert main(["check-policy", path]) == 2
    shown = capsys.readouterr().err
    assert "Illegal IR" in shown
    assert shown.splitlines()[-1].startswith(f"thrifty check-policy: mine: {path}:{FIRST_LINE + 3}: deletes x")


@pytest.mark.parametrize("mode", ["never", "wait", "background"])
def test_a_router_refuses_it_with_the_same_line(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THRIFTY_COMPILE", mode)
    body, offset, message = TRIED["a float"] if mode == "never" else REFUSED["a deleted name"]
    path = write(tmp_path, body)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        Router({"a": 1.0, "b": 0.5}, alpha=0.1, policy=path)
    assert str(caught.value).startswith(f"mine: {path}:{FIRST_LINE + offset}: ")
    assert "\n" not in str(caught.value)


def test_warm_refuses_it_with_the_same_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body, offset, message = REFUSED["a class"]
    path = write(tmp_path, body)
    assert main(["warm", path]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"thrifty warm: mine: {path}:{FIRST_LINE + offset}: {message}")
