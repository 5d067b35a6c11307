"""Nothing is sent to another user, and no other user can put anything in the place of our folders: with a real one."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agtmux.bridge.compose import compose as compose_bridge
from agtmux.hook.compose import compose as compose_hook
from support.home import COMMANDS, Home
from support.hook import install, patient

OTHER = 65_533
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="becoming a second user takes root")
# Becomes another user, does as told, and prints every byte that anyone sends to the socket.
INTRUDER = """
import os, socket, sys, threading
user, path, swapped = int(sys.argv[1]), sys.argv[2], sys.argv[3]
os.setgroups([]), os.setgid(user), os.setuid(user), os.umask(0)
try:
    if swapped:
        os.rename(swapped, swapped + ".gone")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(16)
except OSError as error:
    sys.exit("refused: %s" % error)
def serve():
    while True:
        peer, _ = listener.accept()
        while data := peer.recv(65536):
            os.write(1, data)
            peer.sendall(b"HTTP/1.1 202 Accepted\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n")
            peer.shutdown(socket.SHUT_RDWR)
threading.Thread(target=serve, daemon=True).start()
os.write(2, b"ready\\n")
sys.stdin.read()
"""


class Intruder:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def received(self) -> bytes:
        out, _ = self._process.communicate(timeout=20)
        return out


@contextlib.contextmanager
def intruder(path: Path, swapped: Path | str = "") -> Iterator[Intruder]:
    words = [sys.executable, "-I", "-c", INTRUDER, str(OTHER), str(path), str(swapped)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == b"ready\n", process.stderr.read()
            yield Intruder(process)
        finally:
            process.kill()


@pytest.fixture
def open_home(home: Home) -> Home:
    """A home whose ~/.local/state anybody may write to, as another program made it under umask 000."""
    home.folder.chmod(0o755)
    for folder in (".local", ".local/state", ".local/state/agtmux"):
        (home.folder / folder).mkdir()
        (home.folder / folder).chmod(0o777 if folder == ".local/state" else 0o755)
    for name in ("AGTMUX_STATE_DIR", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "AGTMUX_SOCKET"):
        home.env.pop(name, None)
    home.state = home.folder / ".local/state/agtmux"
    home.socket = home.state / "agtmuxd.sock"
    return home


@as_root
def test_under_umask_000_another_user_can_put_nothing_in_the_place_of_the_state(home: Home):
    home.folder.chmod(0o755)
    home.env.pop("AGTMUX_STATE_DIR")
    home.state = home.folder / ".local/state/agtmux"
    home.socket, home.lock = home.state / "agtmuxd.sock", home.state / "agtmuxd.lock"
    home.start(preexec_fn=lambda: os.umask(0))
    for folder in (".local", ".local/state", ".local/state/agtmux"):
        assert (home.folder / folder).stat().st_mode & 0o777 == 0o700
    words = [sys.executable, "-I", "-c", INTRUDER, str(OTHER), str(home.socket), str(home.state)]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=20)
    assert done.stderr.startswith("refused: ")


@as_root
def test_the_hook_sends_and_spools_nothing_where_another_user_has_swapped_the_state(open_home: Home, tmp_path: Path):
    hook = install(tmp_path / "bin", patient(compose_hook()))
    payload = b'{"prompt": "the whole payload"}'
    with intruder(open_home.socket, open_home.state) as other:
        done = subprocess.run([hook, "claude", "Stop"], env=open_home.env, input=payload, capture_output=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert other.received() == b""
    assert [path.name for path in open_home.state.iterdir()] == ["agtmuxd.sock"], "nothing was left for the other user"


@as_root
@pytest.mark.parametrize("words", [("list",), ("status",), ("send", "%1", "--text", "hello")])
def test_a_command_sends_nothing_to_another_users_socket_and_says_so(open_home: Home, words: tuple[str, ...]):
    with intruder(open_home.socket, open_home.state) as other:
        done = open_home.run(*words)
        assert other.received() == b""
    assert done.returncode == 2, done
    assert "E_CONFIG" in done.stderr
    assert "other users may write to" in done.stderr
    assert "chmod go-w" in done.stderr


@as_root
@pytest.mark.parametrize("is_composed", [False, True])
def test_a_bridge_sends_nothing_to_another_users_socket(open_home: Home, tmp_path: Path, is_composed: bool):
    request = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    bridge = install(tmp_path / "bin", compose_bridge()) if is_composed else COMMANDS / "agtmux-mcp"
    with intruder(open_home.socket, open_home.state) as other:
        words = [bridge, "--socket", str(open_home.socket)]
        line = json.dumps(request).encode() + b"\n"
        done = subprocess.run(words, env=open_home.env, input=line, capture_output=True, timeout=60)
        assert json.loads(done.stdout)["result"] == {}, done
        assert other.received() == b""


@as_root
def test_a_listener_of_another_user_behind_a_file_of_ours_gets_nothing(home: Home, tmp_path: Path):
    """As if the folder had been replaced between the look at it and the connection."""
    home.folder.chmod(0o711)
    shared = home.folder / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    path = shared / "s"
    hook = install(tmp_path / "bin", patient(compose_hook()))
    with intruder(path) as other:
        shared.chmod(0o700)
        os.chown(path, 0, 0)
        path.chmod(0o600)
        env = home.env | {"AGTMUX_SOCKET": str(path)}
        subprocess.run([hook, "claude", "Stop"], env=env, input=b"{}", check=True)
        refused = home.run("list", env={"AGTMUX_SOCKET": str(path)})
        assert other.received() == b""
    assert f"belongs to user {OTHER}" in refused.stderr
    assert (home.state / "spool" / "hook.jsonl").exists(), "the event waits in a spool of our own"


@as_root
def test_a_daemon_does_not_start_where_another_user_could_swap_its_folder(open_home: Home):
    done = open_home.run(command="agtmuxd")
    assert done.returncode == 2
    assert f"other users may write to {open_home.folder}/.local/state" in done.stderr


@pytest.mark.parametrize("mode", [0o666, 0o646, 0o602])
def test_settings_that_others_may_write_are_refused(home: Home, mode: int):
    home.configure("[log]\nlevel = 'debug'\n")
    (home.folder / "config" / "config.toml").chmod(mode)
    done = home.run(command="agtmuxd")
    assert done.returncode == 2
    assert "config.toml is not read: other users may write to" in done.stderr


@as_root
def test_settings_of_another_user_are_refused(home: Home):
    home.configure("")
    os.chown(home.folder / "config" / "config.toml", OTHER, OTHER)
    assert f"belongs to user {OTHER}" in home.run(command="agtmuxd").stderr
