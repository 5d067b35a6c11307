"""The bridge as a process, at the end of its hopes."""

import json
import selectors
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from agtmux.bridge.wire import GREETING

PATIENCE = 20.0
# A bridge that soon gives up, and then never comes to an end with what it does about that.
PROGRAM = """
import sys, threading
from agtmux.bridge import run
from agtmux.bridge.local import Packaged

def given_up():
    print("given up", file=sys.stderr, flush=True)
    threading.Event().wait()

run._TRIES, run._FIRST_PAUSE = 2, 0.2
run.Bridge(sys.argv[1], Packaged(), given_up).run()
"""


@pytest.fixture
def bridge(short_tmp: Path):
    """One whose daemon goes while two answers are owed."""
    path = short_tmp / "daemon.sock"
    pipe = subprocess.PIPE
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(path))
        daemon.listen()
        daemon.settimeout(PATIENCE)
        command = [sys.executable, "-c", PROGRAM, str(path)]
        made = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
        try:
            connection, _ = daemon.accept()
            with connection:
                assert connection.recv(65_536) == GREETING
                path.unlink()
                connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
                ask(made, 1, "initialize")
                ask(made, 2, "tools/call")
                assert connection.recv(65_536)
            yield made
        finally:
            made.kill()
            made.communicate()


def ask(bridge: subprocess.Popen[bytes], number: int, method: str) -> None:
    line = {"jsonrpc": "2.0", "id": number, "method": method, "params": {"name": "list_agents", "arguments": {}}}
    assert bridge.stdin is not None
    bridge.stdin.write(json.dumps(line).encode() + b"\n")


def line_of(stream: IO[bytes] | None, limit: float) -> bytes:
    assert stream is not None
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        assert selector.select(limit), f"no line within {limit:.0f} seconds"
    return stream.readline()


def test_whoever_waits_is_answered_before_anything_is_done_about_a_daemon_that_is_gone(bridge):
    assert line_of(bridge.stderr, PATIENCE) == b"given up\n"
    # They are there already; the first needs no daemon.
    assert json.loads(line_of(bridge.stdout, 0.0))["id"] == 1
    told = json.loads(line_of(bridge.stdout, 0.0))
    assert told["id"] == 2 and "agtmux up" in told["result"]["content"][0]["text"]


def test_what_a_slow_daemon_leaves_unanswered_is_answered_at_the_end(short_tmp: Path) -> None:
    program = PROGRAM.replace("given_up).run()", "given_up, last_words=0.2).run()")
    lines = [{"jsonrpc": "2.0", "id": number, "method": method} for number, method in ((1, "initialize"), (2, "ping"))]
    call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "send_message", "arguments": {}}}
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(path := str(short_tmp / "daemon.sock"))
        daemon.listen()
        daemon.settimeout(PATIENCE)
        pipe = subprocess.PIPE
        made = subprocess.Popen([sys.executable, "-c", program, path], stdin=pipe, stdout=pipe, stderr=pipe)
        connection, _ = daemon.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
            text = "".join(json.dumps(line) + "\n" for line in [*lines, call])
            output, complaints = made.communicate(text.encode(), timeout=PATIENCE)
    told = [json.loads(line) for line in output.splitlines()]
    assert (sorted(each["id"] for each in told), made.returncode) == ([1, 2, 3], 0), complaints
    [refused] = [each["result"] for each in told if each["id"] == 3]
    assert refused["isError"] and refused["content"][0]["text"].startswith("E_DELIVERY_UNCERTAIN")
