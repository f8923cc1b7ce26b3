"""A segment: the statistics of all arms for one kind of request, and the rules that look at them."""

from thrifty.router.view import Key, Kit, View, no_sums

MAX_VIEWS = 32
"""Rules kept per segment for eligible sets other than all arms; the one made first goes first."""


class Segment:
    """Statistics of a segment and of everything below it, so that its children can borrow from each other."""

    def __init__(self, name: str, kit: Kit, key: Key, *, n_arms: int, parent: "Segment | None", number: int) -> None:
        self.name, self.kit, self.parent, self.number = name, kit, parent, number
        self.sums = no_sums(kit.policy.forgetting, n_arms)
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
        if n_arms > self.sums.truth.size:
            known, self.sums = self.sums, no_sums(self.kit.policy.forgetting, n_arms)
            for leaf, before in zip(self.sums.leaves(), known.leaves(), strict=True):
                leaf[: before.size] = before
        self.main = self._make(key)
        self.views.clear()

    def forget(self, arms: list[int]) -> None:
        """The statistics of these arms begin again at zero, apart from what is pending. The parent must have done so before.

        Where statistics forget, what is remembered of all arms begins again.
        """
        sums, fresh = self.sums, no_sums(self.kit.policy.forgetting, self.sums.truth.size)
        for arm in arms:
            pending = int(sums.truth["pending"][arm])
            sums.truth[arm : arm + 1] = 0
            sums.truth["sent"][arm] = sums.truth["pending"][arm] = pending
            sums.kin[arm : arm + 1] = 0
        if sums.recent is not sums.truth:
            fresh.recent["sent"], fresh.recent["pending"] = sums.truth["sent"], sums.truth["pending"]
            self.sums = fresh._replace(truth=sums.truth, kin=sums.kin)
        self.rearrange((self.main.arms, self.main.prices), n_arms=sums.truth.size)
