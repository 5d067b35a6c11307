"""`agtmux doctor` tells the truth of agents and their hooks: each thing is made so, and its mend mends it."""

import fcntl
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from support.doctor import Examined, carry_out, examine
from support.home import COMMANDS, Home, event, wait_until
from support.sshd import Sshd
from support.targets import add

OUTSIDE = {"TMUX": "", "TMUX_PANE": ""}


def settings(home: Home) -> Path:
    path = home.folder / ".claude" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    return path


def installed(home: Home, command: str, package: str, version: str) -> dict[str, str]:
    """A PATH on which the agent is first, in that version, as npm lays it out."""
    folder = home.folder / "node_modules" / package
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"name": package, "version": version}))
    (folder / "cli.js").touch(mode=0o755)
    (home.folder / "bin").mkdir(exist_ok=True)
    (home.folder / "bin" / command).symlink_to(folder / "cli.js")
    return {"PATH": f"{home.folder / 'bin'}:{home.env['PATH']}"}


def running(home: Home, *place: str) -> str:
    """A pane with a program of that path in the home."""
    program = home.folder.joinpath(*place)
    program.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    return home.pane(None, f"{program} 3600")


def told_hook(home: Home, env: dict[str, str]) -> None:
    """An agent runs its hook; where nobody listens, a busy machine may take several to have one kept."""
    words = [COMMANDS / "agtmux-hook", "claude", "UserPromptSubmit", '{"prompt": "hello"}']
    subprocess.run(words, env=home.env | env, check=True, stdin=subprocess.DEVNULL, timeout=20)


# Hooks


def test_hooks_that_are_not_there_and_then_are(home: Home) -> None:
    settings(home).write_text("{}")
    path = installed(home, "claude", "@anthropic-ai/claude-code", "2.1.197")
    home.start(env=path)
    missing = examine(home).find("hooks_missing", agent="claude")
    assert (missing["level"], missing["mend"]) == ("note", "agtmux hooks install --agent claude")
    assert str(settings(home)) in missing["message"]
    carry_out(home, missing)
    found = examine(home)
    assert found.level("hooks_installed", agent="claude") == "ok"
    assert not {item["code"] for item in found.items if item["agent"] == "codex"}
    # Without a daemon the same is told, as far as this shell knows the same agents.
    home.run("down")
    alone = examine(home, env=path)
    assert (alone.status, alone.level("hooks_installed", agent="claude")) == (3, "ok")


def test_the_bridge_that_is_not_there_and_then_is(home: Home) -> None:
    (home.folder / ".claude").mkdir()
    daemon = home.start()
    absent = examine(home).find("bridge_absent", agent="claude")
    assert (absent["level"], absent["mend"]) == ("note", "agtmux mcp register --agent claude")
    home.run(*absent["mend"].split()[1:])
    assert examine(home).level("bridge_registered", agent="claude") == "ok"
    daemon.kill()
    daemon.communicate()
    # As it was left, and after that nobody has anything to say.
    assert examine(home).level("bridge_left", agent="claude") == "warning"
    home.end(home.start())
    assert not [code for code in examine(home).codes if code.startswith("bridge_")]


def test_hooks_that_are_incomplete_out_of_date_or_too_many(home: Home) -> None:
    settings(home)
    home.start(env=installed(home, "claude", "@anthropic-ai/claude-code", "2.1.197"))
    home.run("hooks", "install", "--agent", "claude")
    whole = settings(home).read_text()
    assert examine(home).level("hooks_installed", agent="claude") == "ok"
    content = json.loads(whole)
    del content["hooks"]["Stop"], content["hooks"]["PostToolUse"]
    for text, code, named in (
        (json.dumps(content), "hooks_incomplete", "Stop"),
        (whole.replace(str(COMMANDS), "/old/place"), "hooks_stale", "SessionStart"),
        (whole.replace('"Stop": [', '"Gone": [', 1).replace(" Stop", " Gone", 1), "hooks_stale", "Gone"),
    ):
        settings(home).write_text(text)
        item = examine(home).find(code, agent="claude")
        assert item["level"] == "warning" and named in item["message"], item
        carry_out(home, item)
        assert examine(home).level("hooks_installed", agent="claude") == "ok"


