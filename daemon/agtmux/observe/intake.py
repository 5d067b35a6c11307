"""The boundary: bytes from outside become events, or an error that says what is wrong with them.

Two forms come in: event envelopes as JSON, one or many, and records of `agtmux-hook`, which are a line of facts
about the hook followed by the agent's own payload. Everything is redacted here, before anything else sees it, and
one bad event of many never takes the others with it.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

import msgspec

from agtmux.agents.registry import Registry
from agtmux.clock import Clock
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import (
    DEMOTION_DUE,
    LONGEST_SUMMARY,
    MAX_EVENT_BYTES,
    MAX_INT64,
    STALE_DETECTED,
    TARGET_HEALTH_CHANGED,
    Attention,
    Event,
    Verdict,
    derive_dedupe_key,
    request,
    shortened,
)
from agtmux.domain.redact import Redacted, redact_text, redact_value
from agtmux.domain.refs import is_pane_id, is_runtime_id, is_target_name
from agtmux.domain.runtimes import PaneId, RuntimeId, TargetId
from agtmux.domain.states import EXTERNAL_SOURCES, Confidence, Reason, Source, State
from agtmux.domain.timestamps import Timestamp, parse_timestamp

# The content type of what `agtmux-hook` sends.
HOOK_TYPE: Final = "application/vnd.agtmux.hook"
MAX_EVENTS_PER_REQUEST: Final = 5_000
_LONGEST_TEXT: Final = 16_384
# Bytes of a payload as it is kept, whatever it is made of.
MOST_PAYLOAD: Final = 65_536
# A first try leaves some for what redaction puts in the place of secrets; then ever less is kept, to be sure.
_ROOMS: Final = (60_000, 24_000, 6_000)
_LONGEST_KEY: Final = 1_024
_SERVER_PID: Final = re.compile(r"[0-9]{1,9}(?=,)")
_LAST_WORD: Final = re.compile(r"\s\S*\Z")
# An event of this type states a canonical state outright: `state.running`, `state.waiting_input`, …
_STATE_PREFIX: Final = "state."
_RESERVED: Final = frozenset({STALE_DETECTED, TARGET_HEALTH_CHANGED, DEMOTION_DUE})

_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
_Pid = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class Envelope(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Event envelope v1 as it comes in. `ingested_at` is ours to say and ignored when given."""

    event_id: _Id
    event_type: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    source: Source
    dedupe_key: _Id
    event_time: Annotated[str, msgspec.Meta(max_length=64)]
    ingested_at: str | None = None
    source_event_id: _Id | None = None
    source_seq: Annotated[int, msgspec.Meta(ge=-MAX_INT64 - 1, le=MAX_INT64)] | None = None
    runtime_id: str | None = None
    target_id: str | None = None
    pane_id: str | None = None
    pid: _Pid | None = None
    start_hint: str | None = None
    raw_payload: msgspec.Raw = msgspec.Raw(b"null")


class HookRecord(msgspec.Struct, frozen=True):
    """What `agtmux-hook` says about itself. Unknown fields are let pass: the hook may be newer than the daemon."""

    v: int
    agent: Annotated[str, msgspec.Meta(max_length=64)]
    event: Annotated[str, msgspec.Meta(max_length=128)]
    event_id: _Id
    event_time_ns: Annotated[int, msgspec.Meta(ge=0, le=MAX_INT64)]
    pane_id: str | None = None
    tmux: str | None = None
    pid: int | None = None
    ppid: int | None = None


class StatedAttention(msgspec.Struct, frozen=True):
    kind: Literal["approval", "plan", "question", "error"]
    summary: str
    detail: str | None = None
    options: list[str] = []


class StatedState(msgspec.Struct, frozen=True):
    """What the payload of a `state.*` event may add."""

    reason_code: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,63}\Z")] | None = None
    confidence: Confidence = Confidence.HIGH
    attention: StatedAttention | None = None
    note: str | None = None


_ENVELOPE: Final = msgspec.json.Decoder(Envelope)
_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MANY: Final = msgspec.json.Decoder(list[msgspec.Raw])
_HOOK: Final = msgspec.json.Decoder(HookRecord)
_ANY: Final = msgspec.json.Decoder()

Taken = Event | AgtmuxError


