"""VMs for tests: real sshd servers, each with a folder, a home and a tmux server of its own, and who may log in.

A session there is the user's who runs the tests, but has nothing of the tests' environment. Whatever a VM lets start
is ended with it, by process id. Nothing is written outside its folder but `/run/sshd`, which sshd insists on.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import random
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.home import PATIENCE, wait_until
from support.processes import Process, processes, read_text, send, with_descendants

# It starts itself again for each connection, by an absolute path, and is often not in an ordinary user's PATH.
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin") or "/usr/sbin/sshd"
TMUX = shutil.which("tmux") or "/usr/bin/tmux"
# The folder of tmux last: it may hold much that a VM would not have.
PATH = f"/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:{Path(TMUX).parent}"
# The interpreter that a session finds when nothing is installed.
PYTHON = shutil.which("python3", path=PATH) or "/usr/bin/python3"
# Below the ports that the kernel hands out by itself, so that a VM finds its own free again when it restarts.
PORTS = range(20_000, 32_000)

# All of SetEnv is on one line: sshd heeds only the first.
SSHD_CONFIG = """\
ListenAddress {vm.address}:{vm.port}
HostKey {vm.folder}/host_key
AuthorizedKeysFile {vm.folder}/authorized_keys
SetEnv {env}
AuthenticationMethods publickey
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PermitUserRC no
PidFile none
PrintMotd no
PrintLastLog no
MaxStartups 100
Subsystem sftp internal-sftp
"""
CLIENT_CONFIG = """\
Host {vm.name}
    HostName {vm.address}
    Port {vm.port}
    User {user}
    IdentityFile {folder}/id_ed25519
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
"""


def opens_terminals() -> bool:
    """Whether an sshd of this user can open a terminal. It has to give the terminal to the group `tty`, which only root
    may do where the system does not."""
    if os.geteuid() == 0:
        return True
    controller, terminal = os.openpty()
    try:
        return os.fstat(terminal).st_gid == grp.getgrnam("tty").gr_gid
    except KeyError:
        return True
    finally:
        os.close(controller)
        os.close(terminal)


needs_terminal = pytest.mark.skipif(not opens_terminals(), reason="an sshd of this user cannot open a terminal here")


def _make_key(path: Path) -> str:
    """An ed25519 key, the kind that takes no time to make, if there is none yet. Returns its public half."""
    if not path.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "agtmux", "-f", path], check=True)
    return path.with_suffix(".pub").read_text().strip()


def write_client_config(home_folder: Path, vms: list[Sshd]) -> Path:
    """Lets the user of that home log in to exactly these VMs, by name. Returns the config's path."""
    folder = home_folder / ".ssh"
    folder.mkdir(mode=0o700, exist_ok=True)
    key = _make_key(folder / "id_ed25519")
    user = pwd.getpwuid(os.geteuid()).pw_name
    config = "\n".join(CLIENT_CONFIG.format(vm=vm, user=user, folder=folder) for vm in vms)
    # Only a host on port 22 is looked up without brackets.
    known_hosts = "".join(f"[{vm.address}]:{vm.port} {vm.host_key}\n" for vm in vms)
    for name, text in {"config": config, "known_hosts": known_hosts}.items():
        (folder / name).touch(mode=0o600)
        (folder / name).write_text(text)
    for vm in vms:
        (vm.folder / "authorized_keys").write_text(key + "\n")
    return folder / "config"


