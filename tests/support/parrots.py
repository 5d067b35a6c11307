"""Parrots in a home: the program, the TOML that makes an agent of it, and what each was given."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.home import Home, wait_until

PROGRAM = Path(__file__).with_name("parrot.py")
CLAUDE = Path(__file__).resolve().parents[2] / "resources" / "agents" / "claude.toml"
HEAD = """
agent_type = "parrot"
name = "Parrot"

[process]
commands = ["parrot"]

[launch]
prompt = ["--", "{prompt}"]
end = "/exit"

"""


class Parrots:
    """Before the home's first pane: its tmux server has to know where the program is."""

    def __init__(self, home: Home, folder: Path | None = None, env: dict[str, str] | None = None) -> None:
        self.home = home
        self.folder = folder or home.folder / "parrots"
        script = write_program(self.folder)
        # Of the tmux server alone.
        self.env = home.env if env is None else env
        self.env["PARROTS"] = str(self.folder)
        self.env["PATH"] = f"{script.parent}:{self.env['PATH']}"
        write_sheet(home.folder / "config")
        # Tests run at no terminal: what they ask for is the user's word all the same.
        home.configure("[launch]\ntrust_outside = true\n")

    def mood(self, words: str) -> None:
        (self.folder / "mood").write_text(words)

    def started(self, pane_id: str) -> dict[str, Any]:
        """What it was started with."""
        path = self.folder / f"{pane_id.removeprefix('%')}.start"
        wait_until(path.exists, f"the parrot in {pane_id}")
        return dict(json.loads(path.read_text()))

    def log(self, pane_id: str) -> list[dict[str, Any]]:
        path = self.folder / f"{pane_id.removeprefix('%')}.log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def submitted(self, pane_id: str) -> list[str]:
        return [line["data"] for line in self.log(pane_id) if line["what"] == "submit"]


def write_program(folder: Path) -> Path:
    script = folder / "bin" / "parrot"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(f'#!/bin/bash\nexec -a parrot "{sys.executable}" "{PROGRAM}" "$@"\n')
    script.chmod(0o755)
    return script


def write_sheet(config: Path, folder: Path | None = None) -> None:
    """What makes an agent of it. With a folder it is started from there, whatever the tmux server knows."""
    agents = config / "agents"
    agents.mkdir(parents=True, exist_ok=True)
    head, sheet = HEAD, CLAUDE.read_text()
    if folder is not None:
        command = json.dumps(["env", f"PARROTS={folder}", str(folder / "bin" / "parrot")])
        head = head.replace("[launch]", f"[launch]\ncommand = {command}")
    (agents / "parrot.toml").write_text(head + sheet[sheet.index("[typing]") :])


def git(folder: Path, *words: str) -> str:
    """With nothing of whoever runs the tests."""
    who = ["-c", "user.name=Dev", "-c", "user.email=dev@host", "-c", "init.defaultBranch=main"]
    env = {"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *who, *words], cwd=folder, env=env, capture_output=True, timeout=60)
    assert done.returncode == 0, f"git {words}: {done.stderr!r}"
    return done.stdout.decode("utf-8", "replace").rstrip("\n")


def repository(folder: Path) -> Path:
    """With one commit on `main`."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "label.py").write_text("weight = 1\n")
    (folder / "README.md").write_text("# Parcels\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "Begin")
    return folder
