"""Random moments: what the daemon says, what the user and the desktop have chosen, and the time.

Each is a small change of the one before, as the watch stream, a click or the clock brings it. Now and then everything
is another: it is another day, with other agents.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from agtmux.domain.states import State
from AgtmuxBar.model import build
from AgtmuxBar.settings import FOR_EVER, Settings, Surroundings
from AgtmuxBar.snapshot import Pane, Snapshot, wait_key
from AgtmuxBar.tree import Menu
from desktop.builders import HEALTH, NOW, letter, pane, target

MOST_PANES = 500
_SIZES = (0, 1, 2, 5, 12, 30, 80, 200, MOST_PANES)
_ANOTHER_DAY = 0.04
# How many things change at once: mostly one, after a line that was down for a while many.
_AT_ONCE = (1, 1, 1, 1, 2, 3, 20)

# Few enough to meet again: two items may read the same.
_TEXTS = (
    "make deploy",
    "Which database?",
    "日本語の質問です。続けますか?" * 5,
    "👩‍👩‍👧 🇩🇪 🧑🏽‍🚀",
    "naïve e\u0301 Straße",
    "שלום \u202eolleh",
    "rm -rf /\n\tand\r\nmore\x1b[31m\x00",
    "100 %s {} %(x)s & <b>",
    "… · ── ☑ ⌥ (x)",
    "\ud83d half a character",
    "x" * 1000,
    "",
)
# The last three would be one, were they not quoted.
_SESSIONS = ("work", "api", "-l", "日本 語", "🚀", "s" * 90, "100%", "a/b", "a%2Fb", "a%252Fb")
_TARGETS = ("host", "vm1", "vm2", "a.b-c_d", "gpu-1", "gpu-2", "gpu-3")
_AGENTS = ("claude", "codex", "gemini", "copilot", "cursor")
_NAMES = (None, "claude-3", "reviewer", "検査役", "an agent with a name that is longer than its place")
_TERMINALS = (("kitty", "kitty"), ("iterm2", "iTerm2"), ("端末", "端末 \x07"))
_SWITCHES = ("has_sound", "notifies_errors", "notifies_completed")
_SECONDS = (1.0, 20.0, 61.0, 900.0, 4000.0, 100_000.0)


@dataclass(frozen=True)
class Moment:
    snapshot: Snapshot
    settings: Settings
    surroundings: Surroundings
    now: float

    def menu(self) -> Menu:
        return build(self.snapshot, self.settings, self.surroundings, self.now)


Change = Callable[[random.Random, Moment], Moment]


def moments(chance: random.Random) -> Iterator[Moment]:
    """Without end. The first is that of an app that has just been started."""
    moment = Moment(Snapshot(), Settings(), Surroundings(), NOW)
    sizes: list[int] = []
    while True:
        yield moment
        if chance.random() < _ANOTHER_DAY:
            # Each before any comes again, so that a short run has seen all of them.
            sizes = sizes or chance.sample(_SIZES, len(_SIZES))
            moment = _another_day(chance, moment.now, sizes.pop())
            continue
        for _ in range(chance.choice(_AT_ONCE)):
            change = chance.choices(list(_CHANGES), list(_CHANGES.values()))[0]
            moment = change(chance, moment)


def _another_day(chance: random.Random, now: float, size: int) -> Moment:
    now = max(NOW, now + chance.choice((0.0, -86400.0, 86400.0)))
    moment = Moment(Snapshot(), Settings(), Surroundings(), now)
    panes = [_pane(chance, now) for _ in range(size)]
    moment = _said(moment, {"type": "snapshot", "items": panes})
    for change in _BESIDE:
        for _ in range(chance.randrange(4)):
            moment = change(chance, moment)
    return moment


# What the stream says


def _said(moment: Moment, line: dict[str, Any]) -> Moment:
    return replace(moment, snapshot=moment.snapshot.after(line))


def _put(moment: Moment, *panes: Pane) -> Moment:
    if not moment.snapshot.has_begun:
        return _said(moment, {"type": "snapshot", "items": panes})
    changes = [{"op": "upsert", "identity": each["identity"], "item": each} for each in panes]
    return _said(moment, {"type": "delta", "changes": changes})


def _pane(chance: random.Random, now: float, **more: Any) -> dict[str, Any]:
    state = chance.choice(list(State))
    made = pane(
        chance.randrange(10**6),
        state,
        agent=chance.choice(_AGENTS),
        target=chance.choice(_TARGETS[:4]),
        # Most are in few, as people have it.
        session=_SESSIONS[int(chance.random() ** 3 * len(_SESSIONS))],
        window=f"@{chance.randrange(4)}",
        title=chance.choice(_TEXTS),
        version=chance.randrange(9),
    )
    beside = {
        "name": chance.choice(_NAMES),
        "runtime_id": f"{chance.getrandbits(256):064x}",
        "branch": chance.choice((None, "main", "fix/日本")),
        "attention": _attention(chance, state),
        "updated_at": (updated_at := _written(now - chance.choice(_SECONDS))),
        "state_since": updated_at,
        "remembered": None,
    }
    return made | beside | more


def _attention(chance: random.Random, state: str) -> dict[str, Any] | None:
    kinds = {"waiting_approval": "approval", "waiting_input": "question", "error": "error"}
    if state not in kinds or chance.random() < 0.2:
        # Some are known to wait, and not for what.
        return None
    return {
        "kind": kinds[state],
        "summary": chance.choice(_TEXTS),
        "detail": chance.choice((None, *_TEXTS)),
        "options": chance.sample(_TEXTS, chance.randrange(4)),
        "fingerprint": chance.choice((None, f"{chance.getrandbits(32):08x}")),
        "whole": (whole := chance.random() < 0.7),
        "incomplete_reason": None if whole else "not_on_screen",
        "brief": whole and chance.random() < 0.5,
    }


def _written(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()


def _any_pane(chance: random.Random, moment: Moment) -> Pane | None:
    # The order of a dict is that of what came, and so the same for the same seed.
    return chance.choice(list(moment.snapshot.panes.values()) or [None])


def _comes(chance: random.Random, moment: Moment) -> Moment:
    if len(moment.snapshot.panes) >= MOST_PANES:
        return moment
    return _put(moment, _pane(chance, moment.now))


def _goes(chance: random.Random, moment: Moment) -> Moment:
    if (there := _any_pane(chance, moment)) is None:
        return moment
    return _said(moment, {"type": "delta", "changes": [{"op": "remove", "identity": there["identity"]}]})


def _moves_on(chance: random.Random, moment: Moment) -> Moment:
    if (there := _any_pane(chance, moment)) is None:
        return moment
    state = chance.choice(list(State))
    then = {
        "state": state,
        "state_version": there["state_version"] + 1,
        "updated_at": _written(moment.now),
        "attention": _attention(chance, state),
        "title": chance.choice((there["title"], chance.choice(_TEXTS))),
    }
    return _put(moment, {**there, **then})


def _asks_something_else(chance: random.Random, moment: Moment) -> Moment:
    """Without another state: the next dialog came too soon to be told apart by that."""
    if (there := _any_pane(chance, moment)) is None:
        return moment
    return _put(moment, {**there, "attention": _attention(chance, there["state"])})


def _is_another_agent(chance: random.Random, moment: Moment) -> Moment:
    """In the place of one that was left."""
    if (there := _any_pane(chance, moment)) is None:
        return moment
    place = {name: there[name] for name in ("identity", "ref")}
    return _put(moment, _pane(chance, moment.now, **place))


# What is asked for beside it


def _targets(chance: random.Random, moment: Moment) -> Moment:
    errors = (None, "ssh: connect: connection refused", *_TEXTS)
    names = chance.sample(_TARGETS, chance.randrange(len(_TARGETS) + 1))
    listed = tuple(target(name, chance.choice(errors)) for name in names)
    return replace(moment, snapshot=replace(moment.snapshot, targets=listed))


def _window_name(chance: random.Random, moment: Moment) -> Moment:
    if (there := _any_pane(chance, moment)) is None:
        return moment
    window = tuple(there["identity"].values())[:3]
    names = {**moment.snapshot.window_names, window: chance.choice(_TEXTS)}
    return replace(moment, snapshot=replace(moment.snapshot, window_names=names))


def _letter(chance: random.Random, moment: Moment) -> Moment:
    came = {
        **letter(chance.getrandbits(60), text=chance.choice(_TEXTS)),
        "from_agent": chance.choice(("claude-3", *_TEXTS[:-1])),
        "sent_at": _written(moment.now - chance.choice(_SECONDS)),
    }
    return replace(moment, snapshot=replace(moment.snapshot, letters=(*moment.snapshot.letters[-49:], came)))


def _letters_are_read(chance: random.Random, moment: Moment) -> Moment:
    left = moment.snapshot.letters[chance.randrange(10) :]
    return replace(moment, snapshot=replace(moment.snapshot, letters=left))


def _health(chance: random.Random, moment: Moment) -> Moment:
    said = chance.choice((None, HEALTH, HEALTH | {"pid": chance.randrange(10**7)}))
    return replace(moment, snapshot=replace(moment.snapshot, health=said))


def _daemon_is_away(chance: random.Random, moment: Moment) -> Moment:
    """Until the next line comes."""
    return replace(moment, snapshot=replace(moment.snapshot, trouble=chance.choice(_TEXTS)))


# What the user and the desktop do


def _time_passes(chance: random.Random, moment: Moment) -> Moment:
    return replace(moment, now=moment.now + chance.choice(_SECONDS))


def _snoozes(chance: random.Random, moment: Moment) -> Moment:
    settings = moment.settings
    waits = moment.snapshot.waits()
    for asking in chance.sample(waits, min(len(waits), chance.choice((1, 1, 1, 8)))):
        until = chance.choice((moment.now + 900, moment.now + 3600, FOR_EVER, 0.0))
        settings = settings.with_snoozed(wait_key(asking), until, moment.now)
    return replace(moment, settings=settings)


def _pauses(chance: random.Random, moment: Moment) -> Moment:
    until = chance.choice((0.0, moment.now + 40, moment.now + 3600, FOR_EVER))
    return replace(moment, settings=replace(moment.settings, paused_until=until))


def _switches(chance: random.Random, moment: Moment) -> Moment:
    settings = moment.settings.with_switched(chance.choice(_SWITCHES))
    settings = replace(settings, terminal=chance.choice(("", "kitty", "gone")))
    return replace(moment, settings=settings)


def _bridges(chance: random.Random, moment: Moment) -> Moment:
    agents = chance.sample(_AGENTS, chance.randrange(len(_AGENTS) + 1))
    told = chance.choice((None, {agent: chance.random() < 0.5 for agent in agents}))
    return replace(moment, surroundings=replace(moment.surroundings, bridges=told))


def _desktop(chance: random.Random, moment: Moment) -> Moment:
    surroundings = replace(
        moment.surroundings,
        terminals=_TERMINALS[: chance.randrange(len(_TERMINALS) + 1)],
        is_launched_at_login=chance.choice((None, True, False)),
        has_command_line_tool=chance.choice((None, True, False)),
        has_board=chance.random() < 0.5,
    )
    return replace(moment, surroundings=surroundings)


# What may have happened by the time the first menu of a day is looked at.
_BESIDE: tuple[Change, ...] = (_targets, _window_name, _letter, _health, _snoozes, _pauses, _bridges, _desktop)
# And how often each of all comes.
_CHANGES: dict[Change, int] = {
    _moves_on: 30,
    _asks_something_else: 8,
    _comes: 8,
    _goes: 8,
    _is_another_agent: 4,
    _targets: 3,
    _window_name: 3,
    _letter: 4,
    _letters_are_read: 3,
    _health: 2,
    _daemon_is_away: 3,
    _time_passes: 10,
    _snoozes: 6,
    _pauses: 3,
    _switches: 2,
    _bridges: 3,
    _desktop: 2,
}
