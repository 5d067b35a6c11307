"""The one path in: duplicates, dead runtimes, events that wait for their runtime, and what a restart takes up."""

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from agtmux.clock import Clock
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import DEMOTION_DUE
from agtmux.domain.panes import HOST, Target, TargetKind
from agtmux.domain.redact import Redacted
from agtmux.domain.runtimes import RuntimeId, TargetId
from agtmux.domain.states import Health, Source, State
from agtmux.observe.submissions import AddTarget, ExpirePending, RemoveTarget
from unit.builders import (
    PANE,
    FakeTime,
    a_core,
    a_look,
    a_pane,
    a_verdict,
    after,
    an_attention,
    an_event,
    rows,
    seen,
    unbound,
)

FIRST = an_event("e1", "running", at=1)
SAME_KEY = replace(an_event("e9", "error", at=9), dedupe_key=FIRST.dedupe_key, event_type="claude.other")
SAME_ID = replace(an_event("e1", "error", at=9), dedupe_key="another-key", source=Source.NOTIFY)


def inbox(directory: Path) -> dict[str, tuple[str, str | None]]:
    return {row[0]: row[1:] for row in rows(directory, "SELECT inbox_id, status, reason_code FROM event_inbox")}


@pytest.mark.parametrize("again", [FIRST, SAME_KEY, SAME_ID], ids=["resent", "same key", "same id"])
@pytest.mark.parametrize("named", [True, False], ids=["with runtime", "through the inbox"])
@pytest.mark.parametrize("when", ["same batch", "next batch", "after a restart"])
async def test_a_duplicate_changes_nothing(tmp_path: Path, again, named: bool, when: str) -> None:
    first, again = (FIRST, again) if named else (unbound(FIRST), unbound(again))
    async with a_core(tmp_path) as core:
        await core.look(seen())
        sent = (first, again) if when == "same batch" else (first,)
        statuses = await core.take(*sent)
        assert statuses[0] == "applied"
        if when == "next batch":
            statuses += await core.take(again)
        before = core.record
    if when == "after a restart":
        async with a_core(tmp_path) as core:
            statuses += await core.take(again)
            assert core.record == before
    assert statuses == ["applied", "duplicate"]
    assert before.row.state is State.RUNNING
    assert before.cursors.keys() == {Source.HOOK}
    assert rows(tmp_path, "SELECT event_id, event_type, source FROM events") == [("e1", "claude.e1", "hook")]


