"""Forgetting: how statistics forget the past where the world changes. It is the same for every rule."""

from collections.abc import Callable

from thrifty.forgetting.contract import EVERYTHING, KEEP_ALL, KEEP_APART, NOTHING_ELSE, RESTART, Forgetting
from thrifty.forgetting.discount import discount
from thrifty.forgetting.restart import restart
from thrifty.forgetting.window import window
from thrifty.suggestions import did_you_mean

__all__ = [
    "EVERYTHING",
    "KEEP_ALL",
    "KEEP_APART",
    "METHODS",
    "NOTHING_ELSE",
    "RESTART",
    "Forgetting",
    "discount",
    "forgetting",
    "restart",
    "window",
]

METHODS: dict[str, Callable[..., Forgetting]] = {"window": window, "discount": discount, "restart": restart}
"""The forgetting methods, by the name one types."""


def forgetting(spec: "str | Forgetting") -> Forgetting:
    """The forgetting method that `spec` names: "window=500", "discount=0.999", "restart" or "restart=3".

    >>> forgetting("discount=0.99").label
    'discount=0.99'
    >>> forgetting("windw=5")
    Traceback (most recent call last):
    ValueError: unknown forgetting method 'windw': did you mean window?
    """
    if isinstance(spec, Forgetting):
        return spec
    name, equals, value = spec.partition("=")
    if ":" in spec:
        method, _, parameters = spec.partition(":")
        raise ValueError(f"parameters stand before the forgetting method, got '+{spec}': write ...:{parameters}+{method}")
    if name not in METHODS:
        hint = did_you_mean(name, METHODS, otherwise=f"there are {', '.join(METHODS)}")
        raise ValueError(f"unknown forgetting method {name!r}: {hint}")
    if not equals:
        if name != "restart":
            raise ValueError(f"{name} needs a number, got none: write {name}={'500' if name == 'window' else '0.999'}")
        return restart()
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {value!r}") from None
    return METHODS[name](number)
