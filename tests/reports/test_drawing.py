import warnings
from pathlib import Path

import numpy as np
import pytest

from thrifty.figures import Curve, FigureData, Map, MapFigure, Panel, PanelFigure, RangeFigure
from thrifty.reports.drawing import draw, image, save

CURVES = {"a": Curve.line([1, 10], [1.0, 2.0]), "$\\frac$": Curve.band([1, 10], np.array([2.0, 3.0]), np.array([1.0, 1.0]))}
PANELS = PanelFigure([Panel("left", "x", "y", CURVES), Panel("right", "x", "y", CURVES, "log", "log", ["a"])], "title", "caption")
MAPS = MapFigure(
    [Map("map", "x", "y", ["a", "b"], ["c"], np.array([[0, 1]]), [["1x", "2x"]])], ["first", "second"], None, "caption"
)
RANGES = RangeFigure({"closed": (1.0, 2.0), "open": (1.0, np.inf), "empty": (2.0, 1.0)}, "x", "title", "caption")


@pytest.mark.parametrize("data", [PANELS, MAPS, RANGES])
@pytest.mark.parametrize(("ending", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_the_same_figure_gives_the_same_bytes(data: FigureData, ending: str, start: bytes) -> None:
    first, second = (image(draw(data), ending) for _ in range(2))
    assert first == second
    assert first.startswith(start)


def test_every_kind_of_range_is_drawn() -> None:
    drawn = draw(RANGES)
    assert [text.get_text() for text in drawn.axes[0].texts] == ["1 to 2", "", "1 and more", "none"]


def test_a_map_has_a_text_in_every_cell_and_a_name_for_every_kind() -> None:
    drawn = draw(MAPS)
    assert [text.get_text() for text in drawn.axes[0].texts] == ["1x", "2x"]
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["first", "second"]


def test_one_name_has_one_colour_in_all_panels() -> None:
    left, right = draw(PANELS).axes
    assert [line.get_color() for line in left.lines] == [line.get_color() for line in right.lines]


def test_a_picture_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    save(draw(PANELS), tmp_path / "fig.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["fig.svg"]
    with pytest.raises(ValueError, match="cannot write"):
        save(draw(PANELS), tmp_path / "no" / "fig.svg")
    with pytest.raises(ValueError, match=r"must end in \.png, \.svg, \.pdf"):
        save(draw(PANELS), tmp_path / "fig.bmp")


@pytest.mark.parametrize(
    ("name", "shown"), [("\u4e2d\u6587", "[4E2D 6587]"), ("\U0001f680 DE", "[1F680] DE"), ("caf\xe9", "caf\xe9")]
)
def test_letters_that_the_font_lacks_are_drawn_as_codes_without_a_warning(name: str, shown: str) -> None:
    drawn = draw(PanelFigure([Panel("left", "x", "y", {name: CURVES["a"]})], "title", "caption"))
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == [shown]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        image(drawn, ".png")
