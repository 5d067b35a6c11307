"""Where events go that the daemon did not take: lines of JSON in `<state>/spool/hook.jsonl`, redacted.

Runs in the agent's time on any Python 3.8, so nothing here waits for long or grows without bound. The other
side is `spool_reader`. Both hold flock on hook.jsonl while they change it, and the daemon takes the file away
by renaming it, so whoever gets the lock must make sure that the name still means the file that is locked.
"""

import fcntl
import json
import os
import signal
import stat
import time

from agtmux.domain.redact import redact_text, redact_value
from agtmux.probe.owners import check_path, make_private_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, Optional

SPOOL_MAX = 8 * 1024 * 1024
PAYLOAD_MAX = 64 * 1024
# Not worth the time: redacting will not bring it below PAYLOAD_MAX.
UNREDACTED_MAX = 4 * PAYLOAD_MAX
# The counter is a byte per event, so that one write without a lock adds to it.
DROPPED_MAX = 1024 * 1024

# What is kept of the time to get the lock and write. Redacting may need more than there is: 1.5 ms per KiB at
# worst. Then the payload is left out.
WRITE_SECONDS = 0.015
LOCK_RETRY_SECONDS = 0.002


def append(
    record_meta: bytes, payload: bytes, state_dir: "Optional[bytes]", deadline: "Optional[float]" = None
) -> bool:
    """Add one event. It is dropped and counted if the spool is full, or locked by others until `deadline`.

    With a deadline, call it from the main thread: it borrows SIGALRM.
    """
    folder = os.path.join(state_dir or _state_dir_by_user(), b"spool")
    line = _line(record_meta, payload, deadline)
    make_private_folders(folder)
    # Raises, and the event is lost: what is written where other users can put things is theirs.
    check_path(folder)
    fd = _open_locked(os.path.join(folder, b"hook.jsonl"), deadline)
    if fd is None:
        _count_dropped(folder)
        return False
    try:
        return _write(fd, line) or _count_dropped(folder)
    finally:
        os.close(fd)


def _line(record_meta: bytes, payload: bytes, deadline: "Optional[float]") -> bytes:
    record = json.loads(record_meta)
    # Words from the command line are as little to be trusted as the payload. The id is ours and random.
    for name in ("agent", "event", "pane_id", "tmux"):
        if record.get(name):
            record[name] = redact_text(record[name])
    record["payload"] = None
    if payload:
        try:
            record["payload"] = _redacted_until(payload, deadline)
        except (ValueError, RecursionError, TimeoutError):
            # Too large, too deep or too slow to be sure that no secret is in it.
            record["omitted_bytes"] = len(payload)
    return _encoded(record) + b"\n"


def _redacted_until(payload: bytes, deadline: "Optional[float]") -> "Any":
    """The payload as it may be stored, or TimeoutError."""
    if deadline is None:
        return _redacted(payload)
    started = time.monotonic()
    left = deadline - WRITE_SECONDS - started
    if left <= 0:
        raise TimeoutError
    handler = signal.signal(signal.SIGALRM, _give_up)
    borrowed = signal.setitimer(signal.ITIMER_REAL, left)[0]
    try:
        return _redacted(payload)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if borrowed:
            signal.setitimer(signal.ITIMER_REAL, max(borrowed + started - time.monotonic(), 0.001))


def _give_up(number: int, frame: object) -> "NoReturn":
    raise TimeoutError


def _redacted(payload: bytes) -> "Any":
    if len(payload) > UNREDACTED_MAX:
        raise ValueError("too large")
    text = payload.decode("utf-8", "replace")
    try:
        decoded = json.loads(text)
    except json.JSONDecodeError:
        redacted: "Any" = redact_text(text)
    else:
        # If this fails, the text is no way out: escapes like \\u0073 hide a secret from redact_text.
        redacted = redact_value(decoded)
    if len(_encoded(redacted)) > PAYLOAD_MAX:
        raise ValueError("too large")
    return redacted


def _encoded(value: "Any") -> bytes:
    # NaN is Python's own idea of JSON, and a number that is too large becomes one of its kind.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Half of a surrogate pair can stand in JSON as an escape, and then in no database.
    return text.encode("utf-8", "replace")


def _open_locked(path: bytes, deadline: "Optional[float]") -> "Optional[int]":
    """An open and locked hook.jsonl, or None if others kept it until `deadline`."""
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(path, flags, 0o600)
        try:
            opened = os.fstat(fd)
            if not stat.S_ISREG(opened.st_mode):
                raise OSError("not a regular file")
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _names(path, opened):
                return fd
        except BlockingIOError:
            if deadline is not None and time.monotonic() >= deadline:
                os.close(fd)
                return None
            time.sleep(LOCK_RETRY_SECONDS)
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _names(path: bytes, opened: "os.stat_result") -> bool:
    try:
        return os.path.samestat(os.lstat(path), opened)
    except FileNotFoundError:
        return False


def _write(fd: int, line: bytes) -> bool:
    size = os.fstat(fd).st_size
    if size and os.pread(fd, 1, size - 1) != b"\n":
        # Whoever wrote last was killed half-way. Its line is lost; this one shall not be.
        line = b"\n" + line
    if size + len(line) > SPOOL_MAX:
        return False
    if os.write(fd, line) < len(line):
        # The disk is full.
        os.ftruncate(fd, size)
        return False
    return True


def _count_dropped(folder: bytes) -> bool:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(os.path.join(folder, b"dropped"), flags, 0o600)
    try:
        if os.fstat(fd).st_size < DROPPED_MAX:
            os.write(fd, b".")
    finally:
        os.close(fd)
    return False


def _state_dir_by_user() -> bytes:
    # Rarely needed: HOME is not set. `pwd` may ask the network.
    import pwd

    return os.path.join(os.fsencode(pwd.getpwuid(os.getuid()).pw_dir), b".local/state/agtmux")
