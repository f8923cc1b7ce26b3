import csv
import re
from pathlib import Path

import pytest

from tests.reports.hostile import NAMES, assert_escaped
from thrifty.experiments import EXPERIMENTS, Claim, Experiment, Finding, Scale
from thrifty.experiments.measures import columns_of
from thrifty.experiments.verdict import FAILS, HOLDS, IMPRECISE, UNDECIDED, UNTESTABLE
from thrifty.figures import Panel, PanelFigure
from thrifty.reports.page import embedded
from thrifty.reports.reproduction import report_item, reproduce, reproduction_page

FEW = ["fig1", "reduction"]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("written")
    reproduce(FEW, Scale(quick=True, runs=3), out=out)
    return out


def page_of(*claims: Claim, rows: list[dict[str, object]], title: str = "A title") -> str:
    known = EXPERIMENTS["fig1"]
    item = Experiment(known.name, title, title, known.settings, known.conclude)
    finding = Finding(columns_of(rows), PanelFigure([Panel("", "x", "y", {})], None, ""), claims)
    return reproduction_page([report_item(item, finding, embedded(b"<svg/>", title, width_rem=30.0))], Scale(quick=True))


def test_every_item_leaves_a_table_and_two_pictures(written: Path) -> None:
    for name in FEW:
        rows = list(csv.DictReader((written / f"{name}.csv").read_text().splitlines()))
        assert len(rows) > 3
        assert (written / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (written / f"{name}.svg").read_text()


def test_the_report_needs_nothing_but_itself(written: Path) -> None:
    page = (written / "report.html").read_text()
    assert page.count("data:image/svg+xml;base64,") == len(FEW)
    links = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert all(link.startswith(("data:", "#")) for link in links)
    assert "<script" not in page
    assert str(written) not in page


def test_the_report_is_the_same_for_the_same_seed_and_another_for_another(written: Path, tmp_path: Path) -> None:
    reproduce(FEW, Scale(quick=True, runs=3), out=tmp_path / "again")
    reproduce(FEW, Scale(quick=True, runs=3, seed=2), out=tmp_path / "other")
    first = {name: (written / name).read_bytes() for name in ("report.html", "fig1.png", "fig1.svg", "fig1.csv")}
    assert all((tmp_path / "again" / name).read_bytes() == content for name, content in first.items())
    assert all((tmp_path / "other" / name).read_bytes() != content for name, content in first.items())


def test_claims_are_counted_and_their_verdicts_marked() -> None:
    verdicts = (HOLDS, FAILS, IMPRECISE, UNTESTABLE, UNDECIDED, UNDECIDED)
    page = page_of(*(Claim("s. 1", "a", verdict, "") for verdict in verdicts), rows=[{"a": 1}])
    counted = "1 hold, 1 do not hold, 1 are imprecise, 1 cannot be tested at this size, 2 are undecided"
    assert f"Of 6 claims {counted}." in page
    assert page.count('<span class="verdict fails">does not hold</span>') == 2  # in the list of all, and in the item's own


def test_every_verdict_has_beside_it_how_often_it_flips() -> None:
    page = page_of(Claim("s. 1", "a", HOLDS, "", flips=0), Claim("s. 2", "b", UNDECIDED, "", flips=17), rows=[{"a": 1}])
    assert page.count('<span class="verdict holds">holds</span><br><small>flips in 0 of 1,000 re-draws</small>') == 2
    assert page.count('<span class="verdict open">undecided</span><br><small>flips in 17 of 1,000 re-draws</small>') == 2


def test_all_claims_are_left_as_a_table(written: Path) -> None:
    rows = list(csv.DictReader((written / "claims.csv").read_text().splitlines()))
    assert [row["item"] for row in rows] == ["fig1"] * 2 + ["reduction"] * 3
    assert [row["flips_of_1000"] for row in rows if row["verdict"] == HOLDS] == [
        ""
    ]  # the exact one; three runs decide nothing else
    assert {row["by"] for row in rows} == {"paper"}


def test_what_the_project_says_stands_apart_from_what_the_paper_says(written: Path) -> None:
    page = (written / "report.html").read_text()
    assert "this project says" not in page  # neither item corrects anything
    known = EXPERIMENTS["fig1"]
    finding = Finding(columns_of([{"a": 1}]), PanelFigure([Panel("", "x", "y", {})], None, ""), (), (Claim("", "ours", HOLDS, ""),))
    own = reproduction_page([report_item(known, finding, embedded(b"<svg/>", "", width_rem=30.0))], Scale(quick=True))
    assert "Of 0 claims" in own
    assert own.index("this project says") < own.index("ours")


def test_claims_titles_and_tables_are_escaped() -> None:
    first, second, third, _ = NAMES
    assert_escaped(page_of(Claim(first, second, HOLDS, third), rows=[{"a": 1}]), NAMES[:3])
    assert_escaped(page_of(rows=[{"a": first, second: third}]), NAMES[:3])
    assert_escaped(page_of(rows=[{"a": 1}], title=first), (first,))


def test_a_long_table_is_cut_and_the_page_says_so() -> None:
    page = page_of(rows=[{"number": 1000 + number} for number in range(100)])
    assert "100 rows of fig1.csv" in page
    assert "40 more rows in the CSV" in page
    assert "1,059" in page
    assert "1,060" not in page
