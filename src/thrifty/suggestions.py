"""The known name that an unknown one was probably meant to be."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str = "", shown: str = "{}", cutoff: float = 0.6) -> str:
    """A question that names the nearest known name, or `otherwise` if none is near.

    Parameters
    ----------
    name : what was written
    known : the names that would have been right
    otherwise : the answer if none of them is near
    shown : how the nearest name is written in the question
    cutoff : how alike two names must be, in [0, 1]

    >>> did_you_mean("windw", ["window", "discount"])
    'did you mean window?'
    >>> did_you_mean("xyz", ["window", "discount"], otherwise="there are window, discount")
    'there are window, discount'

    """
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"did you mean {shown.format(near[0])}?" if near else otherwise
