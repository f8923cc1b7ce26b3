"""Packed snapshots: compressed, with a digest, and cut into pieces."""

import hashlib
import zlib

PIECE_BYTES = 256 * 1024
"""Size of a piece, at most. A piece is one commit, so this bounds how long a commit takes."""


def pack(body: bytes | bytearray) -> tuple[bytes, str]:
    """The compressed body and its SHA-256 digest.

    >>> unpack(*pack(b"state"))
    b'state'
    """
    packed = zlib.compress(body, 1)
    return packed, hashlib.sha256(packed).hexdigest()


def unpack(packed: bytes, digest: str) -> bytes | None:
    """The body; None if it is incomplete or damaged.

    >>> unpack(b"damaged", "0" * 64) is None
    True
    """
    return zlib.decompress(packed) if hashlib.sha256(packed).hexdigest() == digest else None


def pieces(packed: bytes) -> list[bytes]:
    """The packed body in pieces of at most PIECE_BYTES.

    >>> [len(piece) for piece in pieces(bytes(PIECE_BYTES + 1))]
    [262144, 1]
    """
    return [packed[first : first + PIECE_BYTES] for first in range(0, len(packed), PIECE_BYTES)]
