"""A VM that lies: whatever it says, it harms nobody but itself, and is well again once it tells the truth."""

from __future__ import annotations

import base64
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.home import Home, shared_home, wait_until
from support.liar import envelope, install, said, said_by_hook
from support.processes import read_text
from support.sshd import Sshd, write_client_config
from support.targets import (
    HASTY,
    add,
    error,
    fire_hook,
    log_text,
    pace,
    report,
    resident_bytes,
    seen,
    state,
    told,
)

MEGABYTE = 1 << 20
ENTRY = b'{"hooks": [{"type": "command", "command": "/x/agtmux-hook claude Stop"}]},'
HOST_ONLY = "/v1/panes?target=host"

needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")


class Stage:
    """A daemon that watches the host and an honest VM, each with an agent that waits. The other VM is yet to lie."""

    def __init__(self, home: Home, liar: Sshd, honest: Sshd) -> None:
        self.home, self.liar, self.honest = home, liar, honest
        self.tests, self.name = 0, ""
        write_client_config(home.folder, [liar, honest])
        home.configure(HASTY)
        # What is typed into them is shown by them.
        self.panes = {
            "host": home.pane(command="cat"),
            "vm1": liar.pane(command="cat"),
            "vm2": honest.pane(command="cat"),
        }
        self.daemon = home.start()
        add(home, "vm2")
        for target in ("host", "vm2"):
            wait_until(lambda key=(target, self.panes[target]): key in seen(home), f"the pane of {target}")

    def screens(self) -> list[str]:
        words = ("capture-pane", "-p", "-t")
        servers = {"host": self.home, "vm1": self.liar, "vm2": self.honest}
        return [servers[target].tmux(*words, pane_id) for target, pane_id in self.panes.items()]

    def begin(self) -> None:
        """A test of its own, and a target's name of its own: of each, one refusal a minute is told in the log."""
        self.tests += 1
        self.name = f"liar{self.tests}"
        for target in ("host", "vm2"):
            report(self.home, target, self.panes[target])

    def others(self) -> dict[tuple[str, str], Any]:
        return {key: told for key, told in told(self.home).items() if key[0] != self.name}

    def of_liar(self) -> dict[str, dict[str, Any]]:
        return {pane_id: item for (target, pane_id), item in seen(self.home).items() if target == self.name}

    def watch_liar(self) -> None:
        asked = {"name": self.name, "kind": "ssh", "ssh_target": "vm1"}
        assert self.home.ask("POST", "/v1/targets", asked).status == 200

    def is_recovered(self) -> bool:
        return list(self.of_liar()) == [self.panes["vm1"]] and not error(self.home, self.name)


@pytest.fixture(scope="module")
def shared_stage() -> Iterator[Stage]:
    with shared_home() as home, tempfile.TemporaryDirectory(prefix="agt-", dir="/tmp") as path:
        vms = [Sshd(name, Path(path).resolve() / name) for name in ("vm1", "vm2")]
        try:
            for vm in vms:
                vm.start()
            yield Stage(home, *vms)
        finally:
            home.close()
            for vm in vms:
                vm.close()


@pytest.fixture
def stage(shared_stage: Stage) -> Iterator[Stage]:
    shared_stage.begin()
    yield shared_stage
    shared_stage.liar.uninstall()
    shared_stage.home.ask("DELETE", f"/v1/targets/{shared_stage.name}")
    shared_stage.liar.cut()


@dataclass(frozen=True)
class Lie:
    mode: str
    arguments: dict[str, Any] = field(default_factory=dict)
    # What is said about the target from then on; None if there is nothing wrong with its looks.
    error: str | None = "what this target says is not taken"
    is_refused: bool = True


UNREADABLE = "it said something that cannot be read"
NO_ANSWER = "no answer within 2 seconds"
FLOOD = "it reports more than [0-9]+ times a second"
FILE = {"notice": "file", "name": "claude", "path": "/x", "gone": False, "text": "x" * 1_000}
NOT_TAKEN_LINE = "what this target says is not taken: a bridge of it says a line without end"
CAME = {"notice": "bridge", "bridge": 1}
ABOUT_HOST = said_by_hook(envelope("running", target_id="host", pane_id="%0"))


