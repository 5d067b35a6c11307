"""A signal goes to the process that was meant, or to nobody."""

import signal
import subprocess
from collections.abc import Iterator

import pytest

from agtmux.probe import keyboard, processes
from agtmux.probe.panes import MovedError

Child = subprocess.Popen[bytes]


@pytest.fixture
def child() -> Iterator[Child]:
    with subprocess.Popen(["sleep", "600"]) as made:
        yield made
        made.kill()


def started(child: Child) -> float:
    process = processes.read_one(child.pid)
    assert process is not None
    return process.started


def test_another_process_with_its_number_gets_no_signal(child: Child) -> None:
    with pytest.raises(MovedError):
        keyboard.signal((child.pid, started(child) - 10), signal.SIGTERM)
    assert child.poll() is None
    keyboard.signal((child.pid, started(child)), 0)
    keyboard.signal((child.pid, started(child)), signal.SIGTERM)
    assert child.wait(20) == -signal.SIGTERM


def test_one_that_ends_in_the_moment_of_its_signal_has_ended(child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = processes.read_one(child.pid)
    child.kill()
    child.wait(20)
    # As it was a moment ago.
    monkeypatch.setattr(processes, "read_one", lambda _: seen)
    with pytest.raises(MovedError):
        keyboard.signal((seen.pid, seen.started), signal.SIGTERM)
