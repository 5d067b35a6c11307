"""Watch streams of a real daemon: what a client that comes and goes knows is what a fresh look shows."""

import contextlib
import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from support.chance import any_seed
from support.home import Home, event, shared_home, wait_until
from support.watching import Line, Watcher, decoded

STATES = ("running", "waiting_approval", "waiting_input", "completed", "idle", "error")
QUERIES = (
    "scope=panes",
    "scope=panes&needs_action=1",
    "scope=panes&state=running",
    "scope=panes&all=1",
    "scope=windows",
    "scope=windows&state=waiting_input",
    "scope=sessions&needs_action=1",
    "scope=sessions&group_by=session-name",
)
SCHEMAS = Path(__file__).resolve().parents[2] / "resources" / "schemas"
# More lines than are kept of a stream.
MANY = 600


@pytest.fixture(scope="module")
def stage() -> Iterator[tuple[Home, list[str]]]:
    """A daemon and six agents in two sessions, two of them in one window."""
    with shared_home() as home:
        panes = [home.pane(agent) for agent in ("claude", "codex", "claude")]
        panes.append(home.tmux("split-window", "-d", "-t", panes[0], "-P", "-F", "#{pane_id}", "sleep", "3600"))
        panes.append(home.tmux("new-session", "-d", "-s", "play", "-P", "-F", "#{pane_id}", "sleep", "3600"))
        for pane in panes[3:]:
            home.tmux("set-option", "-p", "-t", pane, "@agtmux_agent", "gemini")
        home.start()
        wait_until(lambda: all(home.state_of(pane) != "None" for pane in panes), "the panes")
        for pane in panes:
            tell(home, pane, "idle")
        yield home, panes


def tell(home: Home, pane: str, state: str, **payload: Any) -> None:
    """With low confidence: that of another falls some looks later, as its empty screen does not bear it out."""
    fields = {"raw_payload": {"confidence": "low", **payload}}
    assert home.ask("POST", "/v1/events", event(pane, f"state.{state}", **fields)).json["status"] == "applied"


def attention(summary: str, detail: str) -> dict[str, object]:
    return {"confidence": "low", "attention": {"kind": "question", "summary": summary, "detail": detail}}


def once(home: Home, query: str) -> list[Line]:
    answer = home.ask("GET", f"/v1/watch?{query}&once=1")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/x-ndjson"), answer
    return decoded(answer.body)


def snapshot(home: Home, query: str) -> Line:
    (line,) = once(home, query)
    assert line["type"] == "snapshot"
    return line


@pytest.mark.parametrize("query", QUERIES)
def test_a_snapshot_is_what_the_listing_shows(stage, query: str):
    home, panes = stage
    for number, pane in enumerate(panes):
        tell(home, pane, STATES[number])
    scope, _, filters = query.removeprefix("scope=").partition("&")
    listing = home.ask("GET", f"/v1/{scope}?{filters}").json
    line = snapshot(home, query)
    assert (line["items"], line["summary"], line["scope"]) == (listing["items"], listing["summary"], scope)
    if "group_by" in query:
        assert line["filters"] == {"group_by": "session-name"}
    else:
        assert line["filters"] == listing["filters"]


def schema(name: str) -> Draft202012Validator:
    """The shipped one, closed: what it does not describe is not said."""
    content = json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))
    for definition in content["$defs"].values():
        definition["additionalProperties"] = False
    return Draft202012Validator(content)


