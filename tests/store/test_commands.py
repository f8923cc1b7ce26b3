"""`thrifty export`, `backup` and `repair` on the command line."""

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import Postgres
from tests.store.test_journal import change, decision, outcome, write
from thrifty.cli.main import main
from thrifty.router import Router
from thrifty.store import Row, open_store
from thrifty.store.sqlite import SqliteStore


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with two routers and a service running on neither."""
    store = SqliteStore(tmp_path / "r.db")
    for name in ("mail", "sms"):
        write(store.journal(name), change("create"), decision(1), outcome(1))
    store.close()
    return f"sqlite:///{tmp_path / 'r.db'}"


class RowError(Exception):
    """As the router raises it for a row that cannot be applied."""

    def __init__(self, position: int, row: Row, cause: Exception) -> None:
        super().__init__(f"row {position}: {cause}")
        self.position, self.row, self.cause = position, row, cause


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Routers that cannot apply a change whose detail names the policy `oracle`."""

    def reopen(name: str, store: Any) -> None:
        for position, row in store.journal(name).read(0):
            if "oracle" in str(row.detail):
                raise RowError(position, row, ValueError("there is no policy 'oracle'"))
            if "deleted.py" in str(row.detail):
                raise FileNotFoundError("deleted.py")

    monkeypatch.setattr(Router, "reopen", reopen)


def test_the_store_may_stand_in_the_environment(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("THRIFTY_STORE", raising=False)
    out = str(tmp_path / "log.csv")
    assert main(["export", "--out", out]) == 2
    assert "name the store (sqlite:///FILE or postgresql://USER@HOST/DATABASE), or set THRIFTY_STORE" in capsys.readouterr().err
    monkeypatch.setenv("THRIFTY_STORE", url)
    assert main(["export", "--out", out]) == 0
    assert capsys.readouterr().out.startswith("2 decisions written")
    assert main(["backup", str(tmp_path / "copy.db")]) == 0
    assert capsys.readouterr().out == f"6 rows of the log copied to {tmp_path / 'copy.db'}\n"
    assert main(["export", f"sqlite:///{tmp_path / 'nothing.db'}", "--out", out]) == 2  # what is named counts
    assert "nothing.db" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["export", "--out", "x.csv"], ["prune", "--keep-days", "1"], ["backup", "c.db"], ["repair"]])
def test_no_command_makes_a_store_by_accident(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THRIFTY_STORE", "sqlite:///tpyo.db")
    assert main(command) == 2
    error = capsys.readouterr().err
    assert "there is no store tpyo.db: check the path" in error
    assert "thrifty serve --store sqlite:///tpyo.db" in error
    assert list(tmp_path.iterdir()) == []


def test_a_running_store_is_copied_and_an_existing_file_is_left_alone(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = open_store(url)
    copy = tmp_path / "copy.db"
    assert main(["backup", url, str(copy)]) == 0
    running.journal("sms").wait(running.journal("sms").append(decision(2)))
    before = copy.read_bytes()
    capsys.readouterr()
    assert main(["backup", url, str(copy)]) == 2
    assert "exists already: name a file that does not, nothing was written" in capsys.readouterr().err
    assert copy.read_bytes() == before
    running.close()
    opened = SqliteStore(copy)
    assert len(list(opened.journal("sms").scan())) == 3
    opened.close()


def test_a_copy_of_postgresql_is_left_to_its_own_tool(
    postgres: Postgres, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = postgres.database()
    open_store(url).close()
    assert main(["backup", url, str(tmp_path / "copy.db")]) == 2
    assert "use pg_dump --schema=thrifty" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("strict")
def test_repair_says_which_routers_open_and_why_others_do_not(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repair", url]) == 0
    assert capsys.readouterr().out == "mail: ok\nsms: ok\n"
    store = open_store(url)
    (place,) = write(store.journal("sms"), change("settings", 1000)._replace(detail='{"policy": "oracle"}'))
    write(store.journal("mail"), change("settings")._replace(detail='{"policy": "/tmp/deleted.py"}'))
    store.close()
    assert main(["repair", url]) == 2
    said = capsys.readouterr()
    assert said.out == (
        "mail: cannot be opened: FileNotFoundError: deleted.py\n"
        f"sms: row {place} cannot be applied: ValueError: there is no policy 'oracle'\n"
        f"  position {place}, kind change, code settings, time 1970-01-01T00:16:40+00:00\n"
        '  detail {"policy": "oracle"}\n'
    )
    assert "2 of 2 routers cannot be opened: mail, sms" in said.err
    assert "--void POSITION --reason TEXT" in said.err
    assert main(["repair", url, "--router", "sms"]) == 2
    assert "1 of 1 routers" in capsys.readouterr().err


@pytest.mark.usefixtures("strict")
def test_repair_voids_a_row_once_it_is_confirmed(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = open_store(url)
    (place,) = write(store.journal("sms"), change("settings")._replace(detail='{"policy": "oracle"}'))
    store.close()
    command = ["repair", url, "--void", str(place), "--reason", "no such policy"]
    assert main(command) == 2
    assert "nothing was voided: there is no terminal to ask on, add --yes" in capsys.readouterr().err
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _question: "")
    assert main(command) == 2
    assert capsys.readouterr().err.endswith("nothing was voided\n")
    monkeypatch.setattr("builtins.input", lambda _question: "y")
    assert main(command) == 0
    assert f"sms: ok\n  row {place} is void: no such policy\n" in capsys.readouterr().out
    assert main(["repair", url]) == 0


@pytest.mark.usefixtures("strict")
def test_repair_refuses_rows_that_are_not_there_and_half_a_command(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repair", url, "--void", "1"]) == 2
    assert "--void POSITION and --reason TEXT belong together" in capsys.readouterr().err
    assert main(["repair", url, "--void", "999", "--reason", "x", "--yes"]) == 2
    assert "there is no row 999 in the log of mail, sms" in capsys.readouterr().err
    assert main(["repair", url, "--router", "sms", "--void", "1", "--reason", "x", "--yes"]) == 2  # it is of the other router
    assert "there is no row 1 in the log of sms" in capsys.readouterr().err
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        assert connection.execute("SELECT count(*) FROM voided").fetchone() == (0,)
    connection.close()


def test_repair_voids_on_postgresql_too(postgres: Postgres, strict: None, capsys: pytest.CaptureFixture[str]) -> None:
    del strict
    url = postgres.database()
    store = open_store(url)
    places = write(store.journal("sms"), change("create"), change("settings")._replace(detail='{"policy": "oracle"}'))
    store.close()
    assert main(["repair", url]) == 2
    assert main(["repair", url, "--void", str(places[1]), "--reason", "no such policy", "--yes"]) == 0
    assert "sms: ok" in capsys.readouterr().out
