"""Routers that the configuration file declares: tables `[routers.NAME]` with the fields of PUT /v1/routers/NAME."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from thrifty.router import Settings
from thrifty.router.known_start import KnownStart
from thrifty.router.settings import checked_arms, checked_name
from thrifty.service.config import Config, read_file
from thrifty.service.messages import RouterBody, RouterRequest
from thrifty.service.policy_files import checked_policy
from thrifty.service.wrong_values import wrong_value

UNKNOWN = "unknown"
"""A price in the file that is not known: TOML has no null."""


@dataclass(frozen=True)
class Declaration:
    """A router as the file wants it: all its arms with prices, and those of its settings that the file names."""

    arms: dict[str, float | None]
    settings: dict[str, Any]
    request: RouterBody

    @cached_property
    def start(self) -> KnownStart | None:
        """The outcomes that the router is to start with."""
        return self.request.start()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as the log keeps them."""
        return {"arms": self.arms, "settings": self.settings}


@dataclass(frozen=True)
class ConfigFile:
    """A configuration file that was read whole: settings of the service, and routers."""

    name: str
    config: Config
    routers: dict[str, Declaration]
    flags: Mapping[str, Any]

    @classmethod
    def load(cls, flags: Mapping[str, Any], file: str) -> "ConfigFile":
        """Read a file; a ValueError names what is wrong in it. Nothing is taken over of a file that has one mistake."""
        config, tables = Config.load(flags, file=file), read_file(file).get("routers", {})
        if not isinstance(tables, dict):
            raise ValueError(f"{file}: routers must be tables such as [routers.sms], got {tables!r:.80}")
        return cls(file, config, {name: _declaration(file, name, table, config) for name, table in tables.items()}, flags)

    def again(self) -> "ConfigFile":
        """The file as it is now, under the same flags."""
        return ConfigFile.load(self.flags, self.name)


def _declaration(file: str, name: str, table: Any, config: Config) -> Declaration:
    try:
        checked_name("the name of a router", name)
        if not isinstance(table, dict):
            raise ValueError(f"it must be a table such as [routers.{name}], got {table!r:.80}")
        arms = table.get("arms")
        if isinstance(arms, dict):
            table = {**table, "arms": {arm: None if price == UNKNOWN else price for arm, price in arms.items()}}
        request: Any = _request(table)
        if request.policy is not msgspec.UNSET:
            request.policy = checked_policy(request.policy, config.policy_folder)
        settings, prices = Settings(**request.settings()), checked_arms(request.arms)
        settings.check_arms(len(prices))
        if (start := request.start()) is not None:
            start.check(prices, settings, weighs_outcomes=False)
    except ValueError as error:
        raise ValueError(f"{file}: [routers.{name}]: {error}") from None
    return Declaration(prices, {each: getattr(settings, each) for each in request.settings()}, request)


def _request(table: dict[str, Any]) -> Any:
    try:
        return msgspec.convert(table, RouterRequest)
    except msgspec.ValidationError as error:
        raise ValueError(wrong_value(error, RouterRequest, table, null=f'"{UNKNOWN}"')) from None
