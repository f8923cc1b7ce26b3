"""Unpacking: compressed files, other encodings, what is piped in and the result of a query, as plain files in a temporary folder.

A log is read several times, and in pieces; a plain file on disk allows both without holding it in memory.
"""

import codecs
import gzip
import re
import shutil
import stat
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from thrifty.logs.extensions import load_extension, run_with_extensions
from thrifty.logs.polars_extra import first_line

PACKED = {".gz": "gzip", ".zst": "zstd"}
_PASSWORD = re.compile(r"://[^/@\s]*@")
_SECRET = re.compile(r"(?i)(password|secret_access_key|session_token|access_key_id)(\s*=\s*)[^&'\"\s]+")
_AS_TEXT = ("UUID", "INTERVAL", "HUGEINT", "UHUGEINT", "BIT", "BIGNUM", "TIME WITH TIME ZONE")  # polars has no type for these
_POSTGRES = ("postgresql://", "postgres://")
_MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst", b"PAR1": ".parquet", b"ARROW1": ".arrow"}
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # begins with the mark of UTF-16
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def packing(path: Path) -> str | None:
    """How a file is compressed, by the end of its name; None if it is not.

    >>> packing(Path("LOG.CSV.GZ"))
    'gzip'
    """
    return PACKED.get(path.suffix.lower())


def is_piped(path: Path) -> bool:
    """True if a path is a pipe, such as /dev/stdin or a process substitution of the shell."""
    try:
        kind = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISCHR(kind) or stat.S_ISSOCK(kind)


def spool(source: str, folder: Path) -> Path:
    """Copy what is piped in (source "-" or a pipe) into a file of the folder; its name ends as its content demands."""
    if source == "-" and (sys.stdin is None or sys.stdin.closed or sys.stdin.isatty()):
        raise ValueError("the log is - and nothing is piped in: pipe a log in, or name a file")
    path = folder / "stdin"
    stream = sys.stdin.buffer if source == "-" else Path(source).open("rb")  # noqa: SIM115
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)
    with path.open("rb") as file:
        start = file.read(64)
    suffix = content_suffix(path)
    named = folder / f"stdin{suffix or _text_suffix(start)}"
    path.rename(named)
    if suffix in PACKED:
        plain = unpack(named, folder, None)
        with plain.open("rb") as file:
            start = file.read(64)
        return plain.rename(folder / f"plain{_text_suffix(start)}")
    return named


def _text_suffix(start: bytes) -> str:
    return ".jsonl" if start.lstrip(b"\xef\xbb\xbf \r\n").startswith(b"{") else ".csv"


def content_suffix(path: Path) -> str | None:
    """How the name of a file should end by its first bytes, if they show it."""
    with path.open("rb") as file:
        start = file.read(8)
    return next((suffix for magic, suffix in _MAGIC.items() if start.startswith(magic)), None)


def has_mark(path: Path) -> bool:
    """Whether a file begins with the byte order mark of UTF-8."""
    with path.open("rb") as file:
        return file.read(3) == codecs.BOM_UTF8


def _full(suffix: str, path: Path) -> str:
    return f"{path.suffix}{suffix}" if suffix in PACKED else suffix


def foreign_encoding(path: Path, encoding: str | None) -> str | None:
    """The encoding of a text file if it is not UTF-8: as named, or as its byte order mark says. None if it is UTF-8."""
    with path.open("rb") as file:
        start = file.read(256)
    hidden = content_suffix(path)
    if hidden is not None:
        raise ValueError(f"{path} is a {hidden} file by its content: let its name end so, as in {path.stem}{_full(hidden, path)}")
    if encoding is None:
        marked = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
        if marked is None and start.count(0) > len(start) // 4:
            raise ValueError(f"{path} looks like UTF-16 without a byte order mark: name it with --encoding utf-16-le or utf-16-be")
        return marked
    try:
        known = codecs.lookup(encoding)
        if not known._is_text_encoding:
            raise LookupError
    except LookupError:
        raise ValueError(f"--encoding must be an encoding such as latin-1, cp1252 or utf-16, got {encoding!r}") from None
    return None if known.name == "utf-8" else known.name


def unpack(path: Path, folder: Path, encoding: str | None) -> Path:
    """Write a plain copy of a file into the folder: decompressed if its name says so, in UTF-8 if it has another encoding."""
    target = folder / f"{len(list(folder.iterdir()))}-{path.name if packing(path) is None else path.stem}"
    decoder = None if encoding is None else codecs.getincrementaldecoder(encoding)()
    try:
        with target.open("wb") as file:
            for piece in _pieces(path):
                file.write(piece if decoder is None else decoder.decode(piece).encode("utf-8"))
            if decoder is not None:
                decoder.decode(b"", final=True)
    except UnicodeError as error:
        raise ValueError(f"{path} is not {encoding} ({error}): name its encoding with --encoding") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"cannot unpack {path} ({error}): it was cut off or is not {packing(path)}; make it again") from None
    except OSError as error:
        raise ValueError(f"cannot unpack {path} into {folder}: {error.strerror or error}") from None
    return target


