"""A VM's `python3` that is somebody else's: it greets as the probe would, and then says what it likes.

A script of its own, run on the VM by the real interpreter as `liar.py MODE TARGET FILE`, the latter with the mode's
arguments as JSON. The modes are the functions after `answer_all`; `install` puts it in the way of the real one.
"""

from __future__ import annotations

import ast
import base64
import itertools
import json
import os
import random
import re
import select
import shlex
import struct
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# What a probe says when nothing is wrong.
QUIET: dict[str, Any] = {"server": "4242-1700000000", "panes": [], "gone": [], "screens": [], "is_metered": False}


def install(vm: Any, mode: str, name: str, **arguments: Any) -> None:
    """Every session of that VM gets this one from now on; `name` is what the target is called."""
    # Not needed where this runs as a script, nor there.
    from support.sshd import PYTHON

    given = vm.install("arguments", json.dumps(arguments))
    words = [PYTHON, "-I", str(Path(__file__).resolve()), mode, name, str(given)]
    vm.install("python3", f"#!/bin/sh\nexec {shlex.join(words)}\n")


def row(number: int, **fields: Any) -> dict[str, Any]:
    """A pane as a probe tells of it."""
    pane = {"pane_id": f"%{number}", "pid": 4000 + number, "session_name": "liar", "window_id": f"@{number}"}
    texts = {"window_name": "w", "title": "t", "cwd": "/", "branch": "", "command": "claude", "mark": "claude"}
    return {**pane, **texts, "foreground": [], **fields}


def said_by_hook(envelope: dict[str, Any]) -> dict[str, Any]:
    return {"notice": "hook", "type": "application/json", "body": json.dumps(envelope)}


def envelope(state: str, **whose: Any) -> dict[str, Any]:
    event_id = uuid.uuid4().hex
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ids = {"event_id": event_id, "dedupe_key": event_id, "event_time": moment}
    return {**ids, "event_type": f"state.{state}", "source": "hook", **whose}


# The line


def write(raw: bytes) -> None:
    rest = memoryview(raw)
    while rest:
        rest = rest[os.write(1, rest) :]


