"""`agtmux chat`: a conversation with an agent, in this terminal or behind a socket."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from agtmux.domain.errors import AgtmuxError, ErrorCode


def configure(parser: ArgumentParser) -> None:
    from agtmux.chat.options import configure as configure_session

    configure_session(parser)
    parser.add_argument(
        "--attach", metavar="SOCKET|REF", help="join a session that runs: by its socket, its id, or as the table has it"
    )


def run(options: Namespace) -> int:
    if options.attach is not None:
        return _join(options.attach)
    if options.socket is not None:
        from agtmux.chat.main import run as serve

        return serve(options)
    return _talk(options)


def _talk(options: Namespace) -> int:
    from agtmux.chat.start import Started
    from agtmux.chat.terminal import Left, talk

    started = Started(options)
    try:
        reason = talk(started.socket)
    except Left as left:
        if left.is_detached:
            started.let_live()
            print(f"\nit goes on; join it with: agtmux chat --attach {started.session_id[:8]}")
            return 0
        reason = None
    except BaseException:
        started.end()
        raise
    started.end()
    if reason is not None:
        raise AgtmuxError(ErrorCode.AGENT_FAILED, f"the session has ended: {reason}")
    print(f"\ngo on with: agtmux chat --resume {started.session_id}")
    return 0


def _join(place: str) -> int:
    from agtmux.chat.terminal import Left, talk

    try:
        reason = talk(_socket(place), history=True)
    except Left:
        print()
        return 0
    print(f"\nthe session has ended: {reason}")
    return 0


def _socket(place: str) -> str:
    from agtmux import paths

    by_id = os.path.join(paths.chat_directory(), f"{place[:8]}.sock")
    for path in (place, by_id):
        if os.path.exists(path):
            return path
    import uuid

    from agtmux.cli.refs import full_ref
    from agtmux.client import Client

    daemon = Client()
    asked = {"ref": full_ref(daemon, place), "request_ref": uuid.uuid4().hex, "only_print": True, "actor": "cli"}
    words: list[str] = daemon.post("/v1/actions/attach", asked)["argv"]
    if "--attach" not in words:
        raise AgtmuxError(ErrorCode.USAGE, "that is a pane and no chat session; go there with agtmux attach")
    return words[-1]
