"""Looks at a prompt, and a dialog that is there when the key is: recorded screens of real agents, on a real tmux."""

from __future__ import annotations

import json

import pytest

from agtmux.agents.contract import Glance
from agtmux.agents.registry import Registry
from agtmux.agents.screen.anchors import Hold
from agtmux.agents.screen.capture import read_capture
from corpus.scoreboard import cases
from support.home import Home, wait_until
from support.probe import ProbeProcess

REGISTRY = Registry.load()
CASES = {(case.agent, case.version, case.name): case for case in cases()}
LISTENS = """
import os, sys, tty
tty.setraw(0)
text = open(sys.argv[1]).read().rstrip("\\n")
sys.stdout.write("\\x1b[2J\\x1b[H" + text.replace("\\n", "\\r\\n")); sys.stdout.flush()
while data := os.read(0, 4096):
    open(sys.argv[2], "ab").write(data)
"""


def shown(home: Home, screen: str, width: int, height: int) -> tuple[ProbeProcess, dict[str, object], str]:
    """A pane that shows it, with what is needed for a key."""
    (home.folder / "screen").write_text(screen)
    (home.folder / "listens.py").write_text(LISTENS)
    pane = home.tmux(
        *("new-session", "-dPF", "#{pane_id}", "-x", str(width), "-y", str(height)),
        f"exec python3 {home.folder}/listens.py {home.folder}/screen {home.folder}/given",
    )
    wait_until(lambda: len(home.tmux("capture-pane", "-pt", pane).strip()) > 40, "the screen")
    told = "#{pid}-#{start_time}\t#{pane_pid}\t#{pane_current_command}"
    server, pid, command = home.tmux("display-message", "-pt", pane, told).split("\t")
    about = {"server": server, "pane_id": pane, "pid": int(pid), "agent": None, "group": None, "command": command}
    return ProbeProcess(home), about, pane


def given(home: Home) -> bytes:
    path = home.folder / "given"
    return path.read_bytes() if path.exists() else b""


def held(hold: Hold) -> dict[str, object]:
    return {
        "lines": hold.anchors,
        "absent": hold.absent,
        "history": 0 if hold.is_whole else None,
        "is_whole": hold.is_whole,
        "telling": hold.telling,
    }


def anchors(agent: str, screen: str) -> dict[str, object]:
    found = REGISTRY.footing(agent, Glance(screen))
    assert found is not None and found.reading.seen.composer != "none" and found.hold.anchors
    return held(found.hold)


def test_a_dialog_in_the_place_of_an_empty_boxed_prompt_takes_no_key(home: Home) -> None:
    """Every sign of `│ >   │` stands for any character, so every line of that box is that line."""
    before = CASES["claude", "1.0.40", "idle-denied-esc-80x24"].screen
    after = CASES["claude", "1.0.40", "approval-bash-80x24"].screen
    probe, about, _ = shown(home, after, 80, 24)
    said = probe.errand("press", **about, **anchors("claude", before), key="Enter")
    assert given(home) == b"" and said.get("done") != {"is_done": True}, (json.dumps(said), given(home))


def test_a_dialog_above_a_lasting_footer_takes_no_enter(home: Home) -> None:
    """A text that was sent before is not alone on the screen, and the footer stays when the dialog opens."""
    before = CASES["gemini", "0.33.2", "idle-completed-60x20"].screen
    text = "Hello. do:say{{Three labels are printed.}}"
    lines = before.split("\n")
    at = next(i for i, line in enumerate(lines) if "Type your message" in line)
    lines[at] = f" > {text}"
    after = CASES["gemini", "0.33.2", "approval-bash-60x20"].screen
    probe, about, _ = shown(home, after, 60, 20)
    said = probe.errand("press", **about, **anchors("gemini", "\n".join(lines)), key="Enter")
    assert given(home) == b"" and said.get("done") != {"is_done": True}, (json.dumps(said), given(home))


