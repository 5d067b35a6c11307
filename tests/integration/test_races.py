"""Whatever happens between a look and an act: no key reaches anybody else, and none an open dialog but its own answer.

Each trial looks at a pane, has something done to it, and beside that, at a random moment, something happens: the pane
is killed or respawned, the server begins anew and gives the same ids to others, the agent ends and leaves a shell, a
dialog opens, is answered or replaced by another, the user types, the session is renamed. Every agent and every shell
there writes down each byte it is given, so that it can be counted afterwards.

    AGTMUX_TEST_SEED=7 AGTMUX_TEST_TRIALS=2000 pytest -m soak tests/integration/test_races.py -s
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.chance import any_seed
from support.home import Home, wait_until

PROGRAM = Path(__file__).parents[1] / "support" / "puppet.py"
WORKERS = 4
TRIALS = int(os.environ.get("AGTMUX_TEST_TRIALS", "2000"))


@dataclass
class Count:
    trials: int = 0
    results: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    # Keys that tmux pressed before the dialog they came to was on its screen: nobody outside the agent can know of it.
    crossed: list[str] = field(default_factory=list)


class Stage:
    """A tmux server with one pane of interest and a few others, and whoever was ever in them."""

    def __init__(self, home: Home, name: str, chance: random.Random) -> None:
        self.home = home
        self.name = name
        self.chance = chance
        self.folder = home.folder / name
        self.folder.mkdir()
        self.socket = str(self.folder / "tmux")
        self.generation = 0
        self.asked = 0
        self.settled = 0
        self.read: dict[Path, int] = {}
        # Who is in the pane of interest.
        self.who = ""
        self.pane = ""
        self.session = "work"
        self.begin_server()

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-u", "-f", "/dev/null", "-S", self.socket, *words]
        return subprocess.run(command, env=self.home.env, capture_output=True, text=True, timeout=20).stdout.strip()

    def command(self) -> str:
        """Of a new puppet, half of them below a shell."""
        self.generation += 1
        self.who = f"p{self.generation}"
        if self.chance.random() < 0.5:
            return f'bash -c \'exec -a shell "{sys.executable}" "{PROGRAM}" {self.who} {self.folder} shell\''
        return f'bash -c \'exec -a claude "{sys.executable}" "{PROGRAM}" {self.who} {self.folder}\''

    def begin_server(self) -> None:
        self.session = "work"
        command = self.command()
        words = ["new-session", "-dPF", "#{pane_id}", "-s", "work", "-x", "80", "-y", "24", command]
        self.pane = self.tmux(*words)
        self.tmux("new-window", "-d", "-t", "work:", "sleep 3600")
        self.await_puppet()

    def await_puppet(self) -> None:
        wait_until(lambda: self.pid() is not None, f"{self.name}: the puppet {self.who}")

    def pid(self, who: str = "") -> int | None:
        lines = self.lines(who or self.who)
        return next((int(line["data"]) for line in lines if line["what"] == "began"), None)

    def lines(self, who: str) -> list[dict[str, Any]]:
        try:
            text = (self.folder / f"{who}.log").read_text("utf-8")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]

    def tell(self, order: str) -> None:
        # It may have ended.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as strings, contextlib.suppress(OSError):
            strings.sendto(order.encode(), str(self.folder / f"{self.who}.sock"))

    def news(self) -> list[dict[str, Any]]:
        """What anybody was given since this was asked last."""
        found = []
        for path in sorted(self.folder.glob("*.log")):
            data = path.read_bytes()
            begin = self.read.get(path, 0)
            end = data.rfind(b"\n") + 1
            self.read[path] = end
            found += [json.loads(line) for line in data[begin:end].splitlines()]
        return [line for line in found if line["what"] in ("key", "paste", "submit")]

    def settle(self) -> None:
        """Until what tmux was given has arrived: tmux answers the puppet's question behind it."""
        self.tmux("list-panes", "-a")
        self.settled += 1
        number, pid = f"settled-{self.settled}", self.pid()
        self.tell(f"await {number} settle")
        wait_until(
            lambda: not _is_alive(pid) or any(line["data"] == number for line in self.lines(self.who)),
            f"{self.name}: {self.who} to hear that it is to settle",
        )

    def items(self) -> list[dict[str, Any]]:
        path = f"/v1/panes?all=1&target={self.name}"
        return list(self.home.ask("GET", path).json["items"])

    def meant(self, item: dict[str, Any]) -> int | None:
        """The process that runtime is."""
        rows = self.home.query("SELECT pid FROM runtimes WHERE runtime_id = ?", item["runtime_id"])
        return rows[0][0] if rows else None

    # What may happen

    def kill_pane(self) -> None:
        self.tmux("kill-pane", "-t", self.pane)
        self.new_pane()

    def new_pane(self) -> None:
        self.pane = self.tmux("new-window", "-dPF", "#{pane_id}", "-t", f"{self.session}:", self.command())
        self.await_puppet()

    def respawn(self) -> None:
        if self.pane not in self.tmux("list-panes", "-aF", "#{pane_id}").split():
            # An interrupt may have ended it before it took keys as they are.
            self.new_pane()
            return
        self.tmux("respawn-pane", "-k", "-t", self.pane, self.command())
        self.await_puppet()

    def restart_server(self) -> None:
        pid = int(self.tmux("display-message", "-p", "#{pid}"))
        self.tmux("kill-server")
        wait_until(lambda: not _is_alive(pid), f"{self.name}: the end of its server")
        self.begin_server()

    def agent_ends(self) -> None:
        pid = self.pid()
        self.tell("exit")
        wait_until(lambda: not _is_alive(pid), f"{self.name}: the end of {self.who}")

    def rename(self) -> None:
        after = f"work{self.chance.randrange(1000)}"
        self.tmux("rename-session", "-t", self.session, after)
        self.session = after

    def ask(self) -> None:
        self.asked += 1
        self.tell(f"ask d{self.asked} touch label{self.asked}.txt")

    def answered(self) -> None:
        self.tell("answer")

    def draft(self) -> None:
        self.tell("draft half a thought")

    def busy(self) -> None:
        self.tell("busy")

    def copy_mode(self) -> None:
        self.tmux("copy-mode", "-t", self.pane)

    def nothing(self) -> None:
        pass

    def set_up(self) -> None:
        """An empty prompt, more often than not known to the daemon."""
        wanted = self.pid()
        if not self.is_running(wanted):
            self.respawn()
        self.tmux("send-keys", "-t", self.pane, "-X", "cancel")
        self.tell("reset")
        if self.chance.random() < 0.8:
            wait_until(lambda: self.known(("idle", "completed")), f"{self.name}: {self.who} at its prompt")

    def is_running(self, pid: int | None) -> bool:
        if not _is_alive(pid):
            return False
        return str(pid) in {*self.tmux("list-panes", "-aF", "#{pane_pid}").split(), *self._children()}

    def _children(self) -> set[str]:
        found: set[str] = set()
        for pid in self.tmux("list-panes", "-aF", "#{pane_pid}").split():
            try:
                found |= set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
            except OSError:
                continue
        return found

    def known(self, states: tuple[str, ...]) -> dict[str, Any] | None:
        for item in self.items():
            if item["identity"]["pane_id"] == self.pane and item["state"] in states and self.meant(item) == self.pid():
                return item
        return None

    def dialog(self) -> tuple[dict[str, Any], str] | None:
        """The item of the pane that asks, with the name of what it asks."""
        for item in self.items():
            about = item["attention"]
            if item["state"] == "waiting_approval" and about and about["fingerprint"] and "label" in about["summary"]:
                number = about["summary"].partition("label")[2].partition(".")[0]
                return item, f"d{number}"
        return None


