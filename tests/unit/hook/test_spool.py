"""The spool from both sides: nothing is lost, torn, unbounded or unredacted between hooks and daemon."""

import fcntl
import json
import os
import pwd
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agtmux.domain.redact import redact_text, redact_value
from agtmux.hook import spool
from agtmux.hook.spool_reader import Drained, drain, finish

SECRET = "sk-ant-api03-" + "Zx9" * 30

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


def meta(event_id: str) -> bytes:
    fields = {"v": 1, "agent": "claude", "event": "Stop", "event_id": event_id, "pane_id": "%1", "tmux": None}
    return json.dumps(fields).encode()


def append(state_dir: Path, event_id: str, payload: bytes = b"{}", deadline: float | None = None) -> bool:
    return spool.append(meta(event_id), payload, os.fsencode(state_dir), deadline)


def spooled(state_dir: Path) -> bytes:
    return (state_dir / "spool" / "hook.jsonl").read_bytes()


def test_a_record_is_the_metadata_and_the_payload(tmp_path):
    assert append(tmp_path, "1", b'{"prompt": "h\xc3\xa9"}')
    assert drain(tmp_path) == Drained([json.loads(meta("1")) | {"payload": {"prompt": "hé"}}], 0, 0)


def test_folders_and_file_are_private(tmp_path):
    old = os.umask(0)
    try:
        append(tmp_path / "a" / "agtmux", "1")
    finally:
        os.umask(old)
    modes = [
        stat.S_IMODE((tmp_path / "a" / "agtmux" / name).stat().st_mode) for name in ("", "spool", "spool/hook.jsonl")
    ]
    assert [oct(mode) for mode in modes] == ["0o700", "0o700", "0o600"]


def test_a_relative_state_dir_is_taken_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert append(Path("state"), "1")
    assert len(drain(tmp_path / "state").records) == 1


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=100)
def test_any_payload_comes_back_redacted(payload):
    with tempfile.TemporaryDirectory() as folder:
        assert append(Path(folder), "1", payload)
        line = spooled(Path(folder))
        drained = drain(Path(folder))
    assert line.count(b"\n") == 1
    line.decode()
    (record,) = drained.records
    try:
        expected = redact_value(json.loads(payload))
    except ValueError:
        expected = redact_text(payload.decode("utf-8", "replace")) or None
    # No database takes half of a surrogate pair.
    expected_json = json.dumps(expected, ensure_ascii=False).encode("utf-8", "replace")
    assert record["payload"] == json.loads(expected_json)


@pytest.mark.parametrize(
    "payload",
    [
        json.dumps({"env": {"ANTHROPIC_API_KEY": SECRET}}).encode(),
        json.dumps({SECRET: 1}).encode(),
        json.dumps([f"curl -H 'Authorization: Bearer {SECRET}'"]).encode(),
        json.dumps(SECRET).replace("k", "\\u006b").encode(),
        f"not JSON, but {SECRET}".encode(),
        b"\xff\xfe " + SECRET.encode(),
        ("[" * 5000 + f'"{SECRET}"').encode(),
        ("[" * 500 + json.dumps(SECRET).replace("k", "\\u006b") + "]" * 500).encode(),
        json.dumps([SECRET]).replace("k", "\\u006b").replace("]", ", 1e999]").encode(),
        json.dumps([SECRET]).replace("k", "\\u006b").replace("]", f", {'9' * 5000}]").encode(),
        ("[" * 5000 + f'"{SECRET}"' + "]" * 5000).encode(),
        f'{{"a": NaN, "b": "{SECRET}"}}'.encode(),
        (f'"{SECRET}"' + " " * spool.UNREDACTED_MAX).encode(),
        b'"\\ud800 ' + SECRET.encode() + b'"',
    ],
    ids=[
        "key",
        "name",
        "text",
        "escaped",
        "plain",
        "binary",
        "torn",
        "deep and escaped",
        "infinite",
        "long",
        "deep",
        "nan",
        "huge",
        "surrogate",
    ],
)
def test_no_secret_reaches_the_disk(tmp_path, payload):
    assert append(tmp_path, "1", payload)
    raw = spooled(tmp_path)
    assert SECRET.encode() not in raw
    assert SECRET.encode() not in raw.replace(b"\\\\u006b", b"k").replace(b"\\u006b", b"k")
    assert len(drain(tmp_path).records) == 1


def test_no_secret_reaches_the_disk_by_the_arguments(tmp_path):
    swapped = json.loads(meta("1")) | {"event": f'{{"token": "{SECRET}"}}', "agent": SECRET}
    assert spool.append(json.dumps(swapped).encode(), b"", os.fsencode(tmp_path))
    assert SECRET.encode() not in spooled(tmp_path)


