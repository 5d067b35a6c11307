"""Messages between agents that write down every byte: through their bridges, the command and the API."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from support.home import COMMANDS, Home, wait_until
from support.puppets import Bridge, Puppet
from support.terminal import Terminal, terminals


class Pair:
    """Two agents and their bridges."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.one, self.two = Puppet(home, "one"), Puppet(home, "two")
        self.daemon = home.start()
        for puppet in (self.one, self.two):
            puppet.wait_for("idle")
        self.bridge: Bridge = self.one.bridge()

    @property
    def names(self) -> tuple[str, str]:
        return name(self.one), name(self.two)

    def send(self, content: str, **more: Any) -> dict[str, Any]:
        return self.bridge.call("send_message", to=self.names[1], content=content, **more)

    def message(self, message_id: str) -> dict[str, Any]:
        return dict(self.home.ask("GET", f"/v1/messages?message_id={message_id}").json["items"][0])

    def wait_status(self, message_id: str, status: str) -> dict[str, Any]:
        wait_until(lambda: self.message(message_id)["status"] == status, f"{status} of {message_id}")
        return self.message(message_id)


def name(puppet: Puppet) -> str:
    return f"claude-{puppet.pane.removeprefix('%')}"


@pytest.fixture
def pair(home: Home) -> Iterator[Pair]:
    made = Pair(home)
    yield made
    made.bridge.close()


def test_a_message_is_typed_with_its_sender_in_front(pair: Pair) -> None:
    """gwt FR-009, FR-015; orchestrator: fields, sending."""
    sent = pair.send("fix completed on feature/auth")
    assert sent["status"] == "delivered", sent
    assert pair.two.submitted() == [f"[agtmux msg from {pair.names[0]}]: fix completed on feature/auth"]
    assert pair.one.given() == []
    shown = pair.message(sent["message_id"])
    assert (shown["from_agent"], shown["to_agent"], shown["via"]) == (*pair.names, "typed")
    # The action by which it was typed is in the log of them, under who asked for it.
    log = json.loads(pair.home.run("log", "actions", "--type", "message", "--json").stdout)["items"]
    assert [(each["action_id"], each["about"]["actor"]) for each in log] == [(shown["action_id"], pair.names[0])]


def test_it_waits_for_a_dialog_to_be_answered_and_comes_once(pair: Pair) -> None:
    pair.two.ask("d1", "touch label.txt")
    sent = pair.send("1\nyes")
    assert (sent["status"], sent["reason"]) == ("queued", "dialog_open")
    assert pair.two.given() == []
    assert "it asks its user something" in pair.home.run("message", "show", sent["message_id"]).stdout
    pair.two.tell("answer")
    pair.two.tell("idle")
    pair.wait_status(sent["message_id"], "delivered")
    assert pair.two.submitted() == [f"[agtmux msg from {pair.names[0]}]: 1\nyes"]


def test_it_waits_for_a_draft_to_go_and_joins_none(pair: Pair) -> None:
    pair.two.tell("draft half a thought")
    wait_until(lambda: "half a thought" in pair.home.tmux("capture-pane", "-p", "-t", pair.two.pane), "the draft")
    sent = pair.send("hello")
    assert (sent["status"], sent["reason"]) == ("queued", "draft_present")
    assert pair.two.given() == []
    pair.two.tell("reset")
    pair.wait_status(sent["message_id"], "delivered")
    assert pair.two.submitted() == [f"[agtmux msg from {pair.names[0]}]: hello"]


def test_a_busy_agent_that_queues_what_is_typed_has_it_at_once(pair: Pair) -> None:
    pair.two.tell("busy")
    pair.two.wait_for("running")
    assert pair.send("meanwhile")["status"] == "delivered"


def test_an_enter_that_was_taken_for_a_part_of_the_text_is_pressed_again(pair: Pair) -> None:
    """As agents do on a machine with much to do. Who has sent it hears meanwhile that it is being typed."""
    pair.two.tell("muddle")
    asked = {"to": pair.names[1], "content": "slowly", "wait_seconds": 2}
    sent = pair.home.ask("POST", "/v1/messages", asked).json["items"][0]
    assert sent["status"] == "delivering", sent
    pair.wait_status(sent["message_id"], "delivered")
    assert [text.strip() for text in pair.two.submitted()] == [f"[agtmux msg from {sent['from_agent']}]: slowly"]


