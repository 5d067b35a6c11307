"""The one place where the app starts programs."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Final

from AgtmuxBar.mac.environment import for_child

LIMIT: Final = 20.0


def run(argv: Sequence[str], text: str = "", limit: float = LIMIT) -> subprocess.CompletedProcess[str]:
    """Wait for it; `text` is its standard input. Raises OSError where it cannot be started or does not end."""
    try:
        return subprocess.run(
            argv,
            input=text,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=limit,
            env=for_child(),
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"{argv[0]} has not ended after {limit:.0f} seconds") from None


def checked(argv: Sequence[str], text: str = "", limit: float = LIMIT) -> str:
    """What it printed. OSError with what it complained of if it failed."""
    done = run(argv, text, limit)
    if done.returncode != 0:
        complaint = done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}"
        raise OSError(f"{' '.join(argv[:2])}: {complaint.splitlines()[-1]}")
    return done.stdout


def start(argv: Sequence[str]) -> None:
    """Let it live by itself: it outlasts us, and our signals are not for it."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=for_child(),
        cwd="/",
        start_new_session=True,
    )
    # Nobody waits for it; subprocess would complain about that when it is collected.
    process.returncode = 0
