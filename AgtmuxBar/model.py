"""From what is known to the menu: one pure function, and every renderer draws its result.

Labels are short and legible whatever an agent says, keys are stable, and what an item does carries what was shown when
it was drawn: an answer is for that dialog, and the daemon refuses it if the agent has moved on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, TypeVar

from AgtmuxBar.labels import (
    AGENT,
    MINUTE,
    PLACE,
    QUESTION,
    age_of,
    agent_of,
    can_answer,
    hint_of,
    is_brief,
    letter_text,
    place_of,
    request_lines,
    request_text,
    short,
    title_of,
)
from AgtmuxBar.settings import FOR_EVER, Settings, Surroundings
from AgtmuxBar.snapshot import Letter, Pane, Snapshot, fingerprint_of, question_of, sent, since, wait_key
from AgtmuxBar.tree import Action, Item, Kind, Menu

T = TypeVar("T")

# A state is told by its shape, as in the table. Most urgent first.
GLYPHS: Final = {
    "error": "✗",
    "waiting_approval": "!",
    "waiting_input": "?",
    "running": "▶",
    "completed": "✓",
    "idle": "·",
    "unknown": "~",
}
_URGENCY: Final = {state: rank for rank, state in enumerate(GLYPHS)}
_UNREACHABLE: Final = "⊘"
_LETTER: Final = "✉"

# As much as can be taken in at a glance; whoever has more chooses from a list that can be searched.
MOST_WAITING: Final = 10
MOST_OTHERS: Final = 4
MOST_SESSIONS: Final = 12
MOST_PANES: Final = 25
# Rows between the summary and `Notifications`. With more of them the end of the menu, and with it the board and Quit,
# would be below the edge of a screen of 1280 × 800.
MOST_ROWS: Final = 16
# Which sections are put into a submenu where there is no room, in this order.
_GIVE_WAY: Final = ("sessions", "snoozed", "letters", "targets", "failed")
_HOUR: Final = 3600.0
_SNOOZES: Final = (("15m", "15 minutes", 900.0), ("1h", "1 hour", _HOUR), ("asks", "until it asks again", FOR_EVER))
_PAUSES: Final = (("1h", "1 hour", _HOUR), ("8h", "8 hours", 8 * _HOUR), ("on", "until I resume", FOR_EVER))
_SWITCHES: Final = (
    ("has_sound", "Sound"),
    ("notifies_errors", "Also when an agent fails"),
    ("notifies_completed", "Also when an agent is done"),
)


def build(snapshot: Snapshot, settings: Settings, surroundings: Surroundings, now: float) -> Menu:
    """`now` is in seconds since the epoch, in the daemon's time."""
    waits: list[Pane] = []
    snoozed: list[Pane] = []
    for pane in snapshot.waits():
        (snoozed if is_snoozed(pane, settings, now) else waits).append(pane)
    summary = _summary(snapshot, len(waits), len(snoozed))
    sections = {
        "waiting": _waiting(waits, now),
        "failed": _failed(snapshot.in_state("error"), now),
        "letters": _letters(snapshot.letters, now),
        "snoozed": _snoozed(snoozed, now),
        "sessions": _sessions(snapshot),
        "targets": _unreachable(snapshot.targets),
    }
    parts = [
        [Item("summary", summary, Kind.HEADER), *_down(snapshot)],
        *_fitted(sections).values(),
        [
            _notifications(settings, now),
            *_board(surroundings),
            _daemon(snapshot),
            *_bridges(surroundings),
            _settings(settings, surroundings),
        ],
        [
            Item("quit", "Quit agtmux", action=Action("quit")),
            Item("quit all", "Quit and stop the daemon", action=Action("quit_all"), is_alternate=True),
        ],
    ]
    # Where nobody answers, what was known is no longer so.
    known = parts if snapshot.is_up else [parts[0], *parts[-2:]]
    return Menu(
        title=str(len(waits)) if snapshot.is_up and waits else "",
        icon=_icon(snapshot, waits),
        description=f"agtmux: {summary}",
        items=tuple(_with_separators([part for part in known if part])),
    )


