"""Games: what is dropped when one of them fails, by games that play nothing."""

import os
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from thrifty.advice import games
from thrifty.advice.criteria import Criteria
from thrifty.advice.games import Effort, worth_of_the_start
from thrifty.advice.selection import Candidates, SegmentChoice
from thrifty.policies import policy


def test_games_of_the_worth_of_the_start_are_dropped_when_one_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, count, both = [0], threading.Lock(), os.cpu_count() or 1

    def play(*_values: Any, **_others: Any) -> Any:
        with count:
            begun[0] += 1
            first = begun[0] == 1
        if first:
            raise KeyboardInterrupt
        time.sleep(0.05)
        return {"cs-ts": [SimpleNamespace(worth=0.0)]}

    fit: Any = SimpleNamespace(name="s", arms=("a", "b"), rows=1000, draw=lambda _rng: None)
    monkeypatch.setattr(games, "play", play)
    candidates = Candidates([policy("cs-ts")], [0.1], Criteria(), warm=True)
    scores: Any = {("s", 0.1, "cs-ts"): [SimpleNamespace(worth=0.0)] * 200}
    with pytest.raises(KeyboardInterrupt):
        worth_of_the_start([fit], [SegmentChoice(fit, "cs-ts", 0.1)], candidates, scores, Effort(worlds=200), seed=0)
    time.sleep(0.2)
    assert begun[0] <= both + 50  # threads may have begun some meanwhile
