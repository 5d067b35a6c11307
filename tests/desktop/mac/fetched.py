"""What the tests need of PyPI and npm and cannot be a dependency here, in a cache outside the repository.

rumps and PyObjC's frameworks declare that they need a Mac; they are read, and rumps is run, without one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

RUMPS = "rumps==0.4.0"
PY2APP = "py2app==0.28.10"
SDK = "@nativescript/macos-node-api@0.4.0"
LIMIT = 600.0
PROJECT = Path(__file__).parents[3] / "pyproject.toml"


class Unavailable(Exception):
    """Why it cannot be had, for the test to be skipped with."""


def cache() -> Path:
    """As the agents that tests start have it."""
    if chosen := os.environ.get("AGTMUX_TEST_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "agtmux-tests"


def fetched(name: str, fetch: Callable[[Path], None]) -> Path:
    """The folder of that name, filled unless it is there. Safe to call from tests that run in parallel."""
    folder = cache() / "mac" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            # Into a neighbour and then renamed: what bears the name is whole.
            unfinished = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=folder.parent))
            try:
                fetch(unfinished)
                unfinished.rename(folder)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def rumps() -> Path:
    return fetched(_name(RUMPS), lambda folder: pip("--no-deps", "--target", str(folder), RUMPS))


def py2app() -> Path:
    return fetched(_name(PY2APP), lambda folder: pip("--target", str(folder), PY2APP))


def frameworks() -> Path:
    """PyObjC's, for what they say of themselves in Python."""
    names = ("Cocoa", "ServiceManagement", "UserNotifications")
    words = [
        "--no-deps",
        "--only-binary=:all:",
        "--platform",
        "macosx_11_0_arm64",
        "--platform",
        "macosx_10_9_universal2",
    ]

    def fetch(folder: Path) -> None:
        pip("--target", str(folder), *words, *(f"pyobjc-framework-{name}>=11,<14" for name in names))

    return fetched("pyobjc", fetch)


def wheels(architecture: str) -> Path:
    """All that the bundle is made of, for a Mac of that kind and a Python like this one."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    dependencies = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["dependencies"]
    names = [each.partition(";")[0].strip() for each in dependencies if not each.startswith("rumps")]
    platforms = [word for system in ("11_0", "13_0") for word in ("--platform", f"macosx_{system}_{architecture}")]
    if architecture == "x86_64":
        platforms += ["--platform", "macosx_10_12_x86_64", "--platform", "macosx_10_9_universal2"]
    platforms += ["--platform", "macosx_10_9_universal2"]

    def fetch(folder: Path) -> None:
        pip("--target", str(folder), "--only-binary=:all:", "--python-version", version, *platforms, *names)
        pip("--no-deps", "--target", str(folder), RUMPS)

    # Other dependencies are other wheels.
    which = hashlib.sha256("\n".join([*names, RUMPS]).encode()).hexdigest()[:12]
    return fetched(f"wheels-{architecture}-{version}-{which}", fetch)


def pip(*words: str) -> None:
    _run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", *words])


def sdk() -> Path:
    """The declarations of Apple's SDK, as a package for Node has them."""

    def fetch(folder: Path) -> None:
        if shutil.which("npm") is None:
            raise Unavailable("npm is not installed")
        (folder / "package.json").write_text('{"private": true}\n', "utf-8")
        _run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", SDK], folder)

    return fetched(_name(SDK), fetch) / "node_modules" / "@nativescript" / "macos-node-api"


def _name(requirement: str) -> str:
    return requirement.replace("==", "-").replace("/", "-").replace("@", "-").strip("-")


def _run(command: list[str], folder: Path | None = None) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{command[0]}: {error}") from None
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(command[:4])}: {done.stderr.strip()[-400:]}")
