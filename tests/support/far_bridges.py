"""Agents on a VM that are told of the bridge: their settings, and what is asked through it from there."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.asking import Asker
from support.home import Home, wait_until
from support.sshd import Sshd

Vms = Callable[..., list[Sshd]]

CLAUDE = '{\n  // mine\n  "numStartups": 7\n}\n'
CODEX = 'model = "gpt-5"\n\n[tui]\nnotifications = true\n'
OLDER_AND_NEWER = [
    python
    for version in (8, 9, 13)
    for python in sorted(Path.home().glob(f".pyenv/versions/3.{version}.*/bin/python3"))[-1:]
]
PROGRAM = Path(".local", "share", "agtmux", "agtmux-mcp")
DOOR = Path(".local", "state", "agtmux", "agtmuxd.sock")


def used(vm: Sshd) -> None:
    """Two agents are used there."""
    (vm.home / ".claude").mkdir()
    (vm.home / ".claude.json").write_text(CLAUDE)
    (vm.home / ".codex").mkdir()
    (vm.home / ".codex" / "config.toml").write_text(CODEX)
    vm.accept_files()


def tree(vm: Sshd) -> dict[str, Any]:
    """Every file of the VM's user with its mode and content; the probe's own door is its own business."""
    found = [path for path in sorted(vm.home.rglob("*")) if "state" not in path.parts and path.name != ".local"]
    return {str(path): (path.lstat().st_mode, path.read_bytes() if path.is_file() else None) for path in found}


def mcp(home: Home, action: str, *words: str) -> dict[str, dict[str, Any]]:
    done = home.run("mcp", action, "--target", "vm1", "--json", *words)
    assert done.returncode == 0, done
    answer = json.loads(done.stdout)
    assert answer["target"] == "vm1"
    return {item["agent"]: item for item in answer["items"]}


def command(vm: Sshd) -> list[str]:
    """What the agent there would start."""
    entry = tomllib.loads((vm.home / ".codex" / "config.toml").read_text())["mcp_servers"]["agtmux"]
    return [entry["command"], *entry["args"]]


def agent_there(home: Home, vm: Sshd, asker: Asker, agent: str = "claude", before: str = "") -> str:
    """In a pane of its own; returns that once somebody was told something."""
    pane_id = vm.pane(agent, before + asker.command)
    wait_until(lambda: asker.told.get("agents"), "an answer")
    return pane_id
