"""The arms of a router: what they cost, and which may be chosen now."""

from collections.abc import Iterable, Mapping

from thrifty.actions import checked_action
from thrifty.router.settings import checked_price, checked_text

ArmsAndPrices = tuple[tuple[int, ...], tuple[float | None, ...]]
"""What a rule chooses from: numbers of arms, and their prices; None where unknown."""


class Arms:
    """Arms in the order in which they came; a retired one keeps its number, so that the log stays readable."""

    def __init__(self, arms: Mapping[str, float | None]) -> None:
        self.names = list(arms)
        self.prices = list(arms.values())
        self.status = ["active"] * len(self.names)
        self.newcomers: set[int] = set()
        self.pinned: int | None = None
        self._index: dict[str | None, int] = {name: arm for arm, name in enumerate(self.names)}

    def index(self, name: str | None) -> int:
        """The number of an arm, or a ValueError that names those there are."""
        arm = self._index.get(name)
        if arm is None:
            raise ValueError(f"arm {name!r:.80} is unknown: name one of {', '.join(self.present())[:300]}")
        return arm

    def present(self) -> list[str]:
        """Names of the arms that are not retired."""
        return [name for name, status in zip(self.names, self.status, strict=True) if status != "retired"]

    def active(self) -> list[str]:
        """Names of the arms that may be chosen."""
        return [name for name, status in zip(self.names, self.status, strict=True) if status == "active"]

    def find(self, name: str | None) -> int | None:
        """The number of an arm, or None."""
        return self._index.get(name)

    def numbers(self, name: str | None) -> list[int]:
        """The number of one arm, or of all there ever were where none is named."""
        return list(range(len(self.names))) if name is None else [self.index(name)]

    def active_at_prices(self) -> ArmsAndPrices:
        """All arms that may be chosen, at their prices."""
        arms = tuple(arm for arm, status in enumerate(self.status) if status == "active")
        return arms, tuple(self.prices[arm] for arm in arms)

    def eligible(self, wanted: Iterable[str] | Mapping[str, float | None]) -> ArmsAndPrices:
        """The wanted ones among the active arms, at prices given for this once where there are any."""
        if isinstance(wanted, str):
            raise ValueError(f"eligible must be a list of arms, or prices by arm, got {wanted!r:.80}")
        given = dict(wanted) if isinstance(wanted, Mapping) else dict.fromkeys(wanted)
        prices: dict[int, float | None] = {}
        for name, price in given.items():
            arm = self.index(name)
            if self.status[arm] == "active":
                prices[arm] = self.prices[arm] if price is None else checked_price(name, price)
        if not prices:
            raise ValueError(f"eligible must name at least one active arm: there are {', '.join(self.active())[:300]}")
        numbers = tuple(sorted(prices))
        return numbers, tuple(prices[arm] for arm in numbers)

    def copy(self) -> "Arms":
        """The same arms, to be changed apart."""
        other = Arms(dict(zip(self.names, self.prices, strict=True)))
        other.status, other.newcomers, other.pinned = list(self.status), set(self.newcomers), self.pinned
        return other

    def check_change(self, action: str, name: str | None, price: float | None) -> None:
        """Raise a ValueError that says why a change cannot be made."""
        checked_action(action)
        if name is None:
            if action not in ("reset", "unpin"):
                raise ValueError(f"{action} needs an arm")
            return
        if action == "add":
            checked_price(checked_text("an arm's name", name), price)
            if self._index.get(name) is not None and self.status[self._index[name]] != "retired":
                raise ValueError(f"arm {name!r:.80} is there already: use price, pause, resume or retire")
            return
        arm = self.index(name)
        if action == "price":
            checked_price(name, price)
        if action in ("retire", "pause") and self.active() == [name]:
            raise ValueError(f"arm {name!r:.80} is the last active one: add or resume another first")
        if action in ("pin", "pause", "price") and self.status[arm] == "retired":
            raise ValueError(f"arm {name!r:.80} is retired: add it again first")

    def allows(self, action: str, name: str | None, price: float | None) -> bool:
        """Whether a change can be made."""
        try:
            self.check_change(action, name, price)
        except ValueError:
            return False
        return True

    def change(self, action: str, name: str | None, price: float | None) -> None:
        """Make a change that was checked."""
        if action == "unpin" or name is None:
            self.pinned = None
            return
        if action == "add" and name not in self._index:
            self._index[name] = len(self.names)
            self.names.append(name)
            self.prices.append(None)
            self.status.append("active")
        arm = self._index[name]
        if action in ("add", "price"):
            self.prices[arm] = price
        if action == "add":
            self.newcomers.add(arm)
        if action in ("add", "resume"):
            self.status[arm] = "active"
        if action in ("retire", "pause"):
            self.status[arm] = {"retire": "retired", "pause": "paused"}[action]
            self.pinned = None if self.pinned == arm else self.pinned
        if action == "pin":
            self.pinned = arm
        if action == "graduate":
            self.newcomers.discard(arm)

    def differences(self, wanted: Mapping[str, float | None]) -> list[tuple[str, str, float | None]]:
        """The changes that make these the wanted arms at the wanted prices, additions first."""
        found: list[tuple[str, str, float | None]] = []
        for name, price in wanted.items():
            arm = self._index.get(name)
            if arm is None or self.status[arm] == "retired":
                found.append(("add", name, price))
            elif self.prices[arm] != price:
                found.append(("price", name, price))
        gone = [name for arm, name in enumerate(self.names) if name not in wanted and self.status[arm] != "retired"]
        return found + [("retire", name, None) for name in gone]
