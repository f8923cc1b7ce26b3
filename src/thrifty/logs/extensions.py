"""Extensions of DuckDB, with which a query reaches S3, Iceberg and PostgreSQL.

An extension is loaded when DuckDB says that it is needed: from a Python package such as duckdb-extension-httpfs if one is
installed, else from where DuckDB keeps or downloads its own. DuckDB checks the signature of either.
"""

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from thrifty.logs.polars_extra import first_line

Result = TypeVar("Result")

_NEEDED = re.compile(r"required extension '(\w+)|exists in the (\w+) extension")


def run_with_extensions(connection: Any, work: Callable[[], Result], asker: str) -> Result:
    """Do some work on a connection; the extensions that it turns out to need are loaded. `asker` names the setting that needs them.

    >>> import duckdb
    >>> with duckdb.connect() as connection:
    ...     run_with_extensions(connection, lambda: connection.sql("select 1").fetchall(), "--query 'select 1'")
    [(1,)]
    """
    import duckdb

    connection.execute("SET autoinstall_known_extensions = false")
    loaded: set[str] = set()
    while True:
        try:
            return work()
        except (duckdb.Error, RuntimeError) as error:
            name = _needed(error)
            if name is None or name in loaded:
                raise
            loaded.add(name)
            load_extension(connection, name, asker)


def load_extension(connection: Any, name: str, asker: str) -> None:
    """Load an extension, and those that it needs itself; a ValueError that says how to get it if it is not to be had."""
    import duckdb

    file = _packaged(name) / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"

    def load() -> None:
        if file.is_file():
            quoted = str(file).replace("'", "''")
            connection.execute(f"LOAD '{quoted}'")
        else:
            connection.execute(f"INSTALL {name}")
            connection.execute(f"LOAD {name}")

    try:
        run_with_extensions(connection, load, asker)
    except (duckdb.Error, RuntimeError) as error:
        raise ValueError(f"{asker} needs DuckDB's extension {name}, {_remedy(name, error)}") from None


def _needed(error: Exception) -> str | None:
    """The extension that an error of DuckDB names as missing."""
    found = _NEEDED.search(str(error))
    return None if found is None else found[1] or found[2]


def _packaged(name: str) -> Path:
    """Where the Python package of an extension has its files, in a folder for each version of DuckDB."""
    spec = find_spec(f"duckdb_extension_{name}")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return Path(next(iter(folders), "none")) / "extensions"


def _remedy(name: str, error: Exception) -> str:
    import duckdb

    package = f"duckdb-extension-{name.replace('_', '-')}"
    versions = sorted(folder.name.removeprefix("v") for folder in _packaged(name).glob("v*"))
    if versions and duckdb.__version__ not in versions:
        return f"and {package} is for DuckDB {versions[-1]} while {duckdb.__version__} runs: pip install duckdb=={versions[-1]}"
    reason = first_line(error).split(" at URL")[0]
    return (
        f"which cannot be had here ({reason:.120}): pip install {package} (it brings the DuckDB that it is for), "
        f"run INSTALL {name} in DuckDB where there is a network, or copy the rows to a file here"
    )
