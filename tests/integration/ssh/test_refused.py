"""A VM that cannot be looked at: refused, with a sentence that says why and what to do, and nothing secret told."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError
from agtmux.domain.limits import Limits
from agtmux.targets.ssh import open_ssh
from support import ailments
from support.home import Home, shared_home, wait_until
from support.sshd import Sshd, write_client_config
from support.targets import HASTY, client_files, error, health, log_text, seen

Vms = Callable[..., list[Sshd]]

HOST_KEY = (r"host key .*vm1 is not the one in your known_hosts, or not there yet", r"accept it with: ssh vm1\b")
CASES: dict[Callable[[Home, Sshd], None], tuple[str, str]] = {
    ailments.unknown_host_key: HOST_KEY,
    ailments.changed_host_key: HOST_KEY,
    ailments.revoked_host_key: HOST_KEY,
    ailments.no_known_hosts_file: HOST_KEY,
    ailments.known_hosts_none: HOST_KEY,
    ailments.known_hosts_dev_null: HOST_KEY,
    ailments.no_checking: HOST_KEY,
    ailments.no_checking_and_dev_null: HOST_KEY,
    ailments.jump_with_unknown_key: HOST_KEY,
    ailments.jump_with_no_known_hosts: HOST_KEY,
    ailments.wrong_user_key: (r"vm1 does not let you in", r"`ssh vm1` must work without asking"),
    ailments.locked_key: (r"vm1 does not let you in", r"use ssh-agent, or put the passphrase into the keyring"),
    ailments.no_such_host: (r"vm1 cannot be reached: .*(not known|resolve|nodename)", r""),
    ailments.closed_port: (r"vm1 cannot be reached: .*refused", r""),
    ailments.broken_config: (r"ssh config cannot be read: .*many", r""),
    ailments.no_python: (r"vm1 has no python3", r"install Python 3\.8 or newer there"),
    ailments.python_36: (r"3\.6\.15", r"needs Python 3\.8 or newer"),
    ailments.python_37: (r"3\.7\.16", r"needs Python 3\.8 or newer"),
    ailments.no_tmux: (r"tmux is not installed", r"install tmux 3\.3 or newer"),
    ailments.old_tmux: (r"tmux 3\.2a is too old", r"needs tmux 3\.3 or newer"),
    ailments.shell_that_hangs: (r"connected, but the probe did not start within 2 seconds", r""),
    ailments.shell_that_never_stops_talking: (r"the probe says nothing", r"is its login shell in order\?"),
    ailments.shell_that_ends: (r"the probe did not start on vm1: no logins today", r""),
}


class Stage:
    """A daemon that watches a VM, which is well between any two cases."""

    def __init__(self, home: Home, vm: Sshd) -> None:
        self.home = home
        self.vm = vm
        write_client_config(home.folder, [vm])
        self.files = client_files(home)
        self._env = dict(vm.env)
        home.configure(HASTY)
        self.daemon = home.start()

    def mend(self) -> None:
        for path in client_files(self.home).keys() - self.files.keys():
            path.unlink()
        for path, content in self.files.items():
            path.write_bytes(content)
        write_client_config(self.home.folder, [self.vm])
        self.vm.uninstall()
        (self.vm.home / ".bashrc").unlink(missing_ok=True)
        self.vm.around = []
        self.vm.restart(**self._env)


@pytest.fixture(scope="module")
def shared_stage() -> Iterator[Stage]:
    with shared_home() as home, tempfile.TemporaryDirectory(prefix="agt-", dir="/tmp") as path:
        vm = Sshd("vm1", Path(path).resolve() / "vm1")
        try:
            vm.start()
            vm.pane()
            stage = Stage(home, vm)
            yield stage
            stage.mend()
            home.end(stage.daemon)
            wait_until(lambda: not vm.leftovers(), "nothing to be left on the VM")
        finally:
            home.close()
            vm.close()


@pytest.fixture
def stage(shared_stage: Stage) -> Iterator[Stage]:
    try:
        yield shared_stage
    finally:
        shared_stage.home.run("target", "remove", "vm1", "--yes")
        shared_stage.mend()


def case(ail: Callable[[Home, Sshd], None]) -> object:
    return pytest.param(ail, CASES[ail], id=ail.__name__)


@pytest.mark.parametrize(("ail", "sentence"), [case(ail) for ail in CASES])
def test_what_cannot_be_looked_at_is_refused_and_says_why(
    stage: Stage, ail: Callable[[Home, Sshd], None], sentence: tuple[str, str]
) -> None:
    home, vm = stage.home, stage.vm
    ail(home, vm)
    files = client_files(home)

    # It is watched from now on, and tried again and again.
    assert home.run("target", "add", "vm1", "--kind", "ssh").returncode == 0
    refused = home.run("target", "connect", "vm1")

    assert (refused.returncode, refused.stdout) == (6, ""), refused
    assert refused.stderr.startswith("agtmux: E_TARGET_UNREACHABLE: vm1")
    assert refused.stderr.count("\n") == 1 and "Traceback" not in refused.stderr
    for part in sentence:
        assert re.search(part, refused.stderr), refused.stderr
    wait_until(lambda: health(home, "vm1") == "down", "it to be down")
    assert error(home, "vm1") in log_text(home)
    assert not seen(home)
    assert client_files(home) == files
    key = (home.folder / ".ssh" / "id_ed25519").read_text().splitlines()[1:-1]
    assert_nowhere(home, ailments.PASSPHRASE, *key)


def assert_nowhere(home: Home, *secrets: str) -> None:
    """Neither in the log nor in the database."""
    for path in (path for path in home.state.rglob("*") if path.is_file()):
        content = path.read_bytes()
        assert not any(secret.encode() in content for secret in secrets), path


@pytest.mark.parametrize("refused", ["ssh://me:hunter2-hunter2@127.0.0.1:1", "me:hunter2-hunter2@127.0.0.1"])
def test_a_password_in_the_address_is_not_kept(home: Home, refused: str) -> None:
    daemon = home.start()
    done = home.run("target", "add", "vm1", "--ssh-target", refused)
    assert done.returncode == 2
    assert "password" in done.stderr and "hunter2" not in done.stderr
    home.end(daemon)
    assert_nowhere(home, "hunter2")


async def test_a_daemon_with_much_else_to_do_says_why_too(home: Home, vms: Vms, monkeypatch) -> None:
    """It hears of the end of the VM's shell together with its beginning."""
    [vm] = vms(1)
    ailments.no_python(home, vm)
    monkeypatch.setenv("HOME", str(home.folder))

    async def hold_up() -> None:
        while True:
            time.sleep(0.2)
            await asyncio.sleep(0)

    much_else = asyncio.create_task(hold_up())
    try:
        with pytest.raises(AgtmuxError, match="vm1 has no python3"):
            await open_ssh("vm1", Limits(connect=20 * SECOND, command=20 * SECOND))
    finally:
        much_else.cancel()


