"""Settings files for property tests: any JSON with comments, in any layout, with other people's hooks in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from agtmux.agents.install.edit import Wiring
from agtmux.agents.install.jsonc import Kind, Node, parse
from agtmux.agents.install.sheet import HookSettings

HOOK = "/opt/agtmux/bin/agtmux-hook"
EVENTS = ("Start", "Stop", "Ask")
# A value that tests replace, as a user would in the meantime.
SENTINEL = '"@@"'

GROUPED = """
paths = ["~/.eliza/settings.json"]
entry = { hooks = [{ type = "command", command = "{command}", timeout = 10 }] }
events = ["Start", "Stop", "Ask"]
"""
WAITING = (
    GROUPED
    + """
[waits.Ask]
since = "1.2"
members = { timeout = 86400, quiet = true }

[waits.Ask.answers.permission]
allow = { go = true }
deny = { go = false, why = ["{message}"] }
"""
)
FLAT = """
paths = ["$ELIZA_HOME/hooks.json", "~/.eliza/hooks.json"]
entry = { type = "command", bash = "{command}" }
events = ["Start", "Stop", "Ask"]
members = { version = 1 }
"""


def wiring(toml: str = GROUPED, hook: str = HOOK, events: Sequence[str] = EVENTS, agent: str = "eliza") -> Wiring:
    settings = msgspec.toml.decode(toml.encode(), type=HookSettings)
    return Wiring(agent, settings, tuple(events), hook)


WIRINGS = {"grouped": wiring(), "flat": wiring(FLAT), "waiting": wiring(WAITING)}

SPACE = ["", "", "", " ", "\n", "\r\n", "\t", "\n  ", "\n\t\t", "\n\n    ", " \n"]
PLAIN = ["1", "-0.5e+3", "true", "null", '""', r'"\"\\\u00e9\ud800"', '"// no comment"', '"ä"', SENTINEL]
COMMENTS = [
    "/* c */",
    " /* , ] } */ ",
    "// c\n",
    " // {\n  ",
    "/**/",
    "// c\r\n",
    ' /* "hooks": [ */\n',
    "// a\n// b\n",
]


@st.composite
def documents(draw: st.DrawFn, *, strict: bool = False) -> str:
    """The text of an object. `hooks` in it, if there, is an object of lists, in whatever state."""
    return _Writer(draw, strict).document()


class _Writer:
    def __init__(self, draw: st.DrawFn, strict: bool) -> None:
        self._draw = draw
        self._strict = strict
        self._gaps = st.sampled_from(SPACE if strict else SPACE + COMMENTS)

    def document(self) -> str:
        keys = self._some(["hooks", "hooks", "a", "b", "version", ""], 4)
        root = self._object([(key, self._hooks() if key == "hooks" else self._value(2)) for key in keys])
        mark = "" if self._strict or self._draw(st.integers(0, 9)) else "\ufeff"
        return mark + self._gap() + root + self._gap()

    def _hooks(self) -> str:
        return self._object([(event, self._entries()) for event in self._some([*EVENTS, "Other"], 3)])

    def _entries(self) -> str:
        return self._list([self._entry() for _ in range(self._draw(st.integers(0, 2)))])

    def _entry(self) -> str:
        command = self._one(["true", "agtmux-hook parry Stop", "/x/agtmux-hooks eliza Stop", "é\u2028 // x"])
        handler = self._object([("command", json.dumps(command)), ("bash", json.dumps(command))])
        match self._draw(st.integers(0, 3)):
            case 0:
                return handler
            case 1:
                return self._object([("matcher", '"*"'), ("hooks", self._list([handler]))])
            case 2:
                return self._object([("hooks", self._list([]))])
            case _:
                return self._value(1)

    def _value(self, depth: int) -> str:
        match self._draw(st.integers(0, 3 if depth else 1)):
            case 2:
                return self._list([self._value(depth - 1) for _ in range(self._draw(st.integers(0, 2)))])
            case 3:
                return self._object([(key, self._value(depth - 1)) for key in self._some(["x", "y", "hooks"], 2)])
            case _:
                return self._one(PLAIN)

    def _object(self, members: Sequence[tuple[str, str]]) -> str:
        written = (f"{self._name(key)}{self._gap()}:{self._gap()}{value}" for key, value in members)
        return "{" + self._joined(list(written)) + "}"

    def _list(self, items: Sequence[str]) -> str:
        return "[" + self._joined(items) + "]"

    def _name(self, key: str) -> str:
        escaped = "".join(f"\\u{ord(char):04x}" for char in key)
        return json.dumps(key) if self._draw(st.integers(0, 9)) else f'"{escaped}"'

    def _joined(self, parts: Sequence[str]) -> str:
        if not parts:
            return self._gap()
        trailing = "" if self._strict or self._draw(st.booleans()) else "," + self._gap()
        return ",".join(f"{self._gap()}{part}{self._gap()}" for part in parts) + trailing

    def _gap(self) -> str:
        return self._draw(self._gaps)

    def _one(self, texts: Sequence[str]) -> str:
        return self._draw(st.sampled_from(texts))

    def _some(self, texts: Sequence[str], most: int) -> list[str]:
        return self._draw(st.lists(st.sampled_from(texts), max_size=most))


def as_python(text: str) -> Any:
    """What an agent reads: of members of one name the last."""
    return _python(parse(text))


def _python(node: Node) -> Any:
    match node.kind:
        case Kind.OBJECT:
            return {element.key: _python(element.node) for element in node.elements}
        case Kind.ARRAY:
            return [_python(element.node) for element in node.elements]
        case Kind.STRING:
            return node.value
        case Kind.PLAIN:
            return json.loads(node.value)


@st.composite
def additions(draw: st.DrawFn, text: str, way: Wiring) -> str:
    """The text with something added by the user, anywhere but inside an entry of ours: an element or a comment."""
    places = list(_places(parse(text), way))
    for _ in range(draw(st.integers(1, 3))):
        container, index = draw(st.sampled_from(places))
        gap = st.sampled_from(["", " ", "\n", "/* mine */", "// mine\n", " // mine\r\n  "])
        new = draw(gap)
        if draw(st.booleans()):
            new += ('"mine":' if container.kind is Kind.OBJECT else "") + draw(
                st.sampled_from(["1", "[]", '{"x": ","}'])
            )
            empty = index == len(container.elements) == 0
            new = new + draw(gap) + ("" if empty else ",") + draw(gap)
        at = container.elements[index].start if index < len(container.elements) else container.start + 1
        text = text[:at] + new + text[at:]
        places = list(_places(parse(text), way))
    return text


def _places(node: Node, way: Wiring) -> Iterator[tuple[Node, int]]:
    """In front of each element, and right after the bracket of an empty container."""
    if node.kind not in (Kind.OBJECT, Kind.ARRAY) or is_ours(_python(node), way):
        return
    for index in range(max(len(node.elements), 1)):
        yield node, index
    for element in node.elements:
        yield from _places(element.node, way)


def is_ours(value: Any, way: Wiring) -> bool:
    """Whether that is an entry that was installed."""
    return any(value == way.settings.entry_for(way.command(event), event) for event in way.events)


def without_ours(value: Any, way: Wiring) -> Any:
    """The same for people who compare: without entries of ours, and without lists and objects that hold nothing."""
    if isinstance(value, dict):
        parts = {key: without_ours(each, way) for key, each in value.items() if not is_ours(each, way)}
        return {key: each for key, each in parts.items() if each not in ([], {})}
    if isinstance(value, list):
        return [
            each for each in (without_ours(one, way) for one in value if not is_ours(one, way)) if each not in ([], {})
        ]
    return value
