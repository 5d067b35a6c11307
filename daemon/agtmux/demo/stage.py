"""Puts the demo up and takes it down: a tmux server of its own, and a target by which the daemon sees it.

Every tmux call names that server with `-L`. No other server is ever asked for anything.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agtmux import paths
from agtmux.client import Client
from agtmux.demo.report import HOOK, find_hook
from agtmux.demo.scenes import Scene, load_scenes
from agtmux.domain.durations import format_duration
from agtmux.domain.errors import AgtmuxError, ErrorCode

TARGET: Final = "demo"
MINIMUM_TMUX: Final = (3, 3)
_SERVER: Final = "agtmux-demo"
_SIZE: Final = "120x36"
_TIME_LIMIT: Final = 10.0
# Where the hook finds the daemon. Given to each pane, as a tmux server keeps the environment it was started with.
_HANDED_ON: Final = (
    "AGTMUX_SOCKET",
    "AGTMUX_STATE_DIR",
    "AGTMUX_CONFIG_DIR",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
)


@dataclass(frozen=True, slots=True)
class Started:
    server: str
    panes: int
    was_running: bool


def server_name() -> str:
    """The `-L` of the demo that belongs to this daemon: one with a state of its own has a demo of its own."""
    state = paths.state_directory()
    if state == os.path.expanduser("~/.local/state/agtmux"):  # noqa: PTH111  compared with what `paths` made
        return _SERVER
    return f"{_SERVER}-{hashlib.sha256(os.fsencode(state)).hexdigest()[:8]}"


def is_running() -> bool:
    return _Server(server_name()).is_running()


def start(client: Client, lasts: int) -> Started:
    """Start the demo for that many microseconds, or find it running."""
    server = _Server(server_name())
    server.check_version()
    if find_hook() is None:
        raise AgtmuxError(
            ErrorCode.UNSUPPORTED,
            f"{HOOK} is neither beside {sys.executable} nor in PATH, so the demo could not report; "
            "install agtmux again",
        )
    scenes = load_scenes()
    if server.is_running():
        _register(client, server.name)
        return Started(server.name, len(scenes), was_running=True)
    # First the target, so that the panes' first reports find it; and a new one, because one that is left from a
    # server that has just ended is about to remove itself.
    _forget(client, server.name)
    _register(client, server.name)
    try:
        was_running = not server.raise_curtain(scenes, lasts)
    except AgtmuxError:
        _forget(client, server.name)
        raise
    return Started(server.name, len(scenes), was_running)


def stop() -> bool:
    """Whether there was a demo to stop. Nothing is started for that, not even the daemon."""
    server = _Server(server_name())
    was_running = server.kill()
    client = Client(start=False)
    if client.is_answered():
        _forget(client, server.name)
    return was_running


def _register(client: Client, server: str) -> None:
    client.post("/v1/targets", {"name": TARGET, "kind": "local", "tmux_socket": server, "ephemeral": True})


def _forget(client: Client, server: str) -> None:
    """Remove the demo's target, and never one that someone else has given the same name."""
    targets: list[dict[str, Any]] = client.get("/v1/targets")["items"]
    if any(target["name"] == TARGET and target["tmux_socket"] == server for target in targets):
        try:
            client.delete(f"/v1/targets/{TARGET}")
        except AgtmuxError as error:
            # It may remove itself in between.
            if error.code is not ErrorCode.TARGET_NOT_FOUND:
                raise


