"""`agtmux mcp --target VM`: what is written there, told of it, and taken away again."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from agtmux.bridge.compose import compose
from agtmux.hook.compose import compose as compose_hook
from support.asking import BridgeProcess
from support.far_bridges import (
    CLAUDE,
    DOOR,
    PROGRAM,
    Vms,
    command,
    mcp,
    tree,
    used,
)
from support.histories import with_history
from support.home import Home, wait_until
from support.sshd import Sshd
from support.targets import add, log_text


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
