"""The chain of tmux commands that puts the demo up."""

from itertools import groupby

from agtmux.demo.scenes import load_scenes
from agtmux.demo.stage import curtain, server_name, start
from agtmux.domain.durations import SECOND


def commands(**options):
    words = curtain(load_scenes(), 90 * SECOND, **options)
    return [list(group) for is_end, group in groupby(words, lambda word: word == ";") if not is_end]


def test_each_pane_is_named_right_after_it_is_made():
    chain = commands()
    for number, command in enumerate(chain):
        if command[0] in ("new-session", "new-window", "split-window"):
            assert chain[number + 1][:2] == ["set-option", "-p"]
            assert chain[number + 1][-2] == "@agtmux_agent"
    assert sum(command[0] in ("new-session", "new-window", "split-window") for command in chain) == len(load_scenes())


def test_an_actor_is_given_as_words_and_never_as_a_shell_line():
    actors = [command[command.index("--") + 1 :] for command in commands() if "--" in command]
    assert [actor[-2] for actor in actors] == [scene.name for scene in load_scenes()]
    assert {actor[-1] for actor in actors} == {"1m30s"}


def test_panes_are_told_where_the_daemon_is(monkeypatch):
    monkeypatch.setenv("AGTMUX_SOCKET", "/tmp/x.sock;")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    for command in commands():
        if "--" in command:
            # tmux would end the command at a bare semicolon.
            assert "AGTMUX_SOCKET=/tmp/x.sock\\;" in command
            assert not any(word.startswith("XDG_STATE_HOME") for word in command)


def test_a_state_directory_of_its_own_has_a_demo_of_its_own(monkeypatch):
    for name in ("AGTMUX_STATE_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert server_name() == "agtmux-demo"
    monkeypatch.setenv("AGTMUX_STATE_DIR", "/tmp/one")
    one = server_name()
    monkeypatch.setenv("AGTMUX_STATE_DIR", "/tmp/two")
    assert len({"agtmux-demo", one, server_name()}) == 3


class RecordingClient:
    """A daemon that still knows the target of a demo whose server has just ended."""

    def __init__(self):
        self.asked = []

    def get(self, path):
        self.asked.append(("GET", path))
        return {"items": [{"name": "demo", "tmux_socket": server_name()}]}

    def post(self, path, content):
        self.asked.append(("POST", path))

    def delete(self, path):
        self.asked.append(("DELETE", path))


def test_a_target_left_by_an_ended_server_is_replaced_and_not_reused(tmp_path, monkeypatch):
    """It is about to remove itself, and the new demo would go with it."""
    for program in ("tmux", "agtmux-hook"):
        (tmp_path / program).write_text('#!/bin/sh\ncase "$*" in *has-session*) exit 1 ;; -V) echo tmux 3.4 ;; esac\n')
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    client = RecordingClient()
    assert start(client, 60 * SECOND).was_running is False
    assert client.asked == [("GET", "/v1/targets"), ("DELETE", "/v1/targets/demo"), ("POST", "/v1/targets")]
