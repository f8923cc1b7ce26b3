"""Hooks of mkdocs: add the generated pages, point links into the repository, refuse pages that load from other hosts."""

import logging
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

from generated import decisions, pages

log = logging.getLogger("mkdocs.hooks.thrifty")

LOADS = re.compile(r"""<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)""", re.IGNORECASE)
"""What a browser fetches by itself. A link that a person may click is not among them."""


def on_config(config: Any) -> Any:
    """List all decision records, so that a new one needs no line in mkdocs.yml."""
    for entry in config.nav:
        if "Decisions" in entry:
            entry["Decisions"] = ["decisions/index.md", *(f"decisions/{path.name}" for path, _ in decisions())]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that the code writes."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Warn, which is an error under --strict, if a page would load something from another host."""
    own = (config.site_url or "//no-host").rstrip("/")
    for address in LOADS.findall(output):
        if not address.startswith(own):
            log.warning("%s loads %s from another host", page.file.src_path, address)
    return output
