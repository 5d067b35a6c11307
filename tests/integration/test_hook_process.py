"""agtmux-hook as agents meet it: a real process, a real Unix socket, every way in which a daemon can fail.

Test machines are noisy. So what becomes of an event is tested with a `hook` whose clock is slower, and that
an agent never waits with a `prompt_hook` as it is, against a generous bound. The true figures are measured by
tests/bench/bench_hook.py.
"""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agtmux.hook import compose as compose_module
from agtmux.hook.compose import compose, script
from agtmux.hook.spool_reader import drain

SECONDS_MAX = 2.0
PATIENCE = {"STDIN_UNTIL": 0.7, "ANSWER_UNTIL": 1.5, "SPOOL_UNTIL": 40, "EXIT_AT": 50}
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
PAYLOAD = b'{"session_id": "s1", "prompt": "h\xc3\xa9llo"}'
SECRET = "sk-ant-api03-" + "Zx9" * 30
BASE_PYTHON = Path(sys._base_executable).resolve()
OLDER_AND_NEWER = [
    python
    for version in range(8, 15)
    for python in sorted(Path.home().glob(f".pyenv/versions/3.{version}.*/bin/python3"))[-1:]
]


def status(code: int) -> bytes:
    return b"HTTP/1.1 %d Whatever\r\nContent-Length: 0\r\n\r\n" % code


@dataclass
class Request:
    head: bytes
    meta: dict
    payload: bytes


@dataclass
class Daemon:
    """Stands in for agtmuxd: keeps each request and sends `answer`, or never answers if that is None."""

    path: Path
    answer: bytes | None = ACCEPTED
    reads_body: bool = True
    seconds_per_byte: float = 0
    requests: list[Request] = field(default_factory=list)
    has_request: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def serving(self) -> Iterator["Daemon"]:
        with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as peers:
            listener.bind(str(self.path))
            listener.listen(16)
            thread = threading.Thread(target=self._serve, args=(listener, peers))
            thread.start()
            try:
                yield self
            finally:
                listener.shutdown(socket.SHUT_RDWR)
                thread.join()

    def _serve(self, listener: socket.socket, peers: contextlib.ExitStack) -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            if self.reads_body:
                self._receive(peer)
            if self.answer is None:
                peers.enter_context(peer)
                continue
            with peer, contextlib.suppress(OSError):
                if self.seconds_per_byte:
                    for byte in self.answer:
                        time.sleep(self.seconds_per_byte)
                        peer.sendall(bytes([byte]))
                peer.sendall(self.answer)

    def _receive(self, peer: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            chunk = peer.recv(65536)
            if not chunk:
                return
            head += chunk
        head, _, body = head.partition(b"\r\n\r\n")
        length = int(re.search(rb"Content-Length: (\d+)", head)[1])
        while len(body) < length:
            chunk = peer.recv(1 << 20)
            if not chunk:
                return
            body += chunk
        meta, _, payload = body.partition(b"\n")
        self.requests.append(Request(head, json.loads(meta), payload))
        self.has_request.set()


@dataclass
class Hook:
    """An installed agtmux-hook, and the environment an agent would run it in."""

    command: Path
    env: dict[str, str]
    state_dir: Path

    def run(self, *args: str | bytes, stdin: bytes | int | None = PAYLOAD, command: Path | None = None) -> float:
        """Run it as an agent would and check what holds whatever happens. Returns the seconds it took."""
        given = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
        started = time.monotonic()
        done = subprocess.run([command or self.command, *args], env=self.env, capture_output=True, timeout=60, **given)
        seconds = time.monotonic() - started
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        return seconds

    def start(self, *args: str, stdin: int = subprocess.PIPE) -> subprocess.Popen:
        pipe = subprocess.PIPE
        return subprocess.Popen([self.command, *args], env=self.env, stdin=stdin, stdout=pipe, stderr=pipe)

    def spooled(self) -> list[dict]:
        return drain(self.state_dir).records


def install(folder: Path, text: str, python: Path | None = BASE_PYTHON) -> Path:
    folder.mkdir(parents=True)
    command = folder / "agtmux-hook"
    command.write_text(text, "utf-8")
    command.chmod(0o755)
    if python:
        (folder / "python3").symlink_to(python)
    return command


def sources() -> dict[str, str]:
    folder = Path(compose_module.__file__).parent
    return {
        "send": (folder / "send.py").read_text("utf-8"),
        "spool": (folder / "spool.py").read_text("utf-8"),
        "redact": (folder.parent / "domain" / "redact.py").read_text("utf-8"),
    }


def patient(text: str) -> str:
    for name, seconds in PATIENCE.items():
        text, found = re.subn(rf"(?m)^{name} = .*", f"{name} = {seconds}", text)
        assert found == 1
    return text


@pytest.fixture
def hook(tmp_path, short_tmp):
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AGTMUX_STATE_DIR": str(tmp_path / "state"),
        "AGTMUX_SOCKET": str(short_tmp / "s"),
        "TMUX_PANE": "%7",
        "TMUX": "/tmp/tmux-0/default,1,0",
    }
    return Hook(install(tmp_path / "bin", patient(compose())), env, tmp_path / "state")


