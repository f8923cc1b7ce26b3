"""Configuration: flags over environment over file over defaults.

Every setting is one field of `Config`: its type, default, range and meaning. The flags of `thrifty serve`, the environment
variables, the keys of the TOML file and the settings page of the documentation are derived from these fields.
"""

import ipaddress
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thrifty.described import described, setting


@dataclass(frozen=True, repr=False)
class Config:
    """How the service runs; `described(Config)` has the range and the meaning of every field.

    >>> Config.load({"port": 9000}, environment={"THRIFTY_HOST": "127.0.0.2"}).host
    '127.0.0.2'
    """

    store: str = setting("sqlite:///thrifty.db", "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE")
    host: str = setting("127.0.0.1", "the address to listen on; anything but loopback needs keys")
    port: int = setting(8321, "the port; 0 for any free one", high=65_535)
    allowed_hosts: tuple[str, ...] = setting(
        (), "names that requests may give in Host, any port; * for all", shown="on loopback its names, else all"
    )
    allowed_origins: tuple[str, ...] = setting(
        (), "origins of other web pages that may call, such as https://ops.example", shown="none"
    )
    policy_folder: str = setting("", "the only folder from which requests may name policy files", shown="none")
    max_body: int = setting(1_048_576, "bytes of a body, at most", low=1)
    max_batch: int = setting(1000, "decisions or outcomes in a request, at most", low=1)
    max_headers: int = setting(100, "headers of a request, at most", low=1)
    max_header_bytes: int = setting(32_768, "bytes of the address and all headers of a request, at most", low=256)
    max_connections: int = setting(1000, "open connections, at most; further ones get 503", low=1)
    max_streams: int = setting(100, "open streams of events, at most; further ones get 503")
    header_timeout_s: float = setting(10.0, "seconds until the headers of a request must be there", low=0.1)
    body_timeout_s: float = setting(30.0, "seconds until the body of a request must be there, and its answer be read", low=0.1)
    keep_alive_s: float = setting(5.0, "seconds after which an idle connection is closed", low=0.1)
    drain_s: float = setting(10.0, "seconds that open requests get to finish after SIGTERM")
    rate_limit: float = setting(0.0, "requests a second for each key, at most; 0 for no limit")
    degraded_s: float = setting(60.0, "seconds for which decisions go on from memory while PostgreSQL is away")
    keep_days: float = setting(0.0, "delete decisions older than so many days from the log, once an hour; 0 keeps all")
    metrics_routers: int = setting(200, 'routers with series of their own in /metrics; further ones are summed as "other"')
    metrics_arms: int = setting(
        1000, 'arms of all routers with series of their own in /metrics; further ones are summed as "other"'
    )
    keep_minutes_days: float = setting(2.0, "days for which the history has every minute; 0 keeps all")
    keep_hours_days: float = setting(60.0, "days for which the history has every hour; 0 keeps all")
    keep_history_days: float = setting(1826.0, "days for which the history has every day; 0 keeps all")
    trace_exporter: str = setting(
        "", "the exporter of OpenTelemetry spans, such as otlp_proto_http; its settings are the variables OTEL_*", shown="no spans"
    )
    reconcile: str = setting(
        "report",
        'with "enforce" every SIGHUP and start undoes what was changed by hand in routers of the file; "report" shows it',
        words=("report", "enforce"),
    )
    admin_key: str = setting(
        "", "an admin key besides those in the store; better given in the environment", shown="none", secret=True
    )
    alert_url: str = setting("", "where alerts are sent, such as https://ops.example/hook", shown="none", secret=True)
    alert_secret: str = setting(
        "", "what messages to alert_url are signed with; better given in the environment", shown="none", secret=True
    )
    log_level: str = setting(
        "info", "debug, info, warning or error; logs are JSON lines on standard error", words=("debug", "info", "warning", "error")
    )

    @classmethod
    def load(cls, flags: Mapping[str, Any], *, environment: Mapping[str, str] = os.environ, file: str | None = None) -> "Config":
        """From flags that are not None, then THRIFTY_NAME in the environment, then a TOML file, then the defaults."""
        known = described(Config)
        values: dict[str, Any] = {name: value for name, value in read_file(file).items() if name != "routers"} if file else {}
        unknown = sorted(set(values) - {each.name for each in known})
        if unknown:
            raise ValueError(f"{file} has no setting {unknown[0]!r}; there are {', '.join(each.name for each in known)}")
        values.update({each.name: environment[each.variable] for each in known if each.variable in environment})
        values.update({name: value for name, value in flags.items() if value is not None})
        return cls(**{each.name: each.checked(each.parsed(values[each.name])) for each in known if each.name in values})

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{each.name}={getattr(self, each.name)!r}' for each in described(Config) if not each.secret)})"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def settings_table() -> str:
    """The table of the settings page of the documentation, in Markdown."""
    rows = [
        f"| `{each.name}` | `{each.flag}` | `{each.variable}` | {each.shown or f'`{each.default_text}`'} | {each.meaning} |"
        for each in described(Config)
    ]
    return "\n".join(["| setting | flag | environment | default | meaning |", "|---|---|---|---|---|", *rows])


def read_file(file: str) -> dict[str, Any]:
    """Everything that a TOML file says; a ValueError if it cannot be read."""
    try:
        return tomllib.loads(Path(file).read_text("utf-8-sig"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"cannot read {file}: {error}") from None
