"""`agtmux hooks --target VM`: agents there report here, and afterwards their machine is as it was, to the byte."""

from __future__ import annotations

import fcntl
import json
import re
import shlex
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agtmux.hook.compose import compose
from support.histories import with_history
from support.home import COMMANDS, PATIENCE, Home, wait_until
from support.sshd import Sshd
from support.targets import HASTY, add, seen, state

Vms = Callable[..., list[Sshd]]

SETTINGS = """{
   // my own
   "model": "opus",
   "hooks": {
      "Stop": [ {"hooks": [{"type": "command", "command": "say done"}]} ], // and theirs
   },
}
"""
PROGRAM = Path(".local", "share", "agtmux", "agtmux-hook")


def settings(vm: Sshd, text: str | None = SETTINGS) -> Path:
    path = vm.home / ".claude" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    if text is not None:
        path.write_text(text)
    return path


def installed(vm: Sshd, version: str) -> None:
    """The agent, where the VM's sessions find it, in that version."""
    package = vm.folder / "claude-code"
    package.mkdir(exist_ok=True)
    (package / "package.json").write_text(json.dumps({"name": "@anthropic-ai/claude-code", "version": version}))
    (package / "cli.js").touch(mode=0o755)
    link = vm.folder / "bin" / "claude"
    if not link.is_symlink():
        link.symlink_to(package / "cli.js")


def watched(home: Home, vm: Sshd) -> str:
    pane_id = vm.pane(command="sh")
    vm.accept_files()
    home.start()
    add(home, vm.name)
    wait_until(lambda: (vm.name, pane_id) in seen(home), "the pane")
    return pane_id


def tree(vm: Sshd) -> dict[str, Any]:
    """Every file of the VM's user with its mode and content; the probe's own door is its own business."""
    found = [path for path in sorted(vm.home.rglob("*")) if "state" not in path.parts]
    return {
        str(path): (path.lstat().st_mode, path.read_bytes() if path.is_file() else None)
        for path in found
        if path.name != ".local"
    }


def hooks(home: Home, action: str, *words: str) -> list[dict[str, Any]]:
    done = home.run("hooks", action, "--target", "vm1", "--json", *words)
    assert done.returncode == 0, done
    answer = json.loads(done.stdout)
    assert answer["target"] == "vm1"
    return list(answer["items"])


def commands(text: str) -> dict[str, str]:
    """By event, what the file says to run."""
    found = (json.loads(word) for word in re.findall(r'"command": ("(?:[^"\\]|\\.)*agtmux-hook(?:[^"\\]|\\.)*")', text))
    return {command.split()[-1]: command for command in found}


def run_in_pane(vm: Sshd, pane_id: str, command: str, payload: str) -> None:
    """As an agent in a pane of that machine's tmux would: by sh, with the pane's own environment."""
    script = vm.folder / "agent"
    script.write_text(f"printf %s {shlex.quote(payload)} | sh -c {shlex.quote(command)}\n")
    vm.tmux("send-keys", "-t", pane_id, f"sh {shlex.quote(str(script))}", "Enter")


