"""An agent that nobody has heard of joins with one file, and nothing else changes."""

import contextlib
import json
import sqlite3

from support.home import Home, wait_until

SHEET = """
agent_type = "parrot"
name = "Parrot"

[process]
commands = ["parrot"]

[[hook]]
event = "Squawk"
state = "waiting_input"
reason_code = "squawked"

[screen]
bare_signs = ["=>"]

[[screen.rule]]
says = "running"
where = "above"
pattern = '^flying'
reason_code = "flies"
"""


def add(home: Home) -> None:
    folder = home.folder / "config" / "agents"
    folder.mkdir(parents=True)
    (folder / "parrot.toml").write_text(SHEET)


def test_it_is_found_read_and_heard(home: Home) -> None:
    add(home)
    program = home.folder / "parrot"
    program.write_text("#!/bin/sh\nprintf 'flying\\n\\n=> \\n'; exec sleep 3600\n")
    program.chmod(0o755)
    pane = home.pane(agent=None, command=str(program))
    home.tmux("set-option", "-p", "-t", pane, "@agtmux_agent", "parrot")
    home.start()
    wait_until(lambda: home.state_of(pane) == "running", "what it shows")
    assert home.panes()[pane]["agent_type"] == "parrot"
    done = home.run("classify", "--agent", "parrot", input="flying\n\n=> \n", stdin=None)
    assert json.loads(done.stdout)["state"] == "running"


def test_a_file_that_cannot_be_read_is_named(home: Home) -> None:
    add(home)
    (home.folder / "config" / "agents" / "bad.toml").write_text("agent_type = 3\n")
    done = home.run("daemon", "run")
    assert done.returncode == 2
    assert "bad.toml" in done.stderr


def test_the_database_says_which_adapters_there_are(home: Home) -> None:
    add(home)
    home.end(home.start())
    rows = home.query("SELECT agent_type, version, capabilities, enabled, updated_at FROM adapters")
    adapters = {agent_type: (version, json.loads(able), enabled) for agent_type, version, able, enabled, _ in rows}
    assert set(adapters) > {"parrot", "claude", "cursor"}
    version, able, enabled = adapters["parrot"]
    assert (version, enabled) == ("1.2", 1)
    assert able["event_driven"] and able["polling_required"] and able["supports_waiting_input"]
    (home.folder / "config" / "agents" / "parrot.toml").unlink()
    home.end(home.start())
    later = home.query("SELECT agent_type, version, capabilities, enabled, updated_at FROM adapters")
    assert set(later) == {row for row in rows if row[0] != "parrot"}


def test_one_that_is_switched_off_is_not_watched(home: Home) -> None:
    """Seed 003 §7.3: `adapters.enabled`, and `disable` in the settings."""
    pane = home.pane("claude")
    daemon = home.start()
    wait_until(lambda: home.panes()[pane]["agent_type"] == "claude", "the agent")
    flags = home.panes()[pane]["capabilities"]
    assert flags["supports_waiting_approval"] and flags["event_driven"]
    home.end(daemon)
    with contextlib.closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute("UPDATE adapters SET enabled = 0 WHERE agent_type = 'claude'")
    for _ in range(2):
        # It stays so.
        daemon = home.start()
        wait_until(lambda: home.panes().get(pane, {}).get("agent_type") == "none", "a pane without an agent")
        home.end(daemon)
    with contextlib.closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute("UPDATE adapters SET enabled = 1")
    home.configure('[agents]\ndisable = ["claude"]\n')
    daemon = home.start()
    wait_until(lambda: home.panes().get(pane, {}).get("agent_type") == "none", "a pane without an agent")
    home.end(daemon)
    home.configure("")
    home.start()
    wait_until(lambda: home.panes()[pane]["agent_type"] == "claude", "the agent again")
