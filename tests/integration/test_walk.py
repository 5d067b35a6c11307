"""What agtmux lists is what tmux says: on three targets with a hundred panes, within one tick of whatever changes.

A random walk: panes, windows and sessions come, move and go, now and then a whole server or the daemon itself, and
after each step the two are compared. tmux is asked in the same breath as it is told to change something and not again:
a question makes it stir too, and the daemon would look for that reason alone.
"""

from __future__ import annotations

import json
import random
import shlex
import shutil
import statistics
import subprocess
import time
from collections import Counter, namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.chance import any_seed
from support.home import Home, wait_until
from support.sshd import Sshd

# A target is looked at every five seconds at the latest; the rest is for the look.
TICK = 7.0
POLL = 0.05
LONGEST_PAUSE = 5.0
# Bounds that the walk is drawn back from, over all targets; and what a server keeps when a part of it is killed.
FEW, MANY, KEPT = 98, 106, 20

AGENTS = ("claude", "codex", "copilot", "cursor", "gemini")
# More than one word each: tmux runs these without a shell around them. None says anything by itself.
SLEEP, CAT, SHELL = ("sleep", "3600"), ("cat", "-"), ("sh", "-i")
PROGRAMS = (SLEEP, CAT, SHELL)
FOLDERS = ("plain", "two words", "50%/of ü", 'it\'s "quoted"', "名前", "tab\there", "two\nlines")
NAMES = (
    "plain", "two words", "a/b", "100%", "%0", "%%", "@1", "$HOME", "=exact", "-dash", "ü é ß", "e\u0301", "名前", "🦊",
    "👩‍💻", "\u202ertl", "it's \"quoted\"", "back\\slash", "a:b.c", "#{pane_id}", "##S", "a;b", "tab\there", "x" * 300,
    "two\nlines", "\x1b[31mred", " around ", "*?[a-z]", "~", "{a,b}", "null", "&lt;", "",
)  # fmt: skip

# A pane, in tmux's words, but for its mark.
Row = namedtuple(
    "Row",
    "session_id session_name window_id window_name pane_id pane_start_command pane_pid pane_title pane_current_path"
    " pid start_time mark",
)
BETWEEN, END = "<|between|>", "<|end|>"

Vms = Callable[..., list[Sshd]]


def question(label: str) -> list[str]:
    names = [*Row._fields[:-1], "@agtmux_agent"]
    return ["list-panes", "-a", "-F", BETWEEN.join([label, *(f"#{{{name}}}" for name in names)]) + END]


