"""What each agent's hooks mean: a table of events and payloads, with the field names the agents really use."""

from importlib import resources
from typing import Any

import pytest

from agtmux.agents.registry import Registry
from agtmux.domain.states import Confidence, Reason

REGISTRY = Registry.load()
QUESTIONS = {"questions": [{"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}]}
TITLE_THREAD = "Generate a concise, single-line task title of at most 36 characters. User prompt: fix the build"
BASH = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
BACKGROUND = [{"id": "a0fd", "type": "subagent", "status": "running", "description": "sub work"}]

# Event, payload, and what they mean: the state and its reason, with `notify` where not the hook spoke. A dash says
# that the event is known and means nothing.
TABLE: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "claude": [
        ("SessionStart", {"source": "startup"}, "idle session_started"),
        ("UserPromptSubmit", {"prompt": "fix it"}, "running prompt_submitted"),
        ("PreToolUse", BASH, "running tool_use"),
        ("PostToolUse", {"tool_name": "Bash"}, "running tool_use"),
        ("PostToolBatch", {}, "running tool_use"),
        ("PermissionRequest", BASH, "waiting_approval permission"),
        ("PermissionRequest", {"tool_name": "AskUserQuestion", "tool_input": QUESTIONS}, "waiting_input question"),
        ("PermissionRequest", {"tool_name": "ExitPlanMode", "tool_input": {"plan": "1. go"}}, "waiting_approval plan"),
        ("Elicitation", {"mcp_server_name": "envdump", "message": "Which?"}, "waiting_input elicitation"),
        ("ElicitationResult", {"action": "accept"}, "running elicitation_answered"),
        ("Stop", {"background_tasks": [], "session_crons": []}, "completed turn_ended"),
        ("Stop", {"background_tasks": BACKGROUND}, "–"),
        ("StopFailure", {"error": "server_error", "last_assistant_message": "API Error: 529"}, "error server_error"),
        ("StopFailure", {"error": "authentication_failed"}, "error authentication_failed"),
        ("StopFailure", {"error": "Something went wrong!"}, "error turn_failed"),
        ("SessionEnd", {"reason": "clear"}, "–"),
        ("SessionEnd", {"reason": "prompt_input_exit"}, "unknown agent_exited"),
        ("Notification", {"notification_type": "permission_prompt", "message": "needs you"}, "–"),
        ("SubagentStop", {"agent_id": "a0fd"}, "–"),
    ],
    "codex": [
        ("SessionStart", {"source": "startup"}, "idle session_started"),
        ("UserPromptSubmit", {"prompt": "fix it"}, "running prompt_submitted"),
        ("PreToolUse", BASH, "running tool_use"),
        ("PreToolUse", {"tool_name": "request_user_input", "tool_input": QUESTIONS}, "waiting_input question"),
        ("PostToolUse", {"tool_name": "request_user_input"}, "running tool_use"),
        (
            "PermissionRequest",
            {"tool_name": "apply_patch", "tool_input": {"command": "*** Begin Patch"}},
            "waiting_approval permission",
        ),
        ("Interrupt", {"permission_mode": "default"}, "idle interrupted"),
        ("Stop", {"stop_hook_active": False}, "completed turn_ended"),
        ("SessionEnd", {"reason": "other"}, "unknown agent_exited"),
        ("notify", {"type": "agent-turn-complete", "input-messages": ["fix it"]}, "completed turn_ended notify"),
        ("notify", {"type": "agent-turn-complete", "input-messages": [TITLE_THREAD]}, "– notify"),
        ("notify", {"type": "approval-requested", "command": ["rm", "-r"]}, "waiting_approval permission notify"),
    ],
    "copilot": [
        ("sessionStart", {"source": "new"}, "idle session_started"),
        ("sessionStart", {"source": "new", "initialPrompt": "fix it"}, "running prompt_submitted"),
        ("userPromptSubmitted", {"prompt": "fix it"}, "running prompt_submitted"),
        ("userPromptSubmitted", {"prompt": "sub", "agentId": "bdf2", "parentAgentId": "35e4"}, "–"),
        ("preToolUse", {"toolName": "bash", "toolArgs": {"command": "ls"}}, "running tool_use"),
        (
            "preToolUse",
            {"toolName": "ask_user", "toolArgs": {"question": "Which?", "choices": ["Red"]}},
            "waiting_input question",
        ),
        ("permissionRequest", {"toolName": "bash", "toolInput": {"command": "ls"}}, "waiting_approval permission"),
        # It says less than the request it follows, and must not take its place.
        ("notification", {"notification_type": "permission_prompt", "message": "Run command: ls"}, "–"),
        (
            "notification",
            {"notification_type": "elicitation_dialog", "message": "Information"},
            "waiting_input elicitation",
        ),
        ("notification", {"notification_type": "weather"}, "–"),
        ("errorOccurred", {"recoverable": True, "error": {"message": "fake 500"}}, "running retrying"),
        ("errorOccurred", {"recoverable": False, "error": {"message": "fake 400"}}, "error turn_failed"),
        ("agentStop", {"stopReason": "end_turn"}, "completed turn_ended"),
        ("agentStop", {"stopReason": "end_turn", "agentId": "bdf2"}, "–"),
        ("sessionEnd", {"reason": "user_exit"}, "unknown agent_exited"),
    ],
    "gemini": [
        ("SessionStart", {"source": "startup"}, "idle session_started"),
        ("BeforeAgent", {"prompt": "fix it"}, "running prompt_submitted"),
        ("BeforeTool", {"tool_name": "run_shell_command"}, "running tool_use"),
        (
            "Notification",
            {"notification_type": "ToolPermission", "details": {"type": "exec", "command": "ls"}},
            "waiting_approval permission",
        ),
        (
            "Notification",
            {"notification_type": "ToolPermission", "details": {"type": "ask_user", "title": "Ask User"}},
            "waiting_input question",
        ),
        ("Notification", {"notification_type": "other"}, "–"),
        ("AfterAgent", {"prompt_response": "done"}, "completed turn_ended"),
        ("AfterAgent", {"prompt_response": "[no response text]"}, "error no_response"),
        ("BeforeModel", {}, "–"),
        ("SessionEnd", {"reason": "exit"}, "unknown agent_exited"),
    ],
}
ROWS = [(agent, *row) for agent, rows in TABLE.items() for row in rows]


@pytest.mark.parametrize(("agent", "event", "payload", "meaning"), ROWS)
def test_a_hook_means_its_state(agent: str, event: str, payload: dict[str, Any], meaning: str) -> None:
    source, verdict = REGISTRY.read_hook(agent, event, payload)
    found = "–" if verdict is None else f"{verdict.state} {verdict.reason_code}"
    assert found + ("" if source == "hook" else f" {source}") == meaning


# agent, event, payload → kind, summary, options
ATTENTION: list[tuple[str, str, dict[str, Any], str, str, tuple[str, ...]]] = [
    (
        "claude",
        "PermissionRequest",
        {"tool_name": "Bash", "tool_input": {"command": "rm -r  build\n"}},
        "approval",
        "rm -r build",
        (),
    ),
    (
        "claude",
        "PermissionRequest",
        {"tool_name": "Write", "tool_input": {"file_path": "/a.py"}},
        "approval",
        "/a.py",
        (),
    ),
    ("claude", "PermissionRequest", {"tool_name": "mcp__x__ask", "tool_input": {}}, "approval", "mcp__x__ask", ()),
    (
        "claude",
        "PermissionRequest",
        {"tool_name": "AskUserQuestion", "tool_input": QUESTIONS},
        "question",
        "Which colour?",
        ("Red", "Blue"),
    ),
    (
        "claude",
        "PermissionRequest",
        {"tool_name": "ExitPlanMode", "tool_input": {"plan": "1. go"}},
        "plan",
        "1. go",
        (),
    ),
    (
        "claude",
        "StopFailure",
        {"error": "server_error", "last_assistant_message": "API Error: 529"},
        "error",
        "API Error: 529",
        (),
    ),
    (
        "codex",
        "PreToolUse",
        {"tool_name": "request_user_input", "tool_input": QUESTIONS},
        "question",
        "Which colour?",
        ("Red", "Blue"),
    ),
    ("codex", "notify", {"type": "approval-requested", "command": ["rm", "-r"]}, "approval", "rm -r", ()),
    (
        "copilot",
        "preToolUse",
        {"toolName": "ask_user", "toolArgs": {"question": "Which?", "choices": ["Red", "Blue"]}},
        "question",
        "Which?",
        ("Red", "Blue"),
    ),
    (
        "copilot",
        "permissionRequest",
        {"toolName": "bash", "toolInput": {"command": "touch a"}},
        "approval",
        "touch a",
        (),
    ),
    (
        "copilot",
        "permissionRequest",
        {"toolName": "edit", "toolInput": {"file_path": "/proj/a.txt", "diff": "+x"}},
        "approval",
        "/proj/a.txt",
        (),
    ),
    (
        "gemini",
        "Notification",
        {"notification_type": "ToolPermission", "details": {"type": "exec", "command": "touch a"}},
        "approval",
        "touch a",
        (),
    ),
    (
        "gemini",
        "Notification",
        {"notification_type": "ToolPermission", "details": {"type": "edit", "fileName": "a.txt"}},
        "approval",
        "a.txt",
        (),
    ),
]


@pytest.mark.parametrize(("agent", "event", "payload", "kind", "summary", "options"), ATTENTION)
def test_a_waiting_agent_says_what_for(agent, event, payload, kind, summary, options) -> None:
    _, verdict = REGISTRY.read_hook(agent, event, payload)
    assert verdict is not None
    assert verdict.attention is not None
    assert (verdict.attention.kind, verdict.attention.summary, verdict.attention.options) == (kind, summary, options)


@pytest.mark.parametrize("agent", REGISTRY.agent_types)
@pytest.mark.parametrize("payload", [None, "text", 5, [], {}, {"tool_input": 5}, {"tool_input": {"questions": [5]}}])
def test_no_payload_is_too_strange_to_read(agent: str, payload: Any) -> None:
    for event in {row[1] for row in ROWS} | {"", "?", "x" * 1_000}:
        _, verdict = REGISTRY.read_hook(agent, event, payload)
        assert verdict is None or verdict.reason_code


def test_the_end_of_a_session_is_not_sure_where_a_new_one_may_follow() -> None:
    """Copilot's `/clear` fires the same event as its `/exit`."""
    _, verdict = REGISTRY.read_hook("copilot", "sessionEnd", {"reason": "user_exit"})
    assert verdict is not None
    assert verdict.confidence is Confidence.LOW


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
    for rule in REGISTRY.sheet(agent).hook:
        assert (rule.state is None) == (rule.reason_code is None), rule
        assert rule.reason_code != Reason.UNSUPPORTED_SIGNAL
        assert rule.attention is None or rule.attention.kind in ("approval", "plan", "question", "error")


@pytest.mark.parametrize("agent", REGISTRY.agent_types)
def test_no_rule_is_hidden_behind_an_earlier_one(agent: str) -> None:
    """A rule without conditions ends what can be said of its events."""
    settled: set[str] = set()
    for rule in REGISTRY.sheet(agent).hook:
        events = {rule.event} if isinstance(rule.event, str) else set(rule.event)
        assert not events & settled, f"{events & settled} can never get to {rule}"
        if not rule.when:
            settled |= events


# What would be changed is told with the question, so that nobody says yes unseen.
DETAILS: list[tuple[str, str, dict[str, Any], str]] = [
    (
        "claude",
        "PermissionRequest",
        {"tool_name": "Write", "tool_input": {"file_path": "/p/a.txt", "content": "hello\nworld\n"}},
        "/p/a.txt\n\nTool: Write\n\n+ hello\n+ world",
    ),
    (
        "claude",
        "PermissionRequest",
        {"tool_name": "Edit", "tool_input": {"file_path": "/p/a.py", "old_string": "a = 1", "new_string": "a = 2"}},
        "/p/a.py\n\nTool: Edit\n\n- a = 1\n+ a = 2",
    ),
    (
        "claude",
        "PermissionRequest",
        {"tool_name": "ExitPlanMode", "tool_input": {"plan": "# Move it\n1. Copy\n2. Remove"}},
        "# Move it\n1. Copy\n2. Remove",
    ),
    (
        "codex",
        "PermissionRequest",
        {"tool_name": "apply_patch", "tool_input": {"command": "*** Begin Patch\n+hello\n*** End Patch"}},
        "*** Begin Patch\n+hello\n*** End Patch",
    ),
    (
        "claude",
        "PermissionRequest",
        {"tool_name": "Bash", "tool_input": {"command": "ls -la", "description": "List files"}},
        "ls -la\n\nList files",
    ),
    # Of another's tool nothing says that `command` is one.
    (
        "claude",
        "PermissionRequest",
        {"tool_name": "mcp__prod__drop", "tool_input": {"command": "ls", "description": "List files"}},
        "mcp__prod__drop\ncommand: ls\ndescription: List files",
    ),
    (
        "codex",
        "PermissionRequest",
        {"tool_name": "mcp__prod__drop", "tool_input": {"command": "ls", "description": "List files"}},
        "mcp__prod__drop\ncommand: ls\ndescription: List files",
    ),
    (
        "copilot",
        "permissionRequest",
        {"toolName": "prod-drop", "toolInput": {"path": "/p", "diff": "+x"}},
        "prod-drop\npath: /p\ndiff: +x",
    ),
    (
        "gemini",
        "Notification",
        {
            "notification_type": "ToolPermission",
            "details": {"type": "edit", "fileName": "a.txt", "fileDiff": "@@ -0,0 +1 @@\n+hello\n"},
        },
        "a.txt\n\n@@ -0,0 +1 @@\n+hello",
    ),
    (
        "copilot",
        "permissionRequest",
        {"toolName": "edit", "toolInput": {"file_path": "/p/a.txt", "diff": "\n@@ -1,0 +1,2 @@\n+hello\n"}},
        "/p/a.txt\n\nTool: edit\n\n@@ -1,0 +1,2 @@\n+hello",
    ),
]


@pytest.mark.parametrize(("agent", "event", "payload", "detail"), DETAILS)
def test_what_would_be_changed_is_told_with_the_question(
    agent: str, event: str, payload: dict[str, Any], detail: str
) -> None:
    _, verdict = REGISTRY.read_hook(agent, event, payload)
    assert verdict is not None and verdict.attention is not None
    assert verdict.attention.detail == detail


def _tool(name: str, **given: str) -> dict[str, Any]:
    return {"tool_name": name, "tool_input": given}


def _permission(kind: str, **details: Any) -> dict[str, Any]:
    return {"notification_type": "ToolPermission", "details": {"type": kind, **details}}


BRIEF = [
    ("claude", "PermissionRequest", _tool("Bash", command="ls", description="Lists the files"), True),
    ("claude", "PermissionRequest", _tool("mcp__labels__print"), True),
    # Joined to one line, a value could pass for another argument.
    ("claude", "PermissionRequest", _tool("mcp__labels__print", parcel="A-1"), False),
    ("claude", "PermissionRequest", _tool("Bash", command="echo a\nrm -r labels", description="Says a"), False),
    ("claude", "PermissionRequest", _tool("mcp__labels__run", script="echo a\nrm -r labels"), False),
    ("claude", "PermissionRequest", _tool("Edit", file_path="/a", old_string="a", new_string="b"), False),
    ("claude", "PermissionRequest", _tool("Task", description="Looks", prompt="rm -r labels"), False),
    ("codex", "PermissionRequest", _tool("Bash", command="ls", description="Lists the files"), True),
    ("codex", "PermissionRequest", _tool("apply_patch", command="*** Begin Patch\n*** End Patch"), False),
    ("gemini", "Notification", _permission("exec", command="ls", rootCommand="ls"), True),
    ("gemini", "Notification", _permission("edit", filePath="/a.py", fileDiff="+rm"), False),
    ("gemini", "Notification", _permission("mcp", toolName="print", serverName="labels", toolArgs={"a": 1}), False),
    ("copilot", "permissionRequest", {"toolName": "bash", "toolInput": {"command": "ls"}}, True),
    ("copilot", "permissionRequest", {"toolName": "edit", "toolInput": {"file_path": "/a.py", "diff": "+rm"}}, False),
]


@pytest.mark.parametrize(("agent", "event", "payload", "is_brief"), BRIEF)
def test_a_request_is_brief_only_if_its_summary_is_all_that_would_run(
    agent: str, event: str, payload: dict[str, Any], is_brief: bool
) -> None:
    """The menu and notifications offer Approve beside a brief summary, and show nothing else."""
    _, verdict = REGISTRY.read_hook(agent, event, payload)
    assert verdict is not None and verdict.attention is not None
    assert verdict.attention.is_brief is is_brief


def test_the_line_breaks_in_a_tools_arguments_are_shown() -> None:
    _, verdict = REGISTRY.read_hook("claude", "PermissionRequest", _tool("mcp__labels__run", script="echo a\nrm -r b"))
    assert verdict is not None and verdict.attention is not None
    assert verdict.attention.detail == "mcp__labels__run\nscript:\n    echo a\n    rm -r b"