@pytest.mark.parametrize("size", [spool.PAYLOAD_MAX - 2, spool.PAYLOAD_MAX - 1, 500_000])
def test_a_large_payload_is_left_out_and_its_event_kept(tmp_path, size):
    payload = json.dumps("x " * (size // 2) + "x" * (size % 2)).encode()
    assert append(tmp_path, "1", payload)
    (record,) = drain(tmp_path).records
    if size == spool.PAYLOAD_MAX - 2:
        assert record["payload"] == json.loads(payload)
        assert "omitted_bytes" not in record
    else:
        assert record["payload"] is None
        assert record["omitted_bytes"] == len(payload)


@pytest.mark.parametrize("payload", ["[NaN]", "[-Infinity]", "[1e999]", r'["\ud800"]', r'{"\udc00": 1}', "\x00"])
def test_a_record_is_json_to_any_reader(tmp_path, payload):
    append(tmp_path, "1", payload.encode())
    assert msgspec.json.decode(spooled(tmp_path))["event_id"] == "1"


def test_borrowed_alarm_is_given_back(tmp_path):
    rang = []
    old_handler = signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
    old_timer = signal.setitimer(signal.ITIMER_REAL, 50)
    try:
        assert append(tmp_path, "1", b'{"a": 1}', deadline=time.monotonic() + 20)
        assert drain(tmp_path).records[0]["payload"] == {"a": 1}
        assert 40 < signal.getitimer(signal.ITIMER_REAL)[0] <= 50
        signal.raise_signal(signal.SIGALRM)
        assert rang == [1]
    finally:
        signal.signal(signal.SIGALRM, old_handler)
        signal.setitimer(signal.ITIMER_REAL, *old_timer)


def test_a_payload_without_time_to_redact_it_is_left_out_and_its_event_kept(tmp_path):
    assert append(tmp_path, "1", b'"text"', deadline=time.monotonic())
    (record,) = drain(tmp_path).records
    assert (record["payload"], record["omitted_bytes"]) == (None, 6)


def test_a_full_spool_drops_events_and_counts_them(tmp_path):
    append(tmp_path, "1")
    path = tmp_path / "spool" / "hook.jsonl"
    filler = json.dumps({"event_id": "0", "payload": "x" * (spool.SPOOL_MAX - path.stat().st_size - 100)})
    with path.open("a") as file:
        file.write(filler + "\n")
    full = path.stat().st_size
    assert [append(tmp_path, str(n)) for n in range(3)] == [False] * 3
    assert path.stat().st_size == full <= spool.SPOOL_MAX
    drained = drain(tmp_path)
    assert (len(drained.records), drained.dropped) == (2, 3)
    finish(tmp_path)
    assert append(tmp_path, "after")
    assert (len(drain(tmp_path).records), drain(tmp_path).dropped) == (1, 0)


def test_the_counter_of_dropped_events_is_bounded_too(tmp_path):
    (tmp_path / "spool").mkdir()
    counter = tmp_path / "spool" / "dropped"
    counter.write_bytes(b"." * (spool.DROPPED_MAX - 1))
    for _ in range(3):
        spool._count_dropped(os.fsencode(tmp_path / "spool"))
    assert counter.stat().st_size == spool.DROPPED_MAX


def test_a_held_lock_drops_the_event_at_the_deadline(tmp_path):
    append(tmp_path, "1")
    with (tmp_path / "spool" / "hook.jsonl").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert not append(tmp_path, "2", deadline=time.monotonic() + 0.02)
        # Nor does the daemon wait for ever.
        assert drain(tmp_path).records == []
    drained = drain(tmp_path)
    assert (len(drained.records), drained.dropped) == (1, 1)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("elsewhere")])
def test_what_is_no_file_is_neither_waited_for_nor_followed(tmp_path, make):
    (tmp_path / "spool").mkdir()
    make(tmp_path / "spool" / "hook.jsonl")
    with pytest.raises(OSError):
        append(tmp_path, "1")
    with pytest.raises(OSError):
        drain(tmp_path)
    assert not (tmp_path / "spool" / "elsewhere").exists()


@pytest.mark.parametrize("cut", [1, 20, -1])
def test_a_torn_line_costs_only_itself(tmp_path, cut):
    append(tmp_path, "1")
    append(tmp_path, "torn")
    path = tmp_path / "spool" / "hook.jsonl"
    first, torn = path.read_bytes().splitlines()
    path.write_bytes(first + b"\n" + torn[:cut])
    append(tmp_path, "3")
    drained = drain(tmp_path)
    assert [record["event_id"] for record in drained.records] == ["1", "3"]
    assert drained.damaged == 1


