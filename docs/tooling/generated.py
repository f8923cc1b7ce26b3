"""Pages of the reference that are written by the code they describe: commands, HTTP, settings, policies."""

import argparse
import contextlib
import io
from dataclasses import MISSING
from pathlib import Path
from typing import Any


def pages() -> dict[str, str]:
    """Every generated page, by its path below docs."""
    return {
        "reference/cli.md": commands_page(),
        "reference/http.md": http_page(),
        "reference/settings.md": settings_page(),
        "reference/policies.md": policies_page(),
        "decisions/index.md": decisions_page(),
    }


def decisions() -> list[tuple[Path, str]]:
    """The files of the decision records in order, each with its heading."""
    files = sorted((Path(__file__).parents[1] / "decisions").glob("[0-9]*.md"))
    return [(path, path.read_text().partition("\n")[0].removeprefix("# ")) for path in files]


def decisions_page() -> str:
    """The list of decision records."""
    lines = [f"- [{heading}]({path.name})" for path, heading in decisions()]
    about = (
        "Choices that are hard to undo, each with what was measured and what was rejected. A later record may replace part of an "
        "older one."
    )
    return "\n\n".join(["# Decisions", about, "\n".join(lines)]) + "\n"


# -- commands --------------------------------------------------------------------------------------------------------------


def commands_page() -> str:
    """The page of all commands, from their parsers."""
    from thrifty.cli.main import build_parser

    parser = build_parser()
    [commands] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    helps = {choice.dest: choice.help or "" for choice in commands._choices_actions}
    parts = [
        "# Commands",
        "This page is written by the parsers of the commands when the site is built.",
        "Wrong input ends with one line that names the value and the remedy, and with exit code 2. Ctrl-C ends with exit code 130.",
        "\n".join(["| command | what it does |", "|---|---|", *(_command_row(name, helps[name]) for name in commands.choices)]),
    ]
    for name, each in commands.choices.items():
        parts += _command_section(name, helps[name], each)
    return "\n\n".join(parts) + "\n"


def _command_row(name: str, text: str) -> str:
    return f"| [`thrifty {name}`](#thrifty-{name}) | {text} |"


