"""What the Agent SDK says, in the words of the protocol. The messages are the SDK's own; nothing is started."""

from __future__ import annotations

from typing import Any

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
    TextBlock,
    ToolPermissionContext,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from agtmux.chat.engine import Decision, Request
from agtmux.chat.protocol import TEXT_LIMIT
from agtmux.chat.sdk import SdkEngine, Wishes

YES = Decision(allow=True)


def engine(decision: Decision = YES, asked: list[Request] | None = None, **wishes: Any) -> SdkEngine:
    async def ask(request: Request) -> Decision:
        if asked is not None:
            asked.append(request)
        return decision

    has_spoken = wishes.pop("has_spoken", False)
    return SdkEngine(Wishes("/", "s", **wishes), ask, has_spoken)


def delta(kind: str, **words: str) -> StreamEvent:
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **words}}
    return StreamEvent(uuid="u", session_id="s", event=event)


def assistant(*blocks: Any, **words: Any) -> AssistantMessage:
    return AssistantMessage(content=list(blocks), model="m", **words)


def result(**words: Any) -> ResultMessage:
    usual = {"duration_ms": 5, "duration_api_ms": 1, "num_turns": 1, "session_id": "s", "usage": {"input_tokens": 7}}
    return ResultMessage(**{"subtype": "success", "is_error": False, **usual, **words})


def told(made: SdkEngine, *messages: Any) -> list[dict[str, Any]]:
    return [each for message in messages for each in made._told(message)]


def test_streamed_text_is_told_once():
    made = engine()
    parts = (delta("text_delta", text="Three "), delta("text_delta", text="labels"))
    assert told(made, *parts, assistant(TextBlock("Three labels"))) == [
        {"type": "text_delta", "text": "Three "},
        {"type": "text_delta", "text": "labels"},
    ]
    # What comes without having been streamed, as the answer of one of its own commands does.
    assert told(made, assistant(TextBlock("Compacted."))) == [{"type": "text_delta", "text": "Compacted."}]


def test_thinking_is_told_apart():
    assert told(engine(), delta("thinking_delta", thinking="hm")) == [{"type": "thinking_delta", "text": "hm"}]


def test_a_tool_and_its_result_have_the_same_id():
    made = engine()
    use = told(made, assistant(ToolUseBlock("t1", "Bash", {"command": "ls"})))
    assert use == [{"type": "tool_use", "request_id": "t1", "tool": "Bash", "input": {"command": "ls"}}]
    content = [{"type": "text", "text": "a"}, {"type": "image"}]
    blocks = [ToolResultBlock("t1", content, None)]
    assert told(made, UserMessage(content=blocks)) == [
        {"type": "tool_result", "request_id": "t1", "output": "a\n[image]", "is_error": False}
    ]


def test_what_is_too_long_for_a_line_is_cut_and_says_so():
    [use] = told(engine(), assistant(ToolUseBlock("t1", "Write", {"content": "x" * (TEXT_LIMIT + 9)})))
    assert use["is_cut"] and len(use["input"]["content"]) == TEXT_LIMIT + 1
    [done] = told(engine(), UserMessage(content=[ToolResultBlock("t1", "x" * (TEXT_LIMIT + 9), None)]))
    assert done["is_cut"]


def test_a_subagents_tools_are_told_with_who_started_it_and_its_words_are_not():
    made = engine()
    inner = assistant(TextBlock("hm"), ToolUseBlock("t2", "Bash", {}), parent_tool_use_id="t1")
    assert told(made, inner) == [
        {"type": "tool_use", "request_id": "t2", "tool": "Bash", "input": {}, "parent_id": "t1"}
    ]


@pytest.mark.parametrize(
    ("message", "kinds", "outcome"),
    [
        (result(), ["done"], "completed"),
        (result(is_error=True, result="API Error: 529 overloaded"), ["error", "done"], "error"),
        (result(subtype="error_max_turns", is_error=True, errors=["too many"]), ["error", "done"], "error"),
        (
            result(subtype="error_during_execution", is_error=True, terminal_reason="aborted_streaming"),
            ["done"],
            "aborted",
        ),
    ],
)
def test_how_a_turn_ended(message, kinds, outcome):
    lines = told(engine(), message)
    assert [line["type"] for line in lines] == kinds and lines[-1]["outcome"] == outcome
    assert lines[-1]["usage"]["input_tokens"] == 7 and lines[-1]["usage"]["output_tokens"] == 0
    if kinds[0] == "error":
        assert lines[0]["message"] in ("API Error: 529 overloaded", "too many")


def test_what_the_agent_is_is_told_when_it_changes():
    made = engine()
    data = {"model": "m", "permissionMode": "default", "claude_code_version": "2.1.325", "mcp_servers": []}
    [line] = told(made, SystemMessage("init", data))
    assert (line["type"], line["model"], line["agent_version"]) == ("agent", "m", "2.1.325")
    assert told(made, SystemMessage("init", data)) == []
    assert told(made, SystemMessage("status", {})) == []


def test_what_runs_in_the_background_is_told_from_its_start_to_its_end():
    words = {"data": {}, "task_id": "t", "uuid": "u", "session_id": "s"}
    started = TaskStartedMessage(subtype="task_started", description="watch", **words)
    moved = TaskUpdatedMessage(subtype="task_updated", patch={}, status="running", **words)
    over = TaskUpdatedMessage(subtype="task_updated", patch={}, status="killed", **words)
    noted = TaskNotificationMessage(
        subtype="task_notification", status="completed", output_file="", summary="it is done", **words
    )
    lines = told(engine(), started, moved, over, noted)
    assert [(line["status"], line["about"]) for line in lines] == [
        ("running", "watch"),
        ("killed", ""),
        ("completed", "it is done"),
    ]


async def test_questions_and_plans_are_told_from_approvals():
    asked: list[Request] = []
    made = engine(Decision(allow=True, answers={"Which?": "Blue"}), asked)
    context = ToolPermissionContext(tool_use_id="t1", decision_reason="a hook asks")
    given = {"questions": [{"question": "Which?"}]}
    allowed = await made._may("AskUserQuestion", given, context)
    assert isinstance(allowed, PermissionResultAllow)
    assert allowed.updated_input == {**given, "answers": {"Which?": "Blue"}}
    await made._may("ExitPlanMode", {"plan": "p"}, context)
    await made._may("Bash", {"command": "ls"}, context)
    assert [request.kind for request in asked] == ["question", "plan", "approval"]
    assert asked[2].request_id == "t1" and asked[2].reason == "a hook asks"


async def test_a_denial_always_says_something():
    for reason, message in (("not there", "not there"), ("", "The user does not want this.")):
        denied = await engine(Decision(allow=False, reason=reason))._may("Bash", {}, ToolPermissionContext())
        assert isinstance(denied, PermissionResultDeny) and denied.message == message


def test_a_new_session_has_its_id_and_one_that_goes_on_resumes_it():
    options = engine()._client.options
    assert (options.session_id, options.resume, options.setting_sources) == ("s", None, ["user", "project", "local"])
    for made in (engine(is_resumed=True), engine(has_spoken=True)):
        assert (made._client.options.session_id, made._client.options.resume) == (None, "s")


def test_within_tmux_the_agents_hooks_do_not_speak_for_the_pane(monkeypatch):
    monkeypatch.setenv("TMUX", "/tmp/x,1,0")
    assert engine()._client.options.env == {"TMUX": "", "TMUX_PANE": ""}
    monkeypatch.delenv("TMUX")
    monkeypatch.delenv("TMUX_PANE", raising=False)
    assert engine()._client.options.env == {}
