"""`agtmux doctor` tells the truth of the daemon, its files and tmux: each thing is made so, and its mend mends it."""

import contextlib
import fcntl
import json
import os
import pty
import shlex
import signal
import socket
import subprocess
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agtmux import __version__
from agtmux.doctor.here import other_servers
from support.doctor import carry_out, examine
from support.home import COMMANDS, Home, wait_until

LEVELS = {"ok", "note", "warning", "problem"}
# Of a command that takes a fifth of a second, on a machine that runs other tests as well.
QUICK = 10.0


# With and without a daemon


def test_without_a_daemon_it_says_so_first_and_starts_and_leaves_nothing(home: Home) -> None:
    found = examine(home)
    assert found.status == 3
    first = found.items[0]
    assert (first["code"], first["level"], first["mend"]) == ("daemon_not_running", "problem", "agtmux up")
    assert found.find("version_own")["message"] == f"agtmux {__version__}"
    assert {"config_default", "tmux_version", "target_empty", "command_works"} <= found.codes
    assert list(home.folder.iterdir()) == []
    home.pane(None)
    assert "1 pane" in examine(home).find("target_ok")["message"]
    carry_out(home, first)
    after = examine(home)
    assert (after.status, after.level("daemon_running")) == (0, "ok")


def test_where_all_is_well_it_says_so_soon(home: Home) -> None:
    home.pane(None)
    daemon = home.start()
    began = time.monotonic()
    found = examine(home)
    assert time.monotonic() - began < QUICK
    assert (found.status, found.troubles) == (0, set())
    assert f"agtmuxd {__version__}, process {daemon.pid}" in found.find("daemon_running")["message"]
    assert found.find("log_file")["message"] == str(home.log)
    assert found.find("socket_mode")["message"].startswith(str(home.socket))
    assert {"state_mode", "disk_space", "config_default", "tmux_version", "target_ok", "command_works"} <= found.codes
    assert home.answering_pid() == daemon.pid


def test_the_document_has_its_shape(home: Home) -> None:
    home.start()
    for report in (examine(home).report, home.ask("GET", "/v1/doctor").json):
        assert set(report) == {"schema_version", "generated_at", "summary", "items"}
        assert set(report["summary"]) == LEVELS
        assert sum(report["summary"].values()) == len(report["items"])
        for item in report["items"]:
            assert set(item) == {"group", "level", "code", "message", "mend", "target", "agent"}
            assert item["group"] in ("agtmux", "tmux", "hooks", "bridge", "agents")
            assert (item["level"] == "ok") == (item["mend"] is None)
    assert home.ask("GET", "/v1/doctor?nonsense=1").error["code"] == "E_USAGE"


def test_a_daemon_that_does_not_answer(home: Home) -> None:
    daemon = home.start()
    daemon.send_signal(signal.SIGSTOP)
    try:
        found = examine(home)
    finally:
        daemon.send_signal(signal.SIGCONT)
    assert (found.status, found.items[0]["code"]) == (3, "daemon_silent")
    assert str(daemon.pid) in found.items[0]["message"]


def test_a_daemon_whose_socket_is_gone(home: Home) -> None:
    daemon = home.start()
    home.socket.unlink()
    found = examine(home)
    assert (found.status, found.items[0]["code"]) == (3, "daemon_silent")
    assert f"its socket {home.socket} is gone" in found.items[0]["message"]
    carry_out(home, found.items[0])
    daemon.communicate()
    assert examine(home).status == 0


