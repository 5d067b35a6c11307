"""The real agent behind a chat socket: everything that can be said, and what becomes of it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys

import pytest

from agents import claude_setup
from agents.bench import AgentPane, Launch, Stage
from agents.chatting import Chatting, Session, all_gone, environment, processes, reap
from agents.install import PINNED, install
from support.chat import ChatClient
from support.home import COMMANDS, wait_until

pytestmark = pytest.mark.timeout(300)
EVERY = pytest.mark.agents
VERSIONS = pytest.mark.parametrize("version", PINNED["claude"])


def say(client: ChatClient, text: str) -> None:
    client.lines.clear()
    client.send("message", text=text)


def test_a_real_agent_talks_asks_and_is_resumed() -> None:
    with Chatting() as here:
        project = here.stage.project
        session = here.start()
        with session.join() as client:
            say(client, "Hello. do:say{{Three labels are printed.}}")
            done = client.until("done")
            assert (client.text(), done["outcome"]) == ("Three labels are printed.", "completed")
            assert done["usage"]["input_tokens"] > 0 and done["usage"]["output_tokens"] > 0

            say(client, "Make a label. do:bash{{touch label.txt}}")
            asked = client.until("approval_request")
            assert (asked["tool"], asked["input"]["command"]) == ("Bash", "touch label.txt")
            assert not (project / "label.txt").exists()
            client.send("approve", request_id=asked["request_id"])
            client.until("done")
            assert (project / "label.txt").exists()
            uses = [line for line in client.lines if line["type"] in ("tool_use", "tool_result")]
            assert [line["request_id"] for line in uses] == [asked["request_id"]] * 2

            say(client, "Make a label. do:bash{{touch other.txt}}")
            asked = client.until("approval_request")
            client.send("deny", request_id=asked["request_id"], reason="there are enough")
            assert client.until("tool_result")["output"] == "there are enough"
            client.until("done")
            assert not (project / "other.txt").exists()

            say(client, "Tell me. do:slow{{60}}")
            client.until("text_delta")
            client.send("abort")
            assert client.until("done")["outcome"] == "aborted"

            say(client, "Fail. do:error{{400}}")
            assert "400" in client.until("error")["message"]
            assert client.until("done")["outcome"] == "error"
            session_id = client.init["session_id"]
        assert session.end() == 0 and not session.path.exists()
        all_gone(here.stage)

        with here.start("again", "--resume", session_id).join() as client:
            assert client.init["session_id"] == session_id
            say(client, "And now? do:say{{As before.}}")
            client.until("done")
            assert client.text() == "As before."
        assert "Three labels are printed." in json.dumps(here.requests()[-1])


@EVERY
@VERSIONS
def test_questions_plans_and_subagents(version: str) -> None:
    with Chatting(version) as here, here.start().join() as client:
        say(client, "Ask me. do:ask{{Which parcel goes first?|Red|Blue}}")
        asked = client.until("question")
        assert [option["label"] for option in asked["questions"][0]["options"]] == ["Red", "Blue"]
        client.send("answer", request_id=asked["request_id"], answers={"Which parcel goes first?": "Blue"})
        assert "Blue" in client.until("tool_result")["output"]
        client.until("done")

        say(client, "Let another look. do:sub{{do:bash((touch sub.txt))}}")
        asked = client.until("approval_request")
        client.send("approve", request_id=asked["request_id"])
        assert client.until("answered")["decision"] == "approved"
        # Newer versions let a subagent work in the background: its turn may have ended by now, and its request not.
        wait_until((here.stage.project / "sub.txt").exists, "what it was to make")
        while not (inner := [line for line in client.lines if "parent_id" in line]):
            client.next()
        assert (inner[0]["type"], inner[0]["tool"]) == ("tool_use", "Bash")


@EVERY
@VERSIONS
def test_a_plan_is_approved_like_anything_else(version: str) -> None:
    with Chatting(version) as here, here.start("chat", "--permission-mode", "plan").join() as client:
        say(client, "Make a plan. do:plan{{Print the labels}}")
        asked = client.until("approval_request")
        assert (asked["tool"], asked["kind"]) == ("ExitPlanMode", "plan")
        client.send("approve", request_id=asked["request_id"])
        assert not client.until("tool_result")["is_error"]
        client.until("done")


@EVERY
@VERSIONS
def test_what_nobody_answers_is_denied(version: str) -> None:
    with Chatting(version) as here, here.start("chat", "--approval-timeout", "1s").join() as client:
        say(client, "Make a label. do:bash{{touch late.txt}}")
        asked = client.until("approval_request")
        assert client.until("answered")["decision"] == "timed_out"
        assert "nobody answered" in client.until("tool_result")["output"]
        assert client.until("done")["outcome"] == "completed"
        assert not (here.stage.project / "late.txt").exists()
        client.send("approve", request_id=asked["request_id"])
        assert client.until("error")["code"] == "E_PRECONDITION_FAILED"


@EVERY
@VERSIONS
def test_an_abort_at_a_request_closes_it(version: str) -> None:
    with Chatting(version) as here, here.start().join() as client:
        say(client, "Make a label. do:bash{{touch late.txt}}")
        client.until("approval_request")
        client.send("abort")
        assert client.until("answered")["decision"] == "gone"
        assert client.until("done")["outcome"] == "aborted"
        assert not (here.stage.project / "late.txt").exists()
        say(client, "Again. do:say{{Here.}}")
        assert client.until("done")["outcome"] == "completed"


@EVERY
def test_who_leaves_in_the_middle_comes_back_to_every_word() -> None:
    with Chatting() as here:
        session = here.start()
        with session.join() as first:
            say(first, "Tell me. do:slow{{3}}")
            seen = [first.until("text_delta") for _ in range(3)][-1]["seq"]
            before = first.text()
        with session.join() as second:
            second.send("replay", after=seen)
            second.until("done")
            numbers = [line["seq"] for line in second.lines if "seq" in line]
            assert numbers == list(range(seen + 1, seen + 1 + len(numbers)))
            assert (before + second.text()).split() == [f"word{number}" for number in range(12)]


@EVERY
def test_a_request_waits_while_nobody_is_there() -> None:
    with Chatting() as here:
        session = here.start()
        with session.join() as first:
            say(first, "Make a label. do:bash{{touch label.txt}}")
            first.until("approval_request")
        with session.join() as second:
            [asked] = second.init["pending"]
            second.send("approve", request_id=asked["request_id"])
            second.until("done")
        assert (here.stage.project / "label.txt").exists()


@EVERY
def test_one_of_two_is_killed_and_the_other_goes_on() -> None:
    with Chatting() as here:
        one, two = here.start("one"), here.start("two")
        with one.join() as first, two.join() as second:
            say(first, "Tell me. do:slow{{60}}")
            say(second, "Make a label. do:bash{{touch label.txt}}")
            first.until("text_delta")
            asked = second.until("approval_request")
            one.end(signal.SIGKILL)
            with pytest.raises((EOFError, ConnectionError)):
                first.until("done")
            second.send("approve", request_id=asked["request_id"])
            assert second.until("done")["outcome"] == "completed"
        assert (here.stage.project / "label.txt").exists()
        # What it has left behind keeps nobody from starting in its place, and its agent has ended by itself.
        assert one.path.exists()
        again = here.start("one")
        with again.join() as client:
            say(client, "Hello. do:say{{Here.}}")
            client.until("done")
        assert again.end() == 0 and two.end() == 0
        all_gone(here.stage)


@EVERY
def test_an_agent_that_is_killed_is_started_again_with_what_was_said() -> None:
    with Chatting() as here, here.start().join() as client:
        say(client, "My parcel is the zebra one. do:say{{Noted.}}")
        client.until("done")
        ready = client.init.get("agent_pid") or next(x["agent_pid"] for x in client.lines if "agent_pid" in x)
        say(client, "Tell me. do:slow{{60}}")
        client.until("text_delta")
        subprocess.run(["kill", "-9", str(ready)], check=True)
        assert client.until("error")["code"] == "E_AGENT_FAILED"
        assert client.until("done")["outcome"] == "error"
        say(client, "Which is mine? do:say{{That one.}}")
        assert client.until("done")["outcome"] == "completed"
        assert "zebra" in json.dumps(here.requests()[-1])


@EVERY
def test_a_session_that_is_not_there_cannot_be_resumed() -> None:
    with Chatting() as here:
        nobody = "00000000-0000-4000-8000-000000000000"
        words = ["--cwd", here.stage.project, "--program", here.stage.executable, "--resume", nobody]
        done = subprocess.run([COMMANDS / "agtmux-chat", *words], env=here.env, capture_output=True, text=True)
        assert done.returncode == 1 and f"No conversation found with session ID: {nobody}" in done.stderr
        assert not list((here.stage.home / ".local/state/agtmux/chat").iterdir())


@EVERY
@VERSIONS
def test_the_users_servers_are_there_and_a_folders_are_not_unless_agreed_to(version: str) -> None:
    with Chatting(version, frozenset({"mcp"})) as here:
        # The same program under another name, as a folder would bring it.
        server = {"command": sys.executable, "args": [str(here.stage.home / "post.py")]}
        (here.stage.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": server}}), "utf-8")
        with here.start("one").join() as client:
            say(client, 'Send it. do:tool{{mcp__post__send|{"parcel": "A-1"}}}')
            asked = client.until("approval_request")
            assert asked["tool"] == "mcp__post__send"
            client.send("deny", request_id=asked["request_id"])
            client.until("done")
        with here.start("two").join() as client:
            assert client.until("ready")["mcp_left_out"] == ["theirs"]
            say(client, "Hello. do:say{{Here.}}")
            names = {each["name"] for each in client.until("agent")["mcp_servers"]}
            assert names == {"post"}
        settings = here.stage.project / ".claude" / "settings.local.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"enabledMcpjsonServers": ["theirs"]}), "utf-8")
        with here.start("three").join() as client:
            say(client, "Hello. do:say{{Here.}}")
            assert {each["name"] for each in client.until("agent")["mcp_servers"]} == {"post", "theirs"}
        # A folder that nobody trusts may have brought that along.
        settings.write_text(json.dumps({"enableAllProjectMcpServers": True}), "utf-8")
        state = here.stage.home / ".claude.json"
        kept = json.loads(state.read_text("utf-8"))
        for project in kept["projects"].values():
            project["hasTrustDialogAccepted"] = False
        state.write_text(json.dumps(kept), "utf-8")
        with here.start("four").join() as client:
            assert client.until("ready")["mcp_left_out"] == ["theirs"]
            say(client, "Hello. do:say{{Here.}}")
            assert {each["name"] for each in client.until("agent")["mcp_servers"]} == {"post"}


@EVERY
@VERSIONS
def test_settings_and_instructions_of_user_and_folder_are_taken(version: str) -> None:
    with Chatting(version) as here:
        (here.stage.project / "CLAUDE.md").write_text("Parcels are called zebras.\n", "utf-8")
        with here.start().join() as client:
            # The user's settings allow this one.
            say(client, "Wait. do:bash{{sleep 0}} then:say{{Done.}}")
            client.until("done")
            assert "approval_request" not in client.kinds()
        assert "Parcels are called zebras." in json.dumps(here.requests())


@EVERY
@VERSIONS
def test_a_hook_of_the_users_may_answer_first(version: str) -> None:
    with Chatting(version) as here:
        hook = here.stage.folder / "hook"
        allow = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}
        hook.write_text(f"#!/bin/sh\nsleep 1\necho '{json.dumps(allow)}'\n", "utf-8")
        hook.chmod(0o755)
        settings = here.stage.home / ".claude" / "settings.json"
        entry = {"PermissionRequest": [{"hooks": [{"type": "command", "command": str(hook)}]}]}
        settings.write_text(json.dumps(json.loads(settings.read_text("utf-8")) | {"hooks": entry}), "utf-8")
        with here.start().join() as client:
            say(client, "Make a label. do:bash{{touch label.txt}}")
            asked = client.until("approval_request")
            assert client.until("answered")["decision"] == "gone"
            client.until("done")
            client.send("deny", request_id=asked["request_id"])
            assert client.until("error")["code"] == "E_PRECONDITION_FAILED"
        assert (here.stage.project / "label.txt").exists()


class Resuming:
    """The agent in a terminal, going on with what was said in a chat."""

    NAME = claude_setup.NAME
    PROTOCOLS = claude_setup.PROTOCOLS
    ready = staticmethod(claude_setup.ready)

    def prepare(self, stage: Stage) -> Launch:
        launch = claude_setup.prepare(stage)
        session = Session(stage, environment(stage, launch.env), "chat")
        with session.join() as client:
            say(client, "My parcel is the zebra one. do:say{{Noted.}}")
            client.until("done")
            session_id = client.init["session_id"]
        assert session.end() == 0
        return Launch((*launch.arguments, "--resume", session_id), launch.env)


@EVERY
@VERSIONS
def test_what_was_said_in_a_chat_goes_on_in_a_terminal_and_back(version: str) -> None:
    with AgentPane(Resuming(), install("claude", version), version) as pane:
        claude_setup.ready(pane)
        pane.wait_for("zebra")
        pane.say("Which is mine? do:say{{The zebra one.}}")
        pane.wait_until(lambda: "Which is mine?" in json.dumps([x.body for x in pane.server.exchanges]), "the question")
        pane.settle()
        asked = json.dumps(next(x.body for x in reversed(pane.server.exchanges) if x.main))
        assert "My parcel is the zebra one." in asked
        pane.keys("C-c")
        pane.keys("C-c")
        pane.wait_until(lambda: pane.command() in ("bash", "sh"), "its end")
        [transcript] = (pane.stage.home / ".claude" / "projects").glob("*/*.jsonl")
        env = environment(pane.stage, claude_setup_env(pane.stage))
        session = Session(pane.stage, env, "back", "--resume", transcript.stem)
        with session.join() as client:
            say(client, "And now? do:say{{As before.}}")
            client.until("done")
        assert session.end() == 0
        assert "The zebra one." in json.dumps(pane.server.exchanges[-1].body)


def claude_setup_env(stage: Stage) -> dict[str, str]:
    """Once more, without the files, which are written."""
    kept = {path: path.read_bytes() for path in (stage.home / ".claude.json", stage.home / ".claude" / "settings.json")}
    shutil.move(stage.home / ".claude", stage.home / ".kept")
    env = claude_setup.prepare(stage).env
    shutil.rmtree(stage.home / ".claude")
    shutil.move(stage.home / ".kept", stage.home / ".claude")
    for path, content in kept.items():
        path.write_bytes(content)
    return env


@EVERY
def test_a_conversation_in_a_terminal() -> None:
    """`agtmux chat` in a real tmux pane, narrow and without colours, with a daemon that lists it once."""
    with Chatting() as here:
        stage = here.stage
        env = here.env | {"TMUX_TMPDIR": str(stage.folder), "NO_COLOR": "1"}

        def tmux(*words: str) -> str:
            done = subprocess.run(["tmux", "-f", "/dev/null", *words], env=env, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            return done.stdout

        def shows(text: str) -> None:
            wait_until(lambda: text in tmux("capture-pane", "-p"), f"{text!r} on the screen", 30)

        def enter(text: str) -> None:
            tmux("send-keys", "-l", "--", text)
            tmux("send-keys", "Enter")

        def agents() -> list[dict[str, object]]:
            done = subprocess.run([COMMANDS / "agtmux", "list", "panes", "--json"], env=env, capture_output=True)
            return list(json.loads(done.stdout)["items"])

        tmux("new-session", "-d", "-x", "44", "-y", "40", "-c", str(stage.project), "sh")
        try:
            enter(f'"{COMMANDS}/agtmux" chat --program {stage.executable}')
            shows("Ctrl-D leaves")
            enter("Hello. do:say{{Three labels are printed.}}")
            shows("Three labels are printed.")
            enter("x do:bash{{touch label.txt}}")
            shows("y, or n and why:")
            wait_until(lambda: [each["state"] for each in agents()] == ["waiting_approval"], "one agent that waits")
            enter("yes please do")
            assert not (stage.project / "label.txt").exists()
            enter("y")
            shows("All done.")
            assert (stage.project / "label.txt").exists()
            enter("x do:slow{{60}}")
            shows("word3")
            tmux("send-keys", "C-c")
            shows("broken off")
            assert "\x1b[" not in tmux("capture-pane", "-p", "-e").replace("\x1b[39m", "").replace("\x1b[49m", "")
            tmux("send-keys", "C-d")
            shows("agtmux chat --resume")
            wait_until(lambda: agents() == [], "its end")
        finally:
            subprocess.run([COMMANDS / "agtmux", "down", "--headless"], env=env, capture_output=True)
            tmux("kill-server")


@EVERY
def test_the_terminal_that_is_closed_takes_its_session_with_it() -> None:
    with Chatting() as here:
        command = [COMMANDS / "agtmux", "chat", "--cwd", here.stage.project, "--program", here.stage.executable]
        terminal = subprocess.Popen(command, env=here.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        wait_until(lambda: len(processes(here.stage)) >= 3, "the session and its agent")
        terminal.kill()
        terminal.communicate()
        all_gone(here.stage)


@EVERY
def test_what_is_piped_in_is_answered_and_nothing_is_approved_by_it() -> None:
    with Chatting() as here:
        command = [COMMANDS / "agtmux", "chat", "--cwd", here.stage.project, "--program", here.stage.executable]
        text = "x do:bash{{touch label.txt}} then:say{{So be it.}}\n"
        done = subprocess.run(command, env=here.env, input=text, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and "nobody is there to be asked" in done.stdout, done
        assert not (here.stage.project / "label.txt").exists()
        reap(here.stage)
