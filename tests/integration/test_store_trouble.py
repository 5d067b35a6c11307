"""A full disk, a state directory that cannot be written, a database that is none: a sentence each, and nothing lost."""

import contextlib
import fcntl
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.home import COMMANDS, Home, event, wait_until

MOUNT = 'mount -t tmpfs -o size=4m,mode=0700 tmpfs "$AGTMUX_STATE_DIR"'


def unshare() -> list[str] | None:
    """The command that gives a process mounts of its own, if this system and user may."""
    for command in (["unshare", "-m"], ["unshare", "-r", "-m"]):
        if shutil.which("unshare"):
            tried = subprocess.run([*command, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, timeout=20)
            if tried.returncode == 0:
                return command
    return None


class SmallDisk:
    """The inside of the daemon's own mount, seen from here."""

    def __init__(self, home: Home, pid: int) -> None:
        self.state = Path(f"/proc/{pid}/root{home.state}")
        self._filler = self.state / "filler"

    def fill(self) -> None:
        with self._filler.open("ab", buffering=0) as filler:
            for size in (65_536, 4_096, 1):
                try:
                    while filler.write(b"x" * size):
                        pass
                except OSError:
                    continue

    def free(self) -> None:
        self._filler.unlink()

    def take_out(self, home: Home) -> None:
        """The database to where this process can open it: SQLite resolves links, and this one only works unresolved."""
        home.database = home.folder / "taken-out.db"
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{self.state}/agtmux.db{suffix}", f"{home.database}{suffix}")


@pytest.fixture
def small_disk(home: Home) -> Iterator[SmallDisk]:
    command = unshare()
    if command is None or not Path("/proc/self/root").exists():
        pytest.skip("needs Linux and the right to mount a tmpfs in a mount namespace of its own")
    if os.geteuid() != 0:
        pytest.skip("needs root: in a user namespace tmux looks for the sockets of another user")
    home.state.mkdir(mode=0o700)
    home.configure('[states]\ncompleted_to_idle = "1s"\n')
    # Its socket lies outside, where this process can reach it.
    home.socket = home.folder / "door" / "agtmuxd.sock"
    home.env["AGTMUX_SOCKET"] = str(home.socket)
    daemon = home.spawn(*command, "sh", "-c", f'{MOUNT} && exec "$0"', COMMANDS / "agtmuxd")
    wait_until(lambda: daemon.poll() is not None or home.answering_pid(), "the daemon")
    assert daemon.poll() is None, daemon.communicate()
    yield SmallDisk(home, home.health()["pid"])
    home.end(daemon)


def big_event(pane: str, kind: str = "state.running") -> dict:
    return event(pane, kind, raw_payload={"noise": "lorem ipsum " * 3_000})


def test_a_full_disk_refuses_with_a_sentence_and_loses_nothing_it_acknowledged(home: Home, small_disk: SmallDisk):
    pane = home.pane()
    wait_until(lambda: pane in home.panes(), "the pane")
    acknowledged = set()
    for _ in range(5):
        taken = big_event(pane)
        assert home.ask("POST", "/v1/events", taken).status == 200
        acknowledged.add(taken["event_id"])
    small_disk.fill()

    def refused():
        sent = big_event(pane, "state.waiting_input")
        answer = home.ask("POST", "/v1/events", sent)
        if answer.status == 200:
            # There was still room in the log that SQLite had already made.
            acknowledged.add(sent["event_id"])
            small_disk.fill()
            return None
        return answer

    answer = wait_until(refused, "the disk to be full")
    assert answer.status == 503
    assert answer.error["code"] == "E_STORE"
    assert answer.error["message"].endswith("is full; free some space and send it again")
    batch = home.ask("POST", "/v1/events", [big_event(pane) for _ in range(3)])
    assert (batch.status, batch.error["code"]) == (503, "E_STORE")

    health = home.health()
    assert health["status"] == "degraded"
    assert health["database"]["failed_commits"] >= 2
    assert health["refused"]["E_STORE"] >= 2
    status = home.run("status")
    assert status.returncode == 0
    assert "degraded" in status.stdout and "the database refused" in status.stdout

    small_disk.free()
    after = big_event(pane, "state.waiting_approval")
    answer = home.ask("POST", "/v1/events", after)
    assert (answer.status, answer.json["status"]) == (200, "applied"), answer
    assert home.state_of(pane) == "waiting_approval"
    small_disk.take_out(home)
    assert home.query("PRAGMA integrity_check") == [("ok",)]
    assert acknowledged | {after["event_id"]} <= home.stored_ids()


def test_what_time_alone_changes_still_changes_after_a_full_disk(home: Home, small_disk: SmallDisk):
    pane = home.pane()
    wait_until(lambda: pane in home.panes(), "the pane")
    assert home.ask("POST", "/v1/events", event(pane, "state.completed")).status == 200
    small_disk.fill()
    failures = home.health()["database"]["failed_commits"]
    # The demotion that is due a second later cannot be written.
    wait_until(
        lambda: home.health()["database"]["failed_commits"] > failures or home.state_of(pane) == "idle", "the attempt"
    )
    small_disk.free()
    wait_until(lambda: home.state_of(pane) == "idle", "the demotion", limit=8)
    assert home.ask("POST", "/v1/events", event(pane, "state.completed")).status == 200
    wait_until(lambda: home.state_of(pane) == "idle", "the next demotion", limit=8)


def test_a_disk_that_is_full_at_the_start_is_named(home: Home):
    command = unshare()
    if command is None:
        pytest.skip("needs Linux and the right to mount a tmpfs in a mount namespace of its own")
    home.state.mkdir(mode=0o700)
    fill = 'head -c 8m /dev/zero >"$AGTMUX_STATE_DIR/filler" 2>/dev/null'
    script = f'{MOUNT.replace("4m", "64k")}; {fill}; exec "$0"'
    done = subprocess.run(
        [*command, "sh", "-c", script, COMMANDS / "agtmuxd"], env=home.env, capture_output=True, text=True, timeout=30
    )
    assert done.returncode in (1, 2)
    assert done.stderr.startswith(("agtmux: E_STORE: ", "agtmux: E_CONFIG: "))
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [["agtmuxd"], ["agtmux", "list", "panes"], ["agtmux", "up", "--headless"]])
def test_a_file_in_the_state_directorys_place_is_named(home: Home, command: list[str]):
    home.state.write_text("not a directory")
    done = home.run(*command[1:], command=command[0])
    assert done.returncode == 2
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"agtmux: E_CONFIG: cannot use the directory {home.state}: ")
    assert "AGTMUX_STATE_DIR" in last
    assert "Traceback" not in done.stderr
    assert home.state.read_text() == "not a directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_state_directory_without_permission_is_named(home: Home):
    above = home.folder / "closed"
    above.mkdir(mode=0o500)
    done = home.run(command="agtmuxd", env={"AGTMUX_STATE_DIR": str(above / "state")})
    assert done.returncode == 2
    assert done.stderr.startswith(f"agtmux: E_CONFIG: cannot use the directory {above}/state: Permission denied")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a directory to somebody else")
