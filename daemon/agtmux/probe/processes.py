"""When a process began, without asking more than once."""

from __future__ import annotations

import os
import subprocess
import time


def boot_time() -> float:
    try:
        with open("/proc/stat", "rb") as stat:
            for line in stat:
                if line.startswith(b"btime "):
                    return float(line.split()[1])
    except OSError:
        pass
    return 0.0


def started_at(pid: int) -> float | None:
    """Seconds since the epoch, or None when the process is gone or the system does not tell."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as stat:
            # The command, in parentheses, may hold anything; the fields after it may not.
            fields = stat.read().rpartition(b")")[2].split()
        return boot_time() + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except FileNotFoundError:
        return _ask_ps(pid) if not os.path.isdir("/proc/self") else None
    except (OSError, IndexError, ValueError):
        return None


def _ask_ps(pid: int) -> float | None:
    try:
        done = subprocess.run(
            ["ps", "-o", "lstart=", "-p", str(pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/bin:/usr/bin", "LC_ALL": "C"},
            timeout=5.0,
        )
        return time.mktime(time.strptime(done.stdout.decode().strip(), "%a %b %d %H:%M:%S %Y"))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