class _Server:
    def __init__(self, name: str) -> None:
        self.name = name
        self._tmux = shutil.which("tmux")

    def check_version(self) -> None:
        if self._tmux is None:
            raise AgtmuxError(ErrorCode.UNSUPPORTED, "tmux is not in PATH; install tmux 3.3 or newer for the demo")
        said = self._run(["-V"], alone=True).stdout.strip()
        # Versions that are no release (`master`, `openbsd-7.6`) are newer than 3.3.
        found = re.search(r"(\d+)\.(\d+)", said)
        if found and (int(found[1]), int(found[2])) < MINIMUM_TMUX:
            raise AgtmuxError(ErrorCode.UNSUPPORTED, f"the demo needs tmux 3.3 or newer and this is {said}; update it")

    def is_running(self) -> bool:
        return self._tmux is not None and self._run(["has-session"]).returncode == 0

    def raise_curtain(self, scenes: Sequence[Scene], lasts: int) -> bool:
        """All panes in one call; False if another command was quicker and the demo is there already."""
        done = self._run(curtain(scenes, lasts))
        if done.returncode == 0:
            return True
        complaint = done.stderr.strip()
        if complaint.startswith("duplicate session") and self.is_running():
            return False
        self.kill()
        raise AgtmuxError(ErrorCode.INTERNAL, f"tmux could not start the demo: {complaint[:200] or done.returncode}")

    def kill(self) -> bool:
        was_running = self.is_running()
        if was_running:
            self._run(["kill-server"])
        deadline = time.monotonic() + _TIME_LIMIT
        while self.is_running():
            if time.monotonic() > deadline:
                raise AgtmuxError(
                    ErrorCode.TIMEOUT, f"the demo does not end; try `tmux -L {self.name} kill-server` by hand"
                )
            time.sleep(0.02)
        # tmux leaves its socket behind, also when the demo has ended by itself. Never TMPDIR: tmux does not use it.
        folder = Path(os.environ.get("TMUX_TMPDIR") or "/tmp", f"tmux-{os.getuid()}")
        with contextlib.suppress(OSError):
            (folder / self.name).unlink()
        return was_running

    def _run(self, command: list[str], *, alone: bool = False) -> subprocess.CompletedProcess[str]:
        if self._tmux is None:
            raise AgtmuxError(ErrorCode.UNSUPPORTED, "tmux is not in PATH")
        which = [] if alone else ["-L", self.name, "-f", "/dev/null"]
        environment = {key: value for key, value in os.environ.items() if key not in ("TMUX", "TMUX_PANE")}
        try:
            return subprocess.run(
                [self._tmux, *which, *command],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                env=environment,
                timeout=_TIME_LIMIT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise AgtmuxError(ErrorCode.UNSUPPORTED, f"tmux cannot be run: {error}; try `tmux -V` by hand") from None


def curtain(scenes: Sequence[Scene], lasts: int) -> list[str]:
    """The one chain of tmux commands that makes every session, window and pane.

    A pane's agent is named in the same chain, so nobody can see it without its name and its first report binds.
    """
    commands = [
        ["start-server"],
        ["set-option", "-g", "default-size", _SIZE],
        ["set-option", "-g", "remain-on-exit", "off"],
        ["set-option", "-g", "status-left-length", "20"],
        # Escape alone is an answer here.
        ["set-option", "-s", "escape-time", "20"],
    ]
    common = ["-c", str(Path.home())]
    for name in _HANDED_ON:
        if value := os.environ.get(name):
            common += ["-e", f"{name}={value}"]
    sessions: set[str] = set()
    windows: dict[tuple[str, str], int] = {}
    for scene in scenes:
        window = f"={scene.session}:={scene.window}"
        index = windows.get((scene.session, scene.window), 0)
        if scene.session not in sessions:
            make = ["new-session", "-d", "-s", scene.session, "-n", scene.window]
        elif index == 0:
            make = ["new-window", "-d", "-t", f"={scene.session}:", "-n", scene.window]
        else:
            make = ["split-window", "-d", "-v", "-t", f"{window}.{index - 1}"]
        commands.append([*make, *common, "--", *_actor(scene, lasts)])
        pane = f"{window}.{index}"
        commands.append(["set-option", "-p", "-t", pane, "@agtmux_agent", scene.agent_type])
        # Else the title is the machine's name until the actor has started.
        commands.append(["select-pane", "-t", pane, "-T", scene.steps[0].title])
        if index:
            commands.append(["select-layout", "-t", window, "even-vertical"])
        sessions.add(scene.session)
        windows[scene.session, scene.window] = index + 1
    return [word for command in commands for word in (*map(_escaped, command), ";")][:-1]


def _escaped(word: str) -> str:
    """tmux takes a semicolon at the end of any word for the end of the command."""
    return word[:-1] + "\\;" if word.endswith(";") else word


def _actor(scene: Scene, lasts: int) -> list[str]:
    # -P: what lies in the directory of the pane must not pass for a module of ours.
    return [*paths.python_module("agtmux.demo.actor"), scene.name, format_duration(lasts)]