def test_hooks_that_are_switched_off(home: Home) -> None:
    settings(home).write_text('{"disableAllHooks": true}')
    home.start()
    item = examine(home).find("hooks_off", agent="claude")
    assert item["level"] == "warning" and "disableAllHooks" in item["mend"] and str(settings(home)) in item["mend"]
    settings(home).write_text('{"disableAllHooks": false}')
    assert "hooks_off" not in examine(home).codes


def test_hooks_that_the_version_may_not_know(home: Home) -> None:
    settings(home)
    home.start()
    item = examine(home).find("hooks_left_out", agent="claude")
    assert item["level"] == "note" and "PermissionRequest" in item["message"]


def test_a_file_of_hooks_that_may_be_ignored(home: Home) -> None:
    folder = home.folder / ".copilot" / "hooks"
    folder.mkdir(parents=True)
    (folder / "agtmux.json").write_text("{}")
    home.start()
    assert '"version"' in examine(home).find("hooks_ignored", agent="copilot")["mend"]


def test_settings_that_cannot_be_read(home: Home) -> None:
    settings(home).write_text("{ not json")
    home.start()
    found = examine(home)
    item = found.find("hooks_unreadable", agent="claude")
    assert (found.status, item["level"]) == (1, "problem")
    assert str(settings(home)) in item["message"] and "line 1" in item["message"]
    assert settings(home).read_text() == "{ not json"


def test_settings_of_which_not_even_the_place_is_known(home: Home) -> None:
    home.start(env={"CLAUDE_CONFIG_DIR": "relative"})
    found = examine(home)
    assert (found.status, found.level("hooks_unreadable")) == (1, "problem")


def test_events_that_came_from_nowhere_that_is_watched(home: Home) -> None:
    home.start()
    assert "events_homeless" not in examine(home).codes

    def heard() -> bool:
        told_hook(home, OUTSIDE)
        return home.health()["events"].get("dropped_unbound", 0) > 0

    wait_until(heard, "a hook to be heard")
    item = examine(home).find("events_homeless")
    assert item["level"] == "note" and "agtmux target add" in item["mend"]


def test_events_that_are_wrong(home: Home) -> None:
    home.start()
    home.ask("POST", "/v1/events", b"{")
    home.ask("GET", "/v1/nonsense")
    item = examine(home).find("events_refused")
    assert item["level"] == "note" and "1 E_EVENT_INVALID" in item["message"] and "NOT_FOUND" not in item["message"]


def test_what_hooks_had_to_keep(home: Home) -> None:
    spool = home.state / "spool" / "hook.jsonl"

    def kept() -> bool:
        told_hook(home, OUTSIDE)
        return spool.exists() and spool.stat().st_size > 0

    wait_until(kept, "a hook to keep its event")
    item = examine(home).find("spool_waiting")
    assert (item["level"], item["mend"]) == ("note", "agtmux up")
    carry_out(home, item)
    assert not {"spool_waiting", "spool_stuck"} & examine(home).codes


def test_what_hooks_had_to_keep_and_nobody_takes(home: Home) -> None:
    home.start()
    spool = home.state / "spool" / "hook.jsonl"
    spool.parent.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(spool, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, b"{}\n")
        assert "spool_stuck" not in examine(home).codes
        os.utime(spool, (1, 1))
        assert examine(home).level("spool_stuck") == "warning"
    finally:
        os.close(descriptor)


def test_hooks_of_another_machine_that_are_not_heard(home: Home, vms: Callable[..., list[Sshd]]) -> None:
    (vm,) = vms(1)
    # An agtmux of that machine's own.
    door = vm.home / ".local" / "state" / "agtmux" / "agtmuxd.sock"
    door.parent.mkdir(mode=0o700, parents=True)
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(str(door))
        theirs.listen()
        home.start()
        add(home, "vm1")
        found = found_when(home, "hooks_unheard", target="vm1")
        item = found.find("hooks_unheard", target="vm1")
        assert item["level"] == "warning" and str(door) in item["message"] and "agtmux down" in item["mend"]
        assert found.find("target_empty", target="vm1")["message"].startswith("ssh, tmux ")
    door.unlink()
    wait_until(lambda: "hooks_unheard" not in examine(home).codes, "the hooks to be heard")


# Agents


def found_when(home: Home, code: str, **fields: str) -> Examined:
    def look() -> Examined | None:
        found = examine(home)
        has = any(item["code"] == code and all(item[key] == fields[key] for key in fields) for item in found.items)
        return found if has else None

    return wait_until(look, f"{code} {fields}")


