"""`make mutate`: how many small faults in the rooms that decide would the tests find?

    python -m tests.mutation.run                      every mutant of every module
    python -m tests.mutation.run policies.cs_ids      one module, and what survives
    python -m tests.mutation.run --sample 40          at most 40 mutants of each module, drawn with --seed

What was found is kept in .mutation/results.json: a module is tried again only if it, its tests or its mutants have changed.
docs/mutation.md is written from what is kept there after a run of everything; a part of it writes .mutation/mutation.md.
"""

import argparse
import hashlib
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.mutation.mutants import Mutant, mutate
from tests.mutation.page import page_path, score, unexplained, write_page
from tests.mutation.selection import LEFT_OUT, ROOMS, tests_of
from tests.mutation.trial import survivors

ROOT = Path(__file__).parents[2]
LEAST = 0.9  # the score that every room must reach
RESULTS = ROOT / ".mutation" / "results.json"
_ALWAYS = ("tests/oracles.py", "tests/policies/by_hand.py")


def modules() -> Iterator[tuple[str, str, Path]]:
    """Room, name and path of every module to be mutated."""
    for room, patterns in ROOMS.items():
        for pattern in patterns:
            for path in sorted((ROOT / "src" / "thrifty").glob(pattern)):
                module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
                if module not in LEFT_OUT:
                    yield room, module, path


def try_module(module: str, path: Path, *, sample: int | None, seed: int) -> dict[str, Any]:
    """Which mutants of a module survive its tests."""
    every = mutate(path.read_text(), module)
    tried = every if sample is None or len(every) <= sample else random.Random(seed).sample(every, sample)
    digest = _digest(path, [mutant.key for mutant in tried])
    found = _known().get(module, {})
    if found.get("digest") != digest:
        found = {"digest": digest, "mutants": len(every), "tried": len(tried), "seed": seed, "survivors": _survivors(path, tried)}
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps({**_known(), module: found}, indent=1))
    return found


def _known() -> dict[str, dict[str, Any]]:
    return dict(json.loads(RESULTS.read_text())) if RESULTS.exists() else {}


def _survivors(path: Path, tried: list[Mutant]) -> list[dict[str, Any]]:
    if not tried:
        return []
    begun = time.perf_counter()
    found = survivors(tried, str(path), tests_of(tried[0].module))
    print(f"{tried[0].module}: {len(tried)} mutants, {time.perf_counter() - begun:.0f} s", flush=True)
    return [{"key": mutant.key, "line": mutant.line} for mutant in found]


def _digest(path: Path, keys: list[str]) -> str:
    module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    files = [path, *(ROOT / each for each in (*_ALWAYS, *tests_of(module)) if (ROOT / each).is_file())]
    text = json.dumps([*keys, *tests_of(module), *(file.read_text() for file in files)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def main() -> None:
    """Try the mutants, show what survives, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", help="modules such as intervals or policies.cs_ids; all if none is named")
    parser.add_argument("--sample", type=int, help="the most mutants to try of each module")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    asked = parser.parse_args()
    begun = time.perf_counter()
    for room, module, path in modules():
        if not asked.only or module.removeprefix("thrifty.") in asked.only or room in asked.only:
            found = try_module(module, path, sample=asked.sample, seed=asked.seed)
            for survivor in found["survivors"]:
                print(f"  {path.relative_to(ROOT)}:{survivor['line']}  {survivor['key']}")
            if found["tried"]:
                print(f"  {module}: {found['tried'] - len(found['survivors'])} of {found['tried']} found", flush=True)
    print(f"{time.perf_counter() - begun:.0f} s")
    rooms: dict[str, list[dict[str, Any]]] = {}
    for room, module, _ in modules():
        if module in _known():
            rooms.setdefault(room, []).append(_known()[module])
    page = page_path(ROOT, partial=bool(asked.only) or asked.sample is not None)
    write_page(page, rooms)
    print(f"written: {page.relative_to(ROOT)}")
    _judge(rooms)


def _judge(rooms: dict[str, list[dict[str, Any]]]) -> None:
    low = [f"{room} {100 * score(modules)[0]:.1f}%" for room, modules in rooms.items() if score(modules)[0] < LEAST]
    without = unexplained(rooms)
    if low:
        raise SystemExit(f"a room must find at least {100 * LEAST:.0f}% of its mutants, got {', '.join(low)}: write tests")
    if without:
        raise SystemExit("survivors without a reason in tests/mutation/survivors.toml:\n" + "\n".join(without))


if __name__ == "__main__":
    main()
