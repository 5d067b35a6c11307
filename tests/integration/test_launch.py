"""Launching and stopping with a real daemon, a real tmux server, real git and an agent that is a real program."""

import contextlib
import json
import os
import signal
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from support.home import Home, wait_until
from support.parrots import Parrots, git, repository, write_sheet


@pytest.fixture
def parrots(home: Home) -> Parrots:
    return Parrots(home)


@pytest.fixture
def project(home: Home, parrots: Parrots) -> Path:
    """A repository, with a daemon and a tmux server to launch agents in."""
    folder = repository(home.folder / "parcels")
    home.pane(agent=None)
    home.start()
    wait_until(home.panes, "the pane")
    return folder


def launch(home: Home, project: Path, **asked: Any) -> Any:
    request_ref = asked.pop("request_ref", os.urandom(8).hex())
    content = {"request_ref": request_ref, "agent": "parrot", "cwd": str(project), **asked}
    return home.ask("POST", "/v1/actions/launch", content)


def up(home: Home, project: Path, **asked: Any) -> dict[str, Any]:
    answer = launch(home, project, **asked)
    assert answer.status == 200, answer
    return dict(answer.json)


def stop(home: Home, ref: str, **asked: Any) -> Any:
    return home.ask("POST", "/v1/actions/stop", {"request_ref": os.urandom(8).hex(), "ref": ref, **asked})


