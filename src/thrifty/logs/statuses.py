"""Statuses: whether the words of --success are in the log, and which ones were probably meant."""

from collections.abc import Mapping

from thrifty.suggestions import did_you_mean

MOST_STATUSES = 1000


def check_statuses(success: tuple[str, ...], found: Mapping[str, int], column: str) -> list[str]:
    """Notes on words of `success` that no row has; a ValueError if no row has any of them.

    >>> check_statuses(("deliverd",), {"delivered": 880, "failed": 9}, "status")
    Traceback (most recent call last):
    ValueError: --success 'deliverd' matches no row: did you mean 'delivered'? column 'status' holds 'delivered' (880), 'failed' (9)
    """
    absent = [word for word in success if word not in found]
    if not success or not found:
        return []
    if len(absent) == len(success):
        often = sorted(found.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{status!r:.40} ({rows:,})" for status, rows in often[:8]) + (", ..." if often[8:] else "")
        hint = _nearest(success[0], found)
        raise ValueError(
            f"--success {','.join(success)!r} matches no row: {hint + ' ' if hint else ''}column {column!r} holds {shown}"
        )
    notes = [f"no row has the status {word!r} of --success: {_nearest(word, found) or 'check it'}" for word in absent]
    for word in success:
        alike = [status for status in found if status not in success and status.strip().casefold() == word.strip().casefold()]
        notes += [
            f"{found[status]:,} rows have the status {status!r}, which differs from {word!r} only by case or spaces: "
            "they count as failures unless --success names it"
            for status in alike
        ]
    return notes


def _nearest(word: str, found: Mapping[str, int]) -> str:
    """A question that names the nearest status, whatever its case."""
    folded = {status.strip().casefold(): status for status in found}
    if word.strip().casefold() in folded:
        return f"did you mean {folded[word.strip().casefold()]!r}?"
    return did_you_mean(word, found, shown="{!r}", cutoff=0.5)
