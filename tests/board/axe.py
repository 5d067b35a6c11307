"""axe-core, which finds what people with other senses would stumble over; from npm into a cache of the tests'."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import tempfile
from pathlib import Path

from agents.install import cache

VERSION = "4.14.0"


def source() -> str:
    """Its program, fetched unless it is there. Safe to call from tests that run in parallel."""
    folder = cache() / "axe-core" / VERSION
    file = folder / "node_modules" / "axe-core" / "axe.min.js"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{VERSION}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            with tempfile.TemporaryDirectory(prefix=f"{VERSION}.", dir=folder.parent) as unfinished:
                Path(unfinished, "package.json").write_text('{"private": true}\n', "utf-8")
                words = ["npm", "install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts"]
                command = [*words, "--loglevel=error", f"axe-core@{VERSION}"]
                subprocess.run(command, cwd=unfinished, capture_output=True, check=True, timeout=300)
                shutil.rmtree(folder, ignore_errors=True)
                Path(unfinished).rename(folder)
                Path(unfinished).mkdir()
    return file.read_text("utf-8")
