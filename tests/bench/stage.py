"""What the benchmarks measure against: a real daemon with private tmux servers, in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError

# What the tests share is theirs to import as it is under pytest.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

Row = tuple[str, str, str, bool]
_PATIENCE = 20.0
# A daemon looks at what does not move ever more seldom. By then it looks as seldom as it ever will, and is between two
# of its more thorough looks, so that what falls into a window does not depend on a second more or less.
_STILL_FOR = 20.0
_STILL_LIMIT = 40.0


class TooLongError(SystemExit):
    """A measurement that did not end in its time. No Exception: what is measured would take it for the daemon's."""


class Stage(NamedTuple):
    folder: Path
    socket: str
    environment: dict[str, str]
    client: Client
    pid: int
    panes: list[str]


def environment(folder: Path) -> dict[str, str]:
    """A user's: compiled files are kept, nothing is debugged, nobody else's tmux or daemon is in reach."""
    dropped = ("TMUX", "TMUX_PANE", "PYTHONDONTWRITEBYTECODE", "PYTHONASYNCIODEBUG", "XDG_RUNTIME_DIR", "AGTMUX_SOCKET")
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    return kept | {
        "AGTMUX_STATE_DIR": str(folder / "state"),
        "AGTMUX_CONFIG_DIR": str(folder / "config"),
        "TMUX_TMPDIR": str(folder),
        # Beside the sources, so that an editable checkout is measured as an installed package would be.
        "PYTHONPYCACHEPREFIX": str(folder / "pycache"),
    }


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="agb-", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name).resolve()


@contextlib.contextmanager
def running_daemon(panes: int) -> Iterator[Stage]:
    """A daemon whose target `host` has that many panes of agents."""
    with own_folder() as folder:
        env = environment(folder)
        with tmux_server(env) as server:
            server.add_panes(panes)
            with daemon_in(folder, env, panes) as stage:
                yield stage._replace(panes=server.panes())


@contextlib.contextmanager
def daemon_in(folder: Path, env: dict[str, str], panes: int, under: tuple[str, ...] = ()) -> Iterator[Stage]:
    """A daemon once it shows that many panes; `under` is a command that runs it, such as a tracer's."""
    # Itself, and not through `agtmuxd`: what is measured is then this process and what it starts.
    started = subprocess.Popen([*under, sys.executable, "-m", "agtmux.daemon"], env=env)
    try:
        socket = str(folder / "state" / "agtmuxd.sock")
        client = Client(socket, start=False)
        wait_for_panes(client, panes, started)
        yield Stage(folder, socket, env, client, int(client.get("/v1/health")["pid"]), [])
    finally:
        # A tracer that is ended lets go of what it runs, and ends by itself with it.
        _end(started, descendants(started.pid) if under else [started.pid])


def wait_for_panes(client: Client, panes: int, daemon: subprocess.Popen[bytes] | None = None) -> None:
    seen = "no answer"

    def shows_them() -> bool:
        nonlocal seen
        if daemon is not None and daemon.poll() is not None:
            raise RuntimeError(f"the daemon ended with {daemon.returncode}")
        try:
            listing = client.get("/v1/panes")
        except AgtmuxError:
            return False
        seen = f"it shows {len(listing['items'])}, {listing['target_errors'] or 'and no errors'}"
        return len(listing["items"]) == panes

    try:
        wait_until(shows_them, f"a daemon that shows {panes} panes")
    except TimeoutError as error:
        raise TimeoutError(f"{error}: {seen}") from None


def wait_until(condition: Callable[[], bool], what: str, limit: float = _PATIENCE) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {limit:.0f} seconds")
        # Seldom enough to leave the machine to what is waited for.
        time.sleep(0.1)


