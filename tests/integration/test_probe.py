"""The probe as it runs on another machine: what it sees of a real tmux server, when it speaks up, and how it ends."""

import re
import shutil
import subprocess
import sys

import pytest

from support.home import Home, wait_until
from support.probe import ProbeProcess

NASTY = r"printf '\033[31mred\033[0m <tab>\t %s \342\202\254 \377\376 \001\002 #{pane_id} $(x) ; \\ '"


def works(python: str) -> bool:
    # A version manager's shim for a version that is not chosen is there and refuses.
    return shutil.which(python) is not None and subprocess.run([python, "-V"], capture_output=True).returncode == 0


@pytest.mark.parametrize("python", [f"python3.{minor}" for minor in range(8, 15)])
def test_every_python_from_3_8_on_can_run_it(home: Home, python: str) -> None:
    if not works(python):
        pytest.skip(f"{python} is not here")
    pane = home.pane(command="echo hello; sleep 3600")
    probe = ProbeProcess(home, python, hooks=True, watch=[{"name": "x", "folder": "~", "pattern": "*.y", "depth": 0}])
    assert re.fullmatch(r"3\.\d+", probe.begun["python"])
    assert probe.next_notice("door")["complaint"] == ""
    (row,) = probe.look()["looked"]["panes"]
    assert (row["pane_id"], row["session_name"], row["mark"]) == (pane, "work", "claude")
    wait_until(lambda: "hello" in probe.screens(pane).get(pane, ""), "the screen")
    path = str(home.folder / "new" / "file")
    assert probe.errand("replace", path=path, data="eA==", expected=None, mode=None)["done"]["folders"]
    assert probe.errand("read", path=path)["done"]["data"] == "eA=="
    assert probe.errand("tmux_hooks", action="install")["done"]["changed"]
    assert probe.errand("environ", names=["PATH"])["done"]["values"]["PATH"]
    # There, and it does not say which; what is not there is not told of.
    assert probe.errand("versions", commands=["sh", "no-such-program"])["done"] == {"versions": {"sh": ""}}


def test_only_what_changed_is_told(home: Home) -> None:
    first, second = home.pane(), home.pane()
    probe = ProbeProcess(home)
    assert {row["pane_id"] for row in probe.look()["looked"]["panes"]} == {first, second}
    home.tmux("select-pane", "-t", second, "-T", "a new title")
    looked = probe.look()["looked"]
    assert [(row["pane_id"], row["title"]) for row in looked["panes"]] == [(second, "a new title")]
    home.tmux("kill-pane", "-t", first)
    looked = probe.look()["looked"]
    assert looked["gone"] == [first]
    assert probe.look()["looked"]["panes"] == []


def test_only_screens_that_were_asked_for_and_have_changed_are_told(home: Home) -> None:
    quiet, busy, other = (home.pane(command="cat") for _ in range(3))
    probe = ProbeProcess(home)
    assert probe.screens() == {}
    assert probe.screens(quiet, busy).keys() == {quiet, busy}
    home.tmux("send-keys", "-t", busy, "news", "Enter")
    home.tmux("send-keys", "-t", other, "news", "Enter")
    told = wait_until(lambda: probe.screens(quiet, busy), "the news")
    assert told.keys() == {busy}
    assert "news" in told[busy]


def test_a_pane_that_has_gone_takes_no_other_screen_with_it(home: Home) -> None:
    panes = [home.pane(command="cat") for _ in range(3)]
    probe = ProbeProcess(home)
    home.tmux("kill-pane", "-t", panes[0])
    assert probe.screens(*panes, "%999", "%1; kill-server", "-t").keys() == set(panes[1:])


def test_hundreds_of_screens_come_in_one_look(home: Home) -> None:
    panes = [home.pane(command="cat") for _ in range(8)]
    probe = ProbeProcess(home)
    # As many questions as do not fit into one command: most of them about panes that are not there.
    nobody = [f"%{number}" for number in range(1_000, 1_400)]
    assert probe.screens(*nobody[:200], *panes, *nobody[200:]).keys() == set(panes)


def test_whatever_a_pane_prints_is_only_its_screen(home: Home) -> None:
    nasty = home.pane(command=f"{NASTY}; sleep 3600")
    home.tmux("select-pane", "-t", nasty, "-T", "#{pane_id} ; kill-server \\ <x> " + "y" * 10_000)
    home.tmux("rename-window", "-t", nasty, "#(touch /never) %d $HOME '\"")
    home.tmux("rename-session", "-t", "work", "ünï %s ; x")
    calm = home.tmux("new-session", "-dPF", "#{pane_id}", "-s", "calm", "cat")
    probe = ProbeProcess(home)
    rows = {row["pane_id"]: row for row in probe.look()["looked"]["panes"]}
    assert rows.keys() == {nasty, calm}
    assert rows[nasty]["title"].startswith(f"{nasty} ; kill-server")
    assert len(rows[nasty]["title"]) <= 4_096
    assert rows[nasty]["session_name"] == home.tmux("display-message", "-p", "-t", nasty, "#{session_name}")
    assert "red" in probe.screens(nasty, calm)[nasty]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whether a server has run")