def next_change(snapshot: Snapshot, settings: Settings, now: float) -> float | None:
    """Seconds until time alone changes the menu; None if it never does. Ages are told in minutes, so a minute at least
    lies between two changes, unless a pause or a snooze ends."""
    if not snapshot.is_up:
        return None
    dated = [*snapshot.waits(), *snapshot.in_state("error")]
    moments = [*map(since, dated), *map(sent, snapshot.letters)]
    ages = [MINUTE - max(0.0, now - moment) % MINUTE for moment in moments]
    snoozes = (settings.snoozed.get(wait_key(pane), 0.0) for pane in snapshot.waits()) if settings.snoozed else ()
    until = [settings.paused_until, *snoozes]
    ends = [min(moment - now, MINUTE) for moment in until if now < moment < FOR_EVER]
    return min([*([min(ages)] if ages else []), *ends], default=None)


def is_snoozed(pane: Pane, settings: Settings, now: float) -> bool:
    # Mostly nothing is, and then nobody needs a key.
    return bool(settings.snoozed) and settings.is_snoozed(wait_key(pane), now)


def answer(name: str, pane: Pane) -> Action:
    """Approve or deny what is asked now, and nothing else."""
    return Action(name, _meant(pane) | {"state": pane["state"], "state_version": str(pane["state_version"])})


def attach(pane: Pane) -> Action:
    return Action("attach", _meant(pane))


# The parts, from top to bottom


def _summary(snapshot: Snapshot, waiting: int, snoozed: int) -> str:
    if snapshot.trouble is not None:
        return "agtmuxd does not answer"
    if not snapshot.has_begun:
        return "Asking agtmuxd …"
    if not snapshot.panes:
        return "No agent is running"
    counts = Counter(pane["state"] for pane in snapshot.panes.values())
    told = [f"{waiting} {'waits' if waiting == 1 else 'wait'} for you"] if waiting else ["Nobody waits for you"]
    told += [f"{snoozed} snoozed"] if snoozed else []
    letters = len(snapshot.letters)
    told += [f"{letters} {'message' if letters == 1 else 'messages'} for you"] if letters else []
    told += [f"{counts[state]} {state}" for state in GLYPHS if counts[state] and not state.startswith("waiting")]
    return " · ".join(told)


def _icon(snapshot: Snapshot, waits: Sequence[Pane]) -> str:
    if not snapshot.is_up:
        return "down"
    if waits:
        return "waiting"
    return "running" if snapshot.in_state("running") else "idle"


def _down(snapshot: Snapshot) -> list[Item]:
    if snapshot.trouble is None:
        return []
    return [
        Item("trouble", short(snapshot.trouble, QUESTION), is_enabled=False, hint=hint_of(snapshot.trouble)),
        Item("start", "Start the daemon", action=Action("restart")),
    ]


def _waiting(waits: Sequence[Pane], now: float) -> list[Item]:
    if not waits:
        return []
    shown = [_asking(pane, "wait", now, _answers(pane, now)) for pane in _fair(waits, MOST_WAITING)]
    return [Item("waiting", "Waiting for you", Kind.HEADER), *shown, *_more("waiting", waits, MOST_WAITING)]


def _failed(panes: Sequence[Pane], now: float) -> list[Item]:
    if not panes:
        return []
    shown = [_asking(pane, "error", now, _looks(pane, "error")) for pane in _fair(panes, MOST_OTHERS)]
    return [Item("failed", "Stopped with an error", Kind.HEADER), *shown, *_more("failed", panes, MOST_OTHERS)]


def _letters(letters: Sequence[Letter], now: float) -> list[Item]:
    """The latest of them. Reading is for all: they are few, and each says whose it is."""
    if not letters:
        return []
    shown = [_letter(letter, now) for letter in letters[-MOST_OTHERS:]]
    hidden = len(letters) - len(shown)
    more = [Item("more letters", f"… {hidden} more", action=Action("read"))] if hidden else []
    return [Item("letters", "Messages for you", Kind.HEADER), *more, *shown]


def _letter(letter: Letter, now: float) -> Item:
    text = short(letter["content"] or "", QUESTION)
    label = f"{short(letter['from_agent'], PLACE)} · {text} · {age_of(now - sent(letter))}"
    hint = hint_of(letter_text(letter))
    return Item(f"letter {letter['message_id']}", label, glyph=_LETTER, action=Action("read"), hint=hint)


