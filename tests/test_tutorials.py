"""Every block of the tutorials runs, and prints what the page says."""

from pathlib import Path

import pytest

from tests.pages import DOCS, Reader

BLOCKS = {"researcher": 11, "engineer": 12, "analyst": 10}
"""How many blocks of each tutorial run, so that none is passed over."""


@pytest.mark.parametrize("name", BLOCKS)
def test_a_tutorial_runs_from_beginning_to_end(name: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    try:
        assert reader.read(DOCS / "tutorials" / f"{name}.md") == BLOCKS[name]
    finally:
        reader.close()
