"""Who is taken for the user: a person at a terminal of their own, and nothing that an agent opens or lets go of."""

from __future__ import annotations

import json
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.home import COMMANDS, Home, wait_until
from support.parrots import Parrots, git, repository
from support.puppets import Puppet
from support.sshd import Sshd, needs_terminal
from support.terminal import Terminal, terminals

# Quoted, as the checkout may lie in a path with spaces; not with single quotes, which commands have around them.
AGTMUX = f'"{COMMANDS}/agtmux"'


class Desk:
    """An agent, another that is written to, a shell of the user's, and the user's terminal, which shows it."""

    def __init__(self, home: Home, opened: list[Terminal]) -> None:
        self.home = home
        self.shell = home.pane(agent=None, command="bash --norc")
        self.agent, self.receiver = (Puppet(home, name) for name in ("agent", "receiver"))
        self.opened = time.time()
        home.start()
        for puppet in (self.agent, self.receiver):
            puppet.wait_for("idle")
        wait_until(lambda: self.shell in home.panes(), "the shell")
        self.terminal = Terminal(home, "tmux", "attach-session", "-t", "work")
        opened.append(self.terminal)
        wait_until(lambda: home.tmux("list-clients", "-F", "#{client_pid}"), "the terminal")

    def show(self, pane: str) -> None:
        self.home.tmux("select-window", "-t", pane, ";", "select-pane", "-t", pane)

    def leave(self) -> None:
        self.home.tmux("detach-client", "-s", "work")
        wait_until(lambda: not self.home.tmux("list-clients"), "the end of the terminal")

    def press(self, keys: str) -> None:
        """Once the panes are old enough that tmux's whole seconds can tell."""
        wait_until(lambda: time.time() > self.opened + 2.5, "two seconds")
        self.terminal.type(keys)

    def send(self, text: str) -> str:
        name = f"claude-{self.receiver.pane.removeprefix('%')}"
        return f"env {self.variables()} {AGTMUX} message send {name} {text}"

    def variables(self) -> str:
        """Of this home's daemon."""
        names = ("HOME", "AGTMUX_STATE_DIR", "AGTMUX_CONFIG_DIR")
        return " ".join(f"{name}={shlex.quote(self.home.env[name])}" for name in names)

    def sender(self, text: str) -> str:
        def found() -> list[str]:
            items = self.home.ask("GET", "/v1/messages").json["items"]
            return [item["from_agent"] for item in items if item["content"] == text]

        return wait_until(found, f"the message {text}")[0]


@pytest.fixture
def desk(home: Home) -> Iterator[Desk]:
    with terminals(home) as opened:
        yield Desk(home, opened)


def test_what_is_typed_into_a_shell_that_a_terminal_shows_is_the_users(desk: Desk) -> None:
    desk.show(desk.shell)
    desk.press(f"{desk.send('typed')}\r")
    assert desk.sender("typed") == "user"


def test_what_is_sent_into_a_shell_that_no_terminal_shows_is_not(desk: Desk) -> None:
    desk.show(desk.agent.pane)
    desk.press("x")
    desk.home.tmux("send-keys", "-t", desk.shell, desk.send("unseen"), "Enter")
    assert desk.sender("unseen") == "outside"
    # Nor where nobody is at the keyboard.
    desk.show(desk.shell)
    desk.leave()
    desk.home.tmux("send-keys", "-t", desk.shell, desk.send("alone"), "Enter")
    assert desk.sender("alone") == "outside"


OPENED = {
    "a pane": "tmux split-window -t PANE 'SEND'",
    "a pane in the background": "tmux split-window -d -t PANE 'SEND'",
    "a window": "tmux new-window 'SEND'",
    "a window with a shell": "tmux new-window -n other 'bash --norc'; tmux send-keys -t other 'SEND' Enter",
    "a session": "tmux new-session -d 'SEND'",
    "another server": "tmux -L other new-session -d 'SEND'",
    "a popup": "tmux display-popup -E 'SEND'",
    "what it lets go of": "setsid -f SEND",
    "what is let go of twice": "(setsid sh -c 'SEND' &)",
    "a terminal of its own": "setsid -f script -qc 'SEND' /dev/null < /dev/null",
    "a terminal with a shell": "echo 'SEND; exit' > TYPED; setsid -f script -q /dev/null < TYPED",
    "the tmux server": "tmux run-shell -b 'SEND'",
}

IN_A_PANE = ("a pane", "a pane in the background", "a window", "a window with a shell", "a session")


@pytest.mark.parametrize("way", OPENED)
def test_what_an_agent_opens_or_lets_go_of_is_never_the_users(desk: Desk, way: str) -> None:
    """The user has just pressed a key in the agent's own pane."""
    if " script " in OPENED[way] and shutil.which("script") is None:
        pytest.skip("script is not here")
    go, script = desk.home.folder / "go", desk.home.folder / "sly.sh"
    script.write_text(f"#!/bin/sh\nuntil [ -e {go} ]; do sleep 0.1; done\n{desk.send('sly')}\n")
    script.chmod(0o755)
    before = desk.home.panes()
    desk.show(desk.agent.pane)
    desk.press("x")
    command = OPENED[way].replace("PANE", desk.agent.pane).replace("TYPED", str(desk.home.folder / "typed"))
    desk.agent.tell(f"run 70 {command.replace('SEND', str(script))}")
    if way in IN_A_PANE:
        # Before that it is in no pane that is known.
        wait_until(lambda: desk.home.panes().keys() - before.keys(), "the pane that it opens")
    go.touch()
    try:
        assert desk.sender("sly") in ("outside", f"claude-{desk.agent.pane.removeprefix('%')}")
    finally:
        if "-L other" in command:
            desk.agent.run("sh", "-c", "tmux -L other kill-server || true")