@pytest.mark.parametrize("query", QUERIES)
def test_listings_and_lines_are_as_their_schemas_say(stage, query: str):
    home, panes = stage
    scope, _, filters = query.removeprefix("scope=").partition("&")
    listing, line = schema(scope), schema(f"watch-{scope}")
    broken = {"name": "broken", "tmux_socket": str(home.folder / ("x" * 200))}
    payload = {"attention": {"kind": "question", "summary": "which?", "options": ["this", "that"]}}
    watcher = Watcher(home.socket, query)
    watcher.connect("0" * 32 + ":1")
    assert [watcher.next()["type"], watcher.next()["type"]] == ["reset", "snapshot"]
    for state in ("running", "waiting_input", "idle"):
        tell(home, panes[0], state, **payload)
    watcher.until_items(snapshot(home, query)["items"])
    watcher.cut()
    for each in watcher.lines:
        line.validate(each)
    assert home.ask("POST", "/v1/targets", broken).status == 200
    try:
        wait_until(lambda: home.ask("GET", "/v1/panes").json["partial"], "the error to be told")
        listing.validate(home.ask("GET", f"/v1/{scope}?{filters}").json)
        schema("targets").validate(home.ask("GET", "/v1/targets").json)
    finally:
        assert home.ask("DELETE", "/v1/targets/broken").status == 200
    for lacking in ("items", "changes", "summary", "cursor"):
        for each in watcher.lines:
            cut = {name: value for name, value in each.items() if name != lacking}
            assert line.is_valid(cut) == (cut == each), (lacking, each["type"])


@pytest.mark.parametrize("query", QUERIES)
def test_whoever_is_cut_off_gets_exactly_what_was_missed(stage, query: str):
    home, panes = stage
    chance = random.Random(any_seed())
    with Watcher(home.socket, query) as always, Watcher(home.socket, query) as often_cut:
        assert always.next() == always.lines[0] and often_cut.next() == often_cut.lines[0]
        is_connected = True
        for _ in range(60):
            tell(home, chance.choice(panes), chance.choice(STATES))
            if is_connected and chance.random() < 0.3:
                # It may be told much more than it has read.
                often_cut.cut()
                is_connected = False
            elif not is_connected and chance.random() < 0.5:
                often_cut.connect(often_cut.cursor)
                is_connected = True
        if not is_connected:
            often_cut.connect(often_cut.cursor)
        shown = snapshot(home, query)["items"]
        always.until_items(shown)
        # The same lines, and not merely the same outcome.
        while len(often_cut.changes) < len(always.changes):
            assert often_cut.next() is not None
        assert often_cut.changes == always.changes
        assert often_cut.items == always.items
        assert {line["stream_id"] for line in often_cut.lines} == {often_cut.lines[0]["stream_id"]}


def test_a_poll_with_a_cursor_gets_what_came_since(stage):
    home, panes = stage
    tell(home, panes[0], "idle")
    first = snapshot(home, "scope=panes")
    assert once(home, f"scope=panes&cursor={first['cursor']}") == []
    tell(home, panes[0], "running")
    tell(home, panes[0], "error")
    lines = once(home, f"scope=panes&cursor={first['cursor']}")
    assert [line["sequence"] for line in lines] == [2, 3]
    assert [line["changes"][0]["item"]["state"] for line in lines] == ["running", "error"]
    assert {line["stream_id"] for line in lines} == {first["stream_id"]}


def test_what_leaves_the_filter_is_deleted_and_what_enters_it_is_whole(stage):
    home, panes = stage
    for pane in panes:
        tell(home, pane, "idle")
    with Watcher(home.socket, "needs_action=1") as watcher:
        watcher.next()
        assert watcher.items == {}
        tell(home, panes[1], "waiting_approval")
        line = watcher.next()
        assert [change["op"] for change in line["changes"]] == ["upsert"]
        assert line["changes"][0]["item"] == home.panes()[panes[1]]
        assert line["summary"]["needs_action"] == 1
        tell(home, panes[2], "running")
        tell(home, panes[1], "running")
        line = watcher.next()
        assert [(change["op"], change["identity"]["pane_id"]) for change in line["changes"]] == [("delete", panes[1])]
        assert line["summary"]["total"] == 0


