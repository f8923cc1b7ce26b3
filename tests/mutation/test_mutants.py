import ast

import pytest

from tests.mutation.mutants import mutate


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x < y", ["x <= y"]),
        ("x >= y", ["x > y"]),
        ("0 < x <= y", ["0 <= x <= y", "0 < x < y", "1 < x <= y"]),
        ("x == y", ["x != y"]),
        ("x is None", ["x is not None"]),
        ("x + y", ["x - y"]),
        ("x / y", ["x * y"]),
        ("x ** y", ["x * y"]),
        ("x and y", ["x or y"]),
        ("not x", ["not not x"]),
        ("-x", ["+x"]),
        ("14.0", ["28.0"]),
        ("0.0", ["1.0"]),
        ("3", ["4"]),
        ("True", ["False"]),
        ("max(x, y)", ["min(x, y)"]),
        ("math.ceil(x)", ["math.floor(x)"]),
        ("'a word'", []),
        ("f'{x + 1}'", []),
    ],
)
def test_an_expression_has_these_mutants(before: str, after: list[str]) -> None:
    found = mutate(f"def f(x, y):\n    return {before}", "m")
    assert sorted(mutant.after for mutant in found) == sorted(f"    return {each}".strip() for each in after)
    assert all(mutant.before == f"return {ast.unparse(ast.parse(before))}" for mutant in found)


def test_a_mutant_has_one_fault_and_the_rest_of_the_module() -> None:
    source = "a = 1\n\ndef f(x: int = 2) -> int:\n    '''3 words here.'''\n    x += a\n    return x"
    found = mutate(source, "m")
    assert [mutant.key for mutant in found] == [
        "m.module: a = 1 -> a = 2",
        "m.f: def f(x: int=2) -> int: -> def f(x: int=3) -> int:",
        "m.f: x += a -> x -= a",
    ]
    assert [mutant.line for mutant in found] == [1, 3, 5]
    assert ast.unparse(found[2].tree) == ast.unparse(ast.parse(source.replace("+=", "-=")))


def test_functions_within_functions_and_classes_are_found() -> None:
    source = "class C:\n    def f(self):\n        def g():\n            return 1\n        return g"
    assert [mutant.function for mutant in mutate(source, "m")] == ["C.f.g"]
