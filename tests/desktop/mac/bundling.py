"""AgtmuxBar.app made here by the real py2app, and its twin: the same bundle of Linux's parts, whose programs start."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import fetched

ROOT = Path(__file__).parents[3]
PROGRAMS = ("AgtmuxBar", "agtmux-cli", "agtmuxd", "agtmux-bridge")
# What py2app's stub does before it runs Resources/__boot__.py in its own process.
STUB = """\
#!/bin/sh
contents=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
unset PYTHONPATH
export RESOURCEPATH="$contents/Resources" EXECUTABLEPATH="$0" ARGVZERO="$0" PYTHONHOME="$contents/Resources"
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 _PY2APP_LAUNCHED_=1 PYOBJC_BUNDLE_ADDRESS42=0x1
exec "$contents/MacOS/python" "$RESOURCEPATH/__boot__.py" "$@"
"""


def build(folders: list[Path], into: Path, architecture: str) -> tuple[Path, str]:
    """The bundle, and all that py2app said."""
    command = [sys._base_executable, "-S", str(Path(__file__).with_name("linux_py2app.py"))]
    environment = {
        "HOME": str(into),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(fetched.py2app()),
        "AGTMUX_BUNDLE_ARCH": architecture,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [*command, ":".join(map(str, folders)), str(into / "build"), str(into / "dist")],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return into / "dist" / "AgtmuxBar.app", done.stdout + done.stderr


def twin(into: Path) -> tuple[Path, str]:
    site = Path(importlib.util.find_spec("msgspec").origin).parents[1]
    cocoa = Path(__file__).with_name("cocoa")
    bundle, said = build([cocoa, fetched.rumps(), site], into, "arm64")
    for name in PROGRAMS:
        program = bundle / "Contents" / "MacOS" / name
        assert program.read_bytes()[:4] in (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"), f"{name} is no Mach-O program"
        program.write_text(STUB)
        program.chmod(0o755)
    return bundle, said


def missing(said: str) -> dict[str, set[str]]:
    """From what py2app reports: each module that was not found, and who imports it."""
    found = {}
    for line in said.splitlines():
        if match := re.fullmatch(r" \* (\S+) \((.*)\)", line):
            found[match[1]] = set(match[2].split(", "))
    return found
