"""Monitoring a router: which arm has collapsed, where the floor is broken, whether outcomes still come.

A decision is looked at once, when it is so old that its outcome has nearly always come: `age_s`, which is learnt. So a test sees
decisions in their order, whether failures are reported at once or only by the deadline, and however traffic rises and falls.
Nothing here changes the state or takes the router's lock, and nothing runs when a decision is made.
"""

import json
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.router.lags import Lags
from thrifty.router.records import ARRIVED, CODES, GROUPS
from thrifty.router.sequential import RECENT_OUTCOMES, DropTest, Mean, ratios_of
from thrifty.router.settings import path_of
from thrifty.router.state import State

LOOK_S = 5.0
"""Seconds between two looks."""

FALSE_ALARM_DAYS = 100.0
"""Days until the first false alarm of a router whose arms do not change, on average, at least: all its tests together."""

MOST_SEGMENTS = 300
"""Segments that are watched one by one, the first that have LEAST_SEEN outcomes; others count in the next one above."""

LEAST_SEEN = 200

COLLAPSED, STOPPED, BROKEN = "arm collapsed", "outcomes stopped", "floor broken"
RULES = (COLLAPSED, STOPPED, BROKEN)

_LOOKS = FALSE_ALARM_DAYS * 86_400 / LOOK_S * len(RULES)  # between false alarms of one rule
_RECOVERY = math.log(86_400 / LOOK_S)  # one false end a day, at most
_FACTORS = {COLLAPSED: (0.9, 0.6, 0.2), STOPPED: (0.05,), BROKEN: (0.97, 0.85, 0.5)}
_HOLD = {COLLAPSED: 0, STOPPED: 0, BROKEN: 12}  # looks: a router that moves on by itself within a minute pages nobody
COLLAPSE = 0.8
"""An arm has collapsed if its mean is less than this share of what it was."""

SLACK = 0.95
"""The floor is broken if the quality is less than this share of it: exploring costs some quality, and is no reason to page."""

STOP = 0.5
_EVIDENCE_OF_STOP = 4.0  # from this log R on arms are not blamed for outcomes that may have stopped
_NOT_ROUTED = [CODES.index(code) for code in ("newcomer", *GROUPS)]

Key = tuple[str, str, str]
"""Rule, segment, arm."""


class Batch(NamedTuple):
    """Rewards of one look: how many, their sum, the mean m0 to test against, the usual one, and the one to show beside them."""

    n: float
    total: float
    m0: float
    usual: float
    compared: float


class Verdict(NamedTuple):
    """What is bad now, with the numbers for a sentence: the mean of late, and what it is compared with."""

    rule: str
    segment: str
    arm: str
    recent: float
    compared: float