def test_a_window_is_told_when_any_of_its_panes_changes(stage):
    home, panes = stage
    for pane in panes:
        tell(home, pane, "idle")
    with Watcher(home.socket, "scope=windows") as windows, Watcher(home.socket, "scope=sessions") as sessions:
        windows.next(), sessions.next()
        tell(home, panes[3], "waiting_input")
        (change,) = windows.next()["changes"]
        assert change["identity"].keys() == {"target", "session_name", "window_id"}
        assert (change["item"]["top_state"], change["item"]["panes"], change["item"]["waiting"]) == (
            "waiting_input",
            2,
            1,
        )
        (change,) = sessions.next()["changes"]
        assert change["identity"] == {"target": "host", "session_name": "work"}
        assert change["item"]["by_target"]["host"]["waiting"] == 1
        home.tmux("rename-window", "-t", panes[3], "kitchen")
        (change,) = windows.next()["changes"]
        assert change["item"]["window_name"] == "kitchen"


def test_panes_that_move_and_end_are_told(home: Home):
    stays, goes = home.pane(), home.pane()
    home.tmux("new-session", "-d", "-s", "other", "sleep", "3600")
    home.start()
    wait_until(lambda: {stays, goes} <= set(home.panes()), "the panes")
    with Watcher(home.socket) as watcher:
        watcher.next()
        before = home.panes()[goes]["identity"]
        home.tmux("move-window", "-s", before["window_id"], "-t", "other:")
        wait_until(lambda: home.panes()[goes]["identity"]["session_name"] == "other", "the move")
        watcher.until_items(snapshot(home, "")["items"])
        home.tmux("kill-pane", "-t", goes)
        wait_until(lambda: goes not in home.panes(), "its end")
        watcher.until_items(snapshot(home, "")["items"])
        told = [(change["op"], change["identity"]) for line in watcher.lines[1:] for change in line["changes"]]
        assert ("delete", before) in told
        assert told[-1] == ("delete", before | {"session_name": "other"})


def test_a_cursor_that_never_was_is_refused(stage):
    home, _ = stage
    line = snapshot(home, "scope=panes&state=idle")
    stream = line["stream_id"]
    for query in (
        f"scope=panes&state=idle&cursor={stream}:{line['sequence'] + 1}",
        f"scope=panes&state=idle&cursor={stream}:0",
        f"scope=windows&state=idle&cursor={line['cursor']}",
        f"scope=panes&state=running&cursor={line['cursor']}",
        f"scope=panes&cursor={line['cursor']}",
    ):
        for mode in ("", "&once=1"):
            answer = home.ask("GET", f"/v1/watch?{query}{mode}")
            assert (answer.status, answer.error["code"]) == (400, "E_CURSOR_INVALID"), query


def begins_anew(watcher: Watcher, old: str) -> None:
    reset, shown = watcher.next(), watcher.next()
    assert [reset["type"], shown["type"]] == ["reset", "snapshot"]
    assert reset["stream_id"] == shown["stream_id"] != old.split(":")[0]
    assert [reset["sequence"], shown["sequence"]] == [1, 2]


def test_a_cursor_of_nobody_begins_anew(stage):
    home, panes = stage
    foreign = f"{'0' * 32}:17"
    watcher = Watcher(home.socket)
    with contextlib.closing(contextlib.ExitStack()) as closing:
        closing.callback(watcher.cut)
        watcher.connect(foreign)
        begins_anew(watcher, foreign)
        # Whoever saw the reset and no more has nothing to go on from.
        only_reset = watcher.lines[0]["cursor"]
        watcher.cut()
        watcher.connect(only_reset)
        begins_anew(watcher, only_reset)
        tell(home, panes[0], "running")
        tell(home, panes[0], "idle")
        assert watcher.next()["sequence"] == 3
    answer = home.ask("GET", f"/v1/watch?once=1&cursor={foreign}")
    assert (answer.status, answer.error["code"]) == (410, "E_CURSOR_EXPIRED")


def test_a_cursor_that_is_too_old_begins_anew(stage):
    home, panes = stage
    old = snapshot(home, "")["cursor"]
    with home.connect() as producer:
        for number in range(MANY):
            told = event(panes[0], f"state.{STATES[number % 2]}", raw_payload={"confidence": "low"})
            assert producer.ask("POST", "/v1/events", told).status == 200
    answer = home.ask("GET", f"/v1/watch?once=1&cursor={old}")
    assert (answer.status, answer.error["code"]) == (410, "E_CURSOR_EXPIRED")
    watcher = Watcher(home.socket)
    watcher.connect(old)
    begins_anew(watcher, old)
    watcher.until_items(snapshot(home, "")["items"])
    watcher.cut()


