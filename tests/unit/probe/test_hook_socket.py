"""The door for hooks beside a tmux server: hands on what comes, for its owner alone, and leaves nothing."""

import socket
import stat
import threading
from pathlib import Path

import pytest

from agtmux.probe.hook_socket import MAX_BODY, HookSocket, places


def post(path: Path, head: str, body: bytes = b"") -> str:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(10)
        caller.connect(str(path))
        caller.sendall(head.encode() + b"\r\n\r\n" + body)
        return caller.recv(4096).decode().split("\r\n")[0]


def never(kind: str, body: str, lineage: list[int] | None) -> bool:
    raise AssertionError("nobody was to be heard")


@pytest.fixture
def heard():
    return []


@pytest.fixture
def door(short_tmp, heard):
    opened = HookSocket(
        str(short_tmp / "a" / "b" / "agtmuxd.sock"), lambda kind, body, _: heard.append((kind, body)) is None
    )
    yield Path(opened.path)
    opened.close()


def test_what_a_hook_says_is_handed_on(door, heard):
    body = '{"v":1}\n{"prompt":"größe"}'.encode()
    head = f"POST /v1/events HTTP/1.1\r\nContent-Type: x/y\r\nContent-Length: {len(body)}"
    assert post(door, head, body) == "HTTP/1.1 202 Accepted"
    assert heard == [("x/y", body.decode())]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /v1/panes HTTP/1.1\r\nContent-Length: 0", "404"),
        ("POST /v1/actions/send HTTP/1.1\r\nContent-Length: 0", "404"),
        ("POST /v1/events HTTP/1.1", "400"),
        ("POST /v1/events HTTP/1.1\r\nContent-Length: -1", "400"),
        ("POST /v1/events HTTP/1.1\r\nContent-Length: ²", "400"),
        (f"POST /v1/events HTTP/1.1\r\nContent-Length: {'9' * 5_000}", "400"),
        (f"POST /v1/events HTTP/1.1\r\nContent-Length: {MAX_BODY + 1}", "413"),
    ],
)
def test_anything_else_is_refused(door, heard, head, status):
    assert post(door, head).split()[1] == status
    assert heard == []


def test_it_is_for_its_owner_alone(door):
    assert stat.S_IMODE(door.stat().st_mode) == 0o600
    assert stat.S_IMODE(door.parent.stat().st_mode) == 0o700


def test_the_socket_and_the_folders_made_for_it_go(short_tmp, heard):
    (short_tmp / "kept").mkdir()
    opened = HookSocket(str(short_tmp / "kept" / "made" / "x.sock"), never)
    opened.close()
    assert [path.name for path in short_tmp.rglob("*")] == ["kept"]


def test_a_folder_that_somebody_else_uses_by_then_stays(short_tmp, heard):
    opened = HookSocket(str(short_tmp / "made" / "x.sock"), never)
    (short_tmp / "made" / "theirs").touch()
    opened.close()
    assert [path.name for path in (short_tmp / "made").iterdir()] == ["theirs"]


def test_a_place_that_is_taken_is_left_alone(door, heard):
    with pytest.raises(FileExistsError):
        HookSocket(str(door), never)
    assert post(door, "POST /v1/events HTTP/1.1\r\nContent-Length: 0") == "HTTP/1.1 202 Accepted"


def test_a_socket_that_nobody_answers_on_is_replaced(short_tmp, heard):
    path = short_tmp / "x.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    opened = HookSocket(str(path), lambda kind, *_: heard.append(kind) is None)
    try:
        assert post(path, "POST /v1/events HTTP/1.1\r\nContent-Length: 0") == "HTTP/1.1 202 Accepted"
    finally:
        opened.close()
    assert not path.exists()


def test_one_that_took_the_place_meanwhile_is_not_removed(short_tmp, heard):
    path = short_tmp / "x.sock"
    first = HookSocket(str(path), never)
    path.unlink()
    second = HookSocket(str(path), never)
    first.close()
    assert path.exists()
    second.close()


def test_hooks_are_awaited_wherever_they_may_look(short_tmp):
    home = {"HOME": "/nowhere"}
    (short_tmp / "run").mkdir()
    assert places({**home, "AGTMUX_SOCKET": "/x/y.sock"}) == ["/x/y.sock"]
    assert places({**home, "XDG_RUNTIME_DIR": str(short_tmp / "run"), "XDG_STATE_HOME": "/s"}) == [
        f"{short_tmp}/run/agtmux/agtmuxd.sock",
        "/s/agtmux/agtmuxd.sock",
    ]
    assert places({**home, "XDG_RUNTIME_DIR": "/not/there", "AGTMUX_STATE_DIR": "/t"}) == ["/t/agtmuxd.sock"]


def test_a_hook_keeps_what_nobody_may_be_there_to_take(short_tmp):
    opened = HookSocket(str(short_tmp / "x.sock"), lambda *_: False)
    try:
        assert post(Path(opened.path), "POST /v1/events HTTP/1.1\r\nContent-Length: 0").split()[1] == "503"
    finally:
        opened.close()


def test_a_file_that_is_no_socket_is_left_alone(short_tmp):
    (short_tmp / "x.sock").write_text("mine")
    with pytest.raises(FileExistsError):
        HookSocket(str(short_tmp / "x.sock"), never)
    assert (short_tmp / "x.sock").read_text() == "mine"


def test_no_thread_left_is_a_door_that_cannot_be_opened_yet(short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    path = str(short_tmp / "folder" / "socket")
    with monkeypatch.context() as patched, pytest.raises(OSError, match="cannot be listened for"):
        patched.setattr(threading.Thread, "start", refuse)
        HookSocket(path, lambda *_: True)
    # Nothing of it is in the way of the next try.
    assert not (short_tmp / "folder").exists()
    HookSocket(path, lambda *_: True).close()
