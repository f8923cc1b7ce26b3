"""Pages: the house style of self-contained HTML, pictures inside. The same content gives the same bytes."""

import base64
import html
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thrifty.pictures import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { line-height: 1.2; } h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1.5rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.875rem; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem; border-bottom: 1px solid #e5e5e5; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
img { width: 100%; max-width: 56rem; height: auto; display: block; margin: 1rem auto; }
.verdict { font-weight: 600; white-space: nowrap; padding: 0.1rem 0.5rem; border-radius: 0.25rem; }
.holds { background: #d7ecf9; color: #003f63; } .fails { background: #fbe0d1; color: #7a2f00; }
.imprecise { background: #fbf0cf; color: #5c4300; }
details { overflow-x: auto; } summary { cursor: pointer; } .about { color: #555; }
th.number { text-align: right; } pre { background: #f6f6f6; padding: 0.8rem 1rem; overflow-x: auto; font-size: 0.8rem; }
.lead { font-size: 1.15rem; } small { color: #555; white-space: nowrap; } .scroll { overflow-x: auto; }
"""


def page(title: str, parts: Iterable[str]) -> str:
    """A whole page.

    >>> page("A < B", ["<p>c</p>"]).count("A &lt; B")
    2
    """
    name = html.escape(title)
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}</title><style>{STYLE}</style></head>
<body>
<h1>{name}</h1>
{chr(10).join(parts)}
</body></html>
"""


def picture(figure: "Figure", description: str) -> str:
    """A figure inside the page, as SVG, no wider than it was drawn for."""
    width = min(5.9 * figure.get_figwidth(), 56.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figure.svg"
        save(figure, path)
        encoded = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{html.escape(description)}" style="max-width: {width:.1f}rem" src="data:image/svg+xml;base64,{encoded}">'


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; numbers and what looks like them stand to the right. A `Markup` cell is taken as it is.

    >>> '<td class="number">0.5</td>' in table(["a"], [[0.5]])
    True
    """
    body = [list(row) for row in rows]
    right = [bool(body) and all(_is_number(row[column]) for row in body) for column in range(len(header))]
    head = "".join(
        f'<th class="number">{html.escape(name)}</th>' if to_right else f"<th>{html.escape(name)}</th>"
        for name, to_right in zip(header, right, strict=True)
    )
    lines = "".join(
        "<tr>" + "".join(_cell(value, to_right) for value, to_right in zip(row, right, strict=True)) + "</tr>\n" for row in body
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>\n{lines}</tbody></table></div>'


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text.

    >>> paragraph("a & b")
    '<p>a &amp; b</p>'
    """
    return f'<p class="{kind}">{html.escape(text)}</p>' if kind else f"<p>{html.escape(text)}</p>"


def bullets(lines: Iterable[str]) -> str:
    """A list of plain texts."""
    return "<ul>" + "".join(f"<li>{html.escape(line)}</li>\n" for line in lines) + "</ul>"


def _is_number(value: Any) -> bool:
    return (
        not isinstance(value, str)
        or (isinstance(value, Markup) and value[:1] in "0123456789-+")
        or value[:1].isdigit()
        or value == ""
    )


def _cell(value: Any, to_right: bool) -> str:
    text = value if isinstance(value, Markup) else html.escape(f"{value:.4g}" if isinstance(value, float) else str(value))
    return f'<td class="number">{text}</td>' if to_right else f"<td>{text}</td>"
