"""An agent is found however it was started, and nothing else is taken for one."""

import json
import os
import shlex
import shutil
import signal
import sys
from pathlib import Path

import pytest

from support.home import Home, wait_until

SCRIPT = "import time\nwhile True: time.sleep(60)\n"


@pytest.fixture
def shell(home: Home) -> str:
    """A pane with an interactive shell in it and a daemon that watches."""
    pane = home.pane(agent=None, command="bash --norc --noprofile")
    home.start()
    return pane


def type_in(home: Home, pane: str, line: str) -> None:
    home.tmux("send-keys", "-t", pane, "-l", line)
    home.tmux("send-keys", "-t", pane, "Enter")


def shown(home: Home, pane: str) -> tuple[str, str | None]:
    items = home.ask("GET", "/v1/panes?all=1").json["items"]
    found = [item for item in items if item["identity"]["pane_id"] == pane]
    return (found[0]["agent_type"], found[0]["agent_version"]) if found else ("not seen yet", None)


def becomes(home: Home, pane: str, agent: str, version: str | None = None) -> None:
    wait_until(lambda: shown(home, pane) == (agent, version), f"{pane} to be {agent} {version}")


def leaves_the_prompt(home: Home, pane: str) -> None:
    command = "#{pane_current_command}"
    wait_until(lambda: home.tmux("display-message", "-p", "-t", pane, command).strip() != "bash", "it to run")


def a_package(home: Home, name: str, version: str, command: str) -> Path:
    """As npm lays it out: the command is a link into the package."""
    folder = home.folder / "node_modules" / name
    (folder / "bin").mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"name": name, "version": version}))
    (folder / "bin" / "run.py").write_text(SCRIPT)
    link = home.folder / "bin" / command
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(folder / "bin" / "run.py")
    return link


def a_program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(shutil.which("sleep") or "/bin/sleep", path)
    return path


def test_a_program_with_the_agents_name(home: Home, shell: str):
    type_in(home, shell, f"{a_program(home.folder / 'claude')} 600")
    becomes(home, shell, "claude")


def test_a_program_named_after_its_version(home: Home, shell: str):
    type_in(home, shell, f"{a_program(home.folder / 'claude' / 'versions' / '2.1.197')} 600")
    becomes(home, shell, "claude", "2.1.197")


def test_a_script_of_the_agents_package_behind_a_link(home: Home, shell: str):
    type_in(home, shell, f'"{sys.executable}" {a_package(home, "@openai/codex", "0.166.0", "cdx")}')
    becomes(home, shell, "codex", "0.166.0")


def test_in_shells_within_shells(home: Home, shell: str):
    command = f'"{sys.executable}" {a_package(home, "@google/gemini-cli", "0.61.0", "gmn")}'
    inner = shlex.quote(f"{command}; true")
    type_in(home, shell, f"bash -c {shlex.quote(f'bash -c {inner}; true')}")
    becomes(home, shell, "gemini", "0.61.0")


def test_what_a_launcher_starts_after_a_while(home: Home, shell: str):
    """As npx does: its own name stays in front, and the agent appears below it when it has been fetched."""
    go = home.folder / "go"
    launcher = home.folder / "launch.py"
    command = [sys.executable, str(a_package(home, "@github/copilot", "1.0.102", "cop"))]
    launcher.write_text(
        "import os, subprocess, time\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.05)\n"
        f"subprocess.run({command!r})\n"
    )
    type_in(home, shell, f'"{sys.executable}" {launcher}')
    wait_until(
        lambda: home.tmux("display-message", "-p", "-t", shell, "#{pane_current_command}") != "bash", "it to run"
    )
    assert shown(home, shell)[0] == "none"
    go.touch()
    becomes(home, shell, "copilot", "1.0.102")


def test_a_script_that_becomes_the_agent_after_a_while(home: Home, shell: str):
    """The same process, with another program in it: what was known of it no longer holds."""
    go = home.folder / "go"
    program = a_program(home.folder / "claude" / "versions" / "2.1.197")
    type_in(home, shell, f"sh -c 'while [ ! -e {go} ]; do sleep 0.1; done; exec {program} 600'")
    leaves_the_prompt(home, shell)
    looks = home.health()["uptime_seconds"] + 3
    wait_until(lambda: home.health()["uptime_seconds"] >= looks, "it to be known as what it was")
    go.touch()
    becomes(home, shell, "claude", "2.1.197")


def test_an_agent_in_the_background_or_stopped_is_not_in_the_pane(home: Home, shell: str):
    program = a_program(home.folder / "claude")
    type_in(home, shell, f"{program} 600")
    becomes(home, shell, "claude")
    before = home.panes()[shell]["runtime_id"]
    home.tmux("send-keys", "-t", shell, "C-z")
    becomes(home, shell, "none")
    type_in(home, shell, "fg")
    becomes(home, shell, "claude")
    assert home.panes()[shell]["runtime_id"] != before, "it was away: what was known of it may no longer hold"


def test_an_agent_started_anew_is_another_runtime(home: Home, shell: str):
    program = a_program(home.folder / "claude")
    type_in(home, shell, f"while :; do {program} 600; done")
    becomes(home, shell, "claude")
    before = home.panes()[shell]["runtime_id"]
    (pid,) = home.query("SELECT pid FROM runtimes WHERE runtime_id = ?", before)[0]
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: home.panes().get(shell, {}).get("runtime_id") not in (None, before), "a new runtime")
    assert shown(home, shell)[0] == "claude"


@pytest.mark.parametrize(
    "line",
    [
        "sleep 600 # claude",
        "grep claude /dev/zero",
        f"\"{sys.executable}\" -c 'import time; time.sleep(600)' codex",
        "tail -f /dev/null",
    ],
)
def test_what_only_mentions_an_agent_is_none(home: Home, shell: str, line: str):
    type_in(home, shell, line)
    leaves_the_prompt(home, shell)
    marker = home.pane(agent=None, command=f"{a_program(home.folder / 'claude')} 600")
    becomes(home, marker, "claude")
    assert shown(home, shell) == ("none", None)
