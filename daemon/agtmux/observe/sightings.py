"""What is seen of agents, look after look, as events: when it changes, when it holds against what was told, and before
it grows old.

A screen that has not changed says nothing new, so it costs nothing. What an agent is about to leave, a wait or a turn,
has to be seen to be over twice, as a screen is repainted in pieces; so has whatever contradicts a report. A session
file that says the same counts as the second look.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from agtmux.agents.contract import Glance
from agtmux.agents.registry import Registry
from agtmux.agents.screen.classify import Seen
from agtmux.agents.witness import Reading
from agtmux.clock import Clock
from agtmux.domain.durations import SECOND
from agtmux.domain.events import Attention, Event, Verdict, derive_dedupe_key, request
from agtmux.domain.redact import Redacted, redact_text
from agtmux.domain.runtimes import PaneId, RuntimeId, TargetId
from agtmux.domain.states import Confidence, Reason, Source, State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record
from agtmux.engine.resolve import Signal, is_stale, latest_report
from agtmux.engine.transitions import Policy, contradicts, doubts
from agtmux.observe.files import Told
from agtmux.observe.intake import new_event_id
from agtmux.observe.world import World

_LONGEST_NOTE: Final = 500
_WAITING: Final = frozenset({State.WAITING_APPROVAL, State.WAITING_INPUT})
# What a screen without a dialog says if it says anything.
_READ: Final = frozenset({State.RUNNING, State.IDLE, State.COMPLETED, State.ERROR})
_WITHIN_TURN: Final = _WAITING | {State.RUNNING}
# Longer than any agent takes to repaint its screen.
SECOND_LOOK: Final = 0.12
# While a report is not settled yet, its dialog may be drawn at any moment.
_UNSETTLED_LOOK: Final = 0.4
# A file may be read this much later than it was written.
_FILES_LAG: Final = 300_000
# How long a dialog may still be on the screen after it was answered.
_DIALOG_SETTLES: Final = 700_000
# What an agent does this soon, before its prompt was seen, is starting and no turn.
_STARTS_WITHIN: Final = 10 * SECOND
_TURN_ENDED: Final = "turn_ended"
_OVERLAY: Final = "overlay"
_BEFORE_ANY_TURN: Final = frozenset({"trust", "login", "startup"})


@dataclass(slots=True)
class _Sight:
    """What one pane shows, since when."""

    runtime_id: RuntimeId
    glance: Glance
    # What the last look saw, and what counts: they differ while a second look is due.
    latest: Reading
    latest_since: Timestamp
    shown: Reading
    shown_since: Timestamp
    # Since when, and in how many looks, what is shown has contradicted what was told last.
    held_since: Timestamp
    repeats: int = 0
    # When a report first denied the dialog that is shown, as long as that is the same.
    denied_at: Timestamp | None = None
    outlives_reports: bool = False
    # Whether its prompt was there to begin a turn at. Before that it starts, which may look like work.
    has_begun: bool = False
    # When a turn was seen to end, as long as nothing else was seen since.
    ended_at: Timestamp | None = None
    was_stopped: bool = False
    # When a wait was last reported to have begun.
    asked_at: Timestamp | None = None
    # Since when something is drawn over the screen, and what can be said of the agent behind it.
    covered_since: Timestamp | None = None
    behind: Seen | None = None
    # When a dialog was last on the screen, and whether that was the reported one and has gone.
    dialog_seen_at: Timestamp | None = None
    dialog_gone: bool = False
    reported: object = None
    reported_at: Timestamp | None = None
    reported_repeats: int = 0


class Sightings:
    """Of one target."""

    def __init__(self, target_id: TargetId, world: World, registry: Registry, clock: Clock, policy: Policy) -> None:
        self._target_id = target_id
        self._world = world
        self._registry = registry
        self._clock = clock
        self._policy = policy
        self._sights: dict[PaneId, _Sight] = {}
        # In how many seconds another look would settle something; None if nothing is open.
        self.look_again: float | None = None

    def look(
        self,
        screens: Mapping[PaneId, str],
        titles: Mapping[PaneId, str],
        files: Mapping[PaneId, Told],
        proven: Collection[PaneId],
        taken_at: Timestamp,
    ) -> tuple[Event, ...]:
        """What there is to say after a look that began at `taken_at`. `proven` are the panes whose agent's process is
        known to be there, whatever a shell may have written on the screen."""
        events = []
        sights: dict[PaneId, _Sight] = {}
        self.look_again = None
        for pane_id, text in screens.items():
            record = self._world.records.get((self._target_id, pane_id))
            if record is None or not record.runtime.has_agent:
                continue
            if not self._registry.reads_screens(record.runtime.agent_type):
                continue
            told = files.get(pane_id)
            status = None if told is None else told.status
            is_alive = True if pane_id in proven else None
            glance = Glance(text, titles.get(pane_id, ""), status=status, is_alive=is_alive)
            if told is not None and self._lags(self._sights.get(pane_id), record, glance, told):
                glance = replace(glance, status=None)
            sight = self._sight(self._sights.get(pane_id), record, glance, taken_at)
            sights[pane_id] = sight
            report = _last_told(record, self._clock.now(), self._policy)
            self._cover(sight, record, report, taken_at)
            self._count(sight, report, told, taken_at)
            if self._is_worth_telling(sight, taken_at):
                events.append(self._event(sight, record, taken_at))
        self._sights = sights
        return tuple(events)

    def shows_dialog(self, pane_id: PaneId) -> bool:
        sight = self._sights.get(pane_id)
        return sight is not None and _is_dialog(sight.shown)

    def _lags(self, sight: _Sight | None, record: Record, glance: Glance, file: Told) -> bool:
        """Whether a file tells of a wait whose dialog was on the screen since it was written, and is there no more: it
        is written anew up to two seconds later. A screen that cannot be read says nothing against it."""
        if sight is None or sight.runtime_id != record.runtime.runtime_id or file.status.state not in _WAITING:
            return False
        if sight.dialog_seen_at is None or sight.dialog_seen_at < file.heard_at:
            return False
        return self._registry.poll(record.runtime.agent_type, replace(glance, status=None)).seen.state in _READ

    def _sight(self, sight: _Sight | None, record: Record, glance: Glance, taken_at: Timestamp) -> _Sight:
        if sight is None or sight.runtime_id != record.runtime.runtime_id:
            reading = self._registry.poll(record.runtime.agent_type, glance)
            sight = _Sight(record.runtime.runtime_id, glance, reading, taken_at, reading, taken_at, taken_at)
            sight.ended_at = _ended_before(record, reading, taken_at)
            sight.has_begun = Source.POLLER in record.signals or _has_begun(reading.seen)
            before = record.signals.get(Source.POLLER)
            if before is not None and before.verdict.dialog is not None:
                sight.dialog_seen_at = before.seen_at
            return sight
        if taken_at - record.runtime.started_at > _STARTS_WITHIN:
            sight.has_begun = True
        if sight.glance != glance:
            latest = self._registry.poll(record.runtime.agent_type, glance)
            # What it was before does not matter, as long as it was not what is shown.
            if sight.latest.meaning == sight.shown.meaning or _may_be_streaming(sight.shown, latest):
                sight.latest_since = taken_at
            sight.latest, sight.glance = latest, glance
        self._accept(sight, taken_at)
        return sight

    def _accept(self, sight: _Sight, taken_at: Timestamp) -> None:
        """Let the latest look count, unless it has to be repeated first."""
        latest, shown = sight.latest, sight.shown
        if latest.seen.is_overlay or (latest.is_by_file and _is_wait(shown) and not _is_wait(latest)):
            # Something of the user's own is in front: what was known before still holds. No file ends a wait alone, as
            # some say that they are busy while the agent asks.
            return
        if latest.meaning != shown.meaning:
            if _needs_a_second_look(shown, latest) and sight.latest_since >= taken_at:
                self._again(SECOND_LOOK)
                return
            sight.shown_since = sight.latest_since
            sight.denied_at, sight.outlives_reports = None, False
            has_ended = sight.has_begun and _is_within_turn(shown.seen) and _is_at_rest(latest.seen)
            sight.ended_at = taken_at if has_ended else None
        sight.shown = latest
        sight.has_begun = sight.has_begun or _has_begun(latest.seen)

    def _cover(self, sight: _Sight, record: Record, told: Signal | None, taken_at: Timestamp) -> None:
        """What can be said of an agent whose screen something covers. Its title is not covered. A wait stays one, and
        an agent at rest is at rest, until something else is seen; but work may be blocked by what is in front."""
        if _is_dialog(sight.latest):
            sight.dialog_seen_at = taken_at
        is_gone = not _is_dialog(sight.shown) and not sight.latest.is_covered
        sight.dialog_gone = is_gone and self._was_drawn(sight, told)
        if not sight.latest.is_covered:
            sight.covered_since, sight.behind = None, None
            return
        is_new = sight.covered_since is None
        if sight.covered_since is None:
            sight.covered_since = taken_at
        sight.behind = None
        if sight.latest.is_by_file:
            return
        titled = self._registry.poll(record.runtime.agent_type, Glance("", sight.glance.title, is_alive=True)).seen
        if titled.state in _WITHIN_TURN:
            sight.behind = replace(titled, confidence=Confidence.MEDIUM)
            return
        is_known = _is_wait(sight.shown) or (told is None and sight.shown.seen.state is not State.RUNNING)
        if is_known and not sight.shown.seen.is_overlay:
            return
        if is_new and told is None and not sight.shown.seen.is_overlay:
            # A screen is painted in pieces.
            self._again(SECOND_LOOK)
            return
        sight.behind = Seen(State.UNKNOWN, _OVERLAY, Confidence.LOW, sight.latest.seen.evidence)

    def _was_drawn(self, sight: _Sight, told: Signal | None) -> bool:
        """Whether the dialog of a reported wait was on the screen; it may be drawn before its report comes."""
        if told is None or told.verdict.state not in _WAITING or sight.dialog_seen_at is None:
            return False
        return sight.dialog_seen_at > told.seen_at - self._policy.settling_wait

    def _count(self, sight: _Sight, told: Signal | None, file: Told | None, taken_at: Timestamp) -> None:
        """How often something was seen that contradicts the last report, since that report."""
        sight.asked_at = told.seen_at if told is not None and told.verdict.state in _WAITING else None
        if told is not None:
            # Whoever reports tells of the end of a turn, too.
            sight.ended_at = None
        if told is None or not self._is_against(sight, told) or _is_file_against_wait(sight.shown, told):
            sight.held_since, sight.repeats, sight.reported_repeats = taken_at, 0, 0
            sight.was_stopped, sight.denied_at, sight.outlives_reports = False, None, False
            return
        if sight.denied_at is None and told.seen_at >= sight.shown_since:
            sight.denied_at = told.seen_at
        if sight.held_since <= told.seen_at:
            # What was seen before a report says nothing against it.
            sight.held_since, sight.repeats, sight.reported_repeats = taken_at, 0, 0
        settled_at = self._settled_at(sight, told)
        enough = self._policy.sightings_to_overrule
        is_confirmed = sight.shown.is_confirmed and sight.shown.seen.state is not State.RUNNING
        has_second_witness = is_confirmed and file is not None and file.heard_at > told.seen_at + _FILES_LAG
        # It was there before the report that would have ended it, and still is.
        is_standing = _is_dialog(sight.shown) and sight.denied_at is not None and taken_at > settled_at
        if has_second_witness or is_standing:
            sight.repeats = max(sight.repeats + 1, enough)
        elif taken_at > settled_at:
            # One look that had to be repeated is two.
            sight.repeats += 2 if settled_at < sight.latest_since < taken_at and not sight.repeats else 1
        is_enough = sight.repeats >= enough
        # A dialog that is still there has outlived that report, and the next like it will not end it either.
        sight.outlives_reports |= is_standing
        # And a turn that ends without a word was stopped.
        is_at_rest = sight.behind is None and _is_at_rest(sight.shown.seen)
        sight.was_stopped = is_enough and told.verdict.state in _WITHIN_TURN and is_at_rest
        if not is_enough:
            until_settled = (settled_at - self._clock.now()) / SECOND
            self._again(min(max(until_settled, SECOND_LOOK), _UNSETTLED_LOOK))

    def _settled_at(self, sight: _Sight, told: Signal) -> int:
        """From when on the screen has had the time to show what was reported."""
        if sight.covered_since is not None and sight.covered_since < told.seen_at:
            # It goes on to report behind what covers it.
            return told.seen_at + self._policy.covered
        if _is_written(sight.shown) and sight.shown_since > told.seen_at:
            return told.seen_at
        if _is_dialog(sight.shown) and sight.denied_at is not None:
            return sight.denied_at + _DIALOG_SETTLES
        if told.verdict.state in _WAITING and not self._was_drawn(sight, told):
            return told.seen_at + self._policy.settling_undrawn
        return told.seen_at + self._policy.settles_after(told.verdict.state)

    def _again(self, seconds: float) -> None:
        self.look_again = seconds if self.look_again is None else min(self.look_again, seconds)

    def _is_worth_telling(self, sight: _Sight, taken_at: Timestamp) -> bool:
        if sight.reported_at is None or sight.reported != self._meaning(sight):
            return True
        if _is_dialog(sight.shown) and sight.asked_at is not None:
            # Whoever reports a wait may mean another dialog than the one that was seen before: it is seen again now,
            # and once more when its own has had the time to be drawn.
            settled_at = sight.asked_at + self._policy.settles_after(State.WAITING_APPROVAL)
            if any(sight.reported_at < since < taken_at for since in (sight.asked_at, settled_at)):
                return True
        # What overrules a report has to be told again once it does.
        if sight.reported_repeats < self._policy.sightings_to_overrule <= sight.repeats:
            return True
        # And what contradicts a report makes that less sure from the first look on.
        if sight.denied_at is not None and sight.reported_at < sight.held_since:
            return True
        return self._clock.now() - sight.reported_at > self._policy.seen_ttl // 2

    def _is_against(self, sight: _Sight, told: Signal) -> bool:
        """Whether what is seen makes the report less sure, if not wrong."""
        verdict = self._verdict(sight)
        return contradicts(told.verdict, verdict) or (verdict.state is State.UNKNOWN and doubts(told.verdict, verdict))

    def _state(self, sight: _Sight) -> State:
        """What the screen shows, and that a turn ended if that was seen lately."""
        if sight.behind is not None:
            return sight.behind.state
        has_ended = sight.ended_at is not None and self._clock.now() - sight.ended_at < self._policy.completed_to_idle
        return State.COMPLETED if has_ended else sight.shown.seen.state

    def _verdict(self, sight: _Sight) -> Verdict:
        """What is seen, in short."""
        seen, state = sight.behind or sight.shown.seen, self._state(sight)
        is_covered = sight.covered_since is not None
        if state is State.UNKNOWN:
            reason = _OVERLAY if is_covered else Reason.UNREAD_SCREEN
            gone = sight.dialog_gone
            return Verdict(State.UNKNOWN, reason, Confidence.LOW, is_covered=is_covered, dialog_gone=gone)
        if state is State.COMPLETED:
            return Verdict(state, _TURN_ENDED, is_covered=is_covered)
        reason_code = Reason.INTERRUPTED if sight.was_stopped else seen.reason_code
        return Verdict(state, reason_code, is_covered=is_covered)

    def _meaning(self, sight: _Sight) -> object:
        shown = sight.shown.meaning if sight.behind is None else sight.behind.reason_code
        return self._state(sight), sight.was_stopped, shown, sight.covered_since is not None, sight.dialog_gone

    def _event(self, sight: _Sight, record: Record, taken_at: Timestamp) -> Event:
        now = self._clock.now()
        sight.reported, sight.reported_at, sight.reported_repeats = self._meaning(sight), now, sight.repeats
        event_id = new_event_id()
        event_type = f"{record.runtime.agent_type}.screen"
        return Event(
            event_id=event_id,
            event_type=event_type,
            source=Source.POLLER,
            dedupe_key=derive_dedupe_key(Source.POLLER, event_id, event_type, b""),
            event_time=taken_at,
            ingested_at=now,
            runtime_id=record.runtime.runtime_id,
            verdict=self._full_verdict(sight, record),
        )

    def _full_verdict(self, sight: _Sight, record: Record) -> Verdict:
        is_verified = self._registry.has_verified(record.runtime.agent_type, record.runtime.agent_version)
        verdict = self._verdict(sight)
        seen = sight.behind or sight.shown.seen
        if verdict.state is State.UNKNOWN:
            return replace(verdict, note=_note(seen), held_since=sight.held_since, repeats=sight.repeats)
        is_sure = is_verified and not verdict.is_covered
        return replace(
            verdict,
            confidence=seen.confidence if is_sure else seen.confidence.lowered(),
            attention=_attention(seen),
            note=_note(seen),
            held_since=sight.held_since,
            repeats=sight.repeats,
            outlives_reports=sight.outlives_reports,
            dialog=None if seen.asked is None else seen.asked.fingerprint,
        )


def _needs_a_second_look(shown: Reading, latest: Reading) -> bool:
    """Whether what was shown would be left on the strength of one look."""
    if latest.is_confirmed:
        return False
    if latest.seen.state in _WAITING:
        # A file may still tell of the wait that the screen has just left.
        return latest.is_by_file and shown.seen.state in _WAITING
    return shown.seen.state in _WAITING or (
        shown.seen.state is State.RUNNING and latest.seen.state is not State.RUNNING
    )


def _is_written(shown: Reading) -> bool:
    """Whether the screen says so in so many words: a dialog, an error, that it was stopped. A prompt alone is also what
    is there before anything is painted."""
    seen = shown.seen
    says_so = seen.state in _WAITING or seen.state is State.ERROR or seen.reason_code == Reason.INTERRUPTED
    return says_so and not shown.is_by_file


def _is_dialog(shown: Reading) -> bool:
    return _is_wait(shown) and not shown.is_by_file


def _is_wait(reading: Reading) -> bool:
    return reading.seen.state in _WAITING


def _is_file_against_wait(shown: Reading, told: Signal) -> bool:
    """Whether only a file says that a reported wait is over."""
    return shown.is_by_file and told.verdict.state in _WAITING and not _is_wait(shown)


def _may_be_streaming(shown: Reading, latest: Reading) -> bool:
    """Whether the prompt may be all there is to see of an answer, while something moves above it."""
    is_unsure = latest.seen.state is State.IDLE and latest.seen.confidence is Confidence.LOW
    return is_unsure and shown.seen.state is State.RUNNING


def _is_within_turn(seen: Seen) -> bool:
    """Whether what is shown belongs to a turn: some dialogs come before there is any."""
    return seen.state is State.RUNNING or (seen.state in _WAITING and seen.reason_code not in _BEFORE_ANY_TURN)


def _has_begun(seen: Seen) -> bool:
    """Whether it has been started for good: it is at its prompt, or asks about something within a turn."""
    return seen.state is State.IDLE or (seen.state is not State.RUNNING and _is_within_turn(seen))


def _is_at_rest(seen: Seen) -> bool:
    return seen.state is State.IDLE and seen.reason_code != Reason.INTERRUPTED


def _ended_before(record: Record, reading: Reading, taken_at: Timestamp) -> Timestamp | None:
    """Whether a turn has ended since an earlier daemon looked, or shortly before."""
    before = record.signals.get(Source.POLLER)
    if before is None or not _is_at_rest(reading.seen):
        return None
    return {State.RUNNING: taken_at, State.COMPLETED: before.seen_at}.get(before.verdict.state)


def _last_told(record: Record, now: Timestamp, policy: Policy) -> Signal | None:
    """The report that the engine would weigh against what is seen now."""
    report = latest_report(record.signals.values(), policy)
    return None if report is None or is_stale(report, now, policy) else report


def _attention(seen: Seen) -> Attention | None:
    if seen.asked is None:
        return None
    asked = seen.asked
    return request(
        kind=asked.kind,
        summary=asked.summary,
        detail=asked.detail or None,
        options=tuple(redact_text(option[:200]) for option in asked.options[:20]),
        incomplete=asked.incomplete,
        subject=asked.subject,
        is_brief=asked.is_brief,
    )


def _note(seen: Seen) -> Redacted | None:
    return redact_text(" / ".join(seen.evidence)[:_LONGEST_NOTE]) if seen.evidence else None