class Sshd:
    """One VM. Its sshd listens on loopback, on the same port again after `stop` and `start`."""

    def __init__(self, name: str, folder: Path, ports: Iterator[int] | None = None) -> None:
        self.name = name
        self.folder = folder
        self.home = folder / "home"
        self.log = folder / "sshd.log"
        self.address = "127.0.0.1"
        self.port = 0
        self._ports = ports or iter(random.SystemRandom().sample(PORTS, 100))
        self._tmux_sockets = folder / "tmux"
        self._programs = folder / "bin"
        for place in (self.home, self._tmux_sockets, self._programs):
            place.mkdir(mode=0o700, parents=True)
        # Made now, so that it does not count as left there.
        (folder / "authorized_keys").touch()
        self.host_key = _make_key(folder / "host_key")
        self.env = {"HOME": str(self.home), "TMUX_TMPDIR": str(self._tmux_sockets), "PATH": f"{self._programs}:{PATH}"}
        # The words before sshd's own: what it runs in.
        self.around: list[str] = []
        self._listener: subprocess.Popen[bytes] | None = None
        self._at_start: set[str] = set()
        self._has_pane = False

    # Its sshd

    def start(self) -> None:
        """Returns once it listens."""
        if os.geteuid() == 0 and Path("/run").exists():
            # Debian makes it only where the system's own sshd runs.
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        wait_until(self._listens, f"sshd of {self.name}")
        if not self._at_start:
            self.accept_files()

    def _listens(self) -> bool:
        is_new = not self.port
        self.port = self.port or next(self._ports)
        config = self.folder / "sshd_config"
        config.write_text(SSHD_CONFIG.format(vm=self, env=" ".join(f"{key}={it}" for key, it in self.env.items())))
        with self.log.open("ab") as log:
            before = log.tell()
            command = [*self.around, SSHD, "-D", "-e", "-f", str(config)]
            listener = subprocess.Popen(command, env={"PATH": PATH}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._listener = listener

        def outcome() -> str:
            has_ended = listener.poll() is not None
            text = self.log.read_bytes()[before:].decode("utf-8", "replace")
            return text if has_ended or "Server listening on" in text else ""

        said = wait_until(outcome, f"a word from the sshd of {self.name}")
        if listener.poll() is None:
            return True
        self._listener = None
        assert "Address already in use" in said, said
        self.port = 0 if is_new else self.port
        return False

    def stop(self) -> None:
        """Ends the listener, its sessions and what runs in them. What has detached itself stays."""
        if self._listener is not None:
            # At a standstill first, or one could fork while the others are killed.
            self.freeze()
            send(signal.SIGKILL, self._tree(processes()))
            self._listener.wait(PATIENCE)
            self._listener = None
            self.thaw()

    def restart(self, **env: str) -> None:
        """With other variables for its sessions."""
        self.stop()
        self.env |= env
        self.start()

    def freeze(self) -> None:
        """As a machine that hangs: sshd, its sessions and all they have started, but not the tmux server."""

        def all_stand() -> bool:
            table = processes()
            # Looked at again, because one may have forked before the signal reached it.
            awake = {pid for pid in self._tree(table) | self._strays(table) if table[pid].state not in "Tt"}
            send(signal.SIGSTOP, awake)
            return not awake

        wait_until(all_stand, f"a standstill of {self.name}")

    def thaw(self) -> None:
        send(signal.SIGCONT, self._tree(processes()) | self._strays(processes()))

    def cut(self) -> None:
        """Ends the connections there are. What runs in them is left to notice."""
        sessions = set(self.session_pids())
        send(signal.SIGKILL, sessions)
        wait_until(lambda: sessions.isdisjoint(self.session_pids()), f"the end of the sessions of {self.name}")

    def session_pids(self) -> list[int]:
        """The sshd processes that serve connections, not what runs in them."""
        table = processes()
        listener = self._listener.pid if self._listener else 0
        return sorted(pid for pid in self._tree(table) - {listener} if table[pid].name.startswith("sshd"))

    def close(self) -> None:
        """Ends everything, the tmux server and whatever is left of a session with it."""
        self.stop()
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([TMUX, "kill-server"], env=self.env, capture_output=True, timeout=5)

        def all_are_gone() -> bool:
            residents = self._residents(processes())
            send(signal.SIGKILL, residents)
            return not residents

        wait_until(all_are_gone, f"the end of all processes of {self.name}")

    # Its tmux server

    def tmux(self, *words: str) -> str:
        command = [TMUX, "-f", "/dev/null", *words]
        env = self.env | {"LANG": "C.UTF-8", "TERM": "xterm-256color"}
        done = subprocess.run(command, env=env, cwd=self.home, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, f"tmux {words}: {done.stderr}"
        return done.stdout.rstrip("\n")

    def pane(self, agent: str | None = "claude", command: str = "sleep 3600") -> str:
        """A new pane, marked as that agent's."""
        first = ["new-session", "-d", "-s", "work", "-x", "100"]
        verb = ["new-window", "-d", "-t", "work:"] if self._has_pane else first
        pane_id = self.tmux(*verb, "-P", "-F", "#{pane_id}", command)
        self._has_pane = True
        if agent is not None:
            self.tmux("set-option", "-p", "-t", pane_id, "@agtmux_agent", agent)
        return pane_id

    # What a test puts there

    def install(self, name: str, text: str) -> Path:
        """A program that its sessions find before any other of that name."""
        program = self._programs / name
        # Under another name first, as sshd may run it at any moment.
        made = program.with_suffix(".new")
        made.write_text(text)
        made.chmod(0o755)
        made.rename(program)
        self.accept_files()
        return program

    def uninstall(self) -> None:
        """Every program that was installed."""
        for program in self._programs.iterdir():
            program.unlink()

    # What is left there

    def leftovers(self) -> dict[str, list[str]]:
        """What is neither tmux's nor was there at first, as `processes`, `files` and `sockets`; a kind that has none
        is left out. What runs in a live session is among them; the session's own sshd is not: see `session_pids`."""
        strays = sorted(self._strays(processes()))
        # Each network has a list of its own, and a stray may be in another one than this process.
        lists = [read_text(f"/proc/{pid}/net/unix") for pid in ("self", *strays)]
        bound = {line.split()[-1] for text in lists for line in text.splitlines()}
        found = {
            "processes": [f"{pid} {read_text(f'/proc/{pid}/cmdline')}".replace("\0", " ").rstrip() for pid in strays],
            "files": sorted(self._files() - self._at_start),
            "sockets": sorted(self._inside(bound)),
        }
        return {kind: names for kind, names in found.items() if names}

    def accept_files(self) -> None:
        """What is there now was left there by nobody. For a test that puts files there."""
        self._at_start = self._files()

    def _files(self) -> set[str]:
        walk = os.walk(self.folder)
        return self._inside({f"{place}/{name}" for place, folders, files in walk for name in folders + files})

    def _inside(self, paths: set[str]) -> set[str]:
        """Those in its folder, as seen from there, but for tmux's sockets."""
        start = f"{self.folder}/"
        return {
            path.removeprefix(start)
            for path in paths
            if path.startswith(start) and self._tmux_sockets not in Path(path).parents
        }

    # Its processes

    def _tree(self, table: dict[int, Process]) -> set[int]:
        return with_descendants({self._listener.pid}, table) if self._listener else set()

    def _residents(self, table: dict[int, Process]) -> set[int]:
        """Those with the home of this VM: every session's and every pane's."""
        mark = f"HOME={self.home}"
        return {pid for pid in table if mark in read_text(f"/proc/{pid}/environ").split("\0")}

    def _strays(self, table: dict[int, Process]) -> set[int]:
        """Of those, the ones that are not tmux's."""
        residents = self._residents(table)
        servers = {pid for pid in residents if table[pid].name.startswith("tmux: server")}
        return residents - with_descendants(servers, table)
