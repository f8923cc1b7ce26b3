"""The functions of the top level, and what every result of a question to a log can do in a notebook."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars
import pytest

import thrifty
from tests.reports.hostile import NAMES
from thrifty.findings import Findings


def rows(n: int = 3000) -> polars.DataFrame:
    rng = np.random.default_rng(3)
    arm, segment = rng.integers(0, 3, n), rng.integers(0, 2, n)
    rates, prices = np.array([0.9, 0.88, 0.6]), np.array([1.0, 0.6, 0.5])
    return polars.DataFrame(
        {
            "arm": np.array(["Elm", "Fir", NAMES[0]])[arm],
            "segment": np.array(["DE", "a_b"])[segment],
            "reward": 1.0 * (rng.random(n) < rates[arm]),
            "cost": prices[arm],
        }
    )


LOG = thrifty.Log(rows(), thrifty.Columns(segment="segment"))
RESULTS: dict[str, Callable[[], Findings]] = {
    "replay": lambda: thrifty.replay(LOG, [0.05], policies=[]),
    "frontier": lambda: thrifty.frontier(LOG, [0.0, 0.05]),
    "power": lambda: thrifty.power(LOG, 0.05),
    "arms": lambda: thrifty.compare_arms(LOG),
    "value": lambda: thrifty.value_of(LOG, "Elm=0.5,Fir=0.5"),
    "readout": lambda: thrifty.readout(rows().with_row_index("at"), by="segment", control="DE"),
    "recommend": lambda: thrifty.recommend(LOG, [0.1], policies=["cs-ts"], effort=thrifty.Effort(rounds=1500, worlds=2)),
}


@pytest.fixture(params=sorted(RESULTS), scope="module")
def found(request: pytest.FixtureRequest) -> Findings:
    return RESULTS[request.param]()


def test_the_repr_is_one_short_line(found: Findings) -> None:
    assert repr(found).startswith(f"<{type(found).__name__}: ")
    assert "\n" not in repr(found)
    assert len(repr(found)) < 260


def test_the_table_is_html_markdown_and_latex_with_names_escaped(found: Findings) -> None:
    html = found._repr_html_()
    assert html.startswith("<table><caption>")
    assert "<script" not in html
    assert found.to_markdown().count("\n") == len(found.table()) + 1
    assert found.to_latex().startswith("\\begin{tabular}")
    assert " & " in found.to_latex()


def test_frames_are_those_of_polars_and_pandas(found: Findings) -> None:
    main = found.to_polars()
    assert main.equals(next(iter(found.frames.values())))
    assert list(found.to_pandas().columns) == main.columns
    for name in found.frames:
        assert found.to_polars(name).height == len(found.to_pandas(name))
    with pytest.raises(ValueError, match=f"has the frames {', '.join(found.frames)}, got 'nothing'"):
        found.to_polars("nothing")


def test_the_picture_is_a_figure_or_a_file(found: Findings, tmp_path: Path) -> None:
    assert type(found.plot()).__name__ == "Figure"
    found.plot(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")
    with pytest.raises(ValueError, match=r"a picture must end in .png, .svg, .pdf, got .*a.bmp"):
        found.plot(tmp_path / "a.bmp")


def test_save_writes_the_files_of_the_command(found: Findings, tmp_path: Path) -> None:
    paths = found.save(tmp_path / "out")
    assert paths
    assert all(path.stat().st_size > 0 for path in paths)
    assert any(path.suffix == ".csv" for path in paths)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot make the folder"):
        found.save(tmp_path / "file" / "out")


def test_the_functions_stay_functions_after_their_rooms_are_imported() -> None:
    import thrifty.logs.frontier

    assert callable(thrifty.replay)
    assert callable(thrifty.frontier)
    assert thrifty.logs.frontier is thrifty.frontier
    assert "recommend" in dir(thrifty)


def test_importing_the_package_loads_neither_numba_nor_polars() -> None:
    code = "import sys, thrifty; print([name for name in ('numba', 'polars', 'matplotlib', 'thrifty.logs') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
