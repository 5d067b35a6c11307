"""The user's tmux server outlives agtmux: the daemon asks and leaves, whatever happens to the sessions meanwhile.

With a control-mode client attached to any session, two ways for another session to end take the whole server down
(tmux issue 5243, every release up to 3.7). The daemon has no such client: here sessions end in both ways, again and
again, while it looks. That both do kill a server with such a client is proven beside it, or nothing would be.
"""

from __future__ import annotations

import contextlib
import getopt
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.chance import any_seed
from support.home import PATIENCE, Home, wait_until

ROUNDS = 50
ROUNDS_WOKEN = 15
LOOKS = 30
FIRST_SAFE_VERSION = (3, 8)
# Pauses in a race, in seconds: mostly none.
PAUSES = (0.0, 0.0, 0.0, 0.0005, 0.002, 0.01)
# From tmux.c: the flags that may stand before tmux's own command.
TMUX_FLAGS = "2c:CDdf:hlL:NqS:T:uUvV"


@dataclass(frozen=True)
class Doomed:
    """A session that is about to end. The first of its windows is the current one."""

    name: str
    server_pid: int
    windows: list[str]
    pids: dict[str, int]


EndSession = Callable[[Home, Doomed, random.Random], None]


def change_its_window_and_kill_it(home: Home, session: Doomed, chance: random.Random) -> None:
    another = chance.choice(session.windows[1:])
    home.tmux("select-window", "-t", another, ";", "kill-session", "-t", f"={session.name}")


def kill_what_runs_in_all_its_windows(home: Home, session: Doomed, chance: random.Random) -> None:
    for pid in chance.sample(sorted(session.pids.values()), len(session.pids)):
        os.kill(pid, signal.SIGKILL)


every_end = pytest.mark.parametrize("end", [change_its_window_and_kill_it, kill_what_runs_in_all_its_windows])
needs_proc = pytest.mark.skipif(not Path("/proc/thread-self/children").exists(), reason="/proc tells of no children")


class Looking(threading.Thread):
    """Makes the daemon look at its tmux server, one look after the other, for as long as the context lasts."""

    def __init__(self, home: Home) -> None:
        super().__init__()
        self._home = home
        self._stopping = threading.Event()
        self._trouble: BaseException | None = None
        self.looks = 0

    def __enter__(self) -> Looking:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.join()
        if self._trouble is not None:
            raise self._trouble

    def run(self) -> None:
        deadline = time.monotonic() + 3 * PATIENCE
        try:
            with self._home.connect() as connection:
                while not self._stopping.is_set() and time.monotonic() < deadline:
                    answer = connection.ask("POST", "/v1/targets/host/connect")
                    assert answer.status == 200, answer
                    self.looks += 1
                    # Others need the processor too.
                    self._stopping.wait(0.005)
        except BaseException as trouble:
            self._trouble = trouble

    def wait_for(self, looks: int) -> None:
        wanted = self.looks + looks
        wait_until(lambda: self._trouble or self.looks >= wanted, f"{looks} looks")


@pytest.fixture
def chance() -> random.Random:
    return random.Random(any_seed())


@pytest.fixture(autouse=True)
def without_core_dumps() -> Iterator[None]:
    """A server that dies here leaves nothing behind."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


@pytest.fixture
def agents(home: Home) -> set[str]:
    """The panes of the session that stays."""
    return {home.pane("claude"), home.pane("codex")}


@pytest.fixture
def daemon(home: Home, agents: set[str]) -> subprocess.Popen[str]:
    """It has seen the agents, and so it looks often."""
    started = home.start()
    wait_until_shown(home, agents)
    return started


def server_pid(home: Home) -> int | None:
    """The process that answers; None if none does."""
    question = home.spawn("tmux", "display-message", "-p", "#{pid}")
    said, _ = question.communicate(timeout=PATIENCE)
    return int(said) if question.returncode == 0 else None


def listed_by_tmux(home: Home) -> set[str]:
    return set(home.tmux("list-panes", "-a", "-F", "#{pane_id}").split())


def commands_below(pid: int) -> Iterator[list[str]]:
    """The words of every process that this one started, and that those did."""
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        # Threads and processes come and go.
        with contextlib.suppress(OSError):
            for child in listing.read_text().split():
                yield Path(f"/proc/{child}/cmdline").read_text("utf-8", "replace").split("\0")[:-1]
                yield from commands_below(int(child))


def make_doomed_session(home: Home, name: str, chance: random.Random) -> Doomed:
    """With an agent in each of its windows."""
    first, another = ["new-session", "-d", "-s", name], ["new-window", "-d", "-t", f"={name}:"]
    command: list[str] = []
    for make in [first] + [another] * chance.randint(1, 4):
        # `$` is the last window.
        mark = ["set-option", "-p", "-t", f"={name}:$", "@agtmux_agent", "claude"]
        command += [*make, "sleep", "3600", ";", *mark, ";"]
    fields = "#{pid} #{window_id} #{pane_id} #{pane_pid}"
    listing = home.tmux(*command, "list-panes", "-s", "-t", f"={name}:", "-F", fields)
    rows = [row.split() for row in listing.splitlines()]
    windows, pids = [window for _, window, _, _ in rows], {pane: int(pid) for _, _, pane, pid in rows}
    return Doomed(name, int(rows[0][0]), windows, pids)


def end_sessions_under_its_eyes(home: Home, end: EndSession, chance: random.Random, count: int) -> None:
    pid = server_pid(home)
    with Looking(home) as looking:
        for number in range(count):
            session = make_doomed_session(home, f"doomed-{number}", chance)
            assert session.server_pid == pid, f"another server after {number} sessions"
            if chance.random() < 0.5:
                wait_until_shown(home, session.pids.keys())
            time.sleep(chance.choice(PAUSES))
            end(home, session, chance)
        looking.wait_for(1)


def wait_until_shown(home: Home, panes: Set[str]) -> None:
    wait_until(lambda: panes <= home.panes().keys(), f"{sorted(panes)} to be shown")


@contextlib.contextmanager
def server_stays(home: Home, agents: set[str]) -> Iterator[None]:
    """The same server, with the same agents in it, and the daemon knows."""
    pid = server_pid(home)
    runtimes = {pane: home.panes()[pane]["runtime_id"] for pane in agents}
    yield
    assert server_pid(home) == pid is not None
    now = agents | {home.pane("gemini")}
    wait_until(lambda: set(home.panes()) == listed_by_tmux(home) == now, "what tmux lists to be shown")
    shown = home.panes()
    assert {pane: shown[pane]["runtime_id"] for pane in agents} == runtimes, "the daemon saw no other server"


@every_end
def test_no_session_that_ends_takes_the_server_with_it(
    home: Home, agents: set[str], daemon: subprocess.Popen[str], end: EndSession, chance: random.Random
):
    with server_stays(home, agents):
        end_sessions_under_its_eyes(home, end, chance, ROUNDS)
    pid = server_pid(home)
    home.end(daemon)
    assert server_pid(home) == pid


@needs_proc
@every_end
def test_nor_while_the_daemon_waits_to_be_woken_by_it(
    home: Home, agents: set[str], daemon: subprocess.Popen[str], end: EndSession, chance: random.Random
):
    """The one client of the daemon's that stays, for users who want it: a plain `tmux wait-for`."""
    assert home.run("hooks", "install", "--agent", "tmux").returncode == 0
    for moment in ("session-closed", "session-window-changed"):
        # More often than we would have it.
        home.tmux("set-hook", "-ga", moment, "wait-for -S agtmux-wake")
    wait_until(lambda: any("wait-for" in words for words in commands_below(daemon.pid)), "the daemon to wait")
    with server_stays(home, agents):
        end_sessions_under_its_eyes(home, end, chance, ROUNDS_WOKEN)


