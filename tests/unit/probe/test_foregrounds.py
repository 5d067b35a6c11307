"""What runs in front in a pane, asked again when it may have changed and not before."""

from __future__ import annotations

import os
import pty
import signal
import sys
from collections.abc import Iterator

import pytest

from agtmux.probe import processes
from agtmux.probe.aside import Aside
from agtmux.probe.foregrounds import Foregrounds
from support.home import wait_until

# A script starts one program after the other, all in its own process group: only what the shell has started changes.
SCRIPT = "while :; do sleep 3600; done"


@pytest.fixture
def shell() -> Iterator[int]:
    """A script on a terminal of its own, as in a pane."""
    pid, terminal = pty.fork()
    if not pid:
        os.execvp("sh", ["sh", "-c", SCRIPT])
    yield pid
    os.kill(pid, signal.SIGKILL)
    for child in processes.started_by_shell(pid):
        os.kill(child, signal.SIGKILL)
    os.close(terminal)
    os.waitpid(pid, 0)


def in_front(foregrounds: Foregrounds, shell: int) -> list[int]:
    return [int(str(facts["pid"])) for facts in foregrounds.look({shell: "sh"})[shell]]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process has started without the table")
def test_a_program_that_a_script_starts_anew_is_found_at_once(shell: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that was ended and started again in one pane, long after anybody had a reason to look."""
    [first] = wait_until(lambda: processes.started_by_shell(shell), "the program")
    foregrounds = Foregrounds(Aside())
    wait_until(lambda: in_front(foregrounds, shell) == [shell, first], "it to be in front")
    # From here on nothing is looked at again by time alone.
    for pane in foregrounds._panes.values():
        pane.due = float("inf")
    os.kill(first, signal.SIGTERM)
    [second] = wait_until(lambda: [each for each in processes.started_by_shell(shell) if each != first], "the next one")
    assert in_front(foregrounds, shell) == [shell, second]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process has started without the table")
def test_what_a_program_starts_is_no_reason_to_read_the_table_again(shell: int) -> None:
    assert processes.started_by_shell(os.getpid()) == ()
    assert len(wait_until(lambda: processes.started_by_shell(shell), "the program")) == 1


def test_facts_that_took_too_long_are_asked_for_again_soon(shell: int) -> None:
    class Slow(Aside):
        def ask(self, question: object) -> None:
            return None

    foregrounds = Foregrounds(Slow())
    for _ in range(5):
        for pane in foregrounds._panes.values():
            pane.due = 0.0
        foregrounds.look({shell: "sh"})
    [pane] = foregrounds._panes.values()
    assert pane.pause == 0.5
