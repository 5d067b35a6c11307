"""`agtmux target add|connect|list|remove`: the tmux servers that are watched."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, client, confirmed, print_json
from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import legible

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# More than the daemon gives a target to be connected to and looked at.
_CONNECT_LIMIT = 20.0


def configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="add|connect|list|remove")
    add = actions.add_parser(
        "add",
        help="watch another tmux server",
        description="Watches another tmux server: one of this machine, by its socket, or that of another machine, over"
        " SSH. A local socket that no server answers on is added with a warning: a server may start there later.",
        epilog="example: agtmux target add vm1 --kind ssh",
    )
    add.add_argument("name", help="letters, digits, . _ and -")
    add.add_argument("--kind", choices=["local", "ssh"], help="where it runs: local, or ssh if --ssh-target is given")
    add.add_argument(
        "--ssh-target", metavar="HOST", help="a host as ssh takes it: an alias, user@host (the name, with --kind ssh)"
    )
    add.add_argument("--tmux-socket", metavar="S", default="", help="a -L name or a -S path; tmux's default otherwise")
    add_common(add)
    connect = actions.add_parser("connect", help="look at a target now and say how it is")
    connect.add_argument("name")
    add_common(connect)
    add_common(actions.add_parser("list", help="list the targets"))
    remove = actions.add_parser("remove", help="watch a target no longer")
    remove.add_argument("name")
    remove.add_argument("--yes", action="store_true", help="do not ask")
    add_common(remove)


def run(options: Namespace) -> int:
    return {"add": _add, "connect": _connect, "list": _list, "remove": _remove}[options.action](options)


def _add(options: Namespace) -> int:
    kind = options.kind or ("ssh" if options.ssh_target else "local")
    # `target add vm1 --kind ssh`: the host is called like the target.
    ssh_target = options.ssh_target or (options.name if kind == "ssh" else "")
    asked = {"name": options.name, "kind": kind, "ssh_target": ssh_target, "tmux_socket": options.tmux_socket}
    daemon = client(options, _CONNECT_LIMIT)
    answer = daemon.post("/v1/targets", asked)
    if options.json:
        print_json(answer)
        return 0
    try:
        item = daemon.post(f"/v1/targets/{options.name}/connect", {})["item"]
        if item["warning"]:
            # It may be a server that is yet to start, or a name that was mistyped.
            print(f"{options.name} is watched")
            undo = f"`agtmux target remove {options.name} --yes` takes it back"
            print(legible(f"agtmux: {item['warning']}; if that name is wrong, {undo}"), file=sys.stderr)
        else:
            print(f"{options.name} is watched, with {_panes(item)}")
    except AgtmuxError as error:
        print(f"{options.name} is watched, but cannot be looked at yet; it is tried again and again")
        print(legible(f"agtmux: {error}"), file=sys.stderr)
    return 0


def _connect(options: Namespace) -> int:
    daemon = client(options, _CONNECT_LIMIT)
    before = _known(daemon, options.name)
    answer = daemon.post(f"/v1/targets/{options.name}/connect", {})
    if options.json:
        print_json(answer)
    else:
        item = answer["item"]
        is_back = item["health"] == "ok" != before["health"]
        print(f"{item['name']} {'answers again' if is_back else 'is ' + item['health']}, with {_panes(item)}")
    return 0


def _list(options: Namespace) -> int:
    listing = client(options).get("/v1/targets")
    if options.json:
        print_json(listing)
        return 0
    from agtmux.cli.table import draw, terminal_width, wants_colour

    heads = ("NAME", "KIND", "HEALTH", "PANES", "SEEN", "HOST", "TMUX SOCKET", "")
    rows = [
        (
            item["name"],
            item["kind"],
            item["health"],
            str(item["panes"]),
            _seen(item, listing["generated_at"]),
            item["ssh_target"] or "-",
            item["tmux_socket"] or "default",
            item["error"]["message"] if item["error"] else item["warning"] or "",
        )
        for item in listing["items"]
    ]
    print("\n".join(draw(heads, rows, colour=wants_colour(), width=terminal_width())))
    return 0


def _seen(item: dict[str, Any], now: str) -> str:
    """How long ago it was looked at."""
    from datetime import datetime

    from agtmux.domain.durations import format_age

    if item["last_seen_at"] is None:
        return "never"
    ago = datetime.fromisoformat(now) - datetime.fromisoformat(item["last_seen_at"])
    return format_age(int(ago.total_seconds() * 1_000_000))


def _remove(options: Namespace) -> int:
    name, daemon = options.name, client(options, _CONNECT_LIMIT)
    _known(daemon, name)
    if not options.yes and not confirmed(f"Stop watching {name} and forget its panes?"):
        raise AgtmuxError(ErrorCode.USAGE, f"{name} was not removed; say yes, or give --yes")
    answer = daemon.delete(f"/v1/targets/{name}")
    if options.json:
        print_json(answer)
    else:
        print(f"{name} is no longer watched")
        for warning in answer["warnings"]:
            print(legible(f"agtmux: {warning}"), file=sys.stderr)
    return 0


def _known(daemon: Client, name: str) -> dict[str, Any]:
    """The target of that name, before anything is asked of it or of anybody."""
    items: list[dict[str, Any]] = daemon.get("/v1/targets")["items"]
    for item in items:
        if item["name"] == name:
            return item
    known = ", ".join(item["name"] for item in items)
    raise AgtmuxError(ErrorCode.TARGET_NOT_FOUND, f"no target is called {name[:64]!r}; known are {known}")


def _panes(item: dict[str, Any]) -> str:
    return "1 pane" if item["panes"] == 1 else f"{item['panes']} panes"
