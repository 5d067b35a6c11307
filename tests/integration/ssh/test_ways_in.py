"""Every way the user's own ssh has to a VM, and to each tmux server there, is a way for the daemon."""

from __future__ import annotations

import os
import pwd
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.home import PATIENCE, Home, wait_until
from support.sshd import Sshd
from support.targets import add, client_files, error, fire_hook, health, seen, state

Vms = Callable[..., list[Sshd]]

USER = pwd.getpwuid(os.geteuid()).pw_name
PASSPHRASE = "correct-horse-battery"
DIALOG = '{"tool_name": "Bash", "tool_input": {"command": "make deploy"}}'


def write_config(home: Home, text: str) -> None:
    (home.folder / ".ssh" / "config").write_text(text)


def host(name: str, vm: Sshd, *lines: str) -> str:
    given = [f"HostName {vm.address}", f"Port {vm.port}", f"User {USER}", *lines]
    return f"Host {name}\n" + "".join(f"    {line}\n" for line in given)


# The place of a VM


@pytest.mark.parametrize("form", [f"{USER}@vm1", "ssh://{user}@127.0.0.1:{port}", "ssh://127.0.0.1:{port}"])
def test_a_vm_is_named_as_ssh_takes_it(home: Home, vms: Vms, form: str) -> None:
    [vm] = vms(1)
    pane_id = vm.pane()
    before = client_files(home)
    home.start()
    ssh_target = form.format(user=USER, port=vm.port)
    done = home.run("target", "add", "far", "--kind", "ssh", "--ssh-target", ssh_target)
    assert (done.returncode, done.stderr) == (0, "")
    done = home.run("target", "connect", "far")
    assert (done.returncode, done.stdout) == (0, "far is ok, with 1 pane\n"), done
    assert list(seen(home)) == [("far", pane_id)]
    assert client_files(home) == before


