"""`agtmux bar`: one line for a status bar, cheap enough to be called every few seconds."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_json, print_json
from agtmux.cli.panes import SIGNS
from agtmux.cli.table import display_width, fit
from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError, ErrorCode

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

    # A text and its style, as the table's are called.
    Part = tuple[str, str]

# tmux's own limit for status-right.
_WIDTH: Final = 40
# A bar calls again soon; what hangs must not pile up.
_LIMIT: Final = 2.0
# Who waits comes first, and stays longest where there is little room.
_ORDER: Final = ("waiting_approval", "waiting_input", "error", "running", "completed", "idle", "unknown")
_NEEDS_YOU: Final = _ORDER[:3]
# How many are told of in JSON.
_MOST: Final = 5
_DESCRIPTION: Final = """\
Prints one line: how many agents wait for you and how many do what, by the signs of
the table, and what the first one asks. Nothing if there is no agent, `agtmux off`
if there is no daemon: it starts none, and ends with 0."""
# Less of a question than this tells nothing.
_READABLE: Final = 12


def configure(parser: ArgumentParser) -> None:
    parser.description = _DESCRIPTION
    parser.add_argument(
        "--format", choices=["tmux", "plain", "json"], help="for status-right, or any other bar (plain)"
    )
    parser.add_argument("--width", type=int, default=_WIDTH, metavar="N", help=f"no longer than this ({_WIDTH})")
    add_json(parser)


def run(options: Namespace) -> int:
    form = options.format or ("json" if options.json else "plain")
    if options.json and form != "json":
        raise AgtmuxError(ErrorCode.USAGE, "--json means --format json; leave one of them out")
    if options.width < 1:
        raise AgtmuxError(ErrorCode.USAGE, "--width is 1 or more")
    try:
        listing = Client(start=False, time_limit=_LIMIT).get("/v1/panes")
    except AgtmuxError as error:
        listing, trouble = None, error
    parts = [(f"agtmux {_off(trouble)}", "dim")] if listing is None else line(listing)
    parts = cut(parts, options.width)
    if form == "json":
        print_json(_content(listing, parts))
    elif text := _WRITTEN[form](parts):
        print(text)
    return 0


def line(listing: dict[str, Any]) -> list[Part]:
    """The counts, then who needs you first."""
    counts = listing["summary"]["by_state"]
    parts = [(f"{SIGNS[state][0]}{counts[state]}", SIGNS[state][1]) for state in _ORDER if counts.get(state)]
    for item in _needing(listing)[:1]:
        asks = item["attention"]["summary"] if item["attention"] else item["title"]
        parts.append((f"{item['agent_type']} {item['identity']['pane_id']}: {asks}", ""))
    return parts


def cut(parts: list[Part], width: int) -> list[Part]:
    """As many as there is room for, the last of them in part."""
    kept: list[Part] = []
    room = width
    for text, style in parts:
        room -= 1 if kept else 0
        if display_width(text) > room:
            if not kept or room >= _READABLE:
                kept.append((fit(text, max(1, room)).rstrip(), style))
            break
        kept.append((fit(text, display_width(text)), style))
        room -= display_width(text)
    return kept


def _needing(listing: dict[str, Any]) -> list[dict[str, Any]]:
    items = [item for item in listing["items"] if item["state"] in _NEEDS_YOU]
    return sorted(items, key=lambda item: (_NEEDS_YOU.index(item["state"]), item["updated_at"]))


def _off(trouble: AgtmuxError) -> str:
    return "off" if trouble.code is ErrorCode.DAEMON_UNAVAILABLE else "failed"


def _plain(parts: list[Part]) -> str:
    return " ".join(text for text, _ in parts)


def _tmux(parts: list[Part]) -> str:
    """tmux reads what a command prints as a format once more, so every # of a name is doubled."""
    return " ".join(_styled(text.replace("#", "##"), style) for text, style in parts)


def _styled(text: str, style: str) -> str:
    if not style:
        return text
    return f"#[{style if style == 'dim' else f'fg={style}'}]{text}#[default]"


_WRITTEN: Final[dict[str, Callable[[list[Part]], str]]] = {"plain": _plain, "tmux": _tmux}


def _content(listing: dict[str, Any] | None, parts: list[Part]) -> dict[str, Any]:
    summary = {"total": 0, "needs_action": 0, "by_state": {}} if listing is None else listing["summary"]
    return {
        "schema_version": 1,
        "is_running": listing is not None,
        "text": _plain(parts),
        "total": summary["total"],
        "needs_action": summary["needs_action"],
        "by_state": summary["by_state"],
        "needs_you": [] if listing is None else _needing(listing)[:_MOST],
    }
