"""The browser of the tests and the screenshots: an installed Chrome or Chromium, or Debian's, installed where that is allowed.

`python -m tests.dashboard.browser` looks for one, installs it if need be, and says in one line what is left out if there is none.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ABSENT = "left out: the browser tests of the dashboard, because there is no Chrome or Chromium and none can be installed here"
INSTALL_S = 600.0
"""Seconds that each step of the installation gets: without a network apt may wait for very long."""

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_browser() -> str | None:
    """The path of an installed browser."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def install_browser() -> None:
    """Install Debian's Chromium, if this is root on a Debian."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        for command in (["apt-get", "update", "-q"], ["apt-get", "install", "-qy", "--no-install-recommends", "chromium"]):
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=INSTALL_S)


@contextmanager
def launched(path: str) -> Iterator[Browser]:
    """A running browser without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


if __name__ == "__main__":
    if find_browser() is None:
        install_browser()
    if find_browser() is None:
        print(ABSENT)
    sys.exit(0)
