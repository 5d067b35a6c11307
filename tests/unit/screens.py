"""Screens drawn by hand, for what recordings do not show: looks, sizes, half-drawn dialogs."""

from __future__ import annotations

from functools import cache

from agtmux.agents.registry import Registry
from agtmux.agents.screen.classify import Seen

RULE = "─" * 80
BOLD, DIM, REVERSE, OFF = "\x1b[1m", "\x1b[2m", "\x1b[7m", "\x1b[0m"


@cache
def registry() -> Registry:
    return Registry.load()


def read(
    agent: str,
    *lines: str,
    title: str = "",
    command: str = "",
    coloured: bool = True,
    is_alive: bool | None = None,
) -> Seen:
    """What is said of these lines. An escape sequence that changes nothing makes them a capture with its colours."""
    text = "\n".join((*lines, OFF if coloured else "", ""))
    return registry().read_screen(agent, text, title=title, command=command, is_alive=is_alive)


def claude_prompt(*typed: str, below: tuple[str, ...] = ("  ? for shortcuts",)) -> list[str]:
    first, *others = typed or ("",)
    return [RULE, f"❯ {first}".rstrip(), *(f"  {line}" for line in others), RULE, *below]


def claude_dialog(command: str = "touch label.txt", marked: int = 1, options: tuple[str, ...] = ()) -> list[str]:
    options = options or ("Yes", "Yes, and don't ask again for touch commands", "No")
    return [
        RULE,
        " Bash command",
        "",
        *(f"   {line}" for line in command.split("\n")),
        "",
        " Do you want to proceed?",
        *(f" {'❯' if number == marked else ' '} {number}. {label}" for number, label in enumerate(options, 1)),
        "",
        " Esc to cancel · Tab to amend",
    ]


def codex_dialog(command: str = "touch label.txt", marked: int = 1) -> list[str]:
    options = ("Yes, proceed (y)", "Yes, and don't ask again (p)", "No, and tell Codex what to do differently (esc)")
    return [
        "",
        "",
        f"  {BOLD}Would you like to run the following command?{OFF}",
        "",
        "  Reason: The printer is outside of the workspace",
        "",
        *(f"  {'$ ' if at == 0 else ''}{line}" for at, line in enumerate(command.split("\n"))),
        "",
        *(f"{'›' if number == marked else ' '} {number}. {label}" for number, label in enumerate(options, 1)),
        "",
        "  Press enter to confirm or esc to cancel",
    ]


def gemini_prompt(text: str = "") -> list[str]:
    top, bottom = "╭" + "─" * 78 + "╮", "╰" + "─" * 78 + "╯"
    return [top, f"│ > {text}".ljust(79) + "│", bottom, " ~/parcels    no sandbox    gemini-2.5-pro"]
