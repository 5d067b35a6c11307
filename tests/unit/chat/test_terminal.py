"""What a person sees of a session, and what their lines mean to it."""

from __future__ import annotations

import io
import os
from typing import Any

import pytest

from agtmux.chat import terminal as module
from agtmux.chat.terminal import Terminal, has_colours

INIT = {
    "type": "init",
    "session_id": "12345678-0000",
    "cwd": "/work",
    "agent_type": "claude",
    "agent_version": "2.1.325",
    "state": "idle",
    "turn": 0,
    "first_seq": 1,
    "last_seq": 0,
    "pending": [],
}
REQUEST = {"type": "approval_request", "request_id": "r1", "tool": "Bash", "kind": "approval"}


class Seen:
    def __init__(self, colours: bool = False, **options: Any) -> None:
        self.output = io.StringIO()
        self.terminal = Terminal(self.output, colours, **options)
        self._seq = 0

    def take(self, kind: str, /, **words: Any) -> None:
        self._seq += 1
        self.terminal.take({**words, "type": kind, "seq": self._seq})

    def shown(self) -> str:
        return self.output.getvalue()


def seen(**init: Any) -> Seen:
    made = Seen()
    made.terminal.take(INIT | init)
    return made


def asking(command: str = "make deploy") -> Seen:
    made = seen()
    made.take("turn", turn=1, text="go")
    made.take("approval_request", **REQUEST, input={"command": command})
    return made


def test_a_turn_reads_like_a_conversation():
    it = seen()
    assert it.terminal.typed("do it") == {"type": "message", "text": "do it"}
    it.take("turn", turn=1, text="do it")
    it.take("text_delta", text="I look ")
    it.take("text_delta", text="at it.")
    it.take("tool_use", request_id="t", tool="Bash", input={"command": "ls -l"})
    it.take("tool_result", request_id="t", output="total 4\nfile", is_error=False)
    it.take("text_delta", text="Done.")
    it.take("done", outcome="completed", usage={"input_tokens": 1234, "output_tokens": 56}, duration_ms=1500)
    assert it.shown() == (
        "claude 2.1.325 · /work · session 12345678\nCtrl-C breaks off a turn, Ctrl-D leaves\n› "
        "I look at it.\n· Bash ls -l\n  total 4\nDone.\n1234 in, 56 out · 1.5s\n› "
    )


def test_what_another_client_says_is_shown_and_what_one_typed_is_not_shown_twice():
    it = seen()
    it.terminal.typed("mine")
    it.take("turn", turn=1, text="mine")
    it.take("done", outcome="completed", usage={})
    it.take("turn", turn=2, text="theirs")
    assert "mine" not in it.shown() and "› theirs\n" in it.shown()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("y", {"type": "approve", "request_id": "r1"}),
        (" YES ", {"type": "approve", "request_id": "r1"}),
        ("n", {"type": "deny", "request_id": "r1", "reason": ""}),
        ("no use the staging database", {"type": "deny", "request_id": "r1", "reason": "use the staging database"}),
        ("", None),
        ("1", None),
        ("yes please, and then the tests", None),
        ("do it", None),
    ],
)
def test_only_a_plain_yes_is_an_approval(line, said):
    it = asking()
    assert "! may it use Bash?\n  make deploy\ny, or n and why: " in it.shown()
    assert it.terminal.typed(line) == said
    assert (it.terminal.asked is None) is (said is not None)


def test_what_was_answered_elsewhere_is_asked_no_more():
    it = asking()
    it.take("answered", request_id="r1", decision="approved", by="agtmux")
    assert "(approved elsewhere)" in it.shown() and it.terminal.asked is None
    assert it.terminal.typed("y") == {"type": "message", "text": "y"}


def test_requests_are_asked_one_after_the_other():
    it = asking()
    it.take("approval_request", request_id="r2", tool="Edit", kind="approval", input={"file_path": "/a", "new": ["x"]})
    assert "Edit" not in it.shown()
    it.terminal.typed("y")
    assert '! may it use Edit?\n  file_path: /a\n  new: ["x"]' in it.shown()
    assert it.terminal.typed("n")["request_id"] == "r2"


def test_questions_are_answered_by_number_or_in_words():
    options = [{"label": "Red"}, {"label": "Blue"}]
    it = seen()
    it.take("turn", turn=1, text="go")
    questions = [{"question": "Which?", "options": options}, {"question": "And how?", "options": options}]
    it.take("question", request_id="q", tool="AskUserQuestion", questions=questions)
    assert "? Which?\n  1. Red\n  2. Blue\n" in it.shown()
    assert it.terminal.typed("") is None
    assert it.terminal.typed("2") is None
    assert "? And how?" in it.shown()
    assert it.terminal.typed("by 3 o'clock") == {
        "type": "answer",
        "request_id": "q",
        "answers": ["Blue", "by 3 o'clock"],
    }


def test_several_choices_may_be_made_at_once_and_one_that_is_none_is_a_text():
    for line, answer in (("1, 2", "Red, Blue"), ("7", "7")):
        it = seen()
        asked = [{"question": "Which?", "options": [{"label": "Red"}, {"label": "Blue"}]}]
        it.take("question", request_id="q", tool="AskUserQuestion", questions=asked)
        assert it.terminal.typed(line)["answers"] == [answer]


