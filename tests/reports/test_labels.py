import numpy as np
import pytest
from numpy.typing import NDArray

from thrifty.reports.drawing import house_style, make_axes
from thrifty.reports.labels import label_points

SIZE = (6.0, 4.2)


def boxes(points: NDArray[np.float64], names: list[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The boxes of the labels as drawn (left, bottom, right, top), and the points, both in pixels."""
    with house_style():
        figure, axes = make_axes(1, 1, size=SIZE)
        ax = axes[0][0]
        ax.plot(*points.T, "o")
        ax.margins(0.2)
        label_points(ax, points, names, fontsize=8)
        figure.draw_without_rendering()
        drawn = [text.get_window_extent() for text in ax.texts]
    return np.array([each.extents for each in drawn]), ax.transData.transform(points)


def overlapping(placed: NDArray[np.float64]) -> list[tuple[int, int]]:
    return [
        (first, second)
        for first in range(len(placed))
        for second in range(first)
        if (placed[first, :2] < placed[second, 2:]).all() and (placed[second, :2] < placed[first, 2:]).all()
    ]


@pytest.mark.parametrize("spread", [0.0, 0.01, 1.0])
def test_labels_of_points_close_together_do_not_overlap(spread: float) -> None:
    rng = np.random.default_rng(1)
    points = np.vstack([[0.0, 0.0], [1.0, 1.0], 0.5 + spread * (rng.random((6, 2)) - 0.5)])
    placed, _ = boxes(points, [f"policy:number={number}" for number in range(len(points))])
    assert overlapping(placed) == []


def test_a_label_hides_no_point_where_there_is_room() -> None:
    points = np.array([[0.0, 0.0], [0.5, 0.5], [0.54, 0.51], [1.0, 1.0]])
    placed, pixels = boxes(points, ["a", "a long label", "b", "c"])
    hidden = [((pixels > box[:2]) & (pixels < box[2:])).all(axis=1).any() for box in placed]
    assert not any(hidden)


def test_a_dollar_in_a_name_is_a_dollar() -> None:
    with house_style():
        figure, axes = make_axes(1, 1, size=SIZE)
        label_points(axes[0][0], np.array([[0.5, 0.5]]), ["$\\frac$"], fontsize=8)
        figure.draw_without_rendering()
    assert axes[0][0].texts[0].get_text() == "\\$\\frac\\$"
