"""`python -m tests.mutation.run` on a part of the modules or mutants."""

import os
import subprocess
import sys

import pytest

from tests.mutation.page import page_path
from tests.pages import ROOT


@pytest.mark.parametrize("part", [["no_such_module"], ["no_such_module", "--sample", "1"]])
def test_a_part_of_the_mutants_leaves_the_page_of_all_alone(part: list[str]) -> None:
    page = page_path(ROOT, partial=False)
    before = page.stat().st_mtime_ns, page.read_bytes()
    command = [sys.executable, "-m", "tests.mutation.run", *part]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, env=os.environ)
    assert "written: .mutation/mutation.md" in process.stdout
    assert page == ROOT / "docs" / "mutation.md"
    assert (page.stat().st_mtime_ns, page.read_bytes()) == before
