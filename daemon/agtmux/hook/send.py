"""The whole of agtmux-hook when all is well: read the event, hand it to the daemon, be gone.

A script has no .pyc, so this text is compiled at every run, and an agent waits for it. Hence no module but
those written in C, and what is seldom needed is in `spool` and `wait`, which are passed in and compiled only when
called.
"""

import posix
import select
import sys
import time

from agtmux.probe.owners import connected

# Seconds from the start of the script; each step leaves time for the next. Loading what it takes to spool needs
# 25 ms, and Python has already taken 10 to 20 of the 200 that an agent may have to wait.
STDIN_UNTIL = 0.06
ANSWER_UNTIL = 0.09
SPOOL_UNTIL = 0.155
EXIT_AT = 0.17
# How much later than that on a machine that is too busy to run this, at most.
MOST_DELAY = 1.0

# The daemon takes a million bytes per event. A tool's result may be larger; the event counts without it.
PAYLOAD_MAX = 900 * 1024

# The daemon looked at the event and will not have it, now or later.
REFUSED = (b"400", b"413")

# In the place of a payload: the agent goes on without us, and takes an answer if one comes. A daemon that is busy for
# a moment is then no reason to give that up.
WAIT = "--wait"
UNHURRIED = 2.0

# `typing` would cost as much as half of the budget; type checkers take this name for what it looks like.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    Spool = Callable[[bytes, bytes, "bytes | None", float], object]
    Wait = Callable[[bytes, str], object]


def main(argv: "list[str]", spool: "Spool", wait: "Wait") -> None:
    start = time.monotonic()
    if len(argv) < 3:
        return
    waits = argv[3:] == [WAIT]
    if waits:
        start += UNHURRIED
    if len(argv) > 3 and not waits:
        payload = argument_bytes(argv[3])
        size = len(payload)
    else:
        payload, size = read_stdin(start + STDIN_UNTIL)
    if size > PAYLOAD_MAX:
        payload = b""
    event_id = posix.urandom(16).hex()
    meta = metadata(argument_bytes(argv[1]), argument_bytes(argv[2]), event_id, len(payload), size)
    socket_path, state_dir = places(posix.environ)
    if socket_path and delivered(socket_path, meta + b"\n" + payload, start + ANSWER_UNTIL):
        if waits:
            wait(socket_path, event_id)
        return
    # On a busy machine the steps above end late. The time to spool is left all the same, or the event would be lost.
    start += max(time.monotonic() - start - ANSWER_UNTIL, 0.0)
    exit_at(start + EXIT_AT)
    spool(meta, payload, state_dir, start + SPOOL_UNTIL)


def read_stdin(until: float) -> "tuple[bytes, int]":
    """Return what came before `until`, and how much it was: beyond PAYLOAD_MAX it is counted and not kept."""
    chunks = []
    size = 0
    try:
        # Someone trying the command by hand has nothing to say.
        if posix.isatty(0):
            return b"", 0
        while True:
            left = until - time.monotonic()
            # Not O_NONBLOCK, which the agent's own end of a socket pair or terminal would share.
            if not select.select([0], [], [], max(left, 0))[0]:
                break
            chunk = posix.read(0, 65536)
            if not chunk:
                break
            size += len(chunk)
            if size <= PAYLOAD_MAX:
                chunks.append(chunk)
            # The machine may have kept this process from running until now. What the pipe holds came in time.
            if left <= 0:
                break
    except OSError:
        # Closed from the start. The event's name alone is news.
        pass
    return b"".join(chunks), size


def argument_bytes(argument: str) -> bytes:
    return argument.encode(sys.getfilesystemencoding(), "surrogateescape")


