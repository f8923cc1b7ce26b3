"""All instances of the leaderboard."""

from thrifty.leaderboard.entry import Entry
from thrifty.leaderboard.first_edition import first_edition
from thrifty.leaderboard.second_edition import second_edition


def entries() -> list[Entry]:
    """Every instance, in the order of the page.

    >>> len(entries())
    142
    """
    return [*first_edition(), *second_edition()]