def frame(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def say(message: Any) -> None:
    write(frame(json.dumps(message).encode()))


def read(size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = os.read(0, size - len(data))
        if not chunk:
            sys.exit()
        data += chunk
    return data


def greet() -> None:
    length = b""
    while not length.endswith(b"\n"):
        length += read(1)
    source = read(int(length)).decode()
    found = re.search(r"^GREETING = (.+)$", source, re.MULTILINE)
    assert found is not None
    write(ast.literal_eval(found[1]).encode())


def everything_asked() -> Iterator[dict[str, Any]]:
    """Told that it has begun, the other end asks."""
    say({"notice": "begun", "python": "3.11", "sockets": ["/tmp/tmux-0/default"]})
    while True:
        (length,) = struct.unpack(">I", read(4))
        yield json.loads(read(length))


def questions() -> Iterator[int]:
    """The ids of the looks that are asked for."""
    return (asked["id"] for asked in everything_asked() if asked["do"] == "look")


def answer(number: int, **looked: Any) -> None:
    say({"id": number, "looked": {**QUIET, "now": time.time(), **looked}})


def answer_all(**looked: Any) -> None:
    for number in questions():
        answer(number, **looked)


# Frames and JSON


def oversized_frame() -> None:
    next(questions())
    write(struct.pack(">I", 1 << 31) + b"x" * 1_000_000)


def large_junk() -> None:
    for number in questions():
        junk = {"id": number, "looked": {**QUIET, "now": 0, "panes": [{"junk": "j" * 70} for _ in range(85_000)]}}
        say(junk)


def deep_junk() -> None:
    next(questions())
    write(frame(b"[" * 7_000_000))


def not_json() -> None:
    next(questions())
    write(frame(b"\xff\xfe this is not JSON"))


def frame_without_end() -> None:
    next(questions())
    write(struct.pack(">I", 8_000_000))
    while True:
        write(b" ")
        time.sleep(0.01)


def bytes_without_frames() -> None:
    next(questions())
    while True:
        write(b"all work and no play makes jack a dull boy\n" * 1_000)


def bytes_before_the_greeting() -> None:
    while True:
        write(b"welcome\n" * 1_000)


def empty_frames() -> None:
    next(questions())
    while True:
        write(b"\0" * 65_536)


# Answers


def unasked_answer() -> None:
    for number in questions():
        answer(number + 1_000)


def answers_twice() -> None:
    for number in questions():
        answer(number)
        answer(number)


def neither_answer_nor_report() -> None:
    for number in questions():
        say({"id": number})


def forged_pane(**fields: Any) -> None:
    answer_all(panes=[row(1), row(2, **fields)])


def forged_look(**fields: Any) -> None:
    answer_all(**{"panes": [row(1)], **fields})


def too_many_panes() -> None:
    for number in questions():
        answer(number, panes=[row(each, foreground=[]) for each in range(20_000)])


def ever_more_panes() -> None:
    for turn, number in enumerate(questions()):
        answer(number, panes=[row(each) for each in range(turn * 4_000, turn * 4_000 + 4_000)])
        say({"notice": "stirred"})


def fat_panes(count: int) -> None:
    """Within every limit of a single pane."""
    fat = dict.fromkeys(("session_name", "window_name", "title", "cwd"), "\U0001f600" * 4_000)
    for turn, number in enumerate(questions()):
        start = turn * 40 % count
        answer(number, panes=[row(each, **fat) for each in range(start, start + 40)])
        say({"notice": "stirred"})


def fat_screens(count: int) -> None:
    """Within every limit of a single screen, and asked for: an agent in each pane."""
    for turn, number in enumerate(questions()):
        panes = [row(each) for each in range(count)] if turn == 0 else []
        start = turn * 30 % count
        screens = [{"pane_id": f"%{each % count}", "text": "s" * 199_000} for each in range(start, start + 30)]
        answer(number, panes=panes, screens=screens)
        say({"notice": "stirred"})


def failing(message: str) -> None:
    for number in questions():
        say({"id": number, "failed": message})


# Errands

HONEST: dict[str, dict[str, Any] | None] = {
    "environ": {"done": {"values": {"HOME": "/home/liar"}}},
    "versions": {"done": {"versions": {}}},
    "read": {"done": {"data": None}},
    "is_folder": {"done": {"is_folder": True}},
    "is_answered": {"done": {"is_answered": False}},
    "replace": {"done": {"folders": []}},
    "remove": {"done": {}},
    "tmux_hooks": {"done": {"is_running": True, "there": [], "changed": [], "other": ""}},
}


def lies_about(times: int = 1, **errands: dict[str, Any] | None) -> None:
    """Looks as it should, and says that instead when it is asked for one of these; nothing if that is null."""
    for asked in everything_asked():
        if asked["do"] == "look":
            answer(asked["id"], panes=[row(0)])
        elif (said := {**HONEST, **errands}.get(asked["do"])) is not None:
            for _ in range(times if asked["do"] in errands else 1):
                say({"id": asked["id"], **said})


# Reports


def reports(envelopes: list[dict[str, Any]]) -> None:
    """As hooks would; each time it is asked, so that a report that was not taken is made again."""
    for number in questions():
        for each in envelopes:
            say(said_by_hook(envelope(**each)))
        answer(number, panes=[row(0)])


def hook_record(record: dict[str, Any]) -> None:
    for number in questions():
        moment = {"event_id": uuid.uuid4().hex, "event_time_ns": time.time_ns()}
        body = json.dumps({"v": 1, "agent": "claude", "event": "UserPromptSubmit", **moment, **record}) + "\n{}"
        say({"notice": "hook", "type": "application/vnd.agtmux.hook", "body": body})
        answer(number, panes=[row(0)])


def asks(message: dict[str, Any]) -> None:
    for number in questions():
        say(message)
        answer(number, panes=[row(0)])


def flood(message: dict[str, Any]) -> None:
    """The same, as fast as it is taken; and no answer, as there is no time for one."""
    next(questions())
    frames = frame(json.dumps(message).encode()) * 200
    while True:
        write(frames)


def flood_of_reports(pane_id: str) -> None:
    """All different, and all in order."""
    next(questions())
    while True:
        report = said_by_hook(envelope("running", target_id=sys.argv[2], pane_id=pane_id))
        write(frame(json.dumps(report).encode()))


def pressing(seed: str, panes: int, reports: int, size: int) -> None:
    """Stays within every limit of a single message: answers each look with that many agents, and reports so many times
    a second that one of them waits, with a random payload of about `size` bytes that holds few long texts."""
    chance = random.Random(seed)
    # Made before: what is sent is to be limited by whoever takes it.
    payloads = [json.dumps(junk(chance, size)) for _ in range(16)]
    asked, bucket, told_at = everything_asked_at_once(), 0.0, time.monotonic()
    for turn in itertools.count():
        for question in next(asked):
            if question["do"] == "look":
                answer(question["id"], panes=[row(each) for each in range(panes)] if turn < 2 else [])
        now = time.monotonic()
        bucket, told_at = min(bucket + (now - told_at) * reports, reports / 10), now
        while bucket >= 1:
            bucket -= 1
            place = {"target_id": sys.argv[2], "pane_id": f"%{chance.randrange(panes)}"}
            report = envelope("waiting_approval", **place, raw_payload={"attention": question_of(chance), "junk": 0})
            body = json.dumps(report).replace('"junk": 0', f'"junk": {chance.choice(payloads)}')
            say({"notice": "hook", "type": "application/json", "body": body})


def everything_asked_at_once() -> Iterator[list[dict[str, Any]]]:
    """What has been asked by now, which may be nothing; it waits a moment for it."""
    say({"notice": "begun", "python": "3.11", "sockets": ["/tmp/tmux-0/default"]})
    heard = b""
    while True:
        found = []
        if select.select([0], [], [], 0.02)[0]:
            if not (chunk := os.read(0, 65_536)):
                sys.exit()
            heard += chunk
        while len(heard) >= 4 and len(heard) >= 4 + (length := struct.unpack(">I", heard[:4])[0]):
            found.append(json.loads(heard[4 : 4 + length]))
            heard = heard[4 + length :]
        yield found


def question_of(chance: random.Random) -> dict[str, Any]:
    return {
        "kind": "approval",
        "summary": f"rm -rf {chance.getrandbits(32):x}",
        "detail": "x" * chance.randrange(4_000),
    }


def junk(chance: random.Random, size: int) -> Any:
    """About so many bytes of JSON in a shape that holds much and little text: numbers, keys, lists in lists."""
    match chance.randrange(4):
        case 0:
            return [chance.getrandbits(60) for _ in range(size // 20)]
        case 1:
            return {f"{chance.getrandbits(200):x}": None for _ in range(size // 57)}
        case 2:
            return [[[[]] * 10] * 10 for _ in range(size // 500)]
        case _:
            return [{"a": chance.random(), "b": f"{chance.getrandbits(64):x}"} for _ in range(size // 55)]


# Bridges


def said(number: int, data: bytes, **more: Any) -> dict[str, Any]:
    return {"notice": "said", "bridge": number, "data": base64.b64encode(data).decode(), "is_last": True, **more}


def bridges(messages: list[dict[str, Any]]) -> None:
    """Whatever it says of them, once it is asked."""
    for number in questions():
        for message in messages:
            say(message)
        answer(number, panes=[row(0)])


def bridge_without_end() -> None:
    """Says no more at once than it may, and never comes to an end."""
    piece = said(1, b" " * 48_000, is_last=False)
    for asked in everything_asked():
        if asked["do"] == "look":
            answer(asked["id"], panes=[row(0)])
            if asked["id"] == 1:
                say({"notice": "bridge", "bridge": 1})
                for _ in range(4):
                    say(piece)
        elif asked["do"] == "more":
            say(piece)


def new_bridges_without_end() -> None:
    next(questions())
    for number in itertools.count(1):
        say({"notice": "bridge", "bridge": number})
        say({"notice": "left", "bridge": number})


def bridge_that_never_takes() -> None:
    """It asks for much, and never says that an answer has gone to anybody."""
    for asked in everything_asked():
        if asked["do"] == "look":
            answer(asked["id"], panes=[row(0)])
            if asked["id"] == 1:
                say({"notice": "bridge", "bridge": 1})
                greet_and_ask(1, None)
        elif asked["do"] == "more":
            say(said(1, call("list_agents")))


def call(tool: str) -> bytes:
    params = {"name": tool, "arguments": {}}
    return json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).encode()


def greet_and_ask(number: int, lineage: list[int] | None) -> None:
    info = {"name": "liar", "version": "0"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    greeting = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    for line in (json.dumps(greeting).encode(), call("list_agents")):
        say(said(number, line, lineage=lineage, on_terminal=lineage))


def asks_as(lineage: list[int]) -> None:
    """Which tools it is let use, and who it is then, is the title of its pane."""
    title, heard, looks = "", b"", 0
    for asked in everything_asked():
        if asked["do"] == "look":
            looks += 1
            answer(asked["id"], panes=[row(0, title=title)])
            if looks == 1:
                say({"notice": "bridge", "bridge": 1})
            if looks == 3:
                # By now its own pane is known.
                greet_and_ask(1, lineage)
            say({"notice": "stirred"})
        elif asked["do"] == "tell":
            say({"notice": "took", "bridge": 1})
            heard += base64.b64decode(asked["data"])
            if asked["is_last"]:
                told = json.loads(heard)["result"].get("structuredContent")
                if told is not None:
                    title = f"you are {(told['you'] or {}).get('ref', 'nobody')}"
                heard = b""


# Life and death


def silent() -> None:
    while True:
        read(1)


def dies_at_once() -> None:
    sys.exit(1)


def dies_at_the_first_question() -> None:
    next(questions())


def dies_after_each_answer() -> None:
    for number in questions():
        answer(number, panes=[row(0)])
        return


if __name__ == "__main__":
    if sys.argv[1] != "bytes_before_the_greeting":
        greet()
    globals()[sys.argv[1]](**json.loads(Path(sys.argv[3]).read_text("utf-8")))
