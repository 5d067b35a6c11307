"""A chat session as the daemon shows it: listed like a pane, answered through the session, gone with its process.

The session is a real one in this process, on its real socket; only the agent in it is a puppet.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from typing import Any
from urllib.parse import quote

from websockets.asyncio.client import unix_connect
from websockets.typing import Subprotocol

from agtmux.chat.engine import Request
from support.chat import ID, ChatClient, Sitting, sitting
from support.home import COMMANDS, PATIENCE, Home, wait_until
from support.talking import Talker
from support.terminal import Terminal, terminals

REF = f"%{os.getpid()}"


def shown(home: Home) -> dict[str, Any] | None:
    return home.panes().get(REF)


async def expect(home: Home, state: str) -> dict[str, Any]:
    def there() -> dict[str, Any] | None:
        item = shown(home)
        return item if item is not None and item["state"] == state else None

    return await asyncio.to_thread(wait_until, there, f"{state}, not {shown(home)}")


async def command(home: Home, *words: str) -> tuple[int, Any, str]:
    done = await asyncio.to_thread(home.run, *words, "--json")
    return done.returncode, json.loads(done.stdout or "null"), done.stderr


async def test_a_session_is_listed_with_what_it_does_and_asks(home: Home) -> None:
    home.start()
    async with sitting(home.folder, daemon=home.socket) as here:
        item = await expect(home, "idle")
        assert item["identity"]["target"] == "chat"
        assert (item["agent_type"], item["agent_version"], item["cwd"]) == ("claude", "2.1.325", str(home.folder))
        assert (item["source"], item["confidence"]) == ("wrapper", "high")
        here.session.say("wait for it")
        assert (await expect(home, "running"))["title"] == "wait for it"
        await here.session.abort()
        assert (await expect(home, "idle"))["reason_code"] == "interrupted"
        here.session.say("ask make deploy")
        asked = (await expect(home, "waiting_approval"))["attention"]
        assert (asked["kind"], asked["summary"], asked["fingerprint"]) == ("approval", "make deploy", "r1")
        here.session.approve("r1")
        await expect(home, "completed")
        here.session.say("question Which colour?")
        asked = (await expect(home, "waiting_input"))["attention"]
        assert (asked["kind"], asked["summary"], asked["options"]) == ("question", "Which colour?", ["Red", "Blue"])
        here.session.deny("q1")
        await expect(home, "completed")
        here.session.say("fail the disk is full")
        assert (await expect(home, "error"))["attention"]["summary"] == "the disk is full"
    await asyncio.to_thread(wait_until, lambda: shown(home) is None, "its end")
    assert [target["name"] for target in home.ask("GET", "/v1/targets").json["items"]] == ["host"]


async def test_a_request_that_is_too_long_to_be_reported_whole_takes_a_second_step(home: Home) -> None:
    home.start()
    async with sitting(home.folder, daemon=home.socket) as here:
        await expect(home, "idle")
        here.session.say(f"ask echo {'x ' * 2_500}; touch x")
        asked = (await expect(home, "waiting_approval"))["attention"]
        assert (asked["whole"], asked["incomplete_reason"]) == (False, "too_long")
        status, _, error = await command(home, "approve", REF)
        assert status == 4 and "too long" in error
        status, told, _ = await command(home, "approve", REF, "--partial")
        assert (status, told["result_code"]) == (0, "delivered")
        await expect(home, "completed")


async def test_the_session_answers_what_is_asked_of_it_by_commands(home: Home) -> None:
    home.start()
    async with sitting(home.folder, daemon=home.socket) as here:
        await expect(home, "idle")
        status, told, _ = await command(home, "send", REF, "--text", "ask make deploy", "--enter")
        assert (status, told["result_code"]) == (0, "delivered")
        await expect(home, "waiting_approval")

        # A text is no approval, and an answer to another request is none to this.
        status, told, _ = await command(home, "send", REF, "--text", "yes", "--enter")
        assert (status, told["error"]["code"]) == (4, "E_DIALOG_OPEN")
        status, told, _ = await command(home, "approve", REF, "--if-dialog", "r0")
        assert (status, told["error"]["code"]) == (4, "E_PRECONDITION_FAILED")
        assert "r1" in here.session.pending

        status, told, _ = await command(home, "approve", REF)
        assert (status, told["question"]) == (0, "make deploy")
        await expect(home, "completed")
        status, told, _ = await command(home, "approve", REF)
        assert (status, told["error"]["code"]) == (4, "E_PRECONDITION_FAILED")

        here.session.say("ask rm -rf /")
        await expect(home, "waiting_approval")
        status, told, _ = await command(home, "deny", REF, "--reason", "not this one")
        assert status == 0
        await expect(home, "completed")
        assert '"reason":"not this one"' in lines(here)

        here.session.say("question Which colour?")
        await expect(home, "waiting_input")
        status, told, _ = await command(home, "approve", REF)
        assert (status, told["error"]["code"]) == (4, "E_PRECONDITION_FAILED")
        assert (await command(home, "send", REF, "--text", "Green", "--enter"))[0] == 0
        await expect(home, "completed")
        assert "Green" in lines(here)

        here.session.say("wait")
        await expect(home, "running")
        done = await asyncio.to_thread(home.run, "kill", REF, "--yes", "--json")
        assert done.returncode == 0, done.stdout
        assert (await expect(home, "idle"))["reason_code"] == "interrupted"

        _, told, _ = await command(home, "view-output", REF)
        assert "› question Which colour?" in told["output"]
        _, told, _ = await command(home, "attach", REF, "--print")
        assert told["argv"][-3:] == ["chat", "--attach", str(here.path)]
        for words in (["--key", "y"], ["--text", "no enter"]):
            status, told, _ = await command(home, "send", REF, *words)
            assert (status, told["error"]["code"]) == (1, "E_UNSUPPORTED")


def lines(here: Sitting) -> str:
    return b"".join(kept.line for kept in here.session.journal.after(0, 100_000)).decode()


async def test_of_the_terminal_and_agtmux_the_first_answer_wins(home: Home) -> None:
    home.start()
    async with sitting(home.folder, daemon=home.socket) as here:
        await expect(home, "idle")
        here.session.say("twice touch")
        item = await expect(home, "waiting_approval")
        asked = {"actor": "test", "ref": item["ref"], "if_runtime": item["runtime_id"], "if_dialog": "r1"}
        with await asyncio.to_thread(ChatClient, here.path) as client:
            client.send("deny", request_id="r1", reason="mine")
            await asyncio.to_thread(client.until, "answered")
            answer = await asyncio.to_thread(home.ask, "POST", "/v1/actions/approve", asked | {"request_ref": "late"})
            assert answer.status == 412, answer
            assert list(here.session.pending) == ["r2"]


async def test_a_session_comes_again_when_the_daemon_does(home: Home) -> None:
    first = home.start()
    async with sitting(home.folder, daemon=home.socket) as here:
        before = await expect(home, "idle")
        here.session.say("ask make deploy")
        await expect(home, "waiting_approval")
        await asyncio.to_thread(home.end, first)
        second = home.start()
        after = await expect(home, "waiting_approval")
        assert after["ref"] == before["ref"] and after["attention"]["summary"] == "make deploy"
        # Killed, it leaves rows behind that nobody vouches for.
        os.kill(second.pid, signal.SIGKILL)
        await asyncio.to_thread(second.communicate)
        third = home.start()
        await expect(home, "waiting_approval")
        await asyncio.to_thread(home.end, third)
    home.start()
    assert home.panes() == {}


async def test_a_session_without_a_daemon_works_alone(home: Home) -> None:
    async with sitting(home.folder, daemon=home.socket) as here:
        with await asyncio.to_thread(ChatClient, here.path) as client:
            client.send("message", text="say hello")
            await asyncio.to_thread(client.until, "done")
        home.start()
        assert (await expect(home, "completed"))["title"] == "say hello"


SESSION = """
import asyncio, pathlib, sys
from support.chat import sitting