def _command_section(name: str, text: str, parser: argparse.ArgumentParser) -> list[str]:
    parts = [f"## thrifty {name}", parser.description or f"{text[:1].upper()}{text[1:]}."]
    parts.append(f"```text\n{_usage(parser)}\n```")
    rows = [_argument_row(action) for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    if rows:
        parts.append("\n".join(["| argument | meaning |", "|---|---|", *rows]))
    if parser.epilog:
        example = parser.epilog.removeprefix("Example: ")
        parts.append(f"Example:\n\n```bash\n{example}\n```")
    return parts


def _usage(parser: argparse.ArgumentParser) -> str:
    return parser.format_usage().removeprefix("usage: ").strip()


def _argument_row(action: argparse.Action) -> str:
    value = action.metavar or (",".join(action.choices) if action.choices else action.dest.upper())
    if not action.option_strings:
        shown = f"`{value if action.metavar or action.choices else action.dest}`"
    elif action.nargs == 0:
        shown = ", ".join(f"`{flag}`" for flag in action.option_strings)
    else:
        shown = ", ".join(f"`{flag} {value}`" for flag in action.option_strings)
    values = {**vars(action), "prog": "thrifty"}
    meaning = (action.help or "") % values
    return f"| {_cell(shown)} | {_cell(meaning)}{' (required)' if action.required and action.option_strings else ''} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


# -- HTTP ------------------------------------------------------------------------------------------------------------------


def http_page() -> str:
    """The page of all HTTP calls, from the OpenAPI description."""
    from thrifty.service.openapi import describe

    described = describe()
    parts = [
        "# HTTP interface",
        "This page is written by the OpenAPI description when the site is built. A running service has the same description at "
        "`/openapi.json`, and a short page at `/docs`. [Run the service](../service.md) says how to use it.",
        "Bodies are JSON. A request with a body needs `Content-Type: application/json`. A request with a key needs "
        "`Authorization: Bearer KEY`.",
        "## Calls",
    ]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            if method != "parameters":
                parts += _operation(path, method, operation, operations.get("parameters", []))
    parts.append("## Bodies")
    for name, schema in described["components"]["schemas"].items():
        parts += _schema(name, schema)
    return "\n\n".join(parts) + "\n"


def _operation(path: str, method: str, operation: dict[str, Any], parameters: list[dict[str, Any]]) -> list[str]:
    summary = operation["summary"]
    parts = [f"### {method.upper()} {path}", f"{summary[:1].upper()}{summary[1:]}."]
    notes = [f"- In the path: `{each['name']}`, {each.get('description') or _type(each['schema'])}" for each in parameters]
    if "requestBody" in operation:
        [content] = operation["requestBody"]["content"].values()
        may = "" if operation["requestBody"]["required"] else " (may be left out)"
        notes.append(f"- Body: {_type(content['schema'])}{may}")
    rows = []
    for status, response in sorted(operation["responses"].items()):
        content = next(iter(response.get("content", {}).values()), None)
        body = "none" if content is None else _type(content["schema"])
        rows.append(f"| {status} | {_cell(response['description'])} | {_cell(body)} |")
    answers = "\n".join(["| status | meaning | body |", "|---|---|---|", *rows])
    return [*parts, *(["\n".join(notes)] if notes else []), f'??? note "Answers"\n\n{_indented(answers)}']


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _schema(name: str, schema: dict[str, Any]) -> list[str]:
    required = set(schema.get("required", []))
    rows = [
        f"| `{field}` | {_cell(_type(kind))} | {'required' if field in required else _default(kind)} |"
        for field, kind in schema["properties"].items()
    ]
    table = "\n".join(["| field | type | if left out |", "|---|---|---|", *rows])
    return [f"### {name}", schema.get("description", ""), table]


def _default(schema: dict[str, Any]) -> str:
    if "default" not in schema:
        return "the default of the [setting](settings.md)"
    value = schema["default"]
    return "null" if value is None else f"`{value!r}`".replace("'", '"')


def _type(schema: dict[str, Any]) -> str:
    """A JSON schema in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        items = schema.get("items") or {"type": "value"}
        return f"a list of {_type(items)}"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"an object: {_type(values)} by name" if isinstance(values, dict) and values else "an object"
    bounds = [("at least", "minimum"), ("above", "exclusiveMinimum"), ("at most", "maximum"), ("at least", "minLength")]
    bounds.append(("at most", "maxLength"))
    units = " characters" if schema.get("type") == "string" else ""
    limits = [f"{word} {schema[key]:g}{units}" for word, key in bounds if key in schema]
    text = schema.get("description") or schema.get("type", "any value")
    return ", ".join([text, *limits])


# -- settings --------------------------------------------------------------------------------------------------------------


def settings_page() -> str:
    """The page of the settings of routers and of the service, from their fields."""
    from thrifty.described import described
    from thrifty.router import Settings
    from thrifty.service.config import settings_table

    rows = [
        f"| `{each.name}` | {_shown_default(each.default)} | {each.span_text} | {_cell(each.meaning)} |"
        for each in described(Settings)
    ]
    parts = [
        "# Settings",
        "This page is written by the code when the site is built.",
        "## Of a router",
        'Give them to `thrifty.Router(arms, alpha, deadline_s=600)`, or in the body of `PUT /v1/routers/NAME`: `{"arms": {...}, '
        '"alpha": 0.05, "deadline_s": 600}`. A `PUT` that leaves a setting out gives it its default.',
        "\n".join(["| setting | default | values | meaning |", "|---|---|---|---|", *rows]),
        "## Of the service",
        "A flag of `thrifty serve` beats the environment, the environment beats the file that `--config` names, and the file beats "
        'the default. In the file, lists are lists (`allowed_hosts = ["api.example"]`); elsewhere they are separated by commas.',
        settings_table(),
        "## In the environment only",
        "| variable | default | meaning |\n|---|---|---|\n"
        "| `THRIFTY_CACHE` | `~/.cache/thrifty` | the folder of compiled code |\n"
        "| `THRIFTY_TRACE` | | `1` shows all that the compiler says about a policy of your own that it refuses |\n"
        "| `THRIFTY_COMPILE` | `background` | how a router gets compiled rules: `background` (a child process compiles while the "
        "interpreted rule decides), `wait` (compile first) or `never` |\n"
        "| `THRIFTY_KEY` | none | the admin key for `thrifty keys --url` |",
    ]
    return "\n\n".join(parts) + "\n"


def _shown_default(default: object) -> str:
    return "required" if default is MISSING else f"`{default}`{{ .one-line }}"


# -- policies --------------------------------------------------------------------------------------------------------------


def policies_page() -> str:
    """The page of all policies and their parameters, from what `thrifty policies` prints."""
    from thrifty.policies import DEFAULT_POLICY, list_policies

    parts = [
        "# Policies",
        "This page is what `thrifty policies` prints, written when the site is built. "
        "[The algorithms](../theory/algorithms.md) says where each policy is from.",
        f"The default is `{DEFAULT_POLICY}`. Write parameters behind a colon (`cs-etc:tau=100`), and how to forget behind a plus "
        "sign (`cs-ids+restart`): see [changing worlds](../changing-worlds.md). *auto* is worked out from the number of arms and "
        "the horizon.",
    ]
    for name, each in list_policies().items():
        about, *parameters = printed(["policies", name]).splitlines()
        summary = about.partition(": ")[2]
        unknown = "yes" if each.rule_for_unknown_costs is not None else "no"
        parts += [f"## {name}", f"{summary[:1].upper()}{summary[1:]}. Learns unknown costs: {unknown}."]
        if not router_can_use(name):
            parts.append("It is given the truth by the simulator, so no router can use it.")
        rows = [_parameter_row(line) for line in parameters]
        if rows:
            parts.append("\n".join(["| parameter | default | meaning |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _parameter_row(line: str) -> str:
    name, _, rest = line.strip().partition(": ")
    meaning, _, default = rest.rpartition("; default ")
    return f"| `{name}` | {'*auto*' if default == 'auto' else f'`{default}`'} | {_cell(meaning)} |"


def printed(arguments: list[str]) -> str:
    """What a command prints."""
    from thrifty.cli.main import main

    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        code = main(arguments)
    if code:
        raise RuntimeError(f"thrifty {' '.join(arguments)} ended with exit code {code}")
    return output.getvalue()


def router_can_use(name: str) -> bool:
    """True if a router accepts the policy."""
    from thrifty.router import Settings

    try:
        Settings(alpha=0.0, policy=name)
    except ValueError:
        return False
    return True
