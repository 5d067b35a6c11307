"""The daemon's log: one JSON object a line, redacted, rotated, in `<state>/logs/`.

A full disk must not stop the daemon, so a line that cannot be written is counted and let go. What is said again and
again is written a few times a minute and counted, so that nobody who can cause a line can push the others out of the
files.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Final

from agtmux.domain.redact import redact_text
from agtmux.domain.timestamps import Timestamp, format_timestamp

LOG_FILE: Final = "agtmuxd.log"

# Seconds, and lines within them: of the same text, of the same kind whatever it is about, and in all.
_INTERVAL: Final = 60.0
_SAME_TEXT: Final = 5
_SAME_KIND: Final = 100
_ALL: Final = 1_000
# Characters of one message, and of a traceback.
_LONGEST: Final = 8_000

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": format_timestamp(Timestamp(int(record.created * 1_000_000))),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _cut(record.getMessage()),
        }
        line |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            line["traceback"] = _cut(self.formatException(record.exc_info))
        return redact_text(json.dumps(line, default=str, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … ({len(text) - _LONGEST} more characters)"


def _text(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # Whoever writes it is told of it there, and only there.
        return str(record.msg)


@dataclass(slots=True)
class _Count:
    began: float
    seen: int = 0
    left_out: int = 0
    last: logging.LogRecord | None = None


class Repeats:
    """Lets a line pass unless many like it have passed within the minute, and then says how many were left out.

    Not a filter of the logging module: those are asked without a lock, and several threads write to the log."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: dict[object, _Count] = {}
        # What is to be said of those whose minute is over.
        self.due: list[logging.LogRecord] = []

    def passes(self, record: logging.LogRecord) -> bool:
        """Asked by one thread at a time."""
        now = self._clock()
        self._settle(now)
        kind = (record.name, record.levelno, record.msg if isinstance(record.msg, str) else "")
        # In this order no key is made for a line that does not pass, whatever it says.
        keys = (("all", _ALL), (kind, _SAME_KIND), ((*kind, _text(record)), _SAME_TEXT))
        counts = []
        for key, most in keys:
            count = self._counts.setdefault(key, _Count(now))
            if count.seen >= most:
                count.left_out += 1
                count.last = record
                return False
            counts.append(count)
        for count in counts:
            count.seen += 1
        return True

    def _settle(self, now: float) -> None:
        # In the order in which they began.
        while self._counts:
            key, count = next(iter(self._counts.items()))
            if now - count.began < _INTERVAL:
                return
            del self._counts[key]
            if count.last is not None:
                self.due.append(_repeated(count))


def _repeated(count: _Count) -> logging.LogRecord:
    last = count.last
    assert last is not None
    about = {"name": last.name, "levelno": last.levelno, "levelname": last.levelname, "left_out": count.left_out}
    text = f"{count.left_out} more like this were left out within a minute: {_text(last)}"
    return logging.makeLogRecord(about | {"msg": "%s", "args": (text,)})


class RotatingLog(logging.handlers.RotatingFileHandler):
    """Counts what it could not write, instead of printing a traceback to a stream nobody reads."""

    lost = 0
    repeats: Repeats | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Called with the handler's lock held."""
        if self.repeats is not None:
            passes = self.repeats.passes(record)
            due, self.repeats.due = self.repeats.due, []
            for each in due:
                super().emit(each)
            if not passes:
                return
        super().emit(record)

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
    handler.repeats = Repeats()
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    return handler