def _snoozed(panes: Sequence[Pane], now: float) -> list[Item]:
    if not panes:
        return []
    shown = [_asking(pane, "snoozed", now, (_wake(pane), *_looks(pane, "snoozed"))) for pane in panes[:MOST_OTHERS]]
    return [Item("snoozed", "Snoozed", Kind.HEADER), *shown, *_more("snoozed", panes, MOST_OTHERS)]


def _asking(pane: Pane, prefix: str, now: float, children: tuple[Item, ...]) -> Item:
    age = age_of(now - since(pane))
    label = f"{agent_of(pane)} · {place_of(pane)} · {short(question_of(pane), QUESTION)} · {age}"
    hint = hint_of(f"{title_of(pane)}\n{request_text(pane)}")
    return Item(_key(prefix, pane), label, glyph=GLYPHS[pane["state"]], children=children, hint=hint)


def _answers(pane: Pane, now: float) -> tuple[Item, ...]:
    first, *rest = _looks(pane, "wait")
    answers = []
    if pane["state"] == "waiting_approval" and can_answer(pane):
        # Of this dialog alone: another one gets items of its own, so that none under the pointer changes its meaning.
        shown = f"{pane['state_version']} {fingerprint_of(pane)}"
        answers = [_approval(pane, shown), Item(f"{_key('deny', pane)} {shown}", "Deny", action=answer("deny", pane))]
    key = wait_key(pane)
    snoozes = tuple(
        # A moment, counted from when it is chosen and not from when the menu was drawn.
        Item(_key(f"snooze {name}", pane), label, action=Action("snooze", {"wait": key, "seconds": str(seconds)}))
        for name, label, seconds in _SNOOZES
    )
    show, copy = rest
    return (first, show, *answers, Item(_key("snooze", pane), "Snooze", children=snoozes), copy)


def _approval(pane: Pane, shown: str) -> Item:
    """Approve, beside all that it is for: at once where one line holds it, else below the request, else in the pane."""
    approve = Item(f"{_key('approve', pane)} {shown}", "Approve once", action=answer("approve", pane))
    if is_brief(pane, QUESTION):
        return approve
    lines = request_lines(pane)
    if lines is None:
        return Item(f"{_key('review', pane)} {shown}", "Review in its pane…", action=attach(pane))
    text = tuple(
        Item(f"{_key('line', pane)} {shown} {number}", line or " ", is_enabled=False)
        for number, line in enumerate(lines)
    )
    return Item(f"{_key('review', pane)} {shown}", "Review…", children=(*text, approve))


def _looks(pane: Pane, prefix: str) -> tuple[Item, Item, Item]:
    return (
        Item(_key(f"{prefix} attach", pane), "Attach", action=attach(pane)),
        Item(_key(f"{prefix} show", pane), "Show request…", action=Action("show", _meant(pane))),
        Item(_key(f"{prefix} copy", pane), "Copy attach command", action=Action("copy", _meant(pane))),
    )


def _wake(pane: Pane) -> Item:
    return Item(_key("wake", pane), "Wake", action=Action("snooze", {"wait": wait_key(pane), "seconds": "0"}))


def _sessions(snapshot: Snapshot) -> list[Item]:
    panes = sorted(snapshot.panes.values(), key=_order)
    sessions = [(key, list(group)) for key, group in groupby(panes, key=lambda pane: _session_of(pane))]
    # Those with something to do come first, and stay where they are as long as that does not change.
    sessions.sort(key=lambda session: min(map(_urgency, session[1])))
    if not sessions:
        return []
    shown = [_session(target, name, group, snapshot) for (target, name), group in _shared(sessions, MOST_SESSIONS)]
    more = _more("sessions", sessions, MOST_SESSIONS)
    return [Item("sessions", "Sessions", Kind.HEADER), *shown, *more]


