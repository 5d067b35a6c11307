"""SIGTERM and SIGINT end the daemon in order: streams with `reset`, requests with an answer, nothing left behind."""

import contextlib
import re
import resource
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from support.home import COMMANDS, PATIENCE, Home, event, wait_until
from support.http import Connection, request

# Whoever logs out waits for this long at most.
SECONDS_MAX = 6.0
SIGNALS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)


def watching(home: Home) -> Connection:
    stream = home.connect()
    stream.send(request("GET", "/v1/watch"))
    status, headers = stream.head()
    assert (status, headers["content-type"]) == (200, "application/x-ndjson")
    assert stream.json_line()["type"] == "snapshot"
    return stream


def ended_in_order(home: Home, daemon, number: int = signal.SIGTERM, within: float = SECONDS_MAX) -> None:
    began = time.monotonic()
    complaints = home.end(daemon, number)
    seconds = time.monotonic() - began
    assert complaints == ""
    assert not home.socket.exists()
    assert home.lock_holder() is None
    assert home.lock.read_text() == ""
    assert seconds < within
    assert [line for line in home.log_lines() if line["level"] == "error"] == []


@SIGNALS
def test_stream_ends_with_reset_and_the_daemon_with_0(home: Home, number: int):
    daemon = home.start()
    with watching(home) as stream:
        ended_in_order(home, daemon, number)
        last = stream.json_line()
        assert last["type"] == "reset"
        assert last["sequence"] == 2
        assert stream.json_line() is None
        assert stream.is_ended()
    # And it can be started again, with the state it had.
    home.end(home.start())


@SIGNALS
def test_fifty_streams_all_end_with_reset(home: Home, number: int):
    pane = home.pane()
    daemon = home.start()
    wait_until(lambda: pane in home.panes(), "the pane")
    with contextlib.ExitStack() as held:
        streams = [held.enter_context(watching(home)) for _ in range(50)]
        assert home.health()["streams"] == 50
        assert home.ask("POST", "/v1/events", event(pane, "state.running")).status == 200
        for stream in streams:
            assert stream.json_line()["type"] == "delta"
        ended_in_order(home, daemon, number)
        for stream in streams:
            lines = list(iter(stream.json_line, None))
            assert lines[-1]["type"] == "reset"


def test_streams_that_were_left_are_forgotten(home: Home):
    home.start()
    with watching(home), watching(home):
        assert home.health()["streams"] == 2
    wait_until(lambda: home.health()["streams"] == 0, "the daemon to notice")


@SIGNALS
def test_idle_connections_do_not_hold_it_up(home: Home, number: int):
    daemon = home.start()
    with home.connect() as used, home.connect() as fresh:
        assert used.ask("GET", "/v1/health").status == 200
        ended_in_order(home, daemon, number, within=3.0)
        assert used.is_ended() and fresh.is_ended()


def test_half_a_request_gets_a_clean_error_and_does_not_hold_it_up(home: Home):
    daemon = home.start()
    whole = request("POST", "/v1/events", event("%1"))
    with home.connect() as in_body, home.connect() as in_head:
        in_body.send(whole[:-5])
        in_head.send(b"POST /v1/eve")
        assert home.health()["status"] == "ok"
        ended_in_order(home, daemon, within=3.0)
        error = in_body.answer().error
        assert error["code"] == "E_DAEMON_UNAVAILABLE"
        assert "stopping" in error["message"]
        assert in_head.is_ended()


def test_a_reader_that_does_not_read_does_not_hold_it_up_for_long(home: Home):
    panes = [home.pane() for _ in range(3)]
    daemon = home.start()
    wait_until(lambda: set(panes) <= set(home.panes()), "the panes")
    with socket.socket(socket.AF_UNIX) as deaf, home.connect() as producer:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(str(home.socket))
        deaf.sendall(request("GET", "/v1/watch"))
        for number in range(400):
            payload = {"attention": {"kind": "question", "summary": f"{number} " + "x" * 190, "detail": "y" * 1_900}}
            asked = event(panes[number % 3], "state.waiting_input", raw_payload=payload)
            assert producer.ask("POST", "/v1/events", asked).status == 200
        began = time.monotonic()
        daemon.send_signal(signal.SIGTERM)
        daemon.communicate(timeout=PATIENCE)
        assert daemon.returncode == 0
        assert time.monotonic() - began < SECONDS_MAX
    assert not home.socket.exists()


