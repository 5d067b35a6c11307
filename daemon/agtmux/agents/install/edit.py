"""What installing hooks does to the text of a settings file: text in, text out.

An entry is ours if its command runs agtmux-hook for this agent, wherever that lies. Nothing else marks it, because
an agent that rewrites its settings drops what it does not know.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agtmux.agents.install.jsonc import JsoncError, Kind, Node, parse
from agtmux.agents.install.sheet import HookSettings
from agtmux.agents.install.splice import Trail, append, document, starts_with_space, take_out

_MOST_ENTRIES: Final = 100


@dataclass(frozen=True, slots=True)
class Wiring:
    """What an agent shall report, and by which command."""

    agent: str
    settings: HookSettings
    events: tuple[str, ...]
    # The absolute path of agtmux-hook.
    hook: str

    def command(self, event: str) -> str:
        waits = " --wait" if event in self.settings.waits else ""
        return f"{shlex.quote(self.hook)} {self.agent} {event}{waits}"

    def is_ours(self, command: str) -> bool:
        return re.search(rf"(?:^|[/'\"\s])agtmux-hook['\"]?\s+{re.escape(self.agent)}(?:\s|$)", command) is not None


@dataclass(frozen=True, slots=True)
class Found:
    """Which events report to us. Those in `stale` run another command than they should."""

    there: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    # Ours, but for an event that is not wanted, or where the agent does not look.
    surplus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    event: str
    command: Node
    # The object that has the command.
    handler: Node
    # What to take out to be rid of it: the whole entry, or its command only if others are beside it.
    trail: Trail
    # Where the agent looks, which is the last of members of one name.
    counts: bool


def install(text: str | None, wiring: Wiring) -> str:
    """The text with one entry for each event. Raises JsoncError if the file is not of that form."""
    if text is None:
        return _new_file(wiring)
    while surplus := _sorted(text, wiring)[1]:
        text = take_out(text, surplus[-1].trail)
    for entry in reversed(_ours(text, wiring)):
        if entry.command.value != wiring.command(entry.event):
            text = _brought_up_to_date(text, entry, wiring)
    there = {entry.event for entry in _ours(text, wiring)}
    return _with_entries(text, wiring, [event for event in wiring.events if event not in there])


def uninstall(text: str, wiring: Wiring) -> str | None:
    """The text without our entries and without the containers made for them; None if the file was made for them."""
    may_be_ours = _looks_made(text, wiring)
    while entries := _ours(text, wiring):
        text = take_out(text, entries[-1].trail)
    left = "".join(text.split())
    return None if may_be_ours and left == "".join(json.dumps(wiring.settings.members).split()) else text


def status(text: str | None, wiring: Wiring) -> Found:
    if text is None:
        return Found(missing=wiring.events)
    wanted, surplus = _sorted(text, wiring)
    right = {event for event, entry in wanted.items() if entry.command.value == wiring.command(event)}
    return Found(
        there=tuple(event for event in wiring.events if event in right),
        stale=tuple(event for event in wiring.events if event in wanted.keys() - right),
        missing=tuple(event for event in wiring.events if event not in wanted),
        surplus=tuple(dict.fromkeys(entry.event for entry in surplus)),
    )


def switched_off(text: str | None, wiring: Wiring) -> list[str]:
    """The settings in the file that keep the agent from running any hook."""
    return [name for name, value in wiring.settings.off.items() if text is not None and _says(text, name, value)]


def lacks(text: str | None, wiring: Wiring) -> list[str]:
    """What every file of this kind needs and this one, which somebody else made, does not have."""
    root = None if text is None else parse(text)
    return [] if root is None else [name for name in wiring.settings.members if root.get(name) is None]


def _new_file(wiring: Wiring) -> str:
    lists = {event: [wiring.settings.entry_for(wiring.command(event), event)] for event in wiring.events}
    # Ours first: in a file that somebody else has begun they come last.
    return document({wiring.settings.under: lists, **wiring.settings.members})


def _brought_up_to_date(text: str, entry: _Entry, wiring: Wiring) -> str:
    """With the command as it should be, and what goes with it if the hook waits. Anything else may be the user's."""
    wait = wiring.settings.waits.get(entry.event)
    new = json.dumps(wiring.command(entry.event), ensure_ascii=False)
    values: list[tuple[Node, str]] = []
    for name, value in ({} if wait is None else wait.members).items():
        node = entry.handler.get(name)
        if node is None:
            new += f", {json.dumps(name)}: {json.dumps(value)}"
        else:
            values.append((node, json.dumps(value)))
    for node, value in sorted([*values, (entry.command, new)], key=lambda each: each[0].start, reverse=True):
        text = text[: node.start] + value + text[node.end :]
    return text