class Monitor:
    """The tests of one router, and what they compare with."""

    def __init__(self, now: float) -> None:
        self.lags = Lags()
        self.cursor = now  # decisions made up to this time were looked at
        self.tests: dict[Key, DropTest] = {}
        self.means: dict[tuple[str, str], Mean] = {}  # of an arm, in decisions that no watched segment further down counts
        self.share = Mean()  # of decisions that got an outcome
        self.recent: dict[Key, tuple[Mean, Mean]] = {}  # the rewards of late, and what they are compared with
        self.watched: dict[str, None] = {"": None}

    # -- looking -----------------------------------------------------------------------------------------------------

    def look(self, state: State, now: float) -> None:
        """Look at the decisions that have come of age since the last look."""
        self.lags.learn(state.records, now)
        upto = now - self.lags.age_s(state.settings.deadline_s)
        if upto > self.cursor:
            rows = state.records.made_between(self.cursor, upto)
            self.cursor = upto
            if rows.size:
                self._take(state, rows)
        self._drop_idle_arms(state)

    def _take(self, state: State, rows: NDArray[Any]) -> None:
        arrived = rows["settled"] == ARRIVED
        self._take_arrivals(float(rows.size), float(arrived.sum()))
        if self.undecided():
            return
        known = arrived & ~np.isnan(rows["outcome_value"])
        if state.settings.default_outcome == "failure":
            known |= ~arrived
        rows = rows[known]
        rewards = np.where(rows["settled"] == ARRIVED, rows["outcome_value"], 0.0)
        routed = ~np.isin(rows["code"], _NOT_ROUTED) & (state.settings.mode != "shadow")
        self._take_rewards(state, rows, rewards, routed)

    def _take_arrivals(self, n: float, came: float) -> None:
        low, looks = self.share.low, dict[Key, Any]()
        self._add_look(looks, (STOPPED, "", ""), Batch(n, came, STOP * low, low, self.share.value))
        for key, (ratios, up) in looks.items():
            self._test(*key).take(ratios, up)
        if not self._is_bad(STOPPED, "", ""):
            self.share.add(n, came)
            return
        for key, test in self.tests.items():
            if key[0] != STOPPED and not test.bad:
                test.reset(bad=False)  # evidence of late may be that of the stop

    def _take_rewards(self, state: State, rows: NDArray[Any], rewards: NDArray[np.float64], routed: NDArray[np.bool_]) -> None:
        """Sum up per segment and arm, and let the tests of the segment and of all above it take a look."""
        taken: dict[Key, list[float]] = {}
        looks: dict[Key, tuple[list[float], float]] = {}
        for segment, arm, n, total in _sums(state, rows, rewards, self._watched_name):
            known = self._mean(segment, arm)
            self._add_look(looks, (COLLAPSED, segment, arm), Batch(n, total, COLLAPSE * known.low, known.low, known.value))
            taken[COLLAPSED, segment, arm] = [n, total]
        for segment, _, n, total in _sums(state, rows[routed], rewards[routed], self._watched_name, by_arm=False):
            best = self._best(state, segment)
            floor = (1 - state.settings.alpha) * best
            self._add_look(looks, (BROKEN, segment, ""), Batch(n, total, SLACK * floor, best, floor))
        for key, (ratios, up) in looks.items():
            self._test(*key).take(ratios, up)
        for (_, segment, arm), (n, total) in taken.items():
            if not self._is_bad(COLLAPSED, segment, arm):
                self._mean(segment, arm).add(n, total)

    def _add_look(self, looks: dict[Key, Any], key: Key, batch: Batch) -> None:
        """Add a batch to what the tests of a segment and of all above it are about to look at."""
        rule, segment, arm = key
        if batch.m0 <= 0.0:
            return
        ratios, up = ratios_of(batch.n, batch.total, batch.m0, _FACTORS[rule], batch.usual)
        for above in path_of(segment):
            if above in self.watched:
                late, compared = self._recent((rule, above, arm))
                late.add(batch.n, batch.total)
                compared.add(batch.n, batch.n * batch.compared)
                before = looks.get((rule, above, arm), ([0.0] * len(ratios), 0.0))
                looks[rule, above, arm] = [a + b for a, b in zip(before[0], ratios, strict=True)], before[1] + up

    def _watched_name(self, state: State, number: int) -> str:
        """The watched segment that counts the decisions of a segment."""
        segment = state.segments.by_number[number]
        room = segment.name not in self.watched and len(self.watched) < MOST_SEGMENTS
        if room and float(state.segments.sums.sums["seen"][number].sum()) >= LEAST_SEEN:
            self.watched[segment.name] = None
        return next(name for name in path_of(segment.name) if name in self.watched)

    def _best(self, state: State, segment: str) -> float:
        """A lower bound of the best active arm's mean in a segment, without arms that have collapsed."""
        arms = state.arms
        bounds = [
            self._mean(segment, name).low
            for name, status in zip(arms.names, arms.status, strict=True)
            if status == "active" and not self._is_bad(COLLAPSED, segment, name)
        ]
        return max(bounds, default=0.0)

    def _drop_idle_arms(self, state: State) -> None:
        """Nothing is said of an arm that takes no decisions: what it was is forgotten with its tests."""
        active = {name for name, status in zip(state.arms.names, state.arms.status, strict=True) if status == "active"}
        for rule, segment, arm in [key for key in self.tests if key[0] == COLLAPSED and key[2] not in active]:
            del self.tests[rule, segment, arm]
            self.recent.pop((rule, segment, arm), None)
            self.means.pop((segment, arm), None)

    # -- verdicts ----------------------------------------------------------------------------------------------------

    def verdicts(self) -> list[Verdict]:
        """What is bad now, each at the highest segment where it shows; no arm is blamed while outcomes seem to have stopped."""
        if self.undecided():
            return [self._verdict((STOPPED, "", ""))] if self._is_bad(STOPPED, "", "") else []
        return [
            self._verdict(key)
            for key, test in self.tests.items()
            if test.bad and not any(self._is_bad(key[0], above, key[2]) for above in path_of(key[1])[1:2])
        ]

    def undecided(self) -> bool:
        """Whether outcomes seem to have stopped: then nothing is learnt of arms, and no other alert begins or ends."""
        stop = self.tests.get((STOPPED, "", ""))
        return stop is not None and (stop.bad or stop.evidence >= _EVIDENCE_OF_STOP)

    def _verdict(self, key: Key) -> Verdict:
        rule, segment, arm = key
        late, compared = self._recent(key)
        return Verdict(rule, segment, arm, late.value, compared.value)

    def mark(self, rule: str, segment: str, arm: str) -> None:
        """An alert of this kind is open: it ends only when there is evidence for that."""
        self.watched.setdefault(segment, None)
        test = self._test(rule, segment, arm)
        if not test.bad:
            test.reset(bad=True)

    # -- over restarts -----------------------------------------------------------------------------------------------

    def skip(self, now: float) -> None:
        """Look at no decision made up to now: the service or its store was away, and outcomes had no chance to come."""
        self.cursor = max(self.cursor, now)

    def dump(self) -> str:
        """All that a later process needs to go on, as JSON."""
        tests = [[*key, each.threshold, each.log_r, each.log_up, each.bad, each.held] for key, each in self.tests.items()]
        return json.dumps(
            {
                "lags": [self.lags.counts.tolist(), self.lags.position],
                "share": [self.share.n, self.share.total],
                "means": [[*key, each.n, each.total] for key, each in self.means.items()],
                "recent": [[*key, late.n, late.total, compared.total] for key, (late, compared) in self.recent.items()],
                "tests": tests,
                "watched": list(self.watched),
            }
        )

    @classmethod
    def load(cls, dumped: str, now: float) -> "Monitor":
        """A monitor that goes on where another was; decisions from before `now` are not looked at."""
        monitor, found = cls(now), json.loads(dumped)
        counts, monitor.lags.position = found["lags"]
        monitor.lags.counts[:] = counts
        monitor.share.add(*found["share"])
        monitor.watched = dict.fromkeys(found["watched"])
        for segment, arm, n, total in found["means"]:
            monitor._mean(segment, arm).add(n, total)
        for rule, segment, arm, n, *totals in found["recent"]:
            for mean, total in zip(monitor._recent((rule, segment, arm)), totals, strict=True):
                mean.add(n, total)
        for rule, segment, arm, threshold, log_r, log_up, bad, held in found["tests"]:
            test = monitor._test(rule, segment, arm)
            test.threshold, test.log_r, test.log_up, test.bad, test.held = threshold, log_r, log_up, bad, held
        return monitor

    # -- parts -------------------------------------------------------------------------------------------------------

    def _is_bad(self, rule: str, segment: str, arm: str) -> bool:
        return any((test := self.tests.get((rule, above, arm))) is not None and test.bad for above in path_of(segment))

    def _mean(self, segment: str, arm: str) -> Mean:
        return self.means.setdefault((segment, arm), Mean())

    def _recent(self, key: Key) -> tuple[Mean, Mean]:
        return self.recent.setdefault(key, (Mean(limit=RECENT_OUTCOMES), Mean(limit=RECENT_OUTCOMES)))

    def _test(self, rule: str, segment: str, arm: str) -> DropTest:
        found = self.tests.get((rule, segment, arm))
        if found is None:
            number = sum(key[0] == rule for key in self.tests) + 1
            threshold = math.log(_LOOKS * number * (number + 1))  # shares 1/2, 1/6, 1/12, ... of the allowed rate: together 1
            found = self.tests[rule, segment, arm] = DropTest(_FACTORS[rule], threshold, _RECOVERY, _HOLD[rule])
        return found


def _sums(
    state: State, rows: NDArray[Any], rewards: NDArray[np.float64], watched: Any, *, by_arm: bool = True
) -> list[tuple[str, str, float, float]]:
    """Segment, arm ("" for all), number and total of rewards, for all that occur."""
    width = len(state.arms.names)
    codes = rows["segment"] * width + (rows["arm"] if by_arm else 0)
    found, places = np.unique(codes, return_inverse=True)
    counts, totals = np.bincount(places, minlength=found.size), np.bincount(places, rewards, minlength=found.size)
    sums: dict[tuple[str, str], list[float]] = {}
    for code, n, total in zip(found.tolist(), counts.tolist(), totals.tolist(), strict=True):
        key = watched(state, code // width), state.arms.names[code % width] if by_arm else ""
        into = sums.setdefault(key, [0.0, 0.0])
        into[0] += n
        into[1] += total
    return [(segment, arm, n, total) for (segment, arm), (n, total) in sums.items()]