@SIGNALS
def test_requests_under_way_get_their_answer_or_none_and_what_was_answered_is_kept(home: Home, number: int):
    pane = home.pane()
    daemon = home.start()
    wait_until(lambda: pane in home.panes(), "the pane")
    acknowledged: set[str] = set()
    odd: list[object] = []
    ready = threading.Barrier(5)

    def produce() -> None:
        ready.wait()
        with contextlib.suppress(OSError), home.connect() as connection:
            while True:
                sent = [event(pane) for _ in range(10)]
                answer = connection.ask("POST", "/v1/events", sent)
                if answer.status == 200:
                    acknowledged.update(each["event_id"] for each in answer.json["results"])
                elif answer.error["code"] != "E_DAEMON_UNAVAILABLE":
                    odd.append(answer)

    producers = [threading.Thread(target=produce) for _ in range(4)]
    for producer in producers:
        producer.start()
    ready.wait()
    wait_until(lambda: len(acknowledged) > 200, "load")
    ended_in_order(home, daemon, number)
    for producer in producers:
        producer.join(PATIENCE)
    assert odd == []
    assert acknowledged <= home.stored_ids()
    assert home.query("PRAGMA integrity_check") == [("ok",)]


@SIGNALS
@pytest.mark.parametrize("moment", ["with the lock", "with the socket"])
def test_a_signal_during_the_start_ends_it_in_order(home: Home, number: int, moment: str):
    daemon = home.spawn(COMMANDS / "agtmuxd")
    awaited = home.lock if moment == "with the lock" else home.socket
    wait_until(lambda: awaited.exists() and awaited.stat().st_size >= 0, moment)
    daemon.send_signal(number)
    _, complaints = daemon.communicate(timeout=PATIENCE)
    assert "Traceback" not in complaints
    if moment == "with the socket":
        assert daemon.returncode == 0
    assert not home.socket.exists()
    assert home.lock_holder() is None
    home.end(home.start())


# Interrupts the daemon while asyncio makes its event loop.
INTERRUPTED = """
import os, signal, sys
from asyncio import selector_events
from agtmux.daemon import main
made = selector_events.BaseSelectorEventLoop._make_self_pipe
def interrupted(loop):
    os.kill(os.getpid(), signal.SIGINT)
    made(loop)
selector_events.BaseSelectorEventLoop._make_self_pipe = interrupted
sys.exit(main())
"""


def test_an_interrupt_while_its_event_loop_is_made_ends_it_in_order(home: Home):
    daemon = home.spawn(sys.executable, "-c", INTERRUPTED)
    _, complaints = daemon.communicate(timeout=PATIENCE)
    assert (daemon.returncode, complaints) == (0, "")
    assert not home.socket.exists() and home.lock_holder() is None


def test_a_second_signal_changes_nothing(home: Home):
    daemon = home.start()
    with watching(home):
        daemon.send_signal(signal.SIGTERM)
        daemon.send_signal(signal.SIGINT)
        _, complaints = daemon.communicate(timeout=PATIENCE)
    assert (daemon.returncode, complaints) == (0, "")
    assert not home.socket.exists()


def test_its_log_says_when_it_began_and_when_it_stopped(home: Home):
    home.end(home.start())
    messages = [line["message"] for line in home.log_lines() if line["logger"] == "agtmux.daemon"]
    assert len(messages) == 2
    assert re.fullmatch(rf"agtmuxd \S+ listens on {re.escape(str(home.socket))}", messages[0])
    assert messages[1] == "agtmuxd stops"


def test_more_connections_than_it_has_descriptors_for_do_not_end_it(home: Home):
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    daemon = home.start(preexec_fn=few)
    with contextlib.ExitStack() as held:
        for _ in range(100):
            held.enter_context(home.connect())
    assert wait_until(home.answering_pid, "an answer after the flood") == daemon.pid
    daemon.send_signal(signal.SIGTERM)
    daemon.communicate(timeout=PATIENCE)
    assert daemon.returncode == 0
    assert not Path(home.socket).exists()