@pytest.fixture
def deadly_tmux() -> str:
    version = subprocess.run(["tmux", "-V"], capture_output=True, text=True, timeout=PATIENCE).stdout.strip()
    number = re.search(r"(\d+)\.(\d+)", version)
    # A build from the development branch has no number and is newer than any release.
    if number is None or (int(number[1]), int(number[2])) >= FIRST_SAFE_VERSION:
        pytest.skip(f"{version} survives a control-mode client")
    return version


def attach_in_control_mode(home: Home) -> None:
    home.spawn("tmux", "-C", "attach-session", "-t", "=work", stdin=subprocess.PIPE)
    wait_until(lambda: home.tmux("list-clients", "-F", "#{client_control_mode}") == "1", "the client in control mode")


def sessions_until_the_server_dies(home: Home, end: EndSession, chance: random.Random) -> int | None:
    pid = server_pid(home)
    for number in range(1, ROUNDS + 1):
        # It may die under any of these commands, and takes what runs in its panes with it.
        with contextlib.suppress(AssertionError, ProcessLookupError):
            end(home, make_doomed_session(home, f"doomed-{number}", chance), chance)
        if server_pid(home) != pid:
            return number
    return None


@every_end
def test_with_a_client_in_control_mode_the_server_dies(
    home: Home, agents: set[str], end: EndSession, chance: random.Random, deadly_tmux: str
):
    attach_in_control_mode(home)
    number = sessions_until_the_server_dies(home, end, chance)
    assert number is not None, f"{deadly_tmux} survived {ROUNDS} sessions: then nothing is proven by the daemon's"
    print(f"{deadly_tmux} died with session {number}")


def is_in_control_mode(words: list[str]) -> bool:
    """Whether tmux is asked for it. Behind tmux's own command a -C means something else."""
    flags, _ = getopt.getopt(words, TMUX_FLAGS)
    return ("-C", "") in flags


@needs_proc
def test_the_daemon_is_no_client_of_the_server(home: Home, daemon: subprocess.Popen[str]):
    questions = 0

    def was_asked_often() -> bool:
        nonlocal questions
        assert home.tmux("list-clients", "-F", "#{client_control_mode} #{client_flags}") == ""
        for program, *words in filter(None, commands_below(daemon.pid)):
            if Path(program).name == "tmux":
                assert not is_in_control_mode(words), words
                questions += 1
        return questions >= 5 and looking.looks >= LOOKS

    with Looking(home) as looking:
        wait_until(was_asked_often, "to meet the daemon asking tmux")


@pytest.fixture
def recorded(home: Home) -> Path:
    """A file with one line for each word that the daemon says to tmux, and an empty one after each command."""
    record = home.folder / "record"
    wrapper = home.folder / "recording" / "tmux"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\n{{ printf "%s\\n" "$@"; echo; }} >>"{record}"\nexec {shutil.which("tmux")} "$@"\n')
    wrapper.chmod(0o755)
    return record


def test_the_daemon_never_asks_for_control_mode(home: Home, agents: set[str], recorded: Path):
    home.start(env={"PATH": f"{recorded.parent / 'recording'}:{home.env['PATH']}"})
    wait_until_shown(home, agents)
    with Looking(home) as looking:
        looking.wait_for(LOOKS)
    commands = [command.splitlines() for command in recorded.read_text("utf-8").split("\n\n") if command]
    assert len(commands) >= LOOKS
    assert not [words for words in commands if is_in_control_mode(words)]
