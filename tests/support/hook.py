"""agtmux-hook as agents meet it: installed in a folder, run as a process, with a daemon that can be told to fail.

Test machines are noisy. So what becomes of an event is tested with a hook that is `patient`, and that an agent never
waits with the hook as it is, against the generous SECONDS_MAX. The true figures are measured by
tests/bench/bench_hook.py.
"""

import contextlib
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agtmux.hook import compose as compose_module
from agtmux.hook.spool_reader import drain

SECONDS_MAX = 2.0
PATIENCE = {"STDIN_UNTIL": 0.7, "ANSWER_UNTIL": 1.5, "SPOOL_UNTIL": 40, "EXIT_AT": 50}
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
PAYLOAD = b'{"session_id": "s1", "prompt": "h\xc3\xa9llo"}'
BASE_PYTHON = Path(sys._base_executable).resolve()


def status(code: int) -> bytes:
    return b"HTTP/1.1 %d Whatever\r\nContent-Length: 0\r\n\r\n" % code


@dataclass
class Request:
    head: bytes
    meta: dict
    payload: bytes


@dataclass
class Daemon:
    """Stands in for agtmuxd: keeps each request and sends `answer`, or never answers if that is None.

    `answers`, if there are any, come first, one a request.
    """

    path: Path
    answer: bytes | None = ACCEPTED
    answers: list[bytes] = field(default_factory=list)
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
            answer = self.answers.pop(0) if self.answers else self.answer
            if answer is None:
                peers.enter_context(peer)
                continue
            with peer, contextlib.suppress(OSError):
                if self.seconds_per_byte:
                    for byte in answer:
                        time.sleep(self.seconds_per_byte)
                        peer.sendall(bytes([byte]))
                peer.sendall(answer)

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
        "wait": (folder / "wait.py").read_text("utf-8"),
        "redact": (folder.parent / "domain" / "redact.py").read_text("utf-8"),
        "owners": (folder.parent / "probe" / "owners.py").read_text("utf-8"),
    }


def patient_in(folder: Path) -> Path:
    """A hook for tests of what becomes of its reports, installed in that folder once. It waits for its input and its
    daemon for as long as a busy machine may need."""
    command = folder / "hook" / "agtmux-hook"
    if not command.exists():
        install(command.parent, patient(compose_module.compose(), STDIN_UNTIL=5, ANSWER_UNTIL=10))
    return command


def patient(text: str, **more: float) -> str:
    for name, seconds in (PATIENCE | more).items():
        text, found = re.subn(rf"(?m)^{name} = .*", f"{name} = {seconds}", text)
        assert found == 1
    return text
