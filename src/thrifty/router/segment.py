"""A segment: the statistics of all arms for one kind of request, and the rules that look at them."""

import numpy as np

from thrifty.router.view import Key, Kit, View
from thrifty.statistics import ArmStatistics

MAX_VIEWS = 32
"""Rules kept per segment for eligible sets other than all arms; the one made first goes first."""


class Segment:
    """Statistics of a segment and of everything below it, so that a young child can lean on its parent."""

    def __init__(self, name: str, kit: Kit, key: Key, *, n_arms: int, parent: "Segment | None", number: int) -> None:
        self.name, self.kit, self.parent, self.number = name, kit, parent, number
        self.truth = np.zeros(n_arms, ArmStatistics)
        self._outcomes = np.zeros(1, np.int64)
        self.outcomes = memoryview(self._outcomes.data)  # one number: how many the rule was told of
        self.views: dict[Key, View] = {}
        self.main = self._make_main(key)

    def view(self, key: Key) -> View:
        """The rule for an eligible set, up to date."""
        if key == (self.main.arms, self.main.prices):
            return self.main
        found = self.views.get(key)
        if found is None:
            if len(self.views) >= MAX_VIEWS:
                del self.views[next(iter(self.views))]
            found = self.views[key] = View(self.kit, key, self.truth, self._outcomes, segment=self.name)
        else:
            found.catch_up()
        return found

    def rearrange(self, key: Key, *, n_arms: int) -> None:
        """Other arms or prices: the statistics stay, the rules begin again from them. The parent must have done so before."""
        if n_arms > self.truth.size:
            grown = np.zeros(n_arms, ArmStatistics)
            grown[: self.truth.size] = self.truth
            self.truth = grown
        self.main = self._make_main(key)
        self.views.clear()

    def _make_main(self, key: Key) -> View:
        above = 0 if self.parent is None else self.parent.main.book
        return View(self.kit, key, self.truth, self._outcomes, parent=above, segment=self.name, number=self.number)

    def forget(self, arms: list[int]) -> None:
        """The statistics of these arms begin again at zero, apart from what is pending. The parent must have done so before."""
        for arm in arms:
            known = self.truth[arm : arm + 1]
            self.outcomes[0] -= int(known["seen"][0])
            pending = known["pending"].copy()
            known[:] = 0
            known["sent"] = known["pending"] = pending
        self.rearrange((self.main.arms, self.main.prices), n_arms=self.truth.size)
