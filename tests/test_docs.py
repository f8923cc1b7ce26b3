"""The documentation is true: its examples run, its commands, files, functions and links exist, its promises have tests."""

import doctest
import functools
import importlib
import inspect
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.pages import DOCS, ROOT, Reader, blocks
from thrifty.cli.main import build_parser
from thrifty.experiments import EXPERIMENTS

EVERY_PAGE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
CODE_PAGES = [DOCS / "architecture.md", ROOT / "CONTRIBUTING.md"]
PUBLIC = (
    "",
    ".policies",
    ".environments",
    ".simulation",
    ".router",
    ".client",
    ".logs",
    ".advice",
    ".questions",
    ".theory",
    ".store",
)
"""Rooms whose public classes stand in the glossary."""

RUN_HERE = {
    "README.md": 3,
    "docs/index.md": 3,
    "docs/how-to/alerts.md": 1,
    "docs/how-to/compare.md": 8,
    "docs/how-to/embed.md": 8,
    "docs/how-to/rollout.md": 1,
    "docs/how-to/own-policy.md": 4,
    "docs/how-to/logs.md": 5,
    "docs/how-to/sweep.md": 2,
    "docs/how-to/reproduce.md": 1,
    "docs/service.md": 2,
    "docs/theory/problem.md": 1,
    "docs/theory/bounds.md": 1,
    "docs/theory/instance-bound.md": 1,
    "docs/theory/cof.md": 1,
}
"""Pages whose blocks run here, and how many of them; the tutorials and docs/client.md have tests of their own."""

ERRATA = sorted(set(re.findall(r"`((?:thrifty|pytest) [^`]+)`", (DOCS / "errata.md").read_text())))


