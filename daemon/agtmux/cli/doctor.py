"""`agtmux doctor`: what works here and what does not, each with the command that mends it."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from agtmux import __version__, paths
from agtmux.cli.options import add_json, print_json
from agtmux.cli.table import display_width, paint, terminal_width, wants_colour, wrap
from agtmux.client import Client, with_query
from agtmux.domain.errors import AgtmuxError, ErrorCode

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

# A daemon that is well answers within a fifth of a second.
_LIMIT: Final = 5.0
_UNAVAILABLE: Final = 3
# A level is told by its sign as well as by its colour.
_SIGNS: Final[dict[str, tuple[str, str]]] = {
    "ok": ("✓", "green"),
    "note": ("·", "blue"),
    "warning": ("!", "yellow"),
    "problem": ("✗", "red"),
}


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "Says what works here and what does not, and for what does not, what mends it. Starts nothing and changes"
        " nothing. Exit status: 0 without a problem, 1 with one, 3 if no daemon answers."
    )
    parser.add_argument("--target", metavar="T", help="of the tmux servers, hooks and agents, only this target's")
    add_json(parser)


def run(options: Namespace) -> int:
    is_answered, found = _asked(options.target)
    if options.json:
        print_json(found)
    else:
        print("\n".join(_lines(found, colour=wants_colour(), width=terminal_width())))
    if not is_answered:
        return _UNAVAILABLE
    return 1 if found["summary"]["problem"] else 0


def _asked(target: str | None) -> tuple[bool, dict[str, Any]]:
    """What the daemon says; without one, what can be found out here. False if no daemon answers."""
    query = {
        "target": target,
        "tmux_socket": os.environ.get("TMUX", "").partition(",")[0] or None,
        "client_version": __version__,
    }
    try:
        client = Client(start=False, time_limit=_LIMIT)
    except AgtmuxError:
        # Its socket cannot be, so nobody can have started one.
        return False, _alone(target)
    try:
        return True, client.get(with_query("/v1/doctor", query))
    except AgtmuxError as error:
        if error.code is ErrorCode.DAEMON_UNAVAILABLE:
            return False, _alone(target, pid=_lock_holder(), is_heard=client.is_answered())
        if error.code is ErrorCode.CONFIG:
            # Nothing is sent to a socket that others could replace; what is wrong with it can be seen from here.
            return True, _alone(target, is_unsafe=True)
        if error.code is ErrorCode.NOT_FOUND:
            # One from before there was a doctor.
            return True, _alone(target, version=str(client.get("/v1/health")["version"]))
        raise


def _alone(
    target: str | None,
    *,
    pid: int | None = None,
    version: str | None = None,
    is_heard: bool = False,
    is_unsafe: bool = False,
) -> dict[str, Any]:
    import time

    from agtmux.doctor.alone import look_alone
    from agtmux.doctor.checks import examine
    from agtmux.doctor.facts import NoDaemon
    from agtmux.domain.timestamps import Timestamp, format_timestamp

    now = Timestamp(time.time_ns() // 1000)
    return examine(look_alone(NoDaemon(pid, version, is_heard, is_unsafe), target), format_timestamp(now))


def _lock_holder() -> int | None:
    from agtmux.cli.down import lock_holder

    return lock_holder(os.path.join(paths.state_directory(), "agtmuxd.lock"))


def _lines(found: dict[str, Any], *, colour: bool, width: int | None) -> list[str]:
    items = found["items"]
    names = [_name(item) for item in items]
    label = max(map(display_width, names), default=0)
    indent = " " * (label + 6)
    room = None if width is None else width - len(indent)
    lines: list[str] = []
    for number, (item, name) in enumerate(zip(items, names, strict=True)):
        if number == 0 or item["group"] != items[number - 1]["group"]:
            lines += ([""] if lines else []) + [paint(item["group"], "bold", colour)]
        sign, style = _SIGNS.get(item["level"], ("?", ""))
        first, *more = wrap(item["message"], room)
        head = f"{sign} {name}{' ' * (label - display_width(name))}"
        lines.append(f"  {paint(head, style, colour)}  {first}")
        lines += [indent + line for line in more]
        if item["mend"]:
            # In one piece, however long: it is there to be copied.
            lines.append(f"{indent}{paint('→', 'bold', colour)} {wrap(item['mend'], None)[0]}")
    return [*lines, "", paint(_sum(found["summary"]), "bold", colour)]


def _name(item: dict[str, Any]) -> str:
    """What the line is about."""
    return str(item["agent"] or item["target"] or item["code"].partition("_")[0])


def _sum(summary: dict[str, int]) -> str:
    counts = [
        f"{count} {level}{'' if count == 1 else 's'}" for level, count in summary.items() if count and level != "ok"
    ]
    return ", ".join(reversed(counts)) or "All is well."
