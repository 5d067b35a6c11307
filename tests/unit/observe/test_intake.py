"""The boundary: what comes in is an event, or an error with the right code, and one bad event spoils no other."""

import functools
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agtmux.agents.registry import Registry
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import DEMOTION_DUE, MAX_EVENT_BYTES, MAX_INT64, STALE_DETECTED, TARGET_HEALTH_CHANGED, Event
from agtmux.domain.panes import HOST
from agtmux.domain.states import Source, State
from agtmux.observe.intake import MAX_EVENTS_PER_REQUEST, Intake
from unit.builders import FakeTime, a_runtime

REGISTRY = Registry.load()
VALID: dict[str, Any] = {
    "event_id": "e1",
    "event_type": "claude.UserPromptSubmit",
    "source": "hook",
    "dedupe_key": "k1",
    "event_time": "2027-01-15T08:00:00Z",
    "target_id": "host",
    "pane_id": "%1",
    "source_seq": 1,
    "pid": 7,
    "start_hint": "2027-01-15T08:00:00Z",
    "raw_payload": {"prompt": "hello"},
}


def an_intake() -> Intake:
    return Intake(REGISTRY, FakeTime().clock(), lambda socket: HOST if socket == "/tmp/tmux-1/default" else None)


def take(body: bytes | dict[str, Any] | list[Any]) -> list[Event | AgtmuxError]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return an_intake().envelopes(raw)[0]


def code_of(body: bytes | dict[str, Any]) -> str:
    """The code of the one error that this request gets."""
    try:
        (error,) = take(body)
    except AgtmuxError as refused:
        error = refused
    assert isinstance(error, AgtmuxError), "it was taken"
    assert len(error.message) > 10
    return error.code


def test_a_whole_envelope_becomes_an_event() -> None:
    (event,) = take(VALID)
    assert isinstance(event, Event)
    assert (event.event_id, event.source, event.dedupe_key, event.source_seq) == ("e1", Source.HOOK, "k1", 1)
    assert (event.target_id, event.pane_id, event.pid, event.agent_type) == ("host", "%1", 7, "claude")
    assert event.event_time == event.start_hint
    assert event.verdict is not None
    assert event.verdict.state is State.RUNNING
    assert event.raw_payload == '{"prompt":"hello"}'


def test_when_it_was_taken_in_is_ours_to_say() -> None:
    (event,) = take(VALID | {"ingested_at": "1999-01-01T00:00:00Z"})
    assert isinstance(event, Event)
    assert event.ingested_at > event.event_time - 1


def without(field: str) -> dict[str, Any]:
    return {name: value for name, value in VALID.items() if name != field}


INVALID: dict[str, dict[str, Any]] = {
    "no id": without("event_id"),
    "no type": without("event_type"),
    "no source": without("source"),
    "no key": without("dedupe_key"),
    "no time": without("event_time"),
    "no pane": without("pane_id"),
    "no target": without("target_id"),
    "empty id": VALID | {"event_id": ""},
    "empty key": VALID | {"dedupe_key": ""},
    "id too long": VALID | {"event_id": "x" * 257},
    "type too long": VALID | {"event_type": "x" * 129},
    "unknown field": VALID | {"colour": "red"},
    "unknown source": VALID | {"source": "oracle"},
    "unknown state": VALID | {"event_type": "state.sleeping"},
    "no state at all": VALID | {"event_type": "state."},
    "number as id": VALID | {"event_id": 5},
    "number beyond int64": VALID | {"source_seq": MAX_INT64 + 1},
    "number below int64": VALID | {"source_seq": -MAX_INT64 - 2},
    "fraction as number": VALID | {"source_seq": 1.5},
    "time without an offset": VALID | {"event_time": "2027-01-15T08:00:00"},
    "no time but words": VALID | {"event_time": "yesterday"},
    "time before time": VALID | {"event_time": "1969-12-31T23:59:59Z"},
    "hint that is no time": VALID | {"start_hint": "soon"},
    "pid zero": VALID | {"pid": 0},
    "pid too large": VALID | {"pid": 2**31},
    "pane without percent": VALID | {"pane_id": "1"},
    "pane in other digits": VALID | {"pane_id": "%\u0661"},
    "target with a slash": VALID | {"target_id": "a/b"},
    "runtime too short": VALID | {"runtime_id": "abc"},
    "reason that is a sentence": VALID | {"event_type": "state.error", "raw_payload": {"reason_code": "Oh no!"}},
    "confidence that is none": VALID | {"event_type": "state.error", "raw_payload": {"confidence": "sure"}},
    "attention without a summary": VALID | {"event_type": "state.error", "raw_payload": {"attention": {"kind": "x"}}},
    "source of our own": VALID | {"source": "reconciler"},
    "stale_detected": VALID | {"event_type": STALE_DETECTED},
    "target_health_changed": VALID | {"event_type": TARGET_HEALTH_CHANGED},
    "demotion_due": VALID | {"event_type": DEMOTION_DUE},
}


