"""`agtmux mcp`, `up` and `down`: agents know the bridge for as long as the daemon is there, and not longer."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from support.histories import with_history
from support.home import COMMANDS, Home, home_in, wait_until

CLAUDE = '{\n  // mine\n  "numStartups": 7\n}\n'
CODEX = 'model = "gpt-5"\n\n[tui]\nnotifications = true\n'


@pytest.fixture
def user(home: Home) -> Home:
    """Who uses two agents, and has no others in the PATH."""
    home.env["PATH"] = f"{COMMANDS}:/usr/bin:/bin"
    (home.folder / ".claude").mkdir()
    (home.folder / ".claude.json").write_text(CLAUDE)
    (home.folder / ".codex").mkdir()
    (home.folder / ".codex" / "config.toml").write_text(CODEX)
    return home


def texts(home: Home) -> tuple[str, str]:
    return (home.folder / ".claude.json").read_text(), (home.folder / ".codex" / "config.toml").read_text()


def status(home: Home) -> dict[str, str]:
    answer = json.loads(home.run("mcp", "status", "--json").stdout)
    return {item["agent"]: item.get("entry", "error") for item in answer["items"]}


def endpoint(home: Home) -> Any:
    path = home.state / "mcp-state.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return json.loads(path.read_text())


def test_up_registers_and_down_leaves_nothing(user: Home) -> None:
    """gwt FR-005, FR-017, FR-018."""
    done = user.run("up", "--headless", "--register")
    assert done.returncode == 0 and "can use the bridge" in done.stderr, done.stderr
    assert status(user) == {"claude": "registered", "codex": "registered"}
    entry = tomllib.loads(texts(user)[1])["mcp_servers"]["agtmux"]
    assert entry == {
        "command": str(COMMANDS / "agtmux-mcp"),
        "args": ["--socket", str(user.socket)],
        "env_vars": ["TMUX", "TMUX_PANE"],
    }
    assert endpoint(user)["agents"] == ["claude", "codex"]
    assert (endpoint(user)["pid"], endpoint(user)["socket"]) == (user.lock_holder(), str(user.socket))
    # Again, and nothing is news.
    assert "bridge" not in user.run("up", "--headless").stderr
    assert user.run("down").returncode == 0
    assert texts(user) == (CLAUDE, CODEX)
    assert not (user.state / "mcp-state.json").exists()


def test_what_is_registered_is_what_the_agent_can_start(user: Home) -> None:
    """gwt FR-003, FR-004, FR-006: with an environment of nothing but a PATH, as some agents give."""
    user.start()
    assert user.run("mcp", "register", "--agent", "codex").returncode == 0
    entry = tomllib.loads(texts(user)[1])["mcp_servers"]["agtmux"]
    greeting = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}}
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_agents", "arguments": {}}},
    ]
    done = subprocess.run(
        [entry["command"], *entry["args"]],
        input="".join(json.dumps(each) + "\n" for each in asked),
        env={"PATH": "/usr/bin:/bin"},
        text=True,
        capture_output=True,
        timeout=20,
    )
    # Only a daemon knows that there is no agent.
    answers = {each["id"]: each["result"] for each in map(json.loads, done.stdout.splitlines())}
    assert answers[2]["structuredContent"]["agents"] == [], done
    assert texts(user)[0] == CLAUDE


def test_a_crash_is_cleared_up_and_made_good_by_the_next_daemon(user: Home) -> None:
    """gwt FR-019."""
    user.run("up", "--headless", "--register")
    (pid,) = [user.lock_holder()]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: user.lock_holder() is None, "its end")
    assert "agtmux-mcp" in texts(user)[0]
    daemon = user.start()
    assert status(user) == {"claude": "registered", "codex": "registered"}
    user.end(daemon)
    assert texts(user) == (CLAUDE, CODEX)
    # Somebody who does not want it any more gets rid of what a crash has left.
    user.run("up", "--headless", "--register")
    (pid,) = [user.lock_holder()]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: user.lock_holder() is None, "its end")
    user.configure("[mcp]\nregister = false\n")
    user.start()
    assert texts(user) == (CLAUDE, CODEX)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_file_that_has_grown_large_since_is_left_as_it_was_too(user: Home, is_killed: bool) -> None:
    file = user.folder / ".claude.json"
    file.write_text('{\n  "numStartups": 7\n}')
    user.run("up", "--headless", "--register")
    # As the agent does it, turn by turn.
    grown = json.loads(with_history(5_000_000)) | json.loads(file.read_text())
    file.write_text(json.dumps(grown, indent=2))
    assert status(user)["claude"] == "registered"
    if is_killed:
        pid = user.lock_holder()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: user.lock_holder() is None, "its end")
    assert user.run("down").returncode == 0
    del grown["mcpServers"]
    assert file.read_text() == json.dumps(grown, indent=2)


def test_down_takes_back_what_a_daemon_that_was_killed_has_left(user: Home) -> None:
    user.run("up", "--headless", "--register")
    pid = user.lock_holder()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: user.lock_holder() is None, "its end")
    assert "agtmux-mcp" in texts(user)[0]
    done = user.run("down")
    assert done.returncode == 0 and "taken out" in done.stdout, done
    assert texts(user) == (CLAUDE, CODEX)
    assert user.lock_holder() is None, "nobody was started for it"
    # And the next daemon does not bring it back by itself.
    user.start()
    assert texts(user) == (CLAUDE, CODEX)


def test_settings_may_forbid_it(user: Home) -> None:
    user.configure("[mcp]\nregister = false\n")
    assert "bridge" not in user.run("up", "--headless").stderr
    assert texts(user) == (CLAUDE, CODEX)
    # Unless somebody says so.
    assert "claude: registered now" in user.run("mcp", "register", "--agent", "claude").stdout
    assert "claude: not registered now" in user.run("mcp", "unregister").stdout
    assert texts(user) == (CLAUDE, CODEX)
    # Which is taken back when the app is left, too.
    user.run("mcp", "register", "--agent", "claude")
    user.ask("POST", "/v1/mcp", {"action": "unregister", "automatic": True})
    assert texts(user) == (CLAUDE, CODEX)
    user.run("down")


def test_an_agent_that_was_taken_out_by_name_is_told_again_only_by_name(user: Home) -> None:
    user.run("up", "--headless", "--register")
    assert "codex: not registered now" in user.run("mcp", "unregister", "--agent", "codex").stdout
    assert "bridge" not in user.run("up", "--headless").stderr
    user.run("down")
    # Through a restart, and a crash.
    user.run("up", "--headless")
    assert status(user) == {"claude": "registered", "codex": "absent"}
    pid = user.lock_holder()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: user.lock_holder() is None, "its end")
    user.run("up", "--headless")
    assert status(user) == {"claude": "registered", "codex": "absent"}
    user.run("mcp", "register", "--agent", "codex")
    user.run("down")
    user.run("up", "--headless")
    assert status(user) == {"claude": "registered", "codex": "registered"}
    # Without a name it is for all, and is remembered.
    user.run("mcp", "unregister")
    user.run("down")
    assert texts(user) == (CLAUDE, CODEX)
    user.run("up", "--headless")
    assert texts(user) == (CLAUDE, CODEX)
    user.run("mcp", "register")
    assert status(user) == {"claude": "registered", "codex": "registered"}
    user.run("down")


def test_a_daemon_that_nobody_asked_to_register_does_not(user: Home) -> None:
    user.run("list", "panes")
    assert texts(user) == (CLAUDE, CODEX)
    assert status(user) == {"claude": "absent", "codex": "absent"}


def test_a_file_that_cannot_be_read_keeps_nobody_from_coming_up(user: Home) -> None:
    (user.folder / ".claude.json").write_text("{ not")
    done = user.run("up", "--headless", "--register")
    assert done.returncode == 0 and ".claude.json" in done.stderr and "line 1" in done.stderr
    assert status(user) == {"claude": "error", "codex": "registered"}
    done = user.run("mcp", "register")
    assert done.returncode == 2 and "codex: registered" in done.stdout
    user.run("down")
    assert texts(user) == ("{ not", CODEX)


def test_without_agents_and_a_decision_status_says_both(home: Home) -> None:
    done = home.run("mcp", "status")
    assert done.stdout.splitlines() == [
        "no agent that agtmux knows has settings or a program here; name one with --agent",
        "`agtmux up` asks whether to add the bridge to your agents' settings; you have not decided yet",
    ]


def test_one_that_was_registered_by_name_before_its_first_start_is_told_of(home: Home) -> None:
    home.env["PATH"] = f"{COMMANDS}:/usr/bin:/bin"
    home.start()
    assert status(home) == {}
    assert home.run("mcp", "register", "--agent", "claude").returncode == 0
    assert not (home.folder / ".claude").exists()
    assert status(home) == {"claude": "registered"}


def test_two_agtmux_of_one_user_do_not_fight(user: Home, tmp_path: Path) -> None:
    user.run("up", "--headless", "--register")
    before = texts(user)
    with home_in(user.folder) as other:
        other.state = user.folder / "other"
        other.socket, other.lock = other.state / "agtmuxd.sock", other.state / "agtmuxd.lock"
        other.env |= {"AGTMUX_STATE_DIR": str(other.state), "PATH": user.env["PATH"]}
        done = other.run("up", "--headless", "--register")
        assert done.returncode == 0 and f"answers on {user.socket}" in done.stderr
        assert status(other) == {"claude": "other_instance", "codex": "other_instance"}
        assert other.run("down").returncode == 0
        assert texts(user) == before
        # The first one is gone without a word: what it left is the second one's to take.
        pid = user.lock_holder()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: user.lock_holder() is None, "its end")
        other.run("up", "--headless", "--register")
        assert status(other) == {"claude": "registered", "codex": "registered"}
        other.run("down")
        assert texts(user) == (CLAUDE, CODEX)


def test_a_bridge_that_finds_no_daemon_takes_its_registration_back(user: Home) -> None:
    """gwt FR-006, FR-020: what the bridge runs when all its tries were in vain."""
    user.run("up", "--headless", "--register")
    withdraw = [sys.executable, "-m", "agtmux.bridge.withdraw", str(user.socket)]
    assert subprocess.run(withdraw, env=user.env, timeout=30).returncode == 1
    assert status(user) == {"claude": "registered", "codex": "registered"}
    pid = user.lock_holder()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: user.lock_holder() is None, "its end")
    assert subprocess.run(withdraw, env=user.env, timeout=30).returncode == 0
    assert texts(user) == (CLAUDE, CODEX)
    # The next daemon knows whom it was for.
    user.start()
    assert status(user) == {"claude": "registered", "codex": "registered"}


@pytest.mark.soak
def test_a_bridge_tries_for_half_a_minute_and_then_withdraws(user: Home) -> None:
    """gwt FR-020; orchestrator: reconnecting. Five tries, after 1, 2, 4, 8 and 16 seconds."""
    user.run("up", "--headless", "--register")
    command = [str(COMMANDS / "agtmux-mcp"), "--socket", str(user.socket)]
    bridge = user.spawn(*command, stdin=subprocess.PIPE)
    assert bridge.stdin is not None and bridge.stdout is not None

    def ask(number: int) -> None:
        params = {"name": "list_agents", "arguments": {}}
        bridge.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}) + "\n"
        )
        bridge.stdin.flush()

    greeting = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}}
    bridge.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting}) + "\n")
    ask(2)
    assert [json.loads(bridge.stdout.readline())["id"] for _ in range(2)] == [1, 2]
    pid = user.lock_holder()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: user.lock_holder() is None, "its end")
    began = time.monotonic()
    ask(3)
    refused = json.loads(bridge.stdout.readline())
    assert refused["id"] == 3 and refused["result"]["isError"]
    assert 29 < time.monotonic() - began < 40
    wait_until(lambda: texts(user) == (CLAUDE, CODEX), "the settings as they were")
    # From now on nobody waits, and a daemon that comes is found by the next call.
    ask(4)
    assert json.loads(bridge.stdout.readline())["result"]["isError"]
    user.start()
    ask(5)
    assert not json.loads(bridge.stdout.readline())["result"]["isError"]


def test_what_is_asked_wrongly_is_said(user: Home) -> None:
    user.start()
    assert user.run("mcp", "register", "--agent", "eliza").returncode == 2
    assert user.run("mcp", "status", "--target", "vm9").returncode == 5
    assert user.run("mcp").returncode == 2
    assert user.run("--socket", command="agtmux-mcp").returncode == 2
    assert "usage" in user.run("--help", command="agtmux-mcp").stdout