def _pieces(path: Path) -> Iterator[bytes]:
    """The content of a file, decompressed if its name says so."""
    if packing(path) == "zstd":
        yield from _zstd_pieces(path)
        return
    with gzip.open(path, "rb") if packing(path) == "gzip" else path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            yield piece


def _zstd_pieces(path: Path) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError:
        raise ValueError(f"{path} needs zstandard: pip install 'thrifty[replay]'") from None
    frame = None
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            while piece:
                frame = frame or zstandard.ZstdDecompressor().decompressobj()
                try:
                    yield frame.decompress(piece)
                except zstandard.ZstdError as error:
                    raise EOFError(str(error)) from None
                piece, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None:
        raise EOFError("it ends in the middle of a frame")


def _attach(connection: Any, url: str) -> None:
    """Attach a PostgreSQL database for reading, and make it the one that a query is about."""
    load_extension(connection, "postgres_scanner", f"--from {_POSTGRES[0]}...")
    quoted = url.replace("'", "''")
    connection.execute(f"ATTACH '{quoted}' AS remote (TYPE postgres, READ_ONLY)")
    connection.execute("USE remote")


def run_query(query: str, database: str | None, folder: Path) -> Path:
    """Write the result of a DuckDB query to a Parquet file of the folder; `database` is opened for reading only.

    Memory is bounded by DuckDB. The database is a DuckDB file, or a PostgreSQL database by its URL. A query may also reach S3 or
    Iceberg through extensions of DuckDB.
    """
    try:
        import duckdb
    except ImportError:
        raise ValueError("--query needs duckdb: pip install 'thrifty[replay]'") from None
    is_remote = database is not None and database.startswith(_POSTGRES)
    if database is not None and not is_remote and not Path(database).is_file():
        if "://" in database:
            raise ValueError(f"--from {_PASSWORD.sub('://', database)}: {in_a_query(database)}")
        raise ValueError(
            f"--from {database}: there is no such DuckDB file, and it is no URL such as postgresql://user@host/database"
        )
    path, shown = folder / "query.parquet", f"{without_secrets(query)!r:.200}"
    file = None if is_remote else database
    try:
        with duckdb.connect(file or ":memory:", read_only=file is not None) as connection:
            connection.execute("SET temp_directory = ?", [str(folder)])
            if is_remote:
                _attach(connection, str(database))
            kinds = [statement.type for statement in connection.extract_statements(query)]
            if kinds != [duckdb.StatementType.SELECT]:
                raise ValueError(f"--query must be one select, got {shown}")
            run_with_extensions(connection, lambda: _write_rows(connection, query, path), f"--query {shown}")
    except (duckdb.Error, RuntimeError) as error:
        raise ValueError(f"--query {shown} failed: {without_secrets(_reason(error))}") from None
    return path


def _write_rows(connection: Any, query: str, path: Path) -> None:
    """Write the rows of a query to a Parquet file. Unlike the relation's own method, `execute` lets other threads run meanwhile."""
    rows_of_the_query = connection.sql(query)  # DuckDB looks the name up
    names = [
        name.replace('"', '""')
        for name, kind in zip(rows_of_the_query.columns, rows_of_the_query.types, strict=True)
        if str(kind) in _AS_TEXT
    ]
    replaced = ", ".join(f'CAST("{name}" AS VARCHAR) AS "{name}"' for name in names)
    quoted = str(path).replace("'", "''")
    columns = f"* REPLACE ({replaced})" if names else "*"
    connection.execute(f"COPY (SELECT {columns} FROM rows_of_the_query) TO '{quoted}' (FORMAT parquet)")


def _reason(error: Exception) -> str:
    """Why a query failed. A query is one select, so the settings that DuckDB proposes for an Iceberg table are no remedy."""
    if "No version was provided" in str(error):
        return "it names no version of an Iceberg table: name the table's newest .metadata.json file in iceberg_scan"
    return first_line(error)


def without_secrets(text: str) -> str:
    """A query or an error without the passwords and keys in it.

    >>> without_secrets("from 's3://logs/a.csv?s3_secret_access_key=hush' join postgres_scan('postgresql://me:hush@db/shop')")
    "from 's3://logs/a.csv?s3_secret_access_key=...' join postgres_scan('postgresql://db/shop')"
    """
    return _SECRET.sub(r"\1\2...", _PASSWORD.sub("://", text))


def in_a_query(url: str) -> str:
    """The remedy for files that are named by a URL.

    >>> print(in_a_query("s3://logs/day.parquet"))
    files elsewhere are read by a query: --query "select * from read_parquet('s3://logs/day.parquet')"
    """
    reader = "read_csv" if ".csv" in url else "read_parquet"
    query = f"select * from {reader}('{_PASSWORD.sub('://', url)}')"
    return f'files elsewhere are read by a query: --query "{query}"'
