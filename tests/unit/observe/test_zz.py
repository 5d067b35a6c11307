"""Copy to tests/unit/observe/ and run. Every test here fails on the product as it is (cc3f1c2)."""
import asyncio, json, sys, threading
from dataclasses import replace
import pytest
from unit.builders import *
from unit.observe.test_secrets import an_envelope, an_intake, stored, a_hook
from unit.observe import test_intake_hook as hook
from agtmux.agents.registry import Registry
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import MAX_EVENT_BYTES
from agtmux.store.retention import Retention, forget

# 1 ingest
async def test_duplicates_in_one_group_with_a_look_between(tmp_path):
    async with a_core(tmp_path) as core:
        first = unbound(an_event("e1", "running", at=0.5))
        again = replace(unbound(an_event("e2", "running", at=2)), dedupe_key=first.dedupe_key)
        innocent = unbound(an_event("e3", "idle", at=3))
        results = await asyncio.gather(core.take(first), core.look(seen()), core.take(again), core.take(innocent), return_exceptions=True)
        assert results[2:] == [["duplicate"], ["applied"]]

# 2 intake: what SQLite cannot take
@pytest.mark.parametrize("facts", [{"event_time_ns": 10**40}])
def test_hook_event_time_beyond_int64(facts):
    try:
        assert hook.is_storable(hook.take(**facts))
    except AgtmuxError as error:
        assert error.code is ErrorCode.EVENT_INVALID

@pytest.mark.parametrize("facts", [{"event_id": "\ud800"}, {"event": "\udcff"}, {"event_time_ns": 10**40}])
def test_spool_record_that_cannot_be_stored(facts):
    try:
        event = hook.an_intake().spooled(hook.FACTS | facts, 600 * SECOND)
        assert event is None or hook.is_storable(event)
    except AgtmuxError as error:
        assert error.code is ErrorCode.EVENT_INVALID

# 3 intake: size of a hook record
def test_hook_record_of_more_than_a_megabyte_is_too_large():
    with pytest.raises(AgtmuxError) as refused:
        hook.take(b'"' + b"x" * MAX_EVENT_BYTES + b'"')
    assert refused.value.code is ErrorCode.TOO_LARGE

# 4 secrets in small fields
SECRET = "ghp_abcdefghijklmnopqrstuvwxyz01"
@pytest.mark.parametrize("fields", [
    {"raw_payload": {"attention": {"kind": SECRET, "summary": "x"}}},
    {"raw_payload": {"reason_code": SECRET}},
    {"target_id": SECRET},
], ids=["kind", "reason_code", "target_id"])
def test_secret_in_small_fields(fields):
    taken, _ = an_intake().envelopes(an_envelope(**fields))
    assert isinstance(taken[0], AgtmuxError) or SECRET[4:-4] not in stored(taken[0])

def test_secret_in_error_reason_path():
    assert SECRET[4:-4] not in stored(an_intake().hook(a_hook("claude", "StopFailure", {"error": SECRET})))

def test_half_a_secret_in_the_name_of_an_unknown_hook():
    assert "abcdefghij" not in stored(an_intake().hook(a_hook("claude", "x" * 62 + " " + SECRET, {})))

# 5 store: the sentence of a full disk
async def test_full_disk_says_that_it_is_full(tmp_path):
    async with a_core(tmp_path) as core:
        await core.look(seen())
        await core.database.writer.write(lambda tx: tx.execute("PRAGMA max_page_count = 1"))
        with pytest.raises(AgtmuxError, match="is full"):
            await core.take(replace(an_event(), raw_payload=Redacted("x" * 200_000)))

# 6 retention: room is not given back
async def test_room_that_was_freed_is_given_back(tmp_path):
    async with a_core(tmp_path) as core:
        await core.look(seen())
        large = Redacted("x" * 20_000)
        await core.take(*(replace(an_event(f"e{n}", at=n), raw_payload=large) for n in range(50)))
        await forget(core.database, Retention(7 * 86400 * SECOND, 14 * 86400 * SECOND), Timestamp(T0 + 8 * 86400 * SECOND))
        assert (await core.database.read("PRAGMA freelist_count"))[0][0] < 20