def forged(**fields: Any) -> Lie:
    return Lie("forged_pane", fields, UNREADABLE)


def about_bridges(error: str, *messages: dict[str, Any]) -> Lie:
    return Lie("bridges", {"messages": list(messages)}, error)


def process(**fields: Any) -> dict[str, Any]:
    known = {"pid": 5, "started": 1.7e9, "argv": ["claude"], "executable": "claude"}
    return {"foreground": [{**known, "script": "", "package": "", "version": "", **fields}]}


LIES = {
    "a frame of two gigabytes": Lie("oversized_frame", error="a frame of 2147483648 bytes"),
    "seven megabytes of junk": Lie("large_junk", error=UNREADABLE),
    "seven million brackets": Lie("deep_junk", error=UNREADABLE),
    "not JSON": Lie("not_json", error=UNREADABLE),
    "a frame without end": Lie("frame_without_end", error=NO_ANSWER, is_refused=False),
    "bytes without frames": Lie("bytes_without_frames", error="it sends a frame of"),
    "bytes before the greeting": Lie("bytes_before_the_greeting", error="the probe says nothing", is_refused=False),
    "empty frames": Lie("empty_frames", error=UNREADABLE),
    "an answer nobody asked for": Lie("unasked_answer", error="it answers what nobody asked"),
    # The second may come while the first is being taken.
    "two answers": Lie("answers_twice", error=None, is_refused=False),
    "neither answer nor report": Lie("neither_answer_nor_report", error="neither an answer nor a report"),
    "a command as a pane id": forged(pane_id="%1; rm"),
    "a line after a pane id": forged(pane_id="%2\n"),
    "a number as a pane id": forged(pane_id=2),
    "a command as a window id": forged(window_id="@1; rm"),
    "a word as a pid": forged(pid="1"),
    "a pid beyond all": forged(pid=1 << 40),
    "half a character": forged(title="\ud800"),
    "a title of a megabyte": forged(title="t" * MEGABYTE),
    "a pane without its fields": forged(foreground=None),
    "the pid of a process beyond all": forged(**process(pid=10**30)),
    "the start of a process beyond all": forged(**process(started=1e200)),
    "the start of a process beyond numbers": forged(**process(started=1e308)),
    "the version of a process a megabyte long": forged(**process(version="v" * MEGABYTE)),
    "a server that is none": Lie("forged_look", {"server": "1; rm"}, UNREADABLE),
    "panes without a server": Lie("forged_look", {"server": ""}, "panes without a server"),
    "a clock beyond all": Lie("forged_look", {"now": 1e300}, UNREADABLE),
    "twenty thousand panes": Lie("too_many_panes", error=UNREADABLE),
    "ever more panes": Lie("ever_more_panes", error="more panes than can be"),
    "a wish to type": Lie("asks", {"message": {"notice": "send", "keys": "y"}}, "it asks for 'send'"),
    "an order to type": Lie("asks", {"message": {"do": "type", "keys": "y"}}, UNREADABLE),
    "a wish with an id": Lie("asks", {"message": {"id": 1, "do": "type", "keys": "y"}}, "neither an answer nor"),
    "silence": Lie("silent", error=NO_ANSWER, is_refused=False),
    "death at once": Lie("dies_at_once", error="the line was cut", is_refused=False),
    "death at the first question": Lie("dies_at_the_first_question", error="the line was cut", is_refused=False),
    "death after each answer": Lie("dies_after_each_answer", error=None, is_refused=False),
    "a flood of news": Lie("flood", {"message": {"notice": "stirred"}}, FLOOD),
    "a flood of files": Lie("flood", {"message": FILE}, FLOOD),
    "a flood of complaints": Lie("flood", {"message": {"notice": "door", "complaint": "no\n" * 1_000}}, FLOOD),
    "a flood of reports about others": Lie("flood", {"message": ABOUT_HOST}, FLOOD),
    "a bridge that names a pane": about_bridges(UNREADABLE, {**CAME, "pane_id": "%0"}),
    "a bridge that names a target": about_bridges(UNREADABLE, {**CAME, "target": "host"}),
    "a line that names a target": about_bridges(UNREADABLE, CAME, said(1, b"{}", target_id="host", pane_id="%0")),
    "a line that names a runtime": about_bridges(UNREADABLE, CAME, said(1, b"{}", runtime_id="f" * 64)),
    "a line of a process beyond all": about_bridges(UNREADABLE, CAME, said(1, b"{}", lineage=[1 << 40])),
    "a line of a thousand processes": about_bridges(UNREADABLE, CAME, said(1, b"{}", lineage=[5] * 1_000)),
    "a bridge that is a word": about_bridges(UNREADABLE, {"notice": "bridge", "bridge": "1"}),
    "a bridge twice": about_bridges("it has a bridge twice", CAME, CAME),
    "a bridge too many": about_bridges("or more than 64", *({**CAME, "bridge": each} for each in range(1, 99))),
    "a line of a bridge that is not there": about_bridges("a bridge that is not there", said(7, b"{}")),
    "the end of a bridge that is not there": about_bridges("a bridge that is not there", {**CAME, "notice": "left"}),
    "an answer taken that nobody gave": about_bridges("takes what nobody gave", CAME, {**CAME, "notice": "took"}),
    "a piece that is too large": about_bridges(UNREADABLE, CAME, said(1, b"x" * 50_000)),
    "more than a bridge may say": about_bridges("says more than it may", CAME, *[said(1, b"{}")] * 300),
    "new bridges without end": Lie("new_bridges_without_end", error="more new bridges than can be"),
    "a bridge that never takes": Lie("bridge_that_never_takes", error=None, is_refused=False),
    # They are taken no faster than the store takes them.
    "a flood of reports": Lie("flood_of_reports", {"pane_id": "%0"}, f"{FLOOD}|{NO_ANSWER}", is_refused=False),
}