async def test_the_same_key_of_another_source_or_pane_is_no_duplicate(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        other = a_pane("%2")
        await core.look(seen(), seen(pid=200, pane=other))
        notify = replace(FIRST, event_id="e2", source=Source.NOTIFY)
        elsewhere = replace(unbound(FIRST, "%2"), event_id="e3")
        assert await core.take(FIRST, notify, elsewhere) == ["applied"] * 3


async def test_a_duplicate_behind_a_look_of_the_same_transaction_takes_nobody_with_it(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        first = unbound(an_event("e1", "running", at=0.5))
        again = replace(unbound(an_event("e2", "error", at=2)), dedupe_key=first.dedupe_key)
        innocent = unbound(an_event("e3", "idle", at=3))
        before = core.database.writer.commits
        submissions = (core.take(first), core.look(seen()), core.take(again), core.take(innocent))
        statuses = await asyncio.gather(*submissions)
        assert core.database.writer.commits == before + 1
        assert statuses == [["pending_bind"], None, ["duplicate"], ["applied"]]
        assert core.record.row.state is State.IDLE
    assert rows(tmp_path, "SELECT event_id FROM events ORDER BY event_id") == [("e1",), ("e3",)]


async def test_an_event_sent_with_and_without_its_runtime_counts_once(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen())
        assert await core.take(FIRST) == ["applied"]
        assert await core.take(replace(unbound(FIRST), event_id="e2")) == ["duplicate"]
        assert len(rows(tmp_path, "SELECT * FROM events")) == 1


DEAD = {
    "the agent was restarted": (seen(pid=101),),
    "another agent took its place": (seen("codex", pid=102),),
    "only the shell is left": (seen("none", pid=100),),
    "the pane is gone": (),
}


@pytest.mark.parametrize("looks", DEAD.values(), ids=DEAD.keys())
async def test_events_of_a_dead_runtime_change_nothing(tmp_path: Path, looks) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen())
        dead = core.record.runtime.runtime_id
        await core.look(*looks, at=2)
        before = dict(core.world.records)
        late = [an_event(f"late-{n}", state, at=3 + n, runtime_id=dead) for n, state in enumerate(State)]
        assert await core.take(*late) == ["stale_runtime"] * len(late)
        assert core.world.records == before
        assert dead not in core.world.by_runtime
    assert rows(tmp_path, "SELECT * FROM events") == []
    assert rows(tmp_path, "SELECT * FROM runtime_source_cursors") == []


async def test_events_of_a_runtime_that_never_was_change_nothing(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen())
        before = core.record
        assert await core.take(an_event(runtime_id=RuntimeId("f" * 64))) == ["stale_runtime"]
        assert core.record is before


async def test_events_of_an_earlier_server_with_the_same_pane_id_change_nothing(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen(), boot="1-1")
        earlier = core.record.runtime
        await core.look(seen(), at=2, boot="2-2")
        assert core.record.runtime.runtime_id != earlier.runtime_id
        before = core.record
        assert await core.take(an_event(runtime_id=earlier.runtime_id)) == ["stale_runtime"]
        assert core.record is before


async def test_a_dead_runtime_stays_dead_after_a_restart(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen())
        await core.take(FIRST)
        await core.look(seen(pid=101), at=2)
    async with a_core(tmp_path) as core:
        assert await core.take(an_event("late", "error", at=3)) == ["stale_runtime"]
        assert core.record.row.reason_code == "no_signal"


async def test_one_bad_event_of_a_batch_takes_nothing_of_the_others_with_it(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen())
        dead = an_event("dead", "error", runtime_id=RuntimeId("f" * 64))
        lost = unbound(an_event("lost", "error"), pane_id="%9", target_id="nowhere")
        statuses = await core.take(dead, FIRST, lost, SAME_KEY)
        assert statuses == ["stale_runtime", "applied", "dropped_unbound", "duplicate"]
        assert core.record.row.state is State.RUNNING


async def test_an_agents_first_hook_waits_for_the_look_that_finds_the_agent(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        asked: list[str] = []
        core.ingest.on_pending.append(asked.append)
        await core.look(seen("none", pid=100))
        first = unbound(an_event("e1", "idle", at=5), agent_type="claude")
        assert await core.take(first) == ["pending_bind"]
        assert asked == [HOST]
        assert core.record.row.reason_code == "no_agent"
        await core.look(seen("claude", pid=101), at=6)
        assert core.record.row.state is State.IDLE
        assert core.world.pending == {}
    assert inbox(tmp_path) == {"e1": ("bound", None)}


async def test_what_waits_goes_on_waiting_after_a_restart_with_all_it_said(tmp_path: Path) -> None:
    verdict = a_verdict("waiting_approval", attention=an_attention("rm -rf build"))
    waiting = unbound(an_event("e1", at=5, verdict=verdict), agent_type="claude", pid=7, start_hint=after(1))
    waiting = replace(waiting, source_seq=3, source_event_id="s1")
    async with a_core(tmp_path) as core:
        assert await core.take(waiting) == ["pending_bind"]
    async with a_core(tmp_path) as core:
        assert core.world.pending == {"e1": waiting}
        assert await core.take(waiting) == ["duplicate"]
        await core.look(seen(pid=7), at=6)
        assert core.record.row.attention == an_attention("rm -rf build")
        assert core.record.row.last_source_seq == 3


async def test_a_waiting_event_whose_runtime_died_meanwhile_changes_nothing(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen("none", pid=100))
        hinted = [
            unbound(an_event("by-pid", "error", at=5), pid=101),
            unbound(an_event("by-start", "error", at=5), start_hint=after(-60)),
            unbound(an_event("by-agent", "error", at=5), agent_type="codex"),
        ]
        assert await core.take(*hinted) == ["pending_bind"] * 3
        # The pane has a new inhabitant by the time somebody looks: not the one that spoke.
        await core.look(seen("claude", pid=102, started=5), at=6)
        assert core.record.row.reason_code == "no_signal"
        assert core.world.pending == {}
    assert inbox(tmp_path) == dict.fromkeys(
        ["by-pid", "by-start", "by-agent"], ("dropped_unbound", "bind_no_candidate")
    )
    assert rows(tmp_path, "SELECT * FROM events") == []


async def test_what_nobody_looks_for_is_let_go_after_its_time(tmp_path: Path) -> None:
    time = FakeTime()
    async with a_core(tmp_path, time) as core:
        assert await core.take(unbound(an_event("e1", at=0))) == ["pending_bind"]
        time.pass_by(9)
        await core.ingest.submit(ExpirePending())
        assert list(core.world.pending) == ["e1"]
        time.pass_by(2)
        await core.ingest.submit(ExpirePending())
        assert core.world.pending == {}
    assert inbox(tmp_path) == {"e1": ("dropped_unbound", "bind_ttl_expired")}


async def test_an_event_for_a_target_nobody_watches_is_dropped_at_once(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        event = unbound(an_event("e1"), target_id="vm9")
        assert (await core.ingest.submit((event,)))[0].reason_code == "bind_no_candidate"
    assert inbox(tmp_path) == {"e1": ("dropped_unbound", "bind_no_candidate")}


async def test_a_removed_target_takes_its_panes_along_and_leaves_the_others(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        vm = Target(TargetId("vm1"), TargetKind.SSH, connection_ref="vm1")
        await core.ingest.submit(AddTarget(vm))
        there = replace(a_pane(), target_id=vm.target_id)
        await core.ingest.submit(replace(a_look(seen(pane=there)), target_id=vm.target_id))
        await core.look(seen())
        await core.ingest.submit(RemoveTarget(vm.target_id))
        assert set(core.world.records) == {(HOST, PANE)}
        # A look that was under way while the target was removed.
        await core.ingest.submit(replace(a_look(seen(pane=there), at=3), target_id=vm.target_id))
        assert set(core.world.panes) == {(HOST, PANE)}
    assert rows(tmp_path, "SELECT target_id FROM targets") == [("host",)]
    assert rows(tmp_path, "SELECT target_id FROM runtimes WHERE ended_at IS NULL") == [("host",)]


async def test_a_demotion_of_an_outdated_version_is_not_even_kept(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen())
        await core.take(an_event("stop", "completed", at=1))
        version = core.record.row.state_version
        due = replace(an_event("due", None, source=Source.RECONCILER), event_type=DEMOTION_DUE)
        assert await core.take(replace(due, if_state_version=version - 1)) == ["state_moved_on"]
        assert core.record.row.state is State.COMPLETED
    assert rows(tmp_path, "SELECT event_id FROM events") == [("stop",)]


async def test_a_refused_write_leaves_the_world_as_it_was_and_says_so(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen())
        before = core.record
        large = replace(FIRST, raw_payload=Redacted("x" * 200_000))
        await core.database.writer.write(lambda tx: tx.execute("PRAGMA max_page_count = 1"))
        with pytest.raises(AgtmuxError) as refused:
            await core.take(large)
        assert refused.value.code is ErrorCode.STORE
        assert core.record is before
        await core.database.writer.write(lambda tx: tx.execute("PRAGMA max_page_count = 1073741823"))
        assert await core.take(large) == ["applied"]


async def test_a_stopped_daemon_refuses_instead_of_swallowing(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.ingest.stop()
        with pytest.raises(AgtmuxError) as refused:
            await core.take(FIRST)
        assert refused.value.code is ErrorCode.DAEMON_UNAVAILABLE


async def test_those_who_listen_hear_of_panes_that_changed_and_of_no_others(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        heard: list[set[tuple[str, str]]] = []
        core.ingest.on_change.append(lambda changed, _: heard.append(changed))
        await core.look(seen(), seen(pid=200, pane=a_pane("%2")))
        await core.take(FIRST)
        await core.take(FIRST)
        await core.look(seen(), seen(pid=200, pane=a_pane("%2")), at=2)
        assert heard == [{(HOST, PANE), (HOST, "%2")}, {(HOST, PANE)}]


class OneThreadsTime(FakeTime):
    """A machine's time that remembers which threads asked for it."""

    def __init__(self) -> None:
        super().__init__()
        self.readers: set[int] = set()

    def clock(self) -> Clock:
        def wall() -> int:
            self.readers.add(threading.get_ident())
            return self.wall

        return Clock(wall=wall, steady=lambda: self.steady)


async def test_only_the_event_loop_reads_the_clock(tmp_path: Path) -> None:
    """Two threads that read it at once could both find that it jumped, and it would jump twice."""
    time = OneThreadsTime()
    async with a_core(tmp_path, time) as core:
        await core.look(seen("none"))
        await core.take(unbound(an_event("e1", at=2), agent_type="claude"), an_event("e2", at=2))
        await core.look(seen(), at=3)
        await core.take(unbound(an_event("e3", at=4), pane_id="%9"))
        time.pass_by(60)
        await core.ingest.submit(ExpirePending())
        await core.ingest.submit(AddTarget(Target(TargetId("vm1"), TargetKind.SSH, connection_ref="vm1")))
        await core.ingest.submit(RemoveTarget(TargetId("vm1")))
        await core.look(at=5)
    assert time.readers == {threading.get_ident()}


async def test_a_target_that_is_down_shows_its_new_panes_as_unreachable(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.ingest.submit(AddTarget(Target(HOST, TargetKind.LOCAL, health=Health.DOWN)))
        await core.look(seen())
        assert core.record.row.reason_code == "target_unreachable"
        await core.take(FIRST)
        assert (core.record.row.state, core.record.row.confidence) == ("unknown", "low")