def settle(*clients: Client) -> None:
    """Returns when nothing has moved for a while."""
    deadline = time.monotonic() + _STILL_LIMIT
    last: list[Any] = []
    since = time.monotonic()
    while time.monotonic() - since < _STILL_FOR:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the panes are not still within {_STILL_LIMIT:.0f} seconds")
        shown = [client.get("/v1/panes?all=1")["items"] for client in clients]
        if shown != last:
            last, since = shown, time.monotonic()
        time.sleep(2)


# tmux


class TmuxServer:
    """A tmux server of one's own, the default one of its environment unless it has a path."""

    def __init__(self, env: dict[str, str], path: Path | None = None) -> None:
        self._env = env
        self._command = ["tmux", "-f", "/dev/null", *(["-S", str(path)] if path else [])]
        self.pid: int | None = None

    def add_panes(self, count: int) -> None:
        """Panes that do nothing, each in a window of its own and marked as an agent's."""
        if self.pid is None and count:
            self.run("new-session", "-d", "-s", "bench", "-x", "100", "-y", "40", "sleep", "3600")
            self.pid = int(self.run("display-message", "-p", "#{pid}"))
            count -= 1
        # Many commands to one client: a process for each would take longer than what is measured.
        self._source(["new-window -d -t bench: sleep 3600"] * count)
        self._source([f"set-option -p -t {pane} @agtmux_agent claude" for pane in self.panes()])

    def panes(self) -> list[str]:
        return self.run("list-panes", "-a", "-F", "#{pane_id}").split() if self.pid is not None else []

    def run(self, *words: str, typed: str | None = None) -> str:
        done = subprocess.run(
            [*self._command, *words], env=self._env, input=typed, capture_output=True, text=True, timeout=_PATIENCE
        )
        if done.returncode != 0:
            raise RuntimeError(f"tmux {words[0]}: {done.stderr.strip()}")
        return done.stdout.strip()

    def close(self) -> None:
        if self.pid is None:
            return
        with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
            self.run("kill-server")
        try:
            wait_until(lambda: _process(self.pid) is None, "end of a tmux server", 5)
        except TimeoutError:
            _kill(self.pid, signal.SIGKILL)

    def _source(self, lines: list[str]) -> None:
        if lines:
            self.run("source-file", "-", typed="\n".join(lines) + "\n")


@contextlib.contextmanager
def tmux_server(env: dict[str, str], path: Path | None = None) -> Iterator[TmuxServer]:
    server = TmuxServer(env, path)
    try:
        yield server
    finally:
        server.close()


# Processes


class Usage(NamedTuple):
    """Seconds of processor time, of a process and of those it started, ended ones included."""

    own: float
    started: float

    @property
    def whole(self) -> float:
        return self.own + self.started

    def since(self, earlier: Usage) -> Usage:
        return Usage(self.own - earlier.own, self.started - earlier.started)


def usage(pid: int) -> Usage:
    tick = os.sysconf("SC_CLK_TCK")
    processes = _processes()
    own, ended = processes[pid].ticks, processes[pid].children_ticks
    alive = (processes[each] for each in _below(processes, pid))
    return Usage(own / tick, (ended + sum(each.ticks + each.children_ticks for each in alive)) / tick)


class Scheduling(NamedTuple):
    """Seconds that a thread has run, of a process its first, and that it was ready to but waited for a processor."""

    ran: float
    waited: float


def scheduling(pid: int | None = None) -> Scheduling:
    """Of the calling thread if no process is named. Also of one that has ended and was not waited for. Zeros where the
    kernel does not tell."""
    try:
        ran, waited, _ = Path("/proc", "thread-self" if pid is None else str(pid), "schedstat").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return Scheduling(0.0, 0.0)
    return Scheduling(int(ran) / 1e9, int(waited) / 1e9)


class Duration(NamedTuple):
    """Seconds on the clock, and how many of them the measured processes ran or waited for a processor.

    Other processes on the machine cause the waiting. Budgets are about this program, so they are held against `own`.
    On an idle machine both are the same.
    """

    whole: float
    ran: float
    waited: float

    @property
    def own(self) -> float:
        # Processes may wait at the same time, but no measurement is shorter than what was computed in it.
        return min(self.whole, max(self.whole - self.waited, self.ran))


