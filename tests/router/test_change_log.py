"""What a refused undo names is in the way, and once it is undone the undo goes through."""

import random
import re
from pathlib import Path

import pytest

from thrifty import Router
from thrifty.router import ConflictError

IN_THE_WAY = re.compile(r"was changed again, by change (\d+): undo that first")


@pytest.mark.parametrize("seed", range(8))
def test_following_the_refusals_leads_back_to_any_value_and_forward_again(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with Router({"a": 1.0, "b": 0.5}, 0.1, policy="cheapest", store=f"sqlite:///{tmp_path}/a.db", name="sms") as router:
        led: dict[int, tuple[float | None, float | None]] = {}  # by position, the price before and after

        def price() -> float | None:
            return router.arms.prices[1]

        def done(before: float | None) -> None:
            led[int(router.changes(1)[0]["position"])] = before, price()

        def undone(position: int) -> None:
            before = price()
            router.undo(position)
            done(before)

        for step in range(25):
            if not led or chance.random() < 0.4:
                before = price()
                router.change("price", "b", price=1.0 + step)
                done(before)
            else:
                undone(chance.choice([each["position"] for each in router.changes() if each["undo"]]))
        for position, (before, _) in tuple(led.items()):
            if next(each for each in router.changes(500) if each["position"] == position)["undone_by"]:
                continue
            wanted = position
            for _ in range(200):
                refusal = next(each for each in router.changes(500) if each["position"] == wanted)["why_not"]
                if refusal is not None:
                    with pytest.raises(ConflictError, match=re.escape(refusal)):
                        router.undo(wanted)
                    wanted = named(refusal)
                    continue
                undone(wanted)
                if wanted == position:
                    break
                wanted = position
            else:
                pytest.fail(f"change {position} cannot be undone, whatever is undone first")
            assert price() == before


def named(refusal: str) -> int:
    """The change that a refusal says must be undone first."""
    found = IN_THE_WAY.search(refusal)
    assert found, refusal
    return int(found[1])
