"""Configuration: flags over environment over file over defaults.

Every setting is one field of `Config`: its type, default, range and meaning. The flags of `thrifty serve`, the environment
variables, the keys of the TOML file and the settings page of the documentation are derived from these fields.
"""

import ipaddress
import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any


def _setting(
    default: Any, meaning: str, *, low: float = 0.0, high: float = math.inf, words: tuple[str, ...] = (), shown: str = ""
) -> Any:
    """A field of `Config`: numbers lie between `low` and `high`, texts are among `words`, tables have `shown` for the default."""
    return field(default=default, metadata={"meaning": meaning, "low": low, "high": high, "words": words, "shown": shown})


@dataclass(frozen=True)
class Config:
    """How the service runs; `settings()` has the meaning of every field.

    >>> Config.load({"port": 9000}, environment={"THRIFTY_HOST": "127.0.0.2"}).host
    '127.0.0.2'
    """

    store: str = _setting("sqlite:///thrifty.db", "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE")
    host: str = _setting("127.0.0.1", "the address to listen on; anything but loopback needs keys")
    port: int = _setting(8321, "the port; 0 for any free one", high=65_535)
    allowed_hosts: tuple[str, ...] = _setting(
        (), "names that requests may give in Host, any port; * for all", shown="on loopback its names, else all"
    )
    allowed_origins: tuple[str, ...] = _setting(
        (), "origins of other web pages that may call, such as https://ops.example", shown="none"
    )
    policy_folder: str = _setting("", "the only folder from which requests may name policy files", shown="none")
    max_body: int = _setting(1_048_576, "bytes of a body, at most", low=1)
    max_batch: int = _setting(1000, "decisions or outcomes in a request, at most", low=1)
    max_headers: int = _setting(100, "headers of a request, at most", low=1)
    max_header_bytes: int = _setting(32_768, "bytes of the address and all headers of a request, at most", low=256)
    max_connections: int = _setting(1000, "open connections, at most; further ones get 503", low=1)
    header_timeout_s: float = _setting(10.0, "seconds until the headers of a request must be there", low=0.1)
    body_timeout_s: float = _setting(30.0, "seconds until the body of a request must be there, and its answer be read", low=0.1)
    keep_alive_s: float = _setting(5.0, "seconds after which an idle connection is closed", low=0.1)
    drain_s: float = _setting(10.0, "seconds that requests under way get to finish after SIGTERM")
    rate_limit: float = _setting(0.0, "requests a second for each key, at most; 0 for no limit")
    degraded_s: float = _setting(60.0, "seconds for which decisions go on from memory while PostgreSQL is away")
    keep_days: float = _setting(0.0, "delete decisions older than so many days from the log, once an hour; 0 keeps all")
    admin_key: str = _setting("", "an admin key besides those in the store; better given in the environment", shown="none")
    log_level: str = _setting(
        "info", "debug, info, warning or error; logs are JSON lines on standard error", words=("debug", "info", "warning", "error")
    )

    @classmethod
    def load(cls, flags: Mapping[str, Any], *, environment: Mapping[str, str] = os.environ, file: str | None = None) -> "Config":
        """From flags that are not None, then THRIFTY_NAME in the environment, then a TOML file, then the defaults."""
        known = settings()
        values: dict[str, Any] = _read(file) if file else {}
        unknown = sorted(set(values) - {setting.name for setting in known})
        if unknown:
            raise ValueError(f"{file} has no setting {unknown[0]!r}; there are {', '.join(setting.name for setting in known)}")
        values.update({each.name: environment[each.variable] for each in known if each.variable in environment})
        values.update({name: value for name, value in flags.items() if value is not None})
        return cls(**{each.name: each.checked(values[each.name]) for each in known if each.name in values})

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True)
class Setting:
    """One setting: what it is called everywhere, and which values it takes."""

    name: str
    kind: type
    default: Any
    meaning: str
    low: float
    high: float
    words: tuple[str, ...]
    shown: str

    @property
    def flag(self) -> str:
        """On the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """In the environment."""
        return f"THRIFTY_{self.name.upper()}"

    @property
    def default_text(self) -> str:
        """The default as tables and helps show it."""
        return self.shown or (f"{self.default:g}" if self.kind is float else str(self.default))

    def checked(self, value: Any) -> Any:
        """`value` as this setting's type, or a ValueError."""
        if self.kind in (int, float):
            return self._number(value)
        if self.kind is tuple:
            return self._names(value)
        if not isinstance(value, str) or (self.words and value not in self.words):
            wanted = f"one of {', '.join(self.words)}" if self.words else "a text"
            raise ValueError(f"{self.name} must be {wanted}, got {value!r:.80}")
        return value

    def _number(self, value: Any) -> int | float:
        try:
            number = None if isinstance(value, bool) else self.kind(str(value))
        except ValueError:
            number = None
        if number is None or not self.low <= number <= self.high or not math.isfinite(number):
            kind = "a whole number" if self.kind is int else "a number"
            span = f"of at least {self.low:g}" if math.isinf(self.high) else f"from {self.low:g} to {self.high:g}"
            raise ValueError(f"{self.name} must be {kind} {span}, got {value!r:.80}")
        return number  # type: ignore[no-any-return]

    def _names(self, value: Any) -> tuple[str, ...]:
        names = value.split(",") if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"{self.name} must be names separated by commas, or a list of them, got {value!r:.80}")
        return tuple(name.strip() for name in names if name.strip())


def settings() -> list[Setting]:
    """Every setting of the service.

    >>> [setting.flag for setting in settings()][:3]
    ['--store', '--host', '--port']
    """
    found = []
    for each in fields(Config):
        assert each.default is not MISSING
        found.append(Setting(each.name, type(each.default), each.default, **each.metadata))
    return found


def settings_table() -> str:
    """The table of the settings page of the documentation, in Markdown."""
    rows = [
        f"| `{each.name}` | `{each.flag}` | `{each.variable}` | {each.shown or f'`{each.default_text}`'} | {each.meaning} |"
        for each in settings()
    ]
    return "\n".join(["| setting | flag | environment | default | meaning |", "|---|---|---|---|---|", *rows])


def _read(file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(file).read_text())
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {file}: {error}") from None
