"""A user of one's own for tests with real processes: a home with a state directory, a tmux server and daemons.

Whatever is started through a `Home` is ended by it, by process id. Nothing here reads or writes outside its folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from support.http import Answer, Connection
from support.schemas import check_output

T = TypeVar("T")

PATIENCE = 20.0
COMMANDS = Path(sys.executable).parent
# What would lead out of the home, or make a daemon other than a user's.
_NOT_INHERITED = (
    "AGTMUX_",
    "XDG_",
    "TMUX",
    # A desktop of whoever runs the tests: a tray would appear there.
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_",
    "PYTHONASYNCIODEBUG",
    "NO_COLOR",
    "LC_",
    "LANG",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
)


def wait_until(condition: Callable[[], T], what: str, limit: float = PATIENCE) -> T:
    """What `condition` returns once that is true. Whoever asks ever faster keeps what is waited for from happening."""
    deadline = time.monotonic() + limit
    pause = 0.01
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {limit:.0f} seconds")
        time.sleep(pause)
        pause = min(pause * 1.3, 0.06)
    return result


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def event(pane_id: str, event_type: str = "state.running", /, **fields: Any) -> dict[str, Any]:
    """An event envelope that is in order; `fields` make it say something else."""
    event_id = uuid.uuid4().hex
    now = time.time()
    envelope = {
        "event_id": event_id,
        "event_type": event_type,
        "source": "hook",
        "dedupe_key": event_id,
        "event_time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e6):06d}Z",
        "target_id": "host",
        "pane_id": pane_id,
    }
    return {key: value for key, value in (envelope | fields).items() if value is not None}


class Home:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.socket = self.state / "agtmuxd.sock"
        self.lock = self.state / "agtmuxd.lock"
        self.log = self.state / "logs" / "agtmuxd.log"
        self.database = self.state / "agtmux.db"
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(_NOT_INHERITED)}
        self.env = inherited | {
            "HOME": str(folder),
            "AGTMUX_STATE_DIR": str(self.state),
            "AGTMUX_CONFIG_DIR": str(folder / "config"),
            # The server without a name, which the target `host` is, is this home's own.
            "TMUX_TMPDIR": str(folder),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
        }
        # The words before those of every process but tmux: what it runs in.
        self.around: list[str] = []
        self._children: list[subprocess.Popen[str]] = []
        self._has_tmux = False

    def close(self) -> None:
        for child in self._children:
            if child.poll() is None:
                child.kill()
            child.communicate()
        if (pid := self.lock_holder()) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: self.lock_holder() is None, f"end of process {pid}")
        if self._has_tmux:
            subprocess.run(["tmux", "kill-server"], env=self.env, capture_output=True, timeout=PATIENCE)

    def configure(self, text: str) -> None:
        (self.folder / "config").mkdir(exist_ok=True)
        (self.folder / "config" / "config.toml").write_text(text, "utf-8")

    def agree_to_the_bridge(self) -> None:
        """As the user who has once said yes: agents' settings may have it."""
        self.state.mkdir(mode=0o700, exist_ok=True)
        (self.state / "mcp-consent.json").write_text('{"schema_version": 1, "register": true, "agents": {}}')

    # The command

    def run(
        self, *words: str, env: dict[str, str] | None = None, command: str = "agtmux", **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """A command to its end. Its JSON is as its schema wants it."""
        options = {"capture_output": True, "stdin": subprocess.DEVNULL} | options
        done = subprocess.run(
            [*self.around, COMMANDS / command, *words], env=self.env | (env or {}), text=True, timeout=60, **options
        )
        if command == "agtmux":
            check_output(words, done.stdout or "")
        return done

    def spawn(self, *command: str | Path, env: dict[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
        """A process that goes on, and is killed at the latest with this home."""
        usual = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        child = subprocess.Popen([*self.around, *command], env=self.env | (env or {}), **usual | options)
        self._children.append(child)
        return child

    # The daemon

    def start(self, env: dict[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
        """A daemon in the foreground, once it answers."""
        daemon = self.spawn(COMMANDS / "agtmuxd", env=env, **options)

        def answers() -> bool:
            assert daemon.poll() is None, f"agtmuxd ended with {daemon.returncode}: {daemon.communicate()}"
            return self.answering_pid() == daemon.pid

        wait_until(answers, "an answer from agtmuxd")
        return daemon

    def answering_pid(self) -> int | None:
        try:
            return int(self.health()["pid"])
        except OSError:
            return None

    def end(self, daemon: subprocess.Popen[str], number: int = signal.SIGTERM) -> str:
        """Stops it as a user would; returns what it had to say."""
        daemon.send_signal(number)
        _, complaints = daemon.communicate(timeout=PATIENCE)
        assert daemon.returncode == 0, complaints
        return complaints

    def lock_holder(self) -> int | None:
        """Whoever holds the daemon's lock, and not merely stands in its file."""
        try:
            with self.lock.open() as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    text = lock.read().strip()
                    return int(text) if text.isdigit() else None
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            pass
        return None

    def log_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]

    # Its API

    def connect(self) -> Connection:
        return Connection(self.socket)

    def ask(self, method: str, path: str, content: object = None, headers: dict[str, str] | None = None) -> Answer:
        with self.connect() as connection:
            return connection.ask(method, path, content, headers)

    def health(self) -> dict[str, Any]:
        answer = self.ask("GET", "/v1/health")
        assert answer.status == 200, answer
        return answer.json

    def refused(self, code: str) -> int:
        return int(self.health()["refused"].get(code, 0))

    def panes(self) -> dict[str, dict[str, Any]]:
        return {item["identity"]["pane_id"]: item for item in self.ask("GET", "/v1/panes?all=1").json["items"]}

    def state_of(self, pane_id: str) -> str:
        return str(self.panes().get(pane_id, {}).get("state"))

    # Its database

    def query(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            return connection.execute(sql, parameters).fetchall()

    def stored_ids(self) -> set[str]:
        return {row[0] for row in self.query("SELECT event_id FROM events UNION SELECT inbox_id FROM event_inbox")}

    # Its tmux server

    def tmux(self, *words: str) -> str:
        self._has_tmux = True
        command = ["tmux", "-f", "/dev/null", *words]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, f"tmux {words}: {done.stderr}"
        return done.stdout.rstrip("\n")

    def pane(self, agent: str | None = "claude", command: str = "sleep 3600") -> str:
        """A new pane, marked as that agent's."""
        verb = ["new-window", "-d", "-a", "-t", "work:{end}"]
        if not self._has_tmux:
            verb = ["new-session", "-d", "-s", "work", "-x", "100"]
        words = [*verb, "-P", "-F", "#{pane_id}", command]
        if agent is not None:
            # In one go: no look of the daemon's falls between the two and sees a pane without an agent.
            words += [";", "set-option", "-p", "-t", "work:{end}", "@agtmux_agent", agent]
        return self.tmux(*words)

    def tmux_variables(self, pane_id: str) -> dict[str, str]:
        """What a process in that pane has in its environment."""
        return {"TMUX": self.tmux("display-message", "-p", "#{socket_path},#{pid},0"), "TMUX_PANE": pane_id}


@contextlib.contextmanager
def shared_home() -> Iterator[Home]:
    """For a fixture of wider scope than a test's."""
    folder = tempfile.TemporaryDirectory(prefix="agt-", dir="/tmp", ignore_cleanup_errors=True)
    with folder as path, home_in(Path(path).resolve()) as home:
        yield home


@contextlib.contextmanager
def home_in(folder: Path) -> Iterator[Home]:
    home = Home(folder)
    try:
        yield home
    finally:
        home.close()