class Stopwatch:
    """Measures what happens one step after another in this thread and in the first threads of the processes `pids`."""

    def __init__(self, *pids: int) -> None:
        self._pids = (*pids, None)
        self._before = self._scheduling()
        self._began = time.perf_counter()

    def read(self, *started: int) -> Duration:
        """Since it was made; `started` are processes that did not exist then."""
        whole = time.perf_counter() - self._began
        spent = list(zip(self._before, self._scheduling(), strict=True))
        spent += [(Scheduling(0.0, 0.0), scheduling(pid)) for pid in started]
        ran = sum(late.ran - early.ran for early, late in spent)
        return Duration(whole, ran, sum(late.waited - early.waited for early, late in spent))

    def _scheduling(self) -> list[Scheduling]:
        return [scheduling(pid) for pid in self._pids]


def quantile(samples: list[float], share: float) -> float:
    """The value that this share of the samples does not exceed; 0.95 is p95. Never beyond the largest sample."""
    if share == 1.0 or len(samples) == 1:
        return max(samples)
    return statistics.quantiles(samples, n=1000, method="inclusive")[round(share * 1000) - 1]


def descendants(pid: int) -> list[int]:
    return _below(_processes(), pid)


class _Process(NamedTuple):
    parent: int
    ticks: int
    children_ticks: int


def _processes() -> dict[int, _Process]:
    pids = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
    return {pid: process for pid in pids if (process := _process(pid)) is not None}


def _process(pid: int | None) -> _Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    words = text.rpartition(")")[2].split()
    # A zombie only waits for its parent to take note.
    if words[0] in "ZX":
        return None
    utime, stime, cutime, cstime = map(int, words[11:15])
    return _Process(int(words[1]), utime + stime, cutime + cstime)


def _below(processes: dict[int, _Process], pid: int) -> list[int]:
    found = [pid]
    for each in found:
        found += [child for child, process in processes.items() if process.parent == each]
    return found[1:]


def _end(child: subprocess.Popen[bytes], pids: list[int]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            _kill(pid, number)
        try:
            child.wait(_PATIENCE / 2)
            return
        except subprocess.TimeoutExpired:
            continue
    child.wait(_PATIENCE)


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


# The measurement


@contextlib.contextmanager
def bounded(seconds: int) -> Iterator[None]:
    """Says how busy the machine is, and sees to it that too long a measurement, or one that is ended, cleans up."""
    print(f"  load {Path('/proc/loadavg').read_text().strip()}", file=sys.stderr)

    endings = {signal.SIGALRM: TooLongError(f"not within {seconds} seconds"), signal.SIGTERM: SystemExit("ended")}

    def end(number: int, _: object) -> None:
        # Once: what is cleaned up from now on is not to be left half done.
        for each in endings:
            signal.signal(each, signal.SIG_IGN)
        raise endings[signal.Signals(number)]

    before = {number: signal.signal(number, end) for number in endings}
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        for number, handler in before.items():
            signal.signal(number, handler)


def row_of(what: str, samples: list[Duration], share: float, budget: float) -> Row:
    """`budget` in milliseconds, of that share of the samples, without the waiting for a processor."""
    own, whole = [each.own * 1e3 for each in samples], [each.whole * 1e3 for each in samples]
    measured, p = quantile(own, share), f"p{share * 100:.0f}"
    told = f"median {statistics.median(own):.1f}; {p} {quantile(whole, share):.1f} with the waiting for a processor"
    return (f"{what}, {p}", f"{measured:.1f} ms ({told})", f"≤ {budget:.0f} ms", measured <= budget)


def print_rows(rows: list[Row]) -> None:
    for row in rows:
        print(*row, sep=" | ")