class Server:
    """One tmux server, what it was told and what it says of itself."""

    def __init__(self, name: str, tmux: Callable[..., str], place: Path) -> None:
        self.name = name
        self._tmux = tmux
        self.folders = [str(place / folder) for folder in FOLDERS]
        for folder in self.folders:
            Path(folder).mkdir(parents=True)
        self.agent = str(place / "claude")
        shutil.copy(shutil.which("sleep") or "/bin/sleep", self.agent)
        self.rows: dict[str, Row] = {}
        # By process, because tmux answers before a new one is where it belongs, and a shell has done what was typed.
        self.folder_of: dict[str, str] = {}
        self.typed: set[str] = set()
        # Since the last comparison: what it was told, and in which panes an agent may have come and gone unseen.
        self.told: list[str] = []
        self.touched: set[str] = set()

    def change(self, *words: str, folder: str = "") -> bool:
        """Whether it did as it was told. Processes that are new run in `folder`."""
        is_settled = bool(self.rows) and not self.told
        before = [*question("before"), ";"] if is_settled else []
        self.told.append(f"{self.name}: {shlex.join(words)}"[:200])
        try:
            said = self._tmux(*before, *words, ";", *question("after"))
            is_done = True
        except AssertionError as refusal:
            # No room, a name that is taken, or a server that is just ending.
            self.told[-1] += f" REFUSED: {str(refusal).rpartition(': ')[2].strip()}"
            said = self._tmux(*question("after")) if self.rows else ""
            is_done = False
        listed: dict[str, dict[str, Row]] = {"before": {}, "after": {}}
        for line in said.split(END)[:-1]:
            label, *values = line.removeprefix("\n").split(BETWEEN)
            row = Row(*values)
            listed[label][row.pane_id] = row
        if is_settled and is_done:
            assert listed["before"] == self.rows, f"{self.name} has changed by itself"
        rows = listed["after"]
        # Those that have ended are forgotten: the system uses their numbers again.
        self.folder_of = {row.pane_pid: self.folder_of.get(row.pane_pid, folder) for row in rows.values()}
        self.typed &= self.folder_of.keys()
        self.rows = {pane: row._replace(pane_current_path=self.folder_of[row.pane_pid]) for pane, row in rows.items()}
        return is_done

    def end(self) -> None:
        self.told.append(f"{self.name}: kill-server")
        self._tmux("kill-server")
        self.rows, self.folder_of, self.typed = {}, {}, set()

    def compared(self) -> None:
        self.told.clear()
        self.touched.clear()

    def agent_type(self, row: Row) -> str:
        if row.mark in AGENTS:
            return str(row.mark)
        return "claude" if row.pane_pid in self.typed else "none"

    def parts(self, field: str) -> Counter[str]:
        """Its sessions, windows or panes, and how many panes each has."""
        return Counter(getattr(row, field) for row in self.rows.values())

    def those(self, are: Callable[[Row], bool]) -> list[str]:
        return [pane_id for pane_id, row in self.rows.items() if are(row)]


# What may happen to a server. Each says whether it did.

Operation = Callable[[Server, random.Random], bool]


