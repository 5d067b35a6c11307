"""What is asked of a daemon when an answer is chosen, and what the user is told of what came of it."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agtmux import paths
from agtmux.domain.errors import AgtmuxError, ErrorCode
from AgtmuxBar import deeds
from AgtmuxBar.deeds import Deeds
from AgtmuxBar.model import answer
from AgtmuxBar.tree import Action
from desktop.builders import pane


class App:
    desktop = None

    def __init__(self):
        self.told = []

    def tell(self, title, text):
        self.told.append((title, text))


class Daemon:
    """Keeps what it is asked, and answers as it is told to: with an error or not, or hangs up on whoever asks."""

    def __init__(self, file: str) -> None:
        self.asked: list[tuple[str, dict]] = []
        self.error: AgtmuxError | None = None
        self.is_cut_off = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(file)
        self._socket.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as heard:
                first = heard.readline().split()
                if not first:
                    # Somebody who only looks whether it is there.
                    continue
                headers = dict(line.strip().split(b": ") for line in iter(heard.readline, b"\r\n"))
                self.asked.append((first[1].decode(), json.loads(heard.read(int(headers[b"Content-Length"])))))
                if self.is_cut_off:
                    continue
                status = 200 if self.error is None else self.error.http_status
                body = json.dumps({} if self.error is None else self.error.as_json()).encode()
                connection.sendall(b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))


@pytest.fixture
def daemon(short_tmp: Path, monkeypatch) -> Iterator[Daemon]:
    monkeypatch.setenv("AGTMUX_SOCKET", str(short_tmp / "s"))
    made = Daemon(paths.socket_path())
    yield made
    made.close()


def told(action: Action) -> list[tuple[str, str]]:
    app = App()
    Deeds(app).do(action)
    return app.told


@pytest.mark.parametrize("name", ["approve", "deny"])
def test_an_answer_goes_with_everything_that_was_shown(daemon, name):
    shown = pane(7, version=41, fingerprint="beef")
    assert told(answer(name, shown)) == []
    ((path, body),) = daemon.asked
    assert path == f"/v1/actions/{name}"
    assert body.pop("request_ref")
    assert body == {
        "actor": "bar",
        "ref": "pane:host/work/@1/%7",
        "if_runtime": shown["runtime_id"],
        "if_state": "waiting_approval",
        "if_state_version": 41,
        "if_dialog": "beef",
    }


def test_an_answer_to_what_nobody_saw_on_a_screen_names_no_dialog(daemon):
    told(answer("approve", pane(fingerprint=None)))
    ((_, body),) = daemon.asked
    assert "if_dialog" not in body and (body["if_state"], body["if_state_version"]) == ("waiting_approval", 3)


def test_each_choice_is_a_request_of_its_own(daemon):
    for _ in range(2):
        told(answer("approve", pane()))
    first, second = (body.pop("request_ref") for _, body in daemon.asked)
    assert first != second


@pytest.mark.parametrize(
    ("name", "code", "result", "title"),
    [
        ("approve", ErrorCode.PRECONDITION_FAILED, "refused", "Not approved"),
        ("deny", ErrorCode.RUNTIME_STALE, "refused", "Not denied"),
        ("approve", ErrorCode.TARGET_UNREACHABLE, "failed", "Not approved"),
        # The daemon knows best.
        ("approve", ErrorCode.TIMEOUT, "failed", "Not approved"),
        ("approve", ErrorCode.DELIVERY_UNCERTAIN, "uncertain", "Perhaps approved"),
        ("deny", ErrorCode.TARGET_UNREACHABLE, "uncertain", "Perhaps denied"),
        # It does not say.
        ("approve", ErrorCode.DELIVERY_UNCERTAIN, None, "Perhaps approved"),
        ("deny", ErrorCode.TIMEOUT, None, "Perhaps denied"),
        ("deny", ErrorCode.INTERNAL, None, "Perhaps denied"),
        ("attach", ErrorCode.TIMEOUT, None, "Not attached"),
    ],
)
def test_what_may_have_been_done_is_not_told_as_not_done(daemon, name, code, result, title):
    daemon.error = AgtmuxError(code, "look at it", {} if result is None else {"result_code": result})
    assert told(answer(name, pane())) == [(title, "Look at it.")]


def test_a_daemon_that_does_not_come_to_answer_may_have_done_it(daemon):
    daemon.is_cut_off = True
    ((title, _),) = told(answer("approve", pane()))
    assert title == "Perhaps approved"


def test_a_daemon_that_takes_too_long_may_have_done_it(short_tmp, monkeypatch):
    monkeypatch.setenv("AGTMUX_SOCKET", str(short_tmp / "s"))
    monkeypatch.setattr(deeds, "_TIME_LIMIT", 0.2)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as hangs:
        hangs.bind(paths.socket_path())
        hangs.listen()
        ((title, text),) = told(answer("deny", pane()))
    assert title == "Perhaps denied" and "timed out" in text


def test_a_daemon_that_is_not_there_has_done_nothing(short_tmp, monkeypatch):
    monkeypatch.setenv("AGTMUX_SOCKET", str(short_tmp / "s"))
    ((title, text),) = told(answer("approve", pane()))
    assert title == "Not approved" and "not running" in text
