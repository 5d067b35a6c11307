"""Watch streams: a snapshot, then what changes, then `reset` when the daemon goes.

A stream is a reader's own numbering of a feed's lines, from the snapshot it began with. Whoever comes back with a
cursor goes on in its stream as long as the feed has the lines in between. A reader that cannot keep up is not
buffered for: once it can take data again, and the lines it needs are gone, it begins anew.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Final, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from agtmux.clock import Clock
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.timestamps import Timestamp, format_timestamp
from agtmux.observe import views
from agtmux.observe.feeds import ENCODER, Content, Feed, Limits
from agtmux.observe.filters import Subject
from agtmux.observe.world import PaneKey, World

_CURSOR: Final = re.compile(r"([0-9a-f]{32}):(0|[1-9][0-9]{0,17})", re.ASCII)
Kind = Literal["snapshot", "delta", "reset"]


class _Line(msgspec.Struct, frozen=True):
    schema_version: int
    generated_at: str
    emitted_at: str
    stream_id: str
    cursor: str
    scope: str
    type: Kind
    sequence: int
    filters: Raw
    summary: Raw
    partial: bool
    requested_targets: list[str]
    responded_targets: list[str]
    target_errors: list[dict[str, str]]
    items: Raw | UnsetType = UNSET
    changes: Raw | UnsetType = UNSET


class _Stream:
    def __init__(self, feed: Feed, *, after_reset: bool) -> None:
        self.stream_id = uuid.uuid4().hex
        self.feed = feed
        # The sequence of its snapshot; the only line there can be before it is a reset.
        self.first = 2 if after_reset else 1
        # Where the feed was at the snapshot; None until there was one.
        self.base: int | None = None

    def begin(self) -> int:
        self.base = self.feed.position
        return self.base

    def sequence_at(self, position: int) -> int:
        assert self.base is not None
        return self.first + position - self.base


class Hub:
    def __init__(self, world: World, clock: Clock, limits: Limits | None = None) -> None:
        self._world = world
        self._clock = clock
        self._limits = limits or Limits()
        self._feeds: dict[Subject, Feed] = {}
        self._readers: dict[Subject, set[asyncio.Event]] = {}
        # By the moment they were last begun or left; the first to be forgotten come first.
        self._streams: dict[str, _Stream] = {}
        self._idle_since: dict[Subject, Timestamp] = {}
        self._closing = False
        # What keeps targets from being looked at.
        self.errors: Callable[[], list[dict[str, str]]] = list

    @property
    def stream_count(self) -> int:
        """How many are being read."""
        return sum(map(len, self._readers.values()))

    @property
    def kept(self) -> dict[str, int]:
        """All that is held for readers, here or away."""
        feeds = self._feeds.values()
        return {
            "feeds": len(feeds),
            "streams": len(self._streams),
            "lines": sum(feed.kept_lines for feed in feeds),
            "bytes": sum(feed.kept_bytes for feed in feeds),
        }

    def publish(self, keys: set[PaneKey], _: Timestamp) -> None:
        now = self._clock.now()
        self._forget(now)
        for subject, feed in self._feeds.items():
            if feed.publish(keys, now):
                self._wake(subject)

    def _wake(self, subject: Subject) -> None:
        for wake in self._readers.get(subject, ()):
            wake.set()

    def errors_changed(self) -> None:
        self.publish(set(), self._clock.now())

    def close(self) -> None:
        self._closing = True
        self._streams.clear()
        for readers in self._readers.values():
            for wake in readers:
                wake.set()

    def watch(self, subject: Subject, cursor: str | None = None) -> AsyncIterator[bytes]:
        """JSON lines until the daemon stops or the reader goes. A cursor that is none raises here, at once."""
        self._forget(self._clock.now())
        if cursor is None:
            return self._follow(self._begin(subject), None)
        if (found := self._found(subject, cursor)) is not None:
            return self._follow(*found)
        return self._follow(self._begin(subject, after_reset=True), None)

    def once(self, subject: Subject, cursor: str | None = None) -> bytes:
        """A snapshot, or all there is after the cursor, which may be nothing."""
        self._forget(self._clock.now())
        if cursor is None:
            stream = self._begin(subject)
            return self._first_line(stream)[1]
        if (found := self._found(subject, cursor)) is None:
            raise AgtmuxError(
                ErrorCode.CURSOR_EXPIRED, "what followed that cursor is no longer kept; ask again without one"
            )
        stream, position = found
        lines = []
        while (line := stream.feed.after(position)) is not None:
            position += 1
            lines.append(self._line(stream, "delta", position, line))
        return b"".join(lines)

    async def _follow(self, stream: _Stream, position: int | None) -> AsyncIterator[bytes]:
        """From the line after that position, or from the beginning of the stream."""
        subject = stream.feed.subject
        feed = self._feed(subject)
        if feed is not stream.feed:
            # Forgotten between the request and its answer.
            stream, position = self._begin(subject, after_reset=True), None
        wake = asyncio.Event()
        self._readers.setdefault(subject, set()).add(wake)
        try:
            while not self._closing:
                if position is None:
                    if stream.first > 1:
                        yield self._reset(stream, 1)
                    position, snapshot = self._first_line(stream)
                    yield snapshot
                elif not feed.goes_on_from(position):
                    stream, position = self._begin(subject, after_reset=True), None
                elif (line := feed.after(position)) is not None:
                    position += 1
                    yield self._line(stream, "delta", position, line)
                else:
                    wake.clear()
                    await wake.wait()
            yield self._reset(stream, 1 if position is None else stream.sequence_at(position) + 1)
        finally:
            self._leave(subject, stream, wake)

    def _leave(self, subject: Subject, stream: _Stream, wake: asyncio.Event) -> None:
        readers = self._readers[subject]
        readers.discard(wake)
        if not readers:
            del self._readers[subject]
            self._idle_since[subject] = self._clock.now()
        if not self._closing and stream.base is not None:
            self._streams.pop(stream.stream_id, None)
            self._streams[stream.stream_id] = stream

    def _feed(self, subject: Subject) -> Feed:
        feed = self._feeds.get(subject)
        if feed is None:
            feed = self._feeds[subject] = Feed(self._world, subject, self._limits, lambda: self.errors())
        self._idle_since[subject] = self._clock.now()
        return feed

    def _begin(self, subject: Subject, *, after_reset: bool = False) -> _Stream:
        stream = _Stream(self._feed(subject), after_reset=after_reset)
        self._streams[stream.stream_id] = stream
        return stream

    def _found(self, subject: Subject, cursor: str) -> tuple[_Stream, int] | None:
        """The stream and the place in it, or None where it cannot be gone on from. Raises for what never was one."""
        match = _CURSOR.fullmatch(cursor)
        if match is None:
            raise _invalid(cursor, "is no cursor of a watch stream")
        stream, sequence = self._streams.get(match[1]), int(match[2])
        if stream is None or stream.base is None:
            return None
        if stream.feed.subject != subject:
            raise _invalid(cursor, "is of a stream with another scope or other filters")
        if not 1 <= sequence <= stream.sequence_at(stream.feed.position):
            raise _invalid(cursor, "was never given out")
        position = stream.base + sequence - stream.first
        # Before the snapshot there was the reset alone, with which nobody can begin.
        if sequence < stream.first or not stream.feed.goes_on_from(position):
            return None
        return stream, position

    def _forget(self, now: Timestamp) -> None:
        """Keep within the limits. What is being read stays, whatever its age."""
        for feed in self._feeds.values():
            feed.forget(now)
        self._drop_idle(now)
        while len(self._streams) > self._limits.streams:
            del self._streams[next(iter(self._streams))]

    def _drop_idle(self, now: Timestamp) -> None:
        idle = [subject for subject in self._feeds if subject not in self._readers]
        idle.sort(key=lambda subject: self._idle_since[subject])
        too_many = len(idle) - self._limits.idle_feeds
        dropped = {
            subject
            for number, subject in enumerate(idle)
            if number < too_many or now - self._idle_since[subject] > self._limits.microseconds
        }
        if not dropped:
            return
        for subject in dropped:
            del self._feeds[subject], self._idle_since[subject]
        gone = [each.stream_id for each in self._streams.values() if each.feed.subject in dropped]
        for stream_id in gone:
            del self._streams[stream_id]

    def _reset(self, stream: _Stream, sequence: int) -> bytes:
        return self._encoded(stream, "reset", sequence, stream.feed.snapshot())

    def _first_line(self, stream: _Stream) -> tuple[int, bytes]:
        """The position at which a stream begins, and its snapshot."""
        # Targets may have failed or been removed since the feed's last line. The feed says so in a line of its own
        # first. Otherwise its next line would tell this reader again what the snapshot tells, and nothing else.
        if stream.feed.publish((), self._clock.now()):
            self._wake(stream.feed.subject)
        position = stream.begin()
        return position, self._line(stream, "snapshot", position, stream.feed.snapshot())

    def _line(self, stream: _Stream, kind: Kind, position: int, content: Content) -> bytes:
        return self._encoded(stream, kind, stream.sequence_at(position), content)

    def _encoded(self, stream: _Stream, kind: Kind, sequence: int, content: Content) -> bytes:
        now = format_timestamp(self._clock.now())
        line = _Line(
            schema_version=views.SCHEMA_VERSION,
            generated_at=now if content.at is None else format_timestamp(content.at),
            emitted_at=now,
            stream_id=stream.stream_id,
            cursor=f"{stream.stream_id}:{sequence}",
            scope=stream.feed.subject.scope.value,
            type=kind,
            sequence=sequence,
            filters=stream.feed.filters,
            summary=content.summary,
            partial=bool(content.reach.errors),
            requested_targets=content.reach.requested,
            responded_targets=content.reach.responded,
            target_errors=content.reach.errors,
            items=content.body if kind == "snapshot" else UNSET,
            changes=content.body if kind == "delta" else UNSET,
        )
        return ENCODER.encode(line) + b"\n"


def _invalid(cursor: str, why: str) -> AgtmuxError:
    return AgtmuxError(ErrorCode.CURSOR_INVALID, f"{cursor[:80]!r} {why}")
