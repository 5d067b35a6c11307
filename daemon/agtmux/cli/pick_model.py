"""What `agtmux pick` knows and shows: agents, which of them is chosen, what was typed, and the lines of a screen.

No I/O: keys and listings go in, wishes and lines come out. Whoever is chosen stays so when the list changes, and
nothing is answered that has changed since it was shown.
"""

from __future__ import annotations

from datetime import datetime

from agtmux.cli.panes import SIGNS, draw_panes, pane_row, summary_line
from agtmux.cli.table import cut, display_width, draw, fit, paint, wrap
from agtmux.domain.legible import legible

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

# What a press of a key may ask for.
JUMP: Final = "jump"
NEST: Final = "nest"
LEAVE: Final = "leave"
ANSWERS: Final = {"a": "approve", "d": "deny"}

_STEPS: Final = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -10, "page down": 10}
_ENDS: Final = {"home": 0, "g": 0, "end": -1, "G": -1}
_HEADS: Final = ("", "", "STATE", "AGENT", "AGE", "PANE", "ASKS / TITLE")
# Of these, what a narrow screen has room for.
_NARROW: Final = (0, 1, 3, 4, 6)
_WIDE_ENOUGH: Final = 72
_PLACE: Final = 5
# With fewer lines there is no room for a screen beside the list.
_ROOM_FOR_PREVIEW: Final = 9
_HINTS: Final = "⏎ jump  / filter  a approve  d deny  ? help  q leave"
_NESTING: Final = "it is in another tmux server; show it within this one? y/n"
_NO_ROOM: Final = "what it asks has no room here; read it in its pane (⏎) and answer there"
_LONGEST_NOTE: Final = 3
_HELP: Final = (
    "Enter   jump to the pane",
    "↑ ↓     choose; also k j, g first, G last",
    "/       type to filter, Esc ends that",
    "a  d    approve, deny; asks for a y first",
    "q  Esc  leave",
    "",
    "any key goes back",
)


