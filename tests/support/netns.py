"""VMs with a network of their own, whose line can go dead without a word. Needs root and Linux."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

from support.home import PATIENCE
from support.sshd import Sshd


def why_no_namespaces() -> str:
    """Why nobody can make a network namespace here. Empty if that works."""
    if not (shutil.which("unshare") and shutil.which("ip")):
        return "there is no unshare or no ip"
    trial = "unshare --net ip link add near type veth peer name far"
    done = subprocess.run(trial.split(), capture_output=True, text=True, timeout=PATIENCE)
    return f"{trial}: {done.stderr.strip()}" if done.returncode else ""


class NamespacedSshd(Sshd):
    """A VM with a network of its own, at the end of a line that can go dead without a word. Needs root and Linux.

    What connects to it must end first: once the line is gone, the kernel would look for its address elsewhere.
    """

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        # The name of a namespace can be had but once, which settles who has the addresses too.
        numbers = random.SystemRandom().sample(range(1, 255), 254)
        number = next(it for it in numbers if _ip(f"netns add agtmux-{it}").returncode == 0)
        self.namespace = space = f"agtmux-{number}"
        self.line = line = f"agtmux{number}"
        self.around = ["ip", "netns", "exec", space]
        self.address, self.port = f"10.231.{number}.2", 2222
        far_end = f"02:a6:00:00:00:{number:02x}"
        try:
            for words in (
                f"link add {line} type veth peer name line address {far_end} netns {space}",
                f"addr add 10.231.{number}.1/24 dev {line}",
                f"link set {line} up",
                # Known for good: if it had to be asked for, a dead line would soon mean "no route to host".
                f"neigh replace {self.address} lladdr {far_end} dev {line} nud permanent",
                f"-n {space} addr add {self.address}/24 dev line",
                f"-n {space} link set line up",
                f"-n {space} link set lo up",
            ):
                _ip(words).check_returncode()
        except BaseException:
            self._remove_network()
            raise

    def drop_route(self) -> None:
        """From now on packets vanish, both ways, and nobody is told."""
        _ip(f"-n {self.namespace} link set line down").check_returncode()

    def restore_route(self) -> None:
        _ip(f"-n {self.namespace} link set line up").check_returncode()

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._remove_network()

    def _remove_network(self) -> None:
        _ip(f"link delete {self.line}")
        _ip(f"netns delete {self.namespace}")


def _ip(words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["ip", *words.split()], timeout=PATIENCE)
