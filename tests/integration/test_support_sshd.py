"""The VMs of `support.sshd` are what tests of SSH targets take them for."""

from __future__ import annotations

import random
import select
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import asyncssh
import pytest

from support.home import Home, wait_until
from support.processes import processes
from support.sshd import PORTS, Sshd

Vms = Callable[..., list[Sshd]]

needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="environments are read from /proc")
STRAY_SOCKET = """python3 -c '
import os, socket, time
server = socket.socket(socket.AF_UNIX)
server.bind(os.environ["HOME"] + "/stray.sock")
print(os.getpid(), flush=True)
time.sleep(3600)
' &"""


def ssh_command(home: Home, *words: str) -> list[str]:
    # Without BatchMode it would ask on the terminal of whoever runs the tests.
    return ["ssh", "-F", str(home.folder / ".ssh" / "config"), "-o", "BatchMode=yes", *words]


def ssh(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    options = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 30}
    return subprocess.run([*home.around, *ssh_command(home, *words)], env=home.env, **options)


class Session:
    """One that stays open: its far end says everything back."""

    def __init__(self, home: Home, vm: Sshd) -> None:
        self.process = home.spawn(*ssh_command(home, vm.name, "echo $$; exec cat"), stdin=subprocess.PIPE, bufsize=1)
        self.far_pid = int(self.hear())

    def say(self, line: str) -> None:
        self.process.stdin.write(line + "\n")

    def hear(self) -> str:
        return self.process.stdout.readline().strip()

    def is_silent(self) -> bool:
        return self.process.poll() is None and not select.select([self.process.stdout], [], [], 0.5)[0]


def test_session_has_the_home_and_tmux_of_its_vm_and_nothing_of_the_tests(home: Home, vms: Vms, monkeypatch) -> None:
    for name in ("XDG_RUNTIME_DIR", "AGTMUX_STATE_DIR", "LC_ALL"):
        monkeypatch.setenv(name, "/of/the/test")
    for vm in vms(2):
        shown = ssh(home, vm.name, "env").stdout
        variables = dict(line.split("=", 1) for line in shown.splitlines())

        assert variables["HOME"] == str(vm.home)
        assert Path(variables["TMUX_TMPDIR"]).parent == vm.folder
        assert not any(name.startswith(("XDG_", "AGTMUX_", "LC_", "PYTEST_", "PYTHON")) for name in variables)
        assert str(home.folder) not in shown


def test_session_sees_the_panes_of_its_own_vm(home: Home, vms: Vms) -> None:
    for vm in vms(2):
        panes = {vm.pane(), vm.pane(agent=None)}
        shown = ssh(home, vm.name, "tmux list-panes -a -F '#{pane_id} #{pane_current_path} #{@agtmux_agent}'").stdout

        assert {line.split()[0] for line in shown.splitlines()} == panes
        assert {line.split()[1] for line in shown.splitlines()} == {str(vm.home)}
        assert shown.count("claude") == 1


def test_unknown_host_key_is_refused(home: Home, vms: Vms) -> None:
    first, second = vms(2)
    known_hosts = home.folder / ".ssh" / "known_hosts"
    right = known_hosts.read_text()
    wrong = right.replace(first.host_key, second.host_key)
    for text in ("", wrong):
        known_hosts.write_text(text)
        assert "Host key verification failed" in ssh(home, first.name, "true").stderr
    known_hosts.write_text(right)
    assert ssh(home, first.name, "true").returncode == 0


