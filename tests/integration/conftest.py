"""Fixtures for tests with real daemons, real sockets, real databases, a real tmux server and real sshd servers."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.home import Home, home_in
from support.netns import NamespacedSshd, Network, why_no_namespaces
from support.sshd import Sshd, write_client_config


@pytest.fixture
def home(short_tmp: Path) -> Iterator[Home]:
    """A user of the test's own. Whatever it starts is ended with the test."""
    with home_in(short_tmp) as made:
        yield made


@pytest.fixture
def vms(home: Home) -> Iterator[Callable[..., list[Sshd]]]:
    """`vms(2)` starts vm1 and vm2, and the home's SSH config knows them by these names. With `netns=True` each is at
    the end of a line of its own that begins at the home, or the test is skipped."""
    started: list[Sshd] = []
    network: list[Network] = []
    folder = tempfile.TemporaryDirectory(prefix="agt-", dir="/tmp", ignore_cleanup_errors=True)
    with folder as path, contextlib.ExitStack() as closing:

        def start(count: int, netns: bool = False) -> list[Sshd]:
            if netns and (reason := why_no_namespaces()):
                pytest.skip(f"no network namespaces here: {reason}")
            new: list[Sshd] = []
            if netns and not network:
                network.append(Network())
                closing.callback(network[0].close)
                home.around = network[0].around
            for number in range(len(started) + 1, len(started) + count + 1):
                name = f"vm{number}"
                place = Path(path).resolve() / name
                vm = NamespacedSshd(name, place, network[0]) if netns else Sshd(name, place)
                closing.callback(vm.close)
                vm.start()
                new.append(vm)
            started.extend(new)
            write_client_config(home.folder, started)
            return new

        try:
            yield start
        finally:
            # First, or its daemon would look for VMs that are gone, and for a namespace's address in the wide world.
            home.close()
