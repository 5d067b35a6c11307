"""`agtmux launch AGENT`: an agent in a pane of its own, in a git worktree if one is wanted."""

from __future__ import annotations

import os
import uuid
from argparse import ArgumentParser, Namespace

from agtmux.cli.here import target_here, unwatched
from agtmux.cli.options import add_common, client, print_json
from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import legible

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# A checkout, and then half a minute for the agent.
_TIME_LIMIT = 150.0


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "Starts an agent in your tmux server and returns once it is up. It works in this folder, or in the git worktree"
        " of a branch; its session is called cw_ and then as the worktree's folder, and gets one more window if it is"
        " there already."
    )
    parser.add_argument("agent", metavar="AGENT", help="its type, as `agtmux list panes` calls it")
    parser.add_argument("--branch", metavar="B", help="in the worktree of this branch; both are made if missing")
    parser.add_argument(
        "--worktree", action="store_true", help="not in the repository's own folder; without --branch on a new branch"
    )
    parser.add_argument("--session", metavar="S", help="the tmux session (cw_WORKTREE)")
    parser.add_argument("--role", metavar="R", help="what the agent is called, as reviewer")
    parser.add_argument("--target", metavar="T", help="where (the tmux server you are in; outside of tmux, host)")
    parser.add_argument("--cwd", metavar="D", help="the folder it starts in, on that target (this one)")
    parser.add_argument("--prompt", metavar="P", help="its first prompt")
    parser.add_argument(
        "--start-server",
        action="store_true",
        help="start a tmux server if none is running, which is not done otherwise",
    )
    add_common(parser)


def run(options: Namespace) -> int:
    daemon = client(options, time_limit=_TIME_LIMIT)
    target = options.target or target_here(daemon)
    if target is None and (why := unwatched(daemon)) is not None:
        raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, f"{why}; or say with --target where it is to be")
    target = target or "host"
    asked = {
        "request_ref": uuid.uuid4().hex,
        "agent": options.agent,
        "target": target,
        "cwd": _folder(daemon, options, target),
        "branch": options.branch or "",
        "worktree": options.worktree,
        "session": options.session or "",
        "role": options.role or "",
        "prompt": options.prompt or "",
        "start_server": options.start_server,
        "actor": "cli",
    }
    answer = daemon.post("/v1/actions/launch", asked)
    if options.json:
        print_json(answer)
    else:
        print(legible(_told(answer)))
        if count := answer["unfiltered_files"]:
            print(f"{count} files are as they are committed: filters (Git LFS) are run only for you at your terminal")
        if answer["prompt"] == "not_given":
            print(legible(f"its prompt was not given to it: {answer['prompt_error']}"))
    return 1 if answer["prompt"] == "not_given" else 0


def _folder(daemon: Client, options: Namespace, target: str) -> str:
    if options.cwd is not None and os.path.isabs(options.cwd):
        return str(options.cwd)
    kinds = {item["name"]: item["kind"] for item in daemon.get("/v1/targets")["items"]}
    if kinds.get(target, "local") != "local":
        raise AgtmuxError(ErrorCode.USAGE, f"say where on {target}: --cwd with a path from the root of that machine")
    # As the shell has it, so that a session is called after the link that was followed.
    return os.path.abspath(options.cwd or "")


def _told(answer: dict[str, Any]) -> str:
    place = str(answer["ref"]).removeprefix("pane:")
    told = f"{answer['name']} is up: {place} ({answer['state']})"
    if answer["worktree"]:
        is_new = "new worktree" if answer["is_new_worktree"] else "worktree"
        told += f", {is_new} {answer['worktree']}" + (f" on {answer['branch']}" if answer["branch"] else "")
    return f"{told}; it asks: {answer['asks']}" if answer["asks"] else told
