"""Bit sets: whole numbers that lie close together, one bit each."""

from base64 import b64decode, b64encode
from typing import Any


class BitSet:
    """A set of whole numbers from 0 on. It takes an eighth of a byte for each number from its smallest to its largest.

    >>> some = BitSet()
    >>> [some.add(number) for number in (1003, 1000, 1003)], 1000 in some, 1001 in some
    ([True, True, False], True, False)
    >>> BitSet.load(some.dump()).dump() == some.dump()
    True
    """

    __slots__ = ("_bits", "_first")

    def __init__(self, first: int = 0, bits: bytes = b"") -> None:
        self._first, self._bits = first, bytearray(bits)  # the first bit is that of `first`, a multiple of eight

    def add(self, number: int) -> bool:
        """Put a number in; whether it is new."""
        if not self._bits:
            self._first = number & ~7
        elif number < self._first:
            missing = (self._first - number + 7) // 8
            self._bits[:0] = bytes(missing)
            self._first -= 8 * missing
        place, bit = divmod(number - self._first, 8)
        if place >= len(self._bits):
            self._bits.extend(bytes(place + 1 - len(self._bits)))
        new = not self._bits[place] >> bit & 1
        self._bits[place] |= 1 << bit
        return new

    def __contains__(self, number: int) -> bool:
        place, bit = divmod(number - self._first, 8)
        return 0 <= place < len(self._bits) and bool(self._bits[place] >> bit & 1)

    def dump(self) -> list[Any]:
        """Plain values; `BitSet.load` takes them back."""
        return [self._first, b64encode(self._bits).decode()]

    @classmethod
    def load(cls, dumped: list[Any]) -> "BitSet":
        """The set that was dumped."""
        return cls(dumped[0], b64decode(dumped[1]))
