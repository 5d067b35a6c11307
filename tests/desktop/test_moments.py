"""What renderers are tried with: as the daemon would say it, and all that a menu can show."""

import json
import random
from itertools import islice

from jsonschema import Draft202012Validator

from AgtmuxBar.deeds import NAMES
from desktop.moments import MOST_PANES, moments
from support.schemas import SHIPPED, closed

# By the first words of their keys.
ITEMS = {
    *("summary", "trouble", "start", "waiting", "failed", "letters", "snoozed", "sessions", "targets", "before"),
    *("wait", "error", "letter", "session", "window", "pane", "target"),
    *("approve", "deny", "snooze", "wake", "review", "line", "all"),
    *("notifications", "pause", "paused", "resume", "switches", "switch", "board", "daemon", "bridge"),
    *("settings", "terminal", "login", "install", "config", "quit"),
    *("more waiting", "more failed", "more letters", "more snoozed", "more session", "more sessions", "more targets"),
}


def some_moments():
    # Always the same, so that luck has no part in it.
    return islice(moments(random.Random(1)), 500)


def test_everything_that_a_menu_can_show_is_shown():
    sizes, icons, names, items = set(), set(), set(), set()
    for moment in some_moments():
        menu = moment.menu()
        sizes.add(len(moment.snapshot.panes))
        icons.add(menu.icon)
        keys = [item.key for item in menu.walk()]
        assert len(set(keys)) == len(keys)
        words = [key.split() for key in keys]
        items |= {" ".join(each[: 2 if each[0] == "more" else 1]) for each in words}
        names |= {item.action.name for item in menu.walk() if item.action}
    assert {0, MOST_PANES} <= sizes
    assert icons == {"idle", "running", "waiting", "down"}
    assert names == NAMES
    assert items == ITEMS


def test_most_stays_from_one_moment_to_the_next():
    """Or nothing would be changed in place."""
    kept = changed = 0
    before: dict = {}
    for moment in some_moments():
        now = {item.key: item for item in moment.menu().walk()}
        kept += sum(before.get(key) == item for key, item in now.items())
        changed += sum(key in before and before[key] != item for key, item in now.items())
        before = now
    assert kept > 10 * changed > 1000


def test_panes_are_as_the_daemon_has_them():
    document = closed(json.loads((SHIPPED / "panes.json").read_text("utf-8")))
    validator = Draft202012Validator(document | {"$ref": "#/$defs/PaneItem"})
    for moment in islice(some_moments(), 0, None, 100):
        for pane in moment.snapshot.panes.values():
            validator.validate(pane)
