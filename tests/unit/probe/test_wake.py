"""Waiting for tmux goes on when it could not be begun."""

import resource
import time

from agtmux.probe.wake import Wake


def test_no_descriptor_left_ends_nothing_and_is_tried_again() -> None:
    wake = Wake()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        wake.follow("channel", ["sleep", "60"])
        assert wake.is_followed and wake.fileno() is None
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    try:
        until = time.monotonic() + 10
        while wake.fileno() is None and time.monotonic() < until:
            wake.resume()
        assert wake.fileno() is not None
    finally:
        wake.close()