def _session(target: str, name: str, panes: Sequence[Pane], snapshot: Snapshot) -> Item:
    key = f"{target}/{_quoted(name)}"
    inside: list[Item] = []
    # Where not all find room, those with something to do; and each where it is.
    urgent = sorted(panes, key=_urgency)[:MOST_PANES]
    for window_id, group in groupby(sorted(urgent, key=_order), key=lambda pane: pane["identity"]["window_id"]):
        window_name = snapshot.window_names.get((target, name, window_id), "")
        label = short(f"{window_id} {window_name}".strip(), PLACE)
        inside.append(Item(f"window {key}/{window_id}", label, Kind.HEADER))
        inside += [_pane(pane) for pane in group]
    inside += _more(f"session {key}", panes, MOST_PANES)
    top = min(panes, key=_urgency)["state"]
    waiting = sum(pane["state"].startswith("waiting") for pane in panes)
    count = f"{len(panes)} {'agent' if len(panes) == 1 else 'agents'}" + (f", {waiting} waiting" if waiting else "")
    label = f"{short(f'{target}-{name}', PLACE)} · {count}"
    return Item(f"session {key}", label, glyph=GLYPHS.get(top, ""), children=tuple(inside))


def _pane(pane: Pane) -> Item:
    label = f"{agent_of(pane)} {pane['identity']['pane_id']} · {short(question_of(pane), QUESTION)}"
    hint = hint_of(f"{pane['state']} ({pane['reason_code']}, {pane['confidence']}) in {pane['cwd']}")
    return Item(
        _key("pane", pane), label.rstrip(" ·"), glyph=GLYPHS.get(pane["state"], ""), action=attach(pane), hint=hint
    )


def _unreachable(targets: Iterable[Mapping[str, Any]]) -> list[Item]:
    failing = [target for target in targets if target["health"] != "ok" and target["error"]]
    shown = [
        Item(
            f"target {target['name']}",
            # Most reasons begin with the name.
            f"{short(target['name'], PLACE)}: {short(_reason(target), QUESTION)}",
            glyph=_UNREACHABLE,
            is_enabled=False,
            hint=hint_of(target["error"]["message"]),
        )
        for target in failing[:MOST_OTHERS]
    ]
    head = [Item("targets", "Not reachable", Kind.HEADER)] if shown else []
    hidden = len(failing) - len(shown)
    return [*head, *shown, *([Item("more targets", f"… {hidden} more", is_enabled=False)] if hidden else [])]


def _reason(target: Mapping[str, Any]) -> str:
    return str(target["error"]["message"]).removeprefix(f"{target['name']}: ")


def _notifications(settings: Settings, now: float) -> Item:
    if settings.is_paused(now):
        left = settings.paused_until - now
        label = "Paused" if settings.paused_until >= FOR_EVER else f"Paused, {age_of(left + MINUTE)} left"
        pause = [
            Item("paused", label, Kind.HEADER),
            Item("resume", "Resume", action=Action("pause", {"seconds": "0"})),
        ]
    else:
        pause = [
            Item(f"pause {name}", f"Pause {'for ' if seconds < FOR_EVER else ''}{label}", action=_pause(seconds))
            for name, label, seconds in _PAUSES
        ]
    ticks = [
        Item(f"switch {name}", label, is_checked=getattr(settings, name), action=Action("switch", {"name": name}))
        for name, label in _SWITCHES
    ]
    return Item("notifications", "Notifications", children=(*pause, Item("switches", kind=Kind.SEPARATOR), *ticks))


def _pause(seconds: float) -> Action:
    return Action("pause", {"seconds": str(seconds)})


def _board(surroundings: Surroundings) -> list[Item]:
    return [Item("board", "Open the board", action=Action("board"))] if surroundings.has_board else []


def _daemon(snapshot: Snapshot) -> Item:
    health = snapshot.health
    told = f"agtmuxd {health['version']}, process {health['pid']}" if health and snapshot.is_up else "agtmuxd"
    return Item(
        "daemon",
        "Daemon",
        children=(
            Item("daemon health", short(told, PLACE), Kind.HEADER),
            Item("daemon restart", "Restart", action=Action("restart")),
            Item("daemon log", "Show the log", action=Action("log")),
            Item("daemon doctor", "Doctor…", action=Action("doctor")),
        ),
    )


