"""How panes look in a terminal: waiting first, states by colour and by shape."""

from __future__ import annotations

from datetime import datetime

from agtmux.cli.table import cut, draw
from agtmux.domain.durations import format_age
from agtmux.domain.names import shown_name

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

# A state is told by its sign as well as by its colour. Most urgent first.
SIGNS: Final[dict[str, tuple[str, str]]] = {
    "error": ("✗", "red"),
    "waiting_approval": ("!", "yellow"),
    "waiting_input": ("?", "yellow"),
    "running": ("▶", "green"),
    "completed": ("✓", "blue"),
    "idle": ("·", ""),
    "unknown": ("~", "dim"),
}
NEEDS_YOU: Final = ("error", "waiting_approval", "waiting_input")
_HEADS: Final = ("", "STATE", "AGENT", "AGE", "PANE", "ASKS / TITLE")
_GROUP_HEADS: Final = ("", "STATE", "WAIT", "RUN", "AGENTS")
# PANE, WINDOW or SESSION; where there is little room, the window and the pane are what one needs of them.
_PLACE: Final = 4


def draw_panes(listing: dict[str, Any], *, colour: bool, width: int | None) -> list[str]:
    items = listing["items"]
    if not items:
        return [cut(_nothing(listing), width)]
    now = datetime.fromisoformat(listing["generated_at"])
    rows = [pane_row(item, now) for item in items]
    styles = [SIGNS.get(item["state"], ("", ""))[1] for item in items]
    summary = cut(summary_line(listing["summary"]), width)
    return [summary, *draw(_HEADS, rows, styles, colour=colour, width=width, place=_PLACE)]


def draw_groups(listing: dict[str, Any], *, colour: bool, width: int | None) -> list[str]:
    """Windows or sessions, each with the most urgent state in it."""
    items = listing["items"]
    if not items:
        return [cut(_nothing(listing), width)]
    rows, styles = [], []
    for item in items:
        identity = item["identity"]
        counts = ", ".join(f"{count} {state}" for state, count in item["by_state"].items())
        sign, style = SIGNS.get(item["top_state"], ("?", ""))
        place = place_of(identity)
        place_head, more_head, more = _heads_of(item)
        rows.append((sign, item["top_state"], str(item["waiting"]), str(item["running"]), place, more, counts))
        styles.append(style)
    heads = [*_GROUP_HEADS[:4], place_head, more_head, *_GROUP_HEADS[4:]]
    summary = cut(summary_line(listing["summary"]), width)
    return [summary, *draw(heads, rows, styles, colour=colour, width=width, place=_PLACE)]


def _heads_of(item: dict[str, Any]) -> tuple[str, str, str]:
    """What the listed thing is called, what else tells it from others, and that."""
    if "window_name" in item:
        return "WINDOW", "NAME", item["window_name"]
    if "target" not in item["identity"]:
        return "SESSION", "TARGETS", ", ".join(item["by_target"])
    return "SESSION", "WINDOWS", str(item["windows"])


def place_of(identity: dict[str, str]) -> str:
    """Of a pane, a window or a session."""
    parts = ("target", "session_name", "window_id", "pane_id")
    return "/".join(identity[part] for part in parts if part in identity)


def _nothing(listing: dict[str, Any]) -> str:
    if listing.get("filters"):
        return "No agent fits what was asked for."
    return "No agent is running in a tmux pane. `agtmux demo` shows what it would look like."


def summary_line(summary: dict[str, Any]) -> str:
    """`8 agents, 4 need you (1 error, 3 waiting_approval); 3 running, 1 idle`."""
    by_state: dict[str, int] = summary["by_state"]
    asking = ", ".join(f"{count} {state}" for state, count in by_state.items() if state in NEEDS_YOU)
    others = ", ".join(f"{count} {state}" for state, count in by_state.items() if state not in NEEDS_YOU)
    needs = summary["needs_action"]
    wanting = f"{needs} {'needs' if needs == 1 else 'need'} you ({asking})" if needs else "nobody needs you"
    agents = "1 agent" if summary["total"] == 1 else f"{summary['total']} agents"
    return f"{agents}, {wanting}" + (f"; {others}" if others else "")


def confidence_note(items: list[dict[str, Any]]) -> str | None:
    """What the word behind a state means, where one stands there."""
    unsure = [item for item in items if item["state"] != "unknown" and item["confidence"] != "high"]
    if not unsure:
        return None
    return (
        f"({unsure[0]['confidence']}) says how sure agtmux is of that state: less than high where the evidence is"
        " incomplete, or where the screen and the agent's own reports differ. `agtmux explain PANE` tells why."
    )


def pane_row(item: dict[str, Any], now: datetime) -> tuple[str, ...]:
    identity = item["identity"]
    # A daemon of an earlier version tells only when it last changed.
    age = now - datetime.fromisoformat(item.get("state_since") or item["updated_at"])
    attention = item["attention"]
    state = item["state"]
    if state == "unknown" or item["confidence"] != "high":
        state += f" ({item['reason_code'] if state == 'unknown' else item['confidence']})"
    return (
        SIGNS.get(item["state"], ("?", ""))[0],
        state,
        shown_name(item["agent_type"], item.get("name")),
        format_age(int(age.total_seconds() * 1_000_000)),
        place_of(identity),
        attention["summary"] if attention else item["title"],
    )
