"""`pace`, by which tests tell whether a daemon is held up: a busy machine does not count, standing still does."""

import os
import signal
import threading

from support.home import Home
from support.targets import pace


def test_a_daemon_that_stands_still_is_noticed(home: Home) -> None:
    daemon = home.start()
    usual = pace(home)
    os.kill(daemon.pid, signal.SIGSTOP)
    timer = threading.Timer(max(1.5, 6 * usual.longest), os.kill, (daemon.pid, signal.SIGCONT))
    timer.start()
    try:
        assert not pace(home).is_usual(usual)
    finally:
        timer.join()
