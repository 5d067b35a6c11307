"""A real agent, a real daemon that watches it, and all that the daemon has shown of it, with the moment of each.

What the agent really does is known from the model server, the keys that were pressed and the processes, never from the
product.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from agents.actions import say
from agents.bench import SHELL, AgentPane, Stage
from agents.install import install
from agents.manners import MANNERS, Manners
from support.home import Home, wait_until
from support.http import Connection, request
from support.sshd import Sshd, write_client_config

PATIENCE = 30.0
TARGET = "bench"
SETTINGS = '[states]\ncompleted_to_idle = "8s"\n[log]\nlevel = "debug"\n'


@dataclass(frozen=True)
class Shown:
    """What the daemon showed from that moment on, by the wall clock; no item where it showed no agent."""

    at: float
    item: dict[str, Any] | None

    @property
    def state(self) -> str:
        return "none" if self.item is None else str(self.item["state"])


class Timeline:
    """Reads a watch stream in a thread of its own."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.shown: list[Shown] = []
        self.thread = threading.Thread(target=self._read, daemon=True)

    def start(self) -> None:
        self.connection.send(request("GET", "/v1/watch"))
        self.connection.head()
        self.connection.settimeout(None)
        self.thread.start()

    def close(self) -> None:
        self.connection.shutdown()
        if self.thread.is_alive():
            self.thread.join()
        self.connection.close()

    def _read(self) -> None:
        try:
            while (line := self.connection.json_line()) is not None:
                now = time.time()
                for item in line.get("items", ()):
                    self.shown.append(Shown(now, item))
                for change in line.get("changes", ()):
                    self.shown.append(Shown(now, change.get("item")))
        except (OSError, ConnectionError):
            return


