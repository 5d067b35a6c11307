"""A watch stream that goes on through restarts of the daemon, for every front end that follows one."""

from __future__ import annotations

import json
import sys

from agtmux.client import Client, with_query
from agtmux.domain.errors import AgtmuxError, ErrorCode

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Final, Protocol

    class Pace(Protocol):
        """How the time is spent in which there is nothing to read. What it raises ends the reading."""

        def wait(self, connection: int) -> object: ...

        def rest(self, seconds: float) -> object: ...


# A daemon that is replaced is back within a second; one that is down may be so for long.
_RETRIES: Final = (0.05, 0.1, 0.2, 0.5, 1.0)


def say(sentence: str) -> None:
    # Python prints to standard output what is meant for a standard error that is closed.
    if sys.stderr is not None:
        print(sentence, file=sys.stderr, flush=True)


def follow(
    daemon: Client,
    asked: dict[str, str | None],
    pace: Pace,
    cursor: str | None = None,
    tell: Callable[[str], object] = say,
) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The daemon's lines without end, as they are and read. Raises what is wrong with the question, and with the daemon
    only at the start. `tell` is told when it has been away for longer than a restart takes."""
    has_begun = False
    while True:
        try:
            for line in daemon.lines(with_query("/v1/watch", asked | {"cursor": cursor}), pace.wait):
                said = json.loads(line)
                cursor, has_begun = said["cursor"], True
                yield line, said
        except BrokenPipeError:
            raise
        except OSError:
            # It was killed within a line.
            pass
        except AgtmuxError as error:
            # One that is on its way out says so.
            if not has_begun or error.code is not ErrorCode.DAEMON_UNAVAILABLE:
                raise
            pace.rest(_RETRIES[0])
        daemon = _back(pace, tell)


def _back(pace: Pace, tell: Callable[[str], object]) -> Client:
    """The daemon once it answers again. Whoever stopped it had a reason: it is waited for and not started."""
    daemon = Client(start=False)
    tries = 0
    while not daemon.is_answered():
        if tries == len(_RETRIES):
            tell("agtmux: agtmuxd has stopped; waiting for it")
        pace.rest(_RETRIES[min(tries, len(_RETRIES) - 1)])
        tries += 1
    return daemon
