#!/usr/bin/env python3
"""systemd of one user as far as `systemctl --user` shows it: `python systemctl.py FOLDER --user WORD UNIT`.

What it starts is real. It brings back nothing by itself. Each call is a line in `calls` of the folder, and the pid of
what was started in a file named after its unit.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

folder, user, word, *units = sys.argv[1:]
assert user == "--user"
root = Path(folder)
config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "systemd", "user")
with (root / "calls").open("a") as calls:
    calls.write(" ".join([word, *units]) + "\n")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def pid_of(unit: str) -> int | None:
    file = root / unit
    pid = int(file.read_text()) if file.exists() else None
    return pid if pid is not None and is_alive(pid) else None


def start(unit: str) -> None:
    if pid_of(unit) is not None:
        return
    lines = [line.partition("=") for line in (config / unit).read_text().splitlines()]

    def words(name: str) -> list[str]:
        found = (shlex.split(value) for key, _, value in lines if key == name)
        return [each.replace("%%", "%").replace("$$", "$") for line in found for each in line]

    # Not the environment of who asks, as systemd's has none of it.
    environment = {name: os.environ[name] for name in ("HOME", "PATH", "LANG", "XDG_RUNTIME_DIR") if name in os.environ}
    environment |= dict(each.split("=", 1) for each in words("Environment"))
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    child = subprocess.Popen(words("ExecStart"), env=environment, cwd="/", start_new_session=True, **quiet)
    (root / unit).write_text(str(child.pid))
    child.returncode = 0


def stop(unit: str) -> None:
    pid = pid_of(unit)
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 20
        while is_alive(pid) and time.monotonic() < deadline:
            time.sleep(0.02)


for unit in units:
    link = config / "default.target.wants" / unit
    if word not in ("disable", "stop", "is-active", "reset-failed") and not (config / unit).exists():
        sys.exit(f"Unit {unit} could not be found.")
    match word:
        case "start":
            start(unit)
        case "stop":
            stop(unit)
        case "restart":
            stop(unit)
            start(unit)
        case "is-active":
            sys.exit(0 if pid_of(unit) is not None else 3)
        case "enable":
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(config / unit)
        case "disable":
            link.unlink(missing_ok=True)
        case "reset-failed":
            pass
        case _:
            sys.exit(f"Unknown command verb {word}.")
