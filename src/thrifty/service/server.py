"""The server: uvicorn with uvloop and httptools around the application."""

import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from thrifty.service.app import App, JsonLines
from thrifty.service.config import Config
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
    server = _Server(
        uvicorn.Config(
            app, host=config.host, port=config.port, loop="uvloop", http="httptools", lifespan="on", access_log=False,
            log_config=None, timeout_graceful_shutdown=10, ws="none", server_header=False, date_header=False,
        )
    )  # fmt: skip
    logging.getLogger("thrifty.service").info(
        "listening", extra={"facts": {"url": f"http://{config.host}:{config.port}", "store": config.store.split("@")[-1]}}
    )
    sys.setswitchinterval(SWITCH_S)
    server.run()