def test_each_version_and_whether_its_screens_are_known(home: Home) -> None:
    running(home, "claude", "versions", "2.1.197")
    running(home, "other", "claude", "versions", "2.1.197")
    newer = running(home, "claude", "versions", "99.1.0")
    env = installed(home, "codex", "@openai/codex", "0.166.0")
    home.start(env=env)
    found = found_when(home, "version_unverified", agent="claude")
    assert found.find("version_verified", agent="claude")["message"].startswith("2.1.197, in 2 panes: ")
    item = found.find("version_unverified", agent="claude")
    assert item["level"] == "note" and item["message"].startswith("99.1.0, in 1 pane: ")
    assert "confidence is lowered" in item["message"]
    assert found.find("version_verified", agent="codex")["message"].startswith("0.166.0, installed: ")
    # What it says to try can be tried.
    command, _, _ = item["mend"].partition(";")
    assert f"-t {newer} " in command
    carry_out(home, item | {"mend": command})


def test_a_version_that_cannot_be_told_and_a_screen_that_cannot_be_read(home: Home) -> None:
    running(home, "bin", "codex")
    running(home, "bin", "parrot")
    folder = home.folder / "config" / "agents"
    folder.mkdir(parents=True)
    (folder / "parrot.toml").write_text('agent_type = "parrot"\nname = "Parrot"\nprocess.commands = ["parrot"]\n')
    home.start()
    found = found_when(home, "screens_unread", agent="parrot")
    unknown = found.find("version_unknown", agent="codex")
    assert unknown["level"] == "note"
    carry_out(home, unknown)


def test_panes_of_which_nothing_is_known(home: Home) -> None:
    panes = [home.pane("cursor") for _ in range(7)]
    home.start()
    wait_until(lambda: all(home.panes().get(pane, {}).get("agent_type") == "cursor" for pane in panes), "the panes")
    found = examine(home)
    items = [item for item in found.items if item["code"] == "state_unknown"]
    assert len(items) == 6 and {item["level"] for item in items} == {"warning"}
    # Before its screen was looked at, or after it.
    assert any(why in items[0]["message"] for why in ("no_signal", "unread_screen")) and items[0]["target"] == "host"
    assert "2 panes more" in items[-1]["message"]
    for item in items:
        carry_out(home, item)
    for pane in panes:
        home.ask("POST", "/v1/events", event(pane))
    assert "state_unknown" not in examine(home).codes


def test_a_target_is_told_without_the_agents_of_others(home: Home) -> None:
    home.pane("claude")
    home.tmux("-L", "lab", "new-session", "-d", "sleep 3600")
    try:
        home.tmux("-L", "lab", "set-option", "-p", "@agtmux_agent", "codex")
        home.start(env=installed(home, "gemini", "@google/gemini-cli", "0.61.0"))
        home.run("target", "add", "lab", "--tmux-socket", "lab")
        found_when(home, "version_unknown", agent="codex")
        assert {item["agent"] for item in examine(home).items} == {None, "claude", "codex", "gemini"}
        assert {item["agent"] for item in examine(home, "--target", "lab").items} == {None, "codex"}
        assert {item["agent"] for item in examine(home, "--target", "host").items} == {None, "claude", "gemini"}
    finally:
        home.tmux("-L", "lab", "kill-server")


def test_where_all_is_well_that_is_all_there_is_to_say(home: Home) -> None:
    settings(home)
    pane = running(home, "claude", "versions", "2.1.197")
    home.start()
    wait_until(lambda: home.panes().get(pane, {}).get("agent_version") == "2.1.197", "the agent")
    home.run("hooks", "install", "--agent", "claude")
    home.run("mcp", "register", "--agent", "claude")
    home.ask("POST", "/v1/events", event(pane))
    done = home.run("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "All is well.", done.stdout
    assert "→" not in done.stdout and "  ✓ claude   2.1.197, in 1 pane: its screens are known\n" in done.stdout


def test_nobody_at_all(home: Home) -> None:
    home.pane(None)
    home.start()
    assert examine(home).level("agents_none") == "note"
    pane = home.pane("claude")
    wait_until(lambda: home.panes().get(pane, {}).get("agent_type") == "claude", "the agent")
    assert "agents_none" not in examine(home).codes
