"""`agtmux wait`: block until agents are in a state, without asking again and again."""

from __future__ import annotations

import os
import select
import sys
import time
from argparse import ArgumentParser, Namespace
from contextlib import suppress

from agtmux.cli.options import add_common, add_places, client, places
from agtmux.cli.panes import SIGNS, place_of
from agtmux.cli.refs import full_ref
from agtmux.cli.table import is_terminal
from agtmux.cli.view import View
from agtmux.client import TIME_LIMIT, Client, with_query
from agtmux.domain.durations import SECOND, parse_duration
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import legible
from agtmux.follow import follow, say

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    Item = dict[str, Any]

# Result → exit status. What is gone is an error like any other that is not found.
STATUSES: Final = {"reached": 0, "other_needs_you": 10, "timed_out": 124}
_WAITING: Final = ("waiting_approval", "waiting_input")
# Seconds; a month would be more milliseconds than poll takes.
_LONGEST_POLL: Final = 86_400.0
_DESCRIPTION: Final = """\
Blocks until an agent is in one of the states; if it is already, not at all. A ref
means who is in the pane when you ask: once that agent has ended, the wait is over.
With --all and --any, agents may come and go.

exit status:
  0    the state is reached
  5    no such agent, or it has ended
  10   an agent needs you: the one you wait for asks for approval or input itself
       (with --all one of them, with --any all of them) and --for does not list
       that, or another agent has begun to ask; others that asked already when
       you began to wait do not count
  124  the time is up"""


def configure(parser: ArgumentParser) -> None:
    parser.description = _DESCRIPTION
    parser.add_argument(
        "ref",
        nargs="?",
        help="a pane as `agtmux list panes` shows it, its agent's name, a ref, or %%N where one pane has it",
    )
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--all", action="store_true", help="until all agents are in one of the states at the same time")
    who.add_argument("--any", action="store_true", help="until one agent is")
    parser.add_argument("--for", dest="states", metavar="STATE[,…]", required=True, help=f"of {', '.join(SIGNS)}")
    parser.add_argument("--timeout", metavar="D", help="give up after this long, as 30s or 10m; 0s only looks")
    parser.add_argument(
        "--ignore-others", action="store_true", help="never end with 10, also when the agent you wait for asks"
    )
    add_places(parser)
    add_common(parser)


def run(options: Namespace) -> int:
    states = _states(options.states)
    deadline = None if options.timeout is None else time.monotonic() + parse_duration(options.timeout) / SECOND
    if (options.ref is None) != (options.all or options.any):
        raise AgtmuxError(ErrorCode.USAGE, "say who is waited for: a ref, or --all, or --any")
    if options.ref is not None and any(places(options).values()):
        raise AgtmuxError(ErrorCode.USAGE, "a ref is one pane already; --target, --session and --agent go with --all")
    daemon = client(options)
    vigil = _Vigil(states, _who(daemon, options), ignores_others=options.ignore_others)
    view, result = View(), "timed_out"
    try:
        for _, said in follow(daemon, {"scope": "panes"}, _Pace(deadline, view)):
            first = not view.has_begun
            view.take(said)
            if not view.has_begun:
                continue
            if (found := vigil.judged(view.listing()["items"])) is not None:
                result = found
                break
            if first and is_terminal(sys.stderr):
                say(legible(f"agtmux: waiting for {vigil.pending()} to be {' or '.join(states)}"))
    except _TimeIsUp:
        pass
    _print(vigil, result, view, as_json=options.json)
    return STATUSES[result]


class _TimeIsUp(Exception):
    """So it ends without a result."""


class _Pace:
    """Until there is something to read, or the time is up."""

    def __init__(self, deadline: float | None, view: View) -> None:
        self._deadline = deadline
        self._view = view
        # However little time is given: what is so now is always looked at.
        self._at_least = time.monotonic() + TIME_LIMIT

    def wait(self, connection: int) -> None:
        waiting = select.poll()
        waiting.register(connection, select.POLLIN)
        while not waiting.poll(None if (left := self._left()) is None else min(max(0.0, left), _LONGEST_POLL) * 1000):
            if left is not None and left <= 0:
                raise _TimeIsUp

    def rest(self, seconds: float) -> None:
        left = self._left()
        if left is not None and left <= 0:
            raise _TimeIsUp
        time.sleep(seconds if left is None else min(seconds, left))

    def _left(self) -> float | None:
        if self._deadline is None:
            return None
        deadline = self._deadline if self._view.has_begun else max(self._deadline, self._at_least)
        return deadline - time.monotonic()


class _Who:
    """Those who are waited for: one runtime, or all that fit."""

    def __init__(self, *, ref: str = "", filters: dict[str, str] | None = None, needs_all: bool = True) -> None:
        self.ref = ref
        self.runtime_id = ref.removeprefix("runtime:") if ref.startswith("runtime:") else None
        self.needs_all = needs_all
        self._filters = filters or {}

    def among(self, items: list[Item]) -> list[Item]:
        if not self.ref:
            return [item for item in items if self._fits(item)]
        if self.runtime_id is None:
            self.runtime_id = next((item["runtime_id"] for item in items if item["ref"] == self.ref), "")
        return [item for item in items if item["runtime_id"] == self.runtime_id]

    def _fits(self, item: Item) -> bool:
        identity = item["identity"]
        found = {
            "target": identity["target"],
            "session": identity["session_name"],
            "agent": item["agent_type"],
            "target_session": item["ref"].removeprefix("pane:").rpartition("/@")[0],
        }
        return all(found[name] == wanted for name, wanted in self._filters.items())


