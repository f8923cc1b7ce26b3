"""PromQL, read by a real parser: a query must be well formed, and every metric and label in it must exist."""

from collections.abc import Mapping
from typing import Any

import promql_parser as promql

TARGET = frozenset(("job", "instance"))
"""Labels that Prometheus adds to every series."""


def result_labels(text: str, known: Mapping[str, set[str]]) -> frozenset[str]:
    """The labels of the result of a query; a ValueError where it is not PromQL, or names a metric or a label that is not known.

    `known` has the labels of every series by its name.
    """
    return _labels(promql.parse(text), known)


def _labels(expr: Any, known: Mapping[str, set[str]]) -> frozenset[str]:
    if isinstance(expr, promql.VectorSelector):
        return _selected(expr, known)
    if isinstance(expr, promql.MatrixSelector):
        return _labels(expr.vector_selector, known)
    if isinstance(expr, promql.ParenExpr | promql.UnaryExpr):
        return _labels(expr.expr, known)
    if isinstance(expr, promql.AggregateExpr):
        inner = _labels(expr.expr, known)
        kept = frozenset(() if expr.modifier is None else expr.modifier.labels)
        if not kept <= inner:
            raise ValueError(f"there is no label {', '.join(sorted(kept - inner))} in {expr.expr.prettify()}")
        return kept
    if isinstance(expr, promql.Call):
        found = [_labels(each, known) for each in expr.args]
        return frozenset().union(*found) - ({"le"} if expr.func.name == "histogram_quantile" else set())
    if isinstance(expr, promql.BinaryExpr):
        left, right = (_labels(side, known) for side in (expr.lhs, expr.rhs))
        if left and right and left != right:
            raise ValueError(f"{sorted(left)} is compared with {sorted(right)} in {expr.prettify()}")
        return left or right
    if isinstance(expr, promql.NumberLiteral | promql.StringLiteral):
        return frozenset()
    raise ValueError(f"{type(expr).__name__} is not expected here: {expr.prettify()}")


def _selected(selector: Any, known: Mapping[str, set[str]]) -> frozenset[str]:
    if selector.name != "up" and selector.name not in known:
        raise ValueError(f"there is no metric {selector.name}")
    labels = TARGET | known.get(selector.name, set())
    asked = {each.name for each in selector.matchers.matchers}
    if not asked <= labels:
        raise ValueError(f"{selector.name} has no label {', '.join(sorted(asked - labels))}")
    return frozenset(labels)
