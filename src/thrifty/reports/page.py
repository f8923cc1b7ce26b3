"""Pages: Jinja2 templates in the house style, self-contained, pictures inside. The same content gives the same bytes."""

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from thrifty.reports.drawing import image

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup
    from matplotlib.figure import Figure

WORDS, NUMBER = "", "number"
"""Style classes of a column: words stand to the left, numbers to the right."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, and a smaller text below it, such as an interval."""

    text: str
    below: str = ""
    is_code: bool = False


@dataclass(frozen=True)
class PageTable:
    """A table of a page: style classes by column name, and rows of cells."""

    columns: Mapping[str, str]
    rows: list[list[Cell]]


@dataclass(frozen=True)
class Picture:
    """A picture inside a page: an SVG file as a data URI, what it shows in words, and how wide it may become."""

    source: str
    description: str
    width_rem: float


def render(template: str, **content: Any) -> str:
    """Fill in a template of this room. Every value is escaped; a name that the template misses is an error.

    >>> "A &lt; B" in render("scenario.html.j2", title="A < B", about="", picture=None, caption="", table=PageTable({}, []),
    ...     assumptions=(), absent="", command="")
    True
    """
    return _environment().get_template(template).render(**content)


def page_table(columns: Mapping[str, str], rows: Iterable[Iterable[str | Cell]]) -> PageTable:
    """A table of texts and cells.

    >>> page_table({"arm": WORDS}, [["Elm"]]).rows
    [[Cell(text='Elm', below='', is_code=False)]]
    """
    return PageTable(columns, [[Cell(value) if isinstance(value, str) else value for value in row] for row in rows])


def picture(figure: "Figure", description: str) -> Picture:
    """A figure for a page, no wider than it was drawn for."""
    return embedded(image(figure, ".svg"), description, width_rem=natural_width(figure))


def natural_width(figure: "Figure") -> float:
    """The width in rem at which letters of a figure are about as large as those of the page."""
    return min(6.6 * figure.get_figwidth(), 60.0)


def embedded(svg: bytes, description: str, *, width_rem: float) -> Picture:
    """An SVG file for a page.

    >>> embedded(b"<svg/>", "nothing", width_rem=30.0).source
    'data:image/svg+xml;base64,PHN2Zy8+'
    """
    return Picture(f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}", description, width_rem)


@cache
def _environment() -> "Environment":
    try:
        import jinja2
    except ImportError:
        raise ValueError("pages need jinja2: pip install 'thrifty[plots]'") from None
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("thrifty.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_finalized,
    )
    environment.filters["code"] = markdown_code
    return environment


_CONTROLS = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160)), "\N{REPLACEMENT CHARACTER}")


def _finalized(value: Any) -> Any:
    """A value of a template without control characters, which no page may hold; lines and tabs stay."""
    return value.translate(_CONTROLS) if isinstance(value, str) else value


def markdown_code(text: str) -> "Markup":
    """A name as code in Markdown. One with unusual characters is written as HTML, where nothing in it has a meaning.

    >>> print(markdown_code("cs-etc:tau=50"), markdown_code("a|b"))
    `cs-etc:tau=50` <code>a&#124;b</code>
    """
    import markupsafe

    if re.fullmatch(r"[\w .,:;=+/-]+", text):
        return markupsafe.Markup("`{}`").format(text)
    characters = "".join(each if each.isalnum() or each == " " else f"&#{ord(each)};" for each in text)
    return markupsafe.Markup("<code>{}</code>").format(markupsafe.Markup(characters))
