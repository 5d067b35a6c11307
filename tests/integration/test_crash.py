"""The daemon is killed at random moments under load: what it acknowledged is there, and it comes back by itself."""

import contextlib
import os
import random
import signal
import sqlite3
import threading
import time

import pytest

from support.chance import any_seed
from support.home import COMMANDS, Home, event, is_alive, wait_until

PRODUCERS = 4
STATES = ("running", "waiting_approval", "waiting_input", "completed", "idle", "error")


class Producer(threading.Thread):
    """Sends events on a connection of its own, again and again, and remembers those that were acknowledged."""

    def __init__(self, home: Home, name: str, panes: list[str], seed: str) -> None:
        super().__init__(name=name)
        self._home = home
        self._panes = panes
        self._random = random.Random(seed)
        self._sent = 0
        self.runtimes: list[str] = []
        self.acknowledged: set[str] = set()
        self.stopping = threading.Event()
        self.trouble: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stopping.is_set():
                # Refused, reset or without an answer: nothing is known about that event, and it goes on.
                with contextlib.suppress(OSError), self._home.connect() as connection:
                    while not self.stopping.is_set():
                        size = self._random.choice([0, 0, 1, 5, 20])
                        content = [self._event() for _ in range(size)] if size else self._event()
                        answer = connection.ask("POST", "/v1/events", content)
                        self._remember(answer.status, answer.json, content)
                self.stopping.wait(0.005)
        except BaseException as trouble:
            self.trouble = trouble

    def _event(self) -> dict:
        self._sent += 1
        event_id = f"{self.name}-{self._sent}"
        kind = self._random.choice([f"state.{self._random.choice(STATES)}", "claude.PreToolUse", "odd.Thing"])
        source = self._random.choice(["hook", "notify", "wrapper"])
        fields = {"event_id": event_id, "dedupe_key": event_id, "source": source}
        fields["raw_payload"] = {"tool_name": "Bash", "noise": "x" * self._random.choice([1, 100, 5_000])}
        if self.runtimes and self._random.random() < 0.2:
            fields |= {"runtime_id": self._random.choice(self.runtimes), "target_id": None, "pane_id": None}
        return event(self._random.choice(self._panes), kind, **fields)

    def _remember(self, status: int, content: dict, sent: object) -> None:
        results = content.get("results", [content])
        if status != 200:
            # A runtime that was replaced is refused; anything else would be a fault.
            assert content["error"]["code"] in ("E_RUNTIME_STALE", "E_DAEMON_UNAVAILABLE"), content
            return
        assert len(results) == (len(sent) if isinstance(sent, list) else 1), content
        self.acknowledged |= {each["event_id"] for each in results if each["status"] != "refused"}


@pytest.mark.parametrize("rounds", [4, pytest.param(50, marks=pytest.mark.soak)])
def test_kill_9_under_load_loses_nothing_that_was_acknowledged(home: Home, rounds: int):
    seed = any_seed()
    chance = random.Random(seed)
    panes = [home.pane() for _ in range(3)] + [home.pane(agent=None), "%987"]
    producers = [Producer(home, f"p{number}", panes, f"{seed}-{number}") for number in range(PRODUCERS)]
    for producer in producers:
        producer.start()
    killed_at: list[str] = []
    began = time.monotonic()
    try:
        for number in range(rounds):
            if chance.random() < 0.25:
                # Before it is ready: at a random moment of its start.
                daemon = home.spawn(COMMANDS / "agtmuxd")
                wait = chance.uniform(0.0, 0.5)
                threading.Event().wait(wait)
                daemon.kill()
                daemon.communicate()
                killed_at.append("start")
            done = home.run("list", "panes", "--json")
            assert done.returncode == 0, f"round {number}: {done.stderr}"
            assert "agtmux: starting agtmuxd" in done.stderr
            with contextlib.closing(sqlite3.connect(home.database)) as database:
                assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)], f"round {number}"
            acknowledged = set().union(*(producer.acknowledged for producer in producers))
            missing = acknowledged - home.stored_ids()
            assert not missing, f"round {number}: {len(missing)} of {len(acknowledged)} lost: {sorted(missing)[:5]}"
            runtimes = [pane["runtime_id"] for pane in home.panes().values()]
            for producer in producers:
                producer.runtimes = runtimes
            pid = home.health()["pid"]
            threading.Event().wait(chance.uniform(0.0, 0.8))
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda pid=pid: not is_alive(pid), "the end of the daemon")
            assert home.socket.exists(), "kill -9 leaves a stale socket, or this test shows less than it says"
            killed_at.append("load")
            assert [producer.trouble for producer in producers if producer.trouble] == []
    finally:
        for producer in producers:
            producer.stopping.set()
        for producer in producers:
            producer.join()
    assert home.run("list", "panes").returncode == 0
    acknowledged = set().union(*(producer.acknowledged for producer in producers))
    assert acknowledged <= home.stored_ids()
    assert home.query("PRAGMA integrity_check") == [("ok",)]
    assert len(acknowledged) > rounds, "too little load to mean anything"
    assert not list(home.state.glob("agtmux.db.*-2*")), "a database was set aside"
    print(
        f"kill -9: {rounds} rounds, {len(killed_at)} kills ({killed_at.count('start')} during start), "
        f"{len(acknowledged)} acknowledged events, 0 lost, {time.monotonic() - began:.0f} s"
    )
