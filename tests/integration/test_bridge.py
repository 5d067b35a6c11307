"""The bridge as an agent has it: `agtmux-mcp` on standard input and output, a real daemon, real clients."""

import asyncio
import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from agtmux.bridge.tools import TOOLS
from support.asking import GREETING, Asker, BridgeProcess
from support.home import COMMANDS, Home, wait_until

BRIDGE = str(COMMANDS / "agtmux-mcp")


def parameters(home: Home, **env: str) -> StdioServerParameters:
    return StdioServerParameters(command=BRIDGE, args=["--socket", str(home.socket)], env=home.env | env)


class Bridge(BridgeProcess):
    """The process, spoken to as agents of before 2026 do."""

    def __init__(self, home: Home, *words: str) -> None:
        command = [BRIDGE, *(words or ("--socket", str(home.socket)))]
        super().__init__(home.spawn(*command, stdin=subprocess.PIPE))


def watched(home: Home, agent: str = "claude") -> str:
    pane = home.pane(agent)
    wait_until(lambda: home.panes().get(pane, {}).get("agent_type") == agent, "the pane")
    return pane


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_lists_agents_and_looks_at_one(home: Home, mode: Any) -> None:
    """gwt FR-001, FR-002, FR-007, FR-008; orchestrator: JSON-RPC, tools."""
    home.start()
    first, second = watched(home, "claude"), watched(home, "codex")
    async with Client(parameters(home), mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools][:2] == ["list_agents", "get_agent"]
        listed = await client.call_tool("list_agents", {})
        assert not listed.is_error and listed.structured_content is not None
        agents = {agent["ref"]: agent for agent in listed.structured_content["agents"]}
        assert {ref.rpartition("/")[2] for ref in agents} == {first, second}
        assert {agent["agent_type"] for agent in agents.values()} == {"claude", "codex"}
        # This test is in no pane.
        assert listed.structured_content["you"] is None and "pane" in listed.structured_content["you_unknown"]
        # gwt S1.2: nothing shows a session of theirs.
        assert {agent["session_id"] for agent in agents.values()} == {None}
        assert all("worktree_path" in agent for agent in agents.values())
        for name in (
            next(iter(agents)),
            agents[next(iter(agents))]["runtime_id"],
            next(iter(agents)).rpartition("/")[2],
        ):
            found = await client.call_tool("get_agent", {"agent": name})
            assert found.structured_content is not None
            assert found.structured_content["agent"] == agents[next(iter(agents))]
        only = await client.call_tool("list_agents", {"agent_type": "codex"})
        assert only.structured_content is not None
        assert [agent["agent_type"] for agent in only.structured_content["agents"]] == ["codex"]


async def test_what_cannot_be_done_says_what_can(home: Home) -> None:
    """gwt FR-008, FR-015: there is no tool for keys."""
    home.start()
    plain = home.pane(None)
    wait_until(lambda: plain in home.panes(), "the pane")
    async with Client(parameters(home)) as client:
        for tool, arguments, code, hint in (
            ("get_agent", {"agent": "nobody"}, "E_", "list_agents"),
            ("get_agent", {"agent": "pane:host/work/@9/%99"}, "E_REF_NOT_FOUND", "list_agents"),
            ("get_agent", {"agent": "f" * 64}, "E_RUNTIME_STALE", "list_agents"),
            ("get_agent", {"agent": plain}, "E_REF_NOT_FOUND", "list_agents"),
            ("get_agent", {"agent": "you"}, "E_NOT_FOUND", "does not run in a pane"),
            ("get_agent", {"agent": 3}, "E_USAGE", "get_agent"),
            ("get_agent", {"agent": "%1", "from": "me"}, "E_USAGE", "from"),
            ("list_agents", {"state": "busy"}, "E_USAGE", "waiting_approval"),
            ("list_agents", {"target": "vm9"}, "E_TARGET_NOT_FOUND", "host"),
            ("send_keys", {}, "E_USAGE", "list_agents"),
        ):
            refused = await client.call_tool(tool, arguments)
            text = refused.content[0].text  # type: ignore[union-attr]
            assert refused.is_error and text.startswith(code) and hint in text, (tool, arguments, text)


