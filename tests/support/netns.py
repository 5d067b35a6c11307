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


class Network:
    """Where a user is who has VMs at the end of lines: a namespace too, as the machine's own network is everybody's,
    and a browser there loses what it is loading whenever an interface comes or goes."""

    def __init__(self) -> None:
        self.namespace = _new_namespace()
        self.around = ["ip", "netns", "exec", self.namespace]
        _ip(f"-n {self.namespace} link set lo up").check_returncode()

    def close(self) -> None:
        _ip(f"netns delete {self.namespace}")


class NamespacedSshd(Sshd):
    """A VM with a network of its own, at the end of a line that can go dead without a word. Needs root and Linux."""

    def __init__(self, name: str, folder: Path, network: Network) -> None:
        super().__init__(name, folder)
        self.namespace = space = _new_namespace()
        self._near = near = network.namespace
        number = int(space.rpartition("-")[2])
        self.line = line = f"agtmux{number}"
        self.around = ["ip", "netns", "exec", space]
        self.address, self.port = f"10.231.{number}.2", 2222
        far_end = f"02:a6:00:00:00:{number:02x}"
        try:
            for words in (
                f"-n {near} link add {line} type veth peer name line address {far_end} netns {space}",
                f"-n {near} addr add 10.231.{number}.1/24 dev {line}",
                f"-n {near} link set {line} up",
                # Known for good: if it had to be asked for, a dead line would soon mean "no route to host".
                f"-n {near} neigh replace {self.address} lladdr {far_end} dev {line} nud permanent",
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

    def has_network(self) -> tuple[bool, bool]:
        """Whether its namespace is there, and its line."""
        is_there = Path("/run/netns", self.namespace).exists()
        return is_there, _ip(f"-n {self._near} link show {self.line}").returncode == 0

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._remove_network()

    def _remove_network(self) -> None:
        _ip(f"-n {self._near} link delete {self.line}")
        _ip(f"netns delete {self.namespace}")


def _new_namespace() -> str:
    # A name can be had but once, which settles who has the addresses too.
    numbers = random.SystemRandom().sample(range(1, 255), 254)
    return next(space for number in numbers if _ip(f"netns add {(space := f'agtmux-{number}')}").returncode == 0)


def _ip(words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["ip", *words.split()], timeout=PATIENCE)