@pytest.fixture
def prompt_hook(hook):
    hook.command.write_text(compose(), "utf-8")
    return hook


@pytest.fixture
def daemon(hook):
    with Daemon(Path(hook.env["AGTMUX_SOCKET"])).serving() as daemon:
        yield daemon


def test_event_reaches_the_daemon_to_the_letter(hook, daemon):
    before = time.time_ns()
    hook.run("claude", "UserPromptSubmit")
    (request,) = daemon.requests
    assert request.head.split(b"\r\n") == [
        b"POST /v1/events HTTP/1.1",
        b"Host: agtmux",
        b"Content-Type: application/vnd.agtmux.hook",
        request.head.split(b"\r\n")[3],
        b"Connection: close",
    ]
    assert request.payload == PAYLOAD
    meta = request.meta
    assert before <= meta.pop("event_time_ns") <= time.time_ns()
    assert re.fullmatch("[0-9a-f]{32}", meta.pop("event_id"))
    assert meta.pop("pid") > 1
    assert meta == {
        "v": 1,
        "agent": "claude",
        "event": "UserPromptSubmit",
        "pane_id": "%7",
        "tmux": "/tmp/tmux-0/default,1,0",
        # No shell stays in between: what the daemon looks up is the agent itself.
        "ppid": os.getpid(),
        "payload_bytes": len(PAYLOAD),
    }
    assert not hook.state_dir.exists()


def test_outside_tmux_there_is_no_pane(hook, daemon):
    del hook.env["TMUX"], hook.env["TMUX_PANE"]
    hook.run("claude", "Stop")
    assert (daemon.requests[0].meta["pane_id"], daemon.requests[0].meta["tmux"]) == (None, None)


@pytest.mark.parametrize("code", [200, 202, 204])
def test_accepted_events_are_not_spooled(hook, daemon, code):
    daemon.answer = status(code)
    hook.run("claude", "Stop")
    assert len(daemon.requests) == 1
    assert hook.spooled() == []


@pytest.mark.parametrize("code", [400, 413])
def test_refused_events_are_not_spooled(hook, daemon, code):
    daemon.answer = status(code)
    hook.run("claude", "Stop")
    assert hook.spooled() == []


def test_refused_before_the_body_was_read_is_refused(hook, daemon):
    daemon.answer = status(413)
    daemon.reads_body = False
    hook.run("claude", "PostToolUse", stdin=b"x" * 800_000)
    assert hook.spooled() == []


@pytest.mark.parametrize(
    "answer",
    [
        None,
        b"",
        b"HTTP/1.1",
        b"\x00\xff garbage instead of an answer\r\n",
        b"HTTP/1.1 2xx Nonsense\r\n\r\n",
        b"RTSP/1.0 200 OK\r\n\r\n",
        status(100),
        status(302),
        status(404),
        status(500),
        status(503),
    ],
)
def test_event_is_spooled_once_when_the_daemon_fails(hook, daemon, answer):
    daemon.answer = answer
    hook.run("claude", "Stop")
    (record,) = hook.spooled()
    (request,) = daemon.requests
    assert record == request.meta | {"payload": json.loads(PAYLOAD)}


def test_event_is_spooled_once_when_nobody_listens(hook):
    hook.run("claude", "Stop")
    (record,) = hook.spooled()
    assert (record["agent"], record["event"], record["payload"]) == ("claude", "Stop", json.loads(PAYLOAD))


