"""Registering the bridge with an agent, withdrawing it, and looking: a file is read, changed, and put in its place.

Several agtmux may run for one user, each with a socket of its own, and there is one entry. It belongs to the daemon
whose socket it names. Another's is left alone as long as that one answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any, Final

from agtmux.agents.install.backups import Backups
from agtmux.agents.install.files import Files
from agtmux.agents.install.jsonc import JsoncError
from agtmux.agents.install.reading import link_note, not_understood, refusal, text_of
from agtmux.agents.mcp import json_file, toml_file
from agtmux.agents.mcp.sheet import NAME, McpSettings
from agtmux.agents.sheet import AgentSheet
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.probe.files import FileState

PROGRAM: Final = "agtmux-mcp"
_SOCKET: Final = "--socket"
# Agents write these files too, one of them at every turn.
_TRIES: Final = 5
_FORMATS: Final[dict[str, ModuleType]] = {"json": json_file, "toml": toml_file}


class Entry(StrEnum):
    """What stands under our name."""

    REGISTERED = "registered"
    ABSENT = "absent"
    # Ours, and it would start another program than it should.
    OUTDATED = "outdated"
    # Of an agtmux that does not answer any more.
    ABANDONED = "abandoned"
    # Of another agtmux, which answers.
    OTHER_INSTANCE = "other_instance"
    # Somebody else's server of that name.
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Bridge:
    """What is registered: the absolute path of agtmux-mcp and the daemon's socket."""

    command: str
    socket: str
    # Whether another daemon than ours answers on a socket.
    answers: Callable[[str], bool] = field(compare=False)
    # Whether the program was put there for this: then an entry is ours by its program, and all agtmux that come to that
    # machine have one socket there.
    is_placed: bool = False

    def __post_init__(self) -> None:
        # An entry is known again by the name of its program.
        is_program = PurePosixPath(self.command).is_absolute() and PurePosixPath(self.command).name == PROGRAM
        if not is_program or not (self.command + self.socket).isprintable():
            raise AgtmuxError(ErrorCode.USAGE, f"{self.command!r} is not the absolute path of an {PROGRAM}")

    def entry(self, settings: McpSettings) -> dict[str, Any]:
        return settings.entry(self.command, [_SOCKET, self.socket])

    def what_is(self, entry: Any, settings: McpSettings) -> tuple[Entry, str | None]:
        """What that entry is to us, and the socket it names."""
        if entry is None:
            return Entry.ABSENT, None
        socket = _socket_of(entry)
        if socket is None:
            return Entry.FOREIGN, None
        is_ours = entry["command"] == self.command if self.is_placed else socket == self.socket
        if not is_ours:
            return Entry.OTHER_INSTANCE if self.answers(socket) else Entry.ABANDONED, socket
        # What a user has added to it stays.
        is_right = all(entry.get(key) == value for key, value in self.entry(settings).items())
        return Entry.REGISTERED if is_right else Entry.OUTDATED, socket


@dataclass(frozen=True, slots=True)
class Report:
    """What stands in one file now."""

    agent: str
    path: str
    entry: Entry
    changed: bool = False
    # Which daemon the entry leads to.
    socket: str | None = None
    warnings: tuple[str, ...] = ()
    # The file as it was.
    backup: str | None = None

    def as_item(self) -> dict[str, Any]:
        """As it is told over the API."""
        return asdict(self) | {"error": None}


def register(sheet: AgentSheet, files: Files, bridge: Bridge, backups: Backups) -> Report:
    """Let the agent start the bridge. What is there and not ours to change is told as it is."""

    def change(text: str | None, entry: Entry, settings: McpSettings) -> str | None:
        if entry in (Entry.REGISTERED, Entry.OTHER_INSTANCE, Entry.FOREIGN):
            return text
        form = _FORMATS[settings.format]
        if text is not None and entry is not Entry.ABSENT:
            text = form.removed(text, settings.under)
        return str(form.added(text, settings.under, bridge.entry(settings)))

    report = _changed(sheet, files, bridge, backups, settings_of(sheet).path(files.environ), change)
    return replace(report, warnings=(*report.warnings, *_why_not(report)))


