"""`agtmux message send|broadcast|list|show|reply|read|cancel`: what agents and their user write to each other."""

from __future__ import annotations

import sys
import time
import uuid
from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, client, print_json
from agtmux.cli.refs import full_ref
from agtmux.cli.times import local_time
from agtmux.client import Client, with_query
from agtmux.domain.durations import SECOND, parse_duration
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import legible, printable

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

_TYPES: Final = (
    *("info", "task_request", "task_response", "task_complete", "task_failed"),
    *("progress", "error", "ping", "shutdown"),
)
_PRIORITIES: Final = ("low", "normal", "high", "urgent")
_STATUSES: Final = ("queued", "delivering", "delivered", "expired", "refused", "uncertain")
_HEADS: Final = ("AT", "FROM", "TO", "TYPE", "STATUS", "TOOK", "SIZE", "ID", "TEXT")
_TEXT: Final = _HEADS.index("TEXT")
# Answers that an agent gives within seconds are worth waiting for.
_WAIT: Final = "3s"
# Tries, each a twentieth of a second.
_ACCEPTED_WITHIN: Final = 20
_REASONS: Final = {
    "dialog_open": "it asks its user something",
    "draft_present": "somebody has begun to type there",
    "busy": "it works, and would be interrupted",
    "no_prompt": "its screen shows no prompt",
    "not_in_front": "something else is in front in its pane",
    "unreachable": "its target cannot be reached",
    "interrupted": "its typing was cut short and is looked after",
    "for_the_user": "until it is read",
    "ttl_ended": "its time was over",
    "receiver_ended": "the agent has ended",
    "taken_back": "it was taken back",
    "not_now": "it could not be delivered at once",
}
# What is typed for each: those that are over badly fail the command.
_BAD: Final = {"refused": 4, "expired": 1, "uncertain": 1}
_UNREACHABLE: Final = 6


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "Messages between agents, and from you to them: typed as a prompt that says who sends it, when its receiver can"
        " take one. They are never typed into a dialog or a draft; they wait, and `list` says why."
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="send|broadcast|list|show|reply|read|cancel")
    send = actions.add_parser(
        "send",
        help="to one agent",
        description="Writes to one agent. The message is typed at its prompt when it can take one, waits until then,"
        " and says who sends it. Ctrl-C ends the waiting of this command and not the message: it prints the command"
        " that cancels that.",
        epilog='example: agtmux message send reviewer "main is red, please hold your merge" --wait 10s',
    )
    send.add_argument("to", help="AGENT-N for the one in pane %%N, its role, or a pane as in `list panes`")
    _add_letter(send)
    broadcast = actions.add_parser("broadcast", help="to all agents")
    broadcast.add_argument("--team", metavar="NAME", default="", help="only of this team")
    _add_letter(broadcast)
    reply = actions.add_parser("reply", help="to who has sent a message")
    reply.add_argument("id", help="of the message, as `list` shows it")
    _add_letter(reply, is_reply=True)
    listing = actions.add_parser("list", help="the latest first, with what became of each")
    listing.add_argument("--with", dest="party", metavar="NAME", help="only from or to this one")
    listing.add_argument("--to", metavar="NAME", help="only to this one")
    listing.add_argument("--status", choices=_STATUSES, help="only those that are")
    listing.add_argument("--type", choices=(*_TYPES, "pong"), help="only of this type")
    listing.add_argument("--since", metavar="D", help="only of the last, as 30m or 2d")
    listing.add_argument("--limit", type=int, metavar="N", help="how many (50)")
    add_common(listing)
    show = actions.add_parser("show", help="one message, whole")
    show.add_argument("id", help="as `list` shows it")
    add_common(show)
    read = actions.add_parser("read", help="what agents have written to you")
    read.add_argument("--wait", metavar="D", default="0s", help="up to this long for something to come, up to 60s")
    add_common(read)
    cancel = actions.add_parser("cancel", help="take back a message that still waits")
    cancel.add_argument("id", help="as `list` shows it")
    add_common(cancel)


def _add_letter(parser: ArgumentParser, *, is_reply: bool = False) -> None:
    parser.add_argument("text", nargs="?", help="what to say")
    parser.add_argument("--stdin", action="store_true", help="say what comes on standard input, up to 1 MB")
    default = None if is_reply else "info"
    parser.add_argument("--type", choices=_TYPES, default=default, help="what it is (info)")
    parser.add_argument("--priority", choices=_PRIORITIES, default="normal", help="the more urgent come first (normal)")
    if not is_reply:
        parser.add_argument("--reply-to", metavar="ID", help="the message that it answers")
    parser.add_argument("--task", metavar="ID", help="the task that it is about")
    parser.add_argument("--ttl", metavar="D", help="how long it may wait, as 10m, up to 7d (1h)")
    parser.add_argument("--now", action="store_true", help="refuse it instead of letting it wait")
    parser.add_argument(
        "--wait", metavar="D", default=_WAIT, help=f"how long to wait for its delivery, up to 10s ({_WAIT})"
    )
    add_common(parser)


def run(options: Namespace) -> int:
    daemon = client(options, time_limit=75.0)
    match options.action:
        case "send" | "broadcast" | "reply":
            return _send(daemon, options)
        case "list":
            return _list(daemon, options)
        case "read":
            answer = daemon.post("/v1/inbox", {"limit": 100, "wait_seconds": _seconds(options.wait, "--wait", 60)})
        case "show":
            answer = daemon.get(with_query("/v1/messages", {"message_id": options.id}))
        case _:
            answer = daemon.delete(f"/v1/messages/{options.id}")
    if options.json:
        print_json(answer)
    elif options.action == "cancel":
        print("taken back; it was not delivered")
    elif not answer["items"]:
        print("nobody has written to you")
    else:
        print("\n\n".join("\n".join(map(printable, _whole(item))) for item in answer["items"]))
    return 0