@needs_proc
@pytest.mark.parametrize("lie", LIES.values(), ids=list(LIES))
def test_a_lie_harms_nobody_else(stage: Stage, lie: Lie) -> None:
    assert_harmless(stage, lie)
    assert stage.home.health()["failures"] == {}


def assert_harmless(stage: Stage, lie: Lie, while_it_lies: Callable[[], None] = lambda: None) -> None:
    home, name = stage.home, stage.name
    before, screens, refusals = stage.others(), stage.screens(), home.refused("E_FORBIDDEN")
    usual = pace(home, HOST_ONLY)
    size = resident_bytes(stage.daemon.pid)

    install(stage.liar, lie.mode, name=name, **lie.arguments)
    stage.watch_liar()

    if lie.is_refused:
        wait_until(lambda: home.refused("E_FORBIDDEN") > refusals, "something to be refused")
        assert f"refused what {name} reports: what this target says is not taken" in log_text(home)
    if lie.error is not None:
        wait_until(lambda: re.search(lie.error, error(home, name)), f"the error {lie.error!r}")
        assert re.search(f"cannot look at {name}: .*({lie.error})", log_text(home))
    # A flood comes in waves.
    assert (now := pace(home, HOST_ONLY, seconds=2 if "flood" in lie.mode else 0)).is_usual(usual), (usual, now)
    while_it_lies()
    # Nobody else has changed, and everybody else still can.
    assert stage.others() == before
    report(home, "host", stage.panes["host"], "state.running")
    fire_hook(home, stage.honest, stage.panes["vm2"], "UserPromptSubmit")
    wait_until(lambda: state(home, "vm2", stage.panes["vm2"]) == "running", "what the honest VM's hook says")
    assert state(home, "host", stage.panes["host"]) == "running"
    assert error(home, "host") == error(home, "vm2") == ""
    assert resident_bytes(stage.daemon.pid) - size < 60 * MEGABYTE
    assert stage.screens() == screens, "nothing was typed anywhere"

    stage.liar.uninstall()
    if lie.error is None:
        # Nothing else would end a connection that works.
        stage.liar.cut()
    wait_until(stage.is_recovered, "the truth")


