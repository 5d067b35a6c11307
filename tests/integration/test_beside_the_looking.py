"""What is done beside the looking holds nothing up: neither a bad file of ours nor a change of hooks that hangs."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from agtmux.clock import Clock
from agtmux.config import Config
from agtmux.domain.panes import HOST
from agtmux.service import Service
from support.home import Home, wait_until


@pytest.fixture
async def service(home: Home, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    """Within this process, as the daemon has it."""
    home.pane()
    for name in ("HOME", "AGTMUX_STATE_DIR", "AGTMUX_CONFIG_DIR", "TMUX_TMPDIR"):
        monkeypatch.setenv(name, home.env[name])
    monkeypatch.delenv("TMUX", raising=False)
    home.state.mkdir(mode=0o700)
    opened = await Service.open(home.state, Config(), Clock())
    yield opened
    await opened.close()


def _wake(home: Home) -> str:
    return home.tmux("show-options", "-gqv", "@agtmux_wake")


@pytest.mark.parametrize("bad", ["a folder", "nonsense", "too deep"])
def test_a_bad_file_of_ours_stops_no_look(home: Home, bad: str) -> None:
    file = home.state / "backups" / "tmux.json"
    file.parent.mkdir(mode=0o700, parents=True)
    home.state.chmod(0o700)
    if bad == "a folder":
        file.mkdir()
    else:
        file.write_text("[" * 100_000 if bad == "too deep" else "5")
    pane = home.pane()
    home.start()
    wait_until(lambda: pane in home.panes(), "the pane")
    later = home.pane()
    wait_until(lambda: later in home.panes(), "another")
    assert (home.health()["failures"], home.health()["status"]) == ({}, "ok")
    if bad == "a folder":
        refused = home.run("hooks", "install", "--agent", "tmux")
        assert "E_CONFIG" in refused.stderr and "tmux.json" in refused.stderr


async def test_a_new_server_is_not_told_what_was_uninstalled_meanwhile(service: Service, home: Home) -> None:
    target = service.world.targets[HOST]
    await service.hooks.change("install", ["tmux"], HOST)
    assert _wake(home)
    async with service.hooks._changing:
        # In the midst of an uninstall: the server has forgotten it, and it is not noted yet.
        await service.hooks._ask_tmux("uninstall", target)
        service.fleet._server_began(HOST)
        telling = [task for task in asyncio.all_tasks() if task.get_name() == f"tmux-hooks-{HOST}"]
        assert telling
        await asyncio.wait(telling, timeout=1)
        service.hooks._wakers.discard(target)
    await asyncio.wait(telling)
    assert not _wake(home)


async def test_doctor_waits_for_no_change_of_hooks(service: Service) -> None:
    async with service.hooks._changing, asyncio.timeout(15):
        told = await service.doctor(None, "", "x")
    assert told["items"]
