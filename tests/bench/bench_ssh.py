"""What a look at a target over SSH costs beside one at a local target, in turns so that a busy moment falls on both."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import asyncssh
from stage import Row, bounded, daemon_in, environment, own_folder, print_rows, tmux_server, wait_for_panes

from support.http import Connection
from support.sshd import Sshd, write_client_config

PANES = 50
TURNS = 200
FIRST_TURNS = 10
VM = "vm"
# About what is asked in one look and answered when nothing has changed.
ECHO = b"-" * 200


def run() -> list[Row]:
    with bounded(60), own_folder() as folder:
        home = folder / "home"
        home.mkdir()
        env = environment(folder) | {"HOME": str(home)}
        # The keys of whoever runs this are none of the daemon's business here.
        env.pop("SSH_AUTH_SOCK", None)
        with _vm(folder) as vm, tmux_server(env) as local, tmux_server(vm.env) as remote:
            config = write_client_config(home, [vm])
            local.add_panes(PANES)
            remote.add_panes(PANES)
            with daemon_in(folder, env, PANES) as stage:
                stage.client.post("/v1/targets", {"name": VM, "kind": "ssh", "ssh_target": vm.name})
                wait_for_panes(stage.client, 2 * PANES)
                times = asyncio.run(_measure(Path(stage.socket), vm.name, config))
    local_look, ssh_look, round_trip = (statistics.median(samples) * 1e3 for samples in times)
    allowed = 2 * local_look + round_trip
    parts = f"{ssh_look / allowed:.2f} × the budget; local {local_look:.1f}, round trip {round_trip:.1f}"
    return [
        (
            f"look at {PANES} panes over SSH, median",
            f"{ssh_look:.1f} ms ({parts})",
            f"≤ 2 × local + round trip = {allowed:.1f} ms",
            ssh_look <= allowed,
        )
    ]


@contextlib.contextmanager
def _vm(folder: Path) -> Iterator[Sshd]:
    vm = Sshd(VM, folder / VM)
    try:
        vm.start()
        yield vm
    finally:
        vm.close()


async def _measure(socket: Path, host: str, config: Path) -> tuple[list[float], list[float], list[float]]:
    """Seconds that a look takes at the local target, at the VM, and that an echo takes from there."""
    times: tuple[list[float], list[float], list[float]] = ([], [], [])
    async with (
        asyncssh.connect(host, config=[str(config)], agent_path=None) as connection,
        connection.create_process("cat", encoding=None) as echo,
    ):
        with Connection(socket) as daemon:
            for turn in range(FIRST_TURNS + TURNS):
                taken = _look(daemon, "host"), _look(daemon, VM), await _echo(echo)
                if turn >= FIRST_TURNS:
                    for samples, seconds in zip(times, taken, strict=True):
                        samples.append(seconds)
        echo.stdin.write_eof()
    return times


def _look(daemon: Connection, target: str) -> float:
    began = time.perf_counter()
    answer = daemon.ask("POST", f"/v1/targets/{target}/connect", {})
    taken = time.perf_counter() - began
    if answer.status != 200:
        raise RuntimeError(f"a look at {target}: {answer.body.decode()}")
    return taken


async def _echo(process: asyncssh.SSHClientProcess[bytes]) -> float:
    began = time.perf_counter()
    process.stdin.write(ECHO)
    await process.stdout.readexactly(len(ECHO))
    return time.perf_counter() - began


if __name__ == "__main__":
    print_rows(run())
