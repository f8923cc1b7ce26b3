"""Where there is no browser and none can be installed, one line says so, and nothing fails or waits for ever."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dashboard import browser

ROOT = Path(__file__).parents[2]


def fake_apt(folder: Path, script: str) -> str:
    path = folder / "apt-get"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("script", ["exit 100", None], ids=["apt fails", "no apt"])
def test_without_a_browser_one_line_says_what_is_left_out(tmp_path: Path, script: str | None) -> None:
    path = str(tmp_path) if script is None else fake_apt(tmp_path, script)
    command = [sys.executable, "-m", "tests.dashboard.browser"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{browser.ABSENT}\n", "")


def test_an_installation_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", fake_apt(tmp_path, "exec /bin/sleep 60"))
    monkeypatch.setattr(browser, "INSTALL_S", 0.2)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    browser.install_browser()
    assert browser.find_browser() is None