def test_a_login_shell_may_talk_before_the_probe_does(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    pane_id = vm.pane()
    (vm.home / ".bashrc").write_text("for i in $(seq 300); do echo 'welcome to vm1'; echo 'a nice day' >&2; done\n")
    said = subprocess.run(
        ["ssh", "-F", home.folder / ".ssh" / "config", "vm1", "true"], env=home.env, capture_output=True, timeout=20
    )
    if not (said.stdout and said.stderr):
        pytest.skip("the login shell here does not read .bashrc")
    home.start()
    assert home.run("target", "add", "vm1", "--kind", "ssh").returncode == 0
    assert home.run("target", "connect", "vm1").returncode == 0
    assert ("vm1", pane_id) in seen(home)


def test_a_target_that_was_refused_is_found_once_that_is_mended(home: Home, vms: Vms) -> None:
    home.configure(HASTY)
    [vm] = vms(1)
    pane_id = vm.pane()
    known_hosts = home.folder / ".ssh" / "known_hosts"
    right = known_hosts.read_text()
    known_hosts.write_text("")
    home.start()
    assert home.run("target", "add", "vm1", "--kind", "ssh").returncode == 0
    assert home.run("target", "connect", "vm1").returncode == 6
    known_hosts.write_text(right)
    wait_until(lambda: ("vm1", pane_id) in seen(home), "the pane, by itself")


def test_connect_says_that_a_target_answers_again_when_it_does(home: Home, vms: Vms) -> None:
    # So that it does not come back by itself meanwhile.
    home.configure("[health]\nsuccesses_to_ok = 3\n")
    [vm] = vms(1)
    vm.pane()
    known_hosts = home.folder / ".ssh" / "known_hosts"
    right = known_hosts.read_text()
    known_hosts.write_text("")
    home.start()
    assert home.run("target", "add", "vm1", "--kind", "ssh").returncode == 0
    for _ in range(3):
        assert home.run("target", "connect", "vm1").returncode == 6
    assert health(home, "vm1") == "down"
    told = json.loads(home.run("doctor", "--target", "vm1", "--json").stdout)["items"]
    assert [item["mend"] for item in told if item["code"] == "target_down"] == ["ssh vm1"]
    known_hosts.write_text(right)
    done = home.run("target", "connect", "vm1")
    assert (done.returncode, done.stdout) == (0, "vm1 answers again, with 1 pane\n"), done
    assert health(home, "vm1") == "ok"
    assert home.run("target", "connect", "vm1").stdout == "vm1 is ok, with 1 pane\n"
