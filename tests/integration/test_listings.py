"""What is listed is what tmux has, filtered as asked, rolled up as told; other servers are targets of their own."""

import json

import pytest

from support.home import Home, event, wait_until


@pytest.fixture
def panes(home: Home) -> dict[str, str]:
    """Two sessions with agents in several states, and a pane without one."""
    found = {
        "approval": home.pane("claude"),
        "running": home.pane("codex"),
        "shell": home.pane(None),
    }
    home.tmux("new-session", "-d", "-s", "a b/ü", "sleep", "3600")
    found["error"] = home.tmux("list-panes", "-t", "=a b/ü:", "-F", "#{pane_id}").strip()
    home.tmux("set-option", "-p", "-t", found["error"], "@agtmux_agent", "gemini")
    home.start()
    wait_until(lambda: set(found.values()) - {found["shell"]} <= set(home.panes()), "the panes")
    for state, pane in (("waiting_approval", "approval"), ("running", "running"), ("error", "error")):
        assert home.ask("POST", "/v1/events", event(found[pane], f"state.{state}")).status == 200
    return found


def listed(home: Home, *words: str) -> dict:
    done = home.run("list", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def ids(listing: dict) -> list[str]:
    return [item["identity"]["pane_id"] for item in listing["items"]]


def test_panes_come_most_urgent_first(home: Home, panes: dict[str, str]):
    assert ids(listed(home, "panes")) == [panes["error"], panes["approval"], panes["running"]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--state", "running"], ["running"]),
        (["--agent", "claude"], ["approval"]),
        (["--needs-action"], ["error", "approval"]),
        (["--session", "a b/ü"], ["error"]),
        (["--target-session", "host/a%20b%2F%C3%BC"], ["error"]),
        (["--target", "host", "--state", "idle"], []),
        (["--all", "--agent", "none"], ["shell"]),
        (["--all-targets"], ["error", "approval", "running"]),
    ],
)
def test_a_filter_shows_what_it_says(home: Home, panes: dict[str, str], words: list[str], expected: list[str]):
    listing = listed(home, "panes", *words)
    assert ids(listing) == [panes[name] for name in expected]
    assert listing["summary"]["total"] == len(expected)


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        (["--state", "busy"], "E_USAGE", 2),
        (["--agent", "hal"], "E_USAGE", 2),
        (["--target", "vm9"], "E_TARGET_NOT_FOUND", 5),
        (["--target-session", "host"], "E_REF_INVALID", 2),
        (["--target-session", "host/%zz"], "E_REF_INVALID_ENCODING", 2),
        (["--target-session", "vm9/x"], "E_TARGET_NOT_FOUND", 5),
    ],
)
def test_a_filter_that_means_nothing_is_an_error(home: Home, panes, words: list[str], code: str, status: int):
    done = home.run("list", "panes", *words, "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (status, code)


def test_an_unknown_parameter_is_an_error(home: Home, panes: dict[str, str]):
    assert home.ask("GET", "/v1/panes?stat=running").json["error"]["code"] == "E_USAGE"


def test_windows_and_sessions_show_the_most_urgent_state_within(home: Home, panes: dict[str, str]):
    windows = listed(home, "windows")["items"]
    assert [window["top_state"] for window in windows] == ["error", "waiting_approval", "running"]
    assert all(window["identity"].keys() == {"target", "session_name", "window_id"} for window in windows)
    sessions = listed(home, "sessions")["items"]
    assert sessions[0]["identity"]["session_name"] == "a b/ü"
    other = sessions[1]
    assert (other["top_state"], other["waiting"], other["running"], other["windows"]) == ("waiting_approval", 1, 1, 2)
    assert listed(home, "sessions", "--group-by", "session-name")["items"][0]["identity"] == {"session_name": "a b/ü"}
    heads = {
        "windows": "STATE WAIT RUN WINDOW NAME AGENTS",
        "sessions": "STATE WAIT RUN SESSION WINDOWS AGENTS",
        "sessions --group-by session-name": "STATE WAIT RUN SESSION TARGETS AGENTS",
    }
    for what, head in heads.items():
        assert home.run("list", *what.split()).stdout.splitlines()[1].split() == head.split()
    for what in ("panes", "windows", "sessions"):
        plain = home.run("list", what)
        assert plain.returncode == 0 and "error" in plain.stdout


def test_another_server_is_a_target_of_its_own(home: Home):
    home.start()
    home.tmux("-L", "other", "new-session", "-d", "-s", "there", "sleep", "3600")
    try:
        pane = home.tmux("-L", "other", "list-panes", "-a", "-F", "#{pane_id}").strip()
        home.tmux("-L", "other", "set-option", "-p", "-t", pane, "@agtmux_agent", "claude")
        assert home.run("target", "add", "work", "--tmux-socket", "other").returncode == 0
        wait_until(lambda: listed(home, "panes", "--target", "work")["items"], "its pane")
        listing = listed(home, "panes")
        assert [item["identity"]["target"] for item in listing["items"]] == ["work"]
        assert listing["requested_targets"] == listing["responded_targets"] == ["host", "work"]
        assert home.run("target", "connect", "work").stdout == "work is ok, with 1 pane\n"
        assert home.run("target", "remove", "work").returncode == 2, "not without a yes"
        assert home.run("target", "remove", "work", "--yes").returncode == 0
        assert listed(home, "panes")["items"] == []
        assert home.run("target", "remove", "work", "--yes").returncode == 5
    finally:
        home.tmux("-L", "other", "kill-server")


def test_whoever_is_in_a_server_that_nobody_watches_is_told_so(home: Home):
    home.start()
    socket = str(home.folder / "elsewhere" / "lab")
    there = {"TMUX": f"{socket},4711,0"}
    mend = f"agtmux target add lab --tmux-socket {socket}"
    done = home.run("list", env=there)
    assert (done.returncode, done.stdout[:20]) == (0, "No agent is running "), done
    assert "is not watched" in done.stderr and mend in done.stderr
    assert mend in home.run("up", "--headless", env=there).stderr
    done = home.run("launch", "claude", env=there)
    assert done.returncode == 4 and mend in done.stderr
    # In one that is watched, and outside of tmux, there is nothing to say.
    pane = home.pane(agent=None)
    assert home.run("list", env=home.tmux_variables(pane)).stderr == home.run("list").stderr == ""


def test_a_name_that_several_have_is_told_with_all_of_them(home: Home):
    home.start()
    home.tmux("-L", "lab", "new-session", "-d", "-s", "there", "sleep", "3600")
    home.tmux("-L", "attic", "new-session", "-d", "-s", "there", "sleep", "3600")
    try:
        for server in ("lab", "attic"):
            home.tmux("-L", server, "set-option", "-p", "@agtmux_agent", "claude")
            assert home.run("target", "add", server, "--tmux-socket", server).returncode == 0
        wait_until(lambda: len(listed(home, "panes")["items"]) == 2, "both")
        done = home.run("explain", "claude-0")
        assert done.returncode == 5 and "E_REF_AMBIGUOUS" in done.stderr
        assert "claude-0@lab" in done.stderr and "claude-0@attic" in done.stderr
        assert home.run("explain", "claude-0@lab").returncode == 0
    finally:
        for server in ("lab", "attic"):
            home.tmux("-L", server, "kill-server")


def test_a_target_that_cannot_be_looked_at_leaves_the_others_alone(home: Home, panes: dict[str, str]):
    """A socket path that no system allows: tmux says so, and the listing does."""
    asked = {"name": "broken", "tmux_socket": str(home.folder / ("x" * 200))}
    assert home.ask("POST", "/v1/targets", asked).status == 200
    wait_until(lambda: listed(home, "panes")["partial"], "the error to be told")
    listing = listed(home, "panes")
    assert len(listing["items"]) == 3
    assert listing["responded_targets"] == ["host"]
    assert listing["target_errors"][0]["code"] == "E_TARGET_UNREACHABLE"
    assert home.run("target", "connect", "broken").returncode == 6


def test_a_pane_without_an_agent_is_listed_and_counted_as_none(home: Home, panes: dict[str, str]):
    for what in ("panes", "windows", "sessions"):
        summary = home.run("list", what, "--all").stdout.splitlines()[0]
        assert summary.startswith("3 agents, 2 need you (") and summary.endswith(", 1 without an agent"), summary
    assert listed(home, "panes", "--all")["summary"]["total"] == 4


def test_a_target_that_is_not_there_is_said_at_once_with_those_that_are(home: Home, panes: dict[str, str]):
    for words in (["target", "remove", "vm9"], ["target", "connect", "vm9"], ["list", "panes", "--target", "vm9"]):
        done = home.run(*words)
        assert (done.returncode, done.stdout) == (5, ""), done
        assert done.stderr == "agtmux: E_TARGET_NOT_FOUND: no target is called 'vm9'; known are host\n"
