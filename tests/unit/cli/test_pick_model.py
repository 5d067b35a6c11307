"""What `pick` shows for which keys, and that it wishes for nothing else than what was chosen as it was shown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agtmux.actions.output import legible_lines
from agtmux.cli.pick_model import JUMP, LEAVE, NEST, Model
from agtmux.cli.table import display_width

NOW = "2026-01-31T12:00:00+00:00"


def agent(
    number: int, state: str = "idle", title: str = "", asks: str | None = None, version: int = 1
) -> dict[str, Any]:
    return {
        "identity": {"target": "host", "session_name": "work", "window_id": f"@{number}", "pane_id": f"%{number}"},
        "ref": f"pane:host/work/@{number}/%{number}",
        "runtime_id": f"runtime-{number}",
        "agent_type": "agent",
        "state": state,
        "state_version": version,
        "reason_code": "r",
        "confidence": "high",
        "updated_at": "2026-01-31T11:59:00+00:00",
        "title": title,
        "cwd": "/src",
        "branch": None,
        "attention": None if asks is None else {"summary": asks},
    }


def listing(*items: dict[str, Any]) -> dict[str, Any]:
    summary = {"total": len(items), "needs_action": 0, "by_state": {"idle": len(items)}}
    return {"generated_at": NOW, "filters": {}, "summary": summary, "items": list(items)}


def a_model(*items: dict[str, Any]) -> Model:
    model = Model()
    model.take(listing(*items))
    return model


def press(model: Model, *keys: str) -> Any:
    """What the last of them asks for."""
    wish = None
    for key in keys:
        wish = model.press(key)
    return wish


def chosen(model: Model) -> str | None:
    return None if model.chosen is None else model.chosen["identity"]["pane_id"]


def screen(model: Model, width: int = 100, height: int = 24) -> list[str]:
    return model.draw(width, height, colour=False)


THREE = (agent(1, title="one"), agent(2, title="two"), agent(3, title="three"))


def test_the_first_is_chosen_and_keys_move_within_the_list():
    model = a_model(*THREE)
    for keys, pane in (
        ([], "%1"),
        (["down"], "%2"),
        (["j", "j", "j"], "%3"),
        (["k"], "%2"),
        (["home"], "%1"),
        (["G"], "%3"),
        (["page up"], "%1"),
        (["F9", "é"], "%1"),
    ):
        press(model, *keys)
        assert chosen(model) == pane, keys
    wish, item = press(model, "enter")
    assert (wish, item["runtime_id"]) == (JUMP, "runtime-1")


def test_who_is_chosen_stays_chosen_when_the_list_changes():
    model = a_model(*THREE)
    press(model, "down")
    model.take(listing(agent(9, "error"), agent(3), agent(2), agent(1)))
    assert chosen(model) == "%2"
    # Gone: whoever is in its place by now.
    model.take(listing(agent(9, "error"), agent(3), agent(1)))
    assert chosen(model) == "%1"
    model.take(listing())
    assert chosen(model) is None
    assert press(model, "enter") is None and press(model, "a") is None
    assert any("No agent is running" in line for line in screen(model))


def test_a_pane_with_another_agent_in_it_is_not_the_one_that_was_chosen():
    model = a_model(agent(1), agent(2))
    press(model, "down")
    model.take(listing(agent(2) | {"runtime_id": "runtime-other"}, agent(1)))
    assert chosen(model) == "%1"


def test_a_filter_finds_words_in_all_that_is_known():
    model = a_model(agent(1, title="Fix The Cart"), agent(2, asks="rm -rf build", state="waiting_approval"), agent(3))
    assert press(model, "/", *"cart fix") is None
    assert chosen(model) == "%1" and "/cart fix▏  1 of 3" in screen(model)[0]
    press(model, *["backspace"] * 8, *"rm -rf")
    assert chosen(model) == "%2"
    press(model, *"q")
    assert chosen(model) is None and "No agent fits" in screen(model)[1]
    press(model, "backspace")
    assert press(model, "enter")[0] == JUMP
    # Esc takes one thing back at a time.
    assert press(model, "escape") is None
    assert press(model, "j") is None and chosen(model) == "%2"
    assert press(model, "escape") is None and "/" not in screen(model)[0]
    assert press(model, "escape") == (LEAVE, None)


@pytest.mark.parametrize("key", ["q", "Q", "escape", "end of input"])
def test_one_can_leave(key: str):
    assert a_model(*THREE).press(key) == (LEAVE, None)


def test_a_terminal_that_is_gone_is_left_whatever_is_open():
    for keys in (["/", "x"], ["?"], ["a"]):
        model = a_model(agent(1, "waiting_approval", asks="x"))
        press(model, *keys)
        assert model.press("end of input") == (LEAVE, None)


@pytest.mark.parametrize(("key", "action"), [("a", "approve"), ("d", "deny")])
def test_an_answer_needs_a_second_key_and_shows_what_it_is_about(key: str, action: str):
    model = a_model(agent(1, "waiting_approval", asks="make deploy"), agent(2))
    assert press(model, key) is None
    assert screen(model)[-1] == f"{action}? y/n: make deploy"
    for other in ("n", "enter", "escape", key, "j"):
        assert press(model, other) is None, "anything but y is no"
        assert not model.is_asking
        assert chosen(model) == "%1"
        press(model, key)
    wish, item = press(model, "y")
    assert (wish, item["runtime_id"], item["state"]) == (action, "runtime-1", "waiting_approval")


def test_only_who_asks_for_approval_is_answered():
    for state in ("idle", "running", "waiting_input", "error", "unknown"):
        model = a_model(agent(1, state, asks="x"))
        assert press(model, "a") is None and not model.is_asking
        assert model.note and press(model, "y") is None


@pytest.mark.parametrize(
    "then",
    [
        [agent(1, "waiting_approval", asks="rm -rf /", version=2)],
        [agent(1, "running", version=2)],
        [agent(1, "waiting_approval", asks="make deploy") | {"runtime_id": "runtime-other"}],
        [],
    ],
)
def test_nothing_is_answered_that_has_changed_since_it_was_shown(then: list[dict[str, Any]]):
    model = a_model(agent(1, "waiting_approval", asks="make deploy"))
    press(model, "a")
    model.take(listing(*then))
    assert not model.is_asking and "moved on" in screen(model)[-1]
    assert press(model, "y") is None


def test_that_others_change_does_not_take_the_question_away():
    model = a_model(agent(1, "waiting_approval", asks="x"), agent(2))
    press(model, "a")
    model.take(listing(agent(2, "error", version=7), agent(1, "waiting_approval", asks="x")))
    assert press(model, "y")[0] == "approve"


def test_showing_a_server_within_another_is_asked_for_first():
    model = a_model(*THREE)
    assert model.chosen is not None
    model.ask_to_nest(model.chosen)
    assert "within this one? y/n" in screen(model)[-1]
    assert press(model, "n") is None
    model.ask_to_nest(model.chosen)
    model.take(listing(agent(1, "running", version=5)))
    assert press(model, "y")[0] == NEST


def test_the_screen_of_the_chosen_one_is_shown_and_no_other():
    model = a_model(*THREE)
    model.take_preview("runtime-1", "first\nscreen\n\n")
    model.take_preview("runtime-2", "second\tscreen")
    lines = screen(model)
    assert lines[4].startswith("── host/work/@1/%1 · /src ──") and lines[5:7] == ["first", "screen"]
    press(model, "down")
    assert "second  screen" in screen(model) and "first" not in screen(model)
    press(model, "down")
    assert not {"second  screen", "first"} & set(screen(model))


def test_what_an_agent_says_steers_no_terminal():
    model = a_model(agent(1, "waiting_approval", title="\x1b]0;x\x07", asks="\x1b[2Jgone\r\n"))
    model.take_preview("runtime-1", "\x1b[31mred\x9b1mbold\x00")
    model.note = "\x1b[2J"
    for keys in ([], ["a"], ["n", "/", "\x85"]):
        press(model, *keys)
        assert all(line.isprintable() for line in screen(model))
        coloured = "".join(model.draw(80, 24, colour=True))
        assert "\x1b[2J" not in coloured and "\x07" not in coloured and "\x9b" not in coloured


def test_states_are_told_by_shape_as_well_as_by_colour():
    model = a_model(agent(1, "waiting_approval"), agent(2, "running"))
    lines = screen(model)
    assert lines[1].startswith(">  !") and lines[2].startswith("   ▶")
    assert "\x1b" not in "".join(lines)
    coloured = model.draw(100, 24, colour=True)
    assert coloured[1].startswith("\x1b[7m>  !") and coloured[2].startswith("\x1b[32m")


def test_help_is_one_key_away():
    model = a_model(*THREE)
    press(model, "?")
    assert "jump to the pane" in screen(model)[0]
    assert press(model, "q") is None and "%1" in screen(model)[1]


@given(
    width=st.integers(1, 200),
    height=st.integers(1, 60),
    count=st.integers(0, 30),
    keys=st.lists(st.sampled_from(["j", "G", "/", "a", "?", "x", "escape", "終"]), max_size=6),
    text=st.text(max_size=300),
)
def test_every_screen_fits_and_shows_who_is_chosen(width: int, height: int, count: int, keys: list[str], text: str):
    model = a_model(*(agent(number, "waiting_approval", "終わり" * 9, asks=text) for number in range(count)))
    model.note = text
    if model.chosen is not None:
        model.take_preview(model.chosen["runtime_id"], text)
    for key in keys:
        model.press(key)
    lines = screen(model, width, height)
    assert len(lines) == height
    assert all(display_width(line) <= width for line in lines)
    if width >= 8 and height >= 3 and model.chosen is not None and not lines[0].startswith("Enter"):
        assert any(line.startswith(">") for line in lines)


def test_forty_columns_and_eight_rows_are_enough():
    model = a_model(*(agent(number, "waiting_approval", asks=f"question {number}") for number in range(12)))
    press(model, *["j"] * 9)
    lines = screen(model, 40, 8)
    assert [line.rstrip() for line in lines if line.startswith(">")] == [">  !  agent  1m   question 9"]
    assert len([line for line in lines if "question" in line]) == 6


def test_after_an_answer_the_next_that_waits_is_chosen():
    waiting = (agent(1, "waiting_approval", asks="ls"), agent(2), agent(3, "waiting_input"), agent(4))
    model = a_model(*waiting)
    model.answered(waiting[0])
    assert chosen(model) == "%3"
    # From the last it goes on with the first.
    model.answered(waiting[2])
    assert chosen(model) == "%1"


def test_who_was_chosen_during_an_answer_stays_chosen():
    waiting = (agent(1, "waiting_approval", asks="ls"), agent(2), agent(3, "waiting_input"))
    model = a_model(*waiting)
    press(model, "down")
    model.answered(waiting[0])
    assert chosen(model) == "%2"


def test_blanks_at_the_end_of_a_line_of_the_screen_are_not_said_to_be_cut_off():
    model = a_model(agent(1))
    model.take_preview("runtime-1", "done" + " " * 200 + "\nlong " + "x" * 200)
    lines = screen(model)
    assert "done" in lines
    assert sum(line.endswith("…") for line in lines) == 1


def test_a_screen_has_blanks_where_an_agent_draws_no_break_spaces():
    assert legible_lines("\u276f\u00a0say\u2003it\n\x1b[0m") == "\u276f say it\n\N{REPLACEMENT CHARACTER}[0m"


def asking(summary: str, detail: str | None = None, *, brief: bool = True, whole: bool = True) -> Model:
    item = agent(1, "waiting_approval", asks=summary)
    item["attention"] |= {"detail": detail, "brief": brief, "whole": whole}
    model = a_model(item, agent(2))
    assert press(model, "a") is None
    return model


def test_an_approval_is_asked_for_beside_all_that_it_is_for():
    command = "\n".join(["echo a #", *(f"step {number}" for number in range(10)), "touch x"])
    model = asking(" ".join(command.split())[:199] + "…", command, brief=False)
    lines = [line.strip() for line in screen(model)]
    at = lines.index("echo a #")
    assert lines[at : at + 12] == command.split("\n")
    assert lines[-2].startswith("approve? y/n: echo a #") and any(line.startswith(">") for line in lines)
    assert press(model, "y")[0] == "approve"


@pytest.mark.parametrize("lines", [19, 60])
def test_what_has_no_room_is_not_approved(lines: int):
    command = "\n".join(f"step {number}" for number in range(lines))
    model = asking(" ".join(command.split())[:199] + "…", command, brief=False)
    drawn = screen(model)
    assert ("no room" in drawn[-1]) is (lines == 60), drawn
    assert (press(model, "y") is None) is (lines == 60)


def test_one_line_that_the_foot_cannot_hold_is_shown_whole_as_well():
    command = "echo " + "word " * 36 + "touch x"
    model = asking(command)
    assert "touch x" in "".join(line.ljust(40) for line in screen(model, 40))
    cut_off = asking("x" * 150, brief=True)
    assert "".join(screen(cut_off, 40)).count("x") >= 150


def test_a_question_that_is_cut_in_the_foot_says_so():
    model = asking("echo " + "word " * 36, whole=False)
    foot = screen(model, 40)[-3:]
    assert foot[0].startswith("approve? y/n") and foot[-1].endswith("…")
