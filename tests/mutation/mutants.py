"""Mutants: copies of a module with one small fault each.

A mutant changes one comparison, operator, number, truth value or one of a few names (max for min, floor for ceil). What only people
read is left alone: docstrings, messages, annotations, decorators and the choice of names.
"""

import ast
import copy
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.FloorDiv: ast.Mod, ast.RShift: ast.LShift, ast.LShift: ast.RShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd, ast.MatMult: ast.Mult,
}  # fmt: skip
_NAMES = {
    "min": "max", "max": "min", "ceil": "floor", "floor": "ceil", "argmax": "argmin", "argmin": "argmax", "minimum": "maximum",
    "maximum": "minimum", "any": "all", "all": "any", "ones": "zeros", "log1p": "log", "isnan": "isfinite",
}  # fmt: skip
_UNREAD = (ast.JoinedStr, ast.Import, ast.ImportFrom)  # messages and imports


@dataclass(frozen=True)
class Mutant:
    """A module with one fault, and where it is."""

    module: str
    function: str
    line: int
    before: str
    after: str
    tree: ast.Module

    @property
    def key(self) -> str:
        """What names the mutant when lines move: `module.function: before -> after`."""
        return f"{self.module}.{self.function}: {self.before} -> {self.after}"


def mutate(source: str, module: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines.

    >>> [mutant.key for mutant in mutate("def half(x): return x / 2", "m")]
    ['m.half: return x / 2 -> return x * 2', 'm.half: return x / 2 -> return x / 3']
    """
    tree = ast.parse(source)
    found = []
    for number, (node, function, statement) in enumerate(_places(tree)):
        for field, value in _faults(node):
            changed = copy.deepcopy(tree)
            place, _, around = next(itertools.islice(_places(changed), number, None))
            setattr(place, field, value)
            ast.fix_missing_locations(changed)
            before, after = _differing(ast.unparse(statement), ast.unparse(around))
            found.append(Mutant(module, function, getattr(node, "lineno", statement.lineno), before, after, changed))
    return found


def _differing(before: str, after: str) -> tuple[str, str]:
    """The first line of a statement that the fault changed."""
    return next(pair for pair in zip(before.splitlines(), after.splitlines(), strict=True) if pair[0] != pair[1])


def _places(tree: ast.Module) -> Iterator[tuple[ast.AST, str, ast.stmt]]:
    """Nodes where there may be a fault, with the function and the statement they stand in."""
    yield from _inside(tree.body, "module")


def _inside(body: list[ast.stmt], function: str) -> Iterator[tuple[ast.AST, str, ast.stmt]]:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            name = statement.name if function == "module" else f"{function}.{statement.name}"
            if isinstance(statement, ast.FunctionDef):
                defaults = [default for default in (*statement.args.defaults, *statement.args.kw_defaults) if default]
                yield from ((node, name, statement) for default in defaults for node in _expressions(default))
            yield from _inside(statement.body, name)
        else:
            yield from ((node, function, statement) for node in _expressions(statement))


def _expressions(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, _UNREAD):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name != "annotation":
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _expressions(child)


def _faults(node: ast.AST) -> list[tuple[str, Any]]:
    """What can be wrong with the node: a field of it and the faulty value."""
    match node:
        case ast.Compare():
            kinds = [
                [_COMPARISONS[type(each)]() if i == n else each for i, each in enumerate(node.ops)] for n in range(len(node.ops))
            ]
            return [("ops", operators) for operators in kinds]
        case ast.BinOp() | ast.AugAssign():
            return [("op", _OPERATORS[type(node.op)]())]
        case ast.BoolOp():
            return [("op", ast.Or() if isinstance(node.op, ast.And) else ast.And())]
        case ast.UnaryOp(op=ast.USub()):
            return [("op", ast.UAdd())]
        case ast.UnaryOp(op=ast.Not()):
            return [("operand", ast.UnaryOp(ast.Not(), node.operand))]
        case ast.Constant(value=bool(value)):
            return [("value", not value)]
        case ast.Constant(value=int(value)):
            return [("value", value + 1)]
        case ast.Constant(value=float(value)):
            return [("value", 2.0 * value if value else 1.0)]
        case ast.Name(id=name) if name in _NAMES:
            return [("id", _NAMES[name])]
        case ast.Attribute(attr=name) if name in _NAMES:
            return [("attr", _NAMES[name])]
    return []