def tooling(name: str) -> ModuleType:
    """A module of docs/tooling, which is no package."""
    sys.path.insert(0, str(DOCS / "tooling"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


@functools.cache
def generated_pages() -> dict[str, str]:
    """The pages that the code writes, by their path below docs."""
    found: dict[str, str] = tooling("generated").pages()
    return found


# -- examples --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RUN_HERE)
def test_every_block_of_a_page_runs_and_prints_what_the_page_says(name: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    try:
        assert reader.read(ROOT / name) == RUN_HERE[name]
    finally:
        reader.close()


def test_the_sessions_of_changing_worlds_are_true() -> None:
    found = doctest.testfile(str(DOCS / "changing-worlds.md"), module_relative=False)
    assert found.failed == 0
    assert found.attempted > 10


def test_every_page_with_blocks_that_can_run_is_run_by_a_test() -> None:
    elsewhere = {
        "docs/client.md",
        "docs/changing-worlds.md",
        *(f"docs/tutorials/{n}.md" for n in ("researcher", "engineer", "analyst")),
    }
    found = {str(page.relative_to(ROOT)) for page in EVERY_PAGE if {"python", "bash"} & {each.language for each in blocks(page)}}
    assert found == {*RUN_HERE, *elsewhere}


# -- commands --------------------------------------------------------------------------------------------------------------


def written_commands() -> list[tuple[str, str]]:
    """Every `thrifty ...` line in a block of a page that does not run, and where it stands."""
    found = []
    for page in EVERY_PAGE:
        for block in blocks(page):
            lines = block.body.splitlines() if block.language in ("text", "") else []
            found += [(str(page.relative_to(ROOT)), line) for line in lines if line.startswith("thrifty ") and "..." not in line]
    return found


@pytest.mark.parametrize(("page", "line"), written_commands())
def test_a_written_command_is_one_that_the_parser_takes(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)
    assert words[0] == "thrifty", page
    build_parser().parse_args(words[1:])


@pytest.mark.parametrize("command", ERRATA)
def test_an_erratum_is_shown_by_something_that_exists(command: str) -> None:
    program, *words = command.split(maxsplit=3)
    if program == "thrifty":
        assert words[0] == "reproduce"
        assert words[1] == "--quick" or words[1] in EXPERIMENTS
        return
    path, option, expression = words
    assert option == "-k"
    names = re.findall(r"def (test_\w+)", (ROOT / path).read_text())
    for word in expression.strip('"').split(" or "):
        assert any(word in name for name in names), word


def test_there_are_commands() -> None:
    assert len(ERRATA) > 10
    assert len(written_commands()) > 15


# -- files, functions, links -----------------------------------------------------------------------------------------------


def named_paths(page: Path) -> list[str]:
    """The files and folders of the repository that a page names in backticks."""
    named = re.findall(
        r"`((?:src|tests|docs|benchmarks)/[\w/.-]+|\.?[\w-]+\.(?:md|toml|yml|cff)|\.importlinter)`", page.read_text()
    )
    return sorted(set(named))


@pytest.mark.parametrize("page", CODE_PAGES, ids=lambda page: str(page.name))
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    named = named_paths(page)
    assert len(named) > 8
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_function_that_the_architecture_names_is_in_its_file() -> None:
    text = " ".join((DOCS / "architecture.md").read_text().split())
    pairs = re.findall(r"`([\w.]+)` in `(src/thrifty/[\w/]+\.py)`", text)
    assert len(pairs) > 40
    missing = [
        (name, path)
        for name, path in pairs
        if not re.search(rf"^\s*(?:def|class) {name.rpartition('.')[2]}\b", (ROOT / path).read_text(), re.MULTILINE)
    ]
    assert missing == []


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    here = [target for target in targets if target and not target.startswith(("http:", "https:"))]
    generated = {DOCS / path for path in generated_pages()}
    assert [
        target for target in here if not (page.parent / target).exists() and (page.parent / target).resolve() not in generated
    ] == []


# -- generated pages and pictures ------------------------------------------------------------------------------------------


def test_the_generated_pages_have_every_command_setting_call_and_policy() -> None:
    from thrifty.described import described
    from thrifty.policies import list_policies
    from thrifty.router import Settings
    from thrifty.service.config import Config
    from thrifty.service.openapi import describe

    made = generated_pages()
    assert all(f"`{name}`" in made["reference/settings.md"] for name in Settings.names())
    assert all(setting.flag in made["reference/settings.md"] for setting in described(Config))
    calls = [(path, method) for path, each in describe()["paths"].items() for method in each if method != "parameters"]
    assert all(f"### {method.upper()} {path}\n" in made["reference/http.md"] for path, method in calls)
    assert all(f"## {name}\n" in made["reference/policies.md"] for name in list_policies())
    for command in ("compare", "serve", "recommend", "warm", "repair"):
        assert f"## thrifty {command}\n" in made["reference/cli.md"]


def test_the_pictures_are_what_the_script_draws() -> None:
    draw = tooling("draw")
    rooms = {room for row in draw.layers() for room in row}
    assert rooms <= set(draw.MEANINGS), "docs/tooling/draw.py must say what each room is"
    stale = [name for name, make in draw.PICTURES.items() if (DOCS / "assets" / name).read_text() != make()]
    assert stale == [], "run: python docs/tooling/draw.py"


def test_a_docstring_of_the_house_form_is_rewritten_for_the_reference() -> None:
    house = "One.\n\nParameters\n----------\na, b : two numbers\n    of any size\nc : one\n\n>>> 1 + 1\n2\n>>> 3\n3"
    wanted = (
        "One.\n\nParameters\n----------\na, b\n    two numbers\n    of any size\nc\n    one\n\n"
        "Examples\n--------\n>>> 1 + 1\n2\n>>> 3\n3"
    )
    assert tooling("house_form").rewrite(house) == wanted
    assert tooling("house_form").rewrite("A line : with a colon.") == "A line : with a colon."


# -- words and promises ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", PUBLIC)
def test_every_public_class_stands_in_the_glossary(room: str) -> None:
    module = importlib.import_module(f"thrifty{room}")
    classes = [name for name in module.__all__ if inspect.isclass(getattr(module, name))]
    glossary = (DOCS / "glossary.md").read_text()
    assert classes
    assert [name for name in classes if f"`{name}`" not in glossary] == []


def promised_tests() -> list[str]:
    return re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", (DOCS / "promises.md").read_text())


def test_every_promise_has_a_test() -> None:
    rows = [line for line in (DOCS / "promises.md").read_text().splitlines() if line.startswith("| ") and "held by" not in line]
    assert len(rows) > 30
    assert all("`tests/" in row for row in rows)
    for named in promised_tests():
        path, _, function = named.partition("::")
        assert (ROOT / path).is_file(), path
        assert not function or f"def {function}(" in (ROOT / path).read_text(), named


def test_answers_in_the_http_reference_are_json_schemas_in_words() -> None:
    page = generated_pages()["reference/http.md"]
    assert "anyOf" not in page
    assert "$ref" not in page
