"""A survey of a text file: its rows, ragged lines, stray quotes and bytes that are not UTF-8, each with the number of its line.

One pass over the bytes in pieces, before polars reads the file. Polars fills short lines with empty cells and cuts long ones; the
survey knows which lines these are, so that they are counted and not used.
"""

import codecs
import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Integers
from thrifty.compiled import builder, kept

PIECE = 1 << 22
MOST_RAGGED = 1_000_000
SEPARATORS = (",", ";", "\t", "|")
_MODE, _FIELDS, _ROW, _LINE, _LENGTH, _STRAY, _OPENED, _FOUND = range(8)
_START, _PLAIN, _QUOTED, _CLOSED = range(4)


class Survey(NamedTuple):
    """What a survey found: rows without the header, and (n, 3) row, line and fields of each line that is ragged or blank (0)."""

    rows: int
    ragged: Integers


def header_line(path: Path) -> str:
    """The first line of a file that is not blank, without its byte order mark.

    A ValueError if it is not UTF-8.
    """
    with path.open("rb") as file:
        for raw in file:
            if raw.strip(b"\xef\xbb\xbf\r\n"):
                try:
                    return raw.decode("utf-8-sig").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise ValueError(_not_utf8(path, raw[error.start], 1)) from None
    raise ValueError(f"{path} is empty: it has no header")


def split_header(line: str, separator: str) -> list[str]:
    """The names in a header.

    >>> split_header('arm;"cost; net"', ";")
    ['arm', 'cost; net']
    """
    return next(csv.reader([line], delimiter=separator), [])


def find_separator(line: str, wanted: list[str]) -> str:
    """The separator of a header: the one that yields all wanted columns, or else the most columns.

    >>> find_separator("arm;reward;cost, net", ["arm", "reward"])
    ';'
    """
    names = {separator: split_header(line, separator) for separator in SEPARATORS}
    return max(SEPARATORS, key=lambda each: (set(wanted) <= set(names[each]), len(names[each]), each == ","))


def survey_csv(path: Path, separator: str, fields: int) -> Survey:
    """Survey a CSV file whose header has so many `fields`.

    A ValueError if a quoted field does not end, or a byte is not UTF-8.
    """
    state = np.array([_START, 1, -1, 1, 0, 0, 0, 0], np.int64)
    found, decoder = [], codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        first = True
        while piece := file.read(PIECE):
            _check_utf8(path, decoder, piece, int(state[_LINE]))
            data = np.frombuffer(piece[3:] if first and piece.startswith(codecs.BOM_UTF8) else piece, np.uint8)
            ragged = np.zeros((int((data == 10).sum()) + 1, 3), np.int64)
            count = _survey(data, state, ord(separator), fields, ragged)
            found.append(ragged[:count])
            first = False
            if sum(map(len, found)) > MOST_RAGGED:
                raise ValueError(f"{path}: more than {MOST_RAGGED:,} lines do not have the {fields} fields of the header: check it")
    if state[_LENGTH] > 0 or state[_MODE] != _START:  # the last line does not end with a newline
        ragged = np.zeros((1, 3), np.int64)
        found.append(ragged[: _end_row(state, fields, ragged, 0)])
    if state[_MODE] == _QUOTED:
        raise ValueError(f"{path}: the quote that opens a field in line {state[_OPENED]:,} is never closed: correct that line")
    if state[_STRAY]:
        raise ValueError(
            f"{path}: line {state[_STRAY]:,} has a quote inside a field: write such a field in quotes, and its quotes twice"
        )
    return Survey(int(state[_ROW]), np.concatenate(found) if found else np.zeros((0, 3), np.int64))


def survey_lines(path: Path) -> Survey:
    """Count the lines of a file with one object a line, without blank lines; a ValueError if a byte is not UTF-8."""
    rows, decoder = 0, codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            rows += not line.isspace()
            if not line.isascii():
                _check_utf8(path, decoder, line, number)
    return Survey(rows, np.zeros((0, 3), np.int64))


def _check_utf8(path: Path, decoder: codecs.IncrementalDecoder, piece: bytes, line: int) -> None:
    try:
        decoder.decode(piece)
    except UnicodeDecodeError as error:
        line += bytes(error.object[: error.start]).count(b"\n")
        raise ValueError(_not_utf8(path, error.object[error.start], line)) from None


def _not_utf8(path: Path, byte: int, line: int) -> str:
    return f"{path}: the byte 0x{byte:02x} in line {line:,} is not UTF-8: name the encoding, such as --encoding latin-1"


@kept
def _survey(data: NDArray[np.uint8], state: Integers, separator: int, fields: int, ragged: Integers) -> int:
    """Go through a piece; `state` goes on from the piece before. Fills `ragged`, returns how many rows of it are filled."""
    found = 0
    for place in range(data.size):
        byte, mode = data[place], state[_MODE]
        if mode == _QUOTED:
            if byte == 34:
                state[_MODE] = _CLOSED
            elif byte == 10:
                state[_LINE] += 1
        elif byte == 10:
            found = _end_row(state, fields, ragged, found)
            state[_LINE] += 1
        elif byte == separator:
            state[_FIELDS] += 1
            state[_LENGTH] += 1
            state[_MODE] = _START
        elif byte == 34 and mode != _PLAIN:  # opens a field, or is the second of a doubled quote
            if mode == _START:
                state[_OPENED] = state[_LINE]
            state[_MODE] = _QUOTED
            state[_LENGTH] += 1
        elif byte != 13:
            if (byte == 34 or mode == _CLOSED) and state[_STRAY] == 0:
                state[_STRAY] = state[_LINE]
            state[_MODE] = _PLAIN
            state[_LENGTH] += 1
    return found


@builder
def _end_row(state: Integers, fields: int, ragged: Integers, found: int) -> int:
    """A row ends; blank lines before the header are skipped, as polars does."""
    blank = state[_LENGTH] == 0
    if not (blank and state[_ROW] < 0):
        if state[_ROW] >= 0 and (state[_FIELDS] != fields or blank):
            ragged[found, 0], ragged[found, 1] = state[_ROW], state[_LINE]
            ragged[found, 2] = 0 if blank else state[_FIELDS]
            found += 1
        state[_ROW] += 1
    state[_FIELDS], state[_LENGTH] = 1, 0
    if state[_MODE] != _QUOTED:
        state[_MODE] = _START
    return found
