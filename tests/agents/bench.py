"""One real agent in a tmux server of its own, with a home, a project and a model server of its own.

The agent is started from an interactive shell, as a user starts it, with nothing inherited from this process's
environment. Whatever it leaves running is found by its home and ended.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from agents.model.server import ModelProtocol, ModelServer

LIMIT = 40.0
# Codex and Gemini take an Enter that comes with the text for a part of a paste.
TYPING_PAUSE = 0.3
TYPED_AT_ONCE = 80
TYPED_LIMIT = 4.0
SHELL = "bash"
PROMPT = "dev@host$ "


@dataclass(frozen=True)
class Stage:
    """Where an agent lives during one scene. Its path has the same length as the one recordings show instead."""

    folder: Path
    executable: Path
    version: str
    url: str
    # What a scene wants otherwise than usual; each agent's module knows its own.
    wishes: frozenset[str] = frozenset()

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def project(self) -> Path:
        return self.folder / "parcels"

    @property
    def socket(self) -> Path:
        return self.folder / "tmux"

    def anonymous(self, text: str) -> str:
        """Without what differs between runs and machines."""
        # The part of the name that differs, also where the rest was cut off.
        text = text.replace(self.folder.name.removeprefix("agtmux-"), "corpus")
        return text.replace(self.url.rpartition(":")[2], "10000")


def new_stage(executable: Path, version: str, url: str, wishes: frozenset[str] = frozenset()) -> Stage:
    folder = Path("/tmp") / f"agtmux-{secrets.token_hex(3)}"
    stage = Stage(folder, executable, version, url, wishes)
    for path in (stage.home, stage.project, folder / "bin"):
        path.mkdir(parents=True)
    (stage.project / "label.py").write_text("weight = 1\n\n\ndef label():\n    return weight\n", "utf-8")
    (stage.project / "README.md").write_text("# Parcels\n\nLabels for parcels.\n", "utf-8")
    return stage


@dataclass(frozen=True)
class Launch:
    """How an agent is started: the command's arguments and what its environment has beside the usual."""

    arguments: Sequence[str] = ()
    env: dict[str, str] = field(default_factory=dict)


class Agent(Protocol):
    """What an agent's module has."""

    NAME: str
    PROTOCOLS: tuple[ModelProtocol, ...]

    def prepare(self, stage: Stage) -> Launch:
        """Writes the agent's settings into the home."""

    def ready(self, pane: AgentPane) -> None:
        """Returns once the agent takes a prompt."""


