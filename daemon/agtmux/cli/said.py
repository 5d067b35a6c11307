"""What was said to an agent and by it, for `agtmux log`."""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, Namespace

from agtmux.cli.options import client, print_json
from agtmux.cli.refs import full_ref
from agtmux.cli.times import local_time
from agtmux.client import Client, with_query
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import legible, printable

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

CONVERSATIONS: Final = "conversations"
_NOTHING: Final = "No conversation is known: nothing was said yet, or it is in no file or screen that agtmux can read."
_HEADS: Final = ("UPDATED", "AGENT", "MESSAGES", "FROM", "PLACE", "ID", "TITLE")
_SHORT: Final = 12
# How long the daemon waits for the next word before it says that there is none.
_WAIT: Final = 20
# How long a daemon that has gone is waited for.
_PATIENCE: Final = 60.0
_LOOK_EVERY: Final = 0.5


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--search", metavar="WORDS", help="only messages that have all of these words in them")
    parser.add_argument("--follow", "-f", action="store_true", help="go on with what is said next")
    parser.add_argument(
        "--markdown", action="store_true", help="write it as Markdown into .agtmux/logs of its work tree, and say where"
    )
    parser.add_argument("--conversation", metavar="ID", help="only this conversation; an ID as shown")
    parser.add_argument("--target", metavar="NAME", help="of a folder: on this target (host)")
    parser.add_argument("--limit", type=int, metavar="N", help="how many of the latest (50)")


def run(options: Namespace) -> int:
    if options.what == CONVERSATIONS and (options.search or options.follow or options.markdown):
        raise AgtmuxError(ErrorCode.USAGE, "this is only a list; say whose conversation: agtmux log <ref> …")
    if options.markdown and (options.search or options.follow or options.limit):
        raise AgtmuxError(ErrorCode.USAGE, "--markdown writes down all of it; leave --search, --follow and --limit out")
    daemon = client(options, _WAIT + 10)
    if options.what in ("", CONVERSATIONS) and not (options.search or options.conversation or options.follow):
        return _list(daemon, options)
    where = _where(daemon, options)
    if options.markdown:
        answer = daemon.post("/v1/conversations/markdown", {name: it for name, it in where.items() if it is not None})
        print_json(answer) if options.json else print("\n".join(legible(it["path"]) for it in answer["items"]))
        return 0
    limit = None if options.limit is None else str(options.limit)
    asked = where | {"search": options.search, "limit": limit}
    answer = daemon.get(with_query("/v1/conversations/messages", asked))
    if not options.follow:
        if options.json:
            print_json(answer)
        elif answer["items"]:
            print("\n\n".join(map(_told, answer["items"])))
        else:
            print("No message matches the search." if options.search else _NOTHING)
        return 0
    # Whoever stops the daemon meanwhile wants it stopped.
    return _follow(Client(start=False, time_limit=_WAIT + 10), options, asked, answer["items"])


def _follow(daemon: Client, options: Namespace, asked: dict[str, str | None], items: list[dict[str, Any]]) -> int:
    """One message a line with --json."""
    # Of all conversations: an agent may begin another one.
    seen = max([item["seq"] for item in items], default=0)
    shown: dict[str, str] = {}
    while True:
        for item in items:
            if shown.get(item["message_id"]) == item["content"]:
                continue
            shown[item["message_id"]] = item["content"]
            if options.json:
                print_json(item)
            else:
                print(_told(item), end="\n\n")
        if sys.stdout is not None:
            sys.stdout.flush()
        again = {**asked, "limit": None, "after": str(seen), "wait": str(_WAIT)}
        items = _next(daemon, with_query("/v1/conversations/messages", again))
        seen = max([seen, *(item["seq"] for item in items)])


def _next(daemon: Client, path: str) -> list[dict[str, Any]]:
    """What is said next; through a restart of the daemon, which goes on counting where it was."""
    until = None
    while True:
        try:
            items: list[dict[str, Any]] = daemon.get(path)["items"]
            return items
        except AgtmuxError as error:
            # One that has just started may not know the agent yet.
            if until is None and error.code is not ErrorCode.DAEMON_UNAVAILABLE:
                raise
            if until is None:
                until = time.monotonic() + _PATIENCE
                print(f"agtmux: {error.message}; waiting for it", file=sys.stderr, flush=True)
            elif time.monotonic() > until:
                raise
            time.sleep(_LOOK_EVERY)


def _where(daemon: Client, options: Namespace) -> dict[str, str | None]:
    """What the daemon is asked for."""
    place = {"conversation": None, "ref": None, "worktree": None, "target": options.target}
    if options.conversation:
        found = [
            item["conversation_id"]
            for item in daemon.get("/v1/conversations?limit=1000")["items"]
            if item["conversation_id"].startswith(options.conversation)
        ]
        if len(found) != 1:
            raise AgtmuxError(ErrorCode.NOT_FOUND, f"{len(found)} conversations begin with {options.conversation!r}")
        return place | {"conversation": found[0]}
    what = options.what
    if what.startswith(("/", ".", "~")):
        is_elsewhere = options.target not in (None, "host")
        path = what if is_elsewhere else os.path.realpath(os.path.expanduser(what))
        return place | {"worktree": path if is_elsewhere else _top(path)}
    return place | {"ref": full_ref(daemon, what) if what else None}


def _top(path: str) -> str:
    """The work tree that a folder of this machine is in: where git has its folder, or its file."""
    at = path
    while not os.path.lexists(os.path.join(at, ".git")):
        if os.path.dirname(at) == at:
            return path
        at = os.path.dirname(at)
    return at


def _list(daemon: Client, options: Namespace) -> int:
    limit = None if options.limit is None else str(options.limit)
    answer = daemon.get(with_query("/v1/conversations", {"target": options.target, "limit": limit}))
    if options.json:
        print_json(answer)
    elif answer["items"]:
        from agtmux.cli.table import draw, terminal_width, wants_colour

        rows = [_row(item) for item in answer["items"]]
        print("\n".join(draw(_HEADS, rows, colour=wants_colour(), width=terminal_width(), place=4)))
    else:
        print(_NOTHING)
    return 0


def _row(item: dict[str, Any]) -> tuple[str, ...]:
    return (
        local_time(item["updated_at"]),
        item["name"] or item["agent_type"],
        str(item["messages"]),
        item["source"],
        str(item["ref"] or item["worktree"] or item["target"]).removeprefix("pane:"),
        item["conversation_id"][:_SHORT],
        printable(item["title"]),
    )


def _told(item: dict[str, Any]) -> str:
    """A message with a line above it that says whose it is."""
    who = "you" if item["role"] == "user" else item["agent_type"]
    more = " (longer than what is kept)" if item["is_cut"] else ""
    return f"── {who} · {local_time(item['at'])}{more}\n{printable(item['content'], chr(10) + chr(9))}"
