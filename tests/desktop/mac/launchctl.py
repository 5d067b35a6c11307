#!/usr/bin/env python3
"""launchd as far as `launchctl` shows it, in the folder $LAUNCHD: `bootout` only begins what later calls find done.

Each call is noted in `calls`. A job that is going is gone after so many calls as `slow` says. A program that exists is
run for real, its pid is in `pid`, and it is brought back by `kickstart` alone.
"""

import contextlib
import os
import plistlib
import signal
import subprocess
import sys
from pathlib import Path

root = Path(os.environ["LAUNCHD"])
word, *rest = sys.argv[1:]
with (root / "calls").open("a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\n")
loaded, going, slow, pid = root / "loaded", root / "going", root / "slow", root / "pid"


def end(status, text=""):
    if text:
        print(text, file=sys.stderr)
    sys.exit(status)


def is_alive():
    try:
        stat = Path(f"/proc/{pid.read_text()}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def run():
    """As launchd has read the file, and with nothing of who asks."""
    job = plistlib.loads((root / "job").read_bytes())
    if is_alive() or not Path(job["ProgramArguments"][0]).exists():
        return
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {"HOME": os.environ["HOME"], **job["EnvironmentVariables"]}
    child = subprocess.Popen(
        job["ProgramArguments"], env=environment, cwd=job["WorkingDirectory"], start_new_session=True, **quiet
    )
    pid.write_text(str(child.pid))
    child.returncode = 0


if going.exists():
    left = int(going.read_text()) - 1
    if left > 0 or is_alive():
        going.write_text(str(left))
    else:
        going.unlink()
        loaded.unlink()

match word:
    case "print":
        if not loaded.exists():
            end(113, f'Could not find service "{rest[0].split("/")[-1]}" in domain for user gui')
        state = f"running\n\n\tpid = {pid.read_text()}" if is_alive() else "not running"
        print(f"{rest[0]} = {{\n\tactive count = 1\n\tstate = {state}\n\tlast exit code = 0\n}}")
    case "bootstrap":
        if going.exists():
            end(37, "Bootstrap failed: 37: Operation already in progress")
        if loaded.exists():
            end(5, "Bootstrap failed: 5: Input/output error")
        job = plistlib.loads(Path(rest[1]).read_bytes())
        assert Path(rest[1]).stat().st_mode & 0o022 == 0
        loaded.write_text(job["ProgramArguments"][0])
        (root / "job").write_bytes(Path(rest[1]).read_bytes())
        run()
    case "bootout":
        if not loaded.exists():
            end(3, "Boot-out failed: 3: No such process")
        if is_alive():
            os.kill(int(pid.read_text()), signal.SIGTERM)
        going.write_text(slow.read_text() if slow.exists() else "1")
        end(36, "Boot-out failed: 36: Operation now in progress")
    case "kickstart":
        if not loaded.exists():
            end(113, "Could not find service")
        if "-k" in rest and is_alive():
            with contextlib.suppress(ChildProcessError):
                os.kill(int(pid.read_text()), signal.SIGKILL)
            while is_alive():
                pass
        run()
    case _:
        end(64, "Unrecognized subcommand")
