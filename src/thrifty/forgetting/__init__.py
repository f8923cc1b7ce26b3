"""Forgetting: how statistics let go of the past where the world changes. An option of the statistics, the same for every rule."""

import difflib
from collections.abc import Callable

from thrifty.forgetting.contract import EVERYTHING, KEEP_ALL, NOTHING_ELSE, RESTART, Forgetting
from thrifty.forgetting.discount import discount
from thrifty.forgetting.restart import restart
from thrifty.forgetting.window import window

__all__ = ["EVERYTHING", "KEEP_ALL", "NOTHING_ELSE", "RESTART", "WAYS", "Forgetting", "discount", "forgetting", "restart", "window"]

WAYS: dict[str, Callable[..., Forgetting]] = {"window": window, "discount": discount, "restart": restart}
"""The ways to forget, by the name one types."""


def forgetting(spec: "str | Forgetting") -> Forgetting:
    """The way to forget that `spec` names: "window=500", "discount=0.999", "restart" or "restart=3".

    >>> forgetting("discount=0.99").label
    'discount=0.99'
    >>> forgetting("windw=5")
    Traceback (most recent call last):
    ValueError: unknown way to forget 'windw': did you mean window?
    """
    if isinstance(spec, Forgetting):
        return spec
    name, equals, value = spec.partition("=")
    if name not in WAYS:
        near = difflib.get_close_matches(name, WAYS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(WAYS)}"
        raise ValueError(f"unknown way to forget {name!r}: {hint}")
    if not equals:
        if name != "restart":
            raise ValueError(f"{name} needs a number, got none: write {name}={'500' if name == 'window' else '0.999'}")
        return restart()
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {value!r}") from None
    return WAYS[name](number)
