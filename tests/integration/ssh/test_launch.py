"""Launching on another machine: git and tmux are asked there, by the probe, and nothing has to be installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from integration.test_bridge import Bridge
from support.home import Home, wait_until
from support.parrots import Parrots, git, repository
from support.sshd import Sshd
from support.targets import HASTY, add, error, seen

Vms = Callable[..., list[Sshd]]


def test_an_agent_is_launched_over_there_and_stopped(home: Home, vms: Vms, tmp_path: Path) -> None:
    [vm] = vms(1)
    parrots = Parrots(home, tmp_path / "parrots", vm.env)
    project = repository(tmp_path / "parcels")
    vm.pane(agent=None)
    home.pane()
    home.start()
    add(home, "vm1")
    wait_until(lambda: [key for key in seen(home) if key[0] == "vm1"], "its panes")
    done = home.run("launch", "parrot", "--target", "vm1", "--branch", "labels", "--cwd", str(project), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    tree = tmp_path / "parcels.worktrees" / "labels"
    assert (told["target"], told["worktree"], told["state"]) == ("vm1", str(tree), "idle")
    assert (told["name"], told["session_name"]) == (f"parrot-{told['pane_id'][1:]}@vm1", "cw_labels")
    assert parrots.started(told["pane_id"])["cwd"] == str(tree)
    assert "cw_labels" in vm.tmux("list-sessions") and "cw_labels" not in home.tmux("list-sessions")
    (tree / "label.py").write_text("weight = 2\n")
    listed = home.ask("GET", "/v1/worktrees?target=vm1").json
    by_branch = {item["branch"]: item for item in listed["items"]}
    assert by_branch["labels"]["is_dirty"] and not by_branch["main"]["is_dirty"]
    assert [agent["name"] for agent in by_branch["labels"]["agents"]] == [told["name"]]
    # Asked on this machine, answered by that one.
    bridge = Bridge(home)
    bridge.greet()
    changed = bridge.call("get_changed_files", agent=told["name"])["structuredContent"]
    assert changed["files"] == [{"path": "label.py", "status": "modified", "renamed_from": None}]
    assert "+weight = 2" in bridge.call("get_worktree_diff", agent=told["ref"])["structuredContent"]["diff"]
    refused = home.run("stop", told["ref"], "--yes", "--remove-worktree")
    assert refused.returncode == 4 and "not committed" in refused.stderr
    git(tree, "checkout", "-q", ".")
    done = home.run("stop", told["ref"], "--yes", "--remove-worktree", "--json")
    assert done.returncode == 0, done.stderr
    about = json.loads(done.stdout)["about"]
    assert (about["ended_by"], about["removed_worktree"]) == ("asked", str(tree))
    assert not tree.exists() and git(project, "branch", "--list", "labels")


def test_a_machine_that_is_gone_is_told_of_and_costs_the_others_nothing(home: Home, vms: Vms, tmp_path: Path) -> None:
    [vm] = vms(1)
    Parrots(home, tmp_path / "parrots", vm.env)
    project = repository(tmp_path / "parcels")
    home.configure(HASTY)
    vm.pane(agent=None)
    home.pane(command=f"sh -c 'cd {project} && exec sleep 3600'")
    home.start()
    add(home, "vm1")
    wait_until(lambda: [key for key in seen(home) if key[0] == "vm1"], "its panes")
    done = home.run("launch", "parrot", "--target", "vm1", "--cwd", str(project))
    assert done.returncode == 0, done.stderr
    assert {item["target"] for item in home.ask("GET", "/v1/worktrees").json["items"]} == {"host", "vm1"}
    vm.close()
    wait_until(lambda: error(home, "vm1"), "its end")
    listed = home.ask("GET", "/v1/worktrees").json
    assert listed["partial"] and [each["target"] for each in listed["target_errors"]] == ["vm1"]
    assert {item["target"] for item in listed["items"]} == {"host"}
    done = home.run("launch", "parrot", "--target", "vm1", "--cwd", str(project))
    assert done.returncode == 6, done.stderr


def test_where_has_to_be_said_and_a_server_is_not_started_by_itself(home: Home, vms: Vms, tmp_path: Path) -> None:
    [vm] = vms(1)
    parrots = Parrots(home, tmp_path / "parrots", vm.env)
    project = repository(tmp_path / "parcels")
    home.start()
    add(home, "vm1")
    done = home.run("launch", "parrot", "--target", "vm1")
    assert done.returncode == 2 and "--cwd" in done.stderr
    done = home.run("launch", "parrot", "--target", "vm1", "--cwd", str(project))
    assert done.returncode == 4 and "no tmux server is running" in done.stderr, done.stderr
    assert not [key for key in seen(home) if key[0] == "vm1"] and not list(parrots.folder.glob("*.start"))