def test_an_agent_is_launched_in_a_new_worktree_and_stopped(home: Home, parrots: Parrots, project: Path) -> None:
    """gwt FR-011, FR-012."""
    done = home.run("launch", "parrot", "--branch", "feature/auth", "--role", "builder", "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    tree = home.folder / "parcels.worktrees" / "feature-auth"
    assert (told["worktree"], told["branch"], told["is_new_worktree"]) == (str(tree), "feature/auth", True)
    assert (told["name"], told["session_name"], told["result_code"]) == ("builder", "cw_feature-auth", "up")
    item = home.panes()[told["pane_id"]]
    assert (item["runtime_id"], item["ref"], item["agent_type"]) == (told["runtime_id"], told["ref"], "parrot")
    assert (item["state"], item["cwd"], item["branch"]) == ("idle", str(tree), "feature/auth")
    assert parrots.started(told["pane_id"])["cwd"] == str(tree)
    assert git(tree, "branch", "--show-current") == "feature/auth"
    assert home.tmux("show-options", "-p", "-t", told["pane_id"], "remain-on-exit") == ""
    done = home.run("stop", told["pane_id"], "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["about"]["ended_by"] == "asked"
    assert parrots.submitted(told["pane_id"]) == ["/exit"]
    wait_until(lambda: told["pane_id"] not in home.panes(), "the end of its pane")
    assert tree.is_dir()


def test_what_it_says_to_people(home: Home, project: Path) -> None:
    done = home.run("launch", "parrot", "--branch", "labels", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "is up: host/cw_labels/@" in done.stdout and "new worktree" in done.stdout and "on labels" in done.stdout
    pane = next(pane for pane, item in home.panes().items() if item["agent_type"] == "parrot")
    assert home.run("stop", pane).returncode == 2
    assert home.run("stop", pane, "--yes").stdout == "ended as it was asked to\n"


def test_a_worktree_is_found_again_and_its_session_gets_one_more_window(home: Home, project: Path) -> None:
    first, second = up(home, project, branch="labels"), up(home, project, branch="labels")
    assert second["worktree"] == first["worktree"] and not second["is_new_worktree"]
    assert second["session_name"] == first["session_name"] == "cw_labels"
    windows = home.tmux("list-windows", "-t", "=cw_labels:", "-F", "#{window_id}").split()
    assert len(windows) == 2
    # The repository's own folder is as good as another.
    third = up(home, project, branch="main")
    assert third["worktree"] == str(project) and third["session_name"] == "cw_parcels"


def test_a_worktree_apart_is_never_the_repository_itself(home: Home, project: Path) -> None:
    told = up(home, project, worktree=True)
    assert told["branch"].startswith("parrot-") and told["is_new_worktree"]
    refused = launch(home, project, worktree=True, branch="main")
    assert refused.status == 412 and "main" in refused.json["error"]["message"]
    # From within another one it lies beside the repository too.
    further = up(home, Path(told["worktree"]), branch="more")
    assert Path(further["worktree"]).parent == Path(told["worktree"]).parent


def test_it_gets_the_environment_of_the_tmux_server_and_its_prompt_as_it_is(
    home: Home, parrots: Parrots, project: Path
) -> None:
    prompt = "-x 'it\"s' $(date) `date` #{pane_id} #(touch /tmp/x)\n\n日本語 👩‍💻 \\; kill-server;"
    told = up(home, project, prompt=prompt)
    start = parrots.started(told["pane_id"])
    assert start["argv"] == ["--", prompt] and told["prompt"] == "given"
    assert told["state"] == "running" and parrots.submitted(told["pane_id"]) == [prompt]
    long = "\n".join(["nine words are in every line of this prompt"] * 400)
    told = up(home, project, prompt=long)
    assert told["prompt"] == "given" and parrots.started(told["pane_id"])["argv"] == [], told
    assert parrots.submitted(told["pane_id"]) == [long]


def test_nothing_of_the_daemons_own_environment_gets_there(home: Home, parrots: Parrots) -> None:
    project = repository(home.folder / "parcels")
    home.pane(agent=None)
    home.start(env={"LEAK": "x", "SSH_AUTH_SOCK": "/leak", "PATH": f"{home.env['PATH']}:/leak", "DISPLAY": ":9"})
    wait_until(home.panes, "the pane")
    for _ in range(2):
        start = parrots.started(up(home, project)["pane_id"])
        assert not {"LEAK", "SSH_AUTH_SOCK", "DISPLAY"} & set(start["environ"])
        assert "/leak" not in start["path"]


def test_one_that_asks_something_is_up_and_its_question_is_told(home: Home, parrots: Parrots, project: Path) -> None:
    parrots.mood("asks deaf")
    told = up(home, project)
    assert told["state"] == "waiting_approval" and "trust this folder" in told["asks"]
    # Nothing is typed into the dialog when it is stopped.
    answer = stop(home, told["ref"])
    assert answer.json["about"]["ended_by"] == "INT", answer
    assert not [line for line in parrots.log(told["pane_id"]) if line["what"] in ("key", "paste")]


def test_one_that_ends_at_once_says_why_and_leaves_no_pane(home: Home, parrots: Parrots, project: Path) -> None:
    parrots.mood("sick")
    refused = launch(home, project, branch="labels")
    assert refused.status == 412 and "no seeds" in refused.json["error"]["message"], refused
    assert "cw_labels" not in home.tmux("list-sessions", "-F", "#{session_name}")
    Path(parrots.folder / "bin" / "parrot").unlink()
    refused = launch(home, project)
    assert "No such file" in refused.json["error"]["message"], refused


def test_one_that_does_not_come_up_leaves_no_worktree_and_no_branch(
    home: Home, parrots: Parrots, project: Path
) -> None:
    git(project, "branch", "kept")
    parrots.mood("sick")
    for branch in ("labels", "kept"):
        refused = launch(home, project, branch=branch).json["error"]
        assert "removed again" in refused["message"], refused
        assert refused["details"]["worktree"] is None
    assert git(project, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert git(project, "branch", "--format", "%(refname:short)").split() == ["kept", "main"]
    # What it has written stays, and is told of.
    parrots.mood("messy")
    refused = launch(home, project, branch="labels").json["error"]
    assert "stays" in refused["message"] and Path(refused["details"]["worktree"], "left.txt").exists(), refused
    assert "labels" in git(project, "branch", "--format", "%(refname:short)")


def test_what_came_to_nothing_does_not_keep_the_user_from_trying_again(
    home: Home, parrots: Parrots, project: Path
) -> None:
    home.tmux("kill-server")
    for _ in range(6):
        refused = launch(home, project)
        assert refused.json["error"]["code"] == "E_PRECONDITION_FAILED", refused


def test_a_draft_is_not_typed_into_and_a_stubborn_one_is_killed(home: Home, parrots: Parrots, project: Path) -> None:
    parrots.mood("stubborn")
    told = up(home, project)
    answer = stop(home, told["ref"])
    assert answer.json["about"]["ended_by"] == "KILL", answer
    wait_until(lambda: told["pane_id"] not in home.panes(), "its end")
    told = up(home, project)
    home.tmux("send-keys", "-t", told["pane_id"], "half a sentence")
    wait_until(lambda: "half a sentence" in home.tmux("capture-pane", "-p", "-t", told["pane_id"]), "the draft")
    answer = stop(home, told["ref"])
    assert answer.json["about"]["ended_by"] == "KILL" and not parrots.submitted(told["pane_id"])


def test_a_request_has_one_effect(home: Home, project: Path) -> None:
    answers: list[Any] = []
    threads = [
        threading.Thread(target=lambda: answers.append(launch(home, project, request_ref="one", branch="labels")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status for answer in answers] == [200] * 4
    assert {answer.json["runtime_id"] for answer in answers} == {answers[0].json["runtime_id"]}
    assert sorted(answer.json["is_replay"] for answer in answers) == [False, True, True, True]
    assert len({answer.json["worktree"] for answer in answers}) == 1
    assert len([item for item in home.panes().values() if item["agent_type"] == "parrot"]) == 1
    conflict = launch(home, project, request_ref="one", branch="other")
    assert conflict.json["error"]["code"] == "E_IDEMPOTENCY_CONFLICT"
    listed = home.run("log", "actions", "--type", "launch", "--json")
    assert [item["result_code"] for item in json.loads(listed.stdout)["items"]] == ["up"]


def test_the_fifth_in_a_minute_is_refused_also_by_the_next_daemon(home: Home, parrots: Parrots) -> None:
    """gwt FR-016."""
    project = repository(home.folder / "parcels")
    home.pane(agent=None)
    daemon = home.start()
    wait_until(home.panes, "the pane")
    for _ in range(4):
        up(home, project)
    refused = launch(home, project)
    assert (refused.status, refused.json["error"]["code"]) == (429, "E_LIMIT_RATE")
    assert 0 < refused.json["error"]["details"]["retry_after_seconds"] <= 60
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    home.start()
    assert launch(home, project).json["error"]["code"] == "E_LIMIT_RATE"
    done = home.run("launch", "parrot", cwd=project)
    assert done.returncode == 4 and "try again in" in done.stderr


@pytest.mark.parametrize("table", ["actions", "launches"])
def test_one_that_could_not_be_written_down_does_not_count(home: Home, parrots: Parrots, table: str) -> None:
    folder = repository(home.folder / "parcels")
    home.configure("[launch]\ntrust_outside = true\nmost_agents = 1\n")
    home.pane(agent=None)
    home.start()
    wait_until(home.panes, "the pane")
    with contextlib.closing(sqlite3.connect(home.database, timeout=10)) as connection, connection:
        connection.execute(f"CREATE TRIGGER full BEFORE INSERT ON {table} BEGIN SELECT RAISE(FAIL, 'no space'); END")
    assert launch(home, folder).json["error"]["code"] == "E_STORE"
    with contextlib.closing(sqlite3.connect(home.database, timeout=10)) as connection, connection:
        connection.execute("DROP TRIGGER full")
    up(home, folder)


def test_there_may_be_so_many_and_no_more(home: Home, parrots: Parrots) -> None:
    """gwt FR-016."""
    project = repository(home.folder / "parcels")
    home.configure("[launch]\ntrust_outside = true\nmost_agents = 2\n")
    home.pane(agent=None)
    daemon = home.start()
    wait_until(home.panes, "the pane")
    first = up(home, project)
    second: list[Any] = []
    parrots.mood("silent")

    def launch_second() -> None:
        with contextlib.suppress(OSError):
            second.append(launch(home, project))

    thread = threading.Thread(target=launch_second)
    thread.start()
    # One that is under way counts.
    wait_until(lambda: home.query("SELECT 1 FROM launches WHERE pane_pid IS NOT NULL AND settled_at IS NULL"), "it")
    assert launch(home, project).json["error"]["code"] == "E_LIMIT_PANES"
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    thread.join()
    parrots.mood("")
    home.start()
    wait_until(lambda: len(home.panes()) == 3, "all panes")
    assert launch(home, project).json["error"]["code"] == "E_LIMIT_PANES"
    assert stop(home, first["ref"]).status == 200
    wait_until(lambda: first["pane_id"] not in home.panes(), "its end")
    up(home, project)


def test_one_that_is_never_ready_is_left_and_what_it_shows_is_told(home: Home, parrots: Parrots) -> None:
    """orchestrator: start time-out."""
    project = repository(home.folder / "parcels")
    home.configure('[launch]\ntrust_outside = true\nstart_timeout = "2s"\n')
    home.pane(agent=None)
    home.start()
    wait_until(home.panes, "the pane")
    parrots.mood("silent")
    refused = launch(home, project, request_ref="late", branch="labels", role="builder")
    error = refused.json["error"]
    assert (refused.status, error["code"]) == (503, "E_TIMEOUT") and "still loading" in error["message"], error
    assert error["details"]["pane_id"] in home.panes() and error["details"]["worktree"].endswith("labels")
    again = launch(home, project, request_ref="late", branch="labels", role="builder")
    assert again.json["is_replay"] and again.json["error_code"] == "E_TIMEOUT", again
    # Its name is free again.
    parrots.mood("")
    assert up(home, project, role="builder")["name"] == "builder"
    taken = launch(home, project, role="builder")
    assert taken.status == 412 and "builder" in taken.json["error"]["message"]


def test_a_server_is_started_only_if_that_is_said(home: Home, parrots: Parrots) -> None:
    project = repository(home.folder / "parcels")
    daemon = home.start(env={"LEAK": "x"})
    done = home.run("launch", "parrot", cwd=project)
    assert done.returncode == 4 and "no tmux server is running" in done.stderr, done.stderr
    assert not list(home.folder.glob("tmux-*/default"))
    write_sheet(home.folder / "config", parrots.folder)
    home.end(daemon)
    home.start(env={"LEAK": "x"})
    try:
        done = home.run("launch", "parrot", "--start-server", "--json", cwd=project)
        assert done.returncode == 0, done.stderr
        start = parrots.started(json.loads(done.stdout)["pane_id"])
        assert not {"LEAK", "AGTMUX_STATE_DIR", "AGTMUX_CONFIG_DIR"} & set(start["environ"])
        assert {"HOME", "PATH"} <= set(start["environ"])
    finally:
        home.tmux("kill-server")


def test_worktrees_are_listed_with_who_is_in_them(home: Home, parrots: Parrots, project: Path) -> None:
    told = up(home, project, branch="labels", role="builder")
    up(home, project)
    git(project, "worktree", "add", "-q", "--detach", str(home.folder / "by-hand"))
    (project / "fresh.py").write_text("x\n")
    listed = home.ask("GET", "/v1/worktrees").json
    items = {item["path"]: item for item in listed["items"]}
    assert set(items) == {str(project), told["worktree"], str(home.folder / "by-hand")}
    assert {(item["branch"], item["is_main"], item["is_dirty"]) for item in items.values()} == {
        ("main", True, True),
        ("labels", False, False),
        (None, False, False),
    }
    assert [agent["name"] for agent in items[told["worktree"]]["agents"]] == ["builder"]
    assert len(items[str(project)]["agents"]) == 1 and items[str(home.folder / "by-hand")]["agents"] == []
    assert home.ask("GET", "/v1/worktrees?target=vm9").status == 404
    assert home.ask("GET", "/v1/worktrees?x=1").status == 400


def test_a_worktree_is_removed_only_on_ones_word_and_if_nothing_is_lost(
    home: Home, parrots: Parrots, project: Path
) -> None:
    first, second = up(home, project, branch="labels"), up(home, project, branch="labels")
    tree = Path(first["worktree"])
    refused = stop(home, first["ref"], remove_worktree=True)
    assert refused.status == 412 and second["pane_id"] in refused.json["error"]["message"], refused
    assert stop(home, second["ref"]).json["about"]["ended_by"] == "asked"
    wait_until(lambda: second["pane_id"] not in home.panes(), "its end")
    (tree / "fresh.py").write_text("x\n")
    refused = stop(home, first["ref"], remove_worktree=True)
    # And the agent goes on.
    assert refused.status == 412 and first["pane_id"] in home.panes() and tree.is_dir()
    (tree / "fresh.py").unlink()
    done = home.run("stop", first["pane_id"], "--yes", "--remove-worktree")
    assert done.stdout == f"ended as it was asked to\nremoved {tree}\n", done
    assert not tree.exists() and git(project, "branch", "--list", "labels")
    main = up(home, project)
    refused = stop(home, main["ref"], remove_worktree=True)
    assert refused.status == 412 and "itself" in refused.json["error"]["message"]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"agent": "dodo"}, "E_USAGE"),
        ({"branch": "-x"}, "E_USAGE"),
        ({"branch": "--force"}, "E_USAGE"),
        ({"branch": "a..b"}, "E_USAGE"),
        ({"session": "#(touch x)"}, "E_USAGE"),
        ({"session": "a:b"}, "E_USAGE"),
        ({"role": "claude-3"}, "E_USAGE"),
        ({"cwd": "relative"}, "E_USAGE"),
        ({"cwd": "/nowhere"}, "E_PRECONDITION_FAILED"),
        ({"target": "vm9"}, "E_TARGET_NOT_FOUND"),
        ({"prompt": "x" * 100_001}, "E_TOO_LARGE"),
        ({"request_ref": ""}, "E_USAGE"),
        ({"shoe_size": 43}, "E_USAGE"),
    ],
)
def test_what_is_asked_for_wrongly_starts_nothing(home: Home, project: Path, asked: dict[str, Any], code: str) -> None:
    refused = launch(home, project, **asked)
    assert refused.json["error"]["code"] == code, refused
    assert len(home.panes()) == 1


def test_a_folder_whose_name_is_a_format_is_only_a_folder(home: Home, parrots: Parrots, project: Path) -> None:
    odd = repository(home.folder / "#(touch x) #{pid} 'a\" ; b #[fg=red]")
    told = up(home, odd, branch="labels")
    assert parrots.started(told["pane_id"])["cwd"] == told["worktree"] == f"{odd}.worktrees/labels"
    plain = up(home, odd)
    assert parrots.started(plain["pane_id"])["cwd"] == str(odd)
    assert not (home.folder / "x").exists() and not (odd / "x").exists()
