"""Configuration: flags over environment over file over defaults. docs/service.md has the table."""

import ipaddress
import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from thrifty.problem import checked_count


@dataclass(frozen=True)
class Config:
    """How the service runs.

    Parameters
    ----------
    store : sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE
    host : the address to listen on; anything but loopback needs keys
    port : 0 for any free one
    max_body : bytes of a request, at most
    max_batch : decisions or outcomes in one request, at most
    degraded_s : seconds for which decisions go on from memory while PostgreSQL is away
    keep_days : delete decisions older than so many days from the log, once an hour; 0 keeps all
    admin_key : an admin key besides those in the store
    log_level : debug, info, warning or error

    >>> Config.load({"port": 9000}, environment={"THRIFTY_HOST": "127.0.0.2"}).host
    '127.0.0.2'

    """

    store: str = "sqlite:///thrifty.db"
    host: str = "127.0.0.1"
    port: int = 8321
    max_body: int = 1_048_576
    max_batch: int = 1000
    degraded_s: float = 60.0
    keep_days: float = 0.0
    admin_key: str = ""
    log_level: str = "info"

    @classmethod
    def load(cls, flags: Mapping[str, Any], *, environment: Mapping[str, str] = os.environ, file: str | None = None) -> "Config":
        """From flags that are not None, then THRIFTY_NAME in the environment, then a TOML file, then the defaults."""
        known = {field.name: field.type for field in fields(cls)}
        values: dict[str, Any] = {}
        if file:
            try:
                values.update(tomllib.loads(Path(file).read_text()))
            except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise ValueError(f"cannot read {file}: {error}") from None
            unknown = sorted(set(values) - set(known))
            if unknown:
                raise ValueError(f"{file} has no setting {unknown[0]!r}; there are {', '.join(known)}")
        values.update({name: environment[f"THRIFTY_{name.upper()}"] for name in known if f"THRIFTY_{name.upper()}" in environment})
        values.update({name: value for name, value in flags.items() if value is not None})
        for name in ("port", "max_body", "max_batch"):
            if name in values:
                given = values[name]
                number = int(given) if isinstance(given, str) and given.isdigit() else given
                values[name] = checked_count(name, number, low=0 if name == "port" else 1)
        for name in ("degraded_s", "keep_days"):
            if name in values:
                values[name] = _checked_span(name, values[name])
        if values.get("log_level", "info") not in ("debug", "info", "warning", "error"):
            raise ValueError(f"log_level must be one of debug, info, warning, error, got {values['log_level']!r}")
        return cls(**values)

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def _checked_span(name: str, value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not 0.0 <= number < math.inf:
        raise ValueError(f"{name} must be a number that is not negative, got {value!r}")
    return number