def test_event_is_spooled_when_the_socket_is_stale(hook):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(hook.env["AGTMUX_SOCKET"])
    hook.run("claude", "Stop")
    assert len(hook.spooled()) == 1


@pytest.mark.parametrize("size", [10, 800_000])
def test_event_is_spooled_when_the_daemon_never_accepts(hook, size):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(hook.env["AGTMUX_SOCKET"])
        listener.listen(8)
        hook.run("claude", "Stop", stdin=json.dumps("x" * size).encode())
        assert len(hook.spooled()) == 1


def test_event_is_spooled_when_the_backlog_is_full(hook):
    with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as waiting:
        listener.bind(hook.env["AGTMUX_SOCKET"])
        listener.listen(0)
        with contextlib.suppress(OSError):
            for _ in range(200):
                client = waiting.enter_context(socket.socket(socket.AF_UNIX))
                client.settimeout(0.01)
                client.connect(hook.env["AGTMUX_SOCKET"])
        hook.run("claude", "Stop")
    assert len(hook.spooled()) == 1


def test_event_is_spooled_when_the_socket_path_is_too_long(hook):
    hook.env["AGTMUX_SOCKET"] = "/tmp/" + "x" * 300
    hook.run("claude", "Stop")
    assert len(hook.spooled()) == 1


def test_no_daemon_does_not_hold_the_agent(prompt_hook):
    assert prompt_hook.run("claude", "Stop") < SECONDS_MAX


def test_a_silent_daemon_does_not_hold_the_agent(prompt_hook, daemon):
    daemon.answer = None
    assert prompt_hook.run("claude", "Stop") < SECONDS_MAX


def test_an_answer_byte_by_byte_is_not_waited_for(hook, daemon):
    # Each byte comes in time; the status is complete after five seconds.
    daemon.seconds_per_byte = 0.4
    hook.run("claude", "Stop")
    assert len(hook.spooled()) == 1


def test_a_daemon_that_does_not_read_does_not_hold_the_agent(prompt_hook, daemon):
    daemon.answer, daemon.reads_body = None, False
    assert prompt_hook.run("claude", "Stop", stdin=b"x" * 800_000) < SECONDS_MAX