def test_what_is_installed_there_reports_here_and_goes_without_a_trace(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    installed(vm, "2.1.197")
    file = settings(vm)
    file.chmod(0o640)
    before = tree(vm)
    pane_id = watched(home, vm)
    done = home.run("hooks", "install", "--target", "vm1")
    assert done.returncode == 0, done
    assert re.search(r"^claude on vm1: added \d+ \(", done.stdout, re.MULTILINE), done.stdout
    assert "codex" not in done.stdout
    text = file.read_text()
    assert '"command": "say done"' in text and "// my own" in text and "// and theirs" in text
    program = vm.home / PROGRAM
    assert (program.read_text(), program.stat().st_mode & 0o777) == (compose(), 0o700)
    assert commands(text)["UserPromptSubmit"] == f"{program} claude UserPromptSubmit"
    (item,) = hooks(home, "status")
    assert (item["missing"], item["stale"], item["path"]) == ([], [], str(file))
    assert item["already_there"]

    run_in_pane(vm, pane_id, commands(text)["UserPromptSubmit"], '{"prompt": "hello", "session_id": "1"}')
    wait_until(lambda: state(home, "vm1", pane_id) == "running", "what the hook told")

    # Nothing to do the second time.
    stamps = [(path.stat().st_ino, path.stat().st_mtime_ns) for path in (file, program)]
    assert not hooks(home, "install")[0]["changed"]
    assert [(path.stat().st_ino, path.stat().st_mtime_ns) for path in (file, program)] == stamps

    assert home.run("hooks", "uninstall", "--target", "vm1").returncode == 0
    assert tree(vm) == before
    assert [path for path in home.folder.rglob("*.json") if ".claude" in path.parts] == [], "nothing of it is here"
    (vm.folder / "agent").unlink()
    assert home.run("target", "remove", "vm1", "--yes").returncode == 0
    wait_until(lambda: not vm.leftovers(), "nothing to be left")


def test_nothing_is_left_though_the_line_was_cut_in_between(home: Home, vms: Vms) -> None:
    """Folders that the probe made for its door and the program shares go with whoever is last."""
    [vm] = vms(1)
    settings(vm, None)
    watched(home, vm)
    hooks(home, "install")
    assert (vm.home / PROGRAM).exists()
    vm.cut()
    wait_until(lambda: home.ask("POST", "/v1/targets/vm1/connect", {}).status == 200, "a probe again")
    hooks(home, "uninstall")
    assert home.run("target", "remove", "vm1", "--yes").returncode == 0
    wait_until(lambda: not vm.leftovers(), "nothing to be left")


def test_the_program_stays_while_one_agent_uses_it(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    settings(vm, None)
    (vm.home / ".gemini").mkdir()
    before = tree(vm)
    watched(home, vm)
    assert {item["agent"] for item in hooks(home, "install")} == {"claude", "gemini"}
    hooks(home, "uninstall", "--agent", "claude")
    assert (vm.home / PROGRAM).exists()
    hooks(home, "uninstall", "--agent", "gemini")
    assert tree(vm) == before


def test_a_program_of_another_version_is_told_and_replaced(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    settings(vm)
    watched(home, vm)
    hooks(home, "install")
    program = vm.home / PROGRAM
    program.write_text(compose() + "# another\n")
    assert any("another version" in warning for warning in hooks(home, "status")[0]["warnings"])
    hooks(home, "install")
    assert program.read_text() == compose()


def test_a_file_in_the_place_of_the_program_is_left_alone(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    settings(vm)
    program = vm.home / PROGRAM
    program.parent.mkdir(parents=True)
    program.write_text("mine")
    before = tree(vm)
    watched(home, vm)
    done = home.run("hooks", "install", "--target", "vm1")
    assert (done.returncode, "is not agtmux's" in done.stderr) == (2, True), done
    assert tree(vm) == before


def test_the_data_folder_is_where_the_user_wants_it(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    vm.restart(XDG_DATA_HOME=str(vm.home / "data"), CLAUDE_CONFIG_DIR=str(vm.home / "cc"))
    (vm.home / "cc").mkdir()
    before = tree(vm)
    watched(home, vm)
    (item,) = hooks(home, "install")
    assert item["path"] == str(vm.home / "cc" / "settings.json")
    assert set(commands((vm.home / "cc" / "settings.json").read_text()).values()) >= {
        f"{vm.home}/data/agtmux/agtmux-hook claude Stop"
    }
    hooks(home, "uninstall")
    assert tree(vm) == before


def test_a_symbolic_link_there_is_followed_and_told(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    file = settings(vm, None)
    real = vm.home / "dotfiles.json"
    real.write_text("{}")
    file.symlink_to(real)
    before = tree(vm)
    watched(home, vm)
    (item,) = hooks(home, "install")
    assert any(str(real) in warning for warning in item["warnings"])
    assert file.is_symlink() and "agtmux-hook" in real.read_text()
    hooks(home, "uninstall")
    assert tree(vm) == before


def test_a_large_file_there_is_as_before(home: Home, vms: Vms) -> None:
    """More than the line takes at once."""
    [vm] = vms(1)
    file = settings(vm, with_history(12_000_000, hooks={"Stop": []}))
    before = tree(vm)
    watched(home, vm)
    (item,) = hooks(home, "install")
    assert item["error"] is None and "agtmux-hook" in json.dumps(json.loads(file.read_text())["hooks"])
    hooks(home, "uninstall")
    assert tree(vm) == before


def test_a_file_that_cannot_be_read_is_left_alone_and_named(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    settings(vm, "{ not json")
    before = tree(vm)
    watched(home, vm)
    done = home.run("hooks", "install", "--target", "vm1")
    assert done.returncode == 2
    assert "settings.json" in done.stderr and "line 1" in done.stderr and "left as it is" in done.stderr
    assert tree(vm) == before, "not even the program was left there"


def test_versions_there_decide_which_hooks_are_written(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    settings(vm)
    installed(vm, "2.1.70")
    watched(home, vm)
    (item,) = hooks(home, "install")
    assert "StopFailure" not in item["added"] and "Stop" in item["added"]
    assert any("2.1.70 does not have these hooks yet" in warning for warning in item["warnings"])
    installed(vm, "2.1.197")
    assert "StopFailure" in hooks(home, "install")[0]["added"]


def test_who_is_not_there_is_said_with_the_right_exit_status(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    home.configure(HASTY)
    settings(vm)
    watched(home, vm)
    done = home.run("hooks", "status", "--target", "nobody", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (5, "E_TARGET_NOT_FOUND")
    vm.stop()
    for words in (["install"], ["uninstall"], ["status"], ["install", "--agent", "tmux"]):
        done = home.run("hooks", *words, "--target", "vm1")
        assert (done.returncode, "E_TARGET_UNREACHABLE" in done.stderr) == (6, True), done
    assert settings(vm, None).read_text() == SETTINGS


def test_another_server_of_this_machine_means_this_machines_files(home: Home) -> None:
    (home.folder / ".claude").mkdir()
    home.start()
    assert home.run("target", "add", "lab", "--tmux-socket", "lab").returncode == 0
    done = home.run("hooks", "install", "--target", "lab")
    assert (done.returncode, "claude on lab: added" in done.stdout) == (0, True), done
    assert "agtmux-hook" in (home.folder / ".claude" / "settings.json").read_text()
    assert not (home.folder / ".local").exists()
    assert home.run("hooks", "uninstall").returncode == 0
    assert list((home.folder / ".claude").iterdir()) == []


def test_it_is_said_when_hooks_there_are_not_heard(home: Home, vms: Vms) -> None:
    """As where agtmux itself runs on the VM."""
    [vm] = vms(1)
    settings(vm)
    door = vm.home / ".local" / "state" / "agtmux" / "agtmuxd.sock"
    door.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(door))
        other.listen()
        watched(home, vm)
        for action in ("install", "status"):
            (item,) = hooks(home, action)
            assert f"Hooks there are not heard: another agtmux listens at {door}." in item["warnings"]


@pytest.fixture
def held(home: Home, vms: Vms) -> Any:
    """A VM on which somebody else holds the lock of the agent's file: what is to be written there has to wait."""
    [vm] = vms(1)
    home.configure(HASTY)
    installed(vm, "2.1.197")
    file = settings(vm)
    watched(home, vm)
    lock = file.parent / ".settings.json.agtmux-lock"
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield vm, file, lock


def begun(home: Home, vm: Sshd) -> subprocess.Popen[str]:
    install = home.spawn(COMMANDS / "agtmux", "hooks", "install", "--target", "vm1")
    # First the program is placed, then the file is to be written.
    wait_until(lambda: (vm.home / PROGRAM).exists(), "the install to be under way")
    return install


def test_files_that_take_their_time_hold_up_no_look(home: Home, held: Any) -> None:
    vm, file, _ = held
    install = begun(home, vm)
    looks = 0
    while install.poll() is None:
        assert home.ask("POST", "/v1/targets/vm1/connect", {}).status == 200
        looks += 1
    assert looks >= 10, "within the two seconds that an answer may take"
    said = install.communicate(timeout=PATIENCE)
    assert install.returncode == 1 and "E_TIMEOUT" in said[1], said
    assert file.read_text() == SETTINGS
    assert not (vm.home / PROGRAM).exists()
    assert home.health()["failures"] == {}


def test_a_line_that_is_cut_halfway_leaves_the_file_whole(home: Home, held: Any) -> None:
    vm, file, lock = held
    install = begun(home, vm)
    vm.cut()
    said = install.communicate(timeout=PATIENCE)
    assert install.returncode == 6, said
    lock.unlink()
    wait_until(lambda: home.ask("POST", "/v1/targets/vm1/connect", {}).status == 200, "a probe again")
    wait_until(lambda: len(vm.leftovers()["processes"]) == 1, "the end of the one before")
    text = file.read_text()
    assert text == SETTINGS or len(commands(text)) > 5
    assert [path.name for path in file.parent.iterdir()] == ["settings.json"]
    hooks(home, "install")
    assert len(commands(file.read_text())) > 5
    hooks(home, "uninstall")
    assert file.read_text() == SETTINGS
    assert not (vm.home / PROGRAM).exists()
