"""`agtmux watch`: a table that lives in a terminal, tables anew or JSON lines in a pipe."""

from __future__ import annotations

import json
import os
import select
import stat
import sys
import time
from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, add_filters, client, filters
from agtmux.cli.table import is_terminal, terminal_width, wants_colour
from agtmux.client import Client, with_query
from agtmux.domain.durations import SECOND, parse_duration
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import legible_json
from agtmux.follow import follow

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

_INTERVAL: Final = "2s"
# Seconds; a month would be more milliseconds than poll takes.
_LONGEST_POLL: Final = 86_400.0


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "Shows what agents do as it changes: a live table in a terminal, which q or Ctrl-C leaves, and in a pipe a new"
        " table whenever something has changed. It goes on through restarts of the daemon: while the daemon is away it"
        " says so, shows what was last known, and waits; it does not start one that you have stopped."
    )
    parser.add_argument(
        "--scope", choices=["panes", "windows", "sessions"], default="panes", help="what to watch (panes)"
    )
    add_filters(parser)
    parser.add_argument("--format", choices=["table", "jsonl"], help="for people (the default), or for programs")
    parser.add_argument(
        "--interval", metavar="DURATION", default=_INTERVAL, help=f"in a pipe, a table this often at most ({_INTERVAL})"
    )
    parser.add_argument("--cursor", metavar="STREAM:SEQUENCE", help="jsonl: go on after this line")
    parser.add_argument("--once", action="store_true", help="print what there is now and end")
    add_common(parser)


def run(options: Namespace) -> int:
    interval = parse_duration(options.interval) / SECOND
    as_lines = options.json if options.format is None else options.format == "jsonl"
    if options.json and not as_lines:
        raise AgtmuxError(ErrorCode.USAGE, "--json means --format jsonl; leave one of them out")
    if options.cursor is not None and not as_lines:
        raise AgtmuxError(ErrorCode.USAGE, "--cursor goes on with lines; add --format jsonl")
    if sys.stdout is None:
        raise AgtmuxError(ErrorCode.USAGE, "there is no standard output to watch on")
    asked = {"scope": options.scope, **filters(options)}
    daemon = client(options)
    if as_lines:
        return _print_lines(daemon, asked, options.cursor, once=options.once)
    if is_terminal(sys.stdin) and is_terminal(sys.stdout) and not options.once:
        from agtmux.cli.live import show_live

        # What is wrong with the question, or with the daemon, is said before the screen is taken.
        daemon.get(with_query(f"/v1/{options.scope}", filters(options)))
        return show_live(daemon, asked)
    return _print_table_once(daemon, asked) if options.once else _print_tables(daemon, asked, interval)


def _print_lines(daemon: Client, asked: dict[str, str | None], cursor: str | None, *, once: bool) -> int:
    """The daemon's lines, through restarts of the daemon as well."""
    output = _Output()
    if once:
        return _print_once(daemon, with_query("/v1/watch", asked | {"cursor": cursor, "once": "1"}), output)
    for line, _ in follow(daemon, asked, output, cursor):
        output.write(legible_json(line) + b"\n")
    return 0


def _print_once(daemon: Client, path: str, output: _Output) -> int:
    try:
        for line in daemon.lines(path, output.wait):
            output.write(legible_json(line) + b"\n")
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _gone(error) from None
    return 0


def _print_table_once(daemon: Client, asked: dict[str, str | None]) -> int:
    from agtmux.cli.view import View

    view = View()
    try:
        for line in daemon.lines(with_query("/v1/watch", asked | {"once": "1"})):
            view.take(json.loads(line))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _gone(error) from None
    _Output().write(_text(view.draw(colour=wants_colour(), width=terminal_width())))
    return 0


def _print_tables(daemon: Client, asked: dict[str, str | None], interval: float) -> int:
    """The table, and again whenever it has changed, through restarts of the daemon as well."""
    pace = _Tables(interval)
    for _, said in follow(daemon, asked, pace):
        pace.take(said)
    return 0


def _text(lines: list[str]) -> bytes:
    return "\n".join([*lines, ""]).encode(sys.stdout.encoding or "utf-8", "replace")


def _gone(error: OSError) -> AgtmuxError:
    return AgtmuxError(ErrorCode.DAEMON_UNAVAILABLE, f"agtmuxd went away in mid-answer ({error}); ask again")


class _Output:
    """Standard output as bytes. Notices that nobody reads it any more without having to write to it."""

    def __init__(self) -> None:
        self._descriptor = sys.stdout.fileno()
        mode = os.fstat(self._descriptor).st_mode
        # Of a file or a terminal there is nothing to notice, and not every system could tell.
        self._has_reader = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)

    def write(self, content: bytes) -> None:
        try:
            while content:
                content = content[os.write(self._descriptor, content) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            # Not to be taken for the daemon's.
            raise AgtmuxError(ErrorCode.INTERNAL, f"the output could not be written: {error.strerror}") from None

    def wait(self, connection: int, seconds: float | None = None) -> bool:
        """True when there is something to read, False when that long has passed."""
        return self._poll(seconds, connection)

    def rest(self, seconds: float) -> None:
        self._poll(seconds)

    def _poll(self, seconds: float | None, *connections: int) -> bool:
        waiting = select.poll()
        for connection in connections:
            waiting.register(connection, select.POLLIN)
        if self._has_reader:
            waiting.register(self._descriptor, 0)
        ready = dict(waiting.poll(None if seconds is None else min(seconds, _LONGEST_POLL) * 1000))
        if ready.pop(self._descriptor, 0) & (select.POLLERR | select.POLLHUP):
            raise BrokenPipeError
        return bool(ready)


class _Tables:
    """Tables on standard output, as the pace of a watch stream: not more often than they may come."""

    def __init__(self, interval: float) -> None:
        from agtmux.cli.view import View

        self._output, self._view = _Output(), View()
        self._interval = interval
        self._printed_at: float | None = None
        self._is_stale = False

    def take(self, line: dict[str, Any]) -> None:
        self._view.take(line)
        self._is_stale |= line["type"] != "reset"

    def wait(self, connection: int) -> None:
        while self._is_stale:
            due = 0.0 if self._printed_at is None else self._printed_at + self._interval - time.monotonic()
            if due <= 0:
                self._print()
            elif self._output.wait(connection, due):
                return
        self._output.wait(connection)

    def rest(self, seconds: float) -> None:
        # The daemon is away: what it last said is printed, and nothing is left to print later.
        if self._is_stale:
            self._print()
        self._output.rest(seconds)

    def _print(self) -> None:
        gap = [] if self._printed_at is None else [""]
        self._output.write(_text([*gap, *self._view.draw(colour=wants_colour(), width=terminal_width())]))
        self._printed_at, self._is_stale = time.monotonic(), False
