"""What reward laws, cost laws and delays have in common: a name, checked parameters, and two numbers for a kernel."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np


def is_number(value: object) -> bool:
    """Whether a parameter is a number; True and False are none.

    >>> is_number(0.5), is_number(True), is_number("0.5")
    (True, False, False)
    """
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


@dataclass(frozen=True)
class Distribution:
    """A distribution whose parameters are its dataclass fields. They are checked when it is made.

    A kernel selects the distribution by `kind` and reads the two numbers of `shape`.
    """

    kind: ClassVar[int]
    name: ClassVar[str]

    def __post_init__(self) -> None:
        complaint = self.complaint()
        if complaint is not None:
            raise ValueError(complaint)

    def complaint(self) -> str | None:
        """The error message if a parameter is wrong, or None."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[float, float]:
        """The two numbers that the kernel reads: the parameters, filled up with 0."""
        first, second, *_ = (*self.__dict__.values(), 0.0, 0.0)
        return float(first), float(second)

    def to_dict(self) -> dict[str, Any]:
        """The name and the parameters, ready for JSON."""
        return {"law": self.name, **self.__dict__}
