import sys

import jinja2
import pytest

from tests.reports.hostile import NAMES, assert_escaped
from thrifty.reports.page import NUMBER, WORDS, Cell, PageTable, _environment, embedded, markdown_code, page_table, render


def scenario(**changes: object) -> str:
    content: dict[str, object] = {
        "title": "A title",
        "about": "",
        "picture": embedded(b"<svg/>", "nothing", width_rem=30.0),
        "caption": "",
        "table": PageTable({}, []),
        "assumptions": (),
        "absent": "",
        "command": "",
    }
    return render("scenario.html.j2", **(content | changes))


@pytest.mark.parametrize("place", ["title", "about", "caption", "absent", "command"])
@pytest.mark.parametrize("name", NAMES)
def test_every_text_is_escaped(place: str, name: str) -> None:
    assert_escaped(scenario(**{place: name}), (name,))


def test_cells_intervals_and_headers_are_escaped() -> None:
    first, second, third, _ = NAMES
    table = page_table({first: WORDS, "code": WORDS}, [[Cell(second, below=third), Cell(second, is_code=True)]])
    assert_escaped(scenario(table=table), NAMES[:3])


def test_the_description_of_a_picture_stays_inside_its_attribute() -> None:
    page = scenario(picture=embedded(b"<svg/>", '"><script>alert(1)</script>', width_rem=30.0))
    assert_escaped(page, ())


def test_what_a_template_misses_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="'about' is undefined"):
        render("scenario.html.j2", title="A title")


def test_numbers_stand_to_the_right_and_words_to_the_left() -> None:
    page = scenario(table=page_table({"arm": WORDS, "rows": NUMBER}, [["7 Elms", "1,000"]]))
    assert "<td>7 Elms</td>" in page
    assert '<td class="number">1,000</td>' in page
    assert '<th class="number">rows</th>' in page


@pytest.mark.parametrize("name", [*NAMES, "a`b", "a|b", "[a](javascript:b)", "a\nb"])
def test_a_strange_name_in_markdown_has_no_meaning(name: str) -> None:
    written = str(markdown_code(name))
    assert not set("`|[]()<>\"'\n$") & set(written.removeprefix("<code>").removesuffix("</code>"))
    assert_escaped(written, (name,))


def test_without_jinja2_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setattr("thrifty.reports.page._environment", _environment.__wrapped__)
    with pytest.raises(ValueError, match=r"pages need jinja2: pip install 'thrifty\[plots\]'"):
        scenario()


def test_the_templates_escape_whatever_their_name_ends_in() -> None:
    environment = _environment()
    assert environment.autoescape is True
    assert environment.undefined is jinja2.StrictUndefined


def test_control_characters_do_not_reach_a_page() -> None:
    page = scenario(title="a\x1b[31mb\x00", command="one\ntwo")
    assert not {"\x1b", "\x00"} & set(page)
    assert "a\N{REPLACEMENT CHARACTER}[31mb" in page
    assert "one\ntwo" in page