def test_it_speaks_up_when_something_happens_and_once_a_look(home: Home) -> None:
    pane = home.pane(command="cat")
    probe = ProbeProcess(home)
    # Until the shell has settled, there is something to see.
    wait_until(lambda: probe.look()["looked"]["is_metered"] and probe.is_silent_for(1.0), "rest")
    home.tmux("send-keys", "-t", pane, "x")
    probe.next_notice("stirred", 2)
    home.tmux("send-keys", "-t", pane, "y")
    assert probe.is_silent_for(1.0)
    probe.look()
    # Until the server is at rest after our own question, what it does counts as that.
    assert probe.is_silent_for(0.5)
    home.tmux("rename-session", "-t", "work", "other")
    probe.next_notice("stirred", 2)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whether a server has run")
def test_it_speaks_up_when_a_server_comes_and_goes(home: Home) -> None:
    probe = ProbeProcess(home)
    assert probe.look()["looked"]["server"] == ""
    home.pane()
    probe.next_notice("stirred", 2)
    assert probe.look()["looked"]["server"]
    home.tmux("kill-server")
    probe.next_notice("stirred", 2)
    wait_until(lambda: probe.look()["looked"]["server"] == "", "the end of the server")


def test_tmux_itself_can_wake_it(home: Home) -> None:
    home.pane(command="cat")
    home.tmux("set-option", "-g", "@agtmux_wake", "agtmux-test")
    probe = ProbeProcess(home)
    probe.look()
    for _ in range(3):
        home.tmux("wait-for", "-S", "agtmux-test")
        probe.next_notice("woken", 2)
        probe.look()
    home.tmux("set-option", "-gu", "@agtmux_wake")
    probe.look()
    assert home.tmux("list-clients") == ""


def test_a_changed_file_is_told_with_its_end(home: Home) -> None:
    folder = home.folder / "sessions"
    folder.mkdir()
    probe = ProbeProcess(home, watch=[{"name": "some", "folder": "~/sessions", "pattern": "*.json", "depth": 0}])
    probe.look()
    (folder / "1.json").write_text('{"status": "busy"}')
    told = probe.next_notice("file")
    while told["text"] != '{"status": "busy"}':
        told = probe.next_notice("file")
    assert (told["name"], told["gone"]) == ("some", False)
    (folder / "1.json").unlink()
    assert probe.next_notice("file")["gone"] is True


def test_a_tmux_that_cannot_be_asked_is_told_and_asked_again(home: Home) -> None:
    probe = ProbeProcess(home, tmux_socket=str(home.folder / ("x" * 200)))
    for _ in range(2):
        assert probe.look()["failed"].startswith("tmux refused: error connecting")


@pytest.mark.parametrize("how", ["its line ends", "it is told to", "nobody speaks to it"])
def test_it_ends_and_leaves_nothing(home: Home, how: str) -> None:
    home.pane()
    home.tmux("set-option", "-g", "@agtmux_wake", "agtmux-test")
    before = {path for path in home.folder.rglob("*") if not path.is_socket()}
    probe = ProbeProcess(home, hooks=True, silence=1 if how.startswith("nobody") else 600)
    probe.look()
    assert probe.next_notice("door")["complaint"] == ""
    assert home.socket.is_socket()
    if how == "its line ends":
        probe.process.stdin.close()
        probe.process.stdin = None
    elif how == "it is told to":
        probe.process.terminate()
    probe.process.wait(20)
    assert {path for path in home.folder.rglob("*") if not path.is_socket()} == before
    assert not home.socket.exists()
    wait_until(lambda: home.tmux("list-clients") == "", "the end of its children")


def test_it_takes_the_door_for_hooks_when_another_probe_leaves_it(home: Home) -> None:
    first = ProbeProcess(home, hooks=True)
    assert first.next_notice("door")["complaint"] == ""
    second = ProbeProcess(home, hooks=True)
    assert "another agtmux listens" in second.next_notice("door")["complaint"]
    first.process.terminate()
    assert second.next_notice("door")["complaint"] == ""
    assert home.socket.is_socket()


def test_names_that_are_no_text_are_told_all_the_same(home: Home) -> None:
    folder = home.folder / "caf\udce9"
    folder.mkdir()
    shutil.copy(shutil.which("sleep") or "", folder / "sleep")
    home.pane(command=f"exec '{home.folder}'/caf*/sleep 3600")
    probe = ProbeProcess(home)

    def is_told() -> bool:
        answer = probe.look()
        return any(
            "sleep" in process["executable"] for row in answer["looked"]["panes"] for process in row["foreground"]
        )

    wait_until(is_told, "the program")
