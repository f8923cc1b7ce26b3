"""Bit sets: they are sets of numbers, wherever the numbers begin."""

import random

from thrifty.router.bit_set import BitSet


def test_it_is_a_set_of_numbers() -> None:
    for seed in range(20):
        rng, bits, plain = random.Random(seed), BitSet(), set[int]()
        start = rng.choice([0, 5, 1000, 2**62])
        for _ in range(300):
            number = start + rng.randrange(500)
            assert bits.add(number) == (number not in plain)
            plain.add(number)
            assert all((each in bits) == (each in plain) for each in range(max(start - 20, 0), start + 520, 13))
        assert BitSet.load(bits.dump()).dump() == bits.dump()
        assert len(bits.dump()[1]) <= 88  # 500 bits
