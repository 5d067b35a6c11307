"""The agents' programs in the versions that tests and recordings name, from npm into a cache outside the repository.

Here is which versions those are. How an agent is started is in its own module.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple


class Package(NamedTuple):
    name: str
    command: str
    # Install scripts run only where the command line does not start without them.
    scripts: bool = False


PACKAGES = {
    "claude": Package("@anthropic-ai/claude-code", "claude", scripts=True),
    "codex": Package("@openai/codex", "codex"),
    "gemini": Package("@google/gemini-cli", "gemini"),
    "copilot": Package("@github/copilot", "copilot"),
}

# What the tests start.
PINNED: dict[str, list[str]] = {
    "claude": ["2.1.197", "2.1.325"],
    "codex": ["0.155.0", "0.166.0"],
    "gemini": ["0.61.0"],
    "copilot": ["1.0.102"],
}

# The newest that anybody has looked at.
NEWEST = {"claude": "2.1.327", "codex": "0.169.0", "gemini": "0.61.0", "copilot": "1.0.102"}

# What the corpus has screens of beside those.
# fmt: off
RECORDED: dict[str, list[str]] = {
    "claude": [
        "0.2.126", "1.0.40", "1.0.60", "1.0.88", "1.0.110", "1.0.128", "2.0.14", "2.0.37", "2.0.55", "2.0.64",
        "2.0.77", "2.1.20", "2.1.30", "2.1.50", "2.1.70", "2.1.90", "2.1.120", "2.1.160", "2.1.210", "2.1.229",
        "2.1.260", "2.1.281", "2.1.300", "2.1.327",
    ],
    "codex": [
        "0.21.0", "0.29.0", "0.36.0", "0.42.0", "0.45.0", "0.50.0", "0.58.0", "0.66.0", "0.72.0", "0.77.0", "0.80.0",
        "0.90.0", "0.98.0", "0.101.0", "0.104.0", "0.107.0", "0.111.0", "0.116.0", "0.122.0", "0.128.0", "0.129.0",
        "0.133.0", "0.137.0", "0.140.0", "0.147.0", "0.154.0", "0.155.0", "0.158.0", "0.160.0", "0.163.0", "0.169.0",
    ],
    "gemini": [
        "0.1.22", "0.2.2", "0.5.5", "0.8.2", "0.11.3", "0.18.4", "0.20.0", "0.22.4", "0.24.0", "0.28.2", "0.31.0",
        "0.33.2", "0.35.2", "0.39.0", "0.45.2", "0.52.0", "0.54.4", "0.56.0", "0.58.0",
    ],
    "copilot": [
        "0.0.403", "0.0.423", "1.0.3", "1.0.12", "1.0.20", "1.0.24", "1.0.32", "1.0.40", "1.0.43", "1.0.45", "1.0.60",
        "1.0.70", "1.0.80", "1.0.85", "1.0.86", "1.0.89",
    ],
}
# fmt: on

LIMIT = 600.0


def cache() -> Path:
    """Where installed agents stay between runs."""
    if chosen := os.environ.get("AGTMUX_TEST_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "agtmux-tests"


def install(agent: str, version: str) -> Path:
    """The executable of that version, installed unless it is there. Safe to call from tests that run in parallel."""
    package = PACKAGES[agent]
    folder = cache() / "agents" / agent / version
    executable = folder / "node_modules" / ".bin" / package.command
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not executable.exists():
            # Into a neighbour and then renamed: what bears the version's name is whole.
            with tempfile.TemporaryDirectory(prefix=f"{version}.", dir=folder.parent) as unfinished:
                _npm_install(package, version, Path(unfinished))
                shutil.rmtree(folder, ignore_errors=True)
                Path(unfinished).rename(folder)
                Path(unfinished).mkdir()
    return executable


def _npm_install(package: Package, version: str, folder: Path) -> None:
    # A package file of its own keeps npm from looking for one further up.
    (folder / "package.json").write_text('{"private": true}\n', "utf-8")
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-save", "--loglevel=error"]
    if not package.scripts:
        command.append("--ignore-scripts")
    done = subprocess.run(
        [*command, f"{package.name}@{version}"], cwd=folder, capture_output=True, text=True, timeout=LIMIT
    )
    if done.returncode != 0:
        raise RuntimeError(f"npm install {package.name}@{version}: {done.stderr.strip()}")
