"""How long an agent waits for agtmux-hook: compared with bare Python if the daemon answers, in ms if it does not."""

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from stage import Duration, bounded, row_of, scheduling

from agtmux.hook.compose import compose

LIMIT = 120
BUDGET = 200.0
RUNS = 80
SLOW_RUNS = 40
PAYLOAD = b'{"session_id":"0b3b","hook_event_name":"PreToolUse","tool_input":{"command":"' + b"ls -la " * 200 + b'"}}'
ANSWER = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def run() -> list[tuple[str, str, str, bool]]:
    """Rows of (what, measured, budget, ok)."""
    with bounded(LIMIT), tempfile.TemporaryDirectory(prefix="agx", dir="/tmp") as folder:
        home = Path(folder)
        python = getattr(sys, "_base_executable", sys.executable)
        hook = _installed(home / "bin", python)
        bare: list[Duration] = []
        answered: list[Duration] = []
        with _daemon(home / "agtmuxd.sock", answers=True):
            for _ in range(RUNS):
                # In turns, so that a busy moment of the machine falls on both.
                bare.append(_run([python, "-S", "-c", "pass"], home))
                answered.append(_run([hook, "claude", "PreToolUse"], home))
        late = _spooled(home)

        absent = [_run([hook, "claude", "PreToolUse"], home) for _ in range(SLOW_RUNS)]
        with _daemon(home / "agtmuxd.sock", answers=False):
            slow = [_run([hook, "claude", "PreToolUse"], home) for _ in range(SLOW_RUNS)]
        kept = _spooled(home) - late
    medians = [statistics.median(each.own for each in samples) * 1e3 for samples in (answered, bare)]
    ratio = medians[0] / medians[1]
    times = f"{medians[0]:.1f} / {medians[1]:.1f} ms"
    return [
        ("hook, daemon answers, median", f"{ratio:.2f} × python3 -S -c pass ({times})", "≤ 2 ×", ratio <= 2),
        row_of("hook, daemon absent", absent, 0.95, BUDGET),
        row_of("hook, daemon never answers", slow, 0.95, BUDGET),
        ("hook, events kept without a daemon", f"{kept} of {2 * SLOW_RUNS}", "all", kept == 2 * SLOW_RUNS),
    ]


def _spooled(home: Path) -> int:
    path = home / "spool" / "hook.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _installed(folder: Path, python: str) -> str:
    folder.mkdir()
    (folder / "python3").symlink_to(python)
    hook = folder / "agtmux-hook"
    hook.write_text(compose(), "utf-8")
    hook.chmod(0o755)
    return str(hook)


def _run(command: list[str], home: Path) -> Duration:
    env = {"PATH": os.environ["PATH"], "AGTMUX_STATE_DIR": str(home), "TMUX_PANE": "%1"}
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=env)
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(PAYLOAD)
        process.stdin.close()
    # Its scheduling can be read until it was waited for.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    whole = time.perf_counter() - began
    spent = scheduling(process.pid)
    process.wait()
    return Duration(whole, spent.ran, spent.waited)


@contextlib.contextmanager
def _daemon(path: Path, answers: bool) -> Iterator[None]:
    """A server in a thread that accepts and, if it `answers`, answers."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(64)

        def serve() -> None:
            held = []
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                if answers:
                    # On a busy machine a hook may have gone meanwhile; the next one is answered all the same.
                    with peer, contextlib.suppress(OSError):
                        peer.recv(1 << 20)
                        peer.sendall(ANSWER)
                else:
                    held.append(peer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            path.unlink()


if __name__ == "__main__":
    for what, measured, budget, ok in run():
        print(f"{'ok  ' if ok else 'OVER'} {what:34} {measured:48} {budget}")