class Model:
    def __init__(self) -> None:
        self._listing: dict[str, Any] = {"items": [], "filters": {}}
        self._chosen = ""
        # Where the chosen one was, for when it is gone.
        self._index = 0
        self._filter = ""
        self._is_typing = False
        self._is_help = False
        # What is about to be answered, as it was shown, and how.
        self._asking: tuple[str, dict[str, Any]] | None = None
        # By runtime: the screen of each that was chosen.
        self._previews: dict[str, str] = {}
        self.note = ""

    # What comes in

    def take(self, listing: dict[str, Any]) -> None:
        self._listing = listing
        shown = self._shown()
        place = next((number for number, item in enumerate(shown) if item["runtime_id"] == self._chosen), None)
        self._choose(self._index if place is None else place)
        if self._asking is not None and self._asking[0] != NEST and not self._is_unchanged(self._asking[1]):
            self._asking = None
            self.note = "it has moved on meanwhile; nothing was answered"

    def answered(self, item: dict[str, Any]) -> None:
        """The next that waits is chosen, unless another was in the meantime."""
        if self._chosen != item["runtime_id"]:
            return
        shown = self._shown()
        for place in [*range(self._index + 1, len(shown)), *range(self._index)]:
            if shown[place]["state"].startswith("waiting"):
                self._choose(place)
                return

    def take_preview(self, runtime_id: str, text: str) -> None:
        self._previews[runtime_id] = text

    def press(self, key: str) -> tuple[str, dict[str, Any] | None] | None:
        """What is wished for, and for whom."""
        self.note = ""
        if key == "end of input":
            return LEAVE, None
        if self._asking is not None:
            (action, item), self._asking = self._asking, None
            return (action, item) if key == "y" else None
        if self._is_help:
            self._is_help = False
            return None
        if key == "enter":
            return (JUMP, self.chosen) if self.chosen is not None else None
        if self._is_typing:
            self._type(key)
            return None
        if key in ("q", "Q") or (key == "escape" and not self._filter):
            return LEAVE, None
        if key == "escape":
            self._set_filter("")
        elif key in ANSWERS:
            self._ask(ANSWERS[key])
        elif key == "/":
            self._is_typing = True
        elif key == "?":
            self._is_help = True
        else:
            self._step(key)
        return None

    @property
    def chosen(self) -> dict[str, Any] | None:
        return next((item for item in self._shown() if item["runtime_id"] == self._chosen), None)

    @property
    def is_asking(self) -> bool:
        return self._asking is not None

    def ask_to_nest(self, item: dict[str, Any]) -> None:
        self._asking = (NEST, item)

    def _type(self, key: str) -> None:
        if key == "escape":
            self._is_typing = False
        elif key == "backspace":
            self._set_filter(self._filter[:-1])
        elif len(key) == 1:
            self._set_filter(self._filter + key)
        else:
            self._step(key)

    def _set_filter(self, text: str) -> None:
        self._filter = text
        shown = [item["runtime_id"] for item in self._shown()]
        self._choose(shown.index(self._chosen) if self._chosen in shown else 0)

    def _step(self, key: str) -> None:
        if key in _ENDS:
            self._choose(_ENDS[key] % max(len(self._shown()), 1))
        elif key in _STEPS:
            self._choose(self._index + _STEPS[key])

    def _choose(self, index: int) -> None:
        shown = self._shown()
        self._index = max(0, min(index, len(shown) - 1))
        self._chosen = shown[self._index]["runtime_id"] if shown else ""

    def _ask(self, action: str) -> None:
        item = self.chosen
        if item is None:
            return
        if item["state"] != "waiting_approval":
            self.note = "it asks for no approval"
            return
        self._asking = (action, item)

    def _is_unchanged(self, item: dict[str, Any]) -> bool:
        now = {each["runtime_id"]: each["state_version"] for each in self._listing["items"]}
        return bool(now.get(item["runtime_id"]) == item["state_version"])

    def _shown(self) -> list[dict[str, Any]]:
        words = self._filter.lower().split()
        return [item for item in self._listing["items"] if all(word in _text(item) for word in words)]

    # What goes out

    def draw(self, width: int, height: int, *, colour: bool) -> list[str]:
        """As many lines as the screen has, none wider than it."""
        if self._is_help:
            return _filled([cut(line, width) for line in _HELP], height)
        if (request := self._request(width)) is not None:
            foot = self._foot(width, colour)
            # Beside the row that is chosen.
            if len(request) <= height - 2 - len(foot):
                row = _around(self._lines(width, colour), self._index, 1)
                return [*_filled([cut(self._head(), width), *row, *request], height - len(foot)), *foot]
            self._asking = None
            self.note = _NO_ROOM
        foot = self._foot(width, colour)[: max(height - 2, 0)]
        room = height - 1 - len(foot)
        listed, preview = self._lines(width, colour), []
        if room >= _ROOM_FOR_PREVIEW:
            above = min(len(listed), max(4, room // 2 - 1))
            preview = self._preview_lines(width, room - above, colour)
            room = above
        body = [cut(self._head(), width), *_around(listed, self._index, room), *preview]
        return [*_filled(body, height - len(foot)), *foot]

    def _head(self) -> str:
        if self._is_typing or self._filter:
            found, there = len(self._shown()), len(self._listing["items"])
            return f"/{self._filter}{'▏' if self._is_typing else ''}  {found} of {there}"
        return summary_line(self._listing["summary"]) if self._listing["items"] else "agtmux"

    def _foot(self, width: int, colour: bool) -> list[str]:
        if self._asking is None and not self.note:
            return [paint(cut(_HINTS, width), "dim", colour)]
        text = self.note
        if self._asking is not None:
            action, item = self._asking
            asked = item["attention"]["summary"] if item["attention"] else "what it asks"
            # What it is about may be longer than there is room; what to press must not be cut off.
            text = _NESTING if action == NEST else f"{action}? y/n: {asked}"
        lines = wrap(text, width)
        if len(lines) > _LONGEST_NOTE:
            lines = [*lines[: _LONGEST_NOTE - 1], cut(f"{lines[_LONGEST_NOTE - 1]} {'…' * width}", width)]
        return [paint(cut(line, width), "bold", colour) for line in lines]

    def _request(self, width: int) -> list[str] | None:
        """All that an approval would be for, where the foot does not hold it. What the daemon says is not whole it
        does not let through."""
        if self._asking is None or self._asking[0] != ANSWERS["a"]:
            return None
        attention = self._asking[1]["attention"] or {}
        if not attention.get("whole"):
            return None
        asked = wrap(f"{ANSWERS['a']}? y/n: {attention['summary']}", width)
        has_room = len(asked) <= _LONGEST_NOTE and all(display_width(line) <= width for line in asked)
        if attention.get("brief") and has_room:
            return None
        text = legible(attention.get("detail") or attention["summary"], keep="\n\t").expandtabs(4)
        return [part for line in text.split("\n") for part in _parts(line, width)]

    def _lines(self, width: int, colour: bool) -> list[str]:
        items = self._shown()
        if not items:
            nothing = (
                "No agent fits what you have typed."
                if self._filter
                else draw_panes(self._listing | {"items": []}, colour=False, width=None)[0]
            )
            return [cut(nothing, width)]
        now = datetime.fromisoformat(self._listing["generated_at"])
        chosen = [item["runtime_id"] == self._chosen for item in items]
        rows = [(">" if is_it else "", *pane_row(item, now)) for item, is_it in zip(items, chosen, strict=True)]
        styles = [
            "" if is_it else SIGNS.get(item["state"], ("", ""))[1] for item, is_it in zip(items, chosen, strict=True)
        ]
        is_narrow = width < _WIDE_ENOUGH
        table = [tuple(row[column] for column in _NARROW) if is_narrow else row for row in (_HEADS, *rows)]
        _, *lines = draw(table[0], table[1:], styles, colour=colour, width=width, place=None if is_narrow else _PLACE)
        return [
            paint(fit(line, width), "reverse", colour) if is_it else line
            for line, is_it in zip(lines, chosen, strict=True)
        ]

    def _preview_lines(self, width: int, room: int, colour: bool) -> list[str]:
        item = self.chosen
        if item is None:
            return []
        identity = item["identity"]
        place = "/".join(identity[part] for part in ("target", "session_name", "window_id", "pane_id"))
        about = " · ".join(part for part in (place, item["branch"], item["cwd"]) if part)
        rule = paint(fit(f"── {cut(about, max(width - 4, 0))} ".ljust(width, "─"), width), "dim", colour)
        lines = self._previews.get(item["runtime_id"], "").rstrip().split("\n")[-(room - 1) :]
        # Agents fill their lines up with blanks, of which nothing is cut off.
        return [rule, *(cut(line.expandtabs().rstrip(), width) for line in lines)]


def _text(item: dict[str, Any]) -> str:
    """All that a filter may find."""
    identity, attention = item["identity"], item["attention"] or {}
    parts = [*identity.values(), *(item[name] for name in ("agent_type", "state", "title", "cwd", "branch"))]
    return " ".join([*(part or "" for part in parts), attention.get("summary", "")]).lower()


def _parts(line: str, width: int) -> list[str]:
    """Of that many cells at most, with nothing left out."""
    parts = [""]
    for char in line:
        if parts[-1] and display_width(parts[-1] + char) > width:
            parts.append("")
        parts[-1] += char
    return parts


def _around(lines: list[str], index: int, room: int) -> list[str]:
    """Those that fit, the chosen one in the middle where that is possible."""
    first = max(0, min(index - room // 2, len(lines) - room))
    return lines[first : first + max(room, 0)]


def _filled(lines: list[str], height: int) -> list[str]:
    return (lines + [""] * height)[: max(height, 0)]