def test_the_urgent_come_first_and_the_rest_in_order(pair: Pair) -> None:
    """orchestrator: priorities."""
    pair.two.ask("d1", "touch label.txt")
    priorities = ["low", "normal", "urgent", "normal", "high"]
    sent = [pair.send(f"{at} {priority}", priority=priority) for at, priority in enumerate(priorities)]
    pair.two.tell("answer")
    pair.two.tell("idle")
    for each in sent:
        pair.wait_status(each["message_id"], "delivered")
    texts = [text.partition("]: ")[2] for text in pair.two.submitted()]
    assert texts == ["2 urgent", "4 high", "1 normal", "3 normal", "0 low"]


def test_now_or_never_is_refused_where_it_would_wait(pair: Pair) -> None:
    pair.two.ask("d1", "touch label.txt")
    sent = pair.send("quick", delivery="now")
    assert (sent["status"], sent["reason"]) == ("refused", "dialog_open")
    pair.two.tell("answer")
    pair.two.tell("idle")
    wait_until(lambda: pair.home.state_of(pair.two.pane) in ("completed", "idle"), "the end of its dialog")
    assert pair.send("after it", delivery="now")["status"] == "delivered"
    assert [text.partition("]: ")[2] for text in pair.two.submitted()] == ["after it"]


def test_it_expires_if_its_receiver_never_can(pair: Pair) -> None:
    """orchestrator: TTL."""
    pair.two.ask("d1", "touch label.txt")
    sent = pair.send("soon", ttl_seconds=1)
    shown = pair.wait_status(sent["message_id"], "expired")
    assert shown["reason"] == "ttl_ended" and pair.two.given() == []


def test_it_is_refused_when_its_receiver_ends(pair: Pair) -> None:
    pair.two.ask("d1", "touch label.txt")
    sent = pair.send("too late")
    pair.two.tell("exit")
    shown = pair.wait_status(sent["message_id"], "refused")
    assert shown["reason"] == "receiver_ended"
    said = pair.bridge.refusal("send_message", to=pair.names[1], content="hello?")
    assert said.startswith(("E_REF_NOT_FOUND", "E_RUNTIME_STALE")) and "list_agents" in said


def test_a_task_is_asked_for_answered_and_told_apart_by_its_ids(pair: Pair) -> None:
    """orchestrator: replies, correlation, thinking, metadata."""
    asked = pair.send("count the tests", type="task_request", task_id="t1", thinking="it knows them")
    text = pair.two.submitted()[0]
    assert text.endswith(
        f'(agtmux task_request {asked["message_id"]}, task t1; answer with send_message, to "{pair.names[0]}",'
        f' reply_to "{asked["message_id"]}")'
    )
    assert "it knows them" not in text
    other = pair.two.bridge()
    answered = other.call(
        "send_message", to=pair.names[0], content="4711", type="task_complete", reply_to=asked["message_id"]
    )
    assert answered["status"] == "delivered"
    other.close()
    shown = pair.message(answered["message_id"])
    assert (shown["task_id"], shown["correlation_id"]) == ("t1", pair.message(asked["message_id"])["correlation_id"])
    assert f"in reply to {asked['message_id']}" in pair.one.submitted()[0]


def test_who_fetches_has_it_and_it_is_not_typed_as_well(pair: Pair) -> None:
    pair.two.ask("d1", "touch label.txt")
    sent = [pair.send(text) for text in ("first", "second")]
    other = pair.two.bridge()
    got = other.call("read_messages")["messages"]
    assert [(each["content"], each["from_agent"]) for each in got] == [
        ("first", pair.names[0]),
        ("second", pair.names[0]),
    ]
    assert other.call("read_messages") == {"messages": []}
    again = other.call("read_messages", include_delivered=True)["messages"]
    assert [each["content"] for each in again] == ["second", "first"]
    pair.two.tell("answer")
    pair.two.tell("idle")
    wait_until(lambda: pair.home.state_of(pair.two.pane) in ("completed", "idle"), "the end of its dialog")
    assert pair.message(sent[0]["message_id"])["via"] == "pulled" and pair.two.submitted() == []
    other.close()