@pytest.mark.parametrize("envelope", INVALID.values(), ids=INVALID.keys())
def test_a_wrong_envelope_is_refused_as_invalid(envelope: dict[str, Any]) -> None:
    assert code_of(envelope) == ErrorCode.EVENT_INVALID


DEEP = 100_000
UNREADABLE: dict[str, bytes] = {
    "nothing": b"",
    "blank": b" \n",
    "no JSON": b"hello",
    "half a JSON": json.dumps(VALID).encode()[:-5],
    "two of them": json.dumps(VALID).encode() * 2,
    "not UTF-8": b'{"event_id": "\xff\xfe"}',
    "not UTF-8 in a batch": b'[{"event_id": "\xff\xfe"}]',
    "half a surrogate": json.dumps(VALID).encode().replace(b"hello", rb"\ud800"),
    "a number": b"5",
    "a text": b'"events"',
    "null": b"null",
    "events that are no list": b'{"events": 5}',
    "a batch that ends too early": b"[{}",
    "deep lists": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"events": ' * DEEP + b"1" + b"}" * DEEP,
    "a deep event in a batch": b'{"events": [' + b"[" * DEEP + b"]" * DEEP + b"]}",
    "a deep payload": json.dumps(VALID | {"raw_payload": 0})[:-2].encode() + b"[" * DEEP + b"]" * DEEP + b"}",
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read_is_refused_as_invalid(body: bytes) -> None:
    assert code_of(body) == ErrorCode.EVENT_INVALID


def test_an_event_of_more_than_a_megabyte_is_too_large() -> None:
    fits = VALID | {"raw_payload": ""}
    room = MAX_EVENT_BYTES - len(json.dumps(fits))
    assert isinstance(take(VALID | {"raw_payload": "x" * room})[0], Event)
    assert code_of(VALID | {"raw_payload": "x" * (room + 1)}) == ErrorCode.TOO_LARGE


def test_too_many_events_at_once_are_too_large() -> None:
    assert len(take([{}] * MAX_EVENTS_PER_REQUEST)) == MAX_EVENTS_PER_REQUEST
    assert code_of([{}] * (MAX_EVENTS_PER_REQUEST + 1)) == ErrorCode.TOO_LARGE


def test_bad_events_of_a_batch_leave_the_good_ones_alone() -> None:
    large = VALID | {"raw_payload": "x" * MAX_EVENT_BYTES}
    batch = [VALID | {"event_id": "a"}, {}, 5, None, large, *INVALID.values(), VALID | {"event_id": "b"}]
    for body in (batch, {"events": batch}):
        taken = take(body)
        assert len(taken) == len(batch)
        assert [each.event_id for each in taken if isinstance(each, Event)] == ["a", "b"]
        assert {each.code for each in taken if isinstance(each, AgtmuxError)} == {"E_EVENT_INVALID", "E_TOO_LARGE"}


def test_the_three_shapes_of_a_request() -> None:
    body = json.dumps(VALID).encode()
    assert an_intake().envelopes(body)[1] is False
    assert an_intake().envelopes(b" [" + body + b"]")[1] is True
    assert an_intake().envelopes(b'{"events":[' + body + b"]}") == an_intake().envelopes(b"[" + body + b"]")
    assert an_intake().envelopes(b"[]") == ([], True)


def test_a_payload_that_speaks_of_events_is_still_one_event() -> None:
    taken, is_batch = an_intake().envelopes(json.dumps(VALID | {"raw_payload": {"events": [1]}}).encode())
    assert (len(taken), is_batch) == (1, False)


LONGEST_TEXT = 16_384


def test_a_text_that_is_too_long_is_kept_up_to_a_word_and_says_how_much_is_missing() -> None:
    words = "word " * 4_000
    (event,) = take(VALID | {"raw_payload": {"tool": "Read", "output": [{"content": words}], "lines": 4_000}})
    assert isinstance(event, Event)
    kept = json.loads(str(event.raw_payload))
    text, _, rest = kept["output"][0].pop("content").partition(" … ")
    assert kept == {"tool": "Read", "output": [{}], "lines": 4_000}
    assert words.startswith(text)
    assert LONGEST_TEXT - len("word ") <= len(text) <= LONGEST_TEXT
    assert text.endswith("word")
    assert rest == f"({len(words) - len(text)} more characters)"


def test_a_text_of_the_greatest_length_is_kept_whole_wherever_it_stands() -> None:
    longest = "words " * (LONGEST_TEXT // 6) + "end."
    assert len(longest) == LONGEST_TEXT
    for payload in (longest, [longest, longest], {"a": {"b": longest}, "c": longest}):
        (event,) = take(VALID | {"raw_payload": payload})
        assert isinstance(event, Event)
        assert json.loads(str(event.raw_payload)) == payload


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=300)
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    SCALARS, st.integers(1, 60), st.sampled_from(["list", "lists", "keys", "members", "deep", "long key", "secrets"])
)
def test_a_payload_is_kept_within_64_kilobytes_whatever_it_is_made_of(scalar: Any, thousands: int, shape: str) -> None:
    count = thousands * 300
    payload: Any = {
        "list": lambda: [scalar] * count,
        "lists": lambda: [[[]] * 10, [scalar]] * (count // 5),
        "keys": lambda: {f"{number:>30}": scalar for number in range(count // 3)},
        "members": lambda: [{"a": scalar, "b": {"c": [scalar]}}] * (count // 3),
        "deep": lambda: functools.reduce(lambda inside, _: [inside, scalar], range(30), [scalar] * count),
        "long key": lambda: {f"{number}" + "k" * 3_000: scalar for number in range(count // 200)},
        "secrets": lambda: [{"password": 1, "token": "a"}] * (count // 3),
    }[shape]()
    taken = take(VALID | {"raw_payload": payload})
    if isinstance(taken[0], AgtmuxError):
        assert taken[0].code == "E_TOO_LARGE"
        return
    assert taken[0].raw_payload is not None
    assert len(taken[0].raw_payload.encode()) <= 65_536
    json.loads(str(taken[0].raw_payload))


def test_what_is_left_out_of_a_payload_is_said() -> None:
    (event,) = take(VALID | {"raw_payload": {"first": "kept", "numbers": list(range(50_000)), "last": "x"}})
    assert isinstance(event, Event)
    kept = json.loads(str(event.raw_payload))
    assert kept["first"] == "kept"
    assert kept["numbers"][:3] == [0, 1, 2]
    assert kept["numbers"][-1] == f"({50_000 - len(kept['numbers']) + 1} more items)"
    assert kept["…"] == "(1 more members)"


@pytest.mark.parametrize("state", State)
def test_a_state_may_be_stated_outright(state: State) -> None:
    (event,) = take(VALID | {"event_type": f"state.{state}"})
    assert isinstance(event, Event)
    assert event.verdict is not None
    assert (event.verdict.state, event.agent_type) == (state, None)
    assert event.verdict.reason_code


@pytest.mark.parametrize("event_type", ["claude.NoSuchHook", "eliza.Stop", "whatever", "state"])
def test_what_is_not_known_is_unsupported_and_never_a_state(event_type: str) -> None:
    (event,) = take(VALID | {"event_type": event_type})
    assert isinstance(event, Event)
    assert event.verdict is not None
    assert event.verdict.is_unsupported


def test_an_event_that_names_its_runtime_needs_no_place() -> None:
    runtime_id = a_runtime().runtime_id
    (event,) = take({**VALID, "runtime_id": runtime_id})
    assert isinstance(event, Event)
    assert (event.runtime_id, event.target_id, event.pane_id) == (runtime_id, None, None)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A valid envelope with some of its fields replaced, removed or added, and perhaps some of its bytes."""
    fields = dict(VALID)
    for name in draw(st.lists(st.sampled_from([*VALID, "runtime_id", "ingested_at", "more"]), max_size=3)):
        fields[name] = draw(VALUES)
    for name in draw(st.lists(st.sampled_from(list(VALID)), max_size=1)):
        fields.pop(name, None)
    fields["event_type"] = draw(st.sampled_from([fields.get("event_type"), "state.error", "codex.notify", "a.b"]))
    raw = bytearray(json.dumps(fields).encode())
    for _ in range(draw(st.integers(0, 2))):
        raw[draw(st.integers(0, len(raw) - 1))] = draw(st.integers(0, 255))
    return bytes(raw)


@given(
    st.binary(max_size=200)
    | mutated()
    | st.builds(lambda each: b"[" + b",".join(each) + b"]", st.lists(mutated(), max_size=3))
)
@settings(max_examples=300)
def test_whatever_comes_in_only_events_and_our_errors_come_out(body: bytes) -> None:
    try:
        taken = take(body)
    except AgtmuxError as error:
        assert error.code in (ErrorCode.EVENT_INVALID, ErrorCode.TOO_LARGE)
        return
    for each in taken:
        assert isinstance(each, Event) or each.code in (ErrorCode.EVENT_INVALID, ErrorCode.TOO_LARGE)
        if isinstance(each, Event):
            assert each.source is not Source.RECONCILER
            assert each.runtime_id or (each.target_id and each.pane_id)
            assert each.verdict is None or each.verdict.reason_code