@contextlib.contextmanager
def answering(home: Home, *answers: tuple[str, object]) -> Iterator[None]:
    """Something at the daemon's socket that gives these answers, one to each connection."""
    home.state.mkdir(mode=0o700)

    def serve() -> None:
        for status, content in answers:
            connection = listener.accept()[0]
            with connection:
                connection.recv(65_536)
                body = json.dumps(content).encode()
                connection.sendall(f"{status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home.socket))
        home.socket.chmod(0o600)
        listener.listen()
        listener.settimeout(20)
        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()


def test_a_daemon_from_before_there_was_a_doctor(home: Home) -> None:
    error = {"error": {"code": "E_NOT_FOUND", "message": "there is no GET /v1/doctor", "details": {}}}
    with answering(home, ("HTTP/1.1 404 x", error), ("HTTP/1.1 200 x", {"version": "0.0.9"})):
        found = examine(home)
    assert (found.status, found.items[0]["code"]) == (1, "daemon_outdated")
    assert "0.0.9" in found.items[0]["message"]


def test_something_else_at_the_socket(home: Home) -> None:
    with answering(home, ("SSH-2.0-hello", "x")):
        found = examine(home)
    assert (found.status, found.items[0]["code"]) == (3, "daemon_other")


def test_another_version_of_the_command(home: Home) -> None:
    home.start()
    items = home.ask("GET", "/v1/doctor?client_version=9.9.9").json["items"]
    (found,) = [item for item in items if item["code"] == "version_differs"]
    assert (found["level"], found["mend"]) == ("warning", "agtmux down && agtmux up")
    assert "9.9.9" in found["message"]
    assert "version_differs" not in examine(home).codes


# Its files


def test_a_socket_or_a_folder_that_others_may_use_is_a_problem(home: Home) -> None:
    home.start()
    for path, mode, code in (
        (home.socket, 0o666, "socket_mode"),
        (home.socket, 0o660, "socket_mode"),
        (home.socket, 0o400, "socket_mode"),
        (home.state, 0o755, "state_mode"),
        (home.state, 0o710, "state_mode"),
    ):
        path.chmod(mode)
        found = examine(home)
        # Only root connects to a socket that it may not write to.
        is_shut = mode == 0o400 and os.geteuid() != 0
        assert found.status == (3 if is_shut else 1), oct(mode)
        daemon = {trouble for trouble in found.troubles if is_shut and trouble.startswith("daemon_")}
        assert found.troubles - daemon == {code}, oct(mode)
        assert f"{mode:04o}" in found.find(code)["message"]
        carry_out(home, found.find(code))
        assert examine(home).troubles == set()


def test_the_folder_of_a_socket_elsewhere_is_looked_at_too(home: Home) -> None:
    folder = home.folder / "run"
    home.env["AGTMUX_SOCKET"] = str(folder / "s")
    home.socket = folder / "s"
    folder.mkdir(mode=0o700)
    home.start()
    assert examine(home).level("socket_folder") == "ok"
    folder.chmod(0o777)
    found = examine(home)
    assert found.troubles == {"socket_folder"}
    carry_out(home, found.find("socket_folder"))
    assert examine(home).troubles == set()


def test_a_socket_path_that_is_too_long(home: Home) -> None:
    found = examine(home, env={"AGTMUX_SOCKET": f"/tmp/{'x' * 120}/s"})
    assert found.status == 3
    assert found.troubles == {"daemon_not_running", "socket_path"}
    assert "AGTMUX_SOCKET" in found.find("socket_path")["mend"]


def test_a_full_disk_is_a_problem_before_it_is_one(home: Home) -> None:
    home.state.mkdir(mode=0o700)
    for size, level in (("10m", "problem"), ("100m", "warning"), ("300m", "ok")):
        script = f'mount -t tmpfs -o mode=0700,size={size} none {home.state} && exec "{COMMANDS}/agtmux" doctor --json'
        done = in_a_mount_namespace(home, script)
        (found,) = [item for item in json.loads(done.stdout)["items"] if item["code"] == "disk_space"]
        assert found["level"] == level, found


def in_a_mount_namespace(home: Home, script: str) -> subprocess.CompletedProcess[str]:
    try:
        trial = subprocess.run(["unshare", "--mount", "true"], capture_output=True, timeout=20)
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if trial.returncode:
        pytest.skip("no mount namespaces here")
    command = ["unshare", "--mount", "sh", "-c", script]
    return subprocess.run(command, env=home.env, capture_output=True, text=True, timeout=60)


def test_settings_that_cannot_be_read_are_named_by_their_key(home: Home) -> None:
    home.start()
    home.configure("[states]\nrunning_tll = '1h'\n")
    found = examine(home)
    assert (found.status, found.troubles) == (1, {"config_invalid"})
    item = found.find("config_invalid")
    assert "running_tll" in item["message"] and item["mend"] == f"edit {home.folder}/config/config.toml"
    home.configure("[states]\nrunning_ttl = 'an hour'\n")
    assert "an hour" in examine(home).find("config_invalid")["message"]


def test_settings_that_do_not_count_yet(home: Home) -> None:
    home.configure("[log]\nlevel = 'debug'\n")
    daemon = home.start()
    assert examine(home).level("config_valid") == "ok"
    home.configure("[log]\nlevel = 'info'\n")
    changed = wait_until(lambda: "config_changed" in (found := examine(home)).codes and found, "the change")
    assert changed.level("config_changed") == "note"
    carry_out(home, changed.find("config_changed"))
    daemon.communicate()
    assert examine(home).level("config_valid") == "ok"


def test_an_agents_file_that_cannot_be_read_is_named_with_a_daemon_and_without(home: Home) -> None:
    folder = home.folder / "config" / "agents"
    folder.mkdir(parents=True)
    daemon = home.start()
    (folder / "a.toml").write_text("agent_type = 3\n")
    (folder / "b.toml").write_text("nonsense")
    for status in (1, 3):
        found = examine(home)
        assert found.status == status
        told = [item for item in found.items if item["code"] == "file_invalid"]
        assert [item["mend"] for item in told] == [f"edit {folder}/a.toml", f"edit {folder}/b.toml"]
        assert {item["level"] for item in told} == {"problem"}
        if status == 1:
            home.end(daemon)


def test_a_database_that_had_to_be_replaced(home: Home) -> None:
    home.state.mkdir(mode=0o700)
    home.database.write_bytes(b"no database" * 1000)
    home.start()
    found = examine(home)
    assert (found.status, found.troubles) == (0, {"database_replaced"})
    assert str(home.database) in found.find("database_replaced")["message"]


# tmux and targets


def a_tmux(home: Home, script: str) -> dict[str, str]:
    """A PATH on which tmux is that script."""
    folder = home.folder / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / "tmux"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}:{home.env['PATH']}"}


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("echo tmux 3.2a", "tmux_too_old", "tmux 3.2a"),
        ("echo tmux 2.9", "tmux_too_old", "tmux 2.9"),
        ("exit 0", "tmux_broken", "does not tell its version"),
        ("exec sleep 60", "tmux_broken", "timed out"),
    ],
    ids=["3.2a", "2.9", "silent", "hangs"],
)
def test_a_tmux_that_is_no_use(home: Home, script: str, code: str, said: str) -> None:
    env = a_tmux(home, script)
    alone = examine(home, env=env)
    assert (alone.status, alone.level(code)) == (3, "problem")
    assert said in alone.find(code)["message"] and "install tmux 3.3" in alone.find(code)["mend"]


