"""Fees: costs that depend on the outcome."""

import math
from dataclasses import dataclass
from typing import Any

from thrifty.environments.distribution import is_number
from thrifty.environments.laws import Deterministic, Law, Scaled


@dataclass(frozen=True)
class Fees(Law):
    """A cost that is one fee on success and another on failure, each a number or a law.

    A reward r between 0 and 1 is taken for a success with probability r, so that the mean cost of an arm with mean reward mu is
    mu times the mean fee on success plus 1 - mu times that on failure, whatever the law of its rewards.

    >>> fees = Fees(success=0.5, failure=0.25)
    >>> fees.mean_at(0.5)
    0.375
    >>> Fees(success=-1, failure=0)
    Traceback (most recent call last):
    ValueError: the fee on success must be a law or a number of at least 0, got -1

    """

    success: Law
    failure: Law
    name = "fees"

    def __init__(self, success: Law | float, failure: Law | float) -> None:
        object.__setattr__(self, "success", _as_law("success", success))
        object.__setattr__(self, "failure", _as_law("failure", failure))

    @property
    def mean(self) -> float:
        raise ValueError("the mean of fees depends on how often the arm succeeds: use mean_at(mean reward)")

    @property
    def on_success(self) -> Law:
        return self.success

    @property
    def on_failure(self) -> Law:
        return self.failure

    def to_dict(self) -> dict[str, Any]:
        return {"law": self.name, "success": self.success.to_dict(), "failure": self.failure.to_dict()}


def _as_law(outcome: str, fee: object) -> Law:
    if isinstance(fee, Law):
        if fee.depends_on_outcome:
            raise ValueError(f"the fee on {outcome} must not depend on the outcome again, got {fee!r:.80}")
        return fee
    if not is_number(fee) or not 0.0 <= fee < math.inf:  # type: ignore[operator]
        raise ValueError(f"the fee on {outcome} must be a law or a number of at least 0, got {fee!r:.80}")
    return Scaled(Deterministic(1.0), float(fee)) if fee else Deterministic(0.0)  # type: ignore[arg-type]