def _bridges(surroundings: Surroundings) -> list[Item]:
    if surroundings.bridges is None:
        return []
    ticks = [
        Item(
            f"bridge {_quoted(agent)}",
            short(agent, AGENT),
            is_checked=is_on,
            action=Action("bridge", {"agent": agent, "on": "" if is_on else "1"}),
        )
        for agent, is_on in sorted(surroundings.bridges.items())
    ]
    return [Item("bridge", "MCP bridge", children=tuple(ticks))]


def _settings(settings: Settings, surroundings: Surroundings) -> Item:
    inside: list[Item] = []
    if surroundings.terminals:
        choices = (("", "Automatic"), *surroundings.terminals)
        ticks = tuple(
            Item(
                f"terminal {name or 'default'}",
                short(label, PLACE),
                is_checked=name == settings.terminal,
                action=Action("terminal", {"name": name}),
            )
            for name, label in choices
        )
        inside.append(Item("terminal", "Terminal", children=ticks))
    if (is_on := surroundings.is_launched_at_login) is not None:
        action = Action("login", {"on": "" if is_on else "1"})
        inside.append(Item("login", "Launch at login", is_checked=is_on, action=action))
    if surroundings.has_command_line_tool is False:
        inside.append(Item("install", "Install the command-line tool…", action=Action("install")))
    inside.append(Item("config", "Open the config file", action=Action("config")))
    return Item("settings", "Settings", children=tuple(inside))


# What they have in common


def _fitted(sections: Mapping[str, list[Item]]) -> dict[str, list[Item]]:
    """As many sections as lists as there is room for, and the others as an item that opens them."""
    fitted = dict(sections)
    for name in _GIVE_WAY:
        if sum(map(len, fitted.values())) <= MOST_ROWS:
            break
        if fitted[name]:
            head, *inside = fitted[name]
            glyph = next((item.glyph for item in inside if item.glyph), "")
            fitted[name] = [Item(f"all {head.key}", head.label, glyph=glyph, children=tuple(inside))]
    return fitted


def _with_separators(parts: Sequence[Sequence[Item]]) -> Iterable[Item]:
    for number, part in enumerate(parts):
        if number:
            # Named after what it stands before, which is what it comes and goes with.
            yield Item(f"before {part[0].key}", kind=Kind.SEPARATOR)
        yield from part


def _fair(panes: Sequence[Pane], most: int) -> list[Pane]:
    """So many of them, in their order, with room for every target: one with many does not push out another's."""
    return _chosen(panes, [pane["identity"]["target"] for pane in panes], most)


def _shared(
    sessions: Sequence[tuple[tuple[str, str], list[Pane]]], most: int
) -> list[tuple[tuple[str, str], list[Pane]]]:
    return _chosen(sessions, [target for (target, _), _ in sessions], most)


def _chosen(every: Sequence[T], targets: Sequence[str], most: int) -> list[T]:
    if len(every) <= most:
        return list(every)
    seen: Counter[str] = Counter()
    turns = []
    for number, target in enumerate(targets):
        turns.append((seen[target], number))
        seen[target] += 1
    return [every[number] for number in sorted(number for _, number in sorted(turns)[:most])]


def _more(key: str, every: Sequence[object], most: int) -> list[Item]:
    hidden = len(every) - most
    return [Item(f"more {key}", f"… {hidden} more", action=Action("pick"))] if hidden > 0 else []


def _key(prefix: str, pane: Pane) -> str:
    return f"{prefix} {pane['ref']} {pane['runtime_id'][:12]}"


def _meant(pane: Pane) -> dict[str, str]:
    return {"ref": pane["ref"], "runtime_id": pane["runtime_id"], "fingerprint": fingerprint_of(pane)}


def _urgency(pane: Pane) -> int:
    return _URGENCY.get(pane["state"], len(_URGENCY))


def _order(pane: Pane) -> tuple[str, str, int, int]:
    identity = pane["identity"]
    window, number = identity["window_id"][1:], identity["pane_id"][1:]
    return identity["target"], identity["session_name"], _number(window), _number(number)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _session_of(pane: Pane) -> tuple[str, str]:
    return pane["identity"]["target"], pane["identity"]["session_name"]


def _quoted(text: str) -> str:
    return text.replace("%", "%25").replace("/", "%2F")
