"""Records of `agtmux-hook`: a line of facts and the agent's own payload, directly or out of the spool."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agtmux.agents.registry import Registry
from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import MAX_EVENT_BYTES, MAX_INT64, Event
from agtmux.domain.panes import HOST
from agtmux.domain.states import Source, State
from agtmux.observe.intake import Intake
from unit.builders import T0, FakeTime

REGISTRY = Registry.load()
FACTS: dict[str, Any] = {
    "v": 1,
    "agent": "claude",
    "event": "UserPromptSubmit",
    "event_id": "e1",
    "event_time_ns": T0 * 1000,
    "pane_id": "%1",
    "tmux": "/tmp/tmux-1/default,4711,0",
    "pid": 7,
    "ppid": 6,
}


# The hook's own process, the agent's and its shell's.
LINEAGE = [7, 6, 5]


def an_intake() -> Intake:
    return Intake(REGISTRY, FakeTime().clock(), lambda socket: HOST if socket == "/tmp/tmux-1/default" else None)


def take(payload: Any = b"{}", **facts: Any) -> Event:
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return an_intake().hook(json.dumps(FACTS | facts).encode() + b"\n" + raw, lambda: LINEAGE)


def code_of(**facts: Any) -> str:
    with pytest.raises(AgtmuxError) as refused:
        take(**facts)
    return refused.value.code


def is_storable(event: Event) -> bool:
    """SQLite takes these values: integers of 64 bits, and texts that are UTF-8."""
    texts = [event.event_id, event.event_type, event.dedupe_key, event.source_event_id, event.raw_payload]
    texts += [event.verdict.reason_code, event.verdict.note] if event.verdict is not None else []
    for text in texts:
        if text is not None:
            text.encode("utf-8")
    return all(abs(number) <= MAX_INT64 for number in (event.event_time, event.ingested_at, event.source_seq or 0))


def test_a_record_becomes_an_event_of_the_pane_it_came_from() -> None:
    event = take({"prompt": "hi"})
    assert (event.source, event.event_type, event.agent_type) == (Source.HOOK, "claude.UserPromptSubmit", "claude")
    assert (event.target_id, event.pane_id, event.runtime_id) == (HOST, "%1", None)
    assert (event.event_time, event.event_id) == (T0, "e1")
    assert event.verdict is not None
    assert event.verdict.state is State.RUNNING


def test_the_same_record_is_the_same_event_and_another_is_another() -> None:
    keys = {take().dedupe_key, take().dedupe_key, take(event_id="e2").dedupe_key, take(event="Stop").dedupe_key}
    assert len(keys) == 3


def test_facts_of_a_newer_hook_are_let_pass() -> None:
    assert take(colour="red", v=9).event_id == "e1"


@pytest.mark.parametrize(
    "place",
    [{"tmux": None}, {"tmux": ""}, {"tmux": "/tmp/other,1,0"}, {"pane_id": None}, {"pane_id": "1"}, {"pane_id": "%x"}],
)
def test_a_hook_outside_of_a_watched_tmux_has_no_place(place: dict[str, Any]) -> None:
    event = take(**place)
    assert None in (event.target_id, event.pane_id)


@pytest.mark.parametrize(
    "facts",
    [
        {"agent": "eliza"},
        {"agent": 5},
        {"agent": "x" * 65},
        {"event": "x" * 129},
        {"event_id": ""},
        {"event_id": "x" * 257},
        {"event_time_ns": "now"},
        {"event_time_ns": 1.5},
        {"v": None},
    ],
)
def test_wrong_facts_are_refused_as_invalid(facts: dict[str, Any]) -> None:
    assert code_of(**facts) == ErrorCode.EVENT_INVALID


@pytest.mark.parametrize("body", [b"", b"\n", b"{", b"[]\n{}", b"\xff\n{}", b"[" * 100_000, b"null\n{}"])
def test_a_first_line_that_cannot_be_read_is_refused_as_invalid(body: bytes) -> None:
    with pytest.raises(AgtmuxError) as refused:
        an_intake().hook(body, lambda: LINEAGE)
    assert refused.value.code is ErrorCode.EVENT_INVALID


def test_a_payload_that_is_nested_too_deeply_is_refused_as_invalid() -> None:
    assert code_of(payload=b"[" * 100_000 + b"]" * 100_000) == ErrorCode.EVENT_INVALID


def test_a_record_of_more_than_a_megabyte_is_too_large() -> None:
    room = MAX_EVENT_BYTES - len(json.dumps(FACTS)) - len('\n""')
    assert take("x" * room).event_id == "e1"
    assert code_of(payload="x" * (room + 1)) == ErrorCode.TOO_LARGE


@pytest.mark.parametrize(
    "payload", [b"", b"not JSON", b"\xff\xfe", b"{", b'"text"', b"5", b"null", b"[1]", b'{"a":1e400}']
)
def test_an_agent_may_say_anything_as_its_payload(payload: bytes) -> None:
    event = take(payload)
    assert event.verdict is not None
    assert event.verdict.state is State.RUNNING
    assert is_storable(event)


@pytest.mark.parametrize("nanoseconds", [0, -1, -(10**30), 2**63, 2**64, 10**40])
def test_a_clock_that_says_the_impossible_gives_an_event_that_can_be_stored_or_is_refused(nanoseconds: int) -> None:
    try:
        event = take(event_time_ns=nanoseconds)
    except AgtmuxError as error:
        assert error.code is ErrorCode.EVENT_INVALID
    else:
        assert is_storable(event)


def test_a_spooled_record_is_the_same_event_as_one_that_came_at_once() -> None:
    record = FACTS | {"payload": {"prompt": "hi"}}
    spooled = an_intake().spooled(record)
    assert spooled.dedupe_key == take({"prompt": "hi"}).dedupe_key


@pytest.mark.parametrize("age", [0, 9, 11, 3_600, 86_400])
def test_a_spooled_record_counts_from_when_it_happened(age: int) -> None:
    """So that it overtakes nothing that came since, and is as stale as it is."""
    event = an_intake().spooled(FACTS | {"event_time_ns": (T0 - age * SECOND) * 1000})
    assert event.event_time == event.ingested_at == T0 - age * SECOND


def test_a_spooled_record_from_the_future_counts_from_now() -> None:
    event = an_intake().spooled(FACTS | {"event_time_ns": (T0 + 3_600 * SECOND) * 1000})
    assert event.ingested_at <= T0 + SECOND


def test_a_hook_tells_which_tmux_server_it_is_from() -> None:
    assert take(tmux="/tmp/tmux-0/default,4711,3").server_pid == 4711
    socket = "/tmp/tmux-0/default"
    for odd in (socket, f"{socket},x,3", f"{socket},,", f"{socket},{'9' * 5_000},0", f"{socket},9999999999,0", None):
        assert take(tmux=odd).server_pid is None


def test_a_payload_that_cannot_be_read_lowers_the_confidence() -> None:
    whole, cut = take({"tool_name": "Bash"}, event="PermissionRequest"), take(b'{"tool_na', event="PermissionRequest")
    assert whole.verdict is not None and cut.verdict is not None
    assert (whole.verdict.confidence, cut.verdict.confidence) == ("high", "medium")


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"event_id": "e1"},
        FACTS | {"agent": "eliza"},
        FACTS | {"payload": {"a": "\ud800"}},
        FACTS | {"event_id": "\ud800"},
        FACTS | {"event": "\udcff"},
        FACTS | {"event_time_ns": 10**40},
    ],
)
def test_a_damaged_record_of_the_spool_is_stored_or_refused_and_never_more(record: dict[str, Any]) -> None:
    """The spool is read at start: what could not be stored would stop every start from then on."""
    try:
        event = an_intake().spooled(record)
    except AgtmuxError as error:
        assert error.code is ErrorCode.EVENT_INVALID
    else:
        assert is_storable(event)


@given(
    st.dictionaries(st.sampled_from(list(FACTS)), st.none() | st.integers() | st.text(max_size=12), max_size=3),
    st.sampled_from(["Stop", "PermissionRequest", "StopFailure", "notify", "?"]),
    st.sampled_from(REGISTRY.agent_types),
    st.binary(max_size=60)
    | st.builds(
        lambda each: json.dumps(each).encode(),
        st.dictionaries(
            st.sampled_from(["tool_name", "tool_input", "error", "background_tasks"]),
            st.text(max_size=9)
            | st.lists(st.text(max_size=3))
            | st.dictionaries(st.sampled_from(["command", "questions"]), st.text(max_size=9)),
        ),
    ),
)
@settings(max_examples=200)
def test_whatever_a_hook_sends_only_events_and_our_errors_come_out(facts, event_name, agent, payload) -> None:
    try:
        event = take(payload, **({"event": event_name, "agent": agent} | facts))
    except AgtmuxError as error:
        assert error.code in (ErrorCode.EVENT_INVALID, ErrorCode.TOO_LARGE)
    else:
        assert is_storable(event)


def test_a_megabyte_is_read_in_a_moment() -> None:
    began = time.perf_counter()
    take({"tool_input": {"command": "x " * 400_000}}, event="PermissionRequest")
    assert time.perf_counter() - began < 5


def test_an_agent_whose_processes_serve_several_panes_has_to_prove_where_it_is() -> None:
    event = take(agent="codex")
    assert (event.pane_id, event.ancestors) == ("%1", frozenset(LINEAGE))
    body = json.dumps(FACTS | {"agent": "codex"}).encode() + b"\n{}"
    assert an_intake().hook(body, lambda: None).pane_id is None
    # What had to wait in the spool cannot be proven any more.
    assert an_intake().spooled(FACTS | {"agent": "codex"}).pane_id is None
    assert an_intake().spooled(FACTS).pane_id == "%1"


def test_nobody_is_asked_who_sent_what_needs_no_proof() -> None:
    def unasked() -> None:
        raise AssertionError("it costs time")

    assert an_intake().hook(json.dumps(FACTS).encode() + b"\n{}", unasked).ancestors is None
