"""`agtmux demo` with a real daemon, a real tmux server and the real hook."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agtmux.domain.states import NEEDS_ACTION, State
from support.home import COMMANDS, Home, is_alive, wait_until


@dataclass
class Demo:
    home: Home
    server: str = ""
    actors: list[int] = field(default_factory=list)

    def start(self, *words: str) -> dict:
        done = self.home.run("demo", "--json", *words)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        self.server = answer["tmux_socket"]
        self.actors = [int(pid) for pid in self.tmux("list-panes", "-a", "-F", "#{pane_pid}").split()]
        return answer

    def stop(self) -> dict:
        done = self.home.run("demo", "--stop", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def tmux(self, *words: str) -> str:
        return self.home.tmux("-L", self.server, *words)

    def panes(self) -> list[dict]:
        items = self.home.ask("GET", "/v1/panes").json["items"]
        return [item for item in items if item["identity"]["target"] == "demo"]

    def targets(self) -> list[str]:
        return [item["name"] for item in self.home.ask("GET", "/v1/targets").json["items"]]

    def until_all_states_show(self) -> list[dict]:
        def shown() -> list[dict] | None:
            panes = self.panes()
            return panes if {pane["state"] for pane in panes} == set(State) - {State.UNKNOWN} else None

        return wait_until(shown, "every state that is known")

    def until(self, pane_id: str, state: State) -> dict:
        def has_it() -> dict | None:
            pane = next(pane for pane in self.panes() if pane["identity"]["pane_id"] == pane_id)
            return pane if pane["state"] == state else None

        return wait_until(has_it, f"{state} in pane {pane_id} of {self.server}")

    def first(self, state: State) -> str:
        return next(pane["identity"]["pane_id"] for pane in self.panes() if pane["state"] == state)

    def until_no_actor_is_left(self) -> None:
        wait_until(lambda: not any(map(is_alive, self.actors)), "the end of the actors")

    def until_target_is_gone(self) -> None:
        wait_until(lambda: self.targets() == ["host"], "the end of the target")


@pytest.fixture
def demo(home: Home) -> Iterator[Demo]:
    home.start()
    made = Demo(home)
    try:
        yield made
    finally:
        made.stop()


def test_every_state_is_on_show_soon_after_the_start(demo):
    assert demo.start()["started"] is True
    panes = demo.until_all_states_show()
    assert len(panes) >= 7
    assert len({pane["identity"]["session_name"] for pane in panes}) == 2
    assert len({pane["identity"]["window_id"] for pane in panes}) > 2
    # Cursor reports nothing, and is known by descriptions of its screen alone.
    cursor = next(pane for pane in panes if pane["agent_type"] == "cursor")
    assert (cursor["state"], cursor["source"]) == (State.IDLE, "poller")
    assert cursor["confidence"] != "high"
    for pane in panes:
        assert bool(pane["attention"]) is (pane["state"] in NEEDS_ACTION), pane


def test_titles_and_screens_tell_the_same_as_the_reports(demo):
    demo.start()
    demo.until_all_states_show()
    pane_id = demo.first(State.WAITING_INPUT)
    asked = demo.until(pane_id, State.WAITING_INPUT)["attention"]
    screen = demo.tmux("capture-pane", "-p", "-t", pane_id)
    assert asked["summary"] in screen
    assert len(asked["options"]) > 1
    assert all(option in screen for option in asked["options"])
    assert all(pane["title"] for pane in demo.panes())


def test_the_dialog_can_be_approved_and_denied_with_a_key(demo):
    demo.start()
    demo.until_all_states_show()
    yes, no = (pane["identity"]["pane_id"] for pane in demo.panes() if pane["state"] == State.WAITING_APPROVAL)
    demo.tmux("send-keys", "-t", yes, "1")
    demo.until(yes, State.RUNNING)
    demo.tmux("send-keys", "-t", no, "Escape")
    demo.until(no, State.IDLE)


def test_what_is_typed_at_the_prompt_is_worked_on(demo):
    demo.start()
    demo.until_all_states_show()
    pane_id = demo.first(State.IDLE)
    demo.tmux("send-keys", "-t", pane_id, "-l", "grüße aus dem test")
    demo.tmux("send-keys", "-t", pane_id, "Enter")
    demo.until(pane_id, State.RUNNING)
    assert "grüße aus dem test" in demo.tmux("capture-pane", "-p", "-t", pane_id)
    demo.until(pane_id, State.COMPLETED)


def test_starting_twice_is_harmless(demo):
    demo.start()
    before = {pane["runtime_id"] for pane in demo.until_all_states_show()}
    actors = demo.actors
    assert demo.start()["started"] is False
    assert demo.actors == actors
    assert {pane["runtime_id"] for pane in demo.panes()} == before
    assert "already running" in demo.home.run("demo").stdout


def test_a_demo_that_runs_is_shown_again_to_a_daemon_that_lost_it(demo):
    demo.start()
    demo.home.ask("DELETE", "/v1/targets/demo")
    assert demo.start()["started"] is False
    wait_until(lambda: len(demo.panes()) == len(demo.actors), "the panes")


def test_stop_leaves_nothing(demo):
    own = demo.home.pane(agent=None)
    demo.start()
    demo.until_all_states_show()
    socket_path = demo.tmux("display-message", "-p", "#{socket_path}")
    assert demo.stop() == {"schema_version": 1, "stopped": True}
    demo.until_no_actor_is_left()
    assert demo.targets() == ["host"]
    assert not Path(socket_path).exists()
    # The server of the user never had anything to do with it.
    assert demo.home.tmux("list-panes", "-a", "-F", "#{pane_id}") == own
    assert demo.stop() == {"schema_version": 1, "stopped": False}


def test_stop_starts_no_daemon(home):
    done = home.run("demo", "--stop")
    assert (done.returncode, done.stdout) == (0, "No demo was running.\n")
    assert not home.state.exists()


def test_a_killed_server_takes_its_target_with_it(demo):
    demo.start()
    demo.until_all_states_show()
    demo.tmux("kill-server")
    demo.until_target_is_gone()
    demo.until_no_actor_is_left()


def test_a_server_that_ends_while_no_daemon_is_there_takes_its_target_with_it_at_the_next_start(demo):
    demo.start()
    demo.until_all_states_show()
    assert demo.home.run("down").returncode == 0
    demo.tmux("kill-server")
    assert ("demo",) in demo.home.query("SELECT target_id FROM targets")
    demo.home.start()
    demo.until_target_is_gone()
    assert demo.panes() == []
    assert demo.home.query("SELECT target_id FROM targets") == [("host",)]
    assert demo.home.query("SELECT count(*) FROM runtimes WHERE target_id = 'demo' AND ended_at IS NULL") == [(0,)]


def test_a_demo_that_outlives_its_daemon_is_shown_by_the_next(demo):
    demo.start()
    before = {pane["runtime_id"] for pane in demo.until_all_states_show()}
    assert demo.home.run("down").returncode == 0
    demo.home.start()
    assert demo.targets() == ["host", "demo"]
    assert {pane["runtime_id"] for pane in demo.panes()} == before


def test_a_demo_started_right_after_another_was_killed_is_seen(demo):
    demo.start()
    demo.until_all_states_show()
    demo.tmux("kill-server")
    assert demo.start()["started"] is True
    demo.until_all_states_show()


def test_a_forgotten_demo_ends_by_itself(demo):
    demo.start("--for", "3s")
    wait_until(demo.panes, "panes")
    demo.until_no_actor_is_left()
    demo.until_target_is_gone()


@pytest.mark.parametrize("lasts", ["0s", "5", "soon"])
def test_a_duration_that_makes_no_sense_is_refused(home, lasts):
    done = home.run("demo", "--for", lasts)
    assert done.returncode == 2
    assert "E_USAGE" in done.stderr
    assert not home.state.exists()


def test_someone_elses_target_of_that_name_is_left_alone(demo):
    demo.home.ask("POST", "/v1/targets", {"name": "demo", "tmux_socket": "mine"})
    done = demo.home.run("demo")
    assert done.returncode == 4
    assert "E_TARGET_EXISTS" in done.stderr
    assert demo.stop()["stopped"] is False
    assert demo.targets() == ["host", "demo"]


@pytest.mark.parametrize("version", [None, "tmux 3.2a", "tmux 2.9"])
def test_without_a_usable_tmux_it_says_what_to_do(home, version):
    programs = home.folder / "bin"
    programs.mkdir()
    if version is not None:
        (programs / "tmux").write_text(f"#!/bin/sh\necho '{version}'\n")
        (programs / "tmux").chmod(0o755)
    done = home.run("demo", "--json", env={"PATH": str(programs)})
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "E_UNSUPPORTED"
    assert "3.3" in error["message"]
    # Nothing was started for a demo that cannot be.
    assert not home.state.exists()
    assert json.loads(home.run("demo", "--stop", "--json", env={"PATH": ""}).stdout)["stopped"] is False


def test_up_shows_the_demo_where_there_is_no_agent(demo):
    # As after an installation: nothing is compiled yet, and agents are looked at before they have drawn anything.
    slowly = {"PYTHONPYCACHEPREFIX": str(demo.home.folder / "pyc"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = demo.home.run("up", "--demo-if-empty", env=slowly)
    assert done.returncode == 0, done.stderr
    assert "agtmux demo --stop" in done.stderr
    assert all(state in done.stdout for state in State if state is not State.UNKNOWN), done.stdout


def test_the_hook_is_installed_beside_python():
    assert shutil.which("agtmux-hook", path=str(COMMANDS))