async def main():
    async with sitting(pathlib.Path(sys.argv[1]), daemon=pathlib.Path(sys.argv[2])) as here:
        here.session.say("ask make deploy")
        await asyncio.Event().wait()

asyncio.run(main())
"""


def started(home: Home, name: str) -> int:
    folder = home.folder / name
    folder.mkdir()
    tests = str(COMMANDS.parents[1] / "tests")
    return home.spawn(sys.executable, "-c", SESSION, folder, home.socket, env={"PYTHONPATH": tests}).pid


def test_one_that_is_killed_is_gone_at_once_and_the_other_is_not_touched(home: Home) -> None:
    home.configure("[launch]\ntrust_outside = true\n")
    home.start()
    one, two = started(home, "one"), started(home, "two")
    for pid in (one, two):
        wait_until(lambda pid=pid: home.state_of(f"%{pid}") == "waiting_approval", "its request")
    before = home.panes()[f"%{two}"]
    os.kill(one, signal.SIGKILL)
    wait_until(lambda: f"%{one}" not in home.panes(), "its end")
    assert home.panes()[f"%{two}"] == before
    done = home.run("stop", f"%{two}", "--yes", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["result_code"] == "ended", done.stdout
    wait_until(lambda: home.panes() == {}, "its end")


def test_the_pane_that_a_session_runs_in_is_no_second_agent(home: Home) -> None:
    agent = "exec -a claude sleep 600"
    alone = home.pane(agent=None, command=f"bash -c '{agent}'")
    below = home.pane(agent=None, command=f"""bash -c 'exec -a agtmux-chat bash -c "({agent}); true"'""")
    home.start()
    wait_until(lambda: home.panes().get(alone, {}).get("agent_type") == "claude", "the agent by itself")
    assert home.panes()[below]["agent_type"] == "none"


NO_SESSIONS = [
    "garbage",
    "{}",
    '{"type":"state","state":"idle","reason_code":"x"}',
    '{"type":"register"}',
    '{"type":"register","session_id":"s","agent_type":"nobody","cwd":"/","socket":"/x"}',
    '{"type":"register","session_id":"s","agent_type":"claude","cwd":"relative","socket":"/x"}',
]


async def test_what_is_no_session_is_refused_and_counted(home: Home) -> None:
    home.start()
    path = str(home.socket)
    for said in NO_SESSIONS:
        async with unix_connect(path, "ws://agtmux/v1/chat", subprotocols=["agtmux.chat.v1"]) as daemon:
            await daemon.send(said)
            answer = json.loads(await daemon.recv())
            assert (answer["type"], answer["error"]["code"]) == ("refused", "E_USAGE"), said
    assert home.refused("E_USAGE") == len(NO_SESSIONS) and home.panes() == {}


async def test_a_message_to_a_session_is_handed_over(home: Home) -> None:
    home.start()
    async with sitting(home.folder, daemon=home.socket) as here:
        name = (await expect(home, "idle"))["name"]
        done = await asyncio.to_thread(home.run, "message", "send", name, "main is red", "--wait", "10s")
        assert done.returncode == 0, done.stderr
        assert "main is red" in lines(here)


async def test_the_target_of_sessions_is_nobodys_to_add_or_remove(home: Home) -> None:
    home.start()
    status, told, _ = await command(home, "target", "add", "chat", "--tmux-socket", "x")
    assert (status, told["error"]["code"]) == (2, "E_USAGE")
    async with sitting(home.folder, daemon=home.socket):
        await expect(home, "idle")
        _, told, _ = await command(home, "target", "list")
        assert {item["name"]: item["kind"] for item in told["items"]} == {"host": "local", "chat": "chat"}
        status, told, _ = await command(home, "target", "remove", "chat", "--yes")
        assert (status, told["error"]["code"]) == (2, "E_USAGE")
        status, told, _ = await command(home, "hooks", "install", "--target", "chat")
        assert (status, told["error"]["code"]) == (2, "E_USAGE")
        done = await asyncio.to_thread(home.run, "doctor", "--json")
        assert '"chat"' not in json.dumps([each.get("target") for each in json.loads(done.stdout)["items"]])


async def test_what_is_said_is_kept_and_shown_like_any_conversation(home: Home) -> None:
    daemon = home.start()
    async with sitting(home.folder, daemon=home.socket) as here:
        ref = (await expect(home, "idle"))["ref"]
        here.session.say("say three labels")
        await expect(home, "completed")
        asked = f"/v1/conversations/messages?ref={quote(ref)}"

        def said() -> list[tuple[str, str]]:
            return [(item["role"], item["content"]) for item in home.ask("GET", asked).json["items"]]

        await asyncio.to_thread(wait_until, lambda: len(said()) == 2, "both messages")
        assert said()[0] == ("user", "say three labels") and said()[1][0] == "assistant"
        async with unix_connect(
            str(home.socket), "ws://agtmux/v1/live", subprotocols=[Subprotocol("agtmux.live.v1")], compression=None
        ) as line:
            await line.send(json.dumps({"type": "subscribe", "id": "y", "pane": ref}))
            told = json.loads(await asyncio.wait_for(line.recv(), PATIENCE))
            assert told["type"] == "screen" and "say three labels" in told["output"], told
        # Another daemon hears of the same session, and not twice of what was said in it.
        await asyncio.to_thread(home.end, daemon)
        await asyncio.to_thread(home.start)
        item = await expect(home, "completed")
        here.session.say("say a fourth")
        await asyncio.to_thread(wait_until, lambda: len(said()) >= 4, "the next messages")
        assert [(role, text.strip()) for role, text in said()] == [
            *(("user", "say three labels"), ("assistant", "three labels")),
            *(("user", "say a fourth"), ("assistant", "a fourth")),
        ]
        assert [each["source"] for each in home.ask("GET", "/v1/conversations").json["items"]] == ["chat"]
        assert item["ref"] == ref


async def test_a_git_that_hangs_does_not_hold_up_what_a_session_asks(home: Home) -> None:
    tools = home.folder / "tools"
    tools.mkdir()
    (tools / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (tools / "git").chmod(0o755)
    home.start(env={"PATH": f"{tools}:{home.env.get('PATH', os.environ['PATH'])}"})
    async with sitting(home.folder, daemon=home.socket) as here:
        before = await expect(home, "idle")
        here.session.say("ask make deploy")
        assert (await expect(home, "waiting_approval"))["runtime_id"] == before["runtime_id"]
        assert (await command(home, "approve", REF))[0] == 0
        assert (await expect(home, "completed"))["runtime_id"] == before["runtime_id"]


def answers(here: Sitting) -> dict[str, str]:
    """What was decided, by request."""
    told = [json.loads(kept.line) for kept in here.session.journal.after(0, 10_000)]
    return {each["request_id"]: each["decision"] for each in told if each["type"] == "answered"}


async def test_what_is_typed_ahead_answers_nothing_that_was_not_shown(home: Home) -> None:
    with terminals(home) as opened:
        async with sitting(home.folder) as here:
            here.session.say("twice touch")
            await asyncio.to_thread(wait_until, lambda: len(here.session.pending) == 2, "two requests")
            terminal = Terminal(home, COMMANDS / "agtmux", "chat", "--attach", str(here.path))
            opened.append(terminal)
            await asyncio.to_thread(wait_until, lambda: "y, or n and why:" in terminal.text, "the first question")
            terminal.type("y\ny\n")
            await asyncio.to_thread(wait_until, lambda: "touch 2\r\n" in terminal.text, "the second question")
            await asyncio.to_thread(wait_until, lambda: terminal.text.count("why:") == 2, "that it is asked")
            assert answers(here) == {"r1": "approved"}
            terminal.type("n not this\n")
            await asyncio.to_thread(wait_until, lambda: len(answers(here)) == 2, "its answer")
            assert answers(here) == {"r1": "approved", "r2": "denied"}


async def test_each_of_several_questions_is_answered_by_what_was_typed_after_it(home: Home) -> None:
    with terminals(home) as opened:
        async with sitting(home.folder) as here:
            terminal = Terminal(home, COMMANDS / "agtmux", "chat", "--attach", str(here.path))
            opened.append(terminal)
            await asyncio.to_thread(wait_until, lambda: "Ctrl-D leaves" in terminal.text, "the session")
            asked = [{"question": f"Which {n}?", "options": [{"label": "Red"}, {"label": "Blue"}]} for n in (1, 2)]
            request = Request("q1", "AskUserQuestion", {"questions": asked}, "question")
            asking = asyncio.create_task(here.session.ask(request))
            await asyncio.to_thread(wait_until, lambda: "words:" in terminal.text, "the first question")
            terminal.type("1\n1\n")
            await asyncio.to_thread(wait_until, lambda: terminal.text.count("words:") == 2, "the second question")
            terminal.type("2\n")
            async with asyncio.timeout(PATIENCE):
                assert (await asking).answers == {"Which 1?": "Red", "Which 2?": "Blue"}


async def test_lines_that_are_piped_in_slowly_approve_nothing_and_none_is_lost(home: Home) -> None:
    async with sitting(home.folder) as here:
        command = (COMMANDS / "agtmux", "chat", "--attach", str(here.path))
        child = home.spawn(*command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert child.stdin is not None
        child.stdin.write("ask touch a\n")
        child.stdin.flush()
        await asyncio.to_thread(wait_until, lambda: "r1" in answers(here), "an answer")
        child.stdin.write("say y\n")
        child.stdin.close()
        child.stdin = None
        assert await asyncio.to_thread(child.wait, PATIENCE) == 0
        assert answers(here) == {"r1": "denied"} and here.session.recent.endswith("\n› say y\ny ")


async def test_a_long_line_that_is_piped_in_is_waited_for_and_no_longer(home: Home) -> None:
    async with sitting(home.folder) as here:
        command = (COMMANDS / "agtmux", "chat", "--attach", str(here.path))
        child = home.spawn(*command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert child.stdin is not None
        child.stdin.write("say " + "x" * 70_000 + "\n")
        child.stdin.close()
        child.stdin = None
        assert await asyncio.to_thread(child.wait, PATIENCE) == 0
        assert here.session.outcome == "completed"


def kept(home: Home) -> list[tuple[str, str]]:
    items = home.ask("GET", "/v1/conversations/messages").json["items"]
    return [(item["content"].strip(), item["at"]) for item in items]


async def test_what_was_said_in_a_short_session_is_kept(home: Home) -> None:
    """One that is over before anybody would look for a daemon again."""
    home.start()
    async with sitting(home.folder, daemon=home.socket) as here:
        here.session.say("say it")
        async with asyncio.timeout(PATIENCE):
            await here.session.journal.wait(
                lambda: here.session.journal.last_seq if here.session.outcome is None else 0
            )
    assert [text for text, _ in await asyncio.to_thread(kept, home)] == ["say it", "it"]


async def test_what_was_said_without_a_daemon_has_its_own_time(home: Home) -> None:
    async with sitting(home.folder, daemon=home.socket) as here:
        here.session.say("say it")
        await asyncio.to_thread(wait_until, lambda: here.session.outcome is not None, "the answer")
        before = time.time()
        await asyncio.to_thread(home.start)
        await asyncio.to_thread(wait_until, lambda: len(kept(home)) == 2, "both messages")
    for _, at in kept(home):
        assert datetime.fromisoformat(at).timestamp() <= before


async def test_what_a_daemon_could_not_keep_is_told_to_the_next_one(home: Home) -> None:
    """One that is killed with something in its hands."""
    daemon = home.start()
    async with sitting(home.folder, daemon=home.socket) as here:
        await expect(home, "idle")
        os.kill(daemon.pid, signal.SIGSTOP)
        here.session.say("say it")
        await asyncio.to_thread(wait_until, lambda: here.session.outcome is not None, "the answer")
        # It is on the line by now, and nobody reads it.
        for _ in range(20):
            await asyncio.sleep(0)
        daemon.kill()
        await asyncio.to_thread(daemon.wait, PATIENCE)
        await asyncio.to_thread(home.start)
        await asyncio.to_thread(wait_until, lambda: len(kept(home)) == 2, "both messages")
        here.session.say("say more")
        await asyncio.to_thread(wait_until, lambda: len(kept(home)) >= 4, "all messages")
    assert [text for text, _ in kept(home)] == ["say it", "it", "say more", "more"]


async def test_a_chat_that_is_resumed_in_a_terminal_and_again_in_a_chat_is_told_once(home: Home) -> None:
    home.pane(agent=None)
    home.start()

    def told() -> list[tuple[str, str]]:
        items = home.ask("GET", "/v1/conversations/messages").json["items"]
        return [(item["content"].strip(), item["source"]) for item in items]

    async def tells(*expected: tuple[str, str]) -> None:
        try:
            await asyncio.to_thread(wait_until, lambda: told() == list(expected), "all of it once")
        except AssertionError:
            assert told() == list(expected)

    def in_a_terminal() -> Talker:
        talker = Talker(home)
        talker.begin(ID)
        return talker

    async with sitting(home.folder, daemon=home.socket) as here:
        here.session.say("say one")
        await tells(("say one", "chat"), ("one", "chat"))

        talker = await asyncio.to_thread(in_a_terminal)
        for write, text in zip((talker.prompt, talker.answer) * 2, ("say one", "one", "two?", "two"), strict=True):
            write(text)
        talker.stir()
        by_file = [(text, "transcript") for text in ("say one", "one", "two?", "two")]
        await tells(*by_file)

        # Both at once: the agent of the chat writes to the same file, which may be read before the chat tells of it.
        talker.prompt("say three")
        talker.answer("three")
        by_file += [("say three", "transcript"), ("three", "transcript")]
        await tells(*by_file)
        here.session.say("say three")
        await asyncio.to_thread(wait_until, lambda: here.session.outcome is not None, "the answer")
    # By now the session has been told that all of it is kept.
    assert await asyncio.to_thread(told) == by_file

    home.tmux("kill-pane", "-t", talker.pane)
    await asyncio.to_thread(wait_until, lambda: talker.pane not in home.panes(), "the terminal's end")
    async with sitting(home.folder, daemon=home.socket) as here:
        here.session.say("say four")
        await tells(*by_file, ("say four", "chat"), ("four", "chat"))
    talker.prompt("say four")
    talker.answer("four")
    (await asyncio.to_thread(in_a_terminal)).stir()
    await tells(*by_file, ("say four", "transcript"), ("four", "transcript"))