def test_who_waits_is_given_what_comes(pair: Pair) -> None:
    other = pair.two.bridge()
    # Whoever is first, it has it once: handed over, or typed before it began to wait.
    got: list[Any] = []
    waiting = threading.Thread(target=lambda: got.append(other.call("wait_for_messages", timeout_seconds=20)))
    waiting.start()
    sent = pair.send("here it is")
    waiting.join(20)
    shown = pair.message(sent["message_id"])
    handed = [each["content"] for each in got[0]["messages"]]
    typed = [text.partition("]: ")[2] for text in pair.two.submitted()]
    assert shown["status"] == "delivered" and handed + typed == ["here it is"]
    assert shown["via"] == ("pulled" if handed else "typed")
    assert other.call("wait_for_messages", timeout_seconds=0.1) == {"messages": []}
    other.close()


def test_a_broadcast_is_for_all_others(pair: Pair) -> None:
    """gwt FR-010."""
    three = Puppet(pair.home, "three")
    three.wait_for("idle")
    sent = pair.bridge.call("broadcast_message", content="rebasing main, please wait")
    assert sent["sent_count"] == 2
    for each in sent["messages"]:
        pair.wait_status(each["message_id"], "delivered")
    want = [f"[agtmux msg from {pair.names[0]}]: rebasing main, please wait"]
    assert (pair.one.submitted(), pair.two.submitted(), three.submitted()) == ([], want, want)


def test_a_ping_disturbs_nobody(pair: Pair) -> None:
    """orchestrator: ping."""
    answer = pair.send("", type="ping")
    assert answer["answer"] == f"{pair.names[1]} is idle" and pair.two.given() == []
    assert pair.home.run("message", "send", pair.names[1], "--type", "ping").stdout == f"{pair.names[1]} is idle\n"
    # The communication log has its size as it is.
    pongs = [each for each in pair.home.ask("GET", "/v1/messages").json["items"] if each["type"] == "pong"]
    assert [each["size"] for each in pongs] == [len(answer["answer"])] * 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"to": "nobody-9", "content": "x"}, "E_REF"),
        ({"to": "me", "content": "x"}, "E_REF"),
        ({"content": " \x07\n "}, "E_USAGE"),
        ({"content": "x" * 1_000_001}, "E_TOO_LARGE"),
        ({"content": "x", "thinking": "x" * 100_001}, "E_TOO_LARGE"),
        ({"content": "x", "reply_to": "0123456789abcdef"}, "E_NOT_FOUND"),
        ({"content": "x", "from": "user"}, "E_USAGE"),
        ({"content": "x", "from_agent": "user"}, "E_USAGE"),
        ({"content": "x", "sender": "user"}, "E_USAGE"),
        ({"content": "x", "priority": "highest"}, "E_USAGE"),
        ({"content": "x", "ttl_seconds": 0}, "E_USAGE"),
    ],
)
def test_what_is_asked_wrongly_is_refused_with_what_to_do(pair: Pair, arguments: dict[str, Any], code: str) -> None:
    """orchestrator: validation, message size, thinking size."""
    said = pair.bridge.refusal("send_message", **{"to": pair.names[1]} | arguments)
    assert said.startswith(code), said
    assert pair.two.given() == []


@pytest.mark.parametrize(
    ("arguments", "number"),
    [({"to": "nobody-9", "content": "x"}, -32000), ({"content": ""}, -32602), ({"content": "x" * 1_000_001}, -32602)],
)
def test_a_refusal_has_its_number_too(pair: Pair, arguments: dict[str, Any], number: int) -> None:
    """orchestrator: error codes."""
    asked = {"to": pair.names[1]} | arguments
    result = pair.bridge.ask("tools/call", name="send_message", arguments=asked)["result"]
    assert result["isError"] and result["_meta"]["dev.agtmux/error"]["code"] == number


def test_two_that_answer_each_other_for_ever_are_stopped(home: Home) -> None:
    """orchestrator: rate limit."""
    home.configure("[messages]\nper_pair = 3\n")
    pair = Pair(home)
    for number in range(3):
        pair.send(f"no, you first {number}")
    said = pair.bridge.refusal("send_message", to=pair.names[1], content="no, you first")
    assert said.startswith("E_LIMIT_RATE") and "wait" in said
    # Also after a restart, and through the command.
    home.end(pair.daemon)
    home.start()
    pair.two.wait_for("running")
    assert "E_LIMIT_RATE" in pair.one.run("message", "send", pair.names[1], "but me")
    pair.bridge.close()