def test_stopped_vm_refuses_and_comes_back_on_its_port(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    port = vm.port
    session = Session(home, vm)

    vm.stop()

    assert session.process.wait(timeout=20) == 255
    assert session.far_pid not in processes()
    assert "Connection refused" in ssh(home, vm.name, "true").stderr

    vm.start()

    assert vm.port == port
    assert ssh(home, vm.name, "true").returncode == 0


def test_vm_whose_port_is_taken_finds_another(short_tmp: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        vm = Sshd("vm1", short_tmp / "vm1", iter([taken, *random.SystemRandom().sample(PORTS, 5)]))
        try:
            vm.start()
            assert vm.port in PORTS
        finally:
            vm.close()


def test_frozen_vm_hangs_and_goes_on_when_thawed(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    vm.pane()
    session = Session(home, vm)
    vm.freeze()
    session.say("still there?")

    assert session.is_silent()
    assert processes()[session.far_pid].state == "T"
    assert "timed out" in ssh(home, "-o", "ConnectTimeout=1", vm.name, "true").stderr
    assert vm.tmux("list-panes", "-a", "-F", "#{pane_dead}") == "0"

    vm.thaw()

    assert session.hear() == "still there?"
    assert ssh(home, vm.name, "true").returncode == 0


def test_cut_ends_a_session_and_not_the_listener(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    session = Session(home, vm)
    assert vm.session_pids()

    vm.cut()

    assert session.process.wait(timeout=20) == 255
    assert vm.session_pids() == []
    wait_until(lambda: session.far_pid not in processes(), "the end of what ran in the session")
    assert ssh(home, vm.name, "true").returncode == 0


@needs_proc
def test_nothing_is_left_after_sessions_that_end_and_panes_that_stay(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    vm.pane()
    assert ssh(home, vm.name, "tmux new-window -d 'sleep 3600'; echo done").stdout == "done\n"
    session = Session(home, vm)
    # The shell there tells its number before it becomes this.
    wait_until(lambda: vm.leftovers() == {"processes": [f"{session.far_pid} cat"]}, "what runs there")
    session.process.communicate(timeout=20)
    wait_until(lambda: not vm.leftovers() and not vm.session_pids(), "the end of the session")


@needs_proc
@pytest.mark.parametrize("netns", [False, True])
def test_stray_file_process_and_socket_are_found_frozen_and_ended(home: Home, vms: Vms, netns: bool) -> None:
    [vm] = vms(1, netns=netns)
    session = home.spawn(*ssh_command(home, vm.name, STRAY_SOCKET))
    pid = int(session.stdout.readline())
    vm.cut()
    found = vm.leftovers()

    assert [line.split()[:2] for line in found.pop("processes")] == [[str(pid), "python3"]]
    assert found == {"files": ["home/stray.sock"], "sockets": ["home/stray.sock"]}

    vm.accept_files()
    (vm.home / ".cache" / "stray").mkdir(parents=True)
    assert vm.leftovers()["files"] == ["home/.cache", "home/.cache/stray"]

    vm.freeze()
    assert processes()[pid].state == "T"
    vm.thaw()
    wait_until(lambda: processes()[pid].state != "T", "a stray process that goes on")
    vm.close()
    assert pid not in processes()


async def test_asyncssh_connects_by_the_name_in_the_config(home: Home, vms: Vms, monkeypatch) -> None:
    [vm, other] = vms(2)
    monkeypatch.setenv("HOME", str(home.folder))
    known_hosts = home.folder / ".ssh" / "known_hosts"
    options = {"config": [str(home.folder / ".ssh" / "config")], "known_hosts": str(known_hosts)}
    async with asyncssh.connect(vm.name, **options) as connection:
        assert (await connection.run("echo $HOME", check=True)).stdout == f"{vm.home}\n"

    known_hosts.write_text(known_hosts.read_text().replace(vm.host_key, other.host_key))
    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        await asyncssh.connect(vm.name, **options)


def test_dead_line_is_silent_and_goes_on_when_restored(home: Home, vms: Vms) -> None:
    [vm, other] = vms(2, netns=True)
    session = Session(home, vm)
    vm.drop_route()
    session.say("still there?")

    assert session.is_silent()
    assert "timed out" in ssh(home, "-o", "ConnectTimeout=4", vm.name, "true").stderr
    assert ssh(home, other.name, "true").returncode == 0

    vm.restore_route()

    assert session.hear() == "still there?"
    assert ssh(home, vm.name, "true").returncode == 0


def test_network_of_a_vm_ends_with_it(home: Home, vms: Vms) -> None:
    [vm] = vms(1, netns=True)
    assert vm.has_network() == (True, True)
    assert not Path("/sys/class/net", vm.line).exists(), "the machine's own network has nothing of it"
    vm.drop_route()
    vm.close()
    assert vm.has_network() == (False, False)