def asker(home: Home, name: str) -> Asker:
    """Somebody in a pane, who asks who is there, over and over."""
    return Asker(home.folder, name, [BRIDGE, "--socket", str(home.socket)])


def test_a_caller_is_told_who_it_is_by_its_process_and_not_by_its_word(home: Home) -> None:
    home.start()
    other = watched(home, "codex")
    # It claims to be in the other pane, in every way in which a process may say so.
    lie = f"env TMUX_PANE={shlex.quote(other)} AGTMUX_PANE={shlex.quote(other)} "
    liar = asker(home, "liar")
    pane = home.pane("claude", lie + liar.command)
    wait_until(lambda: liar.you.get("agent_type") == "claude", "who it is")
    told = liar.told
    assert told["you"]["ref"].endswith(f"/{pane}") and told["you_unknown"] is None
    assert [agent["ref"] for agent in told["agents"] if agent["is_you"]] == [told["you"]["ref"]]
    assert told["you"]["runtime_id"] == home.panes()[pane]["runtime_id"]


def test_who_left_its_pane_is_nobody_rather_than_somebody(home: Home) -> None:
    home.start()
    stray = asker(home, "stray")
    # A session and a parent of its own, as a service that an agent once started.
    pane = home.pane("claude", f"sh -c 'setsid -f {stray.command} & exec sleep 3600'")
    wait_until(lambda: "agents" in stray.told, "an answer")
    wait_until(lambda: stray.told["agents"] and not stray.you, "its place to be known")
    assert [agent["ref"].rpartition("/")[2] for agent in stray.told["agents"]] == [pane]
    assert stray.told["you_unknown"]


def test_a_service_of_several_panes_is_nobody_even_when_it_is_young(home: Home) -> None:
    """One agent's program serves several panes from one process without a terminal."""
    home.start()
    shared = asker(home, "shared")
    # Waited for by what is in the pane, so that the way up leads there, and started with it.
    pane = home.pane("codex", f"setsid -w {shared.command}")
    wait_until(lambda: any(each["ref"].endswith(f"/{pane}") for each in shared.told.get("agents", [])), "the pane")
    assert shared.told["you"] is None and "several panes" in shared.told["you_unknown"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_daemon_that_comes_back_is_not_noticed(home: Home, number: int) -> None:
    """orchestrator: reconnecting."""
    pane = home.pane()
    daemon = home.start()
    bridge = Bridge(home)
    bridge.greet()
    wait_until(lambda: bridge.call("list_agents")["structuredContent"]["agents"], "the agent")
    daemon.send_signal(number)
    daemon.communicate(timeout=20)
    # Asked while there is none, answered when there is.
    bridge.send("tools/call", name="get_agent", arguments={"agent": pane})
    # Which tools there are is known without one.
    assert len(bridge.ask("tools/list")["result"]["tools"]) == len(TOOLS)
    home.start()
    answer = bridge.read()
    assert answer["result"]["structuredContent"]["agent"]["ref"].endswith(pane), answer
    assert not bridge.call("list_agents")["isError"]
    assert bridge.end()[0] == 0


def test_without_a_daemon_a_tool_says_what_to_do(home: Home) -> None:
    bridge = Bridge(home)
    assert bridge.greet()["result"]["serverInfo"]["name"] == "agtmux"
    assert len(bridge.ask("tools/list")["result"]["tools"]) == len(TOOLS)
    refused = bridge.call("list_agents")
    assert refused["isError"] and "agtmux up" in refused["content"][0]["text"]
    # One is started: the same agent, the same bridge.
    home.start()
    assert bridge.call("list_agents")["structuredContent"]["agents"] == []
    assert bridge.end()[0] == 0


def test_long_lines_and_wrong_ones_hurt_nobody(home: Home) -> None:
    """orchestrator: JSON-RPC, validation, error codes."""
    home.start()
    bridge = Bridge(home)
    bridge.greet()
    bridge.write("not a message")
    assert bridge.read()["error"]["code"] == -32700
    long = bridge.call("get_agent", agent="x" * 2_000_000)
    assert long["isError"] and "E_USAGE" in long["content"][0]["text"]
    assert len(long["content"][0]["text"]) < 1_000
    assert not bridge.call("list_agents")["isError"]


def test_what_was_asked_before_the_end_is_answered(home: Home) -> None:
    home.start()
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": GREETING},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_agents"}},
    ]
    text = "\n".join(map(json.dumps, lines)) + "\n"
    done = home.run("--socket", str(home.socket), command="agtmux-mcp", input=text, stdin=None)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2], done
    # The same by its other name, which finds the socket by itself.
    done = home.run("mcp", "serve", input=text, stdin=None)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2], done