def _is_alive(pid: int | None) -> bool:
    """Its server may not have noticed its end yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


_HAPPENS = [
    *(["nothing", "ask", "ask", "ask"]),
    *("kill_pane", "respawn", "restart_server", "agent_ends", "agent_ends", "rename", "answered", "draft", "busy"),
    "copy_mode",
]


def trial(stage: Stage, number: int, count: Count) -> None:
    chance = stage.chance
    stage.set_up()
    if late := stage.news():
        count.wrong.append(f"{stage.name} {number}: given after the trial before was over: {late}")
    is_answer = chance.random() < 0.35
    shown = None
    if is_answer:
        stage.ask()
        shown = wait_until(lambda: stage.dialog(), f"{stage.name}: the dialog d{stage.asked}")
        item, dialog_id = shown
    else:
        items = [item for item in stage.items() if item["identity"]["pane_id"] == stage.pane]
        if not items:
            return
        item, dialog_id = items[0], ""
    meant = stage.meant(item)
    token = f"text {stage.name}-{number}"
    ref = f"runtime:{item['runtime_id']}" if chance.random() < 0.7 else item["ref"]
    asked: dict[str, Any] = {"request_ref": f"{stage.name}-{number}", "ref": ref, "if_runtime": item["runtime_id"]}
    asked["force_stale"] = chance.random() < 0.3
    if is_answer:
        action = chance.choice(["approve", "approve", "deny"])
        if chance.random() < 0.7:
            asked["if_dialog"] = item["attention"]["fingerprint"]
    else:
        action = chance.choice(["send", "send", "send", "key", "kill"])
        if action == "send":
            asked |= {"text": token, "enter": chance.random() < 0.8}
        elif action == "key":
            action, asked["key"] = "send", chance.choice(["Enter", "1", "Escape"])
    what = chance.choice(_HAPPENS)
    delay = 0.0 if (is_early := chance.random() < 0.3) else chance.random() * (0.12 if is_answer else 0.5)

    def happens() -> None:
        time.sleep(delay)
        getattr(stage, what)()

    beside = threading.Thread(target=happens)
    if is_early:
        happens()
    else:
        beside.start()
    answer = stage.home.ask("POST", f"/v1/actions/{action}", asked)
    if not is_early:
        beside.join()
    stage.settle()
    count.trials += 1
    count.happened[what] += 1
    code = answer.json["result_code"] if answer.status == 200 else answer.error["code"]
    result = code if answer.status == 200 else str(answer.error["details"].get("result_code", "refused"))
    count.results[code if result in ("delivered", "refused", "failed") else f"{result} ({code})"] += 1
    told = f"{stage.name} {number}: {action} {asked} beside {what} after {delay:.3f}: {code} {result}"
    if code in ("E_INTERNAL", "E_TIMEOUT"):
        count.wrong.append(f"{told}: {answer.error['message']}")
    judge(stage, told, action, asked, result, meant, dialog_id, count)


def judge(
    stage: Stage,
    told: str,
    action: str,
    asked: dict[str, Any],
    result: str,
    meant: int | None,
    dialog_id: str,
    count: Count,
) -> None:
    news = stage.news()
    given = [line for line in news if line["what"] in ("key", "paste")]
    for line in given:
        if stage.pid(line["who"]) != meant:
            count.wrong.append(f"{told}: meant {meant}, given {line}")
        is_own = action in ("approve", "deny") and line["dialog"] == dialog_id
        if line["dialog"] is not None and not is_own:
            opened = [
                each["t"] for each in stage.lines(line["who"]) if each["data"].startswith(f"ask {line['dialog']} ")
            ]
            at = f"{told}: at an open dialog, {line['t'] - opened[0]:.6f} s after it opened: {line}"
            (count.wrong if line["on_screen"] else count.crossed).append(at)
    keys = [line["data"] for line in given if line["what"] == "key"]
    if action in ("approve", "deny") and len(keys) > 1:
        count.wrong.append(f"{told}: more than one key: {keys}")
    if result in ("refused", "failed") and given:
        count.wrong.append(f"{told}: refused, and given all the same: {given}")
    if result == "delivered" and not given:
        count.wrong.append(f"{told}: delivered, and given nothing")
    submitted = [line["data"] for line in news if line["what"] == "submit"]
    if "text" in asked and result == "delivered" and submitted != [asked["text"]]:
        count.wrong.append(f"{told}: delivered, and submitted {submitted}")
    if "text" in asked and result == "typed_not_submitted" and submitted:
        count.wrong.append(f"{told}: not submitted, and submitted {submitted}")


def run_trials(home: Home, trials: int) -> Count:
    seed = any_seed()
    home.tmux("new-session", "-d", "-s", "unused", "sleep 3600")
    home.start()
    count = Count()
    stages = []
    for number in range(WORKERS):
        stages.append(Stage(home, f"s{number}", random.Random(f"{seed}-{number}")))
        done = home.run("target", "add", f"s{number}", "--kind", "local", "--tmux-socket", stages[-1].socket)
        assert done.returncode == 0, done.stderr
    failures: list[BaseException] = []

    def work(stage: Stage) -> None:
        try:
            for number in range(trials // WORKERS):
                trial(stage, number, count)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(stage,)) for stage in stages]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for stage in stages:
            stage.tmux("kill-server")
    print(f"{count.trials} trials, {len(count.wrong)} wrong, {len(count.crossed)} crossed by a dialog on its way")
    print("results:", dict(count.results.most_common()))
    print("beside:", dict(count.happened.most_common()))
    print(*count.wrong, *count.crossed, sep="\n")
    if failures:
        raise failures[0]
    return count


def test_a_few_races(home: Home) -> None:
    count = run_trials(home, 60)
    assert not count.wrong, "\n".join(count.wrong[:5])


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_races(home: Home) -> None:
    count = run_trials(home, TRIALS)
    assert not count.wrong, "\n".join(count.wrong[:10])
    assert len(count.crossed) <= count.trials / 200, "\n".join(count.crossed[:10])
    assert count.results["delivered"] > count.trials / 10
