"""A pair: the real router on a SQLite file, and its twin. What is done is done to both; they must answer, log and count alike."""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from tests.router import history_twin
from tests.router.twin import Twin
from tests.router.twin_rules import export
from thrifty.router import Router, Settings
from thrifty.router.export import Line, decisions
from thrifty.router.guardrail import Guardrail
from thrifty.router.known_start import KnownStart
from thrifty.store import open_store
from thrifty.store.log import OUTCOME, Row

NAME = "a"


class Clock:
    """Time stands still until a test moves it, by multiples of a quarter of a second, so that all sums are exact."""

    def __init__(self) -> None:
        self.passed = 0.0

    def time(self) -> float:
        """Seconds since 1970."""
        return 1_700_000_000.0 + self.passed

    def monotonic(self) -> float:
        """Seconds since something."""
        return 1_000.0 + self.passed


def shown(row: Row) -> dict[str, Any]:
    """A row, with what its JSON says."""
    return {**row._asdict(), "detail": None if row.detail is None else json.loads(row.detail)}


def shown_line(line: Line) -> dict[str, Any]:
    """A line of an export, with what its JSON says."""
    context = None if line.context is None else json.loads(line.context)
    return {**line._asdict(), "eligible": json.loads(line.eligible), "context": context}


def facts(router: Router) -> dict[str, Any]:
    """Everything about a router that its log determines, but what the rule remembers."""
    roster = router.arms
    return {
        "statistics": {segment: router.statistics(segment) for segment in router.segments()},
        "squares": {segment: squares(router, segment) for segment in router.segments()},
        "pending": router.pending,
        "counts": router.counts,
        "groups": router.groups,
        "guardrail": shown_guardrail(router.state.guardrail),
        "fallback": router.state.configuration.fallback is not None,
        "version": router.version,
        "arms": dict(zip(roster.names, zip(roster.prices, roster.status, strict=True), strict=True)),
        "pinned": None if roster.pinned is None else roster.names[roster.pinned],
        "settings": router.settings.to_dict(),
    }


def shown_guardrail(guardrail: Guardrail) -> dict[str, Any]:
    """What the guardrail of a twin has too."""
    tests = [None if each is None else each.test.dump() for each in (guardrail.main, guardrail.block)]
    left_out = 0 if guardrail.main is None else guardrail.main.left_out
    return {"stage": guardrail.stage, "tests": tests, "waiting": guardrail.waiting, "left_out": left_out}


def remembered(router: Router) -> dict[str, dict[str, tuple[float, ...]]]:
    """Per segment and arm the outcomes that rules learn from, and the sums of their rewards and of the squares of these."""
    segments, sums = router.state.segments, router.state.segments.sums
    found = {}
    for name in router.segments():
        number = segments.nearest(name).number
        if sums.forgets:
            sums.remember(number)
        rows = sums.recent[number][["seen", "reward_sum", "reward_squares"]].tolist()
        found[name] = dict(zip(router.arms.names, rows, strict=True))
    return found


def squares(router: Router, segment: str) -> dict[str, tuple[float, float]]:
    """Per arm the sums of squares of rewards and costs of a segment and everything below it."""
    segments = router.state.segments
    rows = segments.statistics(segments.nearest(segment).number)
    return {arm: row[5:7] for arm, row in zip(router.arms.names, rows, strict=True)}


def facts_of_twin(twin: Twin) -> dict[str, Any]:
    """The same of a twin."""
    return {
        "statistics": twin.statistics(),
        "squares": twin.squares(),
        "pending": len(twin.waiting()),
        "counts": twin.counts,
        "groups": twin.groups,
        "guardrail": twin.guardrail.facts(),
        "fallback": twin.fallback,
        "version": twin.version,
        "arms": twin.arms,
        "pinned": twin.pinned,
        "settings": twin.settings,
    }