def test_an_old_tmux_is_told_by_the_daemon_too(home: Home) -> None:
    home.start(env=a_tmux(home, "echo tmux 3.2a"))
    wait_until(lambda: home.health()["targets"][0]["health"] == "down", "the target to be down")
    found = examine(home)
    assert (found.status, found.troubles) == (1, {"tmux_too_old", "target_down"})
    assert "is too old" in found.find("target_down", target="host")["message"]


@pytest.mark.parametrize("said", ["tmux 3.3", "tmux 3.10b", "tmux next-3.6", "tmux master", "tmux openbsd-7.4"])
def test_a_tmux_that_is_new_enough(home: Home, said: str) -> None:
    found = examine(home, env=a_tmux(home, f"echo {said}"))
    assert found.level("tmux_version") == "ok"
    assert found.find("tmux_version")["message"].startswith(said)


def test_no_tmux_at_all(home: Home) -> None:
    found = {Path(folder) / "tmux" for folder in [*os.defpath.split(":"), *home.env["PATH"].split(":")]}
    hide = " && ".join(f"mount --bind /dev/null {path.resolve()}" for path in found if path.exists())
    done = in_a_mount_namespace(home, f'{hide} && exec "{COMMANDS}/agtmux" doctor --json')
    items = {item["code"]: item for item in json.loads(done.stdout)["items"]}
    assert items["tmux_missing"]["level"] == "problem" and "install tmux" in items["tmux_missing"]["mend"]
    assert "target_ok" not in items