def test_who_may_not_write_to_whom_is_a_setting(home: Home) -> None:
    """orchestrator: permissions."""
    home.configure('[messages]\ndeny = ["claude-* -> claude-*"]\n')
    pair = Pair(home)
    assert pair.bridge.refusal("send_message", to=pair.names[1], content="x").startswith("E_FORBIDDEN")
    assert pair.bridge.refusal("broadcast_message", content="x").startswith("E_NOT_FOUND")
    assert home.run("message", "send", pair.names[1], "from me").returncode == 0
    pair.bridge.close()


def test_the_user_writes_reads_and_takes_back(pair: Pair) -> None:
    """orchestrator: log."""
    home = pair.home
    assert pair.bridge.call("send_message", to="user", content="may I?")["status"] == "queued"
    done = home.run("message", "read")
    assert "may I?" in done.stdout and f"from {pair.names[0]}" in done.stdout
    assert home.run("message", "read").stdout == "nobody has written to you\n"
    pair.two.ask("d1", "touch label.txt")
    done = home.run("message", "send", pair.names[1], "never mind", "--wait", "1s", "--json")
    message_id = json.loads(done.stdout)["items"][0]["message_id"]
    assert home.run("message", "cancel", message_id[:8]).stdout == "taken back; it was not delivered\n"
    assert home.run("message", "cancel", message_id).returncode == 4
    asked = pair.bridge.call("send_message", to="user", content="which?", type="task_request")
    done = home.run("message", "reply", asked["message_id"], "this one")
    assert done.returncode == 0 and "delivered" in done.stdout, done
    assert "this one" in pair.one.submitted()[0]
    table = home.run("message", "list").stdout
    assert "taken_back" in table and "which?" in table
    listed = json.loads(home.run("message", "list", "--with", pair.names[1], "--json").stdout)
    assert [item["status"] for item in listed["items"]] == ["refused"]


def test_the_same_request_is_one_message(pair: Pair) -> None:
    asked = {"to": pair.names[1], "content": "once", "request_ref": "r1", "wait_seconds": 3}
    first, second = (pair.home.ask("POST", "/v1/messages", asked) for _ in range(2))
    assert first.json["items"][0]["message_id"] == second.json["items"][0]["message_id"]
    assert len(pair.two.submitted()) == 1
    assert pair.home.ask("POST", "/v1/messages", asked | {"content": "twice"}).json["error"]["code"] == (
        "E_IDEMPOTENCY_CONFLICT"
    )


def test_what_waits_survives_a_restart(pair: Pair) -> None:
    pair.two.ask("d1", "touch label.txt")
    sent = pair.send("patience")
    pair.home.end(pair.daemon)
    pair.two.tell("answer")
    pair.two.tell("idle")
    pair.home.start()
    pair.wait_status(sent["message_id"], "delivered")
    assert pair.two.submitted() == [f"[agtmux msg from {pair.names[0]}]: patience"]


def test_an_agent_may_not_shut_down_one_that_it_has_not_launched_and_the_user_may(pair: Pair) -> None:
    """orchestrator: shutdown."""
    said = pair.bridge.refusal("send_message", to=pair.names[1], content="", type="shutdown")
    assert said.startswith("E_FORBIDDEN"), said
    assert pair.home.state_of(pair.two.pane) == "idle" and pair.two.given() == []
    # Nor may what nobody knows.
    done = pair.home.run("message", "send", pair.names[1], "--type", "shutdown")
    assert done.returncode == 4 and "E_FORBIDDEN" in done.stderr and pair.two.given() == [], done
    shell, opened = pair.home.pane(agent=None, command="bash --norc"), time.time()
    pair.home.tmux("select-window", "-t", shell)
    with terminals(pair.home) as shown:
        shown.append(Terminal(pair.home, "tmux", "attach-session", "-t", "work"))
        wait_until(lambda: time.time() > opened + 2.5 and shell in pair.home.panes(), "a key that counts")
        shown[0].type(f"'{COMMANDS}/agtmux' message send {pair.names[1]} --type shutdown\r")
        _wait_for_end(pair)


def _wait_for_end(pair: Pair) -> None:
    wait_until(lambda: pair.home.panes().get(pair.two.pane, {}).get("agent_type", "none") == "none", "its end")