@needs_proc
@pytest.mark.parametrize("target", ["host", "vm2"])
@pytest.mark.parametrize("by", ["place", "runtime"])
def test_a_vm_cannot_report_about_another(stage: Stage, target: str, by: str) -> None:
    pane_id = stage.panes[target]
    runtime = {"runtime_id": told(stage.home)[target, pane_id].runtime_id}
    whose = runtime if by == "runtime" else {"target_id": target, "pane_id": pane_id}
    lie = Lie("reports", {"envelopes": [{"state": "running", **whose}, {"state": "error", **whose}]}, error=None)

    def its_own_pane_is_there() -> None:
        wait_until(lambda: list(stage.of_liar()) == ["%0"], "its own pane")

    assert_harmless(stage, lie, its_own_pane_is_there)
    said = f"refused what {stage.name} reports: what this target says is not taken: it reports about another target"
    assert said in log_text(stage.home)


@needs_proc
def test_a_vm_can_report_about_itself(stage: Stage) -> None:
    """Or the test above would hold whatever a VM says."""
    whose = {"target_id": stage.name, "pane_id": "%0"}
    lie = Lie("reports", {"envelopes": [{"state": "running", **whose}]}, error=None, is_refused=False)

    def it_runs() -> None:
        wait_until(lambda: state(stage.home, stage.name, "%0") == "running", "its own report")

    assert_harmless(stage, lie, it_runs)


@needs_proc
def test_a_line_of_a_bridge_has_an_end(stage: Stage) -> None:
    """Though it is said at no greater pace than it may be, and the looks are as they should be."""
    assert_harmless(stage, Lie("bridge_without_end", error=None))
    assert f"refused what {stage.name} reports: {NOT_TAKEN_LINE}" in log_text(stage.home)


@needs_proc
@pytest.mark.parametrize("whose", ["host", "vm2", "its own"])
def test_a_vm_can_only_ask_as_one_of_its_own_panes(stage: Stage, whose: str) -> None:
    """By the numbers of processes, which is all that it may say."""
    pids = {"host": stage.home.tmux("display-message", "-p", "-t", stage.panes["host"], "#{pane_pid}")}
    pids["vm2"] = stage.honest.tmux("display-message", "-p", "-t", stage.panes["vm2"], "#{pane_pid}")
    # As `row` has it.
    pids["its own"] = "4000"
    expected = "you are pane:" if whose == "its own" else "you are nobody"
    lie = Lie("asks_as", {"lineage": [int(pids[whose])]}, error=None, is_refused=False)
    # Its user has let it in.
    noted = stage.home.state / "backups" / "ssh" / "vm1" / "installed.json"
    noted.parent.mkdir(parents=True, exist_ok=True)
    noted.write_text(json.dumps({"agtmux-mcp": {"/x/agtmux-mcp": []}}))

    def it_was_told() -> None:
        wait_until(lambda: stage.of_liar().get("%0", {}).get("title", "").startswith(expected), expected)

    try:
        assert_harmless(stage, lie, it_was_told)
    finally:
        noted.unlink()


@needs_proc
def test_a_hook_that_claims_the_hosts_tmux_is_not_believed(stage: Stage) -> None:
    claimed = stage.home.tmux_variables(stage.panes["host"])
    record = {"pane_id": stage.panes["host"], "tmux": claimed["TMUX"]}
    lie = Lie("hook_record", {"record": record}, error=None, is_refused=False)

    def it_is_dropped() -> None:
        wait_until(lambda: stage.home.health()["events"].get("dropped_unbound", 0) > dropped, "it to be dropped")
        assert {item["state"] for item in stage.of_liar().values()} == {"unknown"}

    dropped = stage.home.health()["events"].get("dropped_unbound", 0)
    assert_harmless(stage, lie, it_is_dropped)


def test_what_a_vm_says_of_its_failure_cannot_move_a_terminal(stage: Stage) -> None:
    install(stage.liar, "failing", name=stage.name, message="\x1b]0;owned\x07\x1b[2Jgone\r\nagtmux: all is well")
    stage.watch_liar()
    refused = stage.home.run("target", "connect", stage.name)
    assert refused.returncode == 6
    assert refused.stderr.rstrip("\n").isprintable(), refused.stderr
    wait_until(lambda: error(stage.home, stage.name), "its error")
    for words in (["target", "list"], ["list", "panes"], ["status"]):
        done = stage.home.run(*words)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", done.stdout + done.stderr), done