def test_a_socket_that_asks_for_nothing_known_is_refused(home: Home) -> None:
    """gwt FR-001."""
    home.start()
    upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    answer = home.ask("GET", "/v1/ws", headers=upgrade | {"sec-websocket-key": "YWd0bXV4IG1jcCByZWxheQ=="})
    assert (answer.status, answer.error["code"]) == (400, "E_USAGE")
    assert home.ask("GET", "/v1/ws").status == 404


def test_a_session_lasts_and_the_daemon_ends_in_time(home: Home) -> None:
    """orchestrator: idle time-out. A line is never dropped for being silent."""
    daemon = home.start()
    bridge = Bridge(home)
    bridge.greet()
    # Longer than a request may take to come.
    time.sleep(6)
    assert bridge.process.poll() is None and not bridge.call("list_agents")["isError"]
    # The same one: a bridge would not let on that it had to connect again.
    assert len([line for line in home.log_lines() if "/v1/ws" in line["message"]]) == 1
    # A session that had to be cut off would be in the log.
    assert home.end(daemon) == ""
    assert [line for line in home.log_lines() if line["level"] in ("error", "warning")] == []


async def test_many_sessions_at_once(home: Home) -> None:
    home.start()
    pane = watched(home)

    async def one() -> str:
        async with Client(parameters(home)) as client:
            found = await client.call_tool("get_agent", {"agent": pane})
            assert found.structured_content is not None
            return str(found.structured_content["pane_id"])

    assert await asyncio.gather(*(one() for _ in range(8))) == [pane] * 8


def test_the_library_is_loaded_with_the_first_bridge_and_not_before(home: Home) -> None:
    daemon = home.start()
    maps = Path(f"/proc/{daemon.pid}/maps")
    if not maps.exists():
        pytest.skip("it takes /proc to see what a process has loaded")
    assert "pydantic_core" not in maps.read_text()
    bridge = Bridge(home)
    bridge.greet()
    # It may be greeted by the bridge itself, which waits for no daemon.
    wait_until(lambda: "pydantic_core" in maps.read_text(), "the library")
    assert "pydantic_core" not in Path(f"/proc/{bridge.process.pid}/maps").read_text()


def test_the_process_that_agents_start_imports_next_to_nothing(home: Home) -> None:
    def loaded(*words: str) -> set[str]:
        command = [sys.executable, "-X", "importtime", "-m", *words]
        done = subprocess.run(command, env=home.env, input="", capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}

    # `-m` itself needs some, and so does an editable install.
    own = loaded("agtmux.bridge.main", "--socket", str(home.socket)) - loaded("this")
    assert "agtmux.bridge.relay" in own
    dear = {"asyncio", "typing", "socket", "subprocess", "websockets", "mcp", "msgspec", "pathlib", "logging", "ssl"}
    assert not dear & own