def test_garbage_lines_are_counted_and_skipped(tmp_path):
    append(tmp_path, "1")
    with (tmp_path / "spool" / "hook.jsonl").open("ab") as file:
        file.write(b'\x00\x00\n[]\n"text"\n{"no": "id"}\n\n' + b"[" * 100_000 + b"\n\xff\n{")
    drained = drain(tmp_path)
    assert (len(drained.records), drained.damaged) == (1, 7)


def test_nothing_spooled_is_nothing_drained(tmp_path):
    assert drain(tmp_path) == Drained([], 0, 0)
    finish(tmp_path)


def test_records_come_again_until_they_are_finished(tmp_path):
    append(tmp_path, "1")
    first = drain(tmp_path)
    append(tmp_path, "2")
    # As after a crash of the daemon: the same again, and what came since is not lost.
    assert drain(tmp_path) == first
    finish(tmp_path)
    assert [record["event_id"] for record in drain(tmp_path).records] == ["2"]
    finish(tmp_path)
    assert drain(tmp_path).records == []
    assert list((tmp_path / "spool").iterdir()) == []


def test_home_comes_from_the_user_database_when_not_set():
    home = pwd.getpwuid(os.getuid()).pw_dir
    assert spool._state_dir_by_user() == os.fsencode(home) + b"/.local/state/agtmux"


def drained_until(state_dir: Path, done: threading.Event) -> tuple[list[str], int]:
    """Drain again and again until nothing more can come. Sometimes without finishing, as a crash would."""
    ids: list[str] = []
    damaged = rounds = 0
    while True:
        last = done.is_set()
        drained = drain(state_dir)
        rounds += 1
        if rounds % 3 and not last:
            continue
        finish(state_dir)
        ids += [record["event_id"] for record in drained.records]
        damaged += drained.damaged
        if last and not drained.records and not (state_dir / "spool" / "hook.jsonl").exists():
            return ids, damaged


@given(st.lists(st.lists(json_values, min_size=1, max_size=12), min_size=2, max_size=5))
@settings(max_examples=25)
def test_hooks_and_daemon_at_once_lose_and_tear_nothing(payloads_by_hook):
    done = threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        state_dir = Path(folder)

        def hook(number: int, payloads: list[object]) -> None:
            for turn, payload in enumerate(payloads):
                assert append(state_dir, f"{number}.{turn}", json.dumps(payload).encode())

        # flock tells open files apart, not processes, so threads contend as processes do.
        hooks = [
            threading.Thread(target=hook, args=(number, payloads)) for number, payloads in enumerate(payloads_by_hook)
        ]
        result: list[tuple[list[str], int]] = []
        reader = threading.Thread(target=lambda: result.append(drained_until(state_dir, done)))
        for thread in [reader, *hooks]:
            thread.start()
        for thread in hooks:
            thread.join()
        done.set()
        reader.join()
    ((ids, damaged),) = result
    assert sorted(ids) == sorted(
        f"{n}.{t}" for n, payloads in enumerate(payloads_by_hook) for t in range(len(payloads))
    )
    assert damaged == 0


# So many that eight of them do not fill the spool.
APPEND_UNTIL_KILLED = """
import os, signal, sys
from agtmux.hook import spool
for n in range(1500):
    meta = b'{"event_id": "%s.%d"}' % (sys.argv[2].encode(), n)
    assert spool.append(meta, b'{"text": "' + b"x " * 200 + b'"}', os.fsencode(sys.argv[1]))
    print(f"{sys.argv[2]}.{n}", flush=True)
signal.pause()
"""


def test_killed_hooks_leave_a_readable_spool(tmp_path):
    acknowledged: list[str] = []
    for generation in range(4):
        command = [sys.executable, "-c", APPEND_UNTIL_KILLED, tmp_path]
        hooks = [
            subprocess.Popen([*command, f"{generation}-{number}"], stdout=subprocess.PIPE, text=True)
            for number in range(2)
        ]
        for hook in hooks:
            acknowledged.append(hook.stdout.readline().strip())
        for hook in hooks:
            hook.send_signal(signal.SIGKILL)
            acknowledged += hook.stdout.read().split()
            hook.stdout.close()
            hook.wait()
    assert append(tmp_path, "last", deadline=time.monotonic() + 5)
    drained = drain(tmp_path)
    ids = [record["event_id"] for record in drained.records]
    assert len(ids) == len(set(ids))
    assert set(acknowledged) | {"last"} <= set(ids)
    # At most the line that each was writing, and each can only have written one more than it could say.
    assert drained.damaged + len(ids) <= len(acknowledged) + 1 + 8
