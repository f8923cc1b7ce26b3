"""`python -m tests.dashboard.screenshots`: pictures of every page with simulated traffic, for the documentation.

It runs `thrifty serve --traffic` on a store of its own until the simulated outage is over, which takes five minutes.
"""

import argparse
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.dashboard.browser import ABSENT, find_browser, install_browser, launched
from tests.service.conftest import free_port

FOLDER = Path(__file__).parents[2] / "docs" / "assets" / "dashboard"
ROUTER = "/routers/sms-demo-gb"
COLOURS = 96
"""Colours of a picture: files stay small, and text stays sharp."""


@contextmanager
def demo() -> Iterator[str]:
    """A service with simulated traffic."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        store = f"sqlite:///{folder}/demo.db"
        command = [sys.executable, "-m", "thrifty.cli", "serve", "--traffic", "--log-level", "error", "--store", store, "--port"]
        process = subprocess.Popen([*command, str(port)], stdout=subprocess.DEVNULL)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def keep(page: Page, name: str, *, of: str | None = None, whole: bool = False) -> None:
    """Write a picture of the page, or of one element."""
    page.evaluate("document.activeElement.blur()")
    taken = page.locator(of).screenshot() if of else page.screenshot(full_page=whole)
    picture = Image.open(io.BytesIO(taken)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    picture.save(FOLDER / f"{name}.png", optimize=True)
    print(f"{name}.png {(FOLDER / f'{name}.png').stat().st_size // 1024} kB", flush=True)


def visit(browser: Browser, url: str, *, width: int = 1240, height: int = 900, scheme: str = "light") -> Page:
    """A page in a window of this size."""
    page = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme).new_page()  # type: ignore[arg-type]
    page.goto(url)
    expect(page.locator("[data-part].waiting")).to_have_count(0, timeout=15_000)
    page.wait_for_timeout(1500)
    return page


def during_the_outage(browser: Browser, url: str) -> None:
    """The alarm."""
    keep(visit(browser, url, height=640), "overview")
    keep(visit(browser, url + ROUTER, height=1120), "alarm")


def after_the_outage(browser: Browser, url: str) -> None:
    """All other pages."""
    page = visit(browser, url + ROUTER, height=1120)
    keep(page, "router")
    keep(page, "over-time", of="#time")
    keep(page, "what-if", of="#what-if")
    keep(page, "changes", of="#changes")
    page.locator("table[data-of=arms]").get_by_role("button", name="Change Elm").click()
    expect(page.locator("#lever-preview")).not_to_be_empty()
    keep(page, "lever", of="#lever-dialog")
    keep(visit(browser, f"{url}{ROUTER}/segments/o2", height=1120), "segment")
    keep(visit(browser, f"{url}/keys", height=520), "keys")
    keep(visit(browser, url + ROUTER, height=1120, scheme="dark"), "router-dark")
    keep(visit(browser, url + ROUTER, width=390, height=1120), "router-phone")


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outage-s", type=float, default=185.0, help="seconds until the pictures of the outage")
    parser.add_argument("--after-s", type=float, default=300.0, help="seconds until the other pictures")
    options = parser.parse_args()
    if find_browser() is None:
        install_browser()
    path = find_browser()
    if path is None:
        sys.exit(ABSENT)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with demo() as url, launched(path) as browser:
        started = time.monotonic()
        while time.monotonic() - started < options.outage_s:
            time.sleep(1.0)
        httpx.get(f"{url}/readyz").raise_for_status()
        during_the_outage(browser, url)
        while time.monotonic() - started < options.after_s:
            time.sleep(1.0)
        after_the_outage(browser, url)


if __name__ == "__main__":
    main()