def test_targets_and_their_tmux_servers(home: Home) -> None:
    home.start()
    empty = examine(home)
    assert empty.level("target_empty", target="host") == "note"
    home.pane(None)
    home.pane("claude")
    found = wait_until(lambda: "target_ok" in (found := examine(home)).codes and found, "the server")
    wait_until(lambda: "2 panes, 1 agent" in examine(home).find("target_ok")["message"], "its panes")
    assert found.find("target_ok")["message"].startswith(f"local, {home.tmux('-V')}, ")


def test_a_target_that_does_not_answer_is_not_waited_for(home: Home) -> None:
    home.configure("[targets]\nconnect_timeout = '60s'\n")
    with socket.create_server(("127.0.0.1", 0)) as dead:
        # It takes connections and never says a word.
        home.start()
        add_ssh(home, "vm1", dead.getsockname()[1])
        found = examine(home)
        # Had it waited, there would be something else to tell, or a time-out.
        assert (found.status, found.level("target_unseen", target="vm1")) == (0, "note")


def test_a_target_that_cannot_be_reached_says_why(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    home.start()
    add_ssh(home, "vm1", port)
    found = wait_until(lambda: "target_down" in (found := examine(home)).codes and found, "three failures")
    item = found.find("target_down", target="vm1")
    assert (found.status, item["level"], item["mend"]) == (1, "problem", "agtmux target connect vm1")
    error = next(each for each in home.health()["targets"] if each["name"] == "vm1")["error"]["message"]
    assert item["message"] == f"ssh, down: {error.removeprefix('vm1: ')}"
    only = examine(home, "--target", "host")
    assert only.status == 0 and {item["target"] for item in only.items} == {None, "host"}
    assert "command_works" in only.codes
    only = examine(home, "--target", "vm1")
    assert only.status == 1 and {item["target"] for item in only.items} == {None, "vm1"}
    assert "command_works" not in only.codes and "daemon_running" in only.codes


def add_ssh(home: Home, name: str, port: int) -> None:
    ssh_target = f"ssh://nobody@127.0.0.1:{port}"
    assert home.ask("POST", "/v1/targets", {"name": name, "kind": "ssh", "ssh_target": ssh_target}).status == 200


def test_a_target_that_is_not_there(home: Home) -> None:
    home.start()
    done = home.run("doctor", "--target", "nobody")
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("agtmux: E_TARGET_NOT_FOUND: ")


def test_a_tmux_server_that_nobody_watches(home: Home) -> None:
    home.pane(None)
    home.start()
    assert "server_unwatched" not in examine(home).codes
    home.tmux("-L", "lab", "new-session", "-d", "sleep 3600")
    try:
        path = home.tmux("-L", "lab", "display-message", "-p", "#{socket_path}")
        found = examine(home)
        assert found.level("server_unwatched") == "note"
        assert "(1 pane)" in found.find("server_unwatched")["message"]
        within = examine(home, env={"TMUX": f"{path},1,0"})
        assert within.level("server_unwatched") == "warning"
        carry_out(home, within.find("server_unwatched"))
        after = examine(home, env={"TMUX": f"{path},1,0"})
        assert "server_unwatched" not in after.codes
        assert "1 pane" in after.find("target_ok", target="lab")["message"]
    finally:
        home.tmux("-L", "lab", "kill-server")
    # Its socket stays behind for a moment, or for good.
    wait_until(lambda: "server_unwatched" not in examine(home).codes, "an end of it")


def test_only_servers_that_live_and_are_not_watched_are_told(short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX_TMPDIR", str(short_tmp))
    monkeypatch.delenv("TMUX", raising=False)
    folder = short_tmp / f"tmux-{os.getuid()}"
    tmux = ["tmux", "-f", "/dev/null"]
    try:
        for name in ("one", "two"):
            subprocess.run([*tmux, "-L", name, "new-session", "-d", "sleep 600"], check=True, timeout=20)
        (folder / "notes").write_text("no socket")
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(folder / "dead"))
        one, two = str(folder / "one"), str(folder / "two")
        assert [(each.socket, each.panes) for each in other_servers(lambda path: False, "")] == [(one, 1), (two, 1)]
        assert [each.socket for each in other_servers(lambda path: path == one, "")] == [two]
        assert [each.is_callers for each in other_servers(lambda path: False, two)] == [True, False]
        for odd in ("\0", "nonsense", str(short_tmp), "-L"):
            assert len(other_servers(lambda path: False, odd)) == 2, odd
    finally:
        for name in ("one", "two"):
            subprocess.run([*tmux, "-L", name, "kill-server"], capture_output=True, timeout=20)
    assert other_servers(lambda path: False, "") == ()


# How it looks


def test_the_text_is_grouped_and_aligned_and_plain_in_a_pipe(home: Home) -> None:
    lines = home.run("doctor").stdout.splitlines()
    assert lines[0] == "agtmux" and "tmux" in lines and "hooks" in lines
    assert lines[1] == "  ✗ daemon   the daemon is not running, so nothing is watched"
    assert lines[2] == "             → agtmux up"
    assert lines[-1] == "1 problem, 1 note"
    assert "bridge" not in lines
    assert not any("\x1b" in line for line in lines)
    home.pane("claude")
    home.start()
    home.run("hooks", "install", "--agent", "claude")
    assert home.run("doctor", "--target", "host").stdout.splitlines()[0] == "agtmux"


def test_colour_and_width_are_the_terminals(home: Home) -> None:
    wide, narrow = on_a_terminal(home, 200), on_a_terminal(home, 60)
    assert "\x1b[31m✗ daemon" in wide and "\x1b[32m✓" in wide
    assert max(len(line) for line in strip(narrow) if "→" not in line and "/" not in line) <= 60
    assert len(strip(narrow)) > len(strip(wide))
    assert "\x1b[" not in on_a_terminal(home, 200, {"NO_COLOR": "1"})


def strip(text: str) -> list[str]:
    for code in ("\x1b[1m", "\x1b[0m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[34m"):
        text = text.replace(code, "")
    return text.splitlines()


def on_a_terminal(home: Home, columns: int, env: dict[str, str] | None = None) -> str:
    controller, terminal = pty.openpty()
    try:
        size = (40).to_bytes(2, "little") + columns.to_bytes(2, "little") + bytes(4)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
        home.run("doctor", env=env, capture_output=False, stdout=terminal, stderr=terminal)
        os.close(terminal)
        parts = []
        with contextlib.suppress(OSError):
            while part := os.read(controller, 65_536):
                parts.append(part)
        return b"".join(parts).decode()
    finally:
        os.close(controller)


def test_what_mends_can_be_typed_as_it_stands(home: Home) -> None:
    """Names with blanks and quotes are quoted."""
    home.state = home.folder / "it's a state"
    home.socket = home.state / "agtmuxd.sock"
    home.env["AGTMUX_STATE_DIR"] = str(home.state)
    home.lock = home.state / "agtmuxd.lock"
    home.start()
    home.state.chmod(0o755)
    found = examine(home)
    assert shlex.split(found.find("state_mode")["mend"])[-1] == str(home.state)
    carry_out(home, found.find("state_mode"))
    assert examine(home).troubles == set()
