"""A real Chromium, and a page in it that notices whatever a page of ours must not do."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, Error, Page, ViewportSize

from support.door import Door
from support.home import PATIENCE

PICTURES = Path(__file__).resolve().parents[2] / "build" / "pictures"
DESK: ViewportSize = {"width": 1280, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 844}
# What Chromium says when an interface of the machine comes or goes, as other tests have it. Pages live through it.
NETWORK_CHANGED = "net::ERR_NETWORK_CHANGED"
_PROGRAMS = (
    *("chromium", "chromium-browser", "google-chrome"),
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


def program() -> str | None:
    return next((found for each in _PROGRAMS if (found := shutil.which(each))), None)


class Trouble:
    """What a page has said on its console, and whom else it has asked."""

    def __init__(self, door: Door) -> None:
        self.said: list[str] = []
        self.asked: set[str] = set()
        self._own = {door.origin, door.origin.replace("http", "ws"), "data:", "blob:"}

    def hear(self, page: Page) -> None:
        page.on("console", lambda message: self._heard(message.type, message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self._asks(request.url))
        page.on("websocket", lambda socket: self._asks(socket.url))

    def _heard(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and NETWORK_CHANGED not in text:
            self.said.append(text)

    def _asks(self, url: str) -> None:
        place = urlsplit(url)
        if place.scheme in ("http", "ws") and f"{place.scheme}://{place.netloc}" not in self._own:
            self.asked.add(url)


@contextlib.asynccontextmanager
async def visit(
    browser: Browser, door: Door, *, phone: bool = False, is_troubled: bool = False, **options: Any
) -> AsyncIterator[Page]:
    """A browser of somebody's own that is signed in. `is_troubled`: the test itself makes requests fail."""
    size = {"viewport": PHONE, "is_mobile": True, "has_touch": True} if phone else {"viewport": DESK}
    context = await browser.new_context(**size, **options)
    context.set_default_timeout(PATIENCE * 1_000)
    trouble = Trouble(door)
    try:
        page = await context.new_page()
        trouble.hear(page)
        await come(page, f"{door.origin}/#code={door.code()}")
        await page.wait_for_selector("#link .on")
        yield page
        assert trouble.asked == set(), "another host was asked"
        assert is_troubled or trouble.said == []
    finally:
        await context.close()


async def come(page: Page, address: str) -> None:
    await _persistently(lambda: page.goto(address))


async def come_again(page: Page) -> None:
    await _persistently(page.reload)


async def _persistently(load: Callable[[], Awaitable[object]]) -> None:
    """As somebody does whose browser could not load a page."""
    while True:
        try:
            await load()
            return
        except Error as error:
            if NETWORK_CHANGED not in error.message:
                raise


async def go(page: Page, view: str) -> None:
    await page.evaluate("view => { location.hash = view }", view)


async def picture(page: Page, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=PICTURES / f"board-{name}.png")
