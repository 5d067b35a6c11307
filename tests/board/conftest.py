"""One Chromium for all tests of the board, and two homes: one with puppets, one with the demo."""

import os
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from board.browser import program
from support.door import Door
from support.home import Home, shared_home
from support.puppets import Puppet


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    found = program()
    if found is None:
        pytest.skip("there is no Chromium")
    async with async_playwright() as playwright:
        # As root it has no sandbox, and pages of ours need none.
        options = ["--no-sandbox", "--disable-gpu"]
        # It has a Unix socket among its temporary files, and ends where that has too long a path.
        environment = {**os.environ, "TMPDIR": "/tmp"}
        started = await playwright.chromium.launch(executable_path=found, args=options, env=environment)
        yield started
        await started.close()


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with shared_home() as made:
        yield made


@pytest.fixture(scope="module")
def puppet(home: Home) -> Puppet:
    return Puppet(home, "one")


@pytest.fixture(scope="module")
def door(home: Home, puppet: Puppet) -> Door:
    """Of a home with a puppet."""
    home.start()
    puppet.wait_for("idle")
    return Door(home, "--port", "0")
