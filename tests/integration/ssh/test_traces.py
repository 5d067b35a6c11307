"""What is left on a VM when the daemon's interest ends, however it ends: nothing. And on the client: nothing new."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.home import Home, wait_until
from support.sshd import Sshd
from support.targets import add, client_files, error, fire_hook, health, seen, state

Vms = Callable[..., list[Sshd]]

DOOR = Path(".local", "state", "agtmux", "agtmuxd.sock")


def is_left_alone(vm: Sshd) -> bool:
    return not vm.leftovers() and not vm.session_pids()


@pytest.fixture
def client_before(home: Home, vms: Vms) -> Iterator[Callable[[], None]]:
    """To be called once the VMs are there: what the user has for SSH stays as it is until the end of the test."""
    files: dict[Path, bytes] = {}
    yield lambda: files.update(client_files(home))
    assert files and client_files(home) == files
    assert {path.name for path in home.folder.iterdir() if path.name.startswith(".")} == {".ssh"}


def watched(home: Home, vm: Sshd) -> str:
    """A pane of the VM, and a daemon that watches it and has had a word from its hook."""
    pane_id = vm.pane()
    home.start()
    add(home, vm.name)
    wait_until(lambda: (vm.name, pane_id) in seen(home), "the pane")
    fire_hook(home, vm, pane_id, "UserPromptSubmit")
    wait_until(lambda: state(home, vm.name, pane_id) == "running", "its hook")
    # It asks tmux in a process of its own, now and then.
    wait_until(lambda: len(vm.leftovers()["processes"]) == 1, "the probe alone")
    assert vm.leftovers()["sockets"] == [f"home/{DOOR}"]
    assert (vm.home / DOOR).stat().st_mode & 0o777 == 0o600
    return pane_id


def warning(home: Home, name: str) -> str:
    items = home.ask("GET", "/v1/targets").json["items"]
    return next(item["warning"] for item in items if item["name"] == name) or ""


def remove(home: Home, vm: Sshd) -> None:
    assert home.run("target", "remove", vm.name, "--yes").returncode == 0


def down(home: Home, vm: Sshd) -> None:
    assert home.run("down").returncode == 0


def kill(home: Home, vm: Sshd) -> None:
    os.kill(home.health()["pid"], signal.SIGKILL)


@pytest.mark.parametrize("end", [remove, down, kill])
def test_nothing_is_left_on_the_vm(home: Home, vms: Vms, client_before, end) -> None:
    [vm] = vms(1)
    client_before()
    watched(home, vm)
    assert {path.stat().st_mode & 0o777 for path in list((vm.home / DOOR).parents)[:3]} == {0o700}
    end(home, vm)
    wait_until(lambda: is_left_alone(vm), "nothing to be left")
    assert vm.tmux("list-panes", "-a", "-F", "#{pane_dead}") == "0", "but the user's own pane"


def test_nothing_is_left_where_a_session_has_a_runtime_folder(home: Home, vms: Vms) -> None:
    """A pane may have that variable or not, so there is a door for both."""
    [vm] = vms(1)
    place = vm.folder / "run"
    place.mkdir(mode=0o700)
    vm.restart(XDG_RUNTIME_DIR=str(place))
    vm.accept_files()
    home.start()
    add(home, vm.name)
    assert vm.leftovers()["sockets"] == [f"home/{DOOR}", "run/agtmux/agtmuxd.sock"]
    remove(home, vm)
    wait_until(lambda: is_left_alone(vm), "nothing to be left")


def test_nothing_is_left_of_a_connection_that_was_cut(home: Home, vms: Vms, client_before) -> None:
    [vm] = vms(1)
    client_before()
    watched(home, vm)
    for _ in range(2):
        vm.cut()
        wait_until(lambda: vm.session_pids() and vm.leftovers().get("sockets"), "a probe again")
        wait_until(lambda: len(vm.leftovers()["processes"]) == 1, "the end of the one before")
    # The client may not come back: what is cut has to end by itself.
    remove(home, vm)
    wait_until(lambda: is_left_alone(vm), "nothing to be left")


def probe_pid(vm: Sshd) -> int:
    """It may be asking something just now, in a process of its own."""

    def found() -> list[str]:
        return [line for line in vm.leftovers().get("processes", []) if "python3" in line]

    [line] = wait_until(found, "the probe")
    return int(line.split()[0])


def test_nothing_is_left_of_a_probe_that_was_told_to_end(home: Home, vms: Vms) -> None:
    """By the VM's own root, or when it is shut down."""
    [vm] = vms(1)
    watched(home, vm)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        pid = probe_pid(vm)
        os.kill(pid, number)

        def is_another(before: int = pid) -> bool:
            found = vm.leftovers()
            return "sockets" in found and str(before) not in [line.split()[0] for line in found.get("processes", [])]

        wait_until(is_another, "another probe with its door")
    down(home, vm)
    wait_until(lambda: is_left_alone(vm), "nothing to be left")


