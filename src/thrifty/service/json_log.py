"""Logs as JSON lines on standard error."""

import json
import logging
import sys


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, event, and what else is known."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_as_json(level: str) -> None:
    """Set up all logging of this process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in ("httpx", "httpcore"):  # they would log addresses and headers of webhooks, which may be confidential
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING if level != "debug" else logging.DEBUG)
