"""Settings that describe themselves: what is allowed, and what a wrong value is answered with."""

import math
from dataclasses import dataclass
from typing import Any

import pytest

from thrifty.described import described, setting


@dataclass(frozen=True)
class Example:
    """One setting of each kind."""

    share: float = setting(0.5, "a share", above_low=True, high=1.0)
    count: int = setting(3, "a count", low=1, high=2**63 - 1)
    word: str = setting("live", "a word", words=("live", "shadow"))
    text: str = setting("", "any text", shown="none")
    switch: bool = setting(True, "a switch")
    names: tuple[str, ...] = setting((), "some names")


FIELDS = {each.name: each for each in described(Example)}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("share", 1, 1.0),
        ("share", 1e-300, 1e-300),
        ("count", 2**63 - 1, 2**63 - 1),
        ("count", 4.0, 4),
        ("word", "shadow", "shadow"),
        ("text", "x y", "x y"),
        ("switch", False, False),
        ("names", ["a", "b"], ("a", "b")),
    ],
)
def test_a_value_that_is_allowed_has_the_type_of_its_setting(name: str, value: Any, expected: Any) -> None:
    found = FIELDS[name].checked(value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("share", 0.0, r"share must be a number above 0 and at most 1, got 0\.0"),
        ("share", math.nan, "share must be a number above 0 and at most 1, got nan"),
        ("share", True, "share must be a number above 0 and at most 1, got True"),
        ("share", "0.5", "share must be a number above 0 and at most 1, got '0.5'"),
        ("count", 0, "count must be a whole number from 1 to 9223372036854775807, got 0"),
        ("count", 2**63, "count must be a whole number from 1 to 9223372036854775807, got 9223372036854775808"),
        ("count", 1.5, "count must be a whole number .* got 1.5"),
        ("count", math.inf, "count must be a whole number .* got inf"),
        ("count", None, "count must be a whole number .* got None"),
        ("word", "dead", "word must be one of live, shadow, got 'dead'"),
        ("text", 5, "text must be a text, got 5"),
        ("switch", 1, "switch must be true or false, got 1"),
        ("names", [1], "names must be names separated by commas, or a list of them, got "),
        ("names", None, "names must be names separated by commas, or a list of them, got None"),
    ],
)
def test_a_value_that_is_not_allowed_is_named_with_what_is(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FIELDS[name].checked(value)


def test_texts_of_the_environment_are_parsed_before_they_are_checked() -> None:
    assert FIELDS["count"].parsed("7") == 7
    assert FIELDS["names"].parsed("a, b,") == ("a", "b")
    assert FIELDS["count"].parsed("many") == "many"
    assert (FIELDS["count"].flag, FIELDS["count"].variable) == ("--count", "THRIFTY_COUNT")
    assert (FIELDS["text"].default_text, FIELDS["share"].default_text) == ("none", "0.5")
