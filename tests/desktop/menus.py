"""The menus that every renderer's tests draw, each with a text in golden/."""

from pathlib import Path

from AgtmuxBar.model import build
from AgtmuxBar.settings import FOR_EVER, Settings, Surroundings
from AgtmuxBar.snapshot import Snapshot, wait_key
from AgtmuxBar.tree import Menu
from desktop.builders import NOW, letter, pane, snapshot, some_snapshot

GOLDEN = Path(__file__).with_name("golden")
DESKTOP = Surroundings(
    terminals=(("kitty", "kitty"), ("xterm", "xterm")),
    is_launched_at_login=True,
    has_command_line_tool=False,
    bridges={"claude": True, "codex": False},
    has_board=True,
)


def menus() -> dict[str, Menu]:
    day = some_snapshot()
    first = day.waits()[0]
    crowd = snapshot(*(pane(number, "waiting_approval", asks=f"step {number}") for number in range(40)))
    return {
        "asking": build(Snapshot(), Settings(), Surroundings(), NOW),
        "nobody": build(snapshot(), Settings(), Surroundings(), NOW),
        "day": build(day, Settings(), DESKTOP, NOW),
        "snoozed": build(day, Settings(snoozed={wait_key(first): FOR_EVER}), Surroundings(), NOW),
        "paused": build(day, Settings(paused_until=NOW + 3000, has_sound=False), Surroundings(), NOW),
        "down": build(some_snapshot(trouble="it has stopped"), Settings(), DESKTOP, NOW),
        "written": build(snapshot(pane(1, "running"), letters=(letter(),)), Settings(), Surroundings(), NOW),
        "crowd": build(crowd, Settings(), Surroundings(), NOW),
    }
