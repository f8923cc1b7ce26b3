"""The webhook: one signed POST for each message. The receiver's answer is its status; nothing of its body is read."""

import asyncio
import hashlib
import hmac
import json
import time
from typing import Any
from urllib.parse import urlsplit

import httpx

SECONDS = 10.0
"""For a whole attempt, from the name look-up to the status line."""

SHORTEST_SECRET = 16

_HEADERS = {"content-type": "application/json", "user-agent": "thrifty", "connection": "close", "accept-encoding": "identity"}


def sign(secret: str, body: bytes, at: int) -> str:
    """The value of X-Thrifty-Signature: the time, and HMAC-SHA256 of "TIME.BODY" under the secret.

    >>> sign("a secret that is long", b"{}", 1_700_000_000)[:32]
    't=1700000000,v1=6c30df2bc66e4f9e'
    """
    mac = hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256)
    return f"t={at},v1={mac.hexdigest()}"


def verified(secret: str, body: bytes, signature: str, *, now: float, tolerance_s: float = 300.0) -> bool:
    """Whether a signature belongs to a body and is not older than the tolerance: what a receiver should check.

    >>> body, secret = b'{"event": "test"}', "a secret that is long"
    >>> verified(secret, body, sign(secret, body, 100), now=130)
    True
    >>> verified(secret, b"{}", sign(secret, body, 100), now=130), verified(secret, body, "t=1,v2=0", now=1)
    (False, False)
    """
    at = dict(part.partition("=")[::2] for part in signature.split(",")).get("t", "")
    if not (at.isascii() and at.isdigit() and len(at) < 16) or abs(now - int(at)) > tolerance_s:
        return False
    return hmac.compare_digest(sign(secret, body, int(at)).encode(), signature.encode())


def checked_target(url: str, secret: str) -> None:
    """Raise a ValueError unless alerts can be sent to this URL. No message shows the URL or the secret: both may be confidential.

    >>> checked_target("ftp://ops.example/", "")
    Traceback (most recent call last):
    ValueError: alert_url must be an address such as https://ops.example/hook, without user and password
    """
    try:
        parts = urlsplit(url)
        port = parts.port
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0 and parts.username is None
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        usable = False
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("alert_url must be an address such as https://ops.example/hook, without user and password")
    if len(secret) < SHORTEST_SECRET:
        raise ValueError(f"alert_url needs alert_secret, of at least {SHORTEST_SECRET} characters: messages are signed with it")


class Webhook:
    """Sends messages to one address."""

    def __init__(self, url: str, secret: str, *, seconds: float = SECONDS) -> None:
        checked_target(url, secret)
        self._url, self._secret, self._seconds = url, secret, seconds

    def post(self, message: dict[str, Any], delivery: str) -> str | None:
        """Send a message; None if the receiver confirmed it with 2xx, or else why not, in words that can be logged."""
        body = json.dumps(message).encode()
        try:
            status = asyncio.run(self._post(body, delivery))
        except TimeoutError:
            return f"no answer within {self._seconds:g} s"
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            return f"no answer: {type(error).__name__}"
        if 300 <= status < 400:
            return f"status {status}: redirects are not followed, correct alert_url"
        return None if 200 <= status < 300 else f"status {status}"

    async def _post(self, body: bytes, delivery: str) -> int:
        signature = sign(self._secret, body, int(time.time()))
        headers = {**_HEADERS, "x-thrifty-signature": signature, "x-thrifty-delivery": delivery}
        async with asyncio.timeout(self._seconds):
            client = httpx.AsyncClient(follow_redirects=False, trust_env=False, timeout=self._seconds)
            async with client, client.stream("POST", self._url, content=body, headers=headers) as response:
                return response.status_code