def _send(daemon: Client, options: Namespace) -> int:
    asked: dict[str, object] = {
        "content": _text(options),
        "priority": options.priority,
        "delivery": "now" if options.now else "queue",
        "request_ref": uuid.uuid4().hex,
        "wait_seconds": _seconds(options.wait, "--wait", 10),
        "task_id": options.task,
        "ttl_seconds": None if options.ttl is None else int(_seconds(options.ttl, "--ttl", 7 * 24 * 3600, 1)),
    }
    if options.action == "reply":
        about = daemon.get(with_query("/v1/messages", {"message_id": options.id}))["items"][0]
        is_task = about["type"] == "task_request"
        asked |= {"to": about["from_agent"], "reply_to": about["message_id"]}
        asked |= {"type": options.type or ("task_response" if is_task else "info")}
    else:
        asked |= {"type": options.type, "reply_to": options.reply_to}
        asked |= {"to": full_ref(daemon, options.to)} if options.action == "send" else {"team": options.team}
    try:
        answer = daemon.post("/v1/messages", asked)
    except KeyboardInterrupt:
        # Whoever stops waiting has not taken the message back: it says what still waits, and how to do that.
        answer = _accepted(daemon, str(asked["request_ref"]))
        if options.json:
            print_json(answer)
        print("\n".join(map(legible, _left_behind(answer["items"]))), file=sys.stderr)
        return 130
    if options.json:
        print_json(answer)
    else:
        print("\n".join(map(legible, map(_said, answer["items"]))))
    return max(map(_exit_code, answer["items"]), default=0)


def _exit_code(item: dict[str, Any]) -> int:
    if (item["status"], item["reason"]) == ("refused", "unreachable"):
        return _UNREACHABLE
    return _BAD.get(item["status"], 0)


def _accepted(daemon: Client, request_ref: str) -> Any:
    """The messages that came of that request. It may be on its way to the disk yet."""
    for _ in range(_ACCEPTED_WITHIN):
        answer = daemon.get(with_query("/v1/messages", {"request_ref": request_ref}))
        if answer["items"]:
            break
        time.sleep(0.05)
    return answer


def _left_behind(items: list[dict[str, Any]]) -> list[str]:
    if not items:
        return ["agtmux: interrupted before the message was accepted; nothing was sent"]
    lines = ["agtmux: interrupted, and what was sent stays sent:"]
    for item in items:
        lines.append(f"  {_said(item)}")
        if item["status"] in ("queued", "delivering"):
            lines.append(f"    it still waits; to cancel it: agtmux message cancel {item['message_id']}")
    return lines


def _list(daemon: Client, options: Namespace) -> int:
    asked = {
        "with": options.party,
        "to": options.to,
        "status": options.status,
        "type": options.type,
        "since": options.since,
        "limit": None if options.limit is None else str(options.limit),
    }
    answer = daemon.get(with_query("/v1/messages", asked))
    if options.json:
        print_json(answer)
    elif answer["items"]:
        from agtmux.cli.table import draw, terminal_width, wants_colour

        rows = [_row(item) for item in answer["items"]]
        print("\n".join(draw(_HEADS, rows, colour=wants_colour(), width=terminal_width(), place=_TEXT)))
    else:
        print("nothing fits what was asked for" if answer["filters"] else "nobody has written yet")
    return 0


def _said(item: dict[str, Any]) -> str:
    if item["type"] == "pong":
        return str(item["content"])
    why = f", {_REASONS.get(item['reason'], item['reason'])}" if item["reason"] else ""
    return f"{item['status']} to {item['to_agent']}{why} ({item['message_id']})"


def _row(item: dict[str, Any]) -> tuple[str, ...]:
    took = "-" if item["duration_ms"] is None else f"{item['duration_ms'] / 1000:.1f}s"
    reason = f" {item['reason']}" if item["reason"] else ""
    return (
        local_time(item["sent_at"]),
        item["from_agent"],
        item["to_agent"],
        item["type"],
        f"{item['status']}{reason}",
        took,
        str(item["size"]),
        item["message_id"],
        printable(" ".join((item["content"] or "").split())[:200]),
    )


def _whole(item: dict[str, Any]) -> list[str]:
    lines = [
        f"{item['type']} {item['message_id']} from {item['from_agent']} to {item['to_agent']},"
        f" {local_time(item['sent_at'])}",
        f"  {item['status']}" + (f": {_REASONS.get(item['reason'], item['reason'])}" if item["reason"] else ""),
    ]
    lines += [f"  {name}: {item[name]}" for name in ("reply_to", "task_id", "correlation_id") if item[name]]
    lines += ["", *(f"  {line}" for line in (item["content"] or "(forgotten)").split("\n"))]
    if item["thinking"]:
        lines += ["", "  thinking:", *(f"  {line}" for line in item["thinking"].split("\n"))]
    return lines


def _text(options: Namespace) -> str:
    if options.stdin == (options.text is not None):
        if options.type in ("ping", "shutdown") and not options.stdin:
            return ""
        raise AgtmuxError(ErrorCode.USAGE, "say what to send: a text in quotes, or --stdin")
    if not options.stdin:
        return str(options.text)
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise AgtmuxError(ErrorCode.USAGE, "what comes on standard input is not text in UTF-8") from None


def _seconds(text: str, option: str, most: int, least: int = 0) -> float:
    try:
        seconds = parse_duration(text) / SECOND
    except AgtmuxError as error:
        raise AgtmuxError(error.code, f"{option}: {error.message}") from None
    if not least <= seconds <= most:
        raise AgtmuxError(ErrorCode.USAGE, f"{option} may be {least}s to {most}s")
    return seconds
