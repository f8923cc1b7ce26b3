"""Names that would harm a page that does not escape them, and a check that it does."""

from html.parser import HTMLParser

NAMES = ("<script>alert(1)</script>", '"><img src=x>', "&amp;", "$\\frac$")


class _Reader(HTMLParser):
    """Collects the text of a page, its elements and what they load."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.tags: set[str] = set()
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        assert not any(name.startswith("on") for name, _ in attrs), f"{tag} has an event handler"

    def handle_data(self, data: str) -> None:
        self.text += data


def assert_escaped(page: str, names: tuple[str, ...] = NAMES) -> None:
    """A reader of the page sees every name letter by letter, and the page loads and runs nothing."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert [name for name in names if name not in reader.text] == []
    assert "script" not in reader.tags
    assert [source for source in reader.sources if not source.startswith(("data:image/svg+xml;base64,", "#"))] == []
