"""Policies that requests name: a file of code is loaded only from the folder that the configuration names."""

from pathlib import Path

SUFFIX = ".py"


def checked_policy(spec: str, folder: str) -> str:
    """`spec` with the files it names as absolute paths inside of `folder`, or a ValueError. Relative ones are meant to be there.

    >>> checked_policy("cs-etc:tau=100+restart", "")
    'cs-etc:tau=100+restart'
    >>> checked_policy("cs-ucb:interval=/tmp/mine.py", "")
    Traceback (most recent call last):
    ValueError: a request may not name a policy file such as 'cs-ucb:interval=/tmp/mine.py': the setting policy_folder is not set
    """
    if SUFFIX not in spec:
        return spec
    if not folder:
        raise ValueError(f"a request may not name a policy file such as {spec!r:.80}: the setting policy_folder is not set")
    head, colon, riders = spec.strip().partition(":")
    name = _inside(head, folder)
    parts = [rider.partition("=") for rider in riders.split(",")] if colon else []
    return name + colon + ",".join(f"{key}{equals}{_inside(value, folder)}" for key, equals, value in parts)


def _inside(text: str, folder: str) -> str:
    """The path that `text` is, if it names a file."""
    text = text.strip()
    if SUFFIX not in text:
        return text
    path, plus, forgetting = text.rpartition("+") if not text.endswith(SUFFIX) else (text, "", "")
    home = Path(folder).resolve()
    file = (home / path).resolve()
    if not path.endswith(SUFFIX) or SUFFIX in forgetting or home not in file.parents or not file.is_file():
        raise ValueError(f"a request may only name policy files in the folder of the setting policy_folder, got {text!r:.80}")
    return f"{file}{plus}{forgetting}"
