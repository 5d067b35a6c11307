"""What becomes of an agent's requests while the daemon comes and goes: one answer each, and nothing done twice."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agtmux.bridge.local import Packaged
from agtmux.bridge.relay import Relay
from agtmux.bridge.server import packaged, written
from agtmux.bridge.tools import TOOLS

SHIPPED = Path(__file__).resolve().parents[3] / "resources" / "mcp" / "tools.json"
GREETING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}}


class Talk:
    def __init__(self) -> None:
        self.relay = Relay(Packaged())

    def ask(self, request_id: object, method: str, **params: Any) -> None:
        content = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        self.relay.from_agent(json.dumps(content).encode())

    def call(self, request_id: object, tool: str) -> None:
        self.ask(request_id, "tools/call", name=tool, arguments={})

    def tell(self, method: str, **params: Any) -> None:
        self.relay.from_agent(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def sent(self) -> list[Any]:
        messages, self.relay.to_daemon = [json.loads(each) for each in self.relay.to_daemon], []
        return messages

    def got(self) -> list[Any]:
        messages, self.relay.to_agent = [json.loads(each) for each in self.relay.to_agent], []
        return messages

    def reply(self, request_id: object, **result: Any) -> None:
        self.relay.from_daemon(json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}).encode())

    def connect(self) -> None:
        self.relay.is_hopeful = True
        self.relay.connected()


def greeted() -> Talk:
    talk = Talk()
    talk.connect()
    talk.ask(1, "initialize", **GREETING)
    talk.reply(1, protocolVersion="2025-06-18")
    talk.tell("notifications/initialized")
    assert [each["method"] for each in talk.sent()] == ["initialize", "notifications/initialized"]
    assert [each["id"] for each in talk.got()] == [1]
    return talk


def test_lines_pass_as_they_are() -> None:
    """orchestrator: JSON-RPC."""
    talk = greeted()
    line = b'{"jsonrpc":"2.0", "id":"a","method":"tools/call","params":{"name":"list_agents"} , "x":1}'
    talk.relay.from_agent(line)
    assert talk.relay.to_daemon == [line]
    answer = b'{ "id":"a", "result":{}, "jsonrpc":"2.0" }'
    talk.relay.from_daemon(answer)
    assert talk.relay.to_agent == [answer]
    assert not talk.relay.is_waiting


def test_a_new_connection_is_greeted_in_the_agents_name_before_anything_is_asked() -> None:
    """orchestrator: reconnecting."""
    talk = greeted()
    talk.call(2, "list_agents")
    talk.sent()
    talk.relay.lost()
    talk.call(3, "get_agent")
    assert (talk.sent(), talk.got()) == ([], [])
    talk.relay.connected()
    (again,) = talk.sent()
    assert again["method"] == "initialize" and again["params"] == GREETING and again["id"] not in (1, 2, 3)
    talk.call(4, "list_agents")
    assert talk.sent() == []
    talk.reply(again["id"], protocolVersion="2025-06-18")
    assert [each.get("id", each["method"]) for each in talk.sent()] == ["notifications/initialized", 2, 3, 4]
    for number in (3, 2, 4):
        talk.reply(number)
    assert [each["id"] for each in talk.got()] == [3, 2, 4]
    assert not talk.relay.is_waiting


def test_what_may_have_been_done_is_not_done_again() -> None:
    talk = greeted()
    talk.call(2, "a_tool_that_does_something")
    talk.sent()
    talk.relay.lost()
    (told,) = talk.got()
    assert told["id"] == 2 and told["result"]["isError"]
    assert told["result"]["content"][0]["text"].startswith("E_DELIVERY_UNCERTAIN")
    talk.relay.connected()
    talk.reply(talk.sent()[0]["id"])
    assert [each["method"] for each in talk.sent()] == ["notifications/initialized"]
    # It comes after all, and has been answered.
    talk.reply(2)
    assert talk.got() == []


@pytest.mark.parametrize("tool", ["read_messages", "wait_for_messages"])
def test_messages_that_were_being_fetched_when_the_daemon_died_are_uncertain_and_not_fetched_again(tool: str) -> None:
    talk = greeted()
    talk.call(2, tool)
    talk.sent()
    talk.relay.lost()
    (told,) = talk.got()
    assert told["result"]["content"][0]["text"].startswith("E_DELIVERY_UNCERTAIN")
    talk.relay.connected()
    talk.reply(talk.sent()[0]["id"])
    assert [each["method"] for each in talk.sent()] == ["notifications/initialized"]


def test_without_a_daemon_everything_is_answered_at_once() -> None:
    """orchestrator: error codes."""
    talk = Talk()
    talk.ask("one", "initialize", **GREETING)
    talk.ask(2, "tools/list")
    talk.call(3, "list_agents")
    talk.ask(4, "ping")
    talk.ask(5, "resources/list")
    told = talk.got()
    assert [each["id"] for each in told] == ["one", 2, 3, 4, 5]
    assert told[0]["result"]["protocolVersion"] == "2025-06-18"
    assert [tool["name"] for tool in told[1]["result"]["tools"]] == list(TOOLS)
    assert told[2]["result"]["isError"] and "agtmux up" in told[2]["result"]["content"][0]["text"]
    assert told[3]["result"] == {}
    assert told[4]["error"]["code"] == -32601
    assert set(told[1]["result"]) == {"tools"}
    # One comes up: it hears of the agent as if it had always been there.
    talk.connect()
    assert [each["method"] for each in talk.sent()] == ["initialize"]


def test_tools_are_told_while_a_daemon_is_waited_for_and_calls_wait() -> None:
    talk = greeted()
    talk.relay.lost()
    talk.ask(2, "tools/list")
    talk.call(3, "list_agents")
    assert [each["id"] for each in talk.got()] == [2]
    talk.relay.given_up()
    assert [each["id"] for each in talk.got()] == [3]


def test_a_daemon_that_takes_its_time_keeps_no_agent_waiting_for_words() -> None:
    talk = Talk()
    talk.connect()
    talk.ask(1, "initialize", **GREETING)
    talk.call(2, "list_agents")
    assert talk.relay.owes_words
    talk.relay.answer_words()
    assert [each["id"] for each in talk.got()] == [1]
    assert not talk.relay.owes_words and talk.relay.is_waiting
    # It has heard all the same, and says it again when nobody asks any more, or asks something else by that number.
    talk.call(1, "get_agent")
    assert [each["method"] for each in talk.sent()] == ["initialize", "tools/call", "tools/call"]
    talk.reply(1, protocolVersion="2025-06-18")
    talk.reply(2)
    talk.reply(1, content=[])
    assert [(each["id"], each["result"]) for each in talk.got()] == [(2, {}), (1, {"content": []})]


def test_what_the_agent_takes_back_is_not_asked() -> None:
    talk = greeted()
    talk.relay.lost()
    talk.call(2, "list_agents")
    talk.tell("notifications/cancelled", requestId=2)
    talk.relay.connected()
    talk.reply(talk.sent()[0]["id"])
    assert [each["method"] for each in talk.sent()] == ["notifications/initialized"]


def test_what_the_agent_takes_back_while_the_daemon_is_greeted_is_not_asked() -> None:
    talk = greeted()
    talk.relay.lost()
    talk.call(2, "send_message")
    talk.call(3, "list_agents")
    talk.relay.connected()
    talk.tell("notifications/cancelled", requestId=2)
    talk.reply(talk.sent()[0]["id"])
    assert [each.get("id") for each in talk.sent()] == [None, 3]


def test_what_was_surely_not_asked_is_not_uncertain() -> None:
    talk = greeted()
    talk.relay.lost()
    talk.call(2, "send_message")
    # Found and lost again before it has greeted back.
    talk.relay.connected()
    talk.relay.lost()
    assert talk.got() == []
    talk.relay.connected()
    talk.reply(talk.sent()[0]["id"])
    assert [each.get("id") for each in talk.sent()] == [None, 2]
    talk.relay.lost()
    assert "E_DELIVERY_UNCERTAIN" in talk.got()[0]["result"]["content"][0]["text"]


def test_what_the_agent_takes_back_is_owed_no_answer_and_not_asked_again() -> None:
    talk = greeted()
    talk.call(2, "list_agents")
    talk.call(3, "wait_for_messages")
    for request_id in (2, 3):
        talk.tell("notifications/cancelled", requestId=request_id)
    assert [each["method"] for each in talk.sent()] == ["tools/call"] * 2 + ["notifications/cancelled"] * 2
    # The daemon answers no call that was cancelled.
    assert not talk.relay.is_waiting
    talk.relay.lost()
    talk.relay.connected()
    talk.reply(talk.sent()[0]["id"])
    assert [each["method"] for each in talk.sent()] == ["notifications/initialized"] and talk.got() == []


@pytest.mark.parametrize(
    ("request_id", "method", "told"), [(7, 5, 7), ("7", [], "7"), ([7], "tools/list", None), (True, "ping", None)]
)
def test_what_is_no_request_is_answered_as_that(request_id: object, method: object, told: object) -> None:
    """orchestrator: error codes, validation."""
    talk = greeted()
    talk.relay.from_agent(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method}).encode())
    assert [(each["id"], each["error"]["code"]) for each in talk.got()] == [(told, -32600)]
    assert talk.sent() == [] and not talk.relay.is_waiting


@pytest.mark.parametrize("line", [b"{", b"[]", b"3", b"\xff", b"[" * 100_000])
def test_what_is_no_message_is_answered_as_that(line: bytes) -> None:
    """orchestrator: error codes, validation."""
    talk = greeted()
    talk.relay.from_agent(line)
    assert [each["error"]["code"] for each in talk.got()] == [-32700]
    assert talk.sent() == []


def test_ids_of_all_kinds_are_kept_apart() -> None:
    talk = greeted()
    for request_id in (7, "7", 7.5):
        talk.call(request_id, "list_agents")
    for request_id in ("7", 7.5, 7):
        talk.reply(request_id)
    assert [each["id"] for each in talk.got()] == ["7", 7.5, 7]


def test_what_is_packaged_is_what_the_daemon_says() -> None:
    assert SHIPPED.read_text("utf-8") == written(asyncio.run(packaged())), "run `make schemas`"


def test_every_tool_says_what_it_takes_and_gives() -> None:
    """orchestrator: tools."""
    tools = json.loads(SHIPPED.read_text("utf-8"))["results"]["tools/list"]["tools"]
    for tool in tools:
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object" and "$ref" not in json.dumps(schema)
        assert len(tool["description"]) < 400
        assert tool["annotations"]["readOnlyHint"] is TOOLS[tool["name"]].is_read_only
    agent = next(tool for tool in tools if tool["name"] == "list_agents")["outputSchema"]["properties"]["agents"]
    assert {"ref", "title", "branch", "state", "is_you"} <= set(agent["items"]["properties"])
