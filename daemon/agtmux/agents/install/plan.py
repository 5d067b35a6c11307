"""Installing, removing and looking at an agent's hooks: a file is read, its text changed, and put in its place.

What happened is told in a report, to people in whole sentences. What keeps it from happening is an AgtmuxError,
and then the file is as it was.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from agtmux.agents.install.backups import Backups
from agtmux.agents.install.edit import Found, Wiring, install, lacks, status, switched_off, uninstall
from agtmux.agents.install.files import Files
from agtmux.agents.install.jsonc import JsoncError
from agtmux.agents.install.reading import link_note, not_understood, text_of
from agtmux.agents.install.sheet import HookSettings
from agtmux.agents.sheet import AgentSheet
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.probe.files import FileState


@dataclass(frozen=True, slots=True)
class Report:
    """What became of the hooks in one file; the tuples hold names of events."""

    agent: str
    path: str
    added: tuple[str, ...] = ()
    already_there: tuple[str, ...] = ()
    # Theirs was another path or event.
    replaced: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    # These two only where nothing was to be changed.
    missing: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    # The file as it was.
    backup: str | None = None
    # Events that the version in use may not know, and that version: empty if it cannot be told, None if there is none.
    left_out: tuple[str, ...] = ()
    version: str | None = None
    # Of a status, what its warnings say: settings that switch all hooks off, settings that are needed and not there,
    # and our entries that are not needed.
    off: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    surplus: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.added or self.replaced or self.removed)

    def as_item(self) -> dict[str, Any]:
        """As it is told over the API."""
        return asdict(self) | {"changed": self.changed, "error": None}


def install_hooks(
    sheet: AgentSheet, files: Files, hook_command: str, backups: Backups, *, version: str | None
) -> Report:
    """Let the agent run `hook_command`, the absolute path of agtmux-hook, for every event that its version knows.

    `version` is the oldest one in use; without it, what every version knows is installed, and nothing taken out that
    was installed when there was one.
    """
    settings, path = _settings(sheet), _path(sheet, files)
    state = files.read(path, settings.wanted)
    text = text_of(path, state)
    try:
        wiring = _wiring(sheet.agent_type, settings, hook_command, text, version)
        before, new = status(text, wiring), install(text, wiring)
    except JsoncError as error:
        raise not_understood(path, state, error) from None
    backup = None
    if new != text:
        if state is not None:
            backup = str(backups.keep(sheet.agent_type, path, files.whole(path, state), state.digest))
        folders = files.replace(path, new.encode(), state)
        backups.note(sheet.agent_type, path, folders)
    notes = settings.notes if before.missing or before.stale else []
    return Report(
        agent=sheet.agent_type,
        path=path,
        added=before.missing,
        already_there=before.there,
        replaced=before.stale,
        removed=before.surplus,
        warnings=(*notes, *_warnings(sheet, path, state, text, wiring, version)),
        backup=backup,
        left_out=_left_out(wiring),
        version=version,
    )


def uninstall_hooks(sheet: AgentSheet, files: Files, backups: Backups) -> list[Report]:
    """Take our entries out of the agent's file, and out of any other that it had when they were installed."""
    noted = backups.noted(sheet.agent_type)
    paths = dict.fromkeys([_path(sheet, files), *noted])
    return [_uninstall(sheet, files, backups, path, noted.get(path, [])) for path in paths]


def hooks_status(sheet: AgentSheet, files: Files, hook_command: str, *, version: str | None) -> Report:
    """What of ours is there, what is missing, and what runs another command than `hook_command`."""
    settings, path = _settings(sheet), _path(sheet, files)
    state = files.read(path, settings.wanted)
    text = text_of(path, state)
    try:
        wiring = _wiring(sheet.agent_type, settings, hook_command, text, version)
        found = status(text, wiring)
    except JsoncError as error:
        raise not_understood(path, state, error) from None
    return Report(
        agent=sheet.agent_type,
        path=path,
        already_there=found.there,
        missing=found.missing,
        stale=found.stale,
        warnings=(*_surplus(found), *_warnings(sheet, path, state, text, wiring, version)),
        off=tuple(switched_off(text, wiring)),
        lacking=tuple(lacks(text, wiring)),
        surplus=found.surplus,
        left_out=_left_out(wiring),
        version=version,
    )


