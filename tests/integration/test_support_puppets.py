"""What a test tells a puppet has happened before what the test does next, however slow the machine is."""

from __future__ import annotations

import os
import signal
import threading

from support.home import Home, wait_until
from support.puppets import Puppet


def test_a_key_that_is_pressed_after_an_order_comes_after_it(home: Home) -> None:
    puppet = Puppet(home, "one")
    pid = int(next(line["data"] for line in puppet.log() if line["what"] == "began"))

    def act() -> None:
        puppet.tell("draft half a thought")
        home.tmux("send-keys", "-t", puppet.pane, "Enter")

    # An order and a key that are there both when it runs again: it takes keys first.
    os.kill(pid, signal.SIGSTOP)
    acting = threading.Thread(target=act)
    acting.start()
    acting.join(2)
    os.kill(pid, signal.SIGCONT)
    acting.join()
    wait_until(puppet.submitted, "the draft")
    assert puppet.submitted() == ["half a thought"]


def test_what_an_order_leads_to_is_on_the_screen_when_it_was_told(home: Home) -> None:
    puppet = Puppet(home, "one")
    for number in range(20):
        puppet.tell(f"ask d{number} touch label{number}")
        assert f"touch label{number}" in home.tmux("capture-pane", "-p", "-t", puppet.pane)
        puppet.tell("reset")
        assert "Do you want to proceed?" not in home.tmux("capture-pane", "-p", "-t", puppet.pane)
