"""What agents' own files say, and whose they are."""

import json

import pytest

from agtmux.agents.contract import SessionFile
from agtmux.agents.registry import Registry
from agtmux.agents.sessions import SessionFiles, SessionRule

REGISTRY = Registry.load()


def said(agent: str, text: str) -> str | None:
    status = REGISTRY.read_file(agent, SessionFile("/x/1.json", (), text))[1]
    return None if status is None else f"{status.state}/{status.reason_code}"


def a_log(*types: str | dict) -> str:
    lines = ({"type": each, "data": {}} if isinstance(each, str) else each for each in types)
    return "\n".join(json.dumps(line) for line in lines) + "\n"


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"status": "busy"}, "running/session_file"),
        ({"status": "shell"}, "running/background_tasks"),
        ({"status": "idle"}, "idle/session_file"),
        ({"status": "waiting", "waitingFor": "permission prompt"}, "waiting_approval/session_file"),
        ({"status": "waiting", "waitingFor": "input needed"}, "waiting_input/session_file"),
        ({"status": "waiting", "waitingFor": "something new"}, None),
        ({"status": "waiting", "waitingFor": "dialog open"}, None),
        ({"status": "dreaming"}, None),
        ({"pid": 7}, None),
        ([], None),
        ("busy", None),
    ],
)
def test_a_registry_of_one_object_says_what_its_status_says(entry: object, says: str | None) -> None:
    assert said("claude", json.dumps(entry)) == says


@pytest.mark.parametrize("text", ["", "{", '{"status": "bu', "\x00\xff", "[" * 5_000, '{"status": 1e999}'])
def test_what_is_half_written_or_nonsense_says_nothing(text: str) -> None:
    assert said("claude", text) is None
    assert said("copilot", text) is None


TOOLS = {"type": "assistant.message", "data": {"toolRequests": [{"toolCallId": "1"}]}}
LAST = {"type": "assistant.message", "data": {"toolRequests": []}}
ASK = {"type": "tool.execution_start", "data": {"toolName": "ask_user"}}
CANCELLED = {"type": "permission.completed", "data": {"result": {"kind": "cancelled"}}}
OWN_COMMAND = {"type": "tool.execution_complete", "data": {"isUserRequested": True}}
OF_SUBAGENT = {"type": "assistant.message", "data": {"toolRequests": [], "parentToolCallId": "1"}}


@pytest.mark.parametrize(
    ("log", "says"),
    [
        (("session.start",), "idle/session_file"),
        (("session.start", "user.message", "assistant.turn_start"), "running/session_file"),
        (("user.message", TOOLS, "tool.execution_start"), "running/session_file"),
        (("user.message", TOOLS, "tool.execution_start", "permission.requested"), "waiting_approval/session_file"),
        (("permission.requested", "permission.completed"), "running/session_file"),
        (("permission.requested", "abort", CANCELLED), "idle/interrupted"),
        (("permission.requested", CANCELLED, "assistant.turn_end", "abort"), "idle/interrupted"),
        (("user.message", ASK), "waiting_input/session_file"),
        (("user.message", ASK, "tool.execution_complete"), "running/session_file"),
        # A turn's end is not the end as long as there are tools to call.
        (("assistant.turn_start", TOOLS, "tool.execution_complete", "assistant.turn_end"), "running/session_file"),
        (("assistant.turn_start", LAST, "assistant.turn_end"), "completed/session_file"),
        (("assistant.turn_start", LAST, "assistant.turn_end", "hook.start", "hook.end"), "completed/session_file"),
        (("assistant.turn_start", "assistant.turn_end", "session.error"), "error/session_file"),
        (("tool.execution_start", OF_SUBAGENT), "running/session_file"),
        # A command that the user runs beside the agent is no turn.
        (
            ("assistant.turn_start", LAST, "assistant.turn_end", "tool.user_requested", OWN_COMMAND),
            "completed/session_file",
        ),
        (("something.new",), None),
    ],
)
def test_a_log_says_what_its_last_meaningful_line_says(log: tuple, says: str | None) -> None:
    assert said("copilot", a_log(*log)) == says
    # A line that is being written says nothing yet.
    assert said("copilot", a_log(*log) + '{"type": "abo') == says


def test_a_file_is_known_by_its_own_name_or_by_one_beside_it() -> None:
    own = SessionFiles("~/x", "*.json", "{pid}.json")
    # Others of the same kind lie beside it, and are others'.
    assert own.owners("/x/123.json", ("4.json.bak", "5.json", "123.json")) == {123}
    assert own.owners("/x/latest.json", ("lock",)) == frozenset()
    assert own.owners("/x/0.json", ()) == own.owners("/x/99999999999.json", ()) == frozenset()
    beside = SessionFiles("~/x", "*/log", "inuse.{pid}.lock", 1)
    assert beside.owners("/x/a/log", ("inuse.7.lock", "inuse.8.lock", "inuse.x.lock", "7")) == {7, 8}


def test_the_first_rule_that_fits_decides_and_one_without_a_word_passes_on() -> None:
    rules = [SessionRule({"kind": "noise"}), SessionRule({"kind": True}, "running")]
    files = SessionFiles("~/x", "*", "{pid}", form="lines", rule=rules)
    status = files.read('{"kind": "work"}\n{"kind": "noise"}\n')
    assert status is not None and status.state == "running"
    assert files.read('{"kind": "noise"}\n') is None
