"""Whatever comes in through the socket: each mistake gets its code and sentence, is counted, and loses nothing else."""

import json
import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from agtmux.api.app import HOOK_TYPE
from agtmux.api.bodies import MAX_BODY_BYTES
from agtmux.api.protocol import HEAD_BYTES_LIMIT
from agtmux.domain.events import MAX_EVENT_BYTES
from support.home import Home, event, shared_home, wait_until
from support.http import Connection, request

HOOK = {"Content-Type": HOOK_TYPE}
HOOK_FACTS = {"v": 1, "agent": "claude", "event": "Stop", "event_id": "h1", "event_time_ns": time.time_ns()}


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """One daemon for all of them: it has to survive the lot."""
    with shared_home() as made:
        made.start()
        yield made


@pytest.fixture(scope="module")
def pane(home: Home) -> str:
    return watched_pane(home)


@pytest.fixture
def own_pane(home: Home) -> str:
    """For a test whose events would get in the way of the others'."""
    return watched_pane(home)


def watched_pane(home: Home) -> str:
    pane_id = home.pane()
    wait_until(lambda: pane_id in home.panes(), "the pane")
    return pane_id


@pytest.fixture
def goes_on(home: Home, pane: str) -> Callable[..., None]:
    """Call it with the code of a refusal: it was counted once, and the next good event is taken."""
    before: dict[str, int] = home.health()["refused"]
    crashes = tracebacks(home)
    pid = home.answering_pid()

    def check(code: str, count: int = 1) -> None:
        wait_until(lambda: home.refused(code) >= before.get(code, 0) + count, f"{code} to be counted")
        refused = home.health()["refused"]
        assert refused == before | {code: before.get(code, 0) + count}
        good = event(pane, "state.waiting_input")
        answer = home.ask("POST", "/v1/events", good)
        assert (answer.status, answer.json["status"]) == (200, "applied"), answer
        assert home.state_of(pane) == "waiting_input"
        assert good["event_id"] in home.stored_ids()
        assert home.answering_pid() == pid
        assert tracebacks(home) == crashes

    return check


def tracebacks(home: Home) -> list[dict]:
    return [line for line in home.log_lines() if "traceback" in line]


def without(envelope: dict, field: str) -> dict:
    return {key: value for key, value in envelope.items() if key != field}


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


