"""`agtmux bar`: one line, never too long, that a tmux status line can show whatever agents are called or ask."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.home import COMMANDS, PATIENCE, Home, event, wait_until

SWIFTBAR = Path(__file__).resolve().parents[2] / "resources" / "swiftbar" / "agtmux.5s.sh"


def tell(home: Home, pane: str, state: str, asks: str = "") -> None:
    # Of another the confidence falls some looks later, as its empty screen does not bear it out.
    payload: dict[str, Any] = {"confidence": "low"}
    if asks:
        payload["attention"] = {"kind": "approval", "summary": asks}
    said = home.ask("POST", "/v1/events", event(pane, f"state.{state}", raw_payload=payload))
    assert said.json["status"] == "applied"


def bar(home: Home, *words: str) -> str:
    done = home.run("bar", *words)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


@pytest.fixture
def panes(home: Home) -> list[str]:
    """Three agents: one runs, one is idle, one waits."""
    made = [home.pane() for _ in range(3)]
    home.start()
    wait_until(lambda: set(made) <= set(home.panes()), "the panes")
    for pane, state in zip(made, ("running", "idle"), strict=False):
        tell(home, pane, state)
    tell(home, made[2], "waiting_approval", "make deploy")
    return made


def test_without_a_daemon_it_says_so_and_starts_none(home: Home):
    assert bar(home) == "agtmux off\n"
    assert bar(home, "--format", "tmux") == "#[dim]agtmux off#[default]\n"
    assert bar(home, "--width", "4") == "agt…\n"
    content = json.loads(bar(home, "--json"))
    assert (content["is_running"], content["total"], content["needs_you"]) == (False, 0, [])
    assert not home.state.exists()


def test_a_daemon_that_hangs_is_not_waited_for_long(home: Home):
    daemon = home.start()
    daemon.send_signal(19)
    try:
        assert bar(home) == "agtmux off\n"
    finally:
        daemon.send_signal(18)


def test_without_agents_it_is_empty(home: Home):
    home.start()
    for form in ("plain", "tmux"):
        assert bar(home, "--format", form) == ""
    assert json.loads(bar(home, "--format", "json"))["total"] == 0


def test_who_waits_comes_first(home: Home, panes: list[str]):
    assert bar(home) == f"!1 ▶1 ·1 claude {panes[2]}: make deploy\n"
    styled = "#[fg=yellow]!1#[default] #[fg=green]▶1#[default] ·1 claude %2: make deploy\n"
    assert bar(home, "--format", "tmux") == styled
    content = json.loads(bar(home, "--format", "json"))
    assert content["by_state"] == {"waiting_approval": 1, "running": 1, "idle": 1}
    assert content["needs_you"] == [home.panes()[panes[2]]]
    tell(home, panes[0], "error")
    assert bar(home).startswith("!1 ✗1 ·1 claude %2: make deploy")


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 9, 12, 20, 24, 30, 200])
def test_it_is_never_longer_than_it_may_be(home: Home, panes: list[str], width: int):
    tell(home, panes[2], "idle")
    tell(home, panes[2], "waiting_approval", "日本語の質問 " * 20)
    shown = bar(home, "--width", str(width)).rstrip("\n")
    cells = sum(2 if ord(char) > 0x2FFF else 1 for char in shown)
    assert cells <= width
    if width >= 2:
        assert shown.startswith("!1")


@pytest.mark.parametrize("words", [["--width", "0"], ["--json", "--format", "tmux"], ["--format", "html"]])
def test_what_makes_no_line_is_refused(home: Home, words: list[str]):
    assert home.run("bar", *words).returncode == 2


# What tmux would take for a style, a format, or a command to be run.
HOSTILE = (
    "#[fg=red,reverse]red",
    "##[fg=red]red",
    "#{pane_id} #{session_name}",
    "##{pane_id}",
    "#(touch {pwned})",
    "##(touch {pwned})",
    "###(touch {pwned})",
    "#H #S #, #} %H:%M",
    "a #",
    "## ###",
)


def test_a_status_line_shows_any_text_and_runs_nothing(home: Home, panes: list[str]):
    """In a real status line, which takes what a command prints as a format once more."""
    pwned = home.folder / "pwned"
    inside = {**home.env, "TMUX_TMPDIR": str(home.folder / "inner")}
    Path(inside["TMUX_TMPDIR"]).mkdir()

    def inner(*words: str) -> None:
        subprocess.run(["tmux", "-f", "/dev/null", *words], env=inside, check=True, timeout=PATIENCE)

    where = f"env TMUX_TMPDIR={home.folder} AGTMUX_STATE_DIR={home.state}"
    command = f"{where} '{COMMANDS / 'agtmux'}' bar --format tmux --width 150"
    inner("new-session", "-d", "-x", "190", "-y", "10", "sleep 3600")
    try:
        for name, value in (
            ("status-right", f"#({command})"),
            ("status-right-length", "180"),
            ("status-interval", "1"),
            *(("status-left", ""), ("window-status-current-format", ""), ("window-status-format", "")),
        ):
            inner("set-option", "-g", name, value)
        shown = home.pane(agent=None, command=f"env -u TMUX TMUX_TMPDIR={inside['TMUX_TMPDIR']} tmux attach")
        home.tmux("set-option", "-g", "window-size", "manual")
        home.tmux("resize-window", "-t", shown, "-x", "190", "-y", "12")
        for number, text in enumerate(HOSTILE):
            asks = f"{number}> {text.replace('{pwned}', str(pwned))} <{number}"
            tell(home, panes[2], "idle")
            tell(home, panes[2], "waiting_approval", asks)

            def status_line(number: int = number) -> str:
                lines = home.tmux("capture-pane", "-p", "-e", "-t", shown).splitlines()
                return next((line for line in lines if f"{number}>" in line and f"<{number}" in line), "")

            line = wait_until(status_line, f"{asks!r} in the status line")
            said = line[line.index(f"{number}>") : line.index(f"<{number}") + 2]
            # Several # in a row may be shown as fewer, and everything else as it is.
            assert said.replace("#", "") == asks.replace("#", ""), "no style, no format, no command"
            assert "#" not in text or "#" in said
        assert not pwned.exists()
    finally:
        inner("kill-server")


def test_the_swiftbar_plugin_shows_the_line_and_the_table(home: Home, panes: list[str]):
    tell(home, panes[2], "idle")
    tell(home, panes[2], "waiting_approval", "make deploy | bash=/bin/rm param1=x")
    env = home.env | {"PATH": f"{COMMANDS}:{os.environ['PATH']}"}
    done = subprocess.run([SWIFTBAR], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    first, divider, *table = done.stdout.splitlines()
    assert first.startswith("!1 ▶1 ·1 claude %2: make deploy ¦ bash=")
    assert divider == "---"
    assert len([line for line in table if " claude " in line]) == 3
    # What follows a bar tells SwiftBar what to do with the line: only what the plugin itself says is there.
    ours = {"trim=false font=Menlo size=12 emojize=false symbolize=false", "emojize=false symbolize=false"}
    assert {line.partition(" | ")[2] for line in [first, *table]} <= ours
    assert all(line.count("|") == 1 for line in [first, *table])


def test_the_swiftbar_plugin_says_when_there_is_no_daemon(home: Home):
    env = home.env | {"PATH": f"{COMMANDS}:{os.environ['PATH']}"}
    done = subprocess.run([SWIFTBAR], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:2] == ["agtmux off | emojize=false symbolize=false", "---"]
    assert not home.state.exists()
