"""What shows a person in a pane without an agent: which terminal shows it, and when a key was pressed there."""

from __future__ import annotations

from typing import Any, cast

import pytest

from agtmux.bridge import asker
from agtmux.bridge.asker import AskerKind, Askers, Client, Clients
from agtmux.bridge.caller import Peer
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import HOST
from agtmux.domain.runtimes import NO_AGENT
from agtmux.observe.fleet import Fleet
from agtmux.probe.processes import Process, WayUp
from agtmux.targets.bridges import Way
from unit.bridge.test_caller import VM1, a_world
from unit.screens import registry

# The command, the job it belongs to, the pane's shell; the attached terminal, a shell above it, an agent above that.
COMMAND, JOB, SHELL, TERMINAL, ABOVE, AGENT = 10, 20, 30, 40, 50, 60
OPENED, BEGAN = 1_000.0, 2_000.0


class Tmux:
    """A tmux server with that one terminal attached, by what it says."""

    def __init__(self, **client: Any) -> None:
        self.clients = [Client(**{"pid": TERMINAL, "pane_id": "%1", "activity": int(BEGAN), **client})]
        self.asked = 0

    async def run(self, target_id: str, errand: dict[str, Any], kind: object) -> Clients:
        assert (target_id, errand) == (HOST, {"do": "clients"})
        self.asked += 1
        return Clients(self.clients)


class Connected:
    pid = COMMAND

    def __init__(self, lineage: tuple[int, ...] = (COMMAND, JOB, SHELL), on_terminal: tuple[int, ...] | None = None):
        self._way = Way(lineage, lineage if on_terminal is None else on_terminal)

    def way(self) -> Way:
        return self._way


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch) -> dict[int, float]:
    """When each began; those above the terminal can be changed."""
    began = {COMMAND: BEGAN + 500, JOB: BEGAN, SHELL: OPENED, TERMINAL: 500.0, ABOVE: 400.0, AGENT: 300.0}
    monkeypatch.setattr(
        asker, "read_one", lambda pid: Process(pid, 0, 0, 5, 0, began[pid], None) if pid in began else None
    )
    monkeypatch.setattr(asker, "way_up", lambda pid: WayUp([pid, ABOVE, AGENT], [pid, ABOVE, AGENT], None))
    return began


def askers(tmux: Tmux, *more: tuple[Any, str, str, int | None]) -> Askers:
    world = a_world((HOST, "%1", NO_AGENT, SHELL), *more)
    return Askers(world, registry(), cast(Fleet, tmux))


async def kind(found: Askers, peer: Connected | None = None) -> AskerKind:
    return (await found.find(cast(Peer, peer or Connected()))).kind


@pytest.mark.parametrize(
    ("activity", "expected"),
    [
        (BEGAN, AskerKind.USER),
        (BEGAN + 300, AskerKind.USER),
        (BEGAN - 30, AskerKind.USER),
        (BEGAN - 31, AskerKind.OUTSIDE),
        (0, AskerKind.OUTSIDE),
    ],
)
async def test_a_key_counts_that_was_pressed_not_long_before_the_job(activity: float, expected: AskerKind) -> None:
    assert await kind(askers(Tmux(activity=int(activity)))) is expected


@pytest.mark.parametrize(("after", "expected"), [(2, AskerKind.USER), (1, AskerKind.USER), (0, AskerKind.OUTSIDE)])
async def test_a_key_from_before_the_pane_was_opened_is_none(
    processes: dict[int, float], after: int, expected: AskerKind
) -> None:
    processes[JOB] = OPENED + 1
    assert await kind(askers(Tmux(activity=int(OPENED) + after))) is expected
    # What runs as the pane's own process was never typed.
    processes[SHELL] = BEGAN
    assert await kind(askers(Tmux(activity=int(BEGAN))), Connected((SHELL,))) is AskerKind.OUTSIDE


async def test_a_terminal_that_shows_another_pane_shows_nothing() -> None:
    assert await kind(askers(Tmux(pane_id="%2"))) is AskerKind.OUTSIDE
    tmux = Tmux()
    tmux.clients = []
    assert await kind(askers(tmux)) is AskerKind.OUTSIDE


async def test_a_terminal_below_an_agent_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await kind(askers(Tmux(), (HOST, "%7", "claude", AGENT))) is AskerKind.OUTSIDE
    # One of another machine has the same number by chance.
    assert await kind(askers(Tmux(), (VM1.target_id, "%7", "claude", AGENT))) is AskerKind.USER
    # One that has no terminal itself.
    monkeypatch.setattr(asker, "way_up", lambda pid: WayUp([pid], [], None))
    assert await kind(askers(Tmux())) is AskerKind.OUTSIDE


async def test_a_tmux_in_a_tmux_is_as_good_as_the_outer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    tmux = Tmux()
    inner = (HOST, "%2", NO_AGENT, ABOVE)
    # The outer pane is shown by nothing.
    assert await kind(askers(tmux, inner)) is AskerKind.OUTSIDE
    tmux.clients.append(Client(pid=70, pane_id="%2", activity=int(BEGAN)))
    asker_way = {TERMINAL: [TERMINAL, ABOVE], 70: [70]}
    monkeypatch.setattr(asker, "way_up", lambda pid: WayUp(asker_way[pid], asker_way[pid], None))
    assert await kind(askers(tmux, inner)) is AskerKind.USER
    # One that shows itself comes to an end.
    asker_way[70] = [70, ABOVE]
    assert await kind(askers(tmux, inner)) is AskerKind.OUTSIDE


async def test_what_was_let_go_of_in_a_pane_is_nobody() -> None:
    assert await kind(askers(Tmux()), Connected(on_terminal=())) is AskerKind.OUTSIDE


async def test_an_agents_pane_is_that_agent_and_tmux_is_not_asked() -> None:
    tmux = Tmux()
    found = await askers(tmux, (HOST, "%7", "claude", JOB)).find(cast(Peer, Connected()))
    assert (found.kind, found.key, tmux.asked) == (AskerKind.AGENT, (HOST, "%7"), 0)


async def test_who_asks_again_at_once_is_not_looked_into_again() -> None:
    tmux, peer = Tmux(), Connected()
    found = askers(tmux)
    assert [await kind(found, peer) for _ in range(3)] == [AskerKind.USER] * 3
    assert tmux.asked == 1
    assert await kind(found, Connected()) is AskerKind.USER
    assert tmux.asked == 2


async def test_a_tmux_server_that_does_not_answer_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tmux = Tmux()

    async def fail(*_: object) -> Clients:
        raise AgtmuxError(ErrorCode.TARGET_UNREACHABLE, "gone")

    monkeypatch.setattr(tmux, "run", fail)
    found = await askers(tmux).find(cast(Peer, Connected()))
    assert found.kind is AskerKind.OUTSIDE and "gone" in found.why_not