class Pair:
    """A router and its twin, from the making of the router on."""

    def __init__(self, folder: Path, arms: Mapping[str, float | None], settings: dict[str, Any]) -> None:
        self._folder, self._files = folder, 0
        self.clock = Clock()
        self.twin = Twin(NAME, self.clock.time)
        self._position, self._seen, self._compared = 0, 0, 0
        self.ever: list[Row] = []  # every row, those that were pruned since included
        self._path = folder / "0.db"
        self.store = open_store(f"sqlite:///{self._path}")
        self.create(arms, settings)

    def create(self, arms: Mapping[str, float | None], settings: dict[str, Any]) -> None:
        """Make the router, which is not there or was deleted."""
        known, given = settings.get("known"), {name: value for name, value in settings.items() if name != "known"}
        start = None if known is None else KnownStart.read(known).to_dict()
        self.both(lambda: self._make(arms, settings), lambda _: self.twin.create(arms, Settings(**given).to_dict(), start))

    def _make(self, arms: Mapping[str, float | None], settings: dict[str, Any]) -> None:
        self.router = Router(arms, store=self.store, name=NAME, clock=self.clock, **settings)

    def both(self, ask: Callable[[], Any], expect: Callable[[Any], Any]) -> Any:
        """Ask the router, then the twin, which is shown the answer: both answer the same, or refuse for the same kind of reason."""
        answer, error = _try(ask)
        rows = self._new_rows()
        for row in takewhile(lambda row: row.code in ("default", "fallback"), rows):
            if row.kind == OUTCOME:  # a fallback is the twin's own
                self.twin.expired(row)
        try:
            wanted, refusal = _try(lambda: expect(answer))
        except AssertionError as difference:
            raise difference from error
        if error is not None and refusal is None:
            raise AssertionError("refused, and the twin sees no reason") from error
        assert refusal is None or isinstance(error, type(refusal)), f"{answer!r} instead of {refusal!r}"
        assert wanted is None or answer == wanted
        for row in rows:
            if row.code == "graduate":
                self.twin.graduated(row)
        self._compare(rows)
        return answer

    def _new_rows(self) -> list[Row]:
        self.store.execute("SELECT 1")  # a default outcome is not waited for: this is behind it
        found = [(position, row) for position, row in self.store.journal(NAME).scan() if position > self._position]
        self._position = found[-1][0] if found else self._position
        self.ever += [row for position, row in found if position > self._seen]
        self._seen = self._position
        return [row for _, row in found]

    def _compare(self, rows: list[Row]) -> None:
        """The rows that the router wrote are those that the twin wrote."""
        assert [shown(row) for row in rows] == [shown(row) for row in self.twin.rows[self._compared :]]
        self._compared = len(self.twin.rows)

    def expire(self) -> None:
        """Every decision past its deadline gets its default outcome, and no other."""
        for _ in range(100):  # those that left memory may take more than one call
            self.both(self.router.expire, lambda _: None)
            if not self.twin.due():
                return
        raise AssertionError(f"{self.twin.due()} never got their default outcome")

    def prune(self, before: float) -> None:
        """Old rows go, and nothing else changes."""
        self._compared = 0
        answer = self.router.prune(before, by="ann")
        assert answer == self.twin.prune(before, by="ann")
        self._position = 0
        self._compare(self._new_rows())

    def delete_and_create(self, arms: Mapping[str, float | None], settings: dict[str, Any]) -> None:
        """The same name, a new router."""
        self.both(lambda: self.router.delete(by="ann"), lambda _: self.twin.delete(by="ann"))
        self.create(arms, settings)

    def close(self) -> None:
        """Let go of the files."""
        self.router.close()
        self.store.close()

    def restart(self, *, passed: float = 0.0) -> None:
        """Stop in peace, and start again some time later."""
        self.close()
        self._reopen(passed)

    def kill(self, *, passed: float = 0.0) -> None:
        """Go on from a copy of the files, as after kill -9; the snapshot that `close` writes is not there."""
        path = self._copy()
        self.store.close()
        self._path = path
        self._reopen(passed)

    def restart_as(self, arms: Mapping[str, float | None], settings: dict[str, Any]) -> None:
        """Stop in peace, and start with other arms and settings."""
        self.close()
        stopped, self.store = self.router, open_store(f"sqlite:///{self._path}")
        self.both(
            lambda: self._make(arms, settings), lambda _: self.twin.configure(arms, Settings(**settings).to_dict(), by="start")
        )
        if self.router is stopped:  # it was refused
            self.router = Router.reopen(NAME, self.store, clock=self.clock)
        self.expire()

    def _reopen(self, passed: float) -> None:
        self.clock.passed += passed
        self.store = open_store(f"sqlite:///{self._path}")
        self.router = Router.reopen(NAME, self.store, clock=self.clock)
        self.expire()

    def _copy(self) -> Path:
        self._files += 1
        target = self._folder / f"{self._files}.db"
        sources = [self._path, self._path.with_name(f"{self._path.name}-wal")]
        while True:
            before = [source.stat().st_mtime_ns for source in sources]
            for source in sources:
                shutil.copyfile(source, target.with_name(source.name.replace(self._path.name, target.name)))
            if [source.stat().st_mtime_ns for source in sources] == before:
                return target

    def check(self) -> None:
        """Statistics, pending, counts, groups, arms and settings are the same."""
        real, twin = facts(self.router), facts_of_twin(self.twin)
        found, wanted = real.pop("statistics"), twin.pop("statistics")
        assert sorted(found) == sorted(wanted)
        for segment in wanted:
            assert found[segment] == wanted[segment], f"statistics of {segment!r}"
        assert real == twin
        wanted_by_rules = self.twin.remembered()
        if wanted_by_rules is not None:
            assert remembered(self.router) == wanted_by_rules

    def check_log(self) -> None:
        """The whole log, its export and the history are the same."""
        journal = self.store.journal(NAME)
        assert [shown(row) for _, row in journal.scan()] == [shown(row) for row in self.twin.rows]
        assert _shown(decisions(journal, NAME)) == _shown(export(self.twin.rows, NAME))
        self.router.history()
        history_twin.check(self.store, NAME, self.ever)


def _try(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What a call returns, and how it refuses."""
    try:
        return call(), None
    except (ValueError, KeyError) as error:
        return None, error


def _shown(lines: Iterable[Line]) -> list[dict[str, Any]]:
    return [shown_line(line) for line in lines]