class Driven:
    """`with Driven(claude, "2.1.325", hooks=True) as driven: driven.say("…"); driven.expect("running")`"""

    def __init__(
        self,
        agent: ModuleType,
        version: str,
        *,
        hooks: bool,
        width: int = 120,
        height: int = 40,
        wish: str = "",
        settings: str = "",
    ) -> None:
        """`settings` are the daemon's, beside the usual."""
        self.settings = settings
        self.agent = agent
        self.hooks = hooks
        self.manners: Manners = MANNERS[agent.NAME]
        self.home: Home | None = None
        self.pane = AgentPane(
            agent,
            install(agent.NAME, version),
            version,
            width=width,
            height=height,
            wishes=frozenset({"few-tries", *wish.split()}),
            prepared=self._prepared,
        )
        # As an agent's hooks find it: below the home, with nothing set.
        self.pane.stage.home.joinpath(".local/state").mkdir(parents=True)
        self.timeline: Timeline | None = None

    def _prepared(self, stage: Stage) -> None:
        """The daemon is there, with its hooks in the agent's settings, before the agent starts."""
        home = self.home = Home(stage.home)
        home.state = stage.home / ".local/state/agtmux"
        home.socket, home.lock = home.state / "agtmuxd.sock", home.state / "agtmuxd.lock"
        home.log, home.database = home.state / "logs/agtmuxd.log", home.state / "agtmux.db"
        home.env["PATH"] = f"{stage.folder / 'bin'}:{home.env['PATH']}"
        del home.env["AGTMUX_STATE_DIR"]
        home.configure(SETTINGS + self.settings)
        home.start()
        done = home.run("target", "add", TARGET, "--kind", "local", "--tmux-socket", str(stage.socket))
        assert done.returncode == 0, done.stderr
        if self.hooks:
            done = home.run("hooks", "install", "--agent", self.agent.NAME)
            assert done.returncode == 0, done.stderr

    def __enter__(self) -> Self:
        try:
            self.pane.start()
            self.manners.enter(self.pane, hooks=self.hooks)
            self.agent.ready(self.pane)
            assert self.home is not None
            self.timeline = Timeline(self.home.connect())
            self.timeline.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.timeline is not None:
            self.timeline.close()
        # Before the pane, which ends all that has this home.
        if self.home is not None:
            self.home.close()
        self.pane.close()

    def restart(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """The daemon is killed where it stands, and another takes over."""
        assert self.home is not None and self.timeline is not None
        shown = self.timeline.shown
        os.kill(self.home.health()["pid"], signal.SIGKILL)
        self.timeline.close()
        meanwhile()
        self.home.start()
        self.timeline = Timeline(self.home.connect())
        self.timeline.shown = shown
        self.timeline.start()

    # What is done

    def say(self, text: str) -> float:
        """Sends a prompt, returns once the model has got it."""
        say(text)(self.pane)
        return time.time()

    def answer(self, names: Sequence[str], dialog: str) -> float:
        """Presses these keys, once the dialog is there to take them."""
        self.pane.wait_for(dialog)
        self.pane.settle(0.3)
        return self.press(*names)

    def approve(self) -> float:
        return self.answer(self.manners.approve, self.manners.dialog)

    def deny(self) -> float:
        return self.answer(self.manners.deny, self.manners.dialog)

    def choose(self) -> float:
        return self.answer(self.manners.answer, self.manners.question)

    def press(self, *names: str) -> float:
        now = time.time()
        for name in names:
            self.pane.keys(name)
        return now

    def interrupt(self) -> float:
        """Interrupts its answer, and returns when the keys were pressed that did. Copilot asks for a second Esc, and on
        a busy machine forgets that it did: then it goes on, and what shows it as running is right."""
        deadline = time.monotonic() + PATIENCE
        while True:
            now = time.time()
            self.manners.interrupt(self.pane)
            try:
                self.pane.wait_until(lambda: not self.pane.server.busy, "the end of the answer", 3.0)
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
            else:
                return now

    def again(self, *words: str) -> list[str]:
        """What starts the same agent once more, or those words, in another pane, with the environment of the first."""
        shells = (pid for pid in self.pane.processes() if _read(pid, "cmdline")[:1] == [SHELL])
        kept = [line for line in _read(next(shells), "environ") if "=" in line and not line.startswith("TMUX")]
        keep = 'exec env -i TMUX="$TMUX" TMUX_PANE="$TMUX_PANE" "$@"'
        return ["sh", "-c", keep, "sh", *kept, *(words or (self.agent.NAME, *self.pane.arguments))]

    # What is shown

    @property
    def now(self) -> Shown:
        assert self.timeline is not None
        return self.timeline.shown[-1] if self.timeline.shown else Shown(0.0, None)

    def expect(self, *states: str, limit: float = PATIENCE) -> Shown:
        """What is shown, once it is one of these states, as of the moment it came to be shown."""
        assert self.timeline is not None
        try:
            wait_until(lambda: self.now.state in states, f"{states}", limit)
        except AssertionError as error:
            raise AssertionError(f"{error}, but {self.now.item}\n{self.pane.screen()}") from None
        found = self.now
        for each in reversed(self.timeline.shown):
            if each.state != found.state:
                break
            found = Shown(each.at, found.item)
        return found

    def holds(self, *states: str, seconds: float = 2.0) -> None:
        """Nothing else is shown for so long."""
        assert self.timeline is not None
        seen = len(self.timeline.shown)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            strays = [each for each in self.timeline.shown[seen:] if each.state not in states]
            assert not strays, f"{strays[0].item} instead of {states}\n{self.pane.screen()}"
            time.sleep(0.02)
        assert self.now.state in states, self.now

    def hook_delays(self) -> list[float]:
        """For each state that a hook decided, the seconds from the hook's start to its being shown."""
        assert self.home is not None and self.timeline is not None
        rows = self.home.query("SELECT event_time, event_type FROM events WHERE source IN ('hook', 'notify')")
        told = sorted(time_us / 1e6 for time_us, _ in rows)
        delays: list[float] = []
        for each in self.timeline.shown[1:]:
            item = each.item or {}
            earlier = [moment for moment in told if moment <= each.at]
            if item.get("source") in ("hook", "notify") and earlier:
                delays.append(each.at - earlier[-1])
                # What is shown again for other reasons says nothing about a hook.
                told = told[len(earlier) :]
        return delays


class Far(Driven):
    """The agent's home and tmux server are a VM's, without agtmux, and the daemon has a home of its own."""

    vm: Sshd | None = None

    def _prepared(self, stage: Stage) -> None:
        folder = stage.folder / "watcher"
        folder.mkdir()
        home = self.home = Home(folder)
        home.configure(SETTINGS + self.settings)
        vm = self.vm = Sshd("vm1", stage.folder / "vm1")
        vm.home = stage.home
        vm.env["HOME"] = str(stage.home)
        vm.start()
        write_client_config(folder, [vm])
        home.start()
        words = ("--kind", "ssh", "--ssh-target", "vm1", "--tmux-socket", str(stage.socket))
        assert home.run("target", "add", TARGET, *words).returncode == 0
        if self.hooks:
            done = home.run("hooks", "install", "--target", TARGET, "--agent", self.agent.NAME)
            assert done.returncode == 0, done.stderr

    def close(self) -> None:
        try:
            super().close()
        finally:
            if self.vm is not None:
                self.vm.close()


def _read(pid: int, name: str) -> list[str]:
    return Path(f"/proc/{pid}/{name}").read_text(errors="replace").split("\0")
