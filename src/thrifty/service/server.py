"""The server: uvicorn with uvloop and httptools around the application."""

import json
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvicorn

from thrifty.service.app import App
from thrifty.service.config import Config
from thrifty.service.protocol import HotProtocol
from thrifty.store import open_store

SWITCH_S = 0.0005
"""How long a thread may keep the interpreter while another waits for it: the writer should not wait 5 ms to begin a commit."""


class _Server(uvicorn.Server):
    """A server that ends well on SIGINT and SIGTERM, instead of raising them once more when everything is done."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, event, and what else is known."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        said = {
            "at": round(record.created, 3), "level": record.levelname.lower(), "logger": record.name, "event": record.getMessage(),
            **getattr(record, "facts", {}),
        }  # fmt: skip
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return json.dumps(said, default=str)


def how_to_run(app: App) -> dict[str, Any]:
    """What uvicorn is told besides where to listen."""
    return {
        "loop": "uvloop", "http": partial(HotProtocol, app), "lifespan": "on", "access_log": False, "log_config": None,
        "timeout_graceful_shutdown": 10, "ws": "none", "server_header": False, "date_header": False,
    }  # fmt: skip


def serve(config: Config) -> None:
    """Run until SIGINT or SIGTERM; then finish what is under way, keep snapshots and flush."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=config.log_level.upper(), handlers=[handler], force=True)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING if config.log_level != "debug" else logging.DEBUG)
    store = open_store(config.store, degraded_s=config.degraded_s)
    try:
        app = App(config, store)
    except ValueError:
        store.close()
        raise
    server = _Server(uvicorn.Config(app, host=config.host, port=config.port, **how_to_run(app)))
    logging.getLogger("thrifty.service").info(
        "listening", extra={"facts": {"url": f"http://{config.host}:{config.port}", "store": config.store.split("@")[-1]}}
    )
    sys.setswitchinterval(SWITCH_S)
    server.run()
