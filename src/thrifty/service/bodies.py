"""What requests that come through ASGI carry: their bodies, and the name of a router in their path."""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request

from thrifty.service.errors import ServiceProblemError

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


async def read_body(receive: Receive, headers: Sequence[tuple[bytes, bytes]], limit: int) -> bytes:
    """The whole body, or a ServiceProblemError when it is longer than `limit` or its client has left."""
    for name, value in headers:
        if name == b"content-length" and value.isdigit() and int(value) > limit:
            raise ServiceProblemError(413, "size", f"the body must be at most {limit} bytes, got {value.decode()}")
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ServiceProblemError(400, "disconnected", "the connection ended before the body was whole")
        pieces.append(message.get("body", b""))
        size, more = size + len(pieces[-1]), message.get("more_body", False)
        if size > limit:
            raise ServiceProblemError(413, "size", f"the body must be at most {limit} bytes")
    return b"".join(pieces)


def name_of(request: Request) -> str:
    """The name of the router in the path of a request."""
    return unquote(request.path_params["name"])
