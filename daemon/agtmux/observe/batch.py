"""One transaction of ingest: submissions are taken in their order, and all they change is gathered in a draft.

It runs in the writer's thread, on a draft of its own, and reads no clock. Whether an identity was seen before is
known from the database and from what this very transaction has taken already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from agtmux.domain.durations import SECOND
from agtmux.domain.events import Event
from agtmux.domain.panes import TargetKind, Topology
from agtmux.domain.runtimes import Runtime, RuntimeId
from agtmux.domain.states import Reason
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import KEPT, Outcome, Record, absorb, settle
from agtmux.engine.binding import Bound, Pending, bind
from agtmux.engine.transitions import Policy
from agtmux.observe.submissions import (
    AddTarget,
    ExpirePending,
    Fact,
    FirstObserved,
    HealthChanged,
    Receipt,
    RemoveTarget,
    Submission,
    TargetsSeen,
)
from agtmux.observe.topology import apply_topology, forget_target
from agtmux.observe.world import Draft, PaneKey
from agtmux.store import tables
from agtmux.store.tables import InboxEntry
from agtmux.store.writer import Transaction

# Of one target: a flood of events for panes that nobody has seen must not hold up those of the others.
_MOST_PENDING: Final = 2_000
_NOTED_EVERY: Final = 60 * SECOND


class Batch:
    def __init__(self, tx: Transaction, draft: Draft, now: Timestamp, policy: Policy) -> None:
        self._tx = tx
        self._draft = draft
        self._now = now
        self._policy = policy
        self._known = tables.Known()
        self._must_note_seen = False
        # Nobody sees a state before the transaction is done, so each is worked out once, at its end.
        self._unsettled: set[PaneKey] = set()
        # Events that had waited and whose wait is over.
        self.late: Counter[str] = Counter()

    def process(self, submissions: Sequence[Submission]) -> list[list[Receipt]]:
        results: list[list[Receipt]] = [[] for _ in submissions]
        # Events that follow each other are taken together: their identities are looked up at once.
        run: list[tuple[int, Event]] = []
        for index, submission in enumerate(submissions):
            if isinstance(submission, tuple):
                run.extend((index, event) for event in submission)
            else:
                self._take_events(run, results)
                run = []
                self._take_fact(submission)
        self._take_events(run, results)
        self._settle()
        self._write()
        return results

    def _has_room(self, event: Event) -> bool:
        pending = self._draft.pending
        if len(pending) < _MOST_PENDING:
            return True
        return sum(each.target_id == event.target_id for each in pending.values()) < _MOST_PENDING

    def _take_fact(self, fact: Fact) -> None:
        match fact:
            case Topology():
                apply_topology(self._tx, self._draft, fact, self._now, self._policy)
            case AddTarget(target):
                self._draft.targets[target.target_id] = target
                if target.kind is not TargetKind.CHAT:
                    # That one is there while its sessions are, and they come again by themselves.
                    tables.save_target(self._tx, target, self._now)
            case RemoveTarget(target_id):
                forget_target(self._draft, target_id)
                tables.delete_target(self._tx, target_id)
            case HealthChanged(target_id, health):
                if (known := self._draft.target(target_id)) is not None:
                    changed = replace(known, health=health)
                    self._draft.targets[target_id] = changed
                    tables.save_target(self._tx, changed, self._now)
                    # What was seen last before it failed is what a user asks for.
                    self._must_note_seen = True
            case TargetsSeen():
                self._must_note_seen = True
            case FirstObserved(target_id):
                self._draft.first_observed.add(target_id)
            case ExpirePending():
                pass
        self._retry_pending()

    def _retry_pending(self) -> None:
        bound: list[tuple[RuntimeId, Event]] = []
        for event in sorted(self._draft.pending.values(), key=lambda event: event.ingested_at):
            runtime, receipt = self._bind(event)
            if runtime is not None:
                bound.append((runtime.runtime_id, event))
            if receipt.status != "pending_bind":
                self.late[receipt.status] += 1
        self._look_up([], [], bound)
        for whose, event in bound:
            self._apply(whose, event)

    def _take_events(self, run: list[tuple[int, Event]], results: list[list[Receipt]]) -> None:
        for start in range(0, len(run), tables.MAX_EVENTS_AT_ONCE):
            part = run[start : start + tables.MAX_EVENTS_AT_ONCE]
            whose = [self._likely_runtime(event) for _, event in part]
            self._look_up(
                [event for _, event in part],
                [event for _, event in part if event.runtime_id is None],
                [(likely, event) for likely, (_, event) in zip(whose, part, strict=True) if likely is not None],
            )
            for index, event in part:
                results[index].append(self._take_event(event))

    def _look_up(self, events: list[Event], unbound: list[Event], bound: list[tuple[RuntimeId, Event]]) -> None:
        self._known |= tables.known(
            self._tx,
            [event.event_id for event in events],
            [tables.inbox_key(event) for event in unbound],
            [tables.event_key(whose, event) for whose, event in bound],
        )

    def _likely_runtime(self, event: Event) -> RuntimeId | None:
        """Whose the event is, if it is bound to who is in its pane now."""
        if event.runtime_id is not None or event.target_id is None or event.pane_id is None:
            return event.runtime_id
        record = self._draft.record((event.target_id, event.pane_id))
        return None if record is None else record.runtime.runtime_id

    def _take_event(self, event: Event) -> Receipt:
        if event.event_id in self._known.event_ids:
            return Receipt(event.event_id, Outcome.DUPLICATE)
        self._known.event_ids.add(event.event_id)
        if event.runtime_id is not None:
            return self._apply(event.runtime_id, event)
        inbox_key = tables.inbox_key(event)
        if inbox_key in self._known.inbox_keys:
            return Receipt(event.event_id, Outcome.DUPLICATE)
        self._known.inbox_keys.add(inbox_key)
        runtime, receipt = self._bind(event)
        return receipt if runtime is None else self._apply(runtime.runtime_id, event)

    def _bind(self, event: Event) -> tuple[Runtime | None, Receipt]:
        """The runtime the event belongs to, with its inbox entry written down; or None and why."""
        draft = self._draft
        if event.target_id is None or event.pane_id is None:
            raise LookupError("an event without a runtime must name its target and pane")
        record = draft.record((event.target_id, event.pane_id))
        binding = bind(
            event,
            [record.runtime] if record is not None else [],
            observed_at=draft.last_observed(event.target_id),
            now=self._now,
            policy=self._policy,
        )
        if isinstance(binding, Bound):
            draft.pending.pop(event.event_id, None)
            runtime_id = binding.runtime.runtime_id
            draft.inbox[event.event_id] = InboxEntry(event, "bound", runtime_id)
            return binding.runtime, Receipt(event.event_id, "bound", runtime_id)
        may_wait = event.event_id in draft.pending or self._has_room(event)
        if isinstance(binding, Pending) and may_wait and draft.target(event.target_id) is not None:
            if event.event_id not in draft.pending:
                draft.pending[event.event_id] = event
                draft.inbox[event.event_id] = InboxEntry(event, "pending_bind")
            return None, Receipt(event.event_id, "pending_bind")
        draft.pending.pop(event.event_id, None)
        reason = Reason.BIND_NO_CANDIDATE if isinstance(binding, Pending) else binding.reason
        draft.inbox[event.event_id] = InboxEntry(event, "dropped_unbound", reason_code=reason)
        return None, Receipt(event.event_id, "dropped_unbound", reason_code=reason)

    def _apply(self, whose: RuntimeId, event: Event) -> Receipt:
        record = self._draft.record_of(whose)
        if record is None or self._draft.target(record.runtime.target_id) is None:
            return Receipt(event.event_id, Outcome.STALE_RUNTIME, whose)
        key = tables.event_key(whose, event)
        duplicate = key in self._known.event_keys
        self._known.event_keys.add(key)
        after, outcome = absorb(record, event, whose=whose, duplicate=duplicate, policy=self._policy)
        if outcome in KEPT:
            self._draft.events.append((whose, event))
        if after is not record:
            pane_key = (after.runtime.target_id, after.runtime.pane_id)
            self._draft.records[pane_key] = after
            self._unsettled.add(pane_key)
        return Receipt(event.event_id, outcome, whose)

    def _settle(self) -> None:
        for key in self._unsettled:
            record, target = self._draft.record(key), self._draft.target(key[0])
            if record is not None and target is not None:
                self._draft.records[key] = settle(record, health=target.health, now=self._now, policy=self._policy)

    def _note_seen(self) -> None:
        """When targets were last looked at: with what is written anyway, and once a minute at most."""
        for target in self._draft.seen_targets():
            known = self._draft.target(target.target_id)
            is_due = known is None or known.last_seen_at is None or self._now - known.last_seen_at >= _NOTED_EVERY
            if (is_due or self._must_note_seen) and target.kind is not TargetKind.CHAT:
                self._draft.targets[target.target_id] = target
                tables.save_target(self._tx, target, self._now)

    def _write(self) -> None:
        tx, draft = self._tx, self._draft
        self._note_seen()
        if draft.ended:
            tables.end_runtimes(tx, draft.ended, self._now)
        if draft.started:
            tables.insert_runtimes(tx, draft.started)
        gone = [key for key, pane in draft.panes.items() if pane is None]
        if gone:
            tables.delete_panes(tx, gone)
        if draft.panes:
            tables.save_panes(tx, [pane for pane in draft.panes.values() if pane is not None], self._now)
        if draft.inbox:
            tables.upsert_inbox(tx, draft.inbox.values())
        if draft.events:
            tables.insert_events(tx, draft.events)
        changed: list[Record] = [record for record in draft.records.values() if record is not None]
        if changed:
            tables.save_records(tx, changed)
