"""The `[hooks]` sections: which file they mean, which events a version gets, and that the rules understand them."""

from importlib import resources

import msgspec
import pytest

from agtmux.agents.install.sheet import HookSettings
from agtmux.agents.sheet import AgentSheet
from agtmux.domain.errors import AgtmuxError
from agtmux.domain.states import Source, State
from unit.agents.install.documents import FLAT, GROUPED, WAITING

FOLDER = resources.files("agtmux") / "resources" / "agents"
SHEETS = [
    msgspec.toml.decode(entry.read_bytes(), type=AgentSheet)
    for entry in FOLDER.iterdir()
    if entry.name.endswith(".toml")
]
BY_NAME = {sheet.agent_type: sheet for sheet in SHEETS}
EVERY = pytest.mark.parametrize("sheet", SHEETS, ids=BY_NAME)


def section(toml: str) -> HookSettings:
    return msgspec.toml.decode(toml.encode(), type=HookSettings)


def hooks_of(agent: str) -> HookSettings:
    hooks = BY_NAME[agent].hooks
    assert hooks is not None
    return hooks


@EVERY
def test_the_events_that_mean_something_are_installed_and_no_others(sheet: AgentSheet) -> None:
    assert sheet.hooks is not None
    meaningful: set[str] = set()
    for rule in sheet.hook:
        if rule.state is not None and rule.source is Source.HOOK:
            meaningful |= {rule.event} if isinstance(rule.event, str) else set(rule.event)
    assert set(sheet.hooks.events) | set(sheet.hooks.spared) == meaningful
    assert set(sheet.hooks.events).isdisjoint(sheet.hooks.spared)
    assert len(set(sheet.hooks.events)) == len(sheet.hooks.events)


@pytest.mark.parametrize(
    ("agent", "environ", "path"),
    [
        ("claude", {}, "/home/x/.claude/settings.json"),
        ("claude", {"CLAUDE_CONFIG_DIR": "/etc/c"}, "/etc/c/settings.json"),
        ("claude", {"CLAUDE_CONFIG_DIR": ""}, "/home/x/.claude/settings.json"),
        ("codex", {}, "/home/x/.codex/hooks.json"),
        ("codex", {"CODEX_HOME": "/opt/codex"}, "/opt/codex/hooks.json"),
        ("gemini", {}, "/home/x/.gemini/settings.json"),
        # It stands for the home folder here, not for the one with the settings.
        ("gemini", {"GEMINI_CLI_HOME": "/srv/g"}, "/srv/g/.gemini/settings.json"),
        ("copilot", {}, "/home/x/.copilot/hooks/agtmux.json"),
        ("copilot", {"COPILOT_HOME": "/srv/c"}, "/srv/c/hooks/agtmux.json"),
        ("cursor", {}, "/home/x/.cursor/hooks.json"),
    ],
)
def test_the_file_is_where_the_agent_looks(agent: str, environ: dict[str, str], path: str) -> None:
    assert hooks_of(agent).path({"HOME": "/home/x", **environ}) == path


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "/h", "CLAUDE_CONFIG_DIR": "relative"}])
def test_no_file_is_guessed_where_the_environment_does_not_tell(environ: dict[str, str]) -> None:
    with pytest.raises(AgtmuxError):
        hooks_of("claude").path(environ)


@pytest.mark.parametrize(
    ("version", "missing"),
    [
        ("2.1.325", set()),
        ("2.1.120", set()),
        ("2.1.70", {"StopFailure"}),
        (
            "2.0.9",
            {
                "StopFailure",
                "Elicitation",
                "ElicitationResult",
                "PostToolUseFailure",
                "PermissionRequest",
            },
        ),
        ("2.1.119-beta.1", {"StopFailure"}),
        ("10.0", set()),
    ],
)
def test_an_old_version_is_not_given_what_would_make_it_skip_the_whole_file(version: str, missing: set[str]) -> None:
    claude = hooks_of("claude")
    assert set(claude.events) - set(claude.known_to(version)) == missing


def test_of_an_unknown_version_the_least_is_expected() -> None:
    assert hooks_of("claude").known_to(None) == ["PostToolUse", "Stop"]
    assert hooks_of("codex").known_to(None) == hooks_of("codex").events


def test_an_entry_looks_as_the_agent_wants_it() -> None:
    entries = {sheet.agent_type: sheet.hooks.entry_for("CMD") for sheet in SHEETS if sheet.hooks}
    assert entries == {
        "claude": {"hooks": [{"type": "command", "command": "CMD", "timeout": 10}]},
        "codex": {"hooks": [{"type": "command", "command": "CMD", "timeout": 3}]},
        "gemini": {"hooks": [{"name": "agtmux", "type": "command", "command": "CMD", "timeout": 10000}]},
        "copilot": {"type": "command", "bash": "CMD", "timeoutSec": 10},
        "cursor": {"command": "CMD", "timeout": 10},
    }


def test_an_entry_that_waits_has_its_own_limit() -> None:
    assert hooks_of("claude").entry_for("CMD", "PermissionRequest") == {
        "hooks": [{"type": "command", "command": "CMD", "timeout": 86400}]
    }
    assert hooks_of("claude").entry_for("CMD", "Stop") == hooks_of("claude").entry_for("CMD")


@EVERY
def test_only_approvals_can_be_decided_for_the_user(sheet: AgentSheet) -> None:
    for event, wait in sheet.hooks.waits.items() if sheet.hooks else ():
        rules = {rule.reason_code: rule for rule in sheet.hook if rule.event == event}
        assert wait.answers
        assert {rules[reason].state for reason in wait.answers} == {State.WAITING_APPROVAL}


@pytest.mark.parametrize(
    ("event", "reason_code", "version", "told"),
    [
        ("PermissionRequest", "permission", "2.1.325", True),
        ("PermissionRequest", "permission", "2.0.55", True),
        ("PermissionRequest", "permission", "2.0.54", False),
        ("PermissionRequest", "plan", "2.1.20", True),
        ("PermissionRequest", "plan", "2.1.19", False),
        # Native builds from npm do not say which they are.
        ("PermissionRequest", "permission", None, True),
        ("PermissionRequest", "question", "2.1.325", False),
        ("Stop", "permission", "2.1.325", False),
    ],
)
def test_whether_a_version_can_be_told_a_decision(
    event: str, reason_code: str, version: str | None, told: bool
) -> None:
    assert (hooks_of("claude").answers_to(event, reason_code, version) is not None) is told


def test_a_decision_is_written_as_the_agent_reads_it() -> None:
    answers = section(WAITING).answers_to("Ask", "permission", "1.2")
    assert answers is not None
    assert answers.written(allow=True, message="ignored") == '{"go":true}\n'
    assert (
        answers.written(allow=False, message=' "no" \n{message} ') == '{"go":false,"why":["\\"no\\" \\n{message}"]}\n'
    )
    assert answers.written(allow=False, message=" ") == '{"go":false,"why":["The user denied this."]}\n'


@pytest.mark.parametrize(
    "toml",
    [
        GROUPED + '[waits.Nothing]\nsince = "1"\nanswers = {}\n',
        GROUPED + "[waits.Ask]\nanswers = {}\n",
        GROUPED.replace("{command}", "x"),
        FLAT.replace("{ type", '{ command = "{command}", type'),
        GROUPED + 'since = { Nothing = "1.0" }\n',
        GROUPED + "colour = 5\n",
        GROUPED.replace("[{ type", "[{}, { type"),
    ],
)
def test_a_wrong_section_is_not_loaded(toml: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        section(toml)
