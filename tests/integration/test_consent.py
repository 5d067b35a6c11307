"""Nothing is written into agents' settings before the user has agreed to it, and what they decide is remembered."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from support.home import COMMANDS, Home, wait_until
from support.terminal import Terminal, terminals

AGTMUX = COMMANDS / "agtmux"
FILES = {
    ".claude.json": '{\n  // mine\n  "numStartups": 7\n}\n',
    ".claude/settings.json": '{"model": "opus"}',
    ".codex/config.toml": 'model = "gpt-5"\n\n[tui]\nnotifications = true\n',
    ".gemini/settings.json": '{ "theme": "dark" }\n',
    ".copilot/config.json": "{}",
    ".copilot/mcp-config.json": '{"mcpServers": {"other": {"command": "x"}}}',
}
NAMED = (".claude.json", ".codex/config.toml", ".gemini/settings.json", ".copilot/mcp-config.json")


@pytest.fixture
def user(home: Home) -> Home:
    """Who uses four agents, and has none in the PATH."""
    home.env["PATH"] = f"{COMMANDS}:/usr/bin:/bin"
    for name, text in FILES.items():
        path = home.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    # So that `up --demo-if-empty`, which is all that `make run` calls, has an agent to show.
    home.pane()
    return home


def content(home: Home) -> dict[str, bytes]:
    """Every file of the user's: all but agtmux's own state and the tmux server's socket."""
    found: dict[str, bytes] = {}
    for folder, folders, files in os.walk(home.folder):
        at = Path(folder)
        folders[:] = [name for name in folders if at / name != home.state and not name.startswith("tmux-")]
        found |= {str((at / name).relative_to(home.folder)): (at / name).read_bytes() for name in files}
    return found


def entries(home: Home) -> dict[str, str]:
    answer = json.loads(home.run("mcp", "status", "--json").stdout)
    return {item["agent"]: item["entry"] for item in answer["items"]}


def consent(home: Home) -> object:
    return json.loads(home.run("mcp", "status", "--json").stdout)["consent"]["register"]


def asked(home: Home, answer: str) -> tuple[int, str]:
    """What `make run` says in a terminal whose user answers that, and its end."""
    with terminals(home) as opened:
        terminal = Terminal(home, AGTMUX, "up", "--demo-if-empty")
        opened.append(terminal)
        wait_until(lambda: "[y/N]" in terminal.text or "q leaves" in terminal.text, "a question, or the table")
        if "[y/N]" in terminal.text:
            terminal.type(answer)
        if answer not in ("\x03",):
            wait_until(lambda: "q leaves" in terminal.text, "the table")
            terminal.type("q")
        return terminal.ended(), terminal.text


def test_without_a_terminal_nothing_is_registered_and_it_is_said_how(user: Home) -> None:
    before = content(user)
    for words in (["up", "--demo-if-empty"], ["up", "--headless"], ["list", "panes"], ["watch", "--once"], ["doctor"]):
        done = user.run(*words)
        assert content(user) == before, words
        if words[0] == "up":
            assert done.returncode == 0 and "agtmux up --register" in done.stderr, done
    assert consent(user) is None
    # Neither by a restart, nor by what the resident app asks for when a daemon is there.
    user.run("down")
    user.start()
    user.ask("POST", "/v1/mcp", {"action": "register", "automatic": True})
    assert content(user) == before


def test_the_question_names_the_files_before_the_table_is_drawn(user: Home) -> None:
    _, text = asked(user, "n\n")
    question, _, rest = text.partition("[y/N]")
    assert all(str(user.folder / name) in question for name in NAMED), question
    assert "agtmux-mcp" in question and "\x1b[?1049h" not in question and "\x1b[?1049h" in rest
    assert "bridge: off" in rest


@pytest.mark.parametrize("answer", ["n\n", "\n", "no\n", "Nope\n", "maybe yes\n", "ja\n"])
def test_anything_but_a_yes_changes_nothing_and_is_asked_for_once(user: Home, answer: str) -> None:
    before = content(user)
    assert asked(user, answer)[0] == 0
    assert content(user) == before
    assert consent(user) is False
    status, text = asked(user, "y\n")
    assert status == 0 and "[y/N]" not in text and "bridge: off" in text
    user.run("down")
    assert content(user) == before


def test_an_interrupt_at_the_question_changes_nothing_and_decides_nothing(user: Home) -> None:
    before = content(user)
    status, text = asked(user, "\x03")
    assert status == 130 and "Traceback" not in text
    assert content(user) == before and consent(user) is None
    # The end of the input is no answer either.
    assert asked(user, "\x04")[0] == 0
    assert content(user) == before and consent(user) is None
    assert "[y/N]" in asked(user, "\n")[1]


def test_a_yes_adds_one_entry_to_each_file_and_down_takes_it_out(user: Home) -> None:
    """gwt FR-017: registration at start and removal at the end, once the user has agreed."""
    before = content(user)
    _, text = asked(user, "y\n")
    assert set(entries(user).values()) == {"registered"}
    assert "bridge: in the settings of claude" in text
    changed = {name for name, data in content(user).items() if before.get(name) != data}
    assert changed == set(NAMED), changed
    user.run("down")
    assert content(user) == before
    # Remembered, and what is in force is said.
    _, text = asked(user, "n\n")
    assert "[y/N]" not in text and "bridge: in the settings of claude" in text
    assert set(entries(user).values()) == {"registered"}
    # After a crash too.
    pid = user.lock_holder()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: user.lock_holder() is None, "its end")
    daemon = user.start()
    assert set(entries(user).values()) == {"registered"}
    user.end(daemon)
    assert content(user) == before


def test_options_answer_and_are_remembered(user: Home) -> None:
    before = content(user)
    user.run("up", "--headless", "--register")
    assert set(entries(user).values()) == {"registered"}
    user.run("up", "--headless", "--no-register")
    assert content(user) == before and consent(user) is False
    assert "--register" not in user.run("up", "--headless").stderr
    assert content(user) == before
    assert user.run("up", "--register", "--no-register").returncode == 2


def test_one_agent_that_was_registered_by_name_is_a_yes_to_that_one_alone(user: Home) -> None:
    user.run("mcp", "register", "--agent", "codex")
    user.run("down")
    user.run("up", "--headless")
    assert entries(user) == {"claude": "absent", "codex": "registered", "gemini": "absent", "copilot": "absent"}
    _, text = asked(user, "n\n")
    assert str(user.folder / ".codex" / "config.toml") not in text.partition("[y/N]")[0]


def test_what_an_earlier_version_registered_unasked_is_taken_out_and_asked_for(user: Home) -> None:
    before = content(user)
    user.run("up", "--headless", "--register")
    # It was killed; that the user has agreed is what earlier versions did not know.
    pid = user.lock_holder()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: user.lock_holder() is None, "its end")
    (user.state / "mcp-consent.json").unlink()
    user.start()
    assert content(user) == before
    assert "[y/N]" in asked(user, "\n")[1]


def test_settings_are_a_decision(user: Home) -> None:
    before = content(user)
    user.configure("[mcp]\nregister = true\n")
    user.run("up", "--headless")
    assert set(entries(user).values()) == {"registered"}
    user.run("down")
    user.configure("[mcp]\nregister = false\n")
    _, text = asked(user, "y\n")
    assert "[y/N]" not in text
    assert {name: data for name, data in content(user).items() if not name.startswith("config/")} == before
