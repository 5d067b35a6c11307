"""A chat session that ends by itself while it is being ended."""

import asyncio
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

from agtmux.actions.chats import routed
from agtmux.actions.desk import Asked, Kind
from unit.builders import HOST, PANE, a_record


@dataclass
class Ended:
    """Its process has gone, and its connection has yet to be noticed."""

    pid: int
    socket: str = ""
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(self, word: str, **words: object) -> str:
        raise AssertionError("nobody is there to be asked")


@pytest.fixture
def ended() -> Ended:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return Ended(child.pid)


@pytest.mark.parametrize(
    ("action", "about"),
    [
        ("kill", {"mode": "signal", "signal": "TERM", "has_ended": True}),
        ("stop", {"ended_by": "TERM"}),
    ],
)
async def test_a_session_that_has_ended_just_now_has_ended(ended: Ended, action: str, about: dict[str, Any]) -> None:
    class Sessions:
        def of(self, record: object) -> Ended:
            return ended

    async def not_in_a_pane(*_: object) -> Any:
        raise AssertionError("a session is in no pane")

    record = a_record()
    way = routed(Sessions(), {action: Kind(not_in_a_pane, needs_state=True)})[action].carry_out
    asked = Asked(action, "r", (HOST, PANE), parameters={"mode": "signal", "signal": "TERM"})
    asyncio.get_running_loop().call_soon(ended.gone.set)
    done = await way(record, asked, lambda **_: record)
    assert done.about == about
