"""The client of the decision service: `Client` waits, `AsyncClient` awaits; both make the same calls. See docs/client.md."""

from thrifty.client.choice import Choice
from thrifty.client.clients import AsyncClient, Client
from thrifty.client.errors import (
    KeyRefusedError,
    LocalChoiceError,
    NotFoundError,
    RateLimitedError,
    RequestRefusedError,
    ServiceError,
    ServiceUnavailableError,
)
from thrifty.client.exchange import Options

__all__ = [
    "AsyncClient",
    "Choice",
    "Client",
    "KeyRefusedError",
    "LocalChoiceError",
    "NotFoundError",
    "Options",
    "RateLimitedError",
    "RequestRefusedError",
    "ServiceError",
    "ServiceUnavailableError",
]
