"""A segment: the statistics of all arms for one kind of request, and the rules that look at them."""

from thrifty.router.view import Key, Kit, View, no_sums

MAX_VIEWS = 32
"""Rules kept per segment for eligible sets other than all arms; the one made first goes first."""


class Segment:
    """Statistics of a segment and of everything below it, so that its children can borrow from each other."""

    def __init__(self, name: str, kit: Kit, key: Key, *, n_arms: int, parent: "Segment | None", number: int) -> None:
        self.name, self.kit, self.parent, self.number = name, kit, parent, number
        self.sums = no_sums(n_arms)
        self.views: dict[Key, View] = {}
        self.main = self._make(key)

    def _make(self, key: Key) -> View:
        above = 0 if self.parent is None else self.parent.main.book
        return View(self.kit, key, self.sums, parent=above, segment=self.name, number=self.number)

    def view(self, key: Key) -> View:
        """The rule for an eligible set."""
        if key == (self.main.arms, self.main.prices):
            return self.main
        found = self.views.get(key)
        if found is None:
            if len(self.views) >= MAX_VIEWS:
                del self.views[next(iter(self.views))]
            found = self.views[key] = self._make(key)
        return found

    def rearrange(self, key: Key, *, n_arms: int) -> None:
        """Other arms or prices: the statistics stay, the rules begin again from them. The parent must have done so before."""
        before = self.sums
        if n_arms > before.truth.size:
            self.sums = no_sums(n_arms)
            for grown, known in zip(self.sums, before, strict=True):
                grown[: known.size] = known
        self.main = self._make(key)
        self.views.clear()

    def forget(self, arms: list[int]) -> None:
        """The statistics of these arms begin again at zero, apart from what is pending. The parent must have done so before."""
        truth, kin = self.sums
        for arm in arms:
            known = truth[arm : arm + 1]
            pending = known["pending"].copy()
            known[:] = 0
            known["sent"] = known["pending"] = pending
            kin[arm : arm + 1] = 0
        self.rearrange((self.main.arms, self.main.prices), n_arms=truth.size)
