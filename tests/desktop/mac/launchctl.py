#!/usr/bin/env python3
"""launchd as far as `launchctl` shows it, in the folder $LAUNCHD: `bootout` only begins what later calls find done.

Each call is noted in `calls`. A job that is going is gone after so many calls as `slow` says.
"""

import os
import plistlib
import sys
from pathlib import Path

root = Path(os.environ["LAUNCHD"])
word, *rest = sys.argv[1:]
with (root / "calls").open("a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\n")
loaded, going, slow = root / "loaded", root / "going", root / "slow"


def end(status, text=""):
    if text:
        print(text, file=sys.stderr)
    sys.exit(status)


if going.exists():
    left = int(going.read_text()) - 1
    if left > 0:
        going.write_text(str(left))
    else:
        going.unlink()
        loaded.unlink()

match word:
    case "print":
        if not loaded.exists():
            end(113, f'Could not find service "{rest[0].split("/")[-1]}" in domain for user gui')
    case "bootstrap":
        if going.exists():
            end(37, "Bootstrap failed: 37: Operation already in progress")
        if loaded.exists():
            end(5, "Bootstrap failed: 5: Input/output error")
        job = plistlib.loads(Path(rest[1]).read_bytes())
        assert Path(rest[1]).stat().st_mode & 0o022 == 0
        loaded.write_text(job["ProgramArguments"][0])
    case "bootout":
        if not loaded.exists():
            end(3, "Boot-out failed: 3: No such process")
        going.write_text(slow.read_text() if slow.exists() else "1")
        end(36, "Boot-out failed: 36: Operation now in progress")
    case "kickstart":
        if not loaded.exists():
            end(113, "Could not find service")
    case _:
        end(64, "Unrecognized subcommand")
