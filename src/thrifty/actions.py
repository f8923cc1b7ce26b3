"""What can be done to an arm of a router while it runs."""

from typing import Any, Literal, get_args

Action = Literal["add", "retire", "pause", "resume", "price", "reset", "pin", "unpin"]
"""Add and price take a price; reset and unpin may leave the arm out."""

ACTIONS: tuple[Action, ...] = get_args(Action)


def checked_action(action: Any) -> Action:
    """`action`, or a ValueError that names all.

    >>> checked_action("paint")
    Traceback (most recent call last):
    ValueError: action must be one of add, retire, pause, resume, price, reset, pin, unpin, got 'paint'
    """
    if action not in ACTIONS:
        raise ValueError(f"action must be one of {', '.join(ACTIONS)}, got {action!r:.80}")
    return action  # type: ignore[no-any-return]
