"""What a step looks like on a terminal of a given size. Pure: lines of styled text out, nothing written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from agtmux.demo.scenes import Manner, Scene, Screen, Step

# Pieces of a line, each with the numbers of its SGR sequence.
Line = tuple[tuple[str, str], ...]

_BOLD: Final = "1"
_DIM: Final = "2"
_RED: Final = "31"
_GREEN: Final = "32"
_YELLOW: Final = "33"
_WIDEST_BOX: Final = 96
# top left, edge, top right, side, bottom left, bottom right
_BORDERS: Final = {"round": "╭─╮│╰╯", "square": "┌─┐│└┘", "rule": "─── ──", "none": "      "}


@dataclass(frozen=True, slots=True)
class Look:
    """One moment of a scene."""

    scene: Scene
    step: Step
    seconds: int = 0
    typed: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    lines: tuple[Line, ...]
    # Row and column, from zero; None hides it.
    cursor: tuple[int, int] | None = None

    def as_text(self) -> list[str]:
        return ["".join(text for _, text in line) for line in self.lines]

    def as_ansi(self) -> str:
        # Cleared before it is written: after a full row, the cursor is still on its last character.
        rows = ["\x1b[K" + "".join(_painted(style, text) for style, text in line) for line in self.lines]
        cursor = "\x1b[?25l" if self.cursor is None else f"\x1b[{self.cursor[0] + 1};{self.cursor[1] + 1}H\x1b[?25h"
        return "\x1b[?25l\x1b[H" + "\r\n".join(rows) + "\x1b[J" + cursor


def paint(look: Look, width: int, height: int) -> Frame:
    """The newest lines stay in view when there is no room for all."""
    manner = look.scene.manner
    lines = [_header(text, look.scene.cwd, manner) for text in manner.header]
    lines.append(())
    for text in look.step.lines:
        lines.append(_spoken(text, manner))
    if look.step.lines:
        lines.append(())
    # A rule goes across the whole pane, as an agent's own does; by that its dialog is known to be whole.
    room = width if manner.border == "rule" else min(width, _WIDEST_BOX)
    below, cursor = _SCREENS[look.step.screen](look, room)
    top = len(lines)
    lines += below
    hidden = max(0, len(lines) - height)
    at = None if cursor is None else (top + cursor[0] - hidden, min(cursor[1], width - 1))
    return Frame(tuple(lines[hidden:]), at if at is not None and at[0] >= 0 else None)


_Below = tuple[list[Line], tuple[int, int] | None]


def _busy(look: Look, width: int) -> _Below:
    manner = look.scene.manner
    turning = manner.spinner[look.seconds % len(manner.spinner)]
    told = manner.interrupt.replace("{seconds}", str(look.seconds))
    line = ((manner.accent, f"{turning} {look.step.busy}…"), (_DIM, f" {told}"))
    return [line, (), *_composer(look, width)[0]], None


def _dialog(look: Look, width: int) -> _Below:
    step, manner = look.step, look.scene.manner
    options = [
        (manner.accent if number == 1 else "", f"{manner.pointer if number == 1 else ' '} {number}. {option}")
        for number, option in enumerate(step.options, 1)
    ]
    if manner.border == "none":
        return _plain_dialog(step, manner, options), None
    inside: list[tuple[str, str]] = [(_BOLD, step.ask)]
    inside += [(manner.accent if number == 0 else _DIM, f"  {text}") for number, text in enumerate(step.subject)]
    return _box([*inside, ("", ""), *options], width, _BORDERS[manner.border], _YELLOW), None


def _plain_dialog(step: Step, manner: Manner, options: list[tuple[str, str]]) -> list[Line]:
    """As one asks that draws no boxes: why comes first, and what it is about behind a sign."""
    command, *reasons = step.subject or ("",)
    lines: list[Line] = [((_BOLD, f"  {step.ask}"),), ()]
    for text in reasons:
        lines += [((_DIM, f"  Reason: {text}"),), ()]
    if command:
        lines += [((manner.accent, f"  $ {command}"),), ()]
    foot = "Press enter to confirm or esc to cancel" if step.screen == "approval" else "enter to submit answer"
    return [*lines, *((option,) for option in options), (), ((_DIM, f"  {foot}"),)]


def _error(look: Look, width: int) -> _Below:
    banner: Line = ((_RED, f"✗ {look.step.ask}"),)
    composer, cursor = _composer(look, width)
    return [banner, (), *composer], cursor and (cursor[0] + 2, cursor[1])


def _prompt(look: Look, width: int) -> _Below:
    return _composer(look, width)


_SCREENS: Final[dict[Screen, Callable[[Look, int], _Below]]] = {
    "busy": _busy,
    "approval": _dialog,
    "question": _dialog,
    "error": _error,
    "prompt": _prompt,
}


def _composer(look: Look, width: int) -> _Below:
    manner = look.scene.manner
    # The end of a long text is where it is being written.
    shown = look.typed[-max(1, width - 8) :]
    inside = [("", f"{manner.pointer} {shown}")]
    foot: Line = ((_DIM, f"  {manner.hint}"),)
    if manner.border == "none":
        # Its sign is in the first column and bold, which tells it from what was sent earlier.
        return [(), ((_BOLD, manner.pointer), ("", f" {shown}")), (), foot], (1, 2 + len(shown))
    lines = _box(inside, width, _BORDERS[manner.border], _DIM)
    lines.append(foot)
    return lines, (1, 4 + len(shown))


def _box(inside: Sequence[tuple[str, str]], width: int, border: str, style: str) -> list[Line]:
    left, edge, right, side, bottom_left, bottom_right = tuple(border)
    room = width - 4
    lines: list[Line] = [((style, left + edge * (width - 2) + right),)]
    for own_style, text in inside:
        lines.append(((style, side + " "), (own_style, text[:room].ljust(room)), (style, " " + side)))
    lines.append(((style, bottom_left + edge * (width - 2) + bottom_right),))
    return lines


def _header(text: str, cwd: str, manner: Manner) -> Line:
    return ((manner.accent, text.replace("{cwd}", cwd)),)


def _spoken(text: str, manner: Manner) -> Line:
    who, said = text[:1], text[1:]
    match who:
        case ">":
            return ((_DIM if manner.border == "none" else _BOLD, manner.pointer + said),)
        case "*":
            return ((manner.accent, manner.bullet), ("", said))
        case "$":
            return ((_GREEN, manner.bullet), (_BOLD, said))
        case "+" | "-":
            return ((_GREEN if who == "+" else _RED, f"    {who}{said}"),)
        case _:
            return ((_DIM, f"  {text}"),)


def _painted(style: str, text: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if style else text
