"""The server: uvicorn with uvloop and httptools around the application."""

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import uvicorn

from thrifty.service.app import App
from thrifty.service.config import Config
from thrifty.service.declarations import ConfigFile
from thrifty.service.frontiers import FromLog
from thrifty.service.json_log import log_as_json
from thrifty.service.protocol import HotProtocol
from thrifty.store import open_store

SWITCH_S = 0.0005
"""How long a thread may keep the interpreter while another waits for it: the writer should not wait 5 ms to begin a commit."""

BACKLOG = 2048
"""Connections that the system keeps until they are accepted."""

log = logging.getLogger("thrifty.service")


class DrainingServer(uvicorn.Server):
    """A server that drains on SIGINT and SIGTERM, and ends at once on the second one."""

    def __init__(self, config: uvicorn.Config, app: App) -> None:
        super().__init__(config)
        self._service = app

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle the signals, and do not raise them once more when everything is done, as uvicorn would."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        if self._service.reconciler is not None:
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self.handle_reload)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_reload(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Have the configuration file read again. Without one SIGHUP ends the process, as a closed terminal should."""
        assert self._service.reconciler is not None
        self._service.reconciler.request()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop accepting and finish open requests; what was acknowledged is durable, so a second signal may end it at once."""
        if self.should_exit:
            os._exit(128 + sig)
        self._service.draining = self.should_exit = True


def how_to_run(app: App) -> dict[str, Any]:
    """Settings of uvicorn besides where to listen."""
    return {
        "loop": "uvloop",
        "http": partial(HotProtocol, app),
        "lifespan": "on",
        "access_log": False,
        "log_config": None,
        "timeout_graceful_shutdown": app.config.drain_s,
        "ws": "none",
        "server_header": False,
        "date_header": False,
    }


def serve(
    config: Config,
    *,
    file: ConfigFile | None = None,
    check: Callable[[Any], None] | None = None,
    listening: Callable[[str], None] | None = None,
    frontier: FromLog | None = None,
) -> None:
    """Run until SIGINT or SIGTERM; then finish open requests, keep snapshots and flush.

    Parameters
    ----------
    config : how
    file : the configuration file, whose routers are made at the start and whenever SIGHUP comes
    check : is given the open store before anything is done with it, and may raise a ValueError
    listening : is given the URL once the port is taken
    frontier : reads the frontier of a router from its log; without it, frontiers are estimated from sums

    """
    log_as_json(config.log_level)
    sockets = bind(config.host, config.port)
    try:
        store = open_store(config.store, degraded_s=config.degraded_s)
        try:
            if check is not None:
                check(store)
            app = App(config, store, file=file, frontier=frontier)
        except Exception:
            store.close()
            raise
    except Exception:
        for each in sockets:
            each.close()
        raise
    host = f"[{config.host}]" if ":" in config.host else config.host
    url = f"http://{host}:{sockets[0].getsockname()[1]}"
    log.info("listening", extra={"facts": {"url": url, "store": config.store.split("@")[-1]}})
    if listening is not None:
        listening(url)
    sys.setswitchinterval(SWITCH_S)
    DrainingServer(uvicorn.Config(app, **how_to_run(app)), app).run(sockets=sockets)


def bind(host: str, port: int) -> list[socket.socket]:
    """Listening sockets on every address of a host, or a ValueError."""
    sockets: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found[: None if port else 1]):
            sockets.append(socket.create_server(address, family=family, backlog=BACKLOG))
    except OSError as error:
        for each in sockets:
            each.close()
        reason = error.strerror or str(error)
        raise ValueError(f"cannot listen on {host}, port {port}: {reason}; choose another with --port") from None
    return sockets