def done(**fields: Any) -> dict[str, Any]:
    return {"done": fields}


def content(data: bytes) -> dict[str, Any]:
    """Of every file, agtmux-hook included, which this might be."""
    return done(data=base64.b64encode(b"// agtmux/hook/compose.py\n" + data).decode(), mode=0o700)


def declined(code: str, message: str = "no") -> dict[str, Any]:
    return {"declined": {"code": code, "message": message}}


EVIL = "\x1b]0;owned\x07\x1b[2J"
NOT_TAKEN = "E_TARGET_UNREACHABLE: .*what this target says is not taken"
# What it lies about, and what the user who asked is told.
ERRANDS: dict[str, tuple[dict[str, Any], str]] = {
    "a file of two megabytes": ({"read": done(data="A" * 2 * MEGABYTE)}, NOT_TAKEN),
    "a file that is not base64": ({"read": done(data="\u20ac")}, NOT_TAKEN),
    "a file that is a number": ({"read": done(data=7)}, NOT_TAKEN),
    "a file without its content": ({"read": done()}, NOT_TAKEN),
    "a mode beyond all": ({"read": done(data="", mode=1 << 40)}, NOT_TAKEN),
    "a link that moves a terminal": ({"read": done(data="e30=", target=EVIL)}, NOT_TAKEN),
    "a home that moves a terminal": ({"environ": done(values={"HOME": f"/{EVIL}"})}, NOT_TAKEN),
    "a home of a megabyte": ({"environ": done(values={"HOME": "/" * MEGABYTE})}, NOT_TAKEN),
    "a thousand variables": ({"environ": done(values={str(n): "/" for n in range(1_000)})}, NOT_TAKEN),
    "a home that is no path": ({"environ": done(values={"HOME": "relative"})}, "E_CONFIG: "),
    "no home": ({"environ": done(values={})}, "E_CONFIG: "),
    "a version of a megabyte": ({"versions": done(versions={"claude": "1" * MEGABYTE})}, NOT_TAKEN),
    "a folder that is a word": ({"is_folder": done(is_folder="yes")}, NOT_TAKEN),
    "ten thousand folders": ({"replace": done(folders=["/x"] * 10_000)}, NOT_TAKEN),
    "tmux's hooks as a number": ({"tmux_hooks": done(is_running=1)}, NOT_TAKEN),
    "another's option that moves a terminal": (
        {"tmux_hooks": done(is_running=True, there=[], changed=[], other=EVIL)},
        "E_CONFIG: ",
    ),
    "a refusal that moves a terminal": ({"read": declined("E_CONFIG", EVIL)}, "E_CONFIG: "),
    "a refusal of a kind there is not": ({"read": declined("E_UNAUTHORIZED")}, NOT_TAKEN),
    "an answer and a refusal": ({"read": {**done(data=None), **declined("E_CONFIG")}}, NOT_TAKEN),
    "a look in place of a file": (
        {"read": {"looked": {"server": "", "now": 0, "panes": [], "gone": [], "screens": [], "is_metered": False}}},
        NOT_TAKEN,
    ),
    "a failed look in place of a file": ({"read": {"failed": EVIL}}, NOT_TAKEN),
    "nothing at all": ({"read": None}, "E_TIMEOUT: "),
    "settings that move a terminal": (
        {"read": content(b'{"hooks": {%s: [%s]}}' % (json.dumps(EVIL).encode(), ENTRY))},
        "",
    ),
    "thousands of entries": (
        {"read": content(b'{"hooks": {"Stop": [' + ENTRY * 9_000 + b"]}}")},
        "it holds 9000 entries of agtmux",
    ),
    "brackets without end": ({"read": content(b"[" * 900_000)}, "cannot be read as settings"),
}