class AgentPane:
    """`with AgentPane(claude, install("claude", version), version, width=80, height=24) as pane: …`"""

    def __init__(
        self,
        agent: Agent,
        executable: Path,
        version: str,
        *,
        width: int = 120,
        height: int = 40,
        wishes: frozenset[str] = frozenset(),
        env: dict[str, str] | None = None,
        prepared: Callable[[Stage], object] = lambda _: None,
    ) -> None:
        """`prepared` is called when the agent's settings are written and it has not started yet."""
        self.agent = agent
        self._env = env or {}
        # Which pane is meant where there are several; else the one that was used last.
        self.only_pane = ""
        self._prepared = prepared
        self.width = width
        self.height = height
        self.server = ModelServer(*agent.PROTOCOLS)
        self.server.start()
        self.stage = new_stage(executable, version, self.server.url, wishes)
        (self.stage.folder / "bin" / agent.NAME).symlink_to(executable)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """The shell, and in it the agent. Does not wait for the agent."""
        launch = self.agent.prepare(self.stage)
        self.arguments = list(launch.arguments)
        self._prepared(self.stage)
        env = {
            "HOME": str(self.stage.home),
            "PATH": f"{self.stage.folder / 'bin'}:{os.environ['PATH']}",
            "SHELL": shutil.which(SHELL) or "/bin/sh",
            "LANG": "C.UTF-8",
            "TERM": "tmux-256color",
            "USER": "dev",
            "LOGNAME": "dev",
            "PS1": PROMPT,
            "HISTFILE": "/dev/null",
            "BASH_SILENCE_DEPRECATION_WARNING": "1",
        }
        env |= launch.env | self._env
        # Nothing is inherited but what tmux gives to a pane, which `env -i` would take away.
        keep = 'exec env -i TMUX="$TMUX" TMUX_PANE="$TMUX_PANE" "$@"'
        shell = [f"{name}={value}" for name, value in env.items()] + [SHELL, "--norc", "--noprofile", "-i"]
        words = ["start-server", ";", "set-option", "-g", "status", "off", ";"]
        words += ["set-option", "-g", "default-terminal", "tmux-256color", ";"]
        words += ["new-session", "-d", "-x", str(self.width), "-y", str(self.height), "-c", str(self.stage.project)]
        self.tmux(*words, "sh", "-c", keep, "sh", *shell)
        self.wait_for(re.escape(PROMPT.strip()))
        self.type(shlex.join([self.agent.NAME, *launch.arguments]))
        self.keys("Enter")

    def close(self) -> None:
        """Ends everything that was started here, also what has left its pane, and removes the folder."""
        with contextlib.suppress(subprocess.SubprocessError, RuntimeError):
            self.tmux("kill-server")
        deadline = time.monotonic() + LIMIT
        while strays := self.processes():
            for pid in strays:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise AssertionError(f"still alive: {strays}")
            time.sleep(0.05)
        self.server.stop()
        shutil.rmtree(self.stage.folder, ignore_errors=True)

    # Keys

    def say(self, text: str) -> None:
        """Types a prompt and sends it, once it is on the screen or long enough after."""
        self.type(text)
        with contextlib.suppress(AssertionError):
            self.wait_until(lambda: self.shows(text), "the text", TYPED_LIMIT)
        time.sleep(TYPING_PAUSE)
        self.keys("Enter")

    def type(self, text: str) -> None:
        # In pieces: what comes all at once and is long, Claude takes for a paste, whose Enter does not send.
        for start in range(0, len(text), TYPED_AT_ONCE):
            self.tmux("send-keys", "-l", "--", text[start : start + TYPED_AT_ONCE])

    def paste(self, text: str) -> None:
        self.tmux("set-buffer", "--", text)
        self.tmux("paste-buffer", "-p", "-d")

    def keys(self, *names: str) -> None:
        self.tmux("send-keys", *names)

    def resize(self, width: int, height: int) -> None:
        """Gives the pane another size; the agent draws anew, over what tmux has made of what was there."""
        self.width, self.height = width, height
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    # What the pane shows

    def screen(self, *, ansi: bool = False) -> str:
        return self.tmux("capture-pane", "-p", *(["-e"] if ansi else []))

    def title(self) -> str:
        return self.format("#{pane_title}")

    def command(self) -> str:
        return self.format("#{pane_current_command}")

    def cursor(self) -> tuple[int, int]:
        x, y = self.format("#{cursor_x} #{cursor_y}").split()
        return int(x), int(y)

    def format(self, text: str) -> str:
        return self.tmux("display-message", "-p", text).rstrip("\n")

    def snapshot(self) -> dict[str, Any]:
        """The screen with its colours and what tmux knows beside it, of one moment."""
        fields = "#{cursor_x}\t#{cursor_y}\t#{alternate_on}\t#{pane_current_command}\t#{pane_title}"
        # One message to the tmux server, so nothing is drawn between the two.
        both = self.tmux("capture-pane", "-p", "-e", ";", "display-message", "-p", fields)
        screen, last = both.rstrip("\n").rsplit("\n", 1)
        x, y, alternate, command, title = last.split("\t", 4)
        if title == socket.gethostname():
            title = "host"
        return {
            "screen": self.stage.anonymous(screen + "\n"),
            "title": self.stage.anonymous(title),
            "command": command,
            "width": self.width,
            "height": self.height,
            "cursor": [int(x), int(y)],
            "alternate": alternate == "1",
        }

    def shows(self, text: str) -> bool:
        """Whether the end of that text is on the screen, however wrapped; a short one on a line of its own."""
        wanted = _bare(text)
        lines = [_bare(line) for line in self.screen().splitlines()]
        return wanted[-16:] in "".join(lines) if len(wanted) > 8 else wanted in lines

    def is_raw(self) -> bool:
        """Whether the program in the pane takes keys one by one, and so has started to listen."""
        with Path(self.format("#{pane_tty}")).open() as terminal:
            done = subprocess.run(["stty", "-a"], stdin=terminal, capture_output=True, text=True)
        return "-icanon" in done.stdout

    # Waiting

    def wait_for(self, pattern: str, limit: float = LIMIT) -> str:
        """The screen once it has that."""
        search = re.compile(pattern, re.MULTILINE)
        shown = ""

        def matches() -> bool:
            nonlocal shown
            shown = self.screen()
            return bool(search.search(shown))

        self.wait_until(matches, f"/{pattern}/ on the screen", limit)
        return shown

    def wait_until(self, condition: Callable[[], object], what: str, limit: float = LIMIT) -> None:
        deadline = time.monotonic() + limit
        while not condition():
            if self.server.failures:
                raise AssertionError(f"{what}: the model server failed: {self.server.failures!r}")
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not within {limit:.0f} seconds\n{self.screen()}")
            time.sleep(0.1)

    def settle(self, quiet: float = 0.6, limit: float = LIMIT) -> None:
        """Waits until the words on the screen have stayed the same for so many seconds; signs may blink."""

        def words() -> str:
            return re.sub(r"[\W_]+", " ", self.screen())

        last, since, deadline = words(), time.monotonic(), time.monotonic() + limit
        while time.monotonic() - since < quiet:
            if time.monotonic() > deadline:
                raise AssertionError(f"the screen does not come to rest\n{self.screen()}")
            time.sleep(0.1)
            if (shown := words()) != last:
                last, since = shown, time.monotonic()

    # Processes

    def processes(self) -> set[int]:
        """All that have this stage's home in their environment, in the pane or not."""
        mark = f"HOME={self.stage.home}"
        if not Path("/proc/self/environ").exists():
            listing = subprocess.run(["ps", "-axwwE", "-o", "pid=,command="], capture_output=True, text=True).stdout
            return {int(line.split()[0]) for line in listing.splitlines() if mark in line.split()}
        found = set()
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark.encode() in path.read_bytes().split(b"\0"):
                    found.add(int(path.parent.name))
        return found

    def runs(self, name: str) -> bool:
        """Whether a process of that name is running for the agent: a tool's `sleep`, say."""
        listing = subprocess.run(["ps", "-axo", "pid=,comm="], capture_output=True, text=True, check=True).stdout
        named = (line.split(maxsplit=1) for line in listing.splitlines())
        candidates = {int(pid) for pid, *command in named if command and Path(command[0].strip()).name == name}
        return bool(candidates) and bool(candidates & self.processes())

    def foreground(self) -> int:
        """The agent's process: the leader of the foreground process group of the pane."""
        tty = self.format("#{pane_tty}").removeprefix("/dev/")
        done = subprocess.run(["ps", "-t", tty, "-o", "pid=,tpgid="], capture_output=True, text=True, check=True)
        return int(done.stdout.split()[1])

    def tmux(self, *words: str) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.stage.home), "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        if self.only_pane:
            env["TMUX_PANE"] = self.only_pane
        command = ["tmux", "-S", str(self.stage.socket), "-f", os.devnull, *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT)
        if done.returncode != 0:
            raise RuntimeError(f"tmux {words[:3]}: {done.stderr.strip()}")
        return done.stdout


def _bare(text: str) -> str:
    """Without blanks, borders and prompt signs."""
    return re.sub(r"[\s│┃>❯›!]", "", text)
