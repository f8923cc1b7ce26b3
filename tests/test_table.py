import numpy as np
import pytest

from thrifty.table import Table


def numbered(rows: int) -> Table:
    return Table({"t": np.arange(rows), "half": np.arange(rows) / 2})


def test_a_short_table_prints_whole() -> None:
    assert len(str(numbered(20)).splitlines()) == 21


def test_a_long_table_prints_both_ends_and_its_size() -> None:
    lines = str(numbered(4000)).splitlines()
    assert len(lines) == 1 + 8 + 1 + 8 + 1
    assert lines[1].split() == ["0", "0"]
    assert lines[9].split() == ["...", "..."]
    assert lines[-2].split() == ["3999", "1999.5"]
    assert lines[-1] == "4,000 rows, 16 of them shown"


@pytest.mark.parametrize("rows", [20, 4000])
def test_conversions_have_all_rows(rows: int) -> None:
    table = numbered(rows)
    assert len(table.to_csv().splitlines()) == 1 + rows
    assert len(table.to_pandas()) == rows
    assert len(table.to_polars()) == rows


def test_html_has_the_same_rows_and_is_escaped() -> None:
    assert numbered(20)._repr_html_().count("<tr>") == 21
    assert numbered(4000)._repr_html_().count("<tr>") == 1 + 8 + 1 + 8 + 1
    strange = Table({"<b>": np.array(["<script>alert(1)</script>", "&amp;"])}).to_html(caption="a < b")
    assert "<script>" not in strange
    assert "<th>&lt;b&gt;</th>" in strange
    assert "<td>&amp;amp;</td>" in strange
    assert "<caption>a &lt; b</caption>" in strange


def test_markdown_has_all_rows_and_bars_are_escaped() -> None:
    assert len(numbered(4000).to_markdown().splitlines()) == 2 + 4000
    assert numbered(2).to_markdown().splitlines()[1] == "|--:|--:|"
    assert Table({"policy": np.array(["a|b"])}).to_markdown().splitlines() == ["| policy |", "|---|", "| a\\|b |"]


def test_latex_has_all_rows_and_special_letters_are_escaped() -> None:
    assert len(numbered(4000).to_latex().splitlines()) == 6 + 4000
    lines = Table({"policy": np.array(["cs_ts:a=1&b"]), "5% to 95%": np.array([r"\x{y} $#~^<>"])}).to_latex().splitlines()
    assert lines[0] == r"\begin{tabular}{lr}"
    assert lines[2] == r"policy & 5\% to 95\% \\"
    head, tail = r"cs\_ts:a=1\&b & \textbackslash{}x\{y\} \$\#", r"\textasciitilde{}\textasciicircum{}\textless{}\textgreater{} \\"
    assert lines[4] == head + tail
