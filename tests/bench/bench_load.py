"""What one client costs the others: unread requests on the board, and a VM that reports without end. Linux only.

Memory and disk of the daemon, and the time that another client waits for an answer: before, during and after. Each
attack is bounded in count and in time and stays on loopback. The attacker runs on the same machine and takes processor
time from the daemon, as other programs do. Budgets are held against the time without the waiting for a processor.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import selectors
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench_board import _resident
from bench_ssh import _vm
from bench_watch import _request
from stage import (
    Duration,
    Row,
    Stage,
    Stopwatch,
    bounded,
    daemon_in,
    environment,
    own_folder,
    print_rows,
    running_daemon,
    tmux_server,
)

from support import liar
from support.chance import any_seed
from support.http import Connection
from support.sshd import write_client_config

PANES = 20
CONNECTIONS = 300
# What each connection tries to send, and for how long all of them stay.
BYTES = 4_000_000
ATTACK = 30.0
FLOOD = 60.0
CALM = 5.0
MEMORY_BUDGET = 150.0
DISK_BUDGET = 64.0
ANSWER_BUDGET = 1_000.0
# Of the flood: agents on the VM, reports a second, bytes of each.
VM_AGENTS = 1_200
VM_REPORTS = 40
VM_SIZE = 300_000


class Phase(NamedTuple):
    answers: list[Duration]
    late: int
    memory: float
    disk: float

    @property
    def longest(self) -> float:
        """Milliseconds of an answer, without the waiting for a processor."""
        return max(each.own for each in self.answers) * 1e3

    def __str__(self) -> str:
        median = statistics.median(each.own for each in self.answers) * 1e3
        whole = max(each.whole for each in self.answers) * 1e3
        late = f", {self.late} unanswered" if self.late else ""
        answer = f"{median:.0f}/{self.longest:.0f} ms ({whole:.0f} with the waiting for a processor)"
        return f"{self.memory:.0f} MB, disk {self.disk:.0f} MB, answer {answer}{late}"


def run() -> list[Row]:
    return [*_board(), *_flood()]


# The board


def _board() -> list[Row]:
    with bounded(180), running_daemon(PANES) as stage:
        opened = stage.client.post("/v1/board", {"action": "open", "port": 0, "token_file": f"{stage.folder}/token"})
        token = (stage.folder / "token").read_text().strip()
        port = int(opened["url"].rpartition(":")[2].strip("/"))

        def ask_board() -> None:
            with socket.create_connection(("127.0.0.1", port), 20) as connection:
                head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
                connection.sendall(f"GET /v1/panes HTTP/1.1\r\n{head}\r\n".encode())
                answer = b""
                while chunk := connection.recv(65_536):
                    answer += chunk
            if not answer.startswith(b"HTTP/1.1 200"):
                raise OSError(answer[:60])

        asks = {"on the socket": lambda: _ask_panes(stage), "on the board": ask_board}
        before = _measured(stage, asks, CALM)
        attacker = multiprocessing.get_context("spawn").Process(target=attack, args=(port, CONNECTIONS, BYTES, ATTACK))
        attacker.start()
        try:
            during = _measured(stage, asks, ATTACK)
        finally:
            attacker.terminate()
            attacker.join(10)
        after = _measured(stage, asks, CALM)
        log = sum(path.stat().st_size for path in (stage.folder / "state" / "logs").iterdir()) / 1e3
    rows: list[Row] = [("board, the daemon's log after that", f"{log:.0f} kB", "≤ 500 kB", log <= 500)]
    for name in asks:
        rows += _rows(f"{CONNECTIONS} unread connections, a client {name}", before[name], during[name], after[name])
    return rows


def attack(port: int, connections: int, size: int, seconds: float) -> None:
    """Many connections that send requests and never read an answer. One that is closed is opened again."""
    request = f"GET /v1/panes HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    block = request * (65_536 // len(request))
    waiting = selectors.DefaultSelector()
    deadline = time.monotonic() + seconds
    # Those that have sent all they were to send, and stay.
    unread: list[socket.socket] = []

    def open_one() -> None:
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex(("127.0.0.1", port))
        waiting.register(connection, selectors.EVENT_WRITE, [0])

    for _ in range(connections):
        open_one()
    while time.monotonic() < deadline:
        for key, _ in waiting.select(0.1):
            connection, sent = key.fileobj, key.data
            assert isinstance(connection, socket.socket)
            try:
                # From any place within a block, so that requests come in pieces too.
                sent[0] += connection.send(block[sent[0] % len(request) :])
            except BlockingIOError:
                continue
            except OSError:
                waiting.unregister(connection)
                connection.close()
                open_one()
                continue
            if sent[0] > size:
                waiting.unregister(connection)
                unread.append(connection)
        time.sleep(0.005)


# The VM


def _flood() -> list[Row]:
    with bounded(240), own_folder() as folder, contextlib.ExitStack() as closing:
        home = folder / "home"
        home.mkdir()
        env = environment(folder) | {"HOME": str(home)}
        env.pop("SSH_AUTH_SOCK", None)
        vm = closing.enter_context(_vm(folder))
        local = closing.enter_context(tmux_server(env))
        write_client_config(home, [vm])
        local.add_panes(PANES)
        stage = closing.enter_context(daemon_in(folder, env, PANES))
        asks = {"": lambda: _ask_panes(stage), "report": _reporter(stage, local.panes())}
        before = _measured(stage, asks, CALM)
        liar.install(vm, "pressing", "vm", seed=any_seed(), panes=VM_AGENTS, reports=VM_REPORTS, size=VM_SIZE)
        stage.client.post("/v1/targets", {"name": "vm", "kind": "ssh", "ssh_target": vm.name})
        during = _measured(stage, asks, FLOOD)
        health = {each["name"]: each for each in stage.client.get("/v1/targets")["items"]}["vm"]
        waits = [each for each in stage.client.get("/v1/panes")["items"] if each["state"] == "waiting_approval"]
        waiting = sum(each["identity"]["target"] == "vm" for each in waits)
        vm.uninstall()
        vm.cut()
        after = _measured(stage, asks, CALM)
    told = (health["error"] or {}).get("message") or health["warning"] or "no reason"
    what = f"VM that reports for {FLOOD:.0f} s"
    grown = during[""].disk - before[""].disk
    return [
        *_rows(f"{what}, a client of the host's panes", before[""], during[""], after[""]),
        *_rows(f"{what}, a report about the host", before["report"], during["report"], after["report"]),
        (f"{what}, disk", f"+{grown:.0f} MB", f"≤ {DISK_BUDGET:.0f} MB", grown <= DISK_BUDGET),
        (f"{what}, shown", f"{waiting} wait, {health['health']}: {told[:160]}", "not ok", health["health"] != "ok"),
    ]


def _reporter(stage: Stage, panes: list[str]) -> Callable[[], None]:
    chance = random.Random(7)

    def report() -> None:
        with socket.socket(socket.AF_UNIX) as hook:
            hook.settimeout(20)
            hook.connect(stage.socket)
            hook.sendall(_request(chance.choice(panes), f"{chance.getrandbits(64):x}"))
            if not hook.recv(65_536).startswith(b"HTTP/1.1 200"):
                raise OSError("refused")

    return report


# The measurement


def _ask_panes(stage: Stage) -> None:
    # The check against the schema takes many times as long as the answer, and other threads measure meanwhile.
    with Connection(Path(stage.socket), holds_to_schemas=False) as connection:
        if connection.ask("GET", "/v1/panes?target=host").status != 200:
            raise OSError("refused")


def _measured(stage: Stage, asks: dict[str, Callable[[], None]], seconds: float) -> dict[str, Phase]:
    """One client of each kind, that asks ten times a second; and the most memory and disk that there were."""
    deadline = time.monotonic() + seconds
    times: dict[str, list[Duration]] = {name: [] for name in asks}
    late = dict.fromkeys(asks, 0)

    def keep_asking(name: str, ask: Callable[[], None]) -> None:
        while time.monotonic() < deadline:
            watch = Stopwatch(stage.pid)
            try:
                ask()
            except (OSError, AssertionError):
                late[name] += 1
            times[name].append(watch.read())
            time.sleep(0.1)

    threads = [threading.Thread(target=keep_asking, args=each) for each in asks.items()]
    for thread in threads:
        thread.start()
    memory = disk = 0.0
    while any(thread.is_alive() for thread in threads):
        memory = max(memory, _resident(stage.pid))
        disk = max(disk, _on_disk(stage.folder / "state"))
        time.sleep(0.1)
    return {name: Phase(times[name], late[name], memory, disk) for name in asks}


def _on_disk(folder: Path) -> float:
    """Millions of bytes."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += (Path(place) / name).lstat().st_size
    return total / 1e6


def _rows(what: str, before: Phase, during: Phase, after: Phase) -> Iterator[Row]:
    is_kept = during.late == 0 and during.longest <= ANSWER_BUDGET
    is_kept &= during.memory - before.memory <= MEMORY_BUDGET and after.late == 0
    budget = f"≤ +{MEMORY_BUDGET:.0f} MB, ≤ {ANSWER_BUDGET:.0f} ms"
    yield f"{what}, before", str(before), "told only", True
    yield f"{what}, during", str(during), budget, is_kept
    yield f"{what}, after", str(after), "told only", True


if __name__ == "__main__":
    print_rows(run())