# name → (the body, made for a pane; the code; words of the sentence)
BODIES: dict[str, tuple[Callable[[str], object], str, str]] = {
    "nothing": (lambda pane: b"", "E_EVENT_INVALID", "cannot be read"),
    "not JSON": (lambda pane: b"{not json", "E_EVENT_INVALID", "malformed"),
    "half a JSON": (lambda pane: json.dumps(event(pane)).encode()[:-9], "E_EVENT_INVALID", "truncated"),
    "more than a JSON": (lambda pane: json.dumps(event(pane)).encode() + b"{}", "E_EVENT_INVALID", "trailing"),
    "a number": (lambda pane: b"17", "E_EVENT_INVALID", "Expected `object`"),
    "null": (lambda pane: b"null", "E_EVENT_INVALID", "Expected `object`"),
    "not UTF-8": (lambda pane: b'{"event_id": "\xff\xfe"}', "E_EVENT_INVALID", "utf-8"),
    "UTF-16": (lambda pane: json.dumps(event(pane)).encode("utf-16"), "E_EVENT_INVALID", "cannot be read"),
    "half a surrogate pair": (
        lambda pane: json.dumps(event(pane, event_id="\ud800")).encode(),
        "E_EVENT_INVALID",
        "surrogate",
    ),
    "nested in itself": (lambda pane: nested(100_000), "E_EVENT_INVALID", "the request is not JSON"),
    "a payload nested too deeply": (
        lambda pane: json.dumps(event(pane) | {"raw_payload": 0}).encode()[:-2] + nested(100_000) + b"}",
        "E_EVENT_INVALID",
        "nested too deeply",
    ),
    "an unknown field": (lambda pane: event(pane, shoe_size=43), "E_EVENT_INVALID", "shoe_size"),
    "no event_id": (lambda pane: without(event(pane), "event_id"), "E_EVENT_INVALID", "event_id"),
    "an empty event_id": (lambda pane: event(pane, event_id=""), "E_EVENT_INVALID", "event_id"),
    "an endless event_id": (lambda pane: event(pane, event_id="x" * 257), "E_EVENT_INVALID", "event_id"),
    "no dedupe_key": (lambda pane: without(event(pane), "dedupe_key"), "E_EVENT_INVALID", "dedupe_key"),
    "an unknown state": (lambda pane: event(pane, "state.daydreaming"), "E_EVENT_INVALID", "'daydreaming'"),
    "an unknown source": (lambda pane: event(pane, source="rumour"), "E_EVENT_INVALID", "rumour"),
    "the daemon's own source": (lambda pane: event(pane, source="reconciler"), "E_EVENT_INVALID", "the daemon's own"),
    "the daemon's own event": (lambda pane: event(pane, "stale_detected"), "E_EVENT_INVALID", "the daemon's own"),
    "a time that is none": (lambda pane: event(pane, event_time="yesterday"), "E_EVENT_INVALID", "event_time"),
    "a time without offset": (
        lambda pane: event(pane, event_time="2026-01-31T12:00:00"),
        "E_EVENT_INVALID",
        "event_time",
    ),
    "a sequence beyond 64 bits": (lambda pane: event(pane, source_seq=2**63), "E_EVENT_INVALID", "source_seq"),
    "a pid that is none": (lambda pane: event(pane, pid=-1), "E_EVENT_INVALID", "pid"),
    "a bad pane_id": (lambda pane: event("1; rm -rf /"), "E_EVENT_INVALID", "pane_id"),
    "a bad target_id": (lambda pane: event(pane, target_id="h/o/s/t"), "E_EVENT_INVALID", "target_id"),
    "a bad runtime_id": (lambda pane: event(pane, runtime_id="no"), "E_EVENT_INVALID", "runtime_id"),
    "no pane at all": (lambda pane: without(event(pane), "pane_id"), "E_EVENT_INVALID", "runtime_id"),
    "a runtime that never was": (lambda pane: event(pane, runtime_id="0" * 64), "E_RUNTIME_STALE", "list the panes"),
    "a reason that is none": (
        lambda pane: event(pane, raw_payload={"reason_code": "Not A Reason!"}),
        "E_EVENT_INVALID",
        "reason_code",
    ),
    "more than 1 MB": (
        lambda pane: event(pane, raw_payload="x" * MAX_EVENT_BYTES),
        "E_TOO_LARGE",
        f"{MAX_EVENT_BYTES} bytes is the limit",
    ),
    "more than 4 MiB": (lambda pane: b"x" * (MAX_BODY_BYTES + 1), "E_TOO_LARGE", "send it in parts"),
    "too many events": (lambda pane: b"[" + b"0," * 5_000 + b"0]", "E_TOO_LARGE", "5001 events"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_bad_event_gets_its_sentence_and_the_next_good_one_is_taken(home: Home, pane: str, goes_on, name: str):
    body, code, words = BODIES[name]
    answer = home.ask("POST", "/v1/events", body(pane))
    error = answer.error
    assert error["code"] == code
    assert words in error["message"]
    assert len(error["message"]) < 500
    assert answer.status == {"E_TOO_LARGE": 413, "E_RUNTIME_STALE": 409}.get(code, 400)
    goes_on(code)


HOOK_BODIES: dict[str, tuple[bytes, str]] = {
    "no facts": (b"", "first line"),
    "facts that are no JSON": (b"Stop\n{}", "first line"),
    "an unknown agent": (
        json.dumps(HOOK_FACTS | {"agent": "hal9000"}).encode() + b"\n{}",
        "no agent is called 'hal9000'",
    ),
    "no event_id": (json.dumps(without(HOOK_FACTS, "event_id")).encode() + b"\n", "event_id"),
    "a time in words": (json.dumps(HOOK_FACTS | {"event_time_ns": "now"}).encode() + b"\n", "event_time_ns"),
    "a payload nested too deeply": (json.dumps(HOOK_FACTS).encode() + b"\n" + nested(100_000), "nested too deeply"),
}


@pytest.mark.parametrize("name", HOOK_BODIES)
def test_a_bad_hook_record_gets_its_sentence(home: Home, goes_on, name: str):
    body, words = HOOK_BODIES[name]
    answer = home.ask("POST", "/v1/events", body, HOOK)
    assert (answer.status, answer.error["code"]) == (400, "E_EVENT_INVALID")
    assert words in answer.error["message"]
    goes_on("E_EVENT_INVALID")


def test_a_hook_record_whose_payload_is_no_json_counts_all_the_same(home: Home, own_pane: str):
    facts = HOOK_FACTS | {"event_id": uuid.uuid4().hex, "event_time_ns": time.time_ns(), "pane_id": own_pane}
    facts["tmux"] = home.tmux_variables(own_pane)["TMUX"]
    answer = home.ask("POST", "/v1/events", json.dumps(facts).encode() + b"\n\xff\xfe not json", HOOK)
    assert (answer.status, answer.json["status"]) == (200, "applied")
    assert home.state_of(own_pane) == "completed"


@pytest.mark.parametrize("time_ns", [-1, 0, 2**63 - 1, 2**63, 2**64 - 1, 10**30])
def test_a_hook_record_from_any_time_is_taken_or_refused(home: Home, own_pane: str, time_ns: int):
    facts = HOOK_FACTS | {"event_id": uuid.uuid4().hex, "event_time_ns": time_ns, "pane_id": own_pane}
    facts["tmux"] = home.tmux_variables(own_pane)["TMUX"]
    answer = home.ask("POST", "/v1/events", json.dumps(facts).encode() + b"\n{}", HOOK)
    assert answer.status == 200 or (answer.status == 400 and answer.error["code"] == "E_EVENT_INVALID"), answer
    answer = home.ask("POST", "/v1/events", event(own_pane, "state.running", source="notify"))
    assert answer.status == 200, answer
    assert home.state_of(own_pane) != "None"


def test_one_bad_event_of_many_takes_no_other_with_it(home: Home, pane: str):
    before = home.health()["refused"]
    good = [event(pane) for _ in range(3)]
    bad = [event(pane, "state.asleep"), {"nonsense": True}, 17, event(pane, runtime_id="0" * 64)]
    answer = home.ask("POST", "/v1/events", {"events": [good[0], bad[0], good[1], *bad[1:], good[2]]})
    assert answer.status == 200
    results = answer.json["results"]
    assert [each["status"] == "refused" for each in results] == [False, True, False, True, True, True, False]
    codes = [each["error"]["code"] for each in results if each["status"] == "refused"]
    assert codes == ["E_EVENT_INVALID"] * 3 + ["E_RUNTIME_STALE"]
    assert {each["event_id"] for each in good} <= home.stored_ids()
    assert home.refused("E_RUNTIME_STALE") == before.get("E_RUNTIME_STALE", 0) + 1
    assert home.refused("E_EVENT_INVALID") == before.get("E_EVENT_INVALID", 0) + 3


def test_a_request_of_exactly_the_limit_is_taken(home: Home, pane: str):
    events = [event(pane, raw_payload="x" * 700_000) for _ in range(5)]
    body = json.dumps({"events": events}).encode()
    answer = home.ask("POST", "/v1/events", body + b" " * (MAX_BODY_BYTES - len(body)))
    assert answer.status == 200
    assert len(answer.json["results"]) == 5


def test_a_body_that_is_too_large_and_does_not_say_so(home: Home, goes_on):
    """Chunked, so that no Content-Length warns."""
    part = b"%x\r\n%s\r\n" % (65_536, b"x" * 65_536)
    with home.connect() as connection:
        connection.send(b"POST /v1/events HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(MAX_BODY_BYTES // 65_536 + 1):
                connection.send(part)
        except BrokenPipeError:
            # It need not take what it will not have; its answer is there all the same.
            pass
        answer = connection.answer()
    assert (answer.status, answer.error["code"]) == (413, "E_TOO_LARGE")
    goes_on("E_TOO_LARGE")


def test_a_body_that_claims_to_be_too_large_is_refused_before_it_comes(home: Home, goes_on):
    with home.connect() as connection:
        connection.send(b"POST /v1/events HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1))
        answer = connection.answer()
    assert (answer.status, answer.error["code"]) == (413, "E_TOO_LARGE")
    goes_on("E_TOO_LARGE")


def test_a_head_that_never_ends_is_given_up(home: Home, goes_on):
    began = time.monotonic()
    with home.connect() as connection:
        connection.send(b"POST /v1/events HTTP/1.1\r\nHost: a\r\n")
        answer = connection.answer()
        assert connection.is_ended()
    assert answer.error["code"] == "E_TIMEOUT"
    assert 4 < time.monotonic() - began < 10
    goes_on("E_TIMEOUT")


def test_a_body_that_never_ends_is_given_up(home: Home, goes_on):
    with home.connect() as connection:
        connection.send(request("POST", "/v1/events", event("%1"))[:-3])
        answer = connection.answer()
    assert answer.error["code"] == "E_TIMEOUT"
    goes_on("E_TIMEOUT")


def test_dripping_bytes_do_not_buy_more_time(home: Home, goes_on):
    """A byte now and then, which resets any timer that only knows silence."""
    with home.connect() as head, home.connect() as body:
        body.send(b"POST /v1/events HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
        head.send(b"GET /v1/health HTTP/1.1\r\n")
        began, before = time.monotonic(), home.refused("E_TIMEOUT")
        wait_until(lambda: not (drip(head, b"a") and drip(body, b"[")), "one of them to be given up")
        wait_until(lambda: home.refused("E_TIMEOUT") == before + 2, "both to be given up")
        assert time.monotonic() - began < 10
    goes_on("E_TIMEOUT", 2)


def drip(connection: Connection, byte: bytes) -> bool:
    try:
        connection.send(byte)
    except OSError:
        return False
    return True


def test_a_connection_that_says_nothing_is_closed_and_not_counted(home: Home):
    before = home.health()["refused"]
    with home.connect() as connection:
        assert connection.is_ended()
    assert home.health()["refused"] == before


def test_a_head_without_end_is_cut_off(home: Home, goes_on):
    with home.connect() as connection:
        connection.send(b"GET /v1/health HTTP/1.1\r\nX: " + b"y" * (HEAD_BYTES_LIMIT + 10))
        answer = connection.answer()
    assert (answer.status, answer.error["code"]) == (413, "E_TOO_LARGE")
    goes_on("E_TOO_LARGE")


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\x01\x02\x03",
        b"hello?\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET /v1/health HTTP/9.9\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\nBad Header: x\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT host:80 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_not_http_is_told_so(home: Home, goes_on, garbage: bytes):
    with home.connect() as connection:
        connection.send(garbage)
        answer = connection.answer()
        assert connection.is_ended()
    assert (answer.status, answer.error["code"]) == (400, "E_USAGE")
    assert "HTTP" in answer.error["message"]
    goes_on("E_USAGE")


def test_pipelined_requests_are_answered_in_order(home: Home, pane: str):
    kinds = ("state.running", "state.nonsense", "state.waiting_approval")
    events = [event(pane, kind) for kind in kinds]
    with home.connect() as connection:
        connection.send(
            request("POST", "/v1/events", events[0])
            + request("POST", "/v1/events", events[1])
            + request("GET", "/nowhere")
            + request("POST", "/v1/events", events[2])
            + request("GET", "/v1/panes")
        )
        answers = [connection.answer() for _ in range(5)]
    assert [answer.status for answer in answers] == [200, 400, 404, 200, 200]
    assert answers[0].json["event_id"] == events[0]["event_id"]
    assert answers[3].json["event_id"] == events[2]["event_id"]
    states = {item["identity"]["pane_id"]: item["state"] for item in answers[4].json["items"]}
    assert states[pane] == "waiting_approval"


def test_what_follows_a_request_cannot_break_into_its_answer(home: Home, pane: str):
    """Garbage right behind a stream: the stream ends, nothing else is written into it."""
    with home.connect() as connection:
        connection.send(request("GET", "/v1/watch"))
        connection.head()
        assert connection.json_line()["type"] == "snapshot"
        connection.send(b"\x00garbage")
        assert connection.is_ended()
    assert home.answering_pid()


def test_a_client_that_leaves_without_its_answer_harms_nobody(home: Home, pane: str, goes_on):
    for number in range(20):
        with home.connect() as connection:
            connection.send(request("POST", "/v1/events", event(pane)))
        with home.connect() as connection:
            connection.send(request("POST", "/v1/events", event(pane))[: -number - 1])
    goes_on("E_USAGE", 20)


def test_secrets_in_a_bad_event_reach_no_file(home: Home, pane: str):
    """The sentence quotes what was wrong, to who sent it and to nobody else."""
    secret = "sk-ant-api03-" + "Zx9" * 30
    for bad in (event(pane, source=secret), event(pane, f"state.{secret}"), event(pane, event_time=secret)):
        answer = home.ask("POST", "/v1/events", bad)
        assert answer.status == 400
    for path in home.state.rglob("*"):
        assert path.is_dir() or path.is_socket() or secret.encode() not in path.read_bytes()