class Intake:
    def __init__(self, registry: Registry, clock: Clock, find_target: Callable[[str], TargetId | None]) -> None:
        self._registry = registry
        self._clock = clock
        # From the socket path of a tmux server to the target that watches it.
        self._find_target = find_target

    def envelopes(self, body: bytes) -> tuple[list[Taken], bool]:
        """The events of a request, each an event or its error, and whether it was a batch."""
        try:
            if body.lstrip()[:1] == b"[":
                many = _MANY.decode(body)
            elif b'"events"' in body and _FIELDS.decode(body).keys() == {"events"}:
                many = _MANY.decode(_FIELDS.decode(body)["events"])
            else:
                return [self._one(body)], False
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise _invalid(f"the request is not JSON that can be read: {error}") from None
        if len(many) > MAX_EVENTS_PER_REQUEST:
            raise AgtmuxError(
                ErrorCode.TOO_LARGE, f"{len(many)} events in one request; send at most {MAX_EVENTS_PER_REQUEST}"
            )
        return [self._one(bytes(raw)) for raw in many], True

    def hook(self, body: bytes, lineage: Callable[[], Sequence[int] | None] = lambda: None) -> Event:
        """A record of `agtmux-hook`: a line of facts, then the payload as the agent gave it.

        `lineage` tells the processes the record came from, as far as they can be told.
        """
        _check_size(body)
        head, _, payload = body.partition(b"\n")
        facts = _decode(_HOOK, head, "the hook's first line")
        return self._hook(facts, _payload(payload), len(payload), lineage)

    def spooled(self, record: dict[str, Any]) -> Event:
        """A record that waited in the spool. It counts from when it happened, by the clock the hook shares with us: it
        overtakes nothing that came since, and is as old as it is."""
        # The process is long gone.
        event = self._hook(_convert(HookRecord, record), record.get("payload"), MAX_EVENT_BYTES, lambda: None)
        happened = Timestamp(min(event.event_time + self._clock.lead, event.ingested_at))
        return replace(event, event_time=happened, ingested_at=happened)

    def _one(self, raw: bytes) -> Taken:
        try:
            return self._envelope(raw)
        except AgtmuxError as error:
            return error

    def _envelope(self, raw: bytes) -> Event:
        _check_size(raw)
        envelope = _decode(_ENVELOPE, raw, "the event")
        if envelope.source not in EXTERNAL_SOURCES or envelope.event_type in _RESERVED:
            raise _invalid(f"{envelope.source} events of type {envelope.event_type} are the daemon's own")
        runtime_id, target_id, pane_id = _whose(envelope)
        payload = _payload(bytes(envelope.raw_payload))
        source, agent_type, verdict = self._read(envelope, payload)
        return Event(
            event_id=_storable(envelope.event_id),
            event_type=_storable(envelope.event_type),
            source=source,
            dedupe_key=_storable(envelope.dedupe_key),
            event_time=_moment(envelope.event_time, "event_time"),
            ingested_at=self._clock.now(),
            source_event_id=None if envelope.source_event_id is None else _storable(envelope.source_event_id),
            source_seq=envelope.source_seq,
            runtime_id=runtime_id,
            target_id=target_id,
            pane_id=pane_id,
            pid=envelope.pid,
            start_hint=None if envelope.start_hint is None else _moment(envelope.start_hint, "start_hint"),
            agent_type=agent_type,
            raw_payload=_redacted(payload, len(raw)),
            verdict=verdict,
        )

    def _hook(
        self, facts: HookRecord, payload: object, size: int, lineage: Callable[[], Sequence[int] | None]
    ) -> Event:
        if not self._registry.knows(facts.agent):
            known = ", ".join(self._registry.agent_types)
            raise _invalid(f"no agent is called {facts.agent[:64]!r}; known are {known}")
        source, verdict = self._registry.read_hook(facts.agent, facts.event, payload)
        event_type = _storable(f"{facts.agent}.{facts.event}")
        pane_id = facts.pane_id if facts.pane_id is not None and is_pane_id(facts.pane_id) else None
        ancestors = None
        if self._registry.sheet(facts.agent).process.is_shared:
            # The pane it names may be that of whoever started what runs its hooks; without proof it is nobody's.
            found = lineage()
            ancestors = None if found is None else frozenset(found)
            pane_id = pane_id if ancestors is not None else None
        if isinstance(payload, str) and verdict is not None:
            # Not JSON, or cut short: what it would have told more exactly is missing.
            verdict = replace(verdict, confidence=verdict.confidence.lowered())
        server, _, rest = (facts.tmux or "").partition(",")
        server_pid = _SERVER_PID.match(rest)
        redacted = _redacted(payload, size)
        return Event(
            event_id=_storable(facts.event_id),
            event_type=event_type,
            source=source,
            dedupe_key=derive_dedupe_key(source, facts.event_id, event_type, (redacted or "").encode()),
            event_time=Timestamp(facts.event_time_ns // 1000),
            ingested_at=self._clock.now(),
            source_event_id=_storable(facts.event_id),
            target_id=self._find_target(server) if server else None,
            pane_id=None if pane_id is None else PaneId(pane_id),
            server_pid=int(server_pid[0]) if server_pid is not None else None,
            agent_type=facts.agent,
            ancestors=ancestors,
            raw_payload=redacted,
            verdict=verdict,
            transcript=self._registry.transcript_claimed(facts.agent, payload),
        )

    def _read(self, envelope: Envelope, payload: object) -> tuple[Source, str | None, Verdict | None]:
        if envelope.event_type.startswith(_STATE_PREFIX):
            return envelope.source, None, _stated(envelope.event_type, payload)
        agent_type, dot, event = envelope.event_type.partition(".")
        if dot and self._registry.knows(agent_type):
            return envelope.source, agent_type, self._registry.read_hook(agent_type, event, payload)[1]
        note = redact_text(f"{envelope.event_type} is not known")
        unsupported = Verdict(State.UNKNOWN, Reason.UNSUPPORTED_SIGNAL, Confidence.LOW, note=note)
        return envelope.source, None, unsupported


def _check_size(raw: bytes) -> None:
    if len(raw) > MAX_EVENT_BYTES:
        raise AgtmuxError(ErrorCode.TOO_LARGE, f"an event of {len(raw)} bytes; {MAX_EVENT_BYTES} bytes is the limit")


def new_event_id() -> str:
    return uuid.uuid4().hex


def _whose(envelope: Envelope) -> tuple[RuntimeId | None, TargetId | None, PaneId | None]:
    if envelope.runtime_id is not None:
        if not is_runtime_id(envelope.runtime_id):
            raise _invalid("runtime_id is not a runtime id")
        return RuntimeId(envelope.runtime_id), None, None
    if envelope.target_id is None or envelope.pane_id is None:
        raise _invalid("an event names its runtime_id, or else its target_id and pane_id")
    if not is_target_name(envelope.target_id) or not is_pane_id(envelope.pane_id):
        raise _invalid("target_id is a target's name and pane_id looks like %12")
    return None, TargetId(_plain(envelope.target_id)), PaneId(envelope.pane_id)


def _stated(event_type: str, payload: object) -> Verdict:
    name = event_type.removeprefix(_STATE_PREFIX)
    try:
        state = State(name)
    except ValueError:
        known = ", ".join(State)
        raise _invalid(f"{name[:40]!r} is not a state; known are {known}") from None
    stated: StatedState = _convert(StatedState, payload) if isinstance(payload, dict) else StatedState()
    return Verdict(
        state=state,
        reason_code=_plain(
            stated.reason_code or ("stated" if state is not State.UNKNOWN else Reason.UNSUPPORTED_SIGNAL)
        ),
        confidence=stated.confidence,
        attention=None if stated.attention is None else _attention(stated.attention),
        note=None if stated.note is None else Redacted(redact_text(stated.note)[:500]),
    )


def _attention(stated: StatedAttention) -> Attention:
    detail = stated.detail
    if detail is not None and stated.kind in ("approval", "plan"):
        # Where a request is shown whole, it is its detail that is shown.
        detail = f"{stated.summary}\n\n{detail}"
    return request(
        kind=stated.kind,
        summary=stated.summary,
        detail=detail,
        options=tuple(shortened(redact_text(option), LONGEST_SUMMARY) for option in stated.options[:20]),
        subject=stated.summary,
        is_brief=stated.kind == "approval" and stated.detail is None,
    )


def _payload(raw: bytes) -> object:
    """The payload as JSON where it is JSON, else as text."""
    if not raw.strip():
        return None
    try:
        return _ANY.decode(raw)
    except RecursionError:
        raise _invalid("the payload is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return raw.decode("utf-8", "replace")


def _redacted(payload: object, size: int) -> Redacted | None:
    """The payload as it is kept. `size` is what it came in: a small one holds nothing that is too long."""
    if payload is None:
        return None
    try:
        if size <= _LONGEST_TEXT and len(whole := _encoded(payload).encode()) <= MOST_PAYLOAD:
            return Redacted(whole.decode())
        for room in _ROOMS:
            kept = _encoded(_Clipper(room).clip(payload))
            if len(kept.encode()) <= MOST_PAYLOAD:
                return kept
    except (ValueError, TypeError, RecursionError, msgspec.MsgspecError) as error:
        raise _invalid(f"the payload cannot be kept: {error}") from None
    return Redacted(json.dumps(f"({size} bytes)"))


def _encoded(payload: object) -> Redacted:
    redacted = redact_value(payload)
    try:
        return Redacted(msgspec.json.encode(redacted, enc_hook=str).decode())
    except UnicodeEncodeError:
        # Half a character, which JSON can only write as an escape.
        return Redacted(json.dumps(redacted))


class _Clipper:
    """A payload with its long texts cut, and what is too much in all left out: a file that a tool has read is neither
    worth its room in the database nor the time that looking for secrets in it would take on the event loop. Everything
    takes room, in bytes: keys, numbers and brackets too."""

    def __init__(self, room: int) -> None:
        self._room = room

    def clip(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        self._room -= _bytes_of(value)
        if isinstance(value, list):
            return self._items(value)
        if isinstance(value, dict):
            return self._members(value)
        return value

    def _text(self, text: str) -> str:
        kept = text if len(text) <= _LONGEST_TEXT else _cut(text)
        size = len(json.dumps(kept, ensure_ascii=False).encode("utf-8", "surrogatepass")) + 1
        if size > self._room:
            kept = f"({len(text)} characters)"
            size = len(kept) + 3
        self._room -= size
        return kept

    def _items(self, items: list[Any]) -> list[Any]:
        kept: list[Any] = []
        for item in items:
            if self._room <= 0:
                kept.append(f"({len(items) - len(kept)} more items)")
                break
            kept.append(self.clip(item))
        return kept

    def _members(self, members: dict[Any, Any]) -> dict[Any, Any]:
        kept: dict[Any, Any] = {}
        for key, item in members.items():
            if self._room <= 0:
                kept["…"] = f"({len(members) - len(kept)} more members)"
                break
            short = key if len(key) <= _LONGEST_KEY else f"({len(key)} characters, {len(kept)})"
            self._room -= len(short.encode("utf-8", "surrogatepass")) + 4
            kept[short] = self.clip(item)
        return kept


def _bytes_of(value: object) -> int:
    """What a value that is no text takes, without what is in it; rather more than less."""
    if isinstance(value, int):
        return value.bit_length() // 3 + 7
    return 28 if isinstance(value, float) else 6


def _cut(text: str) -> str:
    # Not within a word: half of a secret might no longer look like one.
    head = text[:_LONGEST_TEXT]
    last_word = _LAST_WORD.search(head)
    kept = head[: last_word.start()].rstrip() if last_word else ""
    return f"{kept} … ({len(text) - len(kept)} more characters)"


def _storable(identifier: str) -> str:
    """An identifier is kept as it is, unless it holds a secret: then a digest stands for it, just as unique."""
    try:
        raw = identifier.encode()
    except UnicodeEncodeError:
        raise _invalid("an identifier is not Unicode text") from None
    return identifier if redact_text(identifier) == identifier else "sha256:" + hashlib.sha256(raw).hexdigest()


def _plain(word: str) -> str:
    """A word that has to stay as it is, and therefore must not be a secret."""
    if redact_text(word) != word:
        raise _invalid("a name or code looks like a secret; it would have to be kept as it is")
    return word


def _moment(text: str, field: str) -> Timestamp:
    try:
        return parse_timestamp(text)
    except ValueError:
        raise _invalid(f"{field} is not a time such as 2026-01-31T12:00:00Z") from None


def _decode(decoder: msgspec.json.Decoder[Any], raw: bytes, what: str) -> Any:
    try:
        return decoder.decode(raw)
    except RecursionError:
        raise _invalid(f"{what} is nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _invalid(f"{what} cannot be read: {error}") from None


def _convert(kind: Any, value: object) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _invalid(f"the payload cannot be read: {error}") from None


def _invalid(message: str) -> AgtmuxError:
    return AgtmuxError(ErrorCode.EVENT_INVALID, message)
