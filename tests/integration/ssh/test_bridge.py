"""Agents on a VM see the others through the bridge, and are who the kernel says."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from agtmux.bridge.compose import compose
from agtmux.probe.peer import is_answered
from support.asking import GREETING, Asker, BridgeProcess
from support.far_bridges import (
    DOOR,
    OLDER_AND_NEWER,
    PROGRAM,
    Vms,
    agent_there,
    command,
    mcp,
    used,
)
from support.histories import with_history
from support.home import Home, wait_until
from support.puppets import Puppet
from support.sshd import Sshd
from support.targets import add, error, pace, seen


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
