"""Runs the blocks of a documentation page in order, in one folder, as a reader would."""

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PORT = "8321"
"""The port in the text; a free one takes its place."""

_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
_SAME = doctest.OutputChecker()
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A fenced block: its language, the file it is to be saved as, its text, its line, and if it stands right below another."""

    language: str
    file: str
    body: str
    line: int
    adjacent: bool


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text()
    found, end = [], 0
    for match in _FENCE.finditer(text):
        info = match["info"].strip()
        title = re.search(r'title="([^"]+)"', info)
        language = info.split()[0] if info else ""
        line, adjacent = text.count("\n", 0, match.start()) + 2, not text[end : match.start()].strip()
        found.append(Block(language, title[1] if title else "", match["body"], line, adjacent))
        end = match.end()
    return found


class Reader:
    """Runs blocks: Python in one namespace, shell commands in one folder, `thrifty serve` beside them.

    A `text` block right below a block that ran is what it must print; `...` stands for anything.
    """

    def __init__(self, folder: Path, **names: Any) -> None:
        self._folder, self._names = folder, {"__name__": "page", **names}
        self._port = str(_free_port())
        self._service: subprocess.Popen[bytes] | None = None
        self._printed: str | None = None
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        if shutil.which("curl") is None:
            path = f"{_make_curl(folder)}{os.pathsep}{path}"
        self._environment = {**os.environ, "PATH": path, "COLUMNS": "200"}

    def read(self, page: Path) -> int:
        """Run every block of a page; the number of blocks that ran."""
        ran = 0
        with contextlib.chdir(self._folder):
            for block in blocks(page):
                ran += self._take(block, f"{page.relative_to(ROOT)}:{block.line}")
        return ran

    def close(self) -> None:
        """Stop the service, if one runs."""
        if self._service is not None:
            self._service.send_signal(signal.SIGINT)
            self._service.wait(timeout=30)
            self._service = None

    def _take(self, block: Block, where: str) -> bool:
        body = block.body.replace(PORT, self._port)
        if block.file:
            Path(block.file).write_text(body)
        elif block.language == "python":
            self._printed = self._run_python(body, where)
        elif block.language == "bash" and body.startswith("thrifty serve"):
            self._serve(body)
            self._printed = None
        elif block.language == "bash":
            self._printed = self._run_shell(body, where)
        else:
            if block.language == "text" and block.adjacent and self._printed is not None:
                assert _SAME.check_output(body, self._printed, _FLAGS), f"{where}: it printed\n{self._printed}"
            self._printed = None
            return False
        return True

    def _run_python(self, body: str, where: str) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(body, where, "exec"), self._names)
        return printed.getvalue()

    def _run_shell(self, body: str, where: str) -> str:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", body], env=self._environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{where}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _serve(self, command: str) -> None:
        self.close()
        self._service = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(1200):
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(f"http://127.0.0.1:{self._port}/readyz", timeout=5).close()
                return
            assert self._service.poll() is None, f"the service ended: {command}"
            time.sleep(0.05)
        raise AssertionError(f"the service did not start: {command}")


def _make_curl(folder: Path) -> Path:
    """A folder with a stand-in for curl."""
    place = folder / ".bin"
    place.mkdir()
    (place / "curl").write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(ROOT / "tests" / "curl.py"))} "$@"\n'
    )
    (place / "curl").chmod(0o755)
    return place


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