@needs_proc
@pytest.mark.parametrize(("errands", "told"), ERRANDS.values(), ids=list(ERRANDS))
def test_a_lie_about_files_harms_nobody_else(stage: Stage, errands: dict[str, Any], told: str) -> None:
    def own_files() -> list[Path]:
        """Of the user who asked: where agents have their settings, if anywhere."""
        return sorted(stage.home.folder.glob(".*"))

    before = own_files()

    def hooks_are_asked_for() -> None:
        wait_until(lambda: list(stage.of_liar()) == ["%0"], "its own pane")
        # Whether there is a folder is asked only where nobody is named.
        named = {"tmux_hooks": ("--agent", "tmux"), "is_folder": ()}.get(*errands, ("--agent", "claude"))
        for action in ("status", "install"):
            said = stage.home.run("hooks", action, "--target", stage.name, *named)
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", said.stdout + said.stderr), said
        assert re.search(told, said.stderr) and bool(told) == bool(said.returncode), said

    assert_harmless(stage, Lie("lies_about", errands, error=None, is_refused=False), hooks_are_asked_for)
    assert own_files() == before
    assert stage.home.health()["failures"] == {}


ENTRY_OF_ANOTHER = b'{"mcpServers": {"agtmux": {"command": "/x/agtmux-mcp", "args": ["--socket", "/x/s"]}}}'
BRIDGE_FILES: dict[str, tuple[dict[str, Any], str]] = {
    "a file of two megabytes": ({"read": done(data="A" * 2 * MEGABYTE)}, NOT_TAKEN),
    "a home that moves a terminal": ({"environ": done(values={"HOME": f"/{EVIL}"})}, NOT_TAKEN),
    "no home": ({"environ": done(values={})}, "E_CONFIG: "),
    "a socket that moves a terminal": ({"environ": done(values={"HOME": "/x", "AGTMUX_SOCKET": EVIL})}, NOT_TAKEN),
    "ten thousand folders": ({"replace": done(folders=["/x"] * 10_000)}, NOT_TAKEN),
    "somebody who answers perhaps": (
        {
            "read": done(data=base64.b64encode(ENTRY_OF_ANOTHER).decode(), mode=0o600),
            "is_answered": done(is_answered="perhaps"),
        },
        # What is there in the place of the program is not ours.
        NOT_TAKEN + "|E_CONFIG: .* is not agtmux's",
    ),
    "brackets without end": ({"read": content(b"[" * 900_000)}, "E_CONFIG: "),
    "nothing at all": ({"read": None}, "E_TIMEOUT: "),
}


@needs_proc
@pytest.mark.parametrize(("errands", "told"), BRIDGE_FILES.values(), ids=list(BRIDGE_FILES))
def test_a_lie_about_the_bridge_harms_nobody_else(stage: Stage, errands: dict[str, Any], told: str) -> None:
    before = sorted(stage.home.folder.glob(".*"))

    def it_is_asked_for() -> None:
        wait_until(lambda: list(stage.of_liar()) == ["%0"], "its own pane")
        for action in ("status", "unregister", "register"):
            said = stage.home.run("mcp", action, "--target", stage.name, "--agent", "claude")
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", said.stdout + said.stderr), said
        assert re.search(told, said.stderr) and said.returncode, said

    assert_harmless(stage, Lie("lies_about", errands, error=None, is_refused=False), it_is_asked_for)
    assert sorted(stage.home.folder.glob(".*")) == before
    assert stage.home.health()["failures"] == {}


@needs_proc
@pytest.mark.soak
@pytest.mark.parametrize("mode", ["fat_panes", "fat_screens"])
def test_a_vm_cannot_fill_the_daemons_memory(stage: Stage, mode: str) -> None:
    size = resident_bytes(stage.daemon.pid)
    install(stage.liar, mode, name=stage.name, count=2_000)
    stage.watch_liar()
    with pytest.raises(AssertionError, match="that much memory: not within"):
        wait_until(lambda: resident_bytes(stage.daemon.pid) - size > 60 * MEGABYTE, "that much memory", 60)
    assert read_text(f"/proc/{stage.daemon.pid}/status")