def test_the_user_in_the_address_goes_before_the_one_in_the_config(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    home.start()
    home.run("target", "add", "far", "--kind", "ssh", "--ssh-target", "nobody-here@vm1")
    refused = home.run("target", "connect", "far")
    assert refused.returncode == 6 and "does not let you in" in refused.stderr
    assert "nobody-here" in vm.log.read_text()


def test_a_vm_is_reached_over_another(home: Home, vms: Vms) -> None:
    near, far = vms(2)
    pane_id = far.pane()
    config = (home.folder / ".ssh" / "config").read_text()
    write_config(home, config + host("far", far, "ProxyJump vm1"))
    home.start()
    add(home, "far")
    assert list(seen(home)) == [("far", pane_id)]
    assert near.session_pids() and far.session_pids()
    assert home.run("target", "remove", "far", "--yes").returncode == 0
    wait_until(lambda: not near.session_pids() and not far.session_pids(), "the end of both connections")
    assert not near.leftovers()
    wait_until(lambda: not far.leftovers(), "nothing to be left")


def test_a_vm_behind_one_that_is_off_says_so_and_comes_back(home: Home, vms: Vms) -> None:
    near, far = vms(2)
    pane_id = far.pane()
    config = (home.folder / ".ssh" / "config").read_text()
    write_config(home, config + host("far", far, "ProxyJump vm1"))
    home.start()
    add(home, "far")
    near.stop()
    wait_until(lambda: error(home, "far"), "its error")
    near.start()
    wait_until(lambda: not error(home, "far"), "its recovery")
    assert list(seen(home)) == [("far", pane_id)]


def test_a_command_of_the_config_leads_there(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    pane_id = vm.pane()
    relay = home.folder / "relay"
    relay.write_text(
        "import socket, sys, threading, os\n"
        "line = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "def up():\n"
        "    while data := os.read(0, 65536): line.sendall(data)\n"
        "    line.shutdown(socket.SHUT_WR)\n"
        "threading.Thread(target=up, daemon=True).start()\n"
        "while data := line.recv(65536): os.write(1, data)\n"
    )
    config = (home.folder / ".ssh" / "config").read_text()
    write_config(home, f"{config}    ProxyCommand /usr/bin/env python3 {relay} %h %p\n")
    home.start()
    add(home, "vm1")
    assert list(seen(home)) == [("vm1", pane_id)]


# Who is who


def test_host_keys_may_be_kept_elsewhere(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    pane_id = vm.pane()
    folder = home.folder / ".ssh"
    (folder / "known_hosts").rename(folder / "hosts_of_work")
    config = (folder / "config").read_text()
    write_config(home, config.replace("/known_hosts", "/hosts_of_work"))
    home.start()
    home.run("target", "add", "vm1", "--kind", "ssh")
    assert home.run("target", "connect", "vm1").returncode == 0
    assert list(seen(home)) == [("vm1", pane_id)]


@pytest.fixture
def agent(home: Home) -> Iterator[Path]:
    """The socket of an ssh-agent of the test's own."""
    place = home.folder / "agent.sock"
    process = home.spawn("ssh-agent", "-D", "-a", str(place))
    wait_until(place.exists, "an ssh-agent")
    yield place
    process.terminate()
    process.communicate(timeout=PATIENCE)


def test_a_key_with_a_passphrase_is_used_through_the_agent(home: Home, vms: Vms, agent: Path) -> None:
    [vm] = vms(1)
    pane_id = vm.pane()
    key = home.folder / ".ssh" / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", PASSPHRASE, "-f", key], check=True, capture_output=True)
    ask = home.folder / "ask"
    ask.write_text(f"#!/bin/sh\necho {PASSPHRASE}\n")
    ask.chmod(0o700)
    env = home.env | {"SSH_AUTH_SOCK": str(agent), "SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force"}
    subprocess.run(["ssh-add", "-q", key], env=env, check=True, capture_output=True, timeout=PATIENCE)
    home.start(env={"SSH_AUTH_SOCK": str(agent)})
    add(home, "vm1")
    assert list(seen(home)) == [("vm1", pane_id)]

    # It is not passed on to the VM, whoever is root there.
    for line in vm.leftovers()["processes"]:
        assert "SSH_AUTH_SOCK" not in Path(f"/proc/{line.split()[0]}/environ").read_text()
    for path in (path for path in home.state.rglob("*") if path.is_file()):
        assert PASSPHRASE.encode() not in path.read_bytes(), path


# Which tmux server


@pytest.mark.parametrize("flag", ["-L", "-S"])
def test_another_tmux_server_of_the_vm_is_watched(home: Home, vms: Vms, flag: str) -> None:
    [vm] = vms(1)
    name = "work" if flag == "-L" else f"{vm.folder}/tmux/elsewhere"
    vm.pane(agent=None)
    pane_id = vm.tmux(flag, name, "new-session", "-d", "-s", "other", "-P", "-F", "#{pane_id}", "sleep 3600")
    vm.tmux(flag, name, "set-option", "-p", "-t", pane_id, "@agtmux_agent", "claude")
    home.start()
    done = home.run("target", "add", "far", "--kind", "ssh", "--ssh-target", "vm1", "--tmux-socket", name)
    assert done.returncode == 0
    assert home.run("target", "connect", "far").returncode == 0
    [item] = seen(home).values()
    assert (item["identity"]["session_name"], item["agent_type"]) == ("other", "claude")
    fire_hook(home, vm, pane_id, "PermissionRequest", DIALOG, (flag, name))
    wait_until(lambda: state(home, "far", pane_id) == "waiting_approval", "what the hook says")
    vm.tmux(flag, name, "kill-server")


def two_servers(home: Home, vm: Sshd) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Two targets on one VM, with a pane of the same id each; which pane, and tmux's words for its server."""
    own = vm.pane()
    words = ("-L", "other")
    other = vm.tmux(*words, "new-session", "-d", "-P", "-F", "#{pane_id}", "sleep 3600")
    vm.tmux(*words, "set-option", "-p", "-t", other, "@agtmux_agent", "claude")
    assert own == other
    home.start()
    add(home, "first", "vm1")
    add(home, "second", "vm1", "other")
    return {"first": (own, ()), "second": (other, words)}


def test_hooks_land_on_the_tmux_server_they_come_from(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    servers = two_servers(home, vm)
    # There is one door for both.
    assert len(vm.leftovers()["sockets"]) == 1
    # What a probe starts is for a moment called as itself.
    wait_until(lambda: len(vm.leftovers()["processes"]) == 2, "two probes alone")
    for target, event, wanted in (
        ("second", "PermissionRequest", {"first": "unknown", "second": "waiting_approval"}),
        ("first", "UserPromptSubmit", {"first": "running", "second": "waiting_approval"}),
        ("second", "Stop", {"first": "running", "second": "completed"}),
    ):
        pane_id, words = servers[target]
        fire_hook(home, vm, pane_id, event, DIALOG, words)

        def states() -> dict[str, str]:
            return {name: item["state"] for (name, _), item in seen(home).items()}

        wait_until(lambda wanted=wanted: states() == wanted, f"{target} to be {wanted[target]}")
    vm.tmux("-L", "other", "kill-server")


def test_the_door_is_taken_over_when_its_target_is_removed(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    pane_id, words = two_servers(home, vm)["second"]
    assert home.run("target", "remove", "first", "--yes").returncode == 0
    wait_until(lambda: len(vm.leftovers()["processes"]) == 1, "the end of its probe")
    wait_until(lambda: "sockets" in vm.leftovers(), "a door for the other", 10)
    fire_hook(home, vm, pane_id, "PermissionRequest", DIALOG, words)
    wait_until(lambda: state(home, "second", pane_id) == "waiting_approval", "what the hook says")


# Hooks, and many VMs


def test_what_hooks_on_vms_say_is_shown_for_each_at_once(home: Home, vms: Vms) -> None:
    machines = vms(3)
    panes = {vm.name: vm.pane() for vm in machines}
    assert set(panes.values()) == {"%0"} == {home.pane()}
    home.start()
    for vm in machines:
        add(home, vm.name)
    assert {target for target, _ in seen(home)} == {"host", *panes}
    first, second, third = machines
    fire_hook(home, first, panes["vm1"], "PermissionRequest", DIALOG)
    fire_hook(home, second, panes["vm2"], "UserPromptSubmit")
    fire_hook(home, third, panes["vm3"], "Stop")
    wanted = {"host": "unknown", "vm1": "waiting_approval", "vm2": "running", "vm3": "completed"}
    wait_until(lambda: {name: item["state"] for (name, _), item in seen(home).items()} == wanted, "all states")
    assert seen(home)["vm1", "%0"]["attention"]["summary"] == "make deploy"
    assert {health(home, name) for name in wanted} == {"ok"}
    listing = home.ask("GET", "/v1/panes").json
    assert listing["responded_targets"] == listing["requested_targets"] == sorted(wanted)


def test_a_hook_on_a_vm_is_seen_without_a_look(home: Home, vms: Vms) -> None:
    """By its own way, and not because something was looked at: the state is there within moments. Most of the times,
    as a busy machine may hold up any single one."""
    [vm] = vms(1)
    pane_id = vm.pane()
    home.start()
    add(home, "vm1")
    seconds = []
    for event, wanted in 3 * [("UserPromptSubmit", "running"), ("Stop", "completed")]:
        fire_hook(home, vm, pane_id, event)
        began = time.monotonic()
        wait_until(lambda wanted=wanted: state(home, "vm1", pane_id) == wanted, f"{event} to show")
        seconds.append(time.monotonic() - began)
    assert statistics.median_high(seconds) < 1, seconds
