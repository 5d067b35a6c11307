"""The `[hooks]` section of an agent's TOML: which file of the agent names its hooks, and how one is written there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from agtmux.domain.errors import AgtmuxError, ErrorCode

_COMMAND: Final = "{command}"
_MESSAGE: Final = "{message}"
# What the model is told where the user gave no reason.
_NO_REASON: Final = "The user denied this."
_VARIABLE: Final = re.compile(r"\$([A-Z][A-Z0-9_]*)")


class CommandPlace(NamedTuple):
    """Where in an entry its command stands: entry[command], or in each of entry[handlers] under that name."""

    handlers: str | None
    command: str


class Answers(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How an agent is told what was decided, as JSON on its hook's output; "{message}" is the reason."""

    allow: dict[str, Any]
    deny: dict[str, Any]
    # Where older versions take the rest of the event's answers and not these.
    since: str = "0"

    def written(self, *, allow: bool, message: str) -> str:
        told = self.allow if allow else _replaced(self.deny, _MESSAGE, message.strip() or _NO_REASON)
        return msgspec.json.encode(told).decode() + "\n"


class Wait(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A hook that may wait for a decision, because the agent shows its dialog beside it."""

    # The oldest version that was seen to. With an older one nobody waits.
    since: str
    # By the reason code of what was asked. What is not here is not for others to decide.
    answers: dict[str, Answers]
    # What the entry has otherwise than those of other events, beside the command.
    members: dict[str, str | int | bool] = {}


class HookSettings(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    # The first of which all variables are set. `~` is the home folder.
    paths: list[str]
    # What is added for an event, with "{command}" where the command goes.
    entry: dict[str, Any]
    events: list[str]
    # Events that mean something and are not installed, as they tell too little for what they cost the agent.
    spared: list[str] = []
    # The object in the file that holds a list of entries per event.
    under: str = "hooks"
    # What a new file must hold beside it.
    members: dict[str, str | int | bool] = {}
    # Event → the version that knows it, where an older one would take offence.
    since: dict[str, str] = {}
    # Event → how its hook waits, for the few that do.
    waits: dict[str, Wait] = {}
    # Settings in the same file with which no hook runs, by dotted name.
    off: dict[str, bool] = {}
    # What people are told when hooks were added or changed.
    notes: list[str] = []

    def __post_init__(self) -> None:
        if _place(self.entry) is None:
            raise ValueError(f'entry must hold "{_COMMAND}" once, at its top or in a list of objects')
        if unknown := self.since.keys() - set(self.events):
            raise ValueError(f"since names events that are not installed: {', '.join(sorted(unknown))}")
        if unknown := self.waits.keys() - set(self.events):
            raise ValueError(f"waits names events that are not installed: {', '.join(sorted(unknown))}")

    @property
    def command_place(self) -> CommandPlace:
        place = _place(self.entry)
        assert place is not None
        return place

    @property
    def variables(self) -> list[str]:
        """What decides where the file is."""
        return variables_in(self.paths)

    @property
    def wanted(self) -> list[str]:
        """The members of the file that have to be read."""
        return list(dict.fromkeys([self.under, *self.members, *(name.split(".")[0] for name in self.off)]))

    def path(self, environ: Mapping[str, str]) -> str:
        """The agent's file, for who has this environment."""
        return settings_path(self.paths, environ)

    def known_to(self, version: str | None) -> list[str]:
        """The events that this version understands. Of a version that is not known, the least is expected."""
        return [event for event in self.events if event not in self.since or _reaches(version, self.since[event])]

    def entry_for(self, command: str, event: str = "") -> Any:
        entry = _replaced(self.entry, _COMMAND, command)
        if event in self.waits:
            handlers = self.command_place.handlers
            (entry if handlers is None else entry[handlers][0]).update(self.waits[event].members)
        return entry

    def answers_to(self, event: str, reason_code: str, version: str | None) -> Answers | None:
        """How that version is told what was decided about that; None if it is not to be told.

        One that does not say which it is has the hook in its settings, so it was new enough when that was installed.
        """
        wait = self.waits.get(event)
        answers = None if wait is None else wait.answers.get(reason_code)
        if wait is None or answers is None:
            return None
        is_old = version is not None and not (_reaches(version, wait.since) and _reaches(version, answers.since))
        return None if is_old else answers


def variables_in(paths: Sequence[str]) -> list[str]:
    return [name for path in paths for name in _VARIABLE.findall(path)]


def settings_path(paths: Sequence[str], environ: Mapping[str, str]) -> str:
    """The first of the paths of which all variables are set. `~` is the home folder."""
    for path in paths:
        path = re.sub(r"\A~(?=/)", "$HOME", path)
        if all(environ.get(name) for name in _VARIABLE.findall(path)):
            path = _VARIABLE.sub(lambda name: environ[name[1]], path)
            if not path.startswith("/"):
                raise AgtmuxError(ErrorCode.CONFIG, f"{path} is not an absolute path; set its variable to one")
            return path
    raise AgtmuxError(ErrorCode.CONFIG, "HOME is not set, so there is no telling where settings are")


def _place(entry: Mapping[str, Any]) -> CommandPlace | None:
    places = [CommandPlace(None, key) for key, value in entry.items() if value == _COMMAND]
    for key, value in entry.items():
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
            places += [CommandPlace(key, name) for name, each in value[0].items() if each == _COMMAND]
    return places[0] if len(places) == 1 else None


def _replaced(value: Any, mark: str, text: str) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(each, mark, text) for key, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, mark, text) for each in value]
    return text if value == mark else value


def _reaches(version: str | None, least: str) -> bool:
    numbers = [[int(number) for number in re.findall(r"\d+", text or "")[:3]] for text in (version, least)]
    return numbers[0] >= numbers[1]
