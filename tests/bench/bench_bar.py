"""What the resident app costs and how soon it shows: the menu, the tray idle, the badge after a hook. Linux only."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from jeepney import DBusAddress, Properties
from jeepney.bus import parse_addresses
from jeepney.io.blocking import DBusConnection, prep_socket
from stage import Row, Stage, bounded, print_rows, running_daemon, settle, usage, wait_until

from agtmux.client import Client
from AgtmuxBar.model import build
from AgtmuxBar.settings import Settings, Surroundings
from AgtmuxBar.snapshot import asked_for

PANES = 100
WINDOW = 60.0
MODEL_BUDGET = 5.0
PROCESSOR_BUDGET = 0.5
MEMORY_BUDGET = 100
BADGE_BUDGET = 300.0
CHANGES = 40
ITEM = "org.kde.StatusNotifierItem"


def run() -> list[Row]:
    with bounded(240), running_daemon(PANES) as stage:
        env = stage.environment | {"DBUS_SESSION_BUS_ADDRESS": f"unix:path={stage.folder}/bus"}
        words = ["dbus-daemon", "--session", "--nofork", f"--address={env['DBUS_SESSION_BUS_ADDRESS']}"]
        bus = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until((stage.folder / "bus").exists, "a session bus")
            tray = subprocess.Popen([sys.executable, "-m", "AgtmuxBar.linux"], env=env)
            try:
                return _measured(stage, tray, env)
            finally:
                tray.terminate()
                tray.wait(20)
        finally:
            bus.terminate()
            bus.wait(20)


def _measured(stage: Stage, tray: subprocess.Popen[bytes], env: dict[str, str]) -> list[Row]:
    address = next(iter(parse_addresses(env["DBUS_SESSION_BUS_ADDRESS"])))[1]["path"]
    with DBusConnection(prep_socket(address)) as connection:
        item = DBusAddress("/StatusNotifierItem", f"{ITEM}-{tray.pid}-1", ITEM)
        wait_until(lambda: f"{PANES}" in _tip(connection, item), "a tray that shows the panes")
        settle(stage.client)
        model = _model(stage.client)
        before = usage(tray.pid)
        time.sleep(WINDOW)
        share = usage(tray.pid).since(before).whole / WINDOW * 100
        memory = _resident(tray.pid)
        badge = _badge(stage, connection, item)
    p95 = statistics.quantiles(badge, n=20)[-1]
    return [
        (f"menu of {PANES} waiting panes", f"{model:.2f} ms", f"≤ {MODEL_BUDGET:.0f} ms", model <= MODEL_BUDGET),
        ("tray, idle", f"{share:.3f} % of a core", f"< {PROCESSOR_BUDGET} %", share < PROCESSOR_BUDGET),
        ("tray, memory", f"{memory:.0f} MB", f"≤ {MEMORY_BUDGET} MB", memory <= MEMORY_BUDGET),
        (
            "hook → badge told to the panel, p95",
            f"{p95:.0f} ms (median {statistics.median(badge):.0f})",
            f"≤ {BADGE_BUDGET:.0f} ms",
            p95 <= BADGE_BUDGET,
        ),
    ]


def _tip(connection: DBusConnection, item: DBusAddress) -> str:
    body = connection.send_and_get_reply(Properties(item).get("ToolTip"), timeout=5).body
    # An error has a text, where there is no tray yet.
    return str(body[0][1][3]) if isinstance(body[0], tuple) else ""


def _model(client: Client) -> float:
    """Milliseconds, the median of many."""
    snapshot, _ = asked_for(client)
    assert len(snapshot.panes) == PANES
    # As much to say as there can be: everyone waits, in many sessions.
    asks = {"kind": "approval", "summary": "make deploy", "detail": "and tell", "options": [], "fingerprint": "f00d"}
    panes = {
        (*key[:1], f"session {number % 20}", *key[2:]): {
            **pane,
            "identity": pane["identity"] | {"session_name": f"session {number % 20}"},
            "state": "waiting_approval",
            "attention": asks,
        }
        for number, (key, pane) in enumerate(snapshot.panes.items())
    }
    snapshot = replace(snapshot, panes=panes)
    samples = []
    for _ in range(200):
        began = time.perf_counter()
        build(snapshot, Settings(), Surroundings(), time.time())
        samples.append((time.perf_counter() - began) * 1e3)
    return statistics.median(samples)


def _badge(stage: Stage, connection: DBusConnection, item: DBusAddress) -> list[float]:
    """Milliseconds from the start of the hook's process until the tray tells the next count."""
    beside = Path(sys.executable).with_name("agtmux-hook")
    samples = []
    for number in range(CHANGES):
        pane = stage.panes[number]
        env = stage.environment | _tmux_variables(stage.environment, pane)
        expected = f"{number + 1} wait"
        began = time.perf_counter()
        subprocess.run(
            [beside, "claude", "PermissionRequest"],
            env=env,
            input=b'{"tool_name": "Bash", "tool_input": {"command": "make deploy"}}',
            check=True,
            stdout=subprocess.DEVNULL,
        )
        while expected not in _tip(connection, item):
            if time.perf_counter() - began > 5:
                raise TimeoutError(f"the tray says {_tip(connection, item)!r} and not {expected!r}")
            time.sleep(0.002)
        samples.append((time.perf_counter() - began) * 1e3)
        time.sleep(0.2)
    return samples


def _tmux_variables(env: dict[str, str], pane: str) -> dict[str, Any]:
    words = ["tmux", "display-message", "-p", "-t", pane, "#{socket_path},#{pid},0"]
    told = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout.strip()
    return {"TMUX": told, "TMUX_PANE": pane}


def _resident(pid: int) -> float:
    """In millions of bytes."""
    found = re.search(r"^VmRSS:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024 / 1e6


if __name__ == "__main__":
    os.environ.pop("DISPLAY", None)
    print_rows(run())