def test_a_state_directory_of_somebody_else_is_refused(home: Home):
    home.state.mkdir(mode=0o777)
    os.chown(home.state, 12345, 12345)
    done = home.run(command="agtmuxd")
    assert done.returncode == 2
    assert done.stderr == f"agtmux: E_CONFIG: {home.state} belongs to another user; choose a directory of your own\n"


@pytest.mark.parametrize("name", ["logs", "agtmuxd.lock", "agtmux.db"])
def test_something_else_in_a_files_place_is_a_sentence(home: Home, name: str):
    home.state.mkdir(mode=0o700)
    if name == "logs":
        (home.state / name).write_text("a file")
    else:
        (home.state / name).mkdir()
    done = home.run(command="agtmuxd")
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("agtmux: E_")
    assert name in done.stderr
    assert "Traceback" not in done.stderr


def test_commands_that_cannot_start_the_daemon_say_why(home: Home):
    """All at once, as a status line and a watcher may: each is told the reason, whoever of them tried."""
    home.database.mkdir(parents=True)
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: home.run("list", "panes"), range(8)))
    for each in done:
        assert each.returncode == 3
        first, last = each.stderr.splitlines()
        assert first == "agtmux: starting agtmuxd"
        assert last.startswith("agtmux: E_DAEMON_UNAVAILABLE: agtmuxd could not be started: E_")
        assert f"E_STORE: {home.database} cannot be opened" in last
    # Who waited for its turn has heard of it.
    tries, outcome = (home.state / "logs" / "agtmuxd.stderr.lock").read_text().split()
    assert int(tries) < len(done) and outcome == "failed"


