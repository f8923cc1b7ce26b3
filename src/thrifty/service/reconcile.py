"""Reconciling: the routers of the configuration file are made or changed, at the start and on SIGHUP; drift is shown.

What is changed in the file is carried out. What somebody changed by hand and nobody changed in the file stays, and is shown as
drift, unless the setting `reconcile` is "enforce". Routers that the file does not declare are left alone.
"""

import logging
import os
import threading
import time
from typing import Any

from thrifty.router import Router
from thrifty.router.changing import make_changes
from thrifty.router.field_log import FieldLog
from thrifty.service.declarations import ConfigFile, Declaration
from thrifty.service.drift import Difference, differences, wanted_changes
from thrifty.service.errors import ServiceProblemError
from thrifty.service.routers import Routers
from thrifty.store import StoreError

LOOK_S = 30.0
"""How often drift is looked for, to log it and to count it for the metrics."""

REMEDY = "nothing was changed: mend the file and send SIGHUP again"

NO_FILE: dict[str, Any] = {"file": None, "reconcile": None, "read_at": None, "error": None, "needs_restart": [], "routers": []}
"""The drift of a service that was started without a file."""

log = logging.getLogger("thrifty.service")


class Reconciler:
    """Makes routers as a file declares them. All but `request` and `counts` is slow: call it from a worker thread.

    Parameters
    ----------
    routers : the routers of the service
    file : the file as it was read at the start

    """

    def __init__(self, routers: Routers, file: ConfigFile) -> None:
        self._routers, self._file, self._first = routers, file, file
        self._by = f"file {os.path.basename(file.name)}"
        self._lock = threading.Lock()
        self._logs: dict[str, FieldLog] = {}
        self._problems: dict[str, str] = {}
        self._shown: dict[str, list[Difference]] = {}  # what was logged last
        self._read_at, self._look_at, self.error = 0.0, 0.0, ""
        self._wanted = True  # whether the file is to be carried out
        self._again = False  # whether it is to be read first

    @property
    def starting(self) -> bool:
        """True until the file was carried out for the first time."""
        return self._read_at == 0.0

    def request(self) -> None:
        """Ask for the file to be read again; for signal handlers."""
        self._again = self._wanted = True

    def counts(self) -> dict[str, float]:
        """How many fields of each declared router differed when it was last looked at."""
        return {name: float(len(found)) for name, found in self._shown.items()}

    def tick(self) -> None:
        """Do what is to be done; called a few times a second."""
        if self._routers.starting:
            return
        with self._lock:
            if self._again:
                self._again = False
                self._read_again()
            if self._wanted:
                self._wanted = not self._carry_out()
            elif time.monotonic() < self._look_at:
                return
            self._look_at = time.monotonic() + LOOK_S
            self._log_drift()

    def _read_again(self) -> None:
        """Read the file; a broken one changes nothing."""
        try:
            self._file = self._file.again()
        except ValueError as error:
            self.error, self._wanted = str(error), False
            log.error("configuration file refused", extra={"facts": {"error": str(error), "remedy": REMEDY}})
            return
        self.error = ""
        needed = self._needs_restart()
        if needed:
            log.warning("settings need a restart", extra={"facts": {"settings": needed}})

    def _needs_restart(self) -> list[str]:
        """Settings of the service that the file gives another value than the running service has."""
        now, running = self._file.config, self._first.config
        return [name for name in vars(now) if name != "reconcile" and getattr(now, name) != getattr(running, name)]

    # -- carrying out ------------------------------------------------------------------------------------------------

    def _carry_out(self) -> bool:
        """Make all routers as declared; False if it is to be tried again, because some are being opened."""
        self._problems = {}
        for name, wanted in self._file.routers.items():
            try:
                self._put(name, wanted)
            except StoreError:
                raise  # the store is away: all of it is tried again
            except (ValueError, ServiceProblemError) as error:
                if isinstance(error, ServiceProblemError) and error.code == "loading":
                    return False
                self._problems[name] = str(error)
                log.error("declared router refused", extra={"facts": {"router": name, "error": str(error)}})
        self._read_at = time.time()
        log.info("configuration file carried out", extra={"facts": {"file": self._file.name, "routers": len(self._file.routers)}})
        return True

    def _put(self, name: str, wanted: Declaration) -> None:
        known, enforce = self._known(name), self._file.config.reconcile == "enforce"
        if known.deleted and known.declared == wanted.to_dict() and not enforce:
            return  # deleted by hand since
        try:
            router = self._routers.router(name)
        except ServiceProblemError as problem:
            if problem.status != 404:
                raise
            router, _ = self._routers.put(name, wanted.request, by=self._by)
            known = self._known(name)
        last = known.declared

        def changes(state: Any) -> Any:
            return wanted_changes(wanted, last, state.arms, state.settings, enforce=enforce, by=self._by)

        version = router.version
        make_changes(router, changes)
        if router.version != version:
            log.info("declared router changed", extra={"facts": {"router": name, "by": self._by}})

    def _known(self, name: str) -> FieldLog:
        """What the log says of a router, as far as it is durable."""
        found = self._logs.setdefault(name, FieldLog(self._routers.store.journal(name)))
        found.read()
        return found

    # -- drift -------------------------------------------------------------------------------------------------------

    def drift(self) -> dict[str, Any]:
        """How the routers differ from the file now."""
        with self._lock:
            file = self._file
            found = [self._of_router(name) for name in sorted({*file.routers, *self._routers.names()})]
            return {
                "file": os.path.basename(file.name),
                "reconcile": file.config.reconcile,
                "read_at": self._read_at or None,
                "error": self.error or None,
                "needs_restart": self._needs_restart(),
                "routers": found,
            }

    def _of_router(self, name: str) -> dict[str, Any]:
        if name not in self._file.routers:
            return {"name": name, "state": "not declared", "differences": [], "problem": None}
        found, problem = self._differences(name), self._problems.get(name)
        state = "refused" if problem else "drifted" if found else "as declared"
        return {"name": name, "state": state, "differences": [each.to_dict() for each in found], "problem": problem}

    def _differences(self, name: str) -> list[Difference]:
        known, wanted = self._known(name), self._file.routers[name]
        try:
            router: Router = self._routers.router(name)
        except ServiceProblemError as problem:
            missing = problem.status == 404
            who, actual = (known.set_by.get("router"), "missing") if missing else (None, problem.code)
            return [Difference("router", "in service", actual, None if who is None else who.by, who and who.at)]
        with router.lock:
            arms, settings, started = router.arms.copy(), router.settings, router.state.configuration.known
        return differences(wanted, arms, settings, known.set_by, known=started)

    def _log_drift(self) -> None:
        """Log what is new of the drift, and count it."""
        shown = {name: self._differences(name) for name in self._file.routers}
        for name, found in shown.items():
            for each in found:
                if each not in self._shown.get(name, []):
                    facts = each.to_dict()
                    facts["changed_at"] = facts.pop("at")  # a line has a time of its own
                    log.warning("drift", extra={"facts": {"router": name, **facts}})
            if self._shown.get(name) and not found:
                log.info("no drift any more", extra={"facts": {"router": name}})
        self._shown = shown