class _Vigil:
    """What is known of those who are waited for, and who else waits."""

    def __init__(self, states: list[str], who: _Who, *, ignores_others: bool) -> None:
        self.states = states
        self.items: list[Item] = []
        self.needs_you: list[Item] = []
        self._who = who
        self._ignores_others = ignores_others
        # By runtime. None before the first look: who waits then does not count.
        self._waiting: set[str] | None = None

    def judged(self, items: list[Item]) -> str | None:
        """The result, if there is one. Raises if nobody is left to wait for."""
        self.items = self._who.among(items)
        if not self.items:
            raise self._gone()
        reached = [item for item in self.items if item["state"] in self.states]
        if reached and (len(reached) == len(self.items) or not self._who.needs_all):
            self.items = self.items if self._who.needs_all else reached
            return "reached"
        before = self._waiting
        self._waiting = {item["runtime_id"] for item in items if item["state"] in _WAITING}
        if not self._ignores_others:
            blocked = self._blocked()
            new = [item for item in items if before is not None and self._has_begun_to_ask(item, before)]
            self.needs_you = blocked + [item for item in new if item not in blocked]
        return "other_needs_you" if self.needs_you else None

    def _blocked(self) -> list[Item]:
        """Those who are waited for and cannot get there before you answer, however long they have waited for that."""
        asking = [item for item in self.items if item["state"] in _WAITING and item["state"] not in self.states]
        return asking if self._who.needs_all or len(asking) == len(self.items) else []

    def pending(self) -> str:
        missing = [item for item in self.items if item["state"] not in self.states]
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        return f"{_named(missing[0])} ({missing[0]['state']}){more}"

    def _has_begun_to_ask(self, item: Item, before: set[str]) -> bool:
        if item["state"] not in _WAITING or item["runtime_id"] in before:
            return False
        is_waited_for = any(item["runtime_id"] == each["runtime_id"] for each in self.items)
        return not is_waited_for or item["state"] not in self.states

    def _gone(self) -> AgtmuxError:
        if not self._who.ref:
            return AgtmuxError(
                ErrorCode.NOT_FOUND, "no agent fits, so there is nothing to wait for; see agtmux list panes"
            )
        if self._waiting is None:
            return AgtmuxError(ErrorCode.REF_NOT_FOUND, f"no agent is in {self._who.ref}; see agtmux list panes")
        return AgtmuxError(
            ErrorCode.REF_NOT_FOUND,
            f"the agent that was in {self._who.ref} has ended, or another is there now; list the panes again",
            {"runtime_id": self._who.runtime_id},
        )


def _who(daemon: Client, options: Namespace) -> _Who:
    if options.ref is not None:
        from agtmux.domain.refs import parse_ref

        return _Who(ref=str(parse_ref(full_ref(daemon, options.ref))))
    asked = {name: value for name, value in places(options).items() if value is not None}
    # The daemon says what is wrong with them, and how they are spelt.
    filters = daemon.get(with_query("/v1/panes", {**asked, "needs_action": "1"}))["filters"] if asked else {}
    return _Who(filters={name: filters[name] for name in asked}, needs_all=options.all)


def _states(text: str) -> list[str]:
    states = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [state for state in states if state not in SIGNS]
    if unknown or not states:
        raise AgtmuxError(
            ErrorCode.USAGE, f"{(unknown or [text])[0][:40]!r} is not a state; known are {', '.join(SIGNS)}"
        )
    return states


def _print(vigil: _Vigil, result: str, view: View, *, as_json: bool) -> None:
    if as_json:
        import json

        content = {
            "schema_version": 1,
            "generated_at": view.now().isoformat().replace("+00:00", "Z"),
            "result": result,
            "states": vigil.states,
            "items": vigil.items,
            "needs_you": vigil.needs_you,
        }
        text = json.dumps(content)
    else:
        text = legible(_line(vigil, result))
    if sys.stdout is None:
        return
    # Past Python's buffer: that nobody reads it any more must not change what the exit status says.
    with suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), f"{text}\n".encode(sys.stdout.encoding or "utf-8", "replace"))


def _line(vigil: _Vigil, result: str) -> str:
    if result == "timed_out":
        return f"timed out waiting for {vigil.pending()}" if vigil.items else "timed out"
    if result == "other_needs_you":
        return f"needs you: {_told(vigil.needs_you[0])}"
    if len(vigil.items) == 1:
        return _told(vigil.items[0])
    states = [item["state"] for item in vigil.items]
    return f"{len(states)} agents: " + ", ".join(f"{states.count(state)} {state}" for state in SIGNS if state in states)


def _told(item: Item) -> str:
    asks = f": {item['attention']['summary']}" if item["attention"] else ""
    return f"{_named(item)} is {item['state']}{asks}"


def _named(item: Item) -> str:
    return f"{item['agent_type']} in {place_of(item['identity'])}"