def test_a_command_that_was_stopped_while_it_starts_the_daemon_keeps_nobody_from_it(home: Home):
    """With Ctrl-Z, say: it has its turn for as long as it is stopped."""
    logs = home.state / "logs"
    logs.mkdir(mode=0o700, parents=True)
    home.state.chmod(0o700)
    with (logs / "agtmuxd.stderr.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = home.run("list", "panes")
    assert (done.returncode, done.stderr) == (0, "agtmux: starting agtmuxd\n")


def test_a_start_that_fails_late_is_explained_too(home: Home):
    """Its socket can be connected to long before it gives up."""
    home.state.mkdir(mode=0o700)
    with contextlib.closing(sqlite3.connect(home.database, isolation_level=None)) as other:
        other.execute("CREATE TABLE held (by)")
        other.execute("BEGIN EXCLUSIVE")
        done = home.run("list", "panes")
    assert done.returncode == 3
    assert f"E_STORE: another program holds {home.database} locked" in done.stderr


DAMAGES = {
    "not a database": lambda path: path.write_bytes(b"This is not a database. " * 500),
    "a torn header": lambda path: path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5_000),
    "cut off in the middle": lambda path: os.truncate(path, path.stat().st_size // 2),
    "overwritten pages": lambda path: overwrite(path),
    "of another program": lambda path: foreign(path),
    "of a newer agtmux": lambda path: newer(path),
}


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))


def foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE recipes (name)")
        database.execute("INSERT INTO recipes VALUES ('tiramisu')")
    database.close()


def newer(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 999")
    database.close()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_database_that_cannot_be_used_is_set_aside_and_everybody_is_told(home: Home, damage: str):
    home.end(home.start())
    DAMAGES[damage](home.database)
    content = home.database.read_bytes()
    pane = home.pane()
    daemon = home.start()
    notice = home.health()["database"]["notice"]
    assert notice.startswith(str(home.database))
    assert notice.endswith("and a new database was begun.")
    kept = [path for path in home.state.glob("agtmux.db.*") if not path.name.endswith(("-wal", "-shm"))]
    assert len(kept) == 1
    assert kept[0].read_bytes() == content
    assert str(kept[0]) in notice
    assert notice in home.run("status").stdout
    assert notice in json.loads(home.run("status", "--json").stdout)["database"]["notice"]
    wait_until(lambda: pane in home.panes(), "the pane")
    assert home.ask("POST", "/v1/events", event(pane, "state.error")).status == 200
    assert home.state_of(pane) == "error"
    assert home.end(daemon) == f"agtmux: {notice}\n"
    # Told once: the new one is in order.
    home.start()
    assert home.health()["database"]["notice"] is None
    assert home.query("PRAGMA integrity_check") == [("ok",)]


def test_a_bad_configuration_is_named(home: Home):
    for text in ("[states\n", "[states]\nbind_windwo = '1s'\n", "[states]\nseen_ttl = 'soon'\n", "log = 3\n"):
        home.configure(text)
        done = home.run(command="agtmuxd")
        assert done.returncode == 2
        assert done.stderr.startswith(f"agtmux: E_CONFIG: {home.folder}/config/config.toml: ")
        assert "Traceback" not in done.stderr
        assert not home.socket.exists()
