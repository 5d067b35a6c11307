"""A VM whose agents may use the bridge."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from support.asking import BridgeProcess
from support.far_bridges import (
    Vms,
    command,
    used,
)
from support.home import Home
from support.sshd import Sshd
from support.targets import HASTY, add


@pytest.fixture
def vm(home: Home, vms: Vms) -> Sshd:
    """A VM that is watched, with two agents."""
    [vm] = vms(1)
    home.configure(HASTY)
    used(vm)
    vm.pane(None, "sleep 3600")
    home.start()
    add(home, "vm1")
    return vm


@pytest.fixture
def spoken(vm: Sshd) -> Iterator[Callable[..., BridgeProcess]]:
    """Bridges of that VM, from outside of its panes."""
    made: list[BridgeProcess] = []

    def speak(*words: str) -> BridgeProcess:
        made.append(BridgeProcess.started(words or command(vm), vm.env))
        return made[-1]

    yield speak
    for each in made:
        each.close()
