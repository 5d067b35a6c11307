"""A feed for each subject that is watched: what it shows, and its last lines, once for all who watch the same.

Nothing here knows who reads. A feed counts its lines; that count is its position, and a reader is at one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from agtmux.domain.durations import SECOND
from agtmux.domain.timestamps import Timestamp
from agtmux.observe import views
from agtmux.observe.filters import Subject
from agtmux.observe.rollups import Identity, Item, Member, Place, grouping, urgency
from agtmux.observe.world import PaneKey, World

ItemT = TypeVar("ItemT")
IdentityT = TypeVar("IdentityT")

ENCODER: Final = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is kept for those who come back, and for those who are slow."""

    lines: int = 512
    # Of one feed. The newest line is kept whatever its size, for those who wait for it.
    bytes: int = 1024 * 1024
    microseconds: int = 300 * SECOND
    # Feeds that nobody reads just now.
    idle_feeds: int = 16
    # What can be come back to; each is a few words.
    streams: int = 1024


class Change(msgspec.Struct, Generic[IdentityT, ItemT], frozen=True):
    op: Literal["upsert", "delete"]
    identity: IdentityT
    item: ItemT | UnsetType = UNSET


class View:
    """What a subject shows of the world, item by item."""

    def __init__(self, world: World, subject: Subject) -> None:
        self._world = world
        self._filters = subject.filters
        self._grouping = grouping(subject)
        self._members: dict[PaneKey, Member] = {}
        self._places: dict[Place, dict[PaneKey, Member]] = {}
        self._items: dict[Place, Item] = {}
        self.update(world.records)

    def update(self, keys: Iterable[PaneKey]) -> list[Change[Identity, Item]]:
        """Look at these panes again; returns what is now shown differently."""
        touched: dict[Place, None] = {}
        for key in sorted(keys):
            before, now = self._members.get(key), self._look(key)
            if before == now:
                continue
            if before is not None:
                place = self._grouping.place(before.item)
                touched[place] = None
                del self._members[key], self._places[place][key]
            if now is not None:
                place = self._grouping.place(now.item)
                touched[place] = None
                self._members[key] = self._places.setdefault(place, {})[key] = now
        changes = (self._redrawn(place) for place in touched)
        return [change for change in changes if change is not None]

    def items(self) -> list[Item]:
        """Most urgent first, then by place."""
        return sorted((self._items[place] for place in sorted(self._items)), key=urgency)

    def summary(self) -> views.Summary:
        return views.summarise(member.item for member in self._members.values())

    def _look(self, key: PaneKey) -> Member | None:
        pane, record = self._world.panes.get(key), self._world.shown(key)
        if pane is None or record is None or not self._filters.admits(pane, record):
            return None
        item = views.pane_item(self._world, key)
        return None if item is None else Member(item, pane.window_name)

    def _redrawn(self, place: Place) -> Change[Identity, Item] | None:
        before, members = self._items.get(place), self._places[place]
        if not members:
            del self._places[place]
            # It may have come and gone within these panes.
            return None if before is None else Change("delete", self._items.pop(place).identity)
        item = self._grouping.show(list(members.values()))
        if item == before:
            return None
        self._items[place] = item
        return Change("upsert", item.identity, item)


class Reach(NamedTuple):
    """Which targets a subject is about, and which of them could not be looked at: as a listing tells it."""

    requested: list[str]
    errors: list[dict[str, str]]

    @classmethod
    def of(cls, world: World, subject: Subject, errors: list[dict[str, str]]) -> Reach:
        requested = [str(each) for each in subject.filters.targets(world.targets.keys())]
        return cls(requested, [error for error in errors if error["target"] in requested])

    @property
    def responded(self) -> list[str]:
        failed = {error["target"] for error in self.errors}
        return [target for target in self.requested if target not in failed]

    def as_json(self) -> dict[str, object]:
        return {
            "partial": bool(self.errors),
            "requested_targets": self.requested,
            "responded_targets": self.responded,
            "target_errors": self.errors,
        }


class Content(NamedTuple):
    """What a line says, encoded; who says it to whom, and when, is the stream's."""

    # When it came about; None for what is so as long as nothing else is said.
    at: Timestamp | None
    summary: Raw
    # The items of a snapshot, or the changes of a delta.
    body: Raw
    reach: Reach

    @property
    def size(self) -> int:
        return len(memoryview(self.body)) + len(memoryview(self.summary))


class Feed:
    def __init__(
        self, world: World, subject: Subject, limits: Limits, errors: Callable[[], list[dict[str, str]]] = list
    ) -> None:
        """`errors` tells what keeps targets from being looked at."""
        self._world = world
        self._errors = errors
        self.subject = subject
        self.filters = Raw(ENCODER.encode(subject.as_json()))
        self.position = 0
        self.kept_bytes = 0
        self._limits = limits
        self._view = View(world, subject)
        self._lines: deque[Content] = deque()
        self._snapshot: Content | None = None
        self._reach = self._look_around()

    def _look_around(self) -> Reach:
        return Reach.of(self._world, self.subject, self._errors())

    @property
    def kept_lines(self) -> int:
        return len(self._lines)

    def publish(self, keys: Iterable[PaneKey], now: Timestamp) -> bool:
        """True if there is a line more."""
        changes, reach = self._view.update(keys), self._look_around()
        # A target that fails, or comes back, is told also where nothing else changes.
        if not changes and reach.errors == self._reach.errors:
            return False
        self._reach = reach
        self.position += 1
        self._snapshot = None
        line = Content(now, Raw(ENCODER.encode(self._view.summary())), Raw(ENCODER.encode(changes)), reach)
        self._lines.append(line)
        self.kept_bytes += line.size
        self.forget(now, but=1)
        return True

    def forget(self, now: Timestamp, but: int = 0) -> None:
        """Let go of what is too old or too much, except for that many of the newest lines."""
        limits = self._limits
        while len(self._lines) > but and (
            len(self._lines) > limits.lines
            or self.kept_bytes > limits.bytes
            or now - (self._lines[0].at or now) > limits.microseconds
        ):
            self.kept_bytes -= self._lines.popleft().size

    def goes_on_from(self, position: int) -> bool:
        """Whether every line after that position is still there."""
        return self.position - len(self._lines) <= position <= self.position

    def after(self, position: int) -> Content | None:
        """The first line after that position, or None if there is none yet."""
        behind = self.position - position
        return self._lines[-behind] if behind else None

    def snapshot(self) -> Content:
        """The state after the last line; encoded once, however many begin there."""
        reach = self._look_around()
        if self._snapshot is None or self._snapshot.reach != reach:
            summary, items = self._view.summary(), self._view.items()
            self._snapshot = Content(None, Raw(ENCODER.encode(summary)), Raw(ENCODER.encode(items)), reach)
        return self._snapshot