def metadata(agent: bytes, event: bytes, event_id: str, payload_bytes: int, size: int) -> bytes:
    """The first line of the body: a JSON object, by hand, as importing `json` would double the time."""
    line = (
        '{"v":1,"agent":%s,"event":%s,"event_id":"%s","event_time_ns":%d,"pane_id":%s,"tmux":%s,'
        '"pid":%d,"ppid":%d,"payload_bytes":%d%s}'
    ) % (
        quoted(agent),
        quoted(event),
        event_id,
        time.time_ns(),
        quoted(posix.environ.get(b"TMUX_PANE")),
        quoted(posix.environ.get(b"TMUX")),
        posix.getpid(),
        posix.getppid(),
        payload_bytes,
        ',"omitted_bytes":%d' % size if size > payload_bytes else "",
    )
    return line.encode()


def quoted(raw: "bytes | None") -> str:
    """The text as a JSON string."""
    if raw is None:
        return "null"
    text = raw.decode("utf-8", "replace").replace("\\", "\\\\").replace('"', '\\"')
    if not text.isprintable():
        text = "".join(["\\u%04x" % ord(char) if char < " " else char for char in text])
    return '"' + text + '"'


def places(env: "dict[bytes, bytes]") -> "tuple[bytes | None, bytes | None]":
    """The daemon's socket and the state folder; None where only the user database would tell."""
    state = env.get(b"AGTMUX_STATE_DIR")
    if not state:
        if env.get(b"XDG_STATE_HOME"):
            state = env[b"XDG_STATE_HOME"] + b"/agtmux"
        elif env.get(b"HOME"):
            state = env[b"HOME"] + b"/.local/state/agtmux"
        else:
            state = None
    socket_path = env.get(b"AGTMUX_SOCKET")
    if not socket_path:
        if env.get(b"XDG_RUNTIME_DIR"):
            socket_path = env[b"XDG_RUNTIME_DIR"] + b"/agtmux/agtmuxd.sock"
        else:
            socket_path = state and state + b"/agtmuxd.sock"
    return socket_path, state


def delivered(socket_path: bytes, body: bytes, until: float) -> bool:
    """Whether the daemon answered before `until` that it has the event, or that it will never want it."""
    head = (
        b"POST /v1/events HTTP/1.1\r\nHost: agtmux\r\nContent-Type: application/vnd.agtmux.hook\r\n"
        b"Content-Length: %d\r\nConnection: close\r\n\r\n"
    )
    try:
        # With a time-out set, Linux refuses at once to join a full backlog instead of waiting for a place.
        # A socket that another user could have put there is like none: the event goes to the spool.
        daemon = connected(socket_path, max(until - time.monotonic(), 0.001))
        try:
            daemon.sendall(head % len(body) + body)
        except OSError:
            # A daemon that refuses by the headers alone does not read the body. Its answer is there.
            pass
        answer = b""
        while len(answer) < len(b"HTTP/1.1 200"):
            daemon.settimeout(max(until - time.monotonic(), 0.001))
            chunk = daemon.recv(4096)
            if not chunk:
                return False
            answer += chunk
    except OSError:
        return False
    status = answer[9:12]
    return answer[:7] == b"HTTP/1." and status.isdigit() and (status[:1] == b"2" or status in REFUSED)


def exit_at(moment: float) -> None:
    """Leave at `moment` whatever is going on: no slow disk and no hard payload shall hold up an agent.

    Time in which other programs had the processor does not count: the event would be lost and nobody the faster.
    """
    # 5 ms, but `json` would import the same things next.
    import signal

    before = delayed()

    def leave(*_: object) -> None:
        left = moment + min(delayed() - before, MOST_DELAY) - time.monotonic()
        if left < 0.001:
            posix._exit(0)
        signal.setitimer(signal.ITIMER_REAL, left)

    signal.signal(signal.SIGALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, max(moment - time.monotonic(), 0.001))


def delayed() -> float:
    """Seconds that this process was ready to run and had no processor; 0 where the system does not tell."""
    try:
        file = posix.open("/proc/self/schedstat", posix.O_RDONLY)
        try:
            return int(posix.read(file, 100).split()[1]) / 1e9
        finally:
            posix.close(file)
    except (OSError, ValueError, IndexError):
        return 0.0
