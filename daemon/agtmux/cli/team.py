"""`agtmux team up|down|status FILE`: several agents that work together, described in one file."""

from __future__ import annotations

import sys
import time
import uuid
from argparse import ArgumentParser, Namespace
from pathlib import Path

from agtmux.cli.options import add_common, client, confirmed, print_json
from agtmux.cli.table import is_terminal
from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import legible

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

# A checkout, and then half a minute for the agent.
_TIME_LIMIT: Final = 150.0
_HEADS: Final = ("ROLE", "AGENT", "STATE", "MAIL", "WRITES TO", "PANE")
_PANE: Final = _HEADS.index("PANE")


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "A team is a TOML file: its name and its roles, each with an agent, what it is told first, and whom it may"
        " write to. `up` starts those that are missing, `down` stops them all; worktrees and what is in them stay."
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="up|down|status")
    up = actions.add_parser("up", help="start those who are missing")
    up.add_argument("file", metavar="FILE")
    add_common(up)
    down = actions.add_parser("down", help="stop all of them")
    down.add_argument("file", metavar="FILE|NAME")
    down.add_argument("--yes", action="store_true", help="do not ask")
    add_common(down)
    status = actions.add_parser("status", help="say who is there, and how their tasks are")
    status.add_argument("file", metavar="FILE|NAME", nargs="?")
    add_common(status)


def run(options: Namespace) -> int:
    daemon = client(options, time_limit=_TIME_LIMIT)
    return {"up": _up, "down": _down, "status": _status}[options.action](daemon, options)


def _up(daemon: Client, options: Namespace) -> int:
    team = daemon.post("/v1/teams", _read(options.file))["items"][0]
    failed: AgtmuxError | None = None
    is_untold = False
    for role in team["roles"]:
        if role["ref"] is not None:
            _say(options, f"{role['role']} is there already: {_place(role['ref'])}")
            continue
        _say(options, f"{role['role']}: starting {role['agent_type']} …")
        try:
            answer = _launched(daemon, options, team["name"], role["role"])
        except AgtmuxError as error:
            failed = failed or error
            print(legible(f"agtmux: {role['role']}: {error}"), file=sys.stderr)
            continue
        asks = f"; it asks: {answer['asks']}" if answer["asks"] else ""
        _say(options, f"{role['role']} is up: {_place(answer['ref'])} ({answer['state']}){asks}")
        if answer["prompt"] == "not_given":
            is_untold = True
            print(legible(f"{role['role']} was not told what it is for: {answer['prompt_error']}"), file=sys.stderr)
    if options.json:
        print_json({**daemon.get("/v1/teams"), "items": [_found(daemon, team["name"])]})
    return failed.exit_status if failed is not None else int(is_untold)


def _launched(daemon: Client, options: Namespace, team: str, role: str) -> dict[str, Any]:
    """A team may have more roles than may be launched in a minute; then the rest have to wait."""
    while True:
        asked = {"role": role, "request_ref": uuid.uuid4().hex, "actor": "cli"}
        try:
            answer: dict[str, Any] = daemon.post(f"/v1/teams/{team}/launch", asked)
            return answer
        except AgtmuxError as error:
            wait = error.details.get("retry_after_seconds")
            if error.code is not ErrorCode.LIMIT_RATE or not isinstance(wait, int):
                raise
            _say(options, f"{role} has to wait {wait} s: {error.message}")
            time.sleep(wait)


def _down(daemon: Client, options: Namespace) -> int:
    team = _found(daemon, _name(options.file))
    there = [role for role in team["roles"] if role["ref"] is not None]
    names = ", ".join(role["role"] for role in there)
    if there and not options.yes and not confirmed(f"Stop {names}?"):
        if not is_terminal(sys.stdin):
            raise AgtmuxError(ErrorCode.USAGE, "nobody is there to be asked; give --yes")
        print("nothing was done")
        return 1
    failed: AgtmuxError | None = None
    for role in there:
        asked = {"request_ref": uuid.uuid4().hex, "ref": role["ref"], "if_runtime": role["runtime_id"], "actor": "cli"}
        try:
            daemon.post("/v1/actions/stop", asked)
        except AgtmuxError as error:
            failed = failed or error
            print(legible(f"agtmux: {role['role']}: {error}"), file=sys.stderr)
            continue
        _say(options, f"{role['role']} has ended")
    if failed is not None:
        # What is still there stays a team, with its rules.
        return failed.exit_status
    answer = daemon.delete(f"/v1/teams/{team['name']}")
    if options.json:
        print_json(answer)
    else:
        print(legible(f"{team['name']} is down; worktrees are left as they are"))
    return 0


def _status(daemon: Client, options: Namespace) -> int:
    answer = daemon.get("/v1/teams")
    if options.file is not None:
        name = _name(options.file)
        answer["items"] = [item for item in answer["items"] if item["name"] == name]
        answer["summary"] = {"total": len(answer["items"])}
        if not answer["items"]:
            raise AgtmuxError(ErrorCode.NOT_FOUND, f"the team {name!r} is not up")
    if options.json:
        print_json(answer)
        return 0
    if not answer["items"]:
        print("no team is up")
    from agtmux.cli.table import draw, terminal_width, wants_colour

    for team in answer["items"]:
        print(legible(f"{team['name']} in {team['folder'] or '-'}"))
        rows = [_row(role) for role in team["roles"]]
        print("\n".join(draw(_HEADS, rows, colour=wants_colour(), width=terminal_width(), place=_PANE)))
        for task in [task for task in team["tasks"] if not task["is_over"]]:
            print(
                legible(f"task {task['message_id']} from {task['from_agent']} to {task['to_agent']}: {task['status']}")
            )
    return 0


def _row(role: dict[str, Any]) -> tuple[str, ...]:
    state = role["state"] or "not there"
    if role.get("confirmation") == "unconfirmed":
        state += " (unconfirmed)"
    return (
        role["role"],
        role["agent_type"],
        f"{state}: {role['asks']}" if role["asks"] else state,
        str(role["waiting"] or "-"),
        ", ".join(role["peers"]) or "nobody",
        _place(role["ref"]) if role["ref"] else "-",
    )


def _found(daemon: Client, name: str) -> dict[str, Any]:
    teams: list[dict[str, Any]] = daemon.get("/v1/teams")["items"]
    for team in teams:
        if team["name"] == name:
            return team
    raise AgtmuxError(ErrorCode.NOT_FOUND, f"the team {name!r} is not up")


def _name(text: str) -> str:
    """Of a team that is named, or by its file."""
    return str(_read(text)["name"]) if Path(text).suffix == ".toml" or Path(text).is_file() else text


def _read(text: str) -> dict[str, Any]:
    import tomllib

    path = Path(text)
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise AgtmuxError(ErrorCode.USAGE, f"cannot read {text}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AgtmuxError(ErrorCode.USAGE, f"{text} is not TOML: {error}") from None
    if "name" not in content:
        content["name"] = path.stem
    return {"folder": str(path.resolve().parent), **content}


def _place(ref: str) -> str:
    return ref.removeprefix("pane:")


def _say(options: Namespace, text: str) -> None:
    """Progress is for people."""
    if not options.json:
        print(legible(text), flush=True)
