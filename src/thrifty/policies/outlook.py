"""How far a rule looks ahead: to a known horizon and no further, else well beyond the decisions so far."""

from typing import Any

from thrifty.policies.contract import Number
from thrifty.problem import Terms

OUTSET = Number(None, "how many decisions more to plan for; 0 where the horizon is known, else 3,000", low=0.0)


def settle_outset(terms: Terms, numbers: dict[str, Any]) -> dict[str, Any]:
    """Fill in `outset`, which a rule adds to `terms.horizon`."""
    outset = numbers["outset"]
    if outset is None:
        outset = 3000.0 if terms.horizon is None else 0.0
    return {**numbers, "outset": outset}