def unregister(sheet: AgentSheet, files: Files, bridge: Bridge, backups: Backups) -> list[Report]:
    """Take our entry out of the agent's file, and out of any other that it had when it was registered."""

    def change(text: str | None, entry: Entry, settings: McpSettings) -> str | None:
        if text is None or entry not in (Entry.REGISTERED, Entry.OUTDATED, Entry.ABANDONED):
            return text
        left: str | None = _FORMATS[settings.format].removed(text, settings.under)
        return left

    paths = dict.fromkeys([settings_of(sheet).path(files.environ), *backups.noted(sheet.agent_type)])
    told = []
    for path in paths:
        told.append(_changed(sheet, files, bridge, backups, path, change))
        backups.forget(sheet.agent_type, path)
    return told


def status(sheet: AgentSheet, files: Files, bridge: Bridge) -> Report:
    settings = settings_of(sheet)
    path = settings.path(files.environ)
    state = files.read(path, settings.wanted)
    _, entry, socket = _read(sheet, path, state, bridge)
    report = Report(sheet.agent_type, path, entry, socket=socket, warnings=tuple(link_note(path, state)))
    return replace(report, warnings=(*report.warnings, *_why_not(report)))


def settings_of(sheet: AgentSheet) -> McpSettings:
    if sheet.mcp is None:
        raise AgtmuxError(ErrorCode.UNSUPPORTED, f"where {sheet.name} names its MCP servers is not known to agtmux")
    return sheet.mcp


def _changed(
    sheet: AgentSheet,
    files: Files,
    bridge: Bridge,
    backups: Backups,
    path: str,
    change: Callable[[str | None, Entry, McpSettings], str | None],
) -> Report:
    for tries_left in reversed(range(_TRIES)):
        try:
            return _changed_once(sheet, files, bridge, backups, path, change)
        except AgtmuxError as error:
            if error.code is not ErrorCode.PRECONDITION_FAILED or not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


def _changed_once(
    sheet: AgentSheet,
    files: Files,
    bridge: Bridge,
    backups: Backups,
    path: str,
    change: Callable[[str | None, Entry, McpSettings], str | None],
) -> Report:
    settings, agent = settings_of(sheet), sheet.agent_type
    state = files.read(path, settings.wanted)
    text, entry, socket = _read(sheet, path, state, bridge)
    with _Understood(path, state):
        new = change(text, entry, settings)
    if new == text:
        return Report(agent, path, entry, socket=socket, warnings=tuple(link_note(path, state)))
    backup = None if state is None else str(backups.keep(agent, path, files.whole(path, state), state.digest))
    if new is None:
        assert state is not None
        files.remove(path, state, backups.noted(agent).get(path, []))
    else:
        backups.note(agent, path, files.replace(path, new.encode(), state))
    with _Understood(path, state):
        after = None if new is None else _FORMATS[settings.format].found(new, settings.under)
    now, socket = bridge.what_is(after, settings)
    return Report(agent, path, now, True, socket, tuple(link_note(path, state)), backup)


def _read(
    sheet: AgentSheet, path: str, state: FileState | None, bridge: Bridge
) -> tuple[str | None, Entry, str | None]:
    settings, text = settings_of(sheet), text_of(path, state)
    with _Understood(path, state):
        found = None if text is None else _FORMATS[settings.format].found(text, settings.under)
    return text, *bridge.what_is(found, settings)


class _Understood:
    """Within it, what is wrong with a file's text is told with the file's name."""

    def __init__(self, path: str, state: FileState | None) -> None:
        self._path = path
        self._state = state

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, JsoncError):
            raise not_understood(self._path, self._state, error) from None
        if isinstance(error, toml_file.TomlError):
            raise refusal(self._path, error.problem, error.line, error.column) from None


def _socket_of(entry: Any) -> str | None:
    """The socket that an entry of ours names; None if it is not one."""
    match entry:
        case {"command": str(command), "args": [*arguments]} if PurePosixPath(command).name == PROGRAM:
            after = arguments[arguments.index(_SOCKET) + 1 :] if _SOCKET in arguments else []
            return after[0] if after and isinstance(after[0], str) else None
    return None


def _why_not(report: Report) -> tuple[str, ...]:
    match report.entry:
        case Entry.OTHER_INSTANCE:
            return (f"Another agtmux is registered there, and answers on {report.socket}; it was left alone.",)
        case Entry.FOREIGN:
            return (f"A server of somebody else's is called {NAME} there; rename or remove it, and register again.",)
        case Entry.ABANDONED:
            return (f"The agtmux registered there does not answer on {report.socket}; registering replaces it.",)
        case Entry.OUTDATED:
            return ("It would start another bridge than this agtmux has; registering again mends that.",)
    return ()
