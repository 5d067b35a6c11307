"""Which notifications to show and which to take back: a pure function of what was, what is, and the time.

An agent that begins to wait is news, once; one that waited when the app came is not. What is answered within a moment
was answered by somebody who was there. Nothing is shown for a pane that the user looks at. Whatever is no longer so is
withdrawn, whoever answered it and wherever. What an agent has written to the user is told likewise, until it is read.
Where many begin to wait at a time, those of one target are told of together, and those of the others are not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from agtmux.domain.events import shortened_text
from agtmux.domain.legible import legible, printable
from AgtmuxBar.labels import agent_of, can_answer, is_brief, place_of
from AgtmuxBar.looking import Place
from AgtmuxBar.model import answer, attach, is_snoozed
from AgtmuxBar.settings import Settings
from AgtmuxBar.snapshot import Letter, Pane, Snapshot, fingerprint_of, question_of, wait_key
from AgtmuxBar.tree import Action

# Whoever answers so soon has seen it.
QUIET: Final = 2.0
# Between two notifications about one agent. What it asks meanwhile is shown when that is over, if it still asks.
COOL_DOWN: Final = 10.0
# So many are told of one by one: of all at a time, and of one target within a while.
MOST_AT_ONCE: Final = 5
_WHILE: Final = 60.0
# A notification shows so much of a request for sure.
_LONGEST_BRIEF: Final = 120
_LONGEST: Final = 300
_LETTER: Final = "letter"
_NOTHING: Final[Mapping[str, str]] = {}

_TITLES: Final = {
    "waiting_approval": "{} asks for approval",
    "waiting_input": "{} has a question",
    "error": "{} has stopped with an error",
    "completed": "{} is done",
}
# The reason of a state that nobody has looked at since the daemon started.
_NOT_OBSERVED: Final = "not_observed_yet"
# The switch that a state's news depend on.
_OPTIONAL: Final = {"error": "notifies_errors", "completed": "notifies_completed"}


@dataclass(frozen=True, slots=True)
class Notification:
    # One for each agent: another with the same key takes the place of the first.
    key: str
    title: str
    # Where it is.
    place: str
    # What it asks.
    body: str
    # What choosing it does, and its buttons in order.
    default: Action
    buttons: tuple[tuple[str, Action], ...] = ()
    is_urgent: bool = True
    has_sound: bool = True
    # It takes the place of another only to say what the buttons mean by now.
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """What is remembered of one agent."""

    # What it is in, since which version, and what it asks; no state once it asks no more.
    state: str
    version: int
    question: str
    # The fingerprint of the dialog it asks in, once that has been seen.
    dialog: str
    # When that was first seen, and when a notification about this agent was last shown.
    since: float
    shown_at: float = float("-inf")
    # What is on display.
    shown: Notification | None = None
    # Nothing is to be shown of it any more: it was there before us, or was seen.
    is_settled: bool = False
    # It is told of together with others of its target.
    is_summed: bool = False


Memory = Mapping[str, Told]


@dataclass(frozen=True, slots=True)
class Outcome:
    memory: Memory | None
    show: tuple[Notification, ...] = ()
    withdraw: tuple[str, ...] = ()
    # Seconds until there may be something to show that time alone brings.
    due: float | None = None


def step(
    memory: Memory | None,
    snapshot: Snapshot,
    settings: Settings,
    now: float,
    looked_at: Collection[Place] = (),
    left: Mapping[str, str] = _NOTHING,
) -> Outcome:
    """`memory` is what the last step left, None at first; `looked_at` has the panes in front of the user. What an app
    before this one was showing is in `left`, the dialog by the key: what is still asked is ours from now on."""
    if not snapshot.is_up:
        # What cannot be asked is not known to have been answered.
        return Outcome(memory)
    told = {
        pane["runtime_id"]: _told(pane, None if memory is None else memory.get(pane["runtime_id"]), memory is None, now)
        for pane in snapshot.panes.values()
    }
    after: dict[str, Told] = {}
    show: list[Notification] = []
    dues: list[float] = []
    for pane in snapshot.panes.values():
        key = pane["runtime_id"]
        known = told[key]
        if known is None:
            continue
        is_inherited = pane["state"] in _TITLES and bool(known.dialog) and known.dialog == left.get(key)
        if is_inherited:
            known = replace(known, shown=_notification(pane, settings), is_settled=True)
        known, due = _judged(known, pane, settings, now, looked_at)
        if due is not None:
            dues.append(due)
        before = None if memory is None or key not in memory else memory[key].shown
        if known.shown is not None and known.shown != before:
            show.append(replace(known.shown, is_silent=before is not None or is_inherited))
        after[key] = known
    for letter in snapshot.letters:
        key = f"letter {letter['message_id']}"
        known, due = _written(letter, (memory or {}).get(key), memory is None, settings, now)
        if key in left:
            known = replace(known, shown=_letter(letter, settings), is_settled=True)
        if due is not None:
            dues.append(due)
        if known.shown is not None and known.shown_at == now:
            show.append(known.shown)
        after[key] = known
    show += _sum_up(memory, after, show, snapshot, settings, now)
    before_keys = {key for key, each in (memory or {}).items() if each.shown is not None}.union(left)
    still = {key for key, each in after.items() if each.shown is not None}
    return Outcome(after, tuple(show), tuple(sorted(before_keys - still)), min(dues, default=None))


def _sum_up(
    memory: Memory | None,
    after: dict[str, Told],
    show: list[Notification],
    snapshot: Snapshot,
    settings: Settings,
    now: float,
) -> list[Notification]:
    """Of targets with many news, what tells of them together; those are taken out of `show`, as `after` knows."""
    panes: dict[str, list[Pane]] = {}
    for pane in snapshot.panes.values():
        if pane["runtime_id"] in after:
            panes.setdefault(pane["identity"]["target"], []).append(pane)
    news = {each.key for each in show if not each.is_silent}
    fresh = {target: [pane for pane in each if pane["runtime_id"] in news] for target, each in panes.items()}
    for target in _crowded(fresh, panes, after, now):
        for pane in fresh[target]:
            key = pane["runtime_id"]
            after[key] = replace(after[key], shown=None, is_summed=True)
    written = [key for key in news if after[key].state == _LETTER]
    for key in written if len(written) > MOST_AT_ONCE else ():
        after[key] = replace(after[key], shown=None, is_summed=True)
    show[:] = [each for each in show if each.key not in after or after[each.key].shown is not None]
    together = []
    for target, each in panes.items():
        if summed := [pane for pane in each if after[pane["runtime_id"]].is_summed and pane["state"] in _TITLES]:
            together.append(_together(target, summed, settings))
    if letters := sum(each.is_summed for each in after.values() if each.state == _LETTER):
        together.append(_letters_together(letters, settings))
    found = []
    for told in together:
        before = None if memory is None else memory.get(told.key)
        at = now if before is None else before.shown_at
        after[told.key] = Told("many", 0, "", "", now, at, told, is_settled=True)
        if before is None or before.shown != told:
            found.append(replace(told, is_silent=before is not None))
    return found


def _crowded(
    fresh: Mapping[str, list[Pane]], panes: Mapping[str, list[Pane]], after: Mapping[str, Told], now: float
) -> list[str]:
    """The targets whose news are told of together: the ones with the most, until few enough are left."""
    found = [
        target
        for target, each in panes.items()
        if fresh[target] and sum(now - after[pane["runtime_id"]].shown_at < _WHILE for pane in each) > MOST_AT_ONCE
    ]
    left = sorted((target for target in fresh if target not in found), key=lambda target: len(fresh[target]))
    while left and sum(len(fresh[target]) for target in left) > MOST_AT_ONCE and len(fresh[left[-1]]) > 1:
        found.append(left.pop())
    return found


def _letters_together(count: int, settings: Settings) -> Notification:
    return Notification(
        key="many letters",
        title=f"{count} {'message' if count == 1 else 'messages'} for you",
        place="",
        body="Agents have written to you.",
        default=Action("read"),
        buttons=(("Read", Action("read")),),
        has_sound=settings.has_sound,
    )


def _together(target: str, panes: list[Pane], settings: Settings) -> Notification:
    count = len(panes)
    who = f"{count} agents" if count > 1 else agent_of(panes[0])
    needs = "is done" if count == 1 else "are done"
    if any(pane["state"] != "completed" for pane in panes):
        needs = "needs you" if count == 1 else "need you"
    return Notification(
        key=f"many on {target}",
        title=f"{who} on {legible(target)} {needs}",
        place=legible(target),
        body="Choose one to see what it asks.",
        default=Action("pick"),
        buttons=(("Choose", Action("pick")),),
        has_sound=settings.has_sound,
    )


def still_so(before: Snapshot, after: Snapshot, looked_at: Collection[Place]) -> set[Place]:
    """Of the places that were looked at a moment before, those about which nothing has changed since: who asks only by
    now has not been seen to."""
    known = {_place(pane): _condition(pane) for pane in before.panes.values()}
    same = (_place(pane) for pane in after.panes.values() if known.get(_place(pane)) == _condition(pane))
    return set(looked_at).intersection(same)


def _condition(pane: Pane) -> tuple[str, str, int]:
    return pane["runtime_id"], pane["state"], pane["state_version"]


def _told(pane: Pane, before: Told | None, is_first: bool, now: float) -> Told | None:
    """What is remembered of an agent, brought up to what it does now."""
    if pane["state"] not in _TITLES:
        if before is None:
            # What it turns out to do had begun before the app came.
            is_unseen = is_first and pane["reason_code"] == _NOT_OBSERVED
            return Told(_NOT_OBSERVED, 0, "", "", now, is_settled=True) if is_unseen else None
        if pane["state"] == "unknown":
            # It may turn out to ask the same still, which is then no news if it has been told.
            return replace(before, shown=None)
        # Only how lately it was told of still matters.
        return Told("", 0, "", "", now, before.shown_at) if now - before.shown_at < COOL_DOWN else None
    now_so = Told(pane["state"], pane["state_version"], _asks(pane), fingerprint_of(pane), now, is_settled=is_first)
    if before is None:
        return now_so
    if before.state == _NOT_OBSERVED:
        return replace(now_so, is_settled=True)
    if not _is_same(before, now_so):
        return replace(now_so, shown_at=before.shown_at)
    return replace(
        before,
        version=now_so.version,
        question=now_so.question or before.question,
        dialog=now_so.dialog or before.dialog,
    )


def _place(pane: Pane) -> Place:
    return pane["identity"]["target"], pane["identity"]["pane_id"]


def _asks(pane: Pane) -> str:
    """Without the title, which may change while it waits."""
    return question_of(pane) if pane["attention"] else ""


def _is_same(before: Told, after: Told) -> bool:
    """Whether both tell of one wait, which may be shown anew or put in other words without asking anew. Of two dialogs
    each is one of its own, whatever they say: what is on display must not come to mean another one."""
    if before.state != after.state or (before.dialog and after.dialog and before.dialog != after.dialog):
        return False
    if before.version == after.version or before.question == after.question:
        return True
    # In other words: those of a dialog that is still there, or of one seen only now, with nothing shown in between.
    return bool(after.dialog) and (bool(before.dialog) or after.version == before.version + 1)


def _judged(
    known: Told, pane: Pane, settings: Settings, now: float, looked_at: Collection[Place]
) -> tuple[Told, float | None]:
    """Whether it is on display from now on, and in how many seconds to look again."""
    if pane["state"] not in _TITLES:
        return known, None
    if is_snoozed(pane, settings, now):
        # Whoever puts something off wants to hear of it again.
        return replace(known, shown=None, is_settled=False, is_summed=False), settings.snoozed[wait_key(pane)] - now
    if known.shown is not None:
        return replace(known, shown=_notification(pane, settings)), None
    if known.is_settled:
        return known, None
    switch = _OPTIONAL.get(pane["state"])
    is_off = switch is not None and not getattr(settings, switch)
    if is_off or settings.is_paused(now) or _place(pane) in looked_at:
        return replace(known, is_settled=True), None
    due = max(known.since + QUIET, known.shown_at + COOL_DOWN)
    if now < due:
        return known, due - now
    return replace(known, shown=_notification(pane, settings), shown_at=now, is_settled=True), None


def _written(
    letter: Letter, before: Told | None, is_first: bool, settings: Settings, now: float
) -> tuple[Told, float | None]:
    """Of what an agent has written to the user: it is on display until it is read."""
    known = before or Told(_LETTER, 0, letter["message_id"], "", now, is_settled=is_first)
    if known.is_settled:
        return known, None
    if settings.is_paused(now):
        return replace(known, is_settled=True), None
    if now < known.since + QUIET:
        return known, known.since + QUIET - now
    return replace(known, shown=_letter(letter, settings), shown_at=now, is_settled=True), None


def _letter(letter: Letter, settings: Settings) -> Notification:
    return Notification(
        key=f"letter {letter['message_id']}",
        title=legible(f"{letter['from_agent']} writes to you"),
        place=legible(letter["type"]),
        body=shortened_text(printable(letter["content"] or "", keep="\n"), _LONGEST),
        default=Action("read"),
        buttons=(("Read", Action("read")),),
        is_urgent=letter["priority"] in ("high", "urgent"),
        has_sound=settings.has_sound,
    )


def _notification(pane: Pane, settings: Settings) -> Notification:
    buttons = [("Attach", attach(pane))]
    if pane["state"] == "waiting_approval" and can_answer(pane):
        if is_brief(pane, _LONGEST_BRIEF):
            buttons.append(("Approve once", answer("approve", pane)))
        buttons.append(("Deny", answer("deny", pane)))
    return Notification(
        key=pane["runtime_id"],
        title=_TITLES[pane["state"]].format(agent_of(pane)),
        place=place_of(pane),
        body=shortened_text(legible(question_of(pane), keep="\n"), _LONGEST),
        default=attach(pane),
        buttons=tuple(buttons),
        is_urgent=pane["state"] != "completed",
        has_sound=settings.has_sound,
    )
