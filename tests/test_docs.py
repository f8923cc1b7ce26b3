"""The commands in docs/errata.md exist: each names an item of `thrifty reproduce`, or a test that is there."""

import re
from pathlib import Path

import pytest

from thrifty.experiments import EXPERIMENTS

ROOT = Path(__file__).parent.parent
COMMANDS = sorted(set(re.findall(r"`((?:thrifty|pytest) [^`]+)`", (ROOT / "docs" / "errata.md").read_text())))


@pytest.mark.parametrize("command", COMMANDS)
def test_an_erratum_is_shown_by_something_that_exists(command: str) -> None:
    program, *words = command.split(maxsplit=3)
    if program == "thrifty":
        assert words[0] == "reproduce"
        assert words[1] == "--quick" or words[1] in EXPERIMENTS
        return
    path, option, expression = words
    assert option == "-k"
    names = re.findall(r"def (test_\w+)", (ROOT / path).read_text())
    for word in expression.strip('"').split(" or "):
        assert any(word in name for name in names), word


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 10