def test_what_the_user_adds_in_a_boxed_prompt_is_not_submitted(home: Home) -> None:
    """Blanks stand for any character, so a draft that goes on is taken for the draft that was looked at."""
    screen = read_capture(CASES["gemini", "0.22.4", "idle-draft-80x24"].screen)
    before = "\n".join(line.text for line in screen.lines)
    after = before.replace("print three labels" + " " * 20, "print three labels - no, delete them".ljust(38))
    assert after != before
    probe, about, _ = shown(home, after, 80, 24)
    said = probe.errand("press", **about, **anchors("gemini", before), key="Enter")
    assert given(home) == b"" and said.get("done") != {"is_done": True}, (json.dumps(said), given(home))


@pytest.mark.parametrize("name", ["approval-mcp-200x50"])
def test_a_recorded_dialog_can_be_answered(home: Home, name: str) -> None:
    """A line of signs alone is found in another place first, and so no key is ever pressed."""
    case = CASES["copilot", "1.0.12", name]
    found = REGISTRY.footing("copilot", Glance(case.screen))
    assert found is not None and found.replies.approve is not None
    probe, about, _ = shown(home, case.screen, 200, 50)
    lines = held(found.hold)
    assert probe.errand("press", **about, **lines, key="1")["done"] == {"is_done": True}


RULE = "─" * 78
OPTIONS = [" ❯ 1. Yes", "   2. Yes, and don't ask again for such commands", "   3. No (esc)", "", " Esc to cancel"]


def dialog(*command: str, above: tuple[str, ...] = ()) -> str:
    about = [*(f"   {line}" for line in command), "   Tidy up", "", " Do you want to proceed?"]
    return "\n".join([*above, RULE, " Bash command", "", *about, *OPTIONS]) + "\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # What is asked about begins too far above the options to be among the lines that are held.
        (
            dialog("rm -r build \\", *(f"  part{number} \\" for number in range(8))),
            dialog("rm -r / \\", *(f"  part{number} \\" for number in range(8))),
        ),
        # It was shown before in the very same way, so it is not held at all.
        (dialog("rm -r build", above=("   rm -r build", "")), dialog("rm -r /", above=("   rm -r build", ""))),
        # Signs are not compared.
        (dialog("rm -r ./x"), dialog("rm -r ~/x")),
    ],
    ids=["far-above", "shown-before", "signs"],
)
def test_another_dialog_of_the_same_shape_takes_no_answer(home: Home, before: str, after: str) -> None:
    first, second = (REGISTRY.footing("claude", Glance(screen)) for screen in (before, after))
    assert first is not None and second is not None
    assert first.reading.seen.asked.fingerprint != second.reading.seen.asked.fingerprint
    probe, about, _ = shown(home, after, 80, 30)
    if not first.hold.is_whole:
        # No key is pressed for such a one.
        return
    lines = held(first.hold)
    said = probe.errand("press", **about, **lines, key=first.replies.approve)
    assert given(home) == b"" and said.get("done") != {"is_done": True}, (json.dumps(said), given(home))


def test_another_recorded_edit_takes_no_answer(home: Home) -> None:
    """What an edit changes stands above the dialog: in its fingerprint, and not among the lines that are held."""
    before = CASES["codex", "0.140.0", "approval-change-80x24"]
    after = CASES["codex", "0.140.0", "approval-edit-80x24"]
    first = REGISTRY.footing("codex", Glance(before.screen, before.label["title"]))
    assert first is not None and first.replies.approve == "1"
    probe, about, _ = shown(home, after.screen, 80, 24)
    lines = held(first.hold)
    said = probe.errand("press", **about, **lines, key="1")
    assert given(home) == b"" and said.get("done") != {"is_done": True}, (json.dumps(said), given(home))


def test_enter_is_not_pressed_when_the_mark_has_moved(home: Home) -> None:
    """The mark `>` stands for any character, and so does the blank that it leaves behind."""
    before = "\n".join([RULE, " Do you want to proceed?", " > Yes", "   Yes, always", "   No", "", " Enter to select"])
    after = before.replace(" > Yes", "   Yes").replace("   Yes, always", " > Yes, always")
    first = REGISTRY.footing("claude", Glance(before))
    assert first is not None and first.replies.approve == "Enter"
    probe, about, _ = shown(home, after, 80, 24)
    lines = held(first.hold)
    said = probe.errand("press", **about, **lines, key="Enter")
    assert given(home) == b"" and said.get("done") != {"is_done": True}, (json.dumps(said), given(home))