def test_nothing_that_is_told_steers_the_terminal():
    it = asking("rm \x1b[2J\x07x")
    it.take("text_delta", text="a\x1b]0;title\x07b\r")
    it.take("tool_result", request_id="t", output="\x1b[31mred", is_error=True)
    assert not {"\x1b", "\x07", "\r"} & set(it.shown())


def test_colours_only_where_they_are_wanted(monkeypatch):
    it = Seen(colours=True)
    it.terminal.take(INIT)
    assert "\x1b[2m" in it.shown()

    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert has_colours(Tty()) and not has_colours(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not has_colours(Tty())


def test_lines_of_tools_fit_a_narrow_terminal(monkeypatch):
    monkeypatch.setattr(module, "_width", lambda: 24)
    it = seen()
    it.take("tool_use", request_id="t", tool="Bash", input={"command": "x" * 100})
    assert max(map(len, it.shown().splitlines()[2:])) <= 24


def test_who_joins_sees_what_was_and_is_asked_only_what_is_open():
    it = Seen(history=True)
    open_request = REQUEST | {"request_id": "r2", "input": {"command": "two"}}
    it.terminal.take(INIT | {"last_seq": 5, "state": "waiting_approval", "pending": [open_request]})
    it.take("turn", turn=1, text="go")
    it.take("approval_request", **REQUEST, input={"command": "one"})
    it.take("answered", request_id="r1", decision="approved", by="client")
    it.take("text_delta", text="half")
    it.take("approval_request", **open_request)
    assert "› go" in it.shown() and "one" not in it.shown() and "  two\n" in it.shown()
    assert it.terminal.typed("y") == {"type": "approve", "request_id": "r2"}


def test_what_is_told_before_the_past_hides_nothing_of_it():
    """An event that happens between the session's first word and the request for what was before."""
    it = Seen(history=True)
    open_request = REQUEST | {"input": {"command": "one"}}
    it.terminal.take(INIT | {"last_seq": 2, "state": "waiting_approval", "pending": [open_request]})
    news = {"type": "text_delta", "text": "news", "seq": 3}
    it.terminal.take(news)
    it.take("turn", turn=1, text="go")
    it.take("approval_request", **open_request)
    it.terminal.take(news)
    assert "› go" in it.shown() and it.shown().count("news") == 1
    assert it.terminal.typed("y") == {"type": "approve", "request_id": "r1"}


def test_a_gap_in_the_past_holds_nothing_back():
    it = Seen(history=True)
    it.terminal.take(INIT | {"last_seq": 2})
    it.terminal.take({"type": "gap", "from": 1, "to": 2})
    it.terminal.take({"type": "turn", "turn": 9, "text": "go", "seq": 3})
    assert "› go" in it.shown()


def test_what_was_forgotten_is_not_waited_for():
    it = seen()
    for line in ("one", "two"):
        it.terminal.typed(line)
    it.take("turn", turn=1, text="one")
    it.take("queued", text="two")
    it.take("forgotten", text="two")
    it.take("done", outcome="aborted", turn=1)
    assert not it.terminal.is_busy and "(not said: two)" in it.shown()


def test_what_was_seen_is_not_shown_again():
    it = seen(last_seq=10)
    it.take("text_delta", text="old")
    assert "old" not in it.shown()


def test_a_gap_and_an_error_are_told():
    it = seen()
    it.terminal.take({"type": "gap", "from": 3, "to": 9})
    it.terminal.take({"type": "error", "code": "E_USAGE", "message": "no"})
    assert "(7 events are no longer kept)" in it.shown() and "E_USAGE: no\n› " in it.shown()


def test_the_home_is_told_as_people_write_it(monkeypatch):
    monkeypatch.setitem(os.environ, "HOME", "/home/dev")
    assert "~/x" in seen(cwd="/home/dev/x").shown() and "/home/developer" in seen(cwd="/home/developer").shown()


def test_a_yes_is_asked_for_below_all_that_it_is_for():
    command = "\n".join(["ls", *(f"echo {number}" for number in range(60)), "touch x"])
    it = asking(command)
    assert all(f"  {line}\n" in it.shown() for line in command.split("\n"))
    assert it.terminal.typed("y") == {"type": "approve", "request_id": "r1"}


@pytest.mark.parametrize("more", [{"is_cut": True}, {"input": {"command": "ls \u202e# x"}}])
def test_a_yes_is_not_enough_for_what_is_not_shown_whole(more: dict[str, Any]):
    it = seen()
    it.take("turn", turn=1, text="go")
    it.take("approval_request", **REQUEST | {"input": {"command": "ls"}} | more)
    assert "not all of it" in it.shown() and "partial to approve" in it.shown()
    assert it.terminal.typed("y") is None
    assert it.terminal.typed("yes") is None
    assert it.terminal.typed("partial") == {"type": "approve", "request_id": "r1"}


def test_no_line_of_an_argument_looks_like_another_argument():
    it = seen()
    it.take("turn", turn=1, text="go")
    it.take("approval_request", **REQUEST | {"tool": "mcp__prod__run", "input": {"script": "# a\nforce: false"}})
    assert "  script:\n      # a\n      force: false\n" in it.shown()
    assert it.terminal.typed("partial") is None
