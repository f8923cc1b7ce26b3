"""Python files of a user: a policy, or a compiled function for a parameter. A file may import its neighbours.

A neighbour is another Python file in the same folder. It is found before any installed module, as it is for a script, but only by
the files of its own folder: two folders may each have a `helpers.py`. Nothing is added to `sys.path`.

A file is loaded as a module that is named by a digest of its path, its text and the texts of all neighbours that it imports, so an
edit of any of them makes another module.
"""

import ast
import builtins
import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any


def load_from_file(path: str, name: str) -> Any:
    """The object called `name` in the Python file at `path`."""
    module = _load(Path(path).resolve(), shown=path)
    if not hasattr(module, name):
        raise ValueError(f"{path} must define {name}")
    return getattr(module, name)


def sources_of(path: str) -> tuple[str, ...]:
    """The text of the file at `path`, and of every neighbour that it imports, directly or not."""
    return tuple(_texts(Path(path).resolve(), shown=path).values())


def _texts(path: Path, shown: str) -> dict[Path, str]:
    """The file and the neighbours that it imports, by their paths."""
    found: dict[Path, str] = {}
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        try:
            found[file] = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"cannot read {shown if file == path else file}: {error}") from None
        waiting += [near for name in _imported(found[file]) if (near := _neighbour(file.parent, name))]
    return found


def _imported(text: str) -> Iterator[str]:
    """The names of all modules that a text imports; none if it cannot be parsed, which shows when it is run."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module


def _neighbour(folder: Path, name: str) -> Path | None:
    file = folder / f"{name}.py"
    return file if "." not in name and file.is_file() else None


def _load(path: Path, shown: str) -> ModuleType:
    texts = _texts(path, shown)
    digest = hashlib.sha256(repr([str(path), *sorted((str(file), text) for file, text in texts.items())]).encode())
    name = f"thrifty_file_{digest.hexdigest()[:16]}"
    if name not in sys.modules:
        module = ModuleType(name)
        module.__file__ = str(path)
        module.__dict__["__builtins__"] = {**builtins.__dict__, "__import__": _importer(path.parent)}
        sys.modules[name] = module
        try:
            exec(compile(texts[path], str(path), "exec"), module.__dict__)
        except Exception as error:
            del sys.modules[name]
            raise ValueError(f"{shown}{_line_of(error, path)} does not run: {type(error).__name__}: {error}") from error
    return sys.modules[name]


def _importer(folder: Path) -> Any:
    """What `import` does in the files of a folder."""

    def import_near(
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        near = _neighbour(folder, name) if level == 0 else None
        return _load(near, shown=str(near)) if near else __import__(name, globals, locals, fromlist, level)

    return import_near


def _line_of(error: Exception, path: Path) -> str:
    """`:12` if the error arose in line 12 of the file; else nothing."""
    line, trace = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f":{line}" if line else ""
