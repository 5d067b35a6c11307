"""`agtmux board`: the web page, served by the daemon when it is asked for, and opened in a browser."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace

from agtmux import paths
from agtmux.cli.options import add_common, client, print_json
from agtmux.domain.errors import AgtmuxError, ErrorCode

# A keyring may ask its user to unlock it.
_TIME_LIMIT = 60.0
_HERE = "-"


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "Serves the web page at an address of this machine alone, and opens it. It stays until the daemon ends, or"
        " until --stop. The address that is opened carries a code that works once, within a minute."
    )
    parser.add_argument("--port", type=int, metavar="N", help="the port (4127, or any if that is taken)")
    parser.add_argument(
        "--bind", metavar="A", help="the address (127.0.0.1); with another one, other machines can reach it"
    )
    parser.add_argument("--no-open", action="store_true", help="print the address, and open no browser")
    parser.add_argument("--stop", action="store_true", help="close it")
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        nargs="?",
        const=_HERE,
        help="keep its token in this file, readable by you alone, and not in the keyring (STATE/board-token)",
    )
    parser.add_argument("--new-token", action="store_true", help="make a new token: everybody has to sign in again")
    parser.add_argument("--print-token", action="store_true", help="print the token, for programs that use the API")
    add_common(parser)


def run(options: Namespace) -> int:
    if options.stop and (options.new_token or options.print_token):
        raise AgtmuxError(ErrorCode.USAGE, "--stop closes it; leave the other choices out")
    if options.stop:
        # It goes with its daemon, and none is started to close it.
        options.no_start = True
    daemon = client(options, time_limit=_TIME_LIMIT)
    if options.stop and not options.json and not daemon.is_answered():
        print("The board is closed, as no daemon is running.")
        return 0
    asked: dict[str, object] = {"action": "open", "new_token": options.new_token, "bind": options.bind or ""}
    if options.port is not None:
        asked["port"] = options.port
    if options.token_file is not None:
        usual = os.path.join(paths.state_directory(), "board-token")
        asked["token_file"] = usual if options.token_file == _HERE else os.path.abspath(options.token_file)
    if options.stop or options.print_token:
        asked = {"action": "close" if options.stop else "token", "token_file": asked.get("token_file", "")}
    answer = daemon.post("/v1/board", asked)
    if options.json:
        print_json(answer)
    elif options.print_token:
        print(answer["token"])
    elif options.stop:
        print("The board is closed.")
    else:
        for warning in answer["warnings"]:
            print(f"agtmux: {warning}", file=sys.stderr)
        print(f"The board is at {answer['url']}")
        is_opened = not options.no_open and _open(answer["login_url"])
        if not is_opened:
            print(f"Open it within a minute, once, to sign in: {answer['login_url']}")
    return 0


def _open(url: str) -> bool:
    """In the user's browser, if there is a desktop. Others may read its address there, but the code in it is used up
    by then, or soon worth nothing."""
    import subprocess

    if sys.platform == "darwin":
        command = "open"
    elif os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        command = "xdg-open"
    else:
        return False
    nowhere = subprocess.DEVNULL
    try:
        # On its own, so that nobody who waits for this command waits for a browser.
        opened = subprocess.Popen([command, url], stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)
    except OSError:
        return False
    opened.returncode = 0
    return True
