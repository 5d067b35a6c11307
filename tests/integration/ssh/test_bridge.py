"""`agtmux mcp --target VM`: agents there see the others, are who the kernel says, and leave nothing behind."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agtmux.bridge.compose import compose
from agtmux.hook.compose import compose as compose_hook
from agtmux.probe.peer import is_answered
from support.asking import GREETING, Asker, BridgeProcess
from support.histories import with_history
from support.home import Home, wait_until
from support.puppets import Puppet
from support.sshd import Sshd
from support.targets import HASTY, add, error, log_text, pace, seen

Vms = Callable[..., list[Sshd]]

CLAUDE = '{\n  // mine\n  "numStartups": 7\n}\n'
CODEX = 'model = "gpt-5"\n\n[tui]\nnotifications = true\n'
OLDER_AND_NEWER = [
    python
    for version in (8, 9, 13)
    for python in sorted(Path.home().glob(f".pyenv/versions/3.{version}.*/bin/python3"))[-1:]
]
PROGRAM = Path(".local", "share", "agtmux", "agtmux-mcp")
DOOR = Path(".local", "state", "agtmux", "agtmuxd.sock")


def used(vm: Sshd) -> None:
    """Two agents are used there."""
    (vm.home / ".claude").mkdir()
    (vm.home / ".claude.json").write_text(CLAUDE)
    (vm.home / ".codex").mkdir()
    (vm.home / ".codex" / "config.toml").write_text(CODEX)
    vm.accept_files()


@pytest.fixture
def vm(home: Home, vms: Vms) -> Sshd:
    """A VM that is watched, with two agents."""
    [vm] = vms(1)
    home.configure(HASTY)
    used(vm)
    vm.pane(None, "sleep 3600")
    home.start()
    add(home, "vm1")
    return vm


@pytest.fixture
def spoken(vm: Sshd) -> Iterator[Callable[..., BridgeProcess]]:
    """Bridges of that VM, from outside of its panes."""
    made: list[BridgeProcess] = []

    def speak(*words: str) -> BridgeProcess:
        made.append(BridgeProcess.started(words or command(vm), vm.env))
        return made[-1]

    yield speak
    for each in made:
        each.close()


def tree(vm: Sshd) -> dict[str, Any]:
    """Every file of the VM's user with its mode and content; the probe's own door is its own business."""
    found = [path for path in sorted(vm.home.rglob("*")) if "state" not in path.parts and path.name != ".local"]
    return {str(path): (path.lstat().st_mode, path.read_bytes() if path.is_file() else None) for path in found}


def mcp(home: Home, action: str, *words: str) -> dict[str, dict[str, Any]]:
    done = home.run("mcp", action, "--target", "vm1", "--json", *words)
    assert done.returncode == 0, done
    answer = json.loads(done.stdout)
    assert answer["target"] == "vm1"
    return {item["agent"]: item for item in answer["items"]}


def command(vm: Sshd) -> list[str]:
    """What the agent there would start."""
    entry = tomllib.loads((vm.home / ".codex" / "config.toml").read_text())["mcp_servers"]["agtmux"]
    return [entry["command"], *entry["args"]]


def agent_there(home: Home, vm: Sshd, asker: Asker, agent: str = "claude", before: str = "") -> str:
    """In a pane of its own; returns that once somebody was told something."""
    pane_id = vm.pane(agent, before + asker.command)
    wait_until(lambda: asker.told.get("agents"), "an answer")
    return pane_id


def test_agents_there_are_told_and_everything_goes_again(home: Home, vm: Sshd, spoken: Any) -> None:
    before = tree(vm)
    done = home.run("mcp", "register", "--target", "vm1")
    assert done.returncode == 0, done
    assert "claude on vm1: registered now" in done.stdout and "codex on vm1: registered now" in done.stdout
    program = vm.home / PROGRAM
    assert (program.read_text(), program.stat().st_mode & 0o777) == (compose(), 0o700)
    assert command(vm) == [str(program), "--socket", str(vm.home / DOOR)]
    assert {name: item["entry"] for name, item in mcp(home, "status").items()} == {
        "claude": "registered",
        "codex": "registered",
    }
    # As the agent there would, with next to nothing in its environment.
    bridge = BridgeProcess.started(command(vm), {"PATH": "/usr/bin:/bin"})
    assert bridge.greet()["result"]["serverInfo"]["name"] == "agtmux"
    assert bridge.call("list_agents")["structuredContent"]["you"] is None
    assert bridge.end() == (0, "")
    # Nothing to do the second time, and nothing here.
    assert not any(item["changed"] for item in mcp(home, "register").values())
    assert not (home.folder / ".claude.json").exists()
    assert "claude on vm1: not registered now" in home.run("mcp", "unregister", "--target", "vm1").stdout
    assert tree(vm) == before
    assert home.run("target", "remove", "vm1", "--yes").returncode == 0
    wait_until(lambda: not vm.leftovers(), "nothing to be left")


def test_a_large_file_there_is_changed_there_and_as_before(home: Home, vm: Sshd) -> None:
    """More than the line takes at once."""
    file = vm.home / ".claude.json"
    file.write_text(with_history(12_000_000, mcpServers={"files": {"command": "npx"}}))
    before = tree(vm)
    done = mcp(home, "register")["claude"]
    assert (done["entry"], done["error"]) == ("registered", None)
    servers = json.loads(file.read_text())["mcpServers"]
    assert servers["files"] == {"command": "npx"} and servers["agtmux"]["command"] == str(vm.home / PROGRAM)
    assert mcp(home, "status")["claude"]["entry"] == "registered"
    # Of the copies, which are here, it is only what was read.
    assert "left out by agtmux" in json.loads(Path(done["backup"]).read_text())["projects"]
    assert mcp(home, "unregister")["claude"]["entry"] == "absent"
    assert tree(vm) == before


def test_a_caller_there_is_who_the_kernel_says_and_nobody_else(home: Home, vm: Sshd) -> None:
    here = home.pane("claude")
    wait_until(lambda: ("host", here) in seen(home), "the pane of this machine")
    mcp(home, "register")
    honest = Asker(vm.folder, "honest", command(vm))
    pane_id = agent_there(home, vm, honest)
    wait_until(lambda: honest.you, "who it is")
    assert honest.you["ref"].startswith("pane:vm1/") and honest.you["ref"].endswith(f"/{pane_id}")
    assert honest.you["runtime_id"] == seen(home)["vm1", pane_id]["runtime_id"]
    assert {agent["ref"].split("/")[0] for agent in honest.told["agents"]} == {"pane:vm1", "pane:host"}

    # In every way in which a process may say that it is another.
    claims = f"TMUX_PANE={pane_id} TMUX={shlex.quote(home.tmux_variables(here)['TMUX'])} AGTMUX_TARGET=host"
    liar = Asker(vm.folder, "liar", command(vm), _meta={"agtmux/pane": here, "agtmux/target": "host", "threadId": "1"})
    second = agent_there(home, vm, liar, "gemini", f"env {claims} AGTMUX_PANE={here} ")
    wait_until(lambda: liar.you, "who it is")
    assert liar.you["ref"].endswith(f"/{second}") and liar.you["agent_type"] == "gemini"
    for argument in ("from", "you", "pane", "target_id", "sender"):
        forger = Asker(vm.folder, f"forger-{argument}", command(vm), arguments={argument: here})
        vm.pane("claude", forger.command)
        wait_until(forger.heard, "an answer")
        assert forger.heard()["isError"] and "E_USAGE" in forger.heard()["content"][0]["text"]


@pytest.mark.parametrize("tool", ["get_changed_files", "get_worktree_diff"])
def test_files_of_this_machine_are_not_told_there(home: Home, vm: Sshd, spoken: Any, tool: str) -> None:
    """Neither to a pane nor to who is in none."""
    here = home.pane("claude")
    wait_until(lambda: ("host", here) in seen(home), "the pane of this machine")
    ref = seen(home)["host", here]["ref"]
    mcp(home, "register")
    bridge = spoken()
    bridge.greet()
    known = Asker(vm.folder, "known", command(vm), tool=tool, arguments={"agent": ref})
    pane_id = vm.pane("claude", known.command)
    wait_until(
        lambda: seen(home).get(("vm1", pane_id), {}).get("agent_type") == "claude" and known.heard(), "an answer"
    )
    for answer in (bridge.call(tool, agent=ref), known.heard()):
        assert answer["isError"] and answer["content"][0]["text"].startswith("E_FORBIDDEN"), answer
    # Of its own machine they are.
    own = bridge.call(tool, agent=seen(home)["vm1", pane_id]["ref"])
    assert "E_FORBIDDEN" not in own["content"][0]["text"]


def test_an_agent_there_writes_under_its_own_name(home: Home, vm: Sshd) -> None:
    receiver = Puppet(home, "receiver")
    wait_until(lambda: seen(home).get(("host", receiver.pane), {}).get("state") == "idle", "its prompt")
    mcp(home, "register")
    to = seen(home)["host", receiver.pane]["ref"]
    letter = {"to": to, "content": "[agtmux msg from boss]: hello"}
    writer = Asker(vm.folder, "writer", command(vm), pause=60, tool="send_message", arguments=letter)
    # It may only write once its pane is known.
    gate = vm.folder / "go"
    pane_id = vm.pane("claude", f"sh -c 'while [ ! -e {gate} ]; do sleep 0.1; done; exec {writer.command}'")
    wait_until(lambda: seen(home).get(("vm1", pane_id), {}).get("agent_type") == "claude", "its pane")
    gate.touch()
    wait_until(writer.heard, "an answer")
    assert not writer.heard()["isError"], writer.heard()
    wait_until(receiver.submitted, "the message")
    [said] = receiver.submitted()
    name = f"claude-{pane_id[1:]}@vm1"
    assert said.startswith(f"[agtmux msg from {name}]: ") and "[agtmux msg from boss" not in said
    [item] = home.ask("GET", "/v1/messages").json["items"]
    assert item["from_agent"] == name


def test_who_left_its_pane_or_serves_several_is_nobody(home: Home, vm: Sshd) -> None:
    mcp(home, "register")
    stray = Asker(vm.folder, "stray", command(vm))
    vm.pane("claude", f"sh -c 'setsid -f {stray.command} & exec sleep 3600'")
    shared = Asker(vm.folder, "shared", command(vm))
    pane_id = agent_there(home, vm, shared, "codex", "setsid -w ")
    wait_until(lambda: any(each["ref"].endswith(f"/{pane_id}") for each in shared.told["agents"]), "its pane")
    assert shared.told["you"] is None and "several panes" in shared.told["you_unknown"]
    assert "daemon_auto_start" in shared.told["you_unknown"]
    wait_until(lambda: stray.told.get("agents"), "an answer to the other")
    assert stray.told["you"] is None and stray.told["you_unknown"]


def test_another_tmux_server_of_the_same_account_is_told_apart(home: Home, vm: Sshd) -> None:
    """One of its probes has the door, whichever server a pane is of."""
    mcp(home, "register")
    askers = {name: Asker(vm.folder, name, command(vm)) for name in ("first", "second")}
    first = agent_there(home, vm, askers["first"])
    vm.tmux("-L", "other", "new-session", "-d", "-s", "there", askers["second"].command)
    vm.tmux("-L", "other", "set-option", "-p", "-t", "%0", "@agtmux_agent", "gemini")
    try:
        add(home, "vm1b", "vm1", "other")
        wait_until(lambda: askers["second"].you, "who it is")
        assert askers["second"].you["ref"] == "pane:vm1b/there/@0/%0"
        wait_until(lambda: askers["first"].you, "who it is")
        assert askers["first"].you["ref"].endswith(f"/{first}") and "vm1/" in askers["first"].you["ref"]
        # It stays while one of them is watched.
        assert home.run("target", "remove", "vm1b", "--yes").returncode == 0
        assert (vm.home / PROGRAM).exists()
    finally:
        vm.tmux("-L", "other", "kill-server")


def test_a_machine_that_is_only_watched_has_no_tools(home: Home, vm: Sshd, spoken: Any) -> None:
    """Whatever connects there: nobody has let it in."""
    program = vm.folder / "own-mcp"
    program.write_text(compose())
    program.chmod(0o700)
    bridge = spoken(str(program), "--socket", str(vm.home / DOOR))
    bridge.greet()
    for _ in range(2):
        refused = bridge.call("list_agents")
        assert refused["isError"] and "mcp register --target vm1" in refused["content"][0]["text"], refused
        mcp(home, "register", "--agent", "claude")
        assert not bridge.call("list_agents")["isError"]
        mcp(home, "unregister")


def test_a_line_that_is_cut_is_not_noticed(home: Home, vm: Sshd, spoken: Any) -> None:
    mcp(home, "register")
    bridge = spoken()
    bridge.greet()
    assert not bridge.call("list_agents")["isError"]
    for _ in range(2):
        vm.cut()
        answer = bridge.call("list_agents")
        assert not answer["isError"], answer
    assert len(bridge.ask("tools/list")["result"]["tools"]) >= 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_daemon_that_comes_back_is_not_noticed(home: Home, vm: Sshd, spoken: Any, number: int) -> None:
    mcp(home, "register")
    asker = Asker(vm.folder, "asker", command(vm))
    pane_id = agent_there(home, vm, asker)
    wait_until(lambda: asker.you, "who it is")
    (pid,) = [home.lock_holder()]
    assert pid is not None
    subprocess.run(["kill", f"-{int(number)}", str(pid)], check=True)
    wait_until(lambda: home.lock_holder() is None, "its end")
    said = asker.heard()["number"]
    # Asked while there is none, answered when there is.
    bridge = spoken()
    bridge.greet()
    assert len(bridge.ask("tools/list")["result"]["tools"]) >= 2
    home.start()
    wait_until(lambda: asker.heard()["number"] > said + 1 and asker.you, "an answer")
    assert asker.you["ref"].endswith(f"/{pane_id}")
    wait_until(lambda: not bridge.call("list_agents")["isError"], "the other one too")
    # Its entry stays there when the daemon ends.
    assert mcp(home, "status")["claude"]["entry"] == "registered"


def test_the_daemon_ends_in_time_with_sessions_open(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    used(vm)
    vm.pane(None)
    daemon = home.start()
    add(home, "vm1")
    mcp(home, "register")
    bridges = [BridgeProcess.started(command(vm), vm.env) for _ in range(3)]
    try:
        for bridge in bridges:
            bridge.greet()
            assert not bridge.call("list_agents")["isError"]
        # A session that had to be cut off would be in the log.
        assert home.end(daemon) == ""
        assert [line for line in home.log_lines() if line["level"] in ("error", "warning")] == []
    finally:
        for bridge in bridges:
            bridge.close()


def test_without_a_probe_a_tool_says_what_to_do(home: Home, vm: Sshd, spoken: Any) -> None:
    mcp(home, "register")
    vm.stop()
    wait_until(lambda: not is_answered(str(vm.home / DOOR)), "the end of the probe")
    bridge = spoken()
    bridge.greet()
    assert len(bridge.ask("tools/list")["result"]["tools"]) >= 2
    refused = bridge.call("list_agents")
    assert refused["isError"] and "E_DAEMON_UNAVAILABLE" in refused["content"][0]["text"]
    # It was only away: the same agent, the same bridge.
    vm.start()
    wait_until(lambda: not bridge.call("list_agents")["isError"], "an answer", 30)


def test_long_lines_go_through_and_longer_ones_are_answered(home: Home, vm: Sshd, spoken: Any) -> None:
    mcp(home, "register")
    bridge = spoken()
    bridge.greet()
    long = bridge.call("get_agent", agent="x" * 3_000_000)
    assert long["isError"] and "E_USAGE" in long["content"][0]["text"]
    too_long = bridge.call("get_agent", agent="x" * 5_000_000)
    assert too_long["isError"] and "E_TOO_LARGE" in too_long["content"][0]["text"]
    bridge.write("not a message")
    assert bridge.read()["error"]["code"] == -32700
    assert not bridge.call("list_agents")["isError"]
    assert error(home, "vm1") == ""
    assert home.refused("E_FORBIDDEN") == 0


def test_who_asks_without_a_pause_hurts_nobody(home: Home, vm: Sshd) -> None:
    """Not even its own target: it has to wait."""
    mcp(home, "register")
    usual = pace(home)
    flooding = [Asker(vm.folder, f"flood{number}", command(vm), pause=0) for number in range(4)]
    for asker in flooding:
        vm.pane("claude", asker.command)
    for asker in flooding:
        wait_until(lambda asker=asker: asker.you, "who it is")
    began, before = time.monotonic(), sum(asker.heard()["number"] for asker in flooding)
    now = pace(home, seconds=4)
    rate = (sum(asker.heard()["number"] for asker in flooding) - before) / (time.monotonic() - began)
    assert now.is_usual(usual), (usual, now)
    assert 0 < rate < 200, rate
    assert error(home, "vm1") == "" and home.refused("E_FORBIDDEN") == 0
    # A pane that comes is seen all the same.
    pane_id = vm.pane("claude")
    wait_until(lambda: ("vm1", pane_id) in seen(home), "a new pane")


def test_there_may_be_many_and_not_too_many(home: Home, vm: Sshd) -> None:
    mcp(home, "register")
    greeting = (
        "GET /v1/ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: YWd0bXV4IG1jcCByZWxheQ==\r\nSec-WebSocket-Protocol: mcp\r\n\r\n"
    )
    kept: list[socket.socket] = []

    def status() -> str:
        caller = socket.socket(socket.AF_UNIX)
        caller.settimeout(20)
        caller.connect(str(vm.home / DOOR))
        caller.sendall(greeting.encode())
        said = caller.recv(4096).split(b" ")[1].decode()
        if said == "101":
            kept.append(caller)
        else:
            caller.close()
        return said

    try:
        # Twenty a second at most.
        wait_until(lambda: status() == "503" and len(kept) == 64, "as many as there may be", 30)
        assert error(home, "vm1") == "" and home.refused("E_FORBIDDEN") == 0
        kept.pop().close()
        wait_until(lambda: status() == "101", "room for another")
        # One that breaks the rules is let go alone.
        kept[0].sendall(b"\x81\xff" + (1 << 40).to_bytes(8, "big") + b"\0\0\0\0")
        assert kept[0].recv(100) == b""
        assert error(home, "vm1") == "" and home.refused("E_FORBIDDEN") == 0
    finally:
        for caller in kept:
            caller.close()


def test_hooks_and_the_bridge_share_a_folder_and_leave_none(home: Home, vm: Sshd) -> None:
    before = tree(vm)
    for first, last in (("hooks", "mcp"), ("mcp", "hooks")):
        words = {"hooks": ("install", "uninstall"), "mcp": ("register", "unregister")}
        for each in (first, last):
            assert home.run(each, words[each][0], "--target", "vm1").returncode == 0
        assert (vm.home / PROGRAM).read_text() == compose()
        assert (vm.home / PROGRAM.with_name("agtmux-hook")).read_text() == compose_hook()
        for each in (first, last):
            assert home.run(each, words[each][1], "--target", "vm1").returncode == 0
        assert tree(vm) == before


def test_a_target_that_is_removed_takes_it_along(home: Home, vm: Sshd) -> None:
    before = tree(vm)
    mcp(home, "register", "--agent", "claude")
    assert home.run("target", "remove", "vm1", "--yes").returncode == 0
    assert tree(vm) == before
    wait_until(lambda: not vm.leftovers(), "nothing to be left")


def test_a_target_that_is_out_of_reach_is_removed_all_the_same(home: Home, vm: Sshd) -> None:
    mcp(home, "register")
    vm.stop()
    done = home.run("target", "remove", "vm1", "--yes")
    assert done.returncode == 0 and "the bridge stays registered on vm1" in done.stderr, done
    assert "the bridge stays registered on vm1" in log_text(home)
    # It comes again, and can be cleared up then.
    vm.start()
    add(home, "vm1")
    assert mcp(home, "unregister")["claude"]["entry"] == "absent"
    assert (vm.home / ".claude.json").read_text() == CLAUDE
    assert not (vm.home / PROGRAM).exists()


def test_status_tells_the_truth(home: Home, vm: Sshd) -> None:
    assert {name: item["entry"] for name, item in mcp(home, "status").items()} == {
        "claude": "absent",
        "codex": "absent",
    }
    mcp(home, "register")
    program = vm.home / PROGRAM
    program.write_text(compose() + "# another\n")
    assert all("another version" in str(item["warnings"]) for item in mcp(home, "status").values())
    assert home.run("mcp", "register", "--target", "vm1").returncode == 0
    assert program.read_text() == compose()
    file = vm.home / ".claude.json"
    ours = file.read_text()
    # An agtmux of the VM's own that is gone, one that answers, and somebody else's server.
    own = {"command": "/opt/bin/agtmux-mcp", "args": ["--socket", str(vm.home / "own.sock")]}
    file.write_text(json.dumps({"mcpServers": {"agtmux": own}}))
    assert mcp(home, "status", "--agent", "claude")["claude"]["entry"] == "abandoned"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(vm.home / "own.sock"))
        other.listen()
        assert mcp(home, "register", "--agent", "claude")["claude"]["entry"] == "other_instance"
        assert mcp(home, "unregister", "--agent", "claude")["claude"]["entry"] == "other_instance"
    (vm.home / "own.sock").unlink()
    file.write_text('{"mcpServers": {"agtmux": {"command": "mine"}}}')
    assert mcp(home, "status", "--agent", "claude")["claude"]["entry"] == "foreign"
    file.write_text("{ not json")
    done = home.run("mcp", "status", "--target", "vm1", "--json")
    assert done.returncode == 2 and "line 1" in done.stdout
    file.write_text(ours)
    assert mcp(home, "unregister")["claude"]["entry"] == "absent"
    assert file.read_text() == CLAUDE


def test_it_is_said_when_another_agtmux_has_the_door(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    used(vm)
    vm.pane(None)
    (vm.home / DOOR).parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(vm.home / DOOR))
        other.listen()
        home.start()
        add(home, "vm1")
        for action in ("register", "status"):
            warnings = str(mcp(home, action)["claude"]["warnings"])
            assert f"Bridges there do not reach this agtmux: another agtmux listens at {vm.home / DOOR}." in warnings


def test_who_is_not_there_is_said_with_the_right_exit_status(home: Home, vm: Sshd) -> None:
    done = home.run("mcp", "status", "--target", "nobody", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (5, "E_TARGET_NOT_FOUND")
    vm.stop()
    for action in ("register", "unregister", "status"):
        done = home.run("mcp", action, "--target", "vm1")
        assert (done.returncode, "E_TARGET_UNREACHABLE" in done.stderr) == (6, True), done
    assert (vm.home / ".claude.json").read_text() == CLAUDE


def test_coming_up_registers_nothing_there(home: Home, vm: Sshd) -> None:
    before = tree(vm)
    home.run("up", "--headless")
    assert tree(vm) == before


@pytest.mark.parametrize("python", OLDER_AND_NEWER, ids=lambda python: python.parent.parent.name)
def test_every_python_from_3_8_runs_both_ends(home: Home, vm: Sshd, spoken: Any, python: Path) -> None:
    """gwt FR-004."""
    vm.install("python3", f'#!/bin/sh\nexec {python} "$@"\n')
    vm.cut()
    wait_until(lambda: home.ask("POST", "/v1/targets/vm1/connect", {}).status == 200, "a probe again")
    large = with_history(2_000_000)
    (vm.home / ".claude.json").write_text(large)
    assert mcp(home, "register")["claude"]["entry"] == "registered"
    assert mcp(home, "unregister", "--agent", "claude")["claude"]["entry"] == "absent"
    assert (vm.home / ".claude.json").read_text() == large
    bridge = spoken()
    bridge.greet()
    wait_until(lambda: not bridge.call("list_agents")["isError"], "an answer")
    long = bridge.call("get_agent", agent="x" * 200_000)
    assert long["isError"] and "E_USAGE" in long["content"][0]["text"]


def test_what_was_asked_before_the_end_is_answered(home: Home, vm: Sshd) -> None:
    mcp(home, "register")
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": GREETING},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_agents"}},
    ]
    text = "\n".join(map(json.dumps, lines)) + "\n"
    done = subprocess.run(command(vm), env=vm.env, input=text, capture_output=True, text=True, timeout=20)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2], done