def test_a_locked_spool_does_not_hold_the_agent(prompt_hook):
    path = prompt_hook.state_dir / "spool" / "hook.jsonl"
    path.parent.mkdir(parents=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert prompt_hook.run("claude", "Stop") < SECONDS_MAX


def test_stdin_that_never_closes_does_not_hold_the_agent(prompt_hook):
    read_end, write_end = os.pipe()
    try:
        assert prompt_hook.run("claude", "Stop", stdin=read_end) < SECONDS_MAX
    finally:
        os.close(read_end)
        os.close(write_end)


@pytest.mark.parametrize("redact", ["while True: pass\n", "import time\ntime.sleep(60)\n"])
def test_slow_redaction_does_not_hold_the_agent(prompt_hook, redact):
    prompt_hook.command.write_text(script(**(sources() | {"redact": redact})), "utf-8")
    assert prompt_hook.run("claude", "Stop") < SECONDS_MAX


@pytest.mark.parametrize("args", [(), ("claude",), ("",)])
def test_bad_arguments_are_no_reason_to_fail(hook, daemon, args):
    hook.run(*args)
    assert daemon.requests == []
    assert not hook.state_dir.exists()


def test_payload_may_be_the_third_argument(hook, daemon):
    # Codex's notify. Its stdin is whatever Codex has, and must not be waited for.
    read_end, write_end = os.pipe()
    try:
        hook.run("codex", "notify", '{"type": "agent-turn-complete"}', stdin=read_end)
    finally:
        os.close(read_end)
        os.close(write_end)
    assert daemon.requests[0].payload == b'{"type": "agent-turn-complete"}'


@pytest.mark.parametrize("payload", [b"", b"\xff\xfe\x00 not UTF-8\n", b"\n\n", b"x" * 900 * 1024])
def test_payload_arrives_as_it_is(hook, daemon, payload):
    hook.run("claude", "Stop", stdin=payload)
    (request,) = daemon.requests
    assert request.payload == payload
    assert request.meta["payload_bytes"] == len(payload)
    assert "omitted_bytes" not in request.meta


def test_a_payload_of_two_megabytes_is_left_out(hook, daemon):
    hook.run("claude", "PostToolUse", stdin=b"x" * 2_000_000)
    (request,) = daemon.requests
    assert request.payload == b""
    assert (request.meta["payload_bytes"], request.meta["omitted_bytes"]) == (0, 2_000_000)


def test_a_payload_of_two_megabytes_is_left_out_of_the_spool(hook):
    hook.run("claude", "PostToolUse", stdin=b"x" * 2_000_000)
    (record,) = hook.spooled()
    assert (record["payload"], record["omitted_bytes"]) == (None, 2_000_000)


def test_arguments_that_are_not_utf_8_are_replaced(hook, daemon):
    hook.env["TMUX_PANE"] = b"%\xff".decode("utf-8", "surrogateescape")
    hook.run(b"cl\xffaude", 'say "hé"\n\\')
    meta = daemon.requests[0].meta
    assert (meta["agent"], meta["event"], meta["pane_id"]) == ("cl\ufffdaude", 'say "hé"\n\\', "%\ufffd")


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8", "no_SUCH.locale"])
def test_arguments_survive_any_locale(hook, daemon, locale):
    hook.env["LC_ALL"] = locale
    hook.run("claude", "hé")
    assert daemon.requests[0].meta["event"] == "hé"


def test_the_agents_own_python_settings_do_not_reach_the_hook(hook, daemon, tmp_path):
    for name in ("select", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')\n")
    hook.env["PYTHONPATH"] = str(tmp_path)
    hook.run("claude", "Stop")
    assert len(daemon.requests) == 1
    assert not (tmp_path / "mark").exists()


def test_stdin_that_never_closes_is_not_waited_for(hook, daemon):
    process = hook.start("claude", "Stop")
    process.stdin.write(PAYLOAD)
    process.stdin.flush()
    assert process.wait(60) == 0
    assert daemon.requests[0].payload == PAYLOAD
    assert process.communicate() == (b"", b"")


def test_stdin_that_stays_silent_is_not_waited_for(hook):
    process = hook.start("claude", "Stop")
    assert process.wait(60) == 0
    assert process.communicate() == (b"", b"")
    assert len(hook.spooled()) == 1


@pytest.mark.parametrize("closed", ["<&-", "<&- >&- 2>&-", "</"])
def test_stdin_that_cannot_be_read_is_an_empty_payload(hook, daemon, closed):
    command = ["sh", "-c", f'exec "$0" claude Stop {closed}', hook.command]
    done = subprocess.run(command, env=hook.env, capture_output=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert daemon.requests[0].payload == b""


def test_a_terminal_as_stdin_is_not_read(hook, daemon):
    ours, theirs = pty.openpty()
    try:
        os.write(ours, b"typed ahead\n")
        hook.run("claude", "Stop", stdin=theirs)
        # What was typed is still there for whoever reads the terminal next.
        assert select.select([theirs], [], [], 0)[0]
    finally:
        os.close(ours)
        os.close(theirs)
    assert daemon.requests[0].payload == b""


@pytest.mark.parametrize("state_dir", ["/dev/null/state", "/proc/agtmux", "\udcff/\n", "x" * 5000])
def test_a_state_dir_that_cannot_be_written_is_given_up(hook, state_dir, tmp_path):
    hook.env["AGTMUX_STATE_DIR"] = state_dir.replace("\udcff", str(tmp_path / "\udcff"))
    hook.run("claude", "Stop")


def test_a_fifo_in_place_of_the_spool_is_given_up(hook):
    (hook.state_dir / "spool").mkdir(parents=True)
    os.mkfifo(hook.state_dir / "spool" / "hook.jsonl")
    hook.run("claude", "Stop")


def test_no_secret_is_spooled(hook):
    hook.run("claude", "PreToolUse", stdin=json.dumps({"env": {"API_KEY": SECRET}, "text": SECRET}).encode())
    hook.run("claude", "PreToolUse", stdin=f"{SECRET} in plain text".encode())
    hook.run("claude", "PreToolUse", json.dumps([SECRET]))
    raw = b"".join(path.read_bytes() for path in hook.state_dir.rglob("*") if path.is_file())
    assert raw.count(b"\n") == 3
    assert SECRET.encode() not in raw


def test_home_that_is_not_set_does_not_stop_the_daemon_from_hearing(hook, daemon):
    del hook.env["HOME"], hook.env["AGTMUX_STATE_DIR"]
    hook.run("claude", "Stop")
    assert len(daemon.requests) == 1


@pytest.mark.parametrize("known", [True, False])
def test_home_that_is_not_set_is_looked_up_to_spool(hook, tmp_path, known):
    # The real user database would lead to the real home.
    found = f"type('Entry', (), {{'pw_dir': {str(tmp_path / 'home')!r}}})" if known else "{}[uid]"
    text = sources()
    text["spool"] = f"import pwd\n\npwd.getpwuid = lambda uid: {found}\n" + text["spool"]
    hook.command.write_text(patient(script(**text)), "utf-8")
    for name in ("HOME", "AGTMUX_STATE_DIR", "AGTMUX_SOCKET"):
        del hook.env[name]
    hook.run("claude", "Stop")
    assert len(drain(tmp_path / "home/.local/state/agtmux").records) == known


@pytest.mark.parametrize("redact", ["def broken(:\n", "raise SystemExit(3)\n", "import nothing\n", "1 / 0\n"])
def test_a_spool_that_breaks_is_no_reason_to_fail(hook, redact):
    hook.command.write_text(script(**(sources() | {"redact": redact})), "utf-8")
    hook.run("claude", "Stop")
    assert hook.spooled() == []


SLOW_REDACT = """
def redact_text(text):
    return text


def redact_value(value):
    while True:
        pass
"""


def test_a_payload_that_takes_too_long_to_redact_is_left_out_and_its_event_kept(hook):
    text = patient(script(**(sources() | {"redact": SLOW_REDACT})))
    hook.command.write_text(text.replace("SPOOL_UNTIL = 40", "SPOOL_UNTIL = 1.5"), "utf-8")
    hook.run("claude", "Stop")
    (record,) = hook.spooled()
    assert (record["event"], record["payload"], record["omitted_bytes"]) == ("Stop", None, len(PAYLOAD))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_interrupting_the_agent_neither_shows_nor_loses_the_event(hook, daemon, number):
    # Ctrl-C and a closing pane reach every process of the pane.
    daemon.answer = None
    process = hook.start("claude", "Stop", stdin=subprocess.DEVNULL)
    assert daemon.has_request.wait(20)
    process.send_signal(number)
    assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == 0
    assert len(hook.spooled()) == 1


def test_many_hooks_at_once_spool_each_event_once(hook):
    processes = [hook.start("claude", f"event-{n}", '{"n": 1}', stdin=subprocess.DEVNULL) for n in range(12)]
    for process in processes:
        assert process.communicate(timeout=60) == (b"", b"")
        assert process.returncode == 0
    assert sorted(record["event"] for record in hook.spooled()) == sorted(f"event-{n}" for n in range(12))


@pytest.mark.parametrize("python", OLDER_AND_NEWER, ids=lambda python: python.parent.parent.name)
def test_every_python_from_3_8_delivers_and_spools(tmp_path, hook, python):
    command = install(tmp_path / "other", patient(compose()), python)
    hook.run("claude", "Stop", command=command)
    assert len(hook.spooled()) == 1
    with Daemon(Path(hook.env["AGTMUX_SOCKET"])).serving() as daemon:
        hook.run("claude", "Stop", command=command)
        assert daemon.requests[0].payload == PAYLOAD


@pytest.mark.parametrize("python", [BASE_PYTHON, *OLDER_AND_NEWER], ids=str)
def test_delivering_imports_nothing_but_c_modules(hook, daemon, python):
    def imported(*args: str) -> set[str]:
        command = [python, "-I", "-S", "-X", "importtime", *args]
        done = subprocess.run(command, env=hook.env, input=b"{}", capture_output=True, timeout=20)
        return {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}

    ours = imported(str(hook.command), "claude", "Stop") - imported("-c", "pass")
    assert len(daemon.requests) == 1
    assert ours <= {"posix", "time", "select", "_socket"}
    assert "_socket" in ours


# How the script finds a Python.


@pytest.fixture
def marked(tmp_path):
    """A python3 that leaves a mark when it is chosen, and the way to ask whether it was."""

    class Marked:
        def make(self, folder: Path) -> None:
            folder.mkdir(parents=True, exist_ok=True)
            python = folder / "python3"
            python.write_text(f'#!/bin/sh\necho "$0" >>{tmp_path}/marks\nexec {BASE_PYTHON} "$@"\n')
            python.chmod(0o755)

        @property
        def chosen(self) -> list[str]:
            path = tmp_path / "marks"
            return [str(Path(line).parent) for line in path.read_text().splitlines()] if path.exists() else []

    return Marked()


@pytest.mark.parametrize("relative", [True, False])
def test_a_link_is_followed_to_the_python_beside_the_script(tmp_path, hook, daemon, marked, relative):
    real = install(tmp_path / "venv" / "bin", patient(compose()), None)
    marked.make(real.parent)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "one").symlink_to("../venv/bin/agtmux-hook" if relative else real)
    (tmp_path / "links" / "two").symlink_to("one" if relative else tmp_path / "links" / "one")
    hook.run("claude", "Stop", command=tmp_path / "links" / "two")
    assert [Path(folder).resolve() for folder in marked.chosen] == [real.parent]
    assert len(daemon.requests) == 1


def test_a_copy_finds_python_in_path_but_not_a_version_managers_shim(tmp_path, hook, daemon, marked):
    copy = install(tmp_path / "copied", patient(compose()), None)
    for folder in ("shims", "with space", "later"):
        marked.make(tmp_path / folder)
    hook.env["PATH"] = f"{tmp_path}/shims:{tmp_path}/*:{tmp_path}/with space:{tmp_path}/later"
    hook.run("claude", "Stop", command=copy)
    assert marked.chosen == [f"{tmp_path}/with space"]
    assert len(daemon.requests) == 1


def test_a_shim_is_better_than_nothing(tmp_path, hook, daemon, marked):
    text = patient(compose()).replace("/usr/bin /usr/local/bin /opt/homebrew/bin $tools", "/nonexistent")
    copy = install(tmp_path / "copied", text, None)
    marked.make(tmp_path / "shims")
    hook.env["PATH"] = f"/nonexistent:{tmp_path}/shims"
    hook.run("claude", "Stop", command=copy)
    assert marked.chosen == [f"{tmp_path}/shims"]
    assert len(daemon.requests) == 1


def test_a_copy_finds_python_in_the_usual_places(tmp_path, hook, daemon, marked):
    text = patient(compose()).replace("/usr/bin /usr/local/bin", f"/nonexistent {tmp_path}/usual")
    copy = install(tmp_path / "copied", text, None)
    marked.make(tmp_path / "usual")
    hook.env["PATH"] = ""
    hook.run("claude", "Stop", command=copy)
    assert marked.chosen == [f"{tmp_path}/usual"]
    assert len(daemon.requests) == 1


def test_a_machine_without_python_is_left_alone(tmp_path, hook):
    text = patient(compose()).replace("/usr/bin /usr/local/bin /opt/homebrew/bin $tools", "/nonexistent")
    copy = install(tmp_path / "copied", text, None)
    hook.env["PATH"] = "/nonexistent"
    hook.run("claude", "Stop", command=copy)
    assert not hook.state_dir.exists()


def test_a_python_that_complains_is_not_heard(hook):
    python = hook.command.parent / "python3"
    python.unlink()
    python.write_text("#!/bin/sh\necho warning\necho warning >&2\n")
    python.chmod(0o755)
    hook.run("claude", "Stop")


def test_a_python_that_dangles_is_passed_over(tmp_path, hook, daemon, marked):
    # A virtual environment whose base Python was upgraded away.
    copy = install(tmp_path / "venv", patient(compose()), tmp_path / "gone")
    marked.make(tmp_path / "path")
    hook.env["PATH"] = str(tmp_path / "path")
    hook.run("claude", "Stop", command=copy)
    assert len(daemon.requests) == 1


def test_the_usual_case_starts_no_other_process(hook, daemon):
    if not shutil.which("strace"):
        pytest.skip("strace counts the processes")
    with tempfile.NamedTemporaryFile() as log:
        command = ["strace", "-f", "-o", log.name, "-e", "trace=execve,fork,vfork,clone,clone3"]
        subprocess.run([*command, hook.command, "claude", "Stop"], env=hook.env, stdin=subprocess.DEVNULL, check=True)
        calls = [line for line in Path(log.name).read_text().splitlines() if "+++" not in line]
    assert len(calls) == 2
    assert all("execve" in call for call in calls)
