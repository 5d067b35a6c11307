"""What a target may report: the newest of each pane is never lost, and what is left out is said."""

from __future__ import annotations

import json
import random
from dataclasses import replace

from agtmux.agents.registry import Registry
from agtmux.domain.events import Event
from agtmux.domain.redact import Redacted
from agtmux.domain.states import Confidence, State
from agtmux.observe.allowances import Allowance, AllowanceLimits, Bucket, Rate
from agtmux.observe.fleet import _admitted
from agtmux.observe.intake import HOOK_TYPE, Intake
from agtmux.targets.messages import Hook
from support.chance import any_seed
from unit.builders import FakeTime, an_event, unbound

SMALL = AllowanceLimits(Rate(10, 1), Rate(1_000, 100), Rate(5_000, 100), Rate(20, 1))


def of_pane(number: int, event_id: str, size: int = 0, state: str | None = "running") -> Event:
    event = unbound(an_event(event_id, state), pane_id=f"%{number}", target_id="vm1")
    return replace(event, raw_payload=Redacted("x" * size)) if size else event


def test_a_bucket_never_gives_more_than_it_holds() -> None:
    chance = random.Random(any_seed())
    for _ in range(200):
        rate = Rate(chance.uniform(1, 100), chance.uniform(0.1, 50))
        bucket, now, given = Bucket(rate), 0.0, 0.0
        for _ in range(200):
            # Now and then the clock stands still.
            now += chance.choice([0.0, chance.uniform(0, 3)])
            amount = chance.uniform(0, rate.at_once)
            given += amount if bucket.take(amount, now) else 0
            assert given <= rate.at_once + now * rate.a_second + 1e-6


def test_what_is_within_the_allowance_is_handed_on_as_it_is() -> None:
    allowance = Allowance(SMALL)
    events = [of_pane(n, f"e{n}", 50) for n in range(8)]
    assert allowance.take(events, 0.0) == events
    assert allowance.excess(0.0) is None


def test_the_newest_report_of_each_pane_is_handed_on_when_there_is_room() -> None:
    chance = random.Random(any_seed())
    allowance, newest, handed_on, now = Allowance(SMALL), {}, {}, 0.0
    for number in range(500):
        now += chance.uniform(0, 0.2)
        event = of_pane(chance.randrange(5), f"e{number}", state=chance.choice(["running", "waiting_approval", None]))
        if event.verdict is not None:
            newest[event.pane_id] = event.event_id
        for taken in [*allowance.take([event], now), *(allowance.late(now) if number % 50 == 0 else [])]:
            if taken.verdict is not None:
                handed_on[taken.pane_id] = taken.event_id
    assert allowance.excess(now) is not None
    handed_on |= {event.pane_id: event.event_id for event in allowance.late(now + 100)}
    assert handed_on == newest


def test_a_report_that_waited_does_not_come_after_a_newer_one_of_its_pane() -> None:
    allowance = Allowance(SMALL)
    allowance.take([of_pane(1, f"e{n}") for n in range(11)], 0.0)
    assert [event.event_id for event in allowance.take([of_pane(1, "newer")], 1.0)] == ["newer"]
    assert allowance.late(100.0) == []


def test_a_report_without_a_verdict_does_not_replace_one_that_waited() -> None:
    allowance = Allowance(SMALL)
    allowance.take([of_pane(1, f"e{n}", state="waiting_approval") for n in range(11)], 0.0)
    assert len(allowance.take([of_pane(1, "says-nothing", state=None)], 1.0)) == 1
    assert [event.event_id for event in allowance.late(100.0)] == ["e10"]


def test_a_payload_that_is_too_much_is_left_out_and_the_report_is_not() -> None:
    allowance = Allowance(SMALL)
    first, second = allowance.take([of_pane(1, "a", 900), of_pane(2, "b", 900)], 0.0)
    assert first.raw_payload is not None and second.raw_payload is None
    assert second.verdict is not None
    assert allowance.left_out["bytes"] == 900
    assert allowance.excess(0.0) is not None


def test_what_waits_is_bounded() -> None:
    allowance = Allowance(SMALL)
    allowance.take([of_pane(number, f"e{number}") for number in range(5_000)], 0.0)
    late = [event for now in range(1, 10_000, 10) for event in allowance.late(float(now))]
    assert len(late) <= 1_000


def test_too_many_bytes_are_not_even_read_and_it_recovers_by_itself() -> None:
    allowance = Allowance(SMALL)
    assert allowance.reads(4_000, 0.0)
    assert not allowance.reads(4_000, 0.0)
    assert "1 reports were left out" in str(allowance.excess(0.0))
    assert allowance.reads(3_000, 29.0)
    assert allowance.excess(31.0) is None


def test_a_report_too_large_to_read_still_says_that_its_agent_waits() -> None:
    allowance = Allowance(SMALL)
    facts = {"v": 1, "agent": "claude", "event": "PermissionRequest", "event_id": "e", "event_time_ns": 1}
    body = json.dumps(facts) + "\n" + json.dumps({"tool_name": "Bash", "tool_input": {"command": "x" * 9_000}})
    hook = Hook(HOOK_TYPE, body)
    admitted = _admitted(hook, allowance)
    assert admitted is not None and admitted != hook
    intake = Intake(Registry.load(), FakeTime().clock(), lambda _: None)
    event, whole = intake.hook(admitted.body.encode()), intake.hook(body.encode())
    assert event.verdict is not None and whole.verdict is not None
    assert event.verdict.state is whole.verdict.state is State.WAITING_APPROVAL
    assert event.verdict.confidence is not Confidence.HIGH
    assert _admitted(Hook("application/json", body), allowance) is None
    assert _admitted(Hook(HOOK_TYPE, "x" * 9_000), allowance) is None


def test_agents_that_come_and_go_without_end_are_not_taken_in() -> None:
    allowance = Allowance(SMALL)
    assert allowance.starts(20, 0.0)
    assert not allowance.starts(5, 1.0)
    assert "new agents" in str(allowance.excess(1.0))
    assert allowance.starts(5, 6.0)