def test_a_terminal_that_an_agent_attaches_shows_nothing(desk: Desk) -> None:
    desk.leave()
    wait_until(lambda: time.time() > desk.opened + 2.5, "two seconds")
    attach = "TMUX= script -qc 'tmux attach-session -t work' /dev/null"
    desk.show(desk.shell)
    if shutil.which("script") is None:
        pytest.skip("script is not here")
    typed = f"(sleep 1; echo {shlex.quote(desk.send('attached'))}; sleep 5) | {attach} > /dev/null"
    desk.agent.tell(f"run 50 {typed}")
    assert desk.sender("attached") == "outside"


@needs_terminal
def test_a_command_at_a_login_is_the_users(desk: Desk, vms: Callable[..., list[Sshd]]) -> None:
    [vm] = vms(1)
    with terminals(desk.home) as opened:
        config = desk.home.folder / ".ssh" / "config"
        login = Terminal(desk.home, "ssh", "-F", config, "-tt", vm.name)
        opened.append(login)
        login.type(f"{desk.send('here')}\r")
        assert desk.sender("here") == "user"
        login.type(f"setsid -f {desk.send('gone')}\r")
        assert desk.sender("gone") == "outside"


class Outsider:
    """Parrots to launch, and a daemon that trusts nobody who is not known."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.parrots = Parrots(home)
        home.configure("[launch]\nmost_per_agent = 2\nper_minute = 100\n")
        self.project = repository(home.folder / "parcels")
        self.boss = Puppet(home, "boss")
        home.start()
        self.boss.wait_for("idle")

    def let_go(self, *words: str) -> str:
        """What a command says that the agent starts and lets go of."""
        out = self.home.folder / f"let-go-{time.monotonic_ns()}"
        command = f"cd {self.project}; {AGTMUX} {shlex.join(words)} > {out} 2>&1; echo over >> {out}"
        self.boss.run("sh", "-c", f"setsid -f sh -c {shlex.quote(command)}")
        wait_until(lambda: out.exists() and out.read_text().endswith("over\n"), f"{words}")
        return out.read_text()


def test_what_an_agent_lets_go_of_has_an_agents_limits(home: Home) -> None:
    outsider = Outsider(home)
    first: dict[str, Any] = json.loads(outsider.let_go("launch", "parrot", "--json").removesuffix("over\n"))
    assert first["about"]["by"] == "outside"
    assert "is up" in outsider.let_go("launch", "parrot", "--branch", "labels")
    assert "E_LIMIT_PANES" in outsider.let_go("launch", "parrot")
    # It stops what was launched that way, and nothing else.
    for words in (("stop", outsider.boss.pane, "--yes"), ("launch", "parrot", "--start-server")):
        said = outsider.let_go(*words)
        assert "E_FORBIDDEN" in said and "not known to be the user" in said and "trust_outside" in said, said
    said = outsider.let_go("stop", first["pane_id"], "--yes", "--remove-worktree")
    assert "E_FORBIDDEN" in said, said
    assert "E_FORBIDDEN" in outsider.let_go("message", "send", outsider.boss.pane, "end", "--type", "shutdown")
    assert outsider.boss.pane in home.panes()
    assert "ended" in outsider.let_go("stop", first["pane_id"], "--yes")


def test_it_brings_up_no_team_either(home: Home) -> None:
    outsider = Outsider(home)
    file = outsider.project / "team.toml"
    file.write_text('name = "review"\n\n[roles.lead]\nagent = "parrot"\n')
    said = outsider.let_go("team", "up", str(file))
    assert "E_FORBIDDEN" in said and "no agent's" in said, said


def test_an_agents_worktree_runs_nothing_of_the_repository_and_says_what_is_unfiltered(home: Home) -> None:
    outsider = Outsider(home)
    trace = home.folder / "sprung"
    trap = home.folder / "trap.sh"
    trap.write_text(f"#!/bin/sh\necho $0 >> {trace}\ncat\n")
    trap.chmod(0o755)
    project = outsider.project
    (project / ".gitattributes").write_text("*.py filter=odd\n")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "Attributes")
    git(project, "config", "filter.odd.smudge", str(trap))
    (project / ".git" / "hooks").mkdir(exist_ok=True)
    shutil.copy(trap, project / ".git" / "hooks" / "post-checkout")
    told = json.loads(outsider.let_go("launch", "parrot", "--branch", "sly", "--json").removesuffix("over\n"))
    assert told["unfiltered_files"] == 1 and told["is_new_worktree"] and not trace.exists()
    assert (Path(told["worktree"]) / "label.py").read_text() == (project / "label.py").read_text()
    said = outsider.let_go("stop", told["pane_id"], "--yes")
    assert "ended" in said
    said = outsider.let_go("launch", "parrot", "--branch", "sly2")
    assert "1 files are as they are committed" in said, said
    assert not trace.exists()
