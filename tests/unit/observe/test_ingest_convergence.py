"""The same events, in any order and in any batches, leave the same rows in a real database file."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agtmux.domain.events import Event
from agtmux.domain.timestamps import Timestamp
from agtmux.observe.world import World
from unit.builders import BOOT, FakeTime, a_core, a_look, rows, seen, unbound
from unit.event_strategies import NOWS, arrivals

# `state_version` and `updated_at` tell what this daemon has shown and are left out on purpose.
STATES = (
    "SELECT target_id, pane_id, runtime_id, state, reason_code, confidence, source, last_source_seq, last_seen_at,"
    " attention_json, evidence_json FROM states"
)
TABLES = {
    "events": "SELECT * FROM events ORDER BY event_id",
    "cursors": "SELECT * FROM runtime_source_cursors ORDER BY runtime_id, source",
    "states": STATES,
}


def batches(events: list[Event], sizes: list[int]) -> list[tuple[Event, ...]]:
    """The events in pieces of these sizes, the rest in one."""
    cut: list[tuple[Event, ...]] = []
    for size in sizes:
        cut.append(tuple(events[:size]))
        events = events[size:]
    return [batch for batch in [*cut, tuple(events)] if batch]


async def ingest(directory: Path, events: list[Event], sizes: list[int], now: Timestamp) -> World:
    async with a_core(directory, FakeTime(now)) as core:
        await core.ingest.submit(a_look(seen(), boot=BOOT))
        submissions = [core.ingest.submit(batch) for batch in batches(events, sizes)]
        if len(sizes) % 2:
            await asyncio.gather(*submissions)
        else:
            for submission in submissions:
                await submission
        return core.world


async def reload(directory: Path, now: Timestamp) -> World:
    async with a_core(directory, FakeTime(now)) as core:
        return core.world


def left_behind(directory: Path) -> dict[str, list[tuple[Any, ...]]]:
    return {name: rows(directory, sql) for name, sql in TABLES.items()}


# Not shrunk: each try opens two databases, and tests/unit/engine/test_convergence.py finds the small example.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
SIZES = st.lists(st.integers(1, 4), max_size=4)


@given(arrivals(max_size=9), SIZES, SIZES, st.sampled_from(NOWS))
@settings(max_examples=20, phases=PHASES)
def test_any_order_and_any_batches_leave_the_same_rows(both, sizes, other_sizes, now) -> None:
    one, other = both
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        world = asyncio.run(ingest(Path(first), one, sizes, now))
        asyncio.run(ingest(Path(second), other, other_sizes, now))
        assert left_behind(Path(first)) == left_behind(Path(second))
        assert {row[0] for row in left_behind(Path(first))["events"]} == {event.event_id for event in one}
        reloaded = asyncio.run(reload(Path(first), now))
        assert reloaded.records == world.records
        assert reloaded.by_runtime == world.by_runtime
        assert reloaded.panes == world.panes
        assert reloaded.targets == world.targets


@given(arrivals(max_size=9), st.integers(0, 9), st.sampled_from(NOWS))
@settings(max_examples=8, phases=PHASES)
def test_a_restart_in_the_middle_changes_nothing(both, split, now) -> None:
    one, other = both
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        asyncio.run(ingest(Path(first), one, [], now))
        asyncio.run(ingest(Path(second), other[:split], [], now))
        asyncio.run(ingest(Path(second), other[split:], [], now))
        assert left_behind(Path(first)) == left_behind(Path(second))


@given(arrivals(max_size=6), st.sampled_from(NOWS))
@settings(max_examples=8, phases=PHASES)
def test_what_was_bound_from_the_inbox_counts_like_what_named_its_runtime(both, now) -> None:
    one, other = both
    # Ours never come through the inbox.
    unnamed = [event if event.source == "reconciler" else unbound(event) for event in other]
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        asyncio.run(ingest(Path(first), one, [], now))
        asyncio.run(ingest(Path(second), unnamed, [2, 2], now))
        assert left_behind(Path(first)) == left_behind(Path(second))
        statuses = rows(Path(second), "SELECT DISTINCT status, raw_payload, verdict_json FROM event_inbox")
        assert statuses in ([], [("bound", None, None)])
