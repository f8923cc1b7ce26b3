"""What a call is: a request, how to read its answer, and how it may be repeated."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from thrifty.client.choice import KnownArms
from thrifty.client.errors import ServiceError

T = TypeVar("T")


@dataclass(frozen=True)
class Call(Generic[T]):
    """A call.

    Parameters
    ----------
    read : makes the result of the decoded answer
    body : what is sent as JSON; None for no body
    idempotent : may be sent again when it is not known whether it arrived
    budget : which of the client's time limits holds
    text : the answer is plain text, not JSON
    probe : asks about the service itself: sent once, and whatever the circuit breaker says
    deletes : a retry that finds nothing to delete has succeeded
    local : the result without the service, given the error of the call; None if there is none
    finish : turns the result into the one to return, and lets the known arms learn from it

    """

    method: str
    path: str
    read: Callable[[Any], T]
    body: Any = None
    idempotent: bool = True
    budget: Literal["decide", "call", "admin"] = "call"
    text: bool = False
    probe: bool = False
    deletes: bool = False
    local: Callable[[KnownArms, ServiceError], T | None] | None = None
    finish: Callable[[KnownArms, T], T] | None = None
