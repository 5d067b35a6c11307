"""What hooks tell while no daemon is there is told to the next one, and counts from when it happened."""

import json
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from agtmux.clock import Clock
from agtmux.config import Config
from agtmux.hook.compose import compose
from agtmux.hook.spool import append
from agtmux.service import Service
from support.home import Home, event, wait_until
from support.hook import install, patient

SECOND = 1_000_000_000


@pytest.fixture
def hook(home: Home) -> Path:
    """The command as setup.py makes it, with the Python beside it that this environment is made of.

    It is patient, as on a machine with much to do it drops what it cannot spool in time.
    """
    return install(home.folder / "bin", patient(compose()))


def tell(home: Home, hook: Path, pane: str, name: str, payload: dict) -> None:
    done = subprocess.run(
        [hook, "claude", name],
        env=home.env | home.tmux_variables(pane),
        input=json.dumps(payload).encode(),
        capture_output=True,
        timeout=20,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def spool(home: Home, pane: str, name: str, age: float = 0.0, **fields: object) -> str:
    facts = {
        "v": 1,
        "agent": "claude",
        "event": name,
        "event_id": uuid.uuid4().hex,
        "event_time_ns": time.time_ns() - int(age * SECOND),
        "pane_id": pane,
        "tmux": home.tmux_variables(pane)["TMUX"],
    } | fields
    assert append(json.dumps(facts).encode(), b"{}", str(home.state).encode())
    return str(facts["event_id"])


def lines(home: Home) -> list[bytes]:
    return (home.state / "spool" / "hook.jsonl").read_bytes().splitlines()


def test_what_a_hook_told_nobody_appears_when_the_daemon_comes(home: Home, hook: Path):
    pane = home.pane()
    tell(home, hook, pane, "UserPromptSubmit", {"prompt": "hello"})
    question = {"tool_name": "Bash", "tool_input": {"command": "make deploy", "password": "hunter2hunter2"}}
    tell(home, hook, pane, "PermissionRequest", question)
    assert len(lines(home)) == 2
    home.start()
    wait_until(lambda: home.state_of(pane) == "waiting_approval", "the state")
    shown = home.panes()[pane]
    assert shown["attention"] is not None, shown
    assert shown["attention"]["summary"] == "make deploy"
    assert home.health()["spool"] == {"dropped": 0, "damaged": 0, "ingested": 2}
    assert not (home.state / "spool" / "hook.jsonl").exists()
    assert not (home.state / "spool" / "hook.jsonl.draining").exists()
    assert not [row for row in home.query("SELECT raw_payload FROM events") if "hunter2" in str(row)]


def test_with_a_daemon_the_hook_reaches_it_at_once(home: Home, hook: Path):
    pane = home.pane()
    home.start()
    wait_until(lambda: pane in home.panes(), "the pane")
    tell(home, hook, pane, "Stop", {})
    wait_until(lambda: home.state_of(pane) == "completed", "the state")


def test_an_event_from_before_the_agent_began_is_not_its(home: Home):
    pane = home.pane()
    spool(home, pane, "PermissionRequest", age=600)
    home.start()
    wait_until(lambda: pane in home.panes(), "the pane")
    assert home.state_of(pane) == "unknown"
    assert home.query("SELECT status, reason_code FROM event_inbox") == [("dropped_unbound", "bind_no_candidate")]


def test_spooled_events_count_in_the_order_they_happened(home: Home):
    pane = home.pane()
    spool(home, pane, "Stop", age=0)
    spool(home, pane, "PermissionRequest", age=3)
    home.start()
    wait_until(lambda: home.state_of(pane) == "completed", "the state")
    assert home.health()["spool"] == {"dropped": 0, "damaged": 0, "ingested": 2}


def test_a_spooled_event_never_overtakes_one_that_came_since(home: Home):
    pane = home.pane()
    home.start()
    wait_until(lambda: pane in home.panes(), "the pane")
    home.ask("POST", "/v1/events", event(pane, "state.completed"))
    late = spool(home, pane, "PermissionRequest", age=2)
    wait_until(lambda: late in home.stored_ids(), "it to be taken in")
    assert home.state_of(pane) == "completed"


def test_an_event_of_another_tmux_server_is_not_this_ones(home: Home):
    """After a restart of tmux its panes have the same ids."""
    pane = home.pane()
    home.start()
    wait_until(lambda: pane in home.panes(), "the pane")
    socket, _, session = home.tmux_variables(pane)["TMUX"].split(",")
    facts = {
        **{"v": 1, "agent": "claude", "event": "Stop", "event_id": "e" * 32, "event_time_ns": time.time_ns()},
        **{"pane_id": pane, "tmux": f"{socket},1,{session}"},
    }
    body = json.dumps(facts).encode() + b"\n{}"
    answer = home.ask("POST", "/v1/events", body, {"Content-Type": "application/vnd.agtmux.hook"})
    wait_until(lambda: home.query("SELECT status FROM event_inbox WHERE status = 'dropped_unbound'"), "it to be let go")
    assert answer.status == 200
    assert home.state_of(pane) == "unknown"


def test_what_is_spooled_while_the_daemon_runs_is_found_too(home: Home):
    """A daemon that was too slow for a hook's patience."""
    pane = home.pane()
    home.start()
    wait_until(lambda: pane in home.panes(), "the pane")
    spool(home, pane, "Stop")
    wait_until(lambda: home.state_of(pane) == "completed", "the state")


async def test_what_a_killed_daemon_had_taken_aside_comes_before_what_was_spooled_since(home: Home, monkeypatch):
    """Both of them before the daemon answers anybody: what comes by the socket is newer still."""
    monkeypatch.setenv("TMUX_TMPDIR", home.env["TMUX_TMPDIR"])
    pane = home.pane()
    aside = [spool(home, pane, name, age=3) for name in ("UserPromptSubmit", "PermissionRequest")]
    path = home.state / "spool" / "hook.jsonl"
    path.rename(path.with_name("hook.jsonl.draining"))
    since = [spool(home, pane, name, age=2) for name in ("PostToolUse", "Stop")]
    service = await Service.open(home.state, Config(), Clock())
    try:
        assert service.spool == {"dropped": 0, "damaged": 0, "ingested": 4}
        taken = home.query("SELECT inbox_id FROM event_inbox ORDER BY ingested_at")
        assert [row[0] for row in taken] == aside + since
        assert list(path.parent.iterdir()) == []
    finally:
        await service.close()


def test_a_daemon_killed_over_the_spool_leaves_it_to_the_next(home: Home):
    pane = home.pane()
    aside = spool(home, pane, "PermissionRequest", age=3)
    path = home.state / "spool" / "hook.jsonl"
    path.rename(path.with_name("hook.jsonl.draining"))
    since = spool(home, pane, "UserPromptSubmit", age=2)
    home.start()
    wait_until(lambda: home.state_of(pane) == "running", "the state")
    assert home.health()["spool"] == {"dropped": 0, "damaged": 0, "ingested": 2}
    assert {aside, since} <= home.stored_ids()


def test_a_damaged_spool_loses_only_what_is_damaged(home: Home):
    pane = home.pane()
    spool(home, pane, "UserPromptSubmit")
    with (home.state / "spool" / "hook.jsonl").open("ab") as file:
        file.write(b"\x00\xff garbage\n{}\n[1, 2]\n" + b"[" * 100_000 + b"\n")
    spool(home, pane, "Stop")
    with (home.state / "spool" / "hook.jsonl").open("ab") as file:
        file.write(b'{"v": 1, "agent": "claude", "event')
    home.start()
    wait_until(lambda: home.state_of(pane) == "completed", "the state")
    assert home.health()["spool"] == {"dropped": 0, "damaged": 5, "ingested": 2}


@pytest.mark.parametrize(
    "fields",
    [
        {"agent": "hal9000"},
        {"event_time_ns": "now"},
        {"event_id": "x" * 1_000},
        {"event_time_ns": 10**40},
        {"event_time_ns": -(10**40)},
        {"event": 17},
    ],
    ids=lambda fields: ", ".join(f"{key}={str(value)[:12]}" for key, value in fields.items()),
)
def test_a_record_that_makes_no_sense_is_counted_and_keeps_nobody_from_starting(home: Home, fields: dict):
    pane = home.pane()
    spool(home, pane, "Stop")
    spool(home, pane, "UserPromptSubmit", age=1)
    with (home.state / "spool" / "hook.jsonl").open("r+b") as file:
        good = [json.loads(line) for line in file.readlines()]
        bad = good[0] | {"event_id": "bad"} | fields
        file.seek(0)
        file.write("".join(json.dumps(record) + "\n" for record in [bad, *good]).encode())
    home.start()
    wait_until(lambda: home.state_of(pane) == "completed", "the state")
    health = home.health()
    assert sum(health["refused"].values()) == 1, health
    assert health["spool"]["ingested"] == 2


def test_half_a_surrogate_pair_in_the_spool_keeps_nobody_from_starting(home: Home):
    pane = home.pane()
    spool(home, pane, "Stop")
    path = home.state / "spool" / "hook.jsonl"
    record = json.loads(path.read_bytes())
    bad = json.dumps(record | {"event_id": "\ud800", "event": "\udfff", "payload": {"\ud800": "\udfff"}})
    path.write_bytes(bad.encode() + b"\n" + path.read_bytes())
    home.start()
    wait_until(lambda: home.state_of(pane) == "completed", "the state")
