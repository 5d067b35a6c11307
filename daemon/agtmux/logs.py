"""The daemon's log: one JSON object a line, redacted, rotated, in `<state>/logs/`.

A full disk must not stop the daemon, so a line that cannot be written is counted and let go.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
from io import TextIOWrapper
from pathlib import Path
from typing import Final

from agtmux.domain.redact import redact_text
from agtmux.domain.timestamps import Timestamp, format_timestamp

LOG_FILE: Final = "agtmuxd.log"

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": format_timestamp(Timestamp(int(record.created * 1_000_000))),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return redact_text(json.dumps(line, default=str, ensure_ascii=False))


class RotatingLog(logging.handlers.RotatingFileHandler):
    """Counts what it could not write, instead of printing a traceback to a stream nobody reads."""

    lost = 0

    def _open(self) -> TextIOWrapper:
        # Made private here, because the base class would leave it to the umask.
        os.close(os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT, 0o600))
        return super()._open()

    def handleError(self, record: logging.LogRecord) -> None:
        self.lost += 1


def open_log(state_directory: Path, level: str, max_bytes: int, files: int) -> RotatingLog:
    directory = state_directory / "logs"
    directory.mkdir(mode=0o700, exist_ok=True)
    handler = RotatingLog(directory / LOG_FILE, maxBytes=max_bytes, backupCount=files - 1, encoding="utf-8", delay=True)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    return handler