def populate(server: Server, chance: random.Random) -> bool:
    """A new server with all its panes, in one go."""
    folder = chance.choice(server.folders)
    words: list[str] = []
    for number in range(6):
        words += ["new-session", "-d", "-s", f"s{number}", "-x", "200", "-y", "200", "-c", folder, *CAT, ";"]
        for _ in range(chance.randint(4, 5)):
            verb = chance.choice(("new-window", "split-window"))
            words += [verb, "-d", "-t", f"=s{number}:", "-c", folder, *chance.choice(PROGRAMS), ";"]
    # By itself tmux would rename windows at its leisure.
    words += ["set-option", "-g", "automatic-rename", "off"]
    wait_until(lambda: server.change(*words, folder=folder), f"a new tmux server on {server.name}")
    marks: list[str] = []
    for pane in chance.sample(list(server.rows), len(server.rows) // 3):
        marks += ["set-option", "-p", "-t", pane, "@agtmux_agent", chance.choice(AGENTS), ";"]
    return server.change(*marks[:-1])


def kill_server(server: Server, chance: random.Random) -> bool:
    server.end()
    # Pane ids begin anew, and the daemon may not have seen that there were none.
    return chance.random() < 0.5 or populate(server, chance)


def plainly(line: str) -> Operation:
    """A command of tmux's with any session, window, pane and name where those words stand."""
    return lambda server, chance: server.change(*_filled(line, server, chance))


def starting(line: str) -> Operation:
    """A command that starts a program somewhere."""

    def operation(server: Server, chance: random.Random) -> bool:
        folder = chance.choice(server.folders)
        return server.change(*_filled(line, server, chance), "-c", folder, *chance.choice(PROGRAMS), folder=folder)

    return operation


def ending(line: str, field: str) -> Operation:
    """A command that ends something of which enough is left."""

    def operation(server: Server, chance: random.Random) -> bool:
        small = [part for part, size in server.parts(field).items() if size <= len(server.rows) - KEPT]
        return bool(small) and server.change(*line.split(), chance.choice(small))

    return operation


def _filled(line: str, server: Server, chance: random.Random) -> list[str]:
    def fill(word: str) -> str:
        if word == "NAME":
            return chance.choice(NAMES) + chance.choice(("", str(chance.randrange(100))))
        field = {"SESSION": "session_id", "SESSION:": "session_id", "WINDOW": "window_id", "PANE": "pane_id"}.get(word)
        return chance.choice(list(server.parts(field))) + ":" * word.endswith(":") if field else word

    return [fill(word) for word in line.split()]


def set_mark(server: Server, chance: random.Random) -> bool:
    pane = chance.choice(server.those(lambda row: row.pane_pid not in server.typed))
    server.touched.add(pane)
    return server.change("set-option", "-p", "-t", pane, "@agtmux_agent", chance.choice((*AGENTS, "hal")))


def unset_mark(server: Server, chance: random.Random) -> bool:
    pane = chance.choice(server.those(lambda row: bool(row.mark)) or [""])
    server.touched.add(pane)
    return bool(pane) and server.change("set-option", "-pu", "-t", pane, "@agtmux_agent")


def change_directory(server: Server, chance: random.Random) -> bool:
    pane = _idle_shell(server, chance)
    # Tabs and line breaks mean something else where they are typed.
    folder = chance.choice([folder for folder in server.folders if folder.isprintable()])
    if pane:
        server.folder_of[server.rows[pane].pane_pid] = folder
    return bool(pane) and _type(server, pane, f"cd {shlex.quote(folder)}", "Enter")


def start_agent(server: Server, chance: random.Random) -> bool:
    pane = _idle_shell(server, chance)
    if pane:
        server.typed.add(server.rows[pane].pane_pid)
    return bool(pane) and _type(server, pane, f"{shlex.quote(server.agent)} 3600", "Enter")


def end_agent(server: Server, chance: random.Random) -> bool:
    # One that was typed just now may not have started, and would not notice.
    running = server.those(lambda row: row.pane_pid in server.typed and row.pane_id not in server.touched)
    pane = chance.choice(running or [""])
    if pane:
        server.typed.remove(server.rows[pane].pane_pid)
    return bool(pane) and _type(server, pane, "", "C-c")


def _idle_shell(server: Server, chance: random.Random) -> str:
    shells = server.those(lambda row: row.pane_start_command == " ".join(SHELL) and not row.mark)
    return chance.choice([pane for pane in shells if server.rows[pane].pane_pid not in server.typed] or [""])


def _type(server: Server, pane: str, line: str, key: str) -> bool:
    server.touched.add(pane)
    return server.change("send-keys", "-t", pane, "-l", line, ";", "send-keys", "-t", pane, key)


GROW: tuple[Operation, ...] = (
    starting("new-window -d -t SESSION:"),
    starting("split-window -d -h -t PANE"),
    starting("split-window -d -v -t PANE"),
    starting("new-session -d -s NAME -x 200 -y 200"),
)
SHRINK: tuple[Operation, ...] = (
    ending("kill-pane -t", "pane_id"),
    ending("kill-window -t", "window_id"),
    ending("kill-session -t", "session_id"),
)
ALTER: tuple[Operation, ...] = (
    plainly("rename-session -t SESSION -- NAME"),
    plainly("rename-window -t WINDOW -- NAME"),
    plainly("select-pane -t PANE -T NAME"),
    plainly("break-pane -d -s PANE -t SESSION:"),
    plainly("join-pane -d -s PANE -t PANE"),
    plainly("swap-pane -d -s PANE -t PANE"),
    plainly("move-window -d -s WINDOW -t SESSION:"),
    starting("respawn-pane -k -t PANE"),
    set_mark,
    unset_mark,
    change_directory,
    start_agent,
    end_agent,
)


class Inhabitants:
    """Whom agtmux takes for whom: a runtime is one inhabitant of one pane, and never comes back."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[tuple[str, ...], str]] = {}
        self._runtimes: set[str] = set()

    def take(self, servers: list[Server], items: list[dict[str, Any]]) -> list[str]:
        """Panes of which agtmux has not noticed that they have another inhabitant; if there are none, who is who."""
        now = {}
        unnoticed = []
        runtimes = {_key(item): item["runtime_id"] for item in items}
        for server in servers:
            for pane_id, row in server.rows.items():
                who = (row.pid, row.start_time, row.pane_pid, server.agent_type(row))
                key, runtime = (server.name, pane_id), runtimes[server.name, pane_id]
                before, runtime_before = self._known.get(key, (None, None))
                if runtime != runtime_before:
                    assert runtime not in self._runtimes, f"the runtime of {key} was another's, or has come back"
                    assert who != before or pane_id in server.touched, f"{key} is the same, with another runtime: {who}"
                elif who != before:
                    unnoticed.append(f"{key} was {before}, is {who}, and has the same runtime")
                now[key] = (who, runtime)
        if not unnoticed:
            self._known = now
            self._runtimes |= set(runtimes.values())
        return unnoticed


def _key(item: dict[str, Any]) -> tuple[str, str]:
    return item["identity"]["target"], item["identity"]["pane_id"]


class Walk:
    def __init__(self, home: Home, servers: list[Server], chance: random.Random) -> None:
        self._home = home
        self._servers = servers
        self._chance = chance
        self._inhabitants = Inhabitants()
        self._left: dict[tuple[Operation, ...], list[Operation]] = {}

    @property
    def panes(self) -> int:
        return sum(len(server.rows) for server in self._servers)

    def take_step(self, first: Operation | None = None) -> None:
        """One thing happens, or two in quick succession."""
        self._do(first)
        if self._chance.random() < 0.25:
            self._do()

    def _do(self, operation: Operation | None = None) -> None:
        while True:
            empty = [server for server in self._servers if not server.rows]
            populated = [server for server in self._servers if server.rows]
            if empty and (not populated or self._chance.random() < 0.5):
                populate(empty[0], self._chance)
                return
            if (operation or self._draw())(self._chance.choice(populated), self._chance):
                return

    def _draw(self) -> Operation:
        grow, shrink = (4, 1) if self.panes < FEW else (1, 4) if self.panes > MANY else (2, 2)
        [kind] = self._chance.choices((GROW, SHRINK, ALTER), (grow, shrink, 6))
        # Each of them once before any comes again.
        left = self._left.setdefault(kind, [])
        left += [] if left else self._chance.sample(kind, len(kind))
        return left.pop()

    def until_equal(self) -> float:
        """How long it took agtmux to say what tmux says."""
        began = time.monotonic()
        while difference := self._difference():
            assert time.monotonic() - began < TICK, f"not within {TICK} seconds, as (tmux, agtmux): {difference}"
            time.sleep(POLL)
        return time.monotonic() - began

    def _difference(self) -> object:
        listing = self._home.ask("GET", "/v1/panes?all=1").json
        windows = self._home.ask("GET", "/v1/windows?all=1").json["items"]
        items = listing["items"]
        for what, keys in {"pane": map(_key, items), "runtime": (item["runtime_id"] for item in items)}.items():
            twice = [key for key, times in Counter(keys).items() if times > 1]
            assert not twice, f"listed twice, a {what}: {twice}"
        difference: object = _differences(self._expected(), _shown(items, windows)) or listing["target_errors"]
        if difference or (difference := self._inhabitants.take(self._servers, items)):
            return difference
        for server in self._servers:
            server.compared()
        return None

    def _expected(self) -> dict[tuple[str, ...], object]:
        expected: dict[tuple[str, ...], object] = {}
        for server in self._servers:
            sizes = server.parts("window_id")
            for row in server.rows.values():
                place = (row.session_name, row.window_id)
                facts = (row.pane_title, row.pane_current_path, server.agent_type(row))
                expected["pane", server.name, row.pane_id] = (*place, *facts)
                expected["window", server.name, *place] = (row.window_name, sizes[row.window_id])
        return expected

    def check_the_command_and_the_database(self) -> None:
        listings = {}
        for what in ("panes", "windows"):
            done = self._home.run("list", what, "--all", "--json")
            assert done.returncode == 0, done.stderr
            listings[what] = json.loads(done.stdout)["items"]
        assert _shown(listings["panes"], listings["windows"]) == self._expected()
        active = self._home.query("SELECT target_id, pane_id, runtime_id FROM runtimes WHERE ended_at IS NULL")
        assert sorted(active) == sorted((*_key(item), item["runtime_id"]) for item in listings["panes"])


def _shown(panes: list[dict[str, Any]], windows: list[dict[str, Any]]) -> dict[tuple[str, ...], object]:
    shown: dict[tuple[str, ...], object] = {}
    for item in panes:
        place = (item["identity"]["session_name"], item["identity"]["window_id"])
        shown["pane", *_key(item)] = (*place, item["title"], item["cwd"], item["agent_type"])
    for item in windows:
        shown["window", *item["identity"].values()] = (item["window_name"], item["panes"])
    return shown


def _differences(expected: dict[Any, object], shown: dict[Any, object]) -> dict[Any, object]:
    keys = [key for key in expected.keys() | shown.keys() if expected.get(key) != shown.get(key)]
    return {key: (expected.get(key), shown.get(key)) for key in sorted(keys)[:5]}


@pytest.fixture
def chance() -> random.Random:
    return random.Random(any_seed())


@pytest.fixture
def servers(home: Home, vms: Vms, chance: random.Random) -> list[Server]:
    """This machine and two VMs."""
    made = [Server("host", home.tmux, home.folder / "walk")]
    made += [Server(vm.name, vm.tmux, vm.folder / "walk") for vm in vms(2)]
    for server in made:
        populate(server, chance)
    return made


def start_daemon(home: Home, servers: list[Server]) -> subprocess.Popen[str]:
    daemon = home.start()
    for vm in servers[1:]:
        asked = {"name": vm.name, "kind": "ssh", "ssh_target": vm.name}
        assert home.ask("POST", "/v1/targets", asked).status == 200
    return daemon


@pytest.mark.parametrize("steps", [40, pytest.param(500, marks=pytest.mark.soak)])
def test_what_is_listed_is_what_tmux_says_within_a_tick(
    home: Home, servers: list[Server], chance: random.Random, steps: int
):
    walk = Walk(home, servers, chance)
    # Some steps end a server, and in some the daemon is killed and does not see what happens before the next one.
    ends = chance.sample(range(steps), steps // 40)
    restarts = chance.sample(range(steps), steps // 100 or 1)
    daemon = start_daemon(home, servers)
    times = [walk.until_equal()]
    sizes = [walk.panes]
    for step in range(steps):
        # Any moment of the daemon's rounds will do.
        time.sleep(LONGEST_PAUSE * chance.random() ** 20)
        if step in restarts:
            daemon.kill()
            daemon.communicate()
        walk.take_step(kill_server if step in ends else None)
        if step in restarts:
            daemon = home.start()
        told = [line for server in servers for line in server.told]
        print(f"{step}{' (restart)' if step in restarts else ''}, {walk.panes} panes: {told}")
        times.append(walk.until_equal())
        sizes.append(walk.panes)
        print(f"    equal after {times[-1]:.2f} s")
        if step in restarts:
            walk.check_the_command_and_the_database()
    walk.check_the_command_and_the_database()
    assert [line for line in home.log_lines() if line["level"] in ("error", "critical")] == []
    median, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
    print(f"{steps} steps with {min(sizes)} to {max(sizes)} panes, {statistics.mean(sizes):.0f} on average")
    print(f"equal after {median:.2f} s (median), {p95:.2f} s (p95), {max(times):.2f} s (longest)")
    assert max(times) < TICK
