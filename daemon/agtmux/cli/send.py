"""`agtmux send <ref>`: a text or a key for an agent, typed as you would type it."""

from __future__ import annotations

import sys
import uuid
from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, add_conditions, client, conditions, print_json
from agtmux.cli.refs import full_ref
from agtmux.domain.errors import AgtmuxError, ErrorCode

_SAID = {
    "delivered": "delivered",
    "typed_not_submitted": "typed, and not submitted; agtmux send {ref} --enter does that",
    "typed_in_shell": "typed into the shell or program there; agtmux cannot tell what it did with it",
}


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "Types into an agent's prompt and reads back that it stands there, and with --enter that it was taken. Refused"
        " while the agent asks something, as what is typed would answer it, or while somebody has begun to type. The"
        " text is sent as it is: what begins with / or ! is a command to most agents. A pane without an agent is given"
        " nothing unless --shell says that a shell is meant."
    )
    parser.add_argument(
        "ref", help="a pane as `agtmux list panes` shows it, its agent's name, a ref, or %%N where one pane has it"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--text", metavar="TEXT", help="this text")
    what.add_argument("--stdin", action="store_true", help="what comes on standard input, up to 1 MB")
    what.add_argument("--key", metavar="KEY", help="this key, named as in tmux: C-c, Escape, Up")
    parser.add_argument("--enter", action="store_true", help="and then Enter; alone, it submits what is typed there")
    parser.add_argument("--paste", action="store_true", help="as one paste, which is what happens anyway")
    parser.add_argument("--append", action="store_true", help="also if something is typed there already")
    parser.add_argument(
        "--shell",
        action="store_true",
        help="for a shell, or another program that is no agent; it is not read back, and refused if an agent is there",
    )
    add_conditions(parser)
    add_common(parser)


def run(options: Namespace) -> int:
    # It is read back, and an agent may take its time.
    daemon = client(options, time_limit=20.0)
    what = _what(options)
    asked = {
        "request_ref": uuid.uuid4().hex,
        "ref": full_ref(daemon, options.ref),
        "actor": "cli",
        "append": options.append,
        "shell": options.shell,
        **what,
        **conditions(options),
    }
    answer = daemon.post("/v1/actions/send", asked)
    if options.json:
        print_json(answer)
    else:
        print(_SAID[answer["result_code"]].format(ref=options.ref + (" --shell" if options.shell else "")))
    return 0


def _what(options: Namespace) -> dict[str, object]:
    """A text or a key, and whether Enter comes after it."""
    if options.key is not None:
        return {"key": options.key, "enter": options.enter}
    if options.stdin or options.text is not None:
        return {"text": _text(options), "enter": options.enter}
    if options.enter:
        return {"key": "Enter"}
    raise AgtmuxError(ErrorCode.USAGE, "say what to send: --text TEXT, --stdin, --key KEY, or --enter alone")


def _text(options: Namespace) -> str:
    if not options.stdin:
        return str(options.text)
    # The last newline is the end of a file and not of a message.
    raw = sys.stdin.buffer.read()
    try:
        return raw.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise AgtmuxError(ErrorCode.USAGE, "what comes on standard input is not text in UTF-8") from None