def _with_entries(text: str, wiring: Wiring, events: list[str]) -> str:
    new: list[tuple[str | None, object]] = []
    for event in events:
        root = parse(text)
        hooks = _object(text, root, wiring)
        entry = wiring.settings.entry_for(wiring.command(event), event)
        entries = None if hooks is None else hooks.get(event)
        if entries is None:
            new.append((event, [entry]))
        elif entries.kind is Kind.ARRAY:
            text = append(text, root, entries, [(None, entry)])
        else:
            problem = f'"{event}" in "{wiring.settings.under}" should be a list, and is {entries.kind.value}'
            raise JsoncError(problem, text, entries.start)
    if not new:
        return text
    root = parse(text)
    hooks = _object(text, root, wiring)
    if hooks is None:
        return append(text, root, root, [(wiring.settings.under, dict(new))])
    return append(text, root, hooks, new)


def _object(text: str, root: Node, wiring: Wiring) -> Node | None:
    """The object that holds the lists, if there is one."""
    if root.kind is not Kind.OBJECT:
        raise JsoncError(f"an object was expected, and here is {root.kind.value}", text, root.start)
    hooks = root.get(wiring.settings.under)
    if hooks is not None and hooks.kind is not Kind.OBJECT:
        raise JsoncError(f'"{wiring.settings.under}" should be an object, and is {hooks.kind.value}', text, hooks.start)
    return hooks


def _ours(text: str, wiring: Wiring) -> list[_Entry]:
    """Our entries in the order of the text."""
    root = parse(text)
    found: list[_Entry] = []
    for at_hooks, hooks in enumerate(root.elements):
        if hooks.key != wiring.settings.under:
            continue
        for at_event, event in enumerate(hooks.node.elements):
            if event.node.kind is not Kind.ARRAY or event.key is None:
                continue
            counts = root.get(wiring.settings.under) is hooks.node and hooks.node.get(event.key) is event.node
            above = ((root, at_hooks), (hooks.node, at_event))
            for command, handler, below in _our_commands(event.node, wiring):
                found.append(_Entry(event.key, command, handler, above + below, counts))
    if len(found) > _MOST_ENTRIES:
        # Each is taken out by itself, and a file of somebody else's making may hold thousands.
        raise JsoncError(f"it holds {len(found)} entries of agtmux, which agtmux never wrote", text, root.start)
    return found


def _our_commands(entries: Node, wiring: Wiring) -> Iterator[tuple[Node, Node, Trail]]:
    place = wiring.settings.command_place
    for index, entry in enumerate(entries.elements):
        whole: Trail = ((entries, index),)
        if place.handlers is None:
            command = entry.node.get(place.command)
            if command is not None and _is_our_command(command, wiring):
                yield command, entry.node, whole
            continue
        handlers = entry.node.get(place.handlers)
        if handlers is None or handlers.kind is not Kind.ARRAY:
            continue
        at_handlers = next(at for at, element in enumerate(entry.node.elements) if element.node is handlers)
        alone = len(handlers.elements) == 1
        for at, handler in enumerate(handlers.elements):
            command = handler.node.get(place.command)
            if command is not None and _is_our_command(command, wiring):
                trail = whole if alone else (*whole, (entry.node, at_handlers), (handlers, at))
                yield command, handler.node, trail


def _is_our_command(node: Node, wiring: Wiring) -> bool:
    return node.kind is Kind.STRING and wiring.is_ours(node.value)


def _sorted(text: str, wiring: Wiring) -> tuple[dict[str, _Entry], list[_Entry]]:
    """Ours by event, and those not wanted: for another event, where the agent does not look, or a second time."""
    wanted: dict[str, _Entry] = {}
    surplus: list[_Entry] = []
    for entry in _ours(text, wiring):
        if entry.counts and entry.event in wiring.events and entry.event not in wanted:
            wanted[entry.event] = entry
        else:
            surplus.append(entry)
    return wanted, surplus


def _looks_made(text: str, wiring: Wiring) -> bool:
    """Whether the file may be one of `_new_file`: nothing around it, and our part in front."""
    root = parse(text)
    around = text[: root.start] + text[root.end :].strip()
    is_first = bool(root.elements) and root.elements[0].key == wiring.settings.under
    return not around and is_first and starts_with_space(text, root)


def _says(text: str, name: str, value: bool) -> bool:
    node: Node | None = parse(text)
    for part in name.split("."):
        node = None if node is None else node.get(part)
    return node is not None and node.kind is Kind.PLAIN and node.value == json.dumps(value)
