"""The MCP server's refusals: in words for agents, and with the number that programs sort errors by."""

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest

import agtmux
from agtmux.bridge import local, sessions
from agtmux.bridge.caller import Caller
from agtmux.bridge.server import serve
from agtmux.bridge.tools import Toolbox
from agtmux.domain.errors import JSONRPC_ERRORS, AgtmuxError, ErrorCode

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
PATIENCE = 10.0


class Failing:
    """In place of the tools: every call ends like this."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def call(self, name: str, caller: Caller, arguments: object) -> None:
        raise self._error


async def refused(error: Exception) -> Any:
    """The result of a call that fails so."""
    params = {"name": "send_message", "arguments": {}, "_meta": META}
    asked = [json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})]
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def receive() -> str | None:
        if asked:
            return asked.pop()
        await told
        return None

    async def send(text: str) -> None:
        told.set_result(text)

    async with asyncio.timeout(PATIENCE):
        await serve(receive, send, cast(Toolbox, Failing(error)), lambda: Caller(None))
    return json.loads(told.result())["result"]


@pytest.mark.parametrize(
    ("code", "number", "name"),
    [
        (ErrorCode.REF_NOT_FOUND, -32000, "Agent not found"),
        (ErrorCode.RUNTIME_STALE, -32000, "Agent not found"),
        (ErrorCode.TIMEOUT, -32001, "Timeout"),
        (ErrorCode.TARGET_UNREACHABLE, -32001, "Timeout"),
        (ErrorCode.LIMIT_RATE, -32002, "Rate limit"),
        (ErrorCode.LIMIT_PANES, -32002, "Rate limit"),
        (ErrorCode.USAGE, -32602, "Invalid params"),
        (ErrorCode.TOO_LARGE, -32602, "Invalid params"),
        (ErrorCode.FORBIDDEN, -32003, "Forbidden"),
        (ErrorCode.PRECONDITION_FAILED, -32006, "Precondition failed"),
        (ErrorCode.STORE, -32020, "Database failed"),
    ],
)
async def test_every_refusal_has_its_number_its_name_and_its_details(code: ErrorCode, number: int, name: str) -> None:
    """orchestrator: error codes."""
    result = await refused(AgtmuxError(code, "wait for a while", {"retry_after_seconds": 7}))
    assert result["isError"] and result["content"][0]["text"] == f"{code}: wait for a while"
    about = {"code": number, "message": name, "data": {"code": code, "details": {"retry_after_seconds": 7}}}
    assert result["_meta"]["dev.agtmux/error"] == about


async def test_what_nobody_foresaw_is_an_internal_error() -> None:
    """orchestrator: error codes."""
    result = await refused(ZeroDivisionError("of ours"))
    assert result["isError"] and result["content"][0]["text"].startswith("E_INTERNAL")
    assert "of ours" not in json.dumps(result)
    assert result["_meta"]["dev.agtmux/error"]["code"] == -32603


@pytest.mark.parametrize("code", ErrorCode)
async def test_only_faults_of_agtmux_itself_are_internal_errors(code: ErrorCode) -> None:
    """orchestrator: error codes. Requirements review, bug 5."""
    about = (await refused(AgtmuxError(code, "no")))["_meta"]["dev.agtmux/error"]
    assert (about["code"], about["message"]) == JSONRPC_ERRORS[code]
    assert about["data"]["code"] == code
    assert (about["code"] == -32603) == (code is ErrorCode.INTERNAL)


def test_a_number_outside_the_protocols_groups_is_one_codes_own() -> None:
    protocol = {-32602, -32000, -32001, -32002}
    own = [number for number, _ in JSONRPC_ERRORS.values() if number not in protocol]
    assert len(own) == len(set(own)) and set(JSONRPC_ERRORS) == set(ErrorCode)
    # JSON-RPC keeps these for servers.
    assert all(-32099 <= number <= -32000 for number in own if number != -32603)
    # One name to a number, and one number to a name.
    assert (
        len(set(JSONRPC_ERRORS.values()))
        == len({name for _, name in JSONRPC_ERRORS.values()})
        == len(set(own) | protocol)
    )


def test_a_bridge_without_a_daemon_refuses_with_the_same_numbers() -> None:
    assert {ErrorCode(code): number for code, number in local.NUMBERS.items()}.items() <= JSONRPC_ERRORS.items()
    for text in (local.AWAY, local.OUT_OF_REACH):
        assert local.refused(text)["_meta"]["dev.agtmux/error"]["code"] == -32022
    old = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_agents"}}
    for answer in (local.uncertain(old), local.too_long(old, 7)):
        assert answer["result"]["_meta"]["dev.agtmux/error"]["code"] in (-32012, -32602)


def test_numbers_never_change() -> None:
    """Programs sort by them. A new code gets the next number; none is used again."""
    told = {code: number for code, (number, _) in JSONRPC_ERRORS.items()}
    kept = {
        "E_FORBIDDEN": -32003,
        "E_UNAUTHORIZED": -32004,
        "E_UNSUPPORTED": -32005,
        "E_PRECONDITION_FAILED": -32006,
        "E_SNAPSHOT_EXPIRED": -32007,
        "E_IDEMPOTENCY_CONFLICT": -32008,
        "E_PID_UNAVAILABLE": -32009,
        "E_DIALOG_OPEN": -32010,
        "E_DRAFT_PRESENT": -32011,
        "E_DELIVERY_UNCERTAIN": -32012,
        "E_AGENT_FAILED": -32013,
        "E_TARGET_NOT_FOUND": -32014,
        "E_TARGET_EXISTS": -32015,
        "E_CURSOR_INVALID": -32016,
        "E_CURSOR_EXPIRED": -32017,
        "E_EVENT_INVALID": -32018,
        "E_CONFIG": -32019,
        "E_STORE": -32020,
        "E_ALREADY_RUNNING": -32021,
        "E_DAEMON_UNAVAILABLE": -32022,
    }
    assert kept == {code: told[ErrorCode(code)] for code in kept}


# Modules that a tool call can end in: what they raise reaches an agent.
REACHED = ("bridge", "messages", "worktrees", "actions", "observe", "domain", "targets", "store")


def test_no_refusal_that_a_tool_can_meet_is_raised_as_internal() -> None:
    """orchestrator: error codes. `E_INTERNAL` is for what nobody foresaw, so no module raises it for a refusal."""
    catches_all = {("domain", "errors.py"), ("bridge", "server.py"), ("observe", "ingest.py")}
    package = Path(agtmux.__file__).parent
    found = {
        f"{path.relative_to(package)}:{number}"
        for folder in REACHED
        for path in (package / folder).rglob("*.py")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if "ErrorCode.INTERNAL" in line and (folder, path.name) not in catches_all
    }
    assert found == set()


GARBAGE = [
    *("(", "[]", "null", "1", '"x"', "{}", "\x00", "[" * 100_000, "[" * 5_000 + '"\\u0041"', '{"id": {}}'),
    *('{"jsonrpc": "2.0", "id": 1, "method": 5}', '{"jsonrpc": "1.0", "id": 3, "method": "ping"}', "1" * 5_000),
]


@pytest.mark.asyncio
@pytest.mark.parametrize("line", GARBAGE, ids=range(len(GARBAGE)))
async def test_garbage_is_answered_as_what_it_is_and_ends_no_session(
    line: str, caplog: pytest.LogCaptureFixture
) -> None:
    lines, told, is_over = [line] * 50 + ['{"jsonrpc": "2.0", "id": "after", "method": "ping"}'], [], asyncio.Event()

    async def receive() -> str | None:
        if lines:
            return lines.pop(0)
        await is_over.wait()
        return None

    async def send(text: str) -> None:
        told.append(json.loads(text))
        if told[-1]["id"] == "after":
            is_over.set()

    nobody: Any = None
    assert await sessions.serve(receive, send, nobody, nobody, lambda error: False)
    assert len(told) == 51
    assert {answer["error"]["code"] for answer in told[:-1]} <= {-32700, -32600}
    ours = [record for record in caplog.records if record.name.startswith("agtmux")]
    assert len(ours) <= 1 and not any(record.exc_info for record in ours)
