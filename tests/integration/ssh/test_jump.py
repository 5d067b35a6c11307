"""`attach` to a pane on another machine: through ssh, word for word, and with the same check over there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable

from support.home import COMMANDS, Home, wait_until
from support.sshd import Sshd, needs_terminal
from support.targets import add, seen
from support.terminal import Terminal, terminals

Vms = Callable[..., list[Sshd]]


def with_ssh(home: Home) -> dict[str, str]:
    """ssh looks for its config where the system says that the user's home is, and not in $HOME."""
    programs = home.folder / "bin"
    programs.mkdir(exist_ok=True)
    program = programs / "ssh"
    program.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {home.folder}/.ssh/config "$@"\n')
    program.chmod(0o755)
    return {"PATH": f"{programs}:{os.environ['PATH']}"}


def shown(vm: Sshd) -> list[str]:
    return vm.tmux("list-clients", "-F", "#{session_name} #{pane_id}").splitlines()


@needs_terminal
def test_a_terminal_here_is_attached_there_whatever_the_session_is_called(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    vm.pane(agent=None)
    agent = vm.pane()
    name = 'it\'s; $(touch x) `y` "z" %1'
    vm.tmux("rename-session", "-t", "work", name)
    home.pane()
    home.start()
    add(home, "vm1")
    ref = wait_until(lambda: seen(home).get(("vm1", agent)), "the pane")["ref"]
    # From within a tmux of this machine: that one there is another.
    inside = home.tmux_variables("%0") | with_ssh(home)
    with terminals(home) as opened:
        opened.append(Terminal(home, COMMANDS / "agtmux", "attach", ref, env=inside))
        wait_until(lambda: shown(vm), "the client over there")
        assert shown(vm) == [f"{name} {agent}"]
        vm.tmux("detach-client", "-s", f"={name}")
        assert opened[0].ended() == 0, opened[0].text
        log = json.loads(home.run("log", "actions", "--json").stdout)["items"][0]
        assert (log["target"], log["about"]["way"]) == ("vm1", "command")


@needs_terminal
def test_somebody_else_in_the_pane_is_never_shown(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    vm.pane(agent=None)
    agent = vm.pane()
    home.start()
    add(home, "vm1")
    item = wait_until(lambda: seen(home).get(("vm1", agent)), "the pane")
    answer = json.loads(home.run("attach", item["ref"], "--json").stdout)
    assert answer["argv"][:3] == ["ssh", "-t", "vm1"] and len(answer["argv"]) == 4
    vm.tmux("respawn-pane", "-k", "-t", agent, "sleep 3600")
    with terminals(home) as opened:
        opened.append(Terminal(home, *answer["argv"], env=with_ssh(home)))
        assert opened[0].ended() == 1
        assert "can't find pane" in opened[0].text
    assert shown(vm) == []
    done = home.run("attach", f"runtime:{item['runtime_id']}", "--print")
    assert done.returncode == 4 and "E_RUNTIME_STALE" in done.stderr and done.stdout == ""


def test_a_terminal_over_there_can_be_moved_by_its_name(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    vm.pane(agent=None)
    agent = vm.pane()
    home.start()
    add(home, "vm1")
    ref = wait_until(lambda: seen(home).get(("vm1", agent)), "the pane")["ref"]
    with terminals(home) as opened:
        opened.append(Terminal(home, "tmux", "attach-session", "-t", "work:0", env=vm.env | {"TERM": "xterm-256color"}))
        wait_until(lambda: shown(vm), "the client")
        assert shown(vm) != [f"work {agent}"]
        done = home.run("attach", ref, "--client", opened[0].tty)
        assert done.returncode == 0, done.stderr
        assert shown(vm) == [f"work {agent}"]
