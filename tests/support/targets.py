"""A home's targets: how a VM is added, what is seen on it, what its hooks say, and how long a listing takes."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

from support.home import PATIENCE, Home, event, wait_until
from support.hook import patient_in
from support.processes import read_text
from support.sshd import Sshd

# A target that hangs is noticed within seconds, one that is back is found at once. Not shorter: a machine that runs
# other tests as well takes its time to log in.
HASTY = """
[targets]
connect_timeout = "2s"
command_timeout = "2s"
retry_after = ["100ms", "100ms"]
longest_pause = "500ms"
"""

Key = tuple[str, str]


class Told(NamedTuple):
    runtime_id: str
    state: str
    reason_code: str


def add(home: Home, name: str, ssh_target: str = "", tmux_socket: str = "") -> None:
    """A target, once it has been looked at."""
    asked = {"name": name, "kind": "ssh", "ssh_target": ssh_target or name, "tmux_socket": tmux_socket}
    answer = home.ask("POST", "/v1/targets", asked)
    assert answer.status == 200, answer
    wait_until(lambda: home.ask("POST", f"/v1/targets/{name}/connect", {}).status == 200, f"a look at {name}")


def seen(home: Home) -> dict[Key, dict[str, Any]]:
    """Every pane, by target and pane id: each tmux server has a %0."""
    items = home.ask("GET", "/v1/panes?all=1").json["items"]
    by_place = {(item["identity"]["target"], item["identity"]["pane_id"]): item for item in items}
    assert len(by_place) == len(items), items
    return by_place


def told(home: Home) -> dict[Key, Told]:
    return {key: Told(item["runtime_id"], item["state"], item["reason_code"]) for key, item in seen(home).items()}


def state(home: Home, target: str, pane_id: str) -> str:
    return str(seen(home).get((target, pane_id), {}).get("state"))


def report(home: Home, target: str, pane_id: str, event_type: str = "state.waiting_approval") -> None:
    """Through the host's own door; durable when this returns."""
    answer = home.ask("POST", "/v1/events", event(pane_id, event_type, target_id=target))
    assert (answer.status, answer.json["status"]) == (200, "applied"), answer


def health(home: Home, name: str) -> str:
    return str(next(target["health"] for target in home.health()["targets"] if target["name"] == name))


def error(home: Home, name: str) -> str:
    """What keeps the target from being looked at; empty if nothing does."""
    found = next(target["error"] for target in home.health()["targets"] if target["name"] == name)
    assert found is None or (found["target"], found["code"]) == (name, "E_TARGET_UNREACHABLE"), found
    return "" if found is None else str(found["message"])


def fire_hook(home: Home, vm: Sshd, pane_id: str, name: str, payload: str = "{}", server: tuple[str, ...] = ()) -> None:
    """As Claude Code in that pane of the VM would; `server` are tmux's words for which one."""
    place = {"TMUX": vm.tmux(*server, "display-message", "-p", "#{socket_path},#{pid},0"), "TMUX_PANE": pane_id}
    done = subprocess.run(
        [patient_in(home.folder), "claude", name],
        env=vm.env | place,
        input=payload,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


class Pace(NamedTuple):
    median: float
    longest: float

    def is_usual(self, before: Pace) -> bool:
        """By a ratio in the same run; a tenth of a second says nothing on a busy machine."""
        return self.median <= max(5 * before.median, 0.1) and self.longest < max(5 * before.longest, 0.9)


def pace(home: Home, path: str = "/v1/panes", seconds: float = 0) -> Pace:
    """How long a listing takes: fifty of them, or as many as there are in that time. On Linux without the time that the
    daemon, or this process, could have run and other processes had both processors."""
    times: list[float] = []
    until = time.monotonic() + seconds
    daemon = home.lock_holder()
    with home.connect() as connection:
        while len(times) < 50 or time.monotonic() < until:
            queued = queued_seconds(daemon) + queued_seconds(os.getpid())
            began = time.perf_counter()
            assert connection.ask("GET", path).status == 200
            took = time.perf_counter() - began
            queued = queued_seconds(daemon) + queued_seconds(os.getpid()) - queued
            times.append(max(0.0, took - queued))
    return Pace(statistics.median(times), max(times))


def queued_seconds(pid: int | None) -> float:
    """How long the threads of a process have waited for a processor so far; 0 where the system does not tell."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int((read_text(str(file)).split() or ["0", "0"])[1]) for file in files) / 1e9


def log_text(home: Home) -> str:
    return "\n".join(line["message"] for line in home.log_lines())


def resident_bytes(pid: int) -> int:
    [line] = [line for line in read_text(f"/proc/{pid}/status").splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


def client_files(home: Home) -> dict[Path, bytes]:
    """The user's own SSH files, which nobody but the user writes."""
    return {path: path.read_bytes() for path in (home.folder / ".ssh").rglob("*") if path.is_file()}
