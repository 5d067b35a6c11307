"""Many panes on many targets: how long a listing takes, and whether a pane costs more where there are more. Linux only.

Few come first and the many are added to them, as the machine has more processes then too. A second daemon has as many
panes in one tmux server, to compare.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from stage import (
    Duration,
    Row,
    Stage,
    Stopwatch,
    TmuxServer,
    bounded,
    daemon_in,
    environment,
    own_folder,
    print_rows,
    row_of,
    settle,
    tmux_server,
    usage,
    wait_for_panes,
)

from support.http import Connection

PANES_A_TARGET = 25
FEW, MANY = 4, 20
WINDOW = 40.0
# Two windows, stillness before each, a thousand panes and the listings take half of it on two cores.
LIMIT = 600
GROWTH_BUDGET = 1.15
REQUESTS = 600
PAUSE = 0.01
LISTING_BUDGET = 25.0


def run() -> list[Row]:
    few, many = FEW * PANES_A_TARGET, MANY * PANES_A_TARGET
    with bounded(LIMIT), _spread() as spread:
        with _in_one() as in_one:
            spread.grow(FEW)
            in_one.grow(few)
            before = _cost_per_pane(spread.stage, in_one.stage, few)
            spread.grow(MANY)
            in_one.grow(many)
            after = _cost_per_pane(spread.stage, in_one.stage, many)
        times = _listing_times(spread.stage, many)
    growth = [late / early for early, late in zip(before, after, strict=True)]
    shares = [
        f"{ratio:.2f} × ({_microseconds(late)} at {many}, {_microseconds(early)} at {few} panes)"
        for ratio, early, late in zip(growth, before, after, strict=True)
    ]
    return [
        row_of(f"list of {many} panes on {MANY} targets", times, 0.99, LISTING_BUDGET),
        (
            f"idle processor time a pane, {MANY} targets to {FEW}",
            shares[0],
            f"≤ {GROWTH_BUDGET} ×",
            growth[0] <= GROWTH_BUDGET,
        ),
        ("idle processor time a pane, all in one server", shares[1], "told only", True),
    ]


def _microseconds(share: float) -> str:
    return f"{share * 1e6:.0f} µs/s"


class _Spread:
    """A daemon whose targets have a tmux server each; `host` is one of them."""

    def __init__(self, stage: Stage, servers: contextlib.ExitStack) -> None:
        self.stage = stage
        self._servers = servers
        self._targets = 1

    def grow(self, targets: int) -> None:
        for number in range(self._targets, targets):
            path = self.stage.folder / f"tmux-{number}"
            self._servers.enter_context(tmux_server(self.stage.environment, path)).add_panes(PANES_A_TARGET)
            asked = {"name": f"t{number}", "kind": "local", "tmux_socket": str(path)}
            self.stage.client.post("/v1/targets", asked)
        self._targets = targets
        wait_for_panes(self.stage.client, targets * PANES_A_TARGET)


class _InOne:
    """A daemon with one target."""

    def __init__(self, stage: Stage, server: TmuxServer, panes: int) -> None:
        self.stage = stage
        self._server = server
        self._panes = panes

    def grow(self, panes: int) -> None:
        self._server.add_panes(panes - self._panes)
        self._panes = panes
        wait_for_panes(self.stage.client, panes)


@contextlib.contextmanager
def _spread() -> Iterator[_Spread]:
    with own_folder() as folder, contextlib.ExitStack() as servers:
        env = environment(folder)
        servers.enter_context(tmux_server(env)).add_panes(PANES_A_TARGET)
        with daemon_in(folder, env, PANES_A_TARGET) as stage:
            yield _Spread(stage, servers)


@contextlib.contextmanager
def _in_one() -> Iterator[_InOne]:
    with own_folder() as folder:
        env = environment(folder)
        with tmux_server(env) as server:
            server.add_panes(PANES_A_TARGET)
            with daemon_in(folder, env, PANES_A_TARGET) as stage:
                yield _InOne(stage, server, PANES_A_TARGET)


def _cost_per_pane(spread: Stage, in_one: Stage, panes: int) -> list[float]:
    """Seconds of processor time a second and pane, of both daemons over the same window."""
    settle(spread.client, in_one.client)
    began = time.monotonic()
    before = [usage(stage.pid) for stage in (spread, in_one)]
    time.sleep(WINDOW)
    after = [usage(stage.pid) for stage in (spread, in_one)]
    elapsed = time.monotonic() - began
    return [late.since(early).whole / elapsed / panes for early, late in zip(before, after, strict=True)]


def _listing_times(stage: Stage, panes: int) -> list[Duration]:
    """Of each of many listings, with pauses between them in which the daemon goes on."""
    times = []
    with Connection(Path(stage.socket), holds_to_schemas=False) as connection:
        for _ in range(REQUESTS):
            time.sleep(PAUSE)
            watch = Stopwatch(stage.pid)
            answer = connection.ask("GET", "/v1/panes")
            times.append(watch.read())
            if answer.status != 200:
                raise RuntimeError(f"GET /v1/panes: {answer}")
    shown = len(answer.json["items"])
    if shown != panes:
        raise RuntimeError(f"{shown} of {panes} panes were listed")
    return times


if __name__ == "__main__":
    print_rows(run())