def test_a_daemon_that_was_restarted_begins_anew(home: Home):
    pane = home.pane()
    daemon = home.start()
    wait_until(lambda: pane in home.panes(), "the pane")
    with Watcher(home.socket) as watcher:
        watcher.next()
        tell(home, pane, "running")
        watcher.next()
        home.end(daemon)
        while (line := watcher.next()) is not None:
            last = line
        assert last["type"] == "reset"
        assert last["stream_id"] == watcher.lines[0]["stream_id"]
        watcher.cut()
        home.start()
        wait_until(lambda: pane in home.panes(), "the pane")
        for cursor in (watcher.lines[0]["cursor"], last["cursor"]):
            watcher.connect(cursor)
            begins_anew(watcher, cursor)
            watcher.until_items(snapshot(home, "")["items"])
            watcher.cut()
            answer = home.ask("GET", f"/v1/watch?once=1&cursor={cursor}")
            assert answer.error["code"] == "E_CURSOR_EXPIRED"


def resident_kilobytes(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1])


def test_a_burst_is_not_kept_for_readers_that_do_not_read(stage):
    home, panes = stage
    details = "y" * 1_900
    paused = [Watcher(home.socket) for _ in range(20)]
    with contextlib.ExitStack() as closing:
        for watcher in paused:
            closing.callback(watcher.cut)
            watcher.connect()
            assert watcher.next()["type"] == "snapshot"
        before = resident_kilobytes(home.health()["pid"])
        with home.connect() as producer:
            for number in range(1_000):
                payload = attention(f"{number}", details)
                told = event(panes[number % 5], "state.waiting_input", raw_payload=payload)
                assert producer.ask("POST", "/v1/events", told).status == 200
        # 3 MB of lines; a copy for each of them would be 60.
        assert resident_kilobytes(home.health()["pid"]) - before < 25_000
        shown = snapshot(home, "")["items"]
        for watcher in paused:
            watcher.until_items(shown)
            kinds = [line["type"] for line in watcher.lines]
            assert kinds.count("reset") == 1 and kinds[kinds.index("reset") + 1] == "snapshot"
            assert len(watcher.lines) < 1_000
    wait_until(lambda: home.health()["streams"] == 0, "the end of all streams")


def test_readers_that_never_read_are_let_go_of_when_they_leave(stage):
    home, panes = stage
    deaf = [Watcher(home.socket) for _ in range(5)]
    for watcher in deaf:
        watcher.connect()
    with home.connect() as producer:
        for number in range(MANY):
            payload = attention(f"{number}", "z" * 1_900)
            told = event(panes[0], "state.waiting_input", raw_payload=payload)
            assert producer.ask("POST", "/v1/events", told).status == 200
    assert home.health()["streams"] == 5
    for watcher in deaf:
        watcher.cut()
    wait_until(lambda: home.health()["streams"] == 0, "the end of all streams")


def test_fifty_watchers_see_the_same(stage):
    home, panes = stage
    chance = random.Random(7)
    with contextlib.ExitStack() as closing:
        watchers = [closing.enter_context(Watcher(home.socket, "scope=panes")) for _ in range(50)]
        for watcher in watchers:
            watcher.next()
        assert home.health()["streams"] == 50

        def produce() -> None:
            for _ in range(100):
                tell(home, chance.choice(panes), chance.choice(STATES))

        producer = threading.Thread(target=produce)
        producer.start()
        producer.join()
        shown = snapshot(home, "scope=panes")["items"]
        for watcher in watchers:
            watcher.until_items(shown)
        assert len({watcher.lines[0]["stream_id"] for watcher in watchers}) == 50
        assert all(watcher.changes == watchers[0].changes for watcher in watchers)
    wait_until(lambda: home.health()["streams"] == 0, "the end of all streams")
