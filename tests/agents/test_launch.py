"""The real agents, launched by agtmux into a tmux server that has their environment, and stopped again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agents.bench import LIMIT, AgentPane
from agents.driven import TARGET
from agents.install import PINNED, install
from support.home import Home, wait_until
from support.parrots import git

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
EVERY = [(name, versions[-1]) for name, versions in PINNED.items()]
SHEETS = Path(__file__).resolve().parents[2] / "resources" / "agents"
PROMPT = "-x 'it\"s' $(date) #{pane_id};\n\ndo:say{{Three labels are printed.}};"


class Launched(AgentPane):
    """Its settings and a tmux server that has what it needs in its environment; nothing is started in it yet."""

    home: Home

    def __init__(self, agent: ModuleType, version: str) -> None:
        super().__init__(agent, install(agent.NAME, version), version, wishes=frozenset({"few-tries"}))  # type: ignore[arg-type]

    def start(self) -> None:
        stage = self.stage
        launch = self.agent.prepare(stage)
        git(stage.project, "init", "-q")
        git(stage.project, "add", ".")
        git(stage.project, "commit", "-q", "-m", "Begin")
        env = {
            "HOME": str(stage.home),
            "PATH": f"{stage.folder / 'bin'}:{os.environ['PATH']}",
            "SHELL": shutil.which("bash") or "/bin/sh",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "USER": "dev",
        }
        words = ["tmux", "-S", str(stage.socket), "-f", os.devnull, "new-session", "-d", "-x", "120", "-y", "40"]
        subprocess.run([*words, "sleep", "3600"], env=env | launch.env, check=True, timeout=LIMIT)
        home = self.home = Home(stage.home)
        home.env["PATH"] = env["PATH"]
        sheet = (SHEETS / f"{self.agent.NAME}.toml").read_text("utf-8")
        # As its user would have it started here.
        command = json.dumps([self.agent.NAME, *launch.arguments])
        sheet = sheet.replace(f'command = ["{self.agent.NAME}"]', f"command = {command}", 1)
        agents = stage.home / "config" / "agents"
        agents.mkdir(parents=True)
        (agents / f"{self.agent.NAME}.toml").write_text(sheet, "utf-8")
        home.start()
        done = home.run("target", "add", TARGET, "--kind", "local", "--tmux-socket", str(stage.socket))
        assert done.returncode == 0, done.stderr

    def close(self) -> None:
        if hasattr(self, "home"):
            self.home.close()
        super().close()

    def launch(self, *words: str) -> dict[str, Any]:
        began = time.monotonic()
        where = ["--target", TARGET, "--cwd", str(self.stage.project)]
        done = self.home.run("launch", self.agent.NAME, *where, *words, "--json")
        assert done.returncode == 0, (done, self.tmux("list-panes", "-a"))
        told: dict[str, Any] = json.loads(done.stdout)
        print(f"{self.agent.NAME} {words}: {told['state']} after {time.monotonic() - began:.1f} s; asks {told['asks']}")
        return told

    def stop(self, ref: str) -> str:
        began = time.monotonic()
        done = self.home.run("stop", ref, "--yes", "--json")
        assert done.returncode == 0, done
        ended_by = str(json.loads(done.stdout)["about"]["ended_by"])
        print(f"{self.agent.NAME}: ended by {ended_by} after {time.monotonic() - began:.1f} s")
        return ended_by

    def answer_in(self, pane_id: str) -> str:
        """What it shows, without the prompt that asks for it."""
        return " ".join(self.screen_of(pane_id).split()).replace("do:say{{Three labels are printed.}}", "")

    def screen_of(self, pane_id: str) -> str:
        return self.tmux("capture-pane", "-p", "-t", pane_id)


@pytest.mark.parametrize(("name", "version"), EVERY)
def test_an_agent_is_launched_prompted_and_stopped(name: str, version: str) -> None:
    """gwt FR-011, FR-012."""
    with Launched(import_module(f"agents.{name}"), version) as its:
        told = its.launch("--prompt", PROMPT)
        assert told["prompt"] == "given"
        wait_until(lambda: its.server.main, "the prompt at the model", 60)
        heard = json.dumps(its.server.main[0].body)
        assert json.dumps(PROMPT)[1:-1] in heard, heard[-3000:]
        wait_until(lambda: "Three labels are printed." in its.answer_in(told["pane_id"]), "the answer", 60)
        wait_until(lambda: not its.server.busy, "the end of it", 60)
        wait_until(lambda: its.home.panes()[told["pane_id"]]["state"] in ("idle", "completed"), "its rest", 60)
        assert its.stop(told["ref"]) == "asked"
        plain = its.launch()
        assert plain["state"] == "idle", its.screen_of(plain["pane_id"])
        assert its.stop(plain["ref"]) == "asked"


@pytest.mark.parametrize(("name", "version"), EVERY)
def test_an_agent_is_launched_into_a_worktree(name: str, version: str) -> None:
    with Launched(import_module(f"agents.{name}"), version) as its:
        told = its.launch("--branch", "labels")
        tree = its.stage.folder / "parcels.worktrees" / "labels"
        item = its.home.panes()[told["pane_id"]]
        assert (told["worktree"], item["cwd"], item["branch"]) == (str(tree), str(tree), "labels")
        assert told["state"] in ("idle", "waiting_approval", "waiting_input"), its.screen_of(told["pane_id"])
        its.stop(told["ref"])
        wait_until(lambda: told["pane_id"] not in its.home.panes(), "the end of its pane")
