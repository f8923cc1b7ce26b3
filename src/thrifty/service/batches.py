"""Batches of the hot path: items one after the other, each with an answer of its own."""

from collections.abc import Callable
from typing import Any

from thrifty.service.answers import Done, DoneBatch
from thrifty.service.errors import ServiceProblemError, internal_problem
from thrifty.store import StoreError


class SlowCallError(Exception):
    """A call that must not run on the event loop; nothing of it was done."""


def do_rest(
    do: Callable[..., Done], asked: list[Any], parts: list[Done | ServiceProblemError], path: str, *, slow: bool
) -> DoneBatch:
    """Do what is left of a batch, in order, after the `parts` that are done."""
    while len(parts) < len(asked):
        parts.append(_part(do, asked[len(parts)], path, slow=slow))
    return DoneBatch(parts)


def _part(do: Callable[..., Done], asked: Any, path: str, *, slow: bool) -> Done | ServiceProblemError:
    """One item of a batch; a store that is away, and a call that may take long, concern the whole batch."""
    try:
        return do(asked, slow=slow)
    except ServiceProblemError as problem:
        return problem
    except (StoreError, SlowCallError):
        raise
    except Exception as error:
        return internal_problem(error, path=path)
