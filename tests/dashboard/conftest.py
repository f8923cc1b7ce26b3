import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page

from tests.dashboard.browser import ABSENT, find_browser, launched
from tests.service.conftest import Service

WAIT_MS = 5000
"""How long an expectation may take to come true."""


class Watched:
    """A page of its own session. It notes console errors, failures of the script and requests to other hosts."""

    def __init__(self, page: Page, base: str) -> None:
        self.page, self.base = page, base
        self.tolerated = "Failed to load resource: the server responded"
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        self.refused: list[int] = []
        page.set_default_timeout(WAIT_MS)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith((base, "data:")) else self.elsewhere.append(request.url))
        page.on("response", lambda answer: self.refused.append(answer.status) if answer.status >= 400 else None)

    def _console(self, message: Any) -> None:
        # The browser reports every answer of 400 and above; `refused` has those, and a test that expects one says so.
        if message.type in ("error", "warning") and not re.match(self.tolerated, message.text):
            self.errors.append(message.text)

    def open(self, path: str) -> Page:
        """Go to a page of the service."""
        self.page.goto(self.base + path)
        return self.page

    def check(self) -> None:
        """Nothing went wrong, and nothing was loaded from elsewhere."""
        assert self.errors == []
        assert self.elsewhere == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = find_browser()
    if path is None:
        pytest.skip(ABSENT)
    with launched(path) as browser:
        yield browser


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """`thrifty serve` on an empty store, for the tests of a module."""
    folder: Path = tmp_path_factory.mktemp("dashboard")
    started = Service(f"sqlite:///{folder / 'service.db'}", "--log-level", "warning").start()
    yield started
    started.stop()


@pytest.fixture
def visit(browser: Browser, service: Service) -> Iterator[Callable[..., Watched]]:
    """Opens pages as different visitors; at the end none of them has seen an error, or a refusal that was not `expected`."""
    visitors: list[tuple[Watched, set[int]]] = []

    def begin(key: str | None = None, *, expected: set[int] = frozenset(), **context: Any) -> Watched:  # type: ignore[assignment]
        page = browser.new_context(**context).new_page()
        if key is not None:
            page.add_init_script(f"sessionStorage.setItem('thrifty-key', {key!r})")
        watched = Watched(page, service.url)
        visitors.append((watched, expected))
        return watched

    yield begin
    for watched, expected in visitors:
        watched.page.context.close()
        watched.check()
        assert set(watched.refused) <= expected, watched.refused


@pytest.fixture
def api(service: Service) -> Iterator[httpx.Client]:
    """Calls to the service without a browser."""
    with httpx.Client(base_url=service.url, timeout=30.0) as client:
        yield client
