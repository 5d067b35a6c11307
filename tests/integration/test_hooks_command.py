"""`agtmux hooks`: agents report what they do, and their settings are theirs again afterwards, to the byte."""

import json
import re
import subprocess
from pathlib import Path

from support.home import COMMANDS, Home, wait_until

SETTINGS = """{
   // my own
   "model": "opus",
   "hooks": {
      "Stop": [ {"hooks": [{"type": "command", "command": "say done"}]} ],
   },
}
"""


def settings(home: Home) -> Path:
    path = home.folder / ".claude" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    return path


def installed(home: Home, version: str) -> str:
    """A PATH on which the agent is first, in that version."""
    package = home.folder / "node_modules" / "claude-code"
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": "@anthropic-ai/claude-code", "version": version}))
    (package / "cli.js").touch(mode=0o755)
    folder = home.folder / "bin"
    folder.mkdir()
    (folder / "claude").symlink_to(package / "cli.js")
    return f"{folder}:{home.env['PATH']}"


def test_what_is_installed_works_and_goes_without_a_trace(home: Home) -> None:
    settings(home).write_text(SETTINGS)
    path = installed(home, "2.1.197")
    before = sorted(path for path in home.folder.rglob("*") if "state" not in path.parts)
    home.start(env={"PATH": path})
    done = home.run("hooks", "install")
    assert done.returncode == 0, done.stderr
    assert "claude: added" in done.stdout and "codex" not in done.stdout
    text = settings(home).read_text()
    assert '"command": "say done"' in text and "// my own" in text
    assert "missing" not in home.run("hooks", "status", "--agent", "claude").stdout
    # What the file says to run, run as the agent would.
    pane = home.pane()
    (command,) = re.findall(r'"command": "([^"]*agtmux-hook[^"]* UserPromptSubmit[^"]*)"', text)
    payload = json.dumps({"prompt": "hello", "session_id": "1"})
    env = home.env | home.tmux_variables(pane)

    def is_told() -> bool:
        # A busy machine may take several to have one kept: it waits for nothing.
        subprocess.run(["sh", "-c", command], input=payload, env=env, text=True, check=True)
        return home.state_of(pane) == "running"

    wait_until(is_told, "what the hook told")
    assert home.run("hooks", "uninstall").returncode == 0
    assert settings(home).read_text() == SETTINGS
    home.tmux("kill-server")
    after = sorted(path for path in home.folder.rglob("*") if "state" not in path.parts)
    assert [path for path in after if "tmux-" not in str(path)] == before


def test_a_file_that_cannot_be_read_is_left_alone_and_named(home: Home) -> None:
    settings(home).write_text("{ not json")
    home.start()
    done = home.run("hooks", "install", "--agent", "claude")
    assert done.returncode == 2
    assert "settings.json" in done.stderr and "line 1" in done.stderr
    assert settings(home).read_text() == "{ not json"
    answer = json.loads(home.run("hooks", "install", "--agent", "claude", "--json").stdout)
    assert answer["items"][0]["error"]["code"] == "E_CONFIG"


def test_an_agent_that_nobody_uses_here_gets_no_files(home: Home) -> None:
    home.start()
    assert home.run("hooks", "install").stdout.strip().startswith("no agent that agtmux knows")
    assert not [path for path in home.folder.iterdir() if path.name.startswith(".")]
    assert (COMMANDS / "agtmux-hook").exists()


def test_an_agent_on_the_callers_path_counts(home: Home) -> None:
    settings(home)
    home.start(env={"PATH": "/usr/bin:/bin"})
    # As where the daemon was started at login and the agent lies where only a shell looks.
    few = home.run("hooks", "install", env={"PATH": f"{COMMANDS}:/usr/bin:/bin"}).stdout
    assert re.search(r"claude: added \d+ of \d+ ", few), few
    assert "no Claude Code was found" in few
    assert "→ start it in a watched pane, then: agtmux hooks install --agent claude" in few
    theirs = installed(home, "2.1.325")
    many = json.loads(home.run("hooks", "install", "--json", env={"PATH": theirs}).stdout)["items"][0]
    assert (many["version"], many["left_out"]) == ("2.1.325", []) and many["added"]
    # Whoever has another PATH takes nothing of it away, and is told of nothing amiss.
    for action in ("install", "status"):
        again = home.run("hooks", action).stdout
        assert re.fullmatch(r"claude: there \d+ \(.*settings.json\)\n", again), again
    doctor = json.loads(home.run("doctor", "--json").stdout)["items"]
    assert next(item["code"] for item in doctor if item["agent"] == "claude") == "hooks_installed"
