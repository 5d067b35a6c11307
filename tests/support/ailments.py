"""What may be wrong between a user and a VM: each a function that makes it so. To the home, the VM is vm1."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
from collections.abc import Callable

import pytest

from support.home import Home
from support.sshd import PYTHON, TMUX, Sshd

PASSPHRASE = "correct-horse-battery"
# The VM's own interpreter under another version's name; `{before}` is run before what it was given.
OTHER_PYTHON = """#!/bin/sh
exec {python} -I -S -c '
import builtins, sys
{before}
exec(sys.argv[1])
' "$4"
"""
# What 3.6 says of every one of the probe's files.
NO_ANNOTATIONS = """
real = compile
def compile_as_before(text, *others):
    if others[0] != "agtmux-probe" and "from __future__ import annotations" in text:
        raise SyntaxError("future feature annotations is not defined")
    return real(text, *others)
builtins.compile = compile_as_before
"""


def version(number: str, more: str = "") -> str:
    numbers = tuple(map(int, number.split(".")))
    before = f'sys.version_info = {numbers}; sys.version = "{number} (main)"\n{more}'
    return OTHER_PYTHON.format(python=PYTHON, before=before)


def edit(home: Home, name: str, change: Callable[[str], str]) -> None:
    path = home.folder / ".ssh" / name
    path.write_text(change(path.read_text()))


def unknown_host_key(home: Home, vm: Sshd) -> None:
    edit(home, "known_hosts", lambda _: "")


def changed_host_key(home: Home, vm: Sshd) -> None:
    key = home.folder / "other_key"
    key.unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    other = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    edit(home, "known_hosts", lambda text: text.replace(vm.host_key, other))


def revoked_host_key(home: Home, vm: Sshd) -> None:
    edit(home, "known_hosts", lambda text: f"@revoked * {vm.host_key}\n{text}")


def no_known_hosts_file(home: Home, vm: Sshd) -> None:
    (home.folder / ".ssh" / "known_hosts").unlink()


def known_hosts_none(home: Home, vm: Sshd) -> None:
    edit(home, "config", lambda text: re.sub("UserKnownHostsFile .*", "UserKnownHostsFile none", text))


def known_hosts_dev_null(home: Home, vm: Sshd) -> None:
    edit(home, "config", lambda text: re.sub("UserKnownHostsFile .*", "UserKnownHostsFile /dev/null", text))


def no_checking(home: Home, vm: Sshd) -> None:
    unknown_host_key(home, vm)
    edit(home, "config", lambda text: text + "    StrictHostKeyChecking no\n")


def no_checking_and_dev_null(home: Home, vm: Sshd) -> None:
    known_hosts_dev_null(home, vm)
    edit(home, "config", lambda text: text + "    StrictHostKeyChecking no\n")


def jump_with_unknown_key(home: Home, vm: Sshd) -> None:
    """The VM itself is known; what is on the way to it is not, and the config would have it trusted."""
    jump = f"Host jump\n    HostName 127.0.0.1\n    Port {vm.port}\n    StrictHostKeyChecking no\n"
    user = f"    User {pwd.getpwuid(os.geteuid()).pw_name}\n    UserKnownHostsFile /dev/null\n"
    edit(home, "config", lambda text: f"{text}    ProxyJump jump\n{jump}{user}")


def jump_with_no_known_hosts(home: Home, vm: Sshd) -> None:
    jump_with_unknown_key(home, vm)
    edit(home, "config", lambda text: text.replace("/dev/null", "none"))


def wrong_user_key(home: Home, vm: Sshd) -> None:
    (vm.folder / "authorized_keys").write_text(vm.host_key + "\n")


def locked_key(home: Home, vm: Sshd) -> None:
    key = home.folder / ".ssh" / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", PASSPHRASE, "-f", key], check=True, capture_output=True)


def no_such_host(home: Home, vm: Sshd) -> None:
    edit(home, "config", lambda text: text.replace("HostName 127.0.0.1", "HostName nowhere.invalid"))


def closed_port(home: Home, vm: Sshd) -> None:
    vm.stop()


def broken_config(home: Home, vm: Sshd) -> None:
    edit(home, "config", lambda text: text.replace(f"Port {vm.port}", "Port many"))


def no_python(home: Home, vm: Sshd) -> None:
    vm.restart(PATH="/nowhere")


def python_36(home: Home, vm: Sshd) -> None:
    vm.install("python3", version("3.6.15", NO_ANNOTATIONS))


def python_37(home: Home, vm: Sshd) -> None:
    vm.install("python3", version("3.7.16"))


def no_tmux(home: Home, vm: Sshd) -> None:
    if os.geteuid() != 0:
        pytest.skip("it takes root to hide tmux from an sshd")
    # Wherever it is: in the VM's own view of the files it is a file that cannot be run.
    vm.around = ["unshare", "--mount", "sh", "-c", f'mount --bind /dev/null {TMUX} && exec "$@"', "sh"]
    vm.restart()


def old_tmux(home: Home, vm: Sshd) -> None:
    vm.install("tmux", "#!/bin/sh\necho 'tmux 3.2a'\n")


def shell_that_hangs(home: Home, vm: Sshd) -> None:
    (vm.home / ".bashrc").write_text("exec cat >/dev/null\n")


def shell_that_never_stops_talking(home: Home, vm: Sshd) -> None:
    (vm.home / ".bashrc").write_text("exec yes 'welcome to vm1'\n")


def shell_that_ends(home: Home, vm: Sshd) -> None:
    (vm.home / ".bashrc").write_text("echo 'no logins today' >&2; exit 3\n")