def test_what_a_killed_probe_left_is_used_and_cleared_by_the_next(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    pane_id = watched(home, vm)
    before = probe_pid(vm)
    os.kill(before, signal.SIGKILL)

    def is_another() -> bool:
        return any(not line.startswith(f"{before} ") for line in vm.leftovers().get("processes", []))

    wait_until(is_another, "another probe")
    wait_until(lambda: "sockets" in vm.leftovers(), "its door")
    fire_hook(home, vm, pane_id, "Stop")
    wait_until(lambda: state(home, "vm1", pane_id) == "completed", "what the hook says")
    down(home, vm)
    wait_until(lambda: "processes" not in vm.leftovers() and "sockets" not in vm.leftovers(), "its end")
    # The folders were another's; nobody can tell by now that they are nobody's.
    assert set(vm.leftovers().get("files", [])) <= {f"home/{place}" for place in list(DOOR.parents)[:-1]}


def test_folders_that_were_there_stay(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    (vm.home / ".local" / "state").mkdir(parents=True)
    (vm.home / ".local" / "state" / "of-the-user").write_text("mine")
    vm.accept_files()
    watched(home, vm)
    remove(home, vm)
    wait_until(lambda: is_left_alone(vm), "nothing to be left")
    assert [path.name for path in (vm.home / ".local" / "state").iterdir()] == ["of-the-user"]


def test_the_door_of_somebody_else_is_left_alone(home: Home, vms: Vms) -> None:
    """As where agtmux itself runs on the VM: its hooks are its own."""
    [vm] = vms(1)
    door = vm.home / DOOR
    door.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(door))
        other.listen()
        vm.accept_files()
        before = door.stat()
        pane_id = vm.pane()
        home.start()
        add(home, "vm1")
        assert ("vm1", pane_id) in seen(home)
        assert (health(home, "vm1"), error(home, "vm1")) == ("ok", "")
        wait_until(lambda: f"another agtmux listens at {door}" in warning(home, "vm1"), "a word about it")
        remove(home, vm)
        wait_until(lambda: "processes" not in vm.leftovers(), "the end of the probe")
        after = door.stat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_door_that_nobody_answers_is_replaced(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    door = vm.home / DOOR
    door.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(door))
    vm.accept_files()
    watched(home, vm)
    remove(home, vm)
    wait_until(lambda: is_left_alone(vm), "nothing to be left")
    assert not door.exists()


def test_a_file_in_the_place_of_the_door_is_not_deleted(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    door = vm.home / DOOR
    door.parent.mkdir(parents=True)
    door.write_text("a file of the user's")
    vm.accept_files()
    pane_id = vm.pane()
    home.start()
    add(home, "vm1")
    assert ("vm1", pane_id) in seen(home)
    remove(home, vm)
    wait_until(lambda: is_left_alone(vm), "nothing to be left")
    assert door.read_text() == "a file of the user's"