# 7 versions of a pane id that is used again
async def test_versions_go_on_when_a_pane_id_is_used_again(tmp_path):
    async with a_core(tmp_path) as core:
        await core.look(seen())
        await core.take(an_event("e1", "waiting_approval", at=1))
        before = core.record.row.state_version
        await core.look(at=2)
        await core.look(seen(pid=7), at=3)
        assert core.record.row.state_version > before

# 8 copilot's edit permission names its file
def test_copilot_edit_permission_names_the_file():
    payload = {"toolName": "edit", "toolInput": {"file_path": "/proj/a.txt", "diff": "…"}}
    assert Registry.load().read_hook("copilot", "permissionRequest", payload)[1].attention.summary == "/proj/a.txt"

# 9 the clock is read in the writer's thread and in the loop's
def test_clock_in_two_threads():
    ahead = set()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(300):
            machine = FakeTime()
            clock = machine.clock()
            clock.now()
            machine.wall += 3600 * SECOND
            barrier = threading.Barrier(2)
            def read():
                barrier.wait()
                clock.now()
            threads = [threading.Thread(target=read) for _ in range(2)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            ahead.add((clock.now() - machine.wall) // SECOND)
            ahead.add(f"jumps={clock.jumps}")
    finally:
        sys.setswitchinterval(interval)
    assert ahead == {0, "jumps=1"}

# 10 merely looking at a damaged or newer database checkpoints and deletes its log
def test_the_log_of_a_database_that_cannot_be_opened_is_kept_beside_it(tmp_path):
    import re
    from agtmux.store.migrate import prepare
    path = tmp_path / "agtmux.db"
    path.write_bytes(b"not a database " * 99)
    path.with_name("agtmux.db-wal").write_bytes(b"its log")
    assert prepare(path, T0) is not None
    (kept,) = [file for file in tmp_path.iterdir() if re.fullmatch(r"agtmux\.db\.corrupt-[0-9T]+", file.name)]
    assert kept.with_name(f"{kept.name}-wal").read_bytes() == b"its log"

async def test_a_newer_database_with_a_log_is_kept_byte_for_byte(tmp_path):
    import re, sqlite3
    from agtmux.store.migrate import migrations, prepare
    path = tmp_path / "live.db"
    prepare(path, T0)
    live = sqlite3.connect(path, isolation_level=None)
    live.execute(f"PRAGMA user_version = {migrations()[-1][0] + 1}")
    live.execute("INSERT INTO adapters VALUES ('a', 'b', 'c', 'd', 1, 1)")
    (tmp_path / "x").mkdir()
    kept_bytes = {}
    for suffix in ("", "-wal"):
        kept_bytes[suffix] = (tmp_path / f"live.db{suffix}").read_bytes()
        (tmp_path / "x" / f"agtmux.db{suffix}").write_bytes(kept_bytes[suffix])
    live.close()
    assert prepare(tmp_path / "x" / "agtmux.db", T0) is not None
    (kept,) = [file for file in (tmp_path / "x").iterdir() if re.fullmatch(r"agtmux\.db\.newer-[0-9T]+", file.name)]
    for suffix, content in kept_bytes.items():
        assert kept.with_name(kept.name + suffix).read_bytes() == content

# 0 what became due while no daemon was there stays on show for ever
from unit.observe.test_reconciler import HASTY, SOON, RealTime, a_reconciled_core, now, until

@pytest.mark.parametrize(("state", "reason"), [("running", "stale_signal"), ("completed", "completed_demoted")])
async def test_what_became_due_while_no_daemon_was_there_is_done_at_once(tmp_path, state, reason):
    async with a_core(tmp_path, RealTime(), HASTY) as core:
        await core.look(seen())
        await core.take(now(core, an_event("e1", state)))
    await asyncio.sleep((5 if state == "running" else 1.5) * SOON / SECOND)
    async with a_reconciled_core(tmp_path) as core:
        for _ in range(100):
            if core.record.row.reason_code == reason:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"still {core.record.row.state} {core.record.row.reason_code}")