def _uninstall(sheet: AgentSheet, files: Files, backups: Backups, path: str, folders: list[str]) -> Report:
    wiring = Wiring(sheet.agent_type, _settings(sheet), (), "")
    state = files.read(path, wiring.settings.wanted)
    text = text_of(path, state)
    if state is None or text is None:
        backups.forget(sheet.agent_type, path)
        return Report(sheet.agent_type, path)
    try:
        removed, new = status(text, wiring).surplus, uninstall(text, wiring)
    except JsoncError as error:
        raise not_understood(path, state, error) from None
    backup = None
    if new != text:
        backup = str(backups.keep(sheet.agent_type, path, files.whole(path, state), state.digest))
        if new is None:
            files.remove(path, state, folders)
        else:
            files.replace(path, new.encode(), state)
    backups.forget(sheet.agent_type, path)
    warnings = link_note(path, state) if removed else []
    return Report(sheet.agent_type, path, removed=removed, warnings=tuple(warnings), backup=backup)


def _wiring(agent: str, settings: HookSettings, hook_command: str, text: str | None, version: str | None) -> Wiring:
    every = Wiring(agent, settings, tuple(settings.events), _checked(hook_command))
    wanted = set(settings.known_to(version or None))
    if not version:
        # An entry that is there was put there for a version that was known: that it is not known now says nothing.
        found = status(text, every)
        wanted.update(found.there, found.stale)
    return replace(every, events=tuple(event for event in settings.events if event in wanted))


def _left_out(wiring: Wiring) -> tuple[str, ...]:
    return tuple(event for event in wiring.settings.events if event not in wiring.events)


def _settings(sheet: AgentSheet) -> HookSettings:
    if sheet.hooks is None or not sheet.hooks.events:
        raise AgtmuxError(
            ErrorCode.UNSUPPORTED, f"{sheet.name} has no hooks that agtmux knows of; its screen is read instead"
        )
    return sheet.hooks


def _path(sheet: AgentSheet, files: Files) -> str:
    return _settings(sheet).path(files.environ)


def _checked(hook_command: str) -> str:
    """An entry is known again by the name of the program, so it must be there."""
    path = PurePosixPath(hook_command)
    if not path.is_absolute() or path.name != "agtmux-hook" or not hook_command.isprintable():
        raise AgtmuxError(ErrorCode.USAGE, f"{hook_command!r} is not the absolute path of an agtmux-hook")
    return hook_command


def _warnings(
    sheet: AgentSheet, path: str, state: FileState | None, text: str | None, wiring: Wiring, version: str | None
) -> list[str]:
    settings = wiring.settings
    warnings = link_note(path, state)
    left_out = _left_out(wiring)
    if left_out and not version:
        none = (
            ""
            if version is not None
            else f" (no {sheet.name} was found, on the PATH, where installers put it or in a watched pane)"
        )
        # Older versions refuse a settings file that names a hook they do not know.
        warnings.append(
            f"Which version of {sheet.name} is in use is not known{none}, so hooks that old ones reject are left out,"
            f" {len(left_out)} of {len(settings.events)}: {', '.join(left_out)}. Start {sheet.name} in a watched pane"
            f" and run `agtmux hooks install --agent {sheet.agent_type}` again: that adds them."
        )
    elif left_out:
        warnings.append(f"{sheet.name} {version} does not have these hooks yet: {', '.join(left_out)}.")
    for name in switched_off(text, wiring):
        warnings.append(f"{path} switches all hooks off ({name}); nothing is reported until that is changed.")
    for name in lacks(text, wiring):
        warnings.append(f'{path} does not say "{name}": {settings.members[name]}, without which it may be ignored.')
    return warnings


def _surplus(found: Found) -> list[str]:
    if not found.surplus:
        return []
    return [f"There are entries of agtmux that are not needed ({', '.join(found.surplus)}); installing removes them."]
