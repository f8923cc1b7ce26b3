"""Templates of the dashboard. Every value is escaped; a name that a template misses is an error."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2

from thrifty.service.dashboard import numbers

_FOLDER = "templates"


def render(template: str, **content: Any) -> str:
    """Fill in a template.

    >>> render("part_alerts.html.j2", alerts=[]).strip()
    '<p class="soft">No alarm so far.</p>'
    """
    return _environment().get_template(template).render(**content)


@cache
def asset(name: str) -> bytes:
    """A file that is served as it is."""
    return files("thrifty.service.dashboard").joinpath(_FOLDER, name).read_bytes()


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("thrifty.service.dashboard", _FOLDER),
        autoescape=True,
        auto_reload=False,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for each in (
        numbers.age,
        numbers.clock,
        numbers.count,
        numbers.money,
        numbers.per_minute,
        numbers.rate,
        numbers.share,
        numbers.signed,
        numbers.stamp,
    ):
        environment.filters[each.__name__] = each
    environment.filters["tojson_text"] = _json_text
    return environment


def _json_text(value: Any) -> str:
    """JSON for an attribute: a plain string, which the template escapes like any other.

    >>> _json_text({"a": "<b>"})
    '{"a":"<b>"}'
    """
    return json.dumps(value, separators=(",", ":"))