def test_no_more_waits_for_one_than_may(home: Home) -> None:
    home.configure("[messages]\nwaiting = 2\n")
    pair = Pair(home)
    pair.two.ask("d1", "touch label.txt")
    sent = [pair.send(text) for text in ("one", "two")]
    assert pair.bridge.refusal("send_message", to=pair.names[1], content="three").startswith("E_LIMIT_RATE")
    assert home.run("message", "cancel", sent[0]["message_id"]).returncode == 0
    assert pair.send("three")["status"] == "queued"
    pair.bridge.close()


def test_the_user_names_agents_as_they_are_shown(pair: Pair) -> None:
    home, pane = pair.home, pair.two.pane
    place = home.panes()[pane]["ref"].removeprefix("pane:")
    for name in (pair.names[1], pane, f"host/{pane}", place, f"pane:{place}"):
        done = home.run("message", "send", name, f"to {name}")
        assert done.returncode == 0 and done.stdout.startswith(f"delivered to {pair.names[1]}"), done
    done = home.run("message", "broadcast", "to all", "--json")
    assert done.returncode == 0, done
    assert {item["to_agent"] for item in json.loads(done.stdout)["items"]} == set(pair.names)
    assert home.run("message", "send", "%99", "x").returncode == 5


@pytest.mark.parametrize("words", [["send", "claude-0"], ["broadcast"]])
def test_an_interrupt_says_what_still_waits_and_how_to_cancel_it(home: Home, words: list[str]) -> None:
    puppet = Puppet(home, "one")
    home.start()
    puppet.ask("d1", "touch label.txt")
    with terminals(home) as opened:
        terminal = Terminal(home, COMMANDS / "agtmux", "message", *words, "hold your merge", "--wait", "10s")
        opened.append(terminal)
        queued = "/v1/messages?status=queued"
        wait_until(lambda: [each for each in home.ask("GET", queued).json["items"] if each["reason"]], "the message")
        [waiting] = home.ask("GET", queued).json["items"]
        terminal.type("\x03")
        assert terminal.ended() == 130, terminal.text
        assert "queued to claude-0, it asks its user something" in terminal.text
        cancel = f"agtmux message cancel {waiting['message_id']}"
        assert cancel in terminal.text and "Traceback" not in terminal.text
    assert home.run(*cancel.split()[1:]).returncode == 0
    puppet.tell("answer")
    puppet.wait_for("running")
    assert puppet.submitted() == []


SECRET = "sk-ant-api03-" + "Qm7Zr4Kd9Xw2Lp6Tn8Vb3Hs5" * 2


def holders(home: Home) -> set[str]:
    """Files of the daemon that have the bytes of the secret."""
    state = home.database.parent
    files = [path for path in state.rglob("*") if path.is_file()]
    return {str(path.relative_to(state)) for path in files if SECRET.encode() in path.read_bytes()}


def test_a_secret_comes_once_after_a_kill_and_is_nowhere_then(pair: Pair) -> None:
    """NFR-9. It waits, the daemon is killed, the next one types it; the database has it at no time."""
    pair.two.ask("d1", "touch label.txt")
    sent = pair.send(f"deploy with {SECRET}", thinking=f"it needs {SECRET}")
    assert sent["status"] == "queued"
    assert holders(pair.home) == {f"messages/{sent['message_id']}"}
    assert SECRET not in pair.home.run("message", "show", sent["message_id"]).stdout
    pair.daemon.send_signal(signal.SIGKILL)
    pair.daemon.communicate()
    assert holders(pair.home) == {f"messages/{sent['message_id']}"}
    pair.daemon = pair.home.start()
    pair.two.tell("answer")
    pair.two.tell("idle")
    told = pair.wait_status(sent["message_id"], "delivered")
    assert pair.two.submitted() == [f"[agtmux msg from {pair.names[0]}]: deploy with {SECRET}"]
    assert told["is_redacted"] and SECRET not in json.dumps(told)
    wait_until(lambda: not holders(pair.home), "the end of the secret")
    pair.home.end(pair.daemon)
    assert holders(pair.home) == set()


def test_a_secret_that_is_fetched_is_given_and_can_be_read_again(pair: Pair) -> None:
    pair.two.ask("d1", "touch label.txt")
    pair.send(f"deploy with {SECRET}")
    fetcher = pair.two.bridge()
    for again in (False, True):
        given = fetcher.call("read_messages", include_delivered=again)["messages"]
        assert [each["content"] for each in given] == [f"deploy with {SECRET}"]
    assert not any("agtmux.db" in each for each in holders(pair.home))
    fetcher.close()
