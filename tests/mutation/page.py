"""docs/mutation.md: the mutation score of every room, and each survivor with the reason why it may live."""

import math
import tomllib
from pathlib import Path
from typing import Any

_REASONS = Path(__file__).parent / "survivors.toml"
_HEAD = """\
# Mutation testing

A test that cannot fail is a defect. `make mutate` puts one small fault at a time into the rooms that decide and that state
theorems, and runs the tests of that module: a comparison that is off by its edge, `+` for `-`, a constant doubled, `max` for `min`,
and so on. A fault that no test notices *survives*. The score of a room is the share of its faults that are noticed. Messages,
docstrings and annotations are left alone.

Modules of `policies` that only read, check or cite policies are left out.

The compiler is off, so that a fault in a kernel costs no compilation. The mutants are made by `tests/mutation/mutants.py`. mutmut
leaves out decorated functions, which all kernels are. `tests/mutation/selection.py` says
which tests stand guard over which module: a part of the suite that runs in seconds without a compiler. So the scores are those of
this part; the whole suite finds at least as many.

This page is written by `make mutate`.

| room | mutants | tried | found | score |
|---|---:|---:|---:|---:|
{rows}

{sampling}
## Survivors

{survivors}
"""
_SAMPLING = """\
Of some modules a sample was tried (`python -m tests.mutation.run --sample {most}`, seed {seed}). The score weighs each module by
its number of mutants; +- is one standard error of these samples.
"""


def score(modules: list[dict[str, Any]]) -> tuple[float, float]:
    """The share of all mutants of some modules that tests find, from samples of each, and its standard error.

    >>> found, error = score([{"mutants": 10, "tried": 10, "survivors": [1]}, {"mutants": 30, "tried": 10, "survivors": [1, 2]}])
    >>> round(found, 3), round(error, 3)
    (0.825, 0.077)
    """
    total = sum(each["mutants"] for each in modules)
    found, variance = 0.0, 0.0
    for each in modules:
        if each["tried"]:
            weight, share = each["mutants"] / total, 1 - len(each["survivors"]) / each["tried"]
            found += weight * share
            variance += weight**2 * share * (1 - share) / each["tried"] * (1 - each["tried"] / each["mutants"])
    return found, math.sqrt(variance)


def reasons() -> dict[str, str]:
    """Why a survivor may live, by its key."""
    return {_shown(key): why for why, keys in tomllib.loads(_REASONS.read_text()).items() for key in keys}


def _shown(key: str) -> str:
    return " ".join(key.split())


def unexplained(rooms: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The keys of survivors without a reason."""
    known = reasons()
    found = [_shown(each["key"]) for modules in rooms.values() for one in modules for each in one["survivors"]]
    return [key for key in found if key not in known]


def page_path(root: Path, *, partial: bool) -> Path:
    """Where the page goes: docs/mutation.md is about everything, so a part of the modules or mutants has one of its own."""
    return root / ".mutation" / "mutation.md" if partial else root / "docs" / "mutation.md"


def write_page(path: Path, rooms: dict[str, list[dict[str, Any]]]) -> None:
    """Write the scores and the survivors of all rooms."""
    rows = []
    for room, modules in rooms.items():
        mutants, tried = (sum(each[what] for each in modules) for what in ("mutants", "tried"))
        found, error = score(modules)
        shown = f"{100 * found:.1f}%" + (f" +- {100 * error:.1f}%" if error else "")
        rows.append(
            f"| `{room}` | {mutants:,} | {tried:,} | {tried - sum(len(each['survivors']) for each in modules):,} | {shown} |"
        )
    sampled = [each for modules in rooms.values() for each in modules if each["tried"] < each["mutants"]]
    sampling = "Every mutant was tried.\n"
    if sampled:
        sampling = _SAMPLING.format(most=max(each["tried"] for each in sampled), seed=sampled[0]["seed"])
    path.parent.mkdir(exist_ok=True)
    path.write_text(_HEAD.format(rows="\n".join(rows), sampling=sampling, survivors=_survivors(rooms) or "None."))


def _survivors(rooms: dict[str, list[dict[str, Any]]]) -> str:
    by_reason: dict[str, list[str]] = {}
    known = reasons()
    for modules in rooms.values():
        for module in modules:
            for each in module["survivors"]:
                key = _shown(each["key"])
                by_reason.setdefault(known.get(key, "Not explained yet."), []).append(key)
    return "\n\n".join(f"{why}\n\n" + "\n".join(f"- `{key}`" for key in sorted(set(keys))) for why, keys in by_reason.items())
