"""What each agent's hooks mean: a table of events and payloads, with the field names the agents really use."""

from importlib import resources
from typing import Any

import pytest

from agtmux.agents.registry import Registry
from agtmux.domain.states import Reason

REGISTRY = Registry.load()
QUESTION = [{"question": "Which colour?", "header": "Colour", "options": [{"label": "Red"}, {"label": "Blue"}]}]
TITLE_THREAD = "Generate a concise, single-line task title of at most 36 characters. User prompt: fix the build"
BACKGROUND = [{"id": "a0fd", "type": "subagent", "status": "running", "description": "sub work"}]

# agent, event, payload → state, reason_code, source; a state of None says "known, and means nothing".
TABLE: list[tuple[str, str, dict[str, Any], str | None, str | None, str]] = [
    ("claude", "SessionStart", {"source": "startup"}, "idle", "session_started", "hook"),
    ("claude", "UserPromptSubmit", {"prompt": "fix it"}, "running", "prompt_submitted", "hook"),
    ("claude", "PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "ls"}}, "running", "tool_use", "hook"),
    ("claude", "PostToolUse", {"tool_name": "Bash"}, "running", "tool_use", "hook"),
    ("claude", "PostToolBatch", {}, "running", "tool_use", "hook"),
    ("claude", "PermissionRequest", {"tool_name": "Bash", "tool_input": {"command": "ls"}}, "waiting_approval", "permission", "hook"),
    ("claude", "PermissionRequest", {"tool_name": "AskUserQuestion", "tool_input": {"questions": QUESTION}}, "waiting_input", "question", "hook"),
    ("claude", "PermissionRequest", {"tool_name": "ExitPlanMode", "tool_input": {"plan": "1. go"}}, "waiting_approval", "plan", "hook"),
    ("claude", "Elicitation", {"mcp_server_name": "envdump", "message": "Which?"}, "waiting_input", "elicitation", "hook"),
    ("claude", "ElicitationResult", {"action": "accept"}, "running", "elicitation_answered", "hook"),
    ("claude", "Stop", {"background_tasks": [], "session_crons": []}, "completed", "turn_ended", "hook"),
    ("claude", "Stop", {"background_tasks": BACKGROUND}, "running", "background_tasks", "hook"),
    ("claude", "StopFailure", {"error": "server_error", "last_assistant_message": "API Error: 529"}, "error", "server_error", "hook"),
    ("claude", "StopFailure", {"error": "authentication_failed"}, "error", "authentication_failed", "hook"),
    ("claude", "StopFailure", {"error": "Something went wrong!"}, "error", "turn_failed", "hook"),
    ("claude", "SessionEnd", {"reason": "clear"}, None, None, "hook"),
    ("claude", "SessionEnd", {"reason": "prompt_input_exit"}, "unknown", "agent_exited", "hook"),
    ("claude", "Notification", {"notification_type": "permission_prompt", "message": "needs you"}, None, None, "hook"),
    ("claude", "SubagentStop", {"agent_id": "a0fd"}, None, None, "hook"),
    ("codex", "SessionStart", {"source": "startup"}, "idle", "session_started", "hook"),
    ("codex", "UserPromptSubmit", {"prompt": "fix it"}, "running", "prompt_submitted", "hook"),
    ("codex", "PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "ls"}}, "running", "tool_use", "hook"),
    ("codex", "PreToolUse", {"tool_name": "request_user_input", "tool_input": {"questions": QUESTION}}, "waiting_input", "question", "hook"),
    ("codex", "PostToolUse", {"tool_name": "request_user_input"}, "running", "tool_use", "hook"),
    ("codex", "PermissionRequest", {"tool_name": "apply_patch", "tool_input": {"command": "*** Begin Patch"}}, "waiting_approval", "permission", "hook"),
    ("codex", "Interrupt", {"permission_mode": "default"}, "idle", "interrupted", "hook"),
    ("codex", "Stop", {"stop_hook_active": False}, "completed", "turn_ended", "hook"),
    ("codex", "SessionEnd", {"reason": "other"}, "unknown", "agent_exited", "hook"),
    ("codex", "notify", {"type": "agent-turn-complete", "input-messages": ["fix it"]}, "completed", "turn_ended", "notify"),
    ("codex", "notify", {"type": "agent-turn-complete", "input-messages": [TITLE_THREAD]}, None, None, "notify"),
    ("codex", "notify", {"type": "approval-requested", "command": ["rm", "-r"]}, "waiting_approval", "permission", "notify"),
    ("copilot", "sessionStart", {"source": "new"}, "idle", "session_started", "hook"),
    ("copilot", "userPromptSubmitted", {"prompt": "fix it"}, "running", "prompt_submitted", "hook"),
    ("copilot", "userPromptSubmitted", {"prompt": "sub", "agentId": "bdf2", "parentAgentId": "35e4"}, None, None, "hook"),
    ("copilot", "preToolUse", {"toolName": "bash", "toolArgs": {"command": "ls"}}, "running", "tool_use", "hook"),
    ("copilot", "preToolUse", {"toolName": "ask_user", "toolArgs": {"question": "Which?", "choices": ["Red"]}}, "waiting_input", "question", "hook"),
    ("copilot", "permissionRequest", {"toolName": "bash", "toolInput": {"command": "ls"}}, "waiting_approval", "permission", "hook"),
    ("copilot", "notification", {"notification_type": "permission_prompt", "message": "Run command: ls"}, "waiting_approval", "permission", "hook"),
    ("copilot", "notification", {"notification_type": "elicitation_dialog", "message": "Information"}, "waiting_input", "elicitation", "hook"),
    ("copilot", "notification", {"notification_type": "weather"}, None, None, "hook"),
    ("copilot", "errorOccurred", {"recoverable": True, "error": {"message": "fake 500"}}, "running", "retrying", "hook"),
    ("copilot", "errorOccurred", {"recoverable": False, "error": {"message": "fake 400"}}, "error", "turn_failed", "hook"),
    ("copilot", "agentStop", {"stopReason": "end_turn"}, "completed", "turn_ended", "hook"),
    ("copilot", "agentStop", {"stopReason": "end_turn", "agentId": "bdf2"}, None, None, "hook"),
    ("copilot", "sessionEnd", {"reason": "user_exit"}, "unknown", "agent_exited", "hook"),
    ("gemini", "SessionStart", {"source": "startup"}, "idle", "session_started", "hook"),
    ("gemini", "BeforeAgent", {"prompt": "fix it"}, "running", "prompt_submitted", "hook"),
    ("gemini", "BeforeTool", {"tool_name": "run_shell_command"}, "running", "tool_use", "hook"),
    ("gemini", "Notification", {"notification_type": "ToolPermission", "details": {"type": "exec", "command": "ls"}}, "waiting_approval", "permission", "hook"),
    ("gemini", "Notification", {"notification_type": "ToolPermission", "details": {"type": "ask_user", "title": "Ask User"}}, "waiting_input", "question", "hook"),
    ("gemini", "Notification", {"notification_type": "other"}, None, None, "hook"),
    ("gemini", "AfterAgent", {"prompt_response": "done"}, "completed", "turn_ended", "hook"),
    ("gemini", "AfterAgent", {"prompt_response": "[no response text]"}, "error", "no_response", "hook"),
    ("gemini", "BeforeModel", {}, None, None, "hook"),
    ("gemini", "SessionEnd", {"reason": "exit"}, "unknown", "agent_exited", "hook"),
]  # fmt: skip


@pytest.mark.parametrize(("agent", "event", "payload", "state", "reason", "source"), TABLE)
def test_a_hook_means_its_state(agent, event, payload, state, reason, source) -> None:
    spoke, verdict = REGISTRY.read_hook(agent, event, payload)
    assert spoke == source
    assert (None if verdict is None else (verdict.state, verdict.reason_code)) == (state and (state, reason))


# agent, event, payload → kind, summary, options
ATTENTION: list[tuple[str, str, dict[str, Any], str, str, tuple[str, ...]]] = [
    ("claude", "PermissionRequest", {"tool_name": "Bash", "tool_input": {"command": "rm -r  build\n"}}, "approval", "rm -r build", ()),
    ("claude", "PermissionRequest", {"tool_name": "Write", "tool_input": {"file_path": "/a.py"}}, "approval", "/a.py", ()),
    ("claude", "PermissionRequest", {"tool_name": "mcp__x__ask", "tool_input": {}}, "approval", "mcp__x__ask", ()),
    ("claude", "PermissionRequest", {"tool_name": "AskUserQuestion", "tool_input": {"questions": QUESTION}}, "question", "Which colour?", ("Red", "Blue")),
    ("claude", "PermissionRequest", {"tool_name": "ExitPlanMode", "tool_input": {"plan": "1. go"}}, "plan", "1. go", ()),
    ("claude", "StopFailure", {"error": "server_error", "last_assistant_message": "API Error: 529"}, "error", "API Error: 529", ()),
    ("codex", "PreToolUse", {"tool_name": "request_user_input", "tool_input": {"questions": QUESTION}}, "question", "Which colour?", ("Red", "Blue")),
    ("codex", "notify", {"type": "approval-requested", "command": ["rm", "-r"]}, "approval", "rm -r", ()),
    ("copilot", "preToolUse", {"toolName": "ask_user", "toolArgs": {"question": "Which?", "choices": ["Red", "Blue"]}}, "question", "Which?", ("Red", "Blue")),
    ("copilot", "permissionRequest", {"toolName": "bash", "toolInput": {"command": "touch a"}}, "approval", "touch a", ()),
    ("gemini", "Notification", {"notification_type": "ToolPermission", "details": {"type": "exec", "command": "touch a"}}, "approval", "touch a", ()),
    ("gemini", "Notification", {"notification_type": "ToolPermission", "details": {"type": "edit", "fileName": "a.txt"}}, "approval", "a.txt", ()),
]  # fmt: skip


@pytest.mark.parametrize(("agent", "event", "payload", "kind", "summary", "options"), ATTENTION)
def test_a_waiting_agent_says_what_for(agent, event, payload, kind, summary, options) -> None:
    _, verdict = REGISTRY.read_hook(agent, event, payload)
    assert verdict is not None
    assert verdict.attention is not None
    assert (verdict.attention.kind, verdict.attention.summary, verdict.attention.options) == (kind, summary, options)


@pytest.mark.parametrize("agent", REGISTRY.agent_types)
@pytest.mark.parametrize("payload", [None, "text", 5, [], {}, {"tool_input": 5}, {"tool_input": {"questions": [5]}}])
def test_no_payload_is_too_strange_to_read(agent: str, payload: Any) -> None:
    for event in {row[1] for row in TABLE} | {"", "?", "x" * 1_000}:
        _, verdict = REGISTRY.read_hook(agent, event, payload)
        assert verdict is None or verdict.reason_code


@pytest.mark.parametrize("agent", REGISTRY.agent_types)
def test_a_hook_nobody_knows_is_unsupported_and_never_a_state(agent: str) -> None:
    _, verdict = REGISTRY.read_hook(agent, "BrandNewHook", {})
    assert verdict is not None
    assert verdict.is_unsupported


def test_every_agents_file_is_loaded() -> None:
    folder = resources.files("agtmux") / "resources" / "agents"
    names = {entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")}
    assert names == set(REGISTRY.agent_types) == {"claude", "codex", "copilot", "cursor", "gemini"}


@pytest.mark.parametrize("agent", REGISTRY.agent_types)
def test_every_rule_with_a_state_says_why(agent: str) -> None:
    for rule in REGISTRY._sheets[agent].hook:
        assert (rule.state is None) == (rule.reason_code is None), rule
        assert rule.reason_code != Reason.UNSUPPORTED_SIGNAL
        assert rule.attention is None or rule.attention.kind in ("approval", "plan", "question", "error")


@pytest.mark.parametrize("agent", REGISTRY.agent_types)
def test_no_rule_is_hidden_behind_an_earlier_one(agent: str) -> None:
    """A rule without conditions ends what can be said of its events."""
    settled: set[str] = set()
    for rule in REGISTRY._sheets[agent].hook:
        events = {rule.event} if isinstance(rule.event, str) else set(rule.event)
        assert not events & settled, f"{events & settled} can never get to {rule}"
        if not rule.when:
            settled |= events
