"""What a page shows, and what it makes up for, when its connection breaks, hangs, or is gone without a word."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route, WebSocket, WebSocketRoute, expect
from playwright.async_api import TimeoutError as NotThere

from board.browser import come, come_again, go, visit
from support.door import Door
from support.home import PATIENCE, Home, event, home_in, wait_until

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Somebody puts the page away and takes it out again, after a minute.
LOOKS_AGAIN = """() => {
    const now = Date.now;
    let hidden = true;
    Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
    hidden = false;
    Date.now = () => now() + 60_000;
    document.dispatchEvent(new Event("visibilitychange"));
}"""
# Somebody looks at something else, and at the page again: what it says of its screen when that is drawn next.
LOOKS_ELSEWHERE = """() => {
    for (const hidden of [true, false]) {
        Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }
    const said = () => document.querySelector(".screen-part .aside").textContent;
    return new Promise((resolve) => setTimeout(() => resolve(said())));
}"""
WAITS = {"attention": {"kind": "approval", "summary": "touch label.txt"}}


@pytest.fixture
def own_home(short_tmp: Path) -> Iterator[Home]:
    """One whose board is at the same place after a restart."""
    with home_in(short_tmp) as made:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        made.configure(f'[board]\nopen = true\nport = {port}\ntoken_file = "{made.folder}/token"\n')
        yield made


class Line:
    """The daemon's end of a page's WebSocket, by hand: it tells what a test says, and when."""

    _line: WebSocketRoute
    _panes: str

    def __init__(self, items: tuple[dict[str, Any], ...]) -> None:
        self._items = items
        self._wishes: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._is_there = asyncio.Event()

    @classmethod
    async def of(cls, page: Page, *items: dict[str, Any]) -> Line:
        """From when the page is loaded again. It is told of nobody at first, and then of these."""
        line = cls(items)
        await page.route_web_socket("**/v1/live", line._serve)
        return line

    async def follow(self, item: dict[str, Any]) -> str:
        """The name of the page's next subscription to that agent, once it has made it."""
        async with asyncio.timeout(PATIENCE):
            while (wish := await self._wishes.get()).get("pane") != f"runtime:{item['runtime_id']}":
                pass
        return str(wish["id"])

    def tell(self, name: str, kind: str, **told: Any) -> None:
        self._line.send(json.dumps({"type": kind, "id": name, **told}))

    def show(self, name: str, item: dict[str, Any], output: str) -> None:
        self.tell(name, "screen", runtime_id=item["runtime_id"], output=output, at=item["updated_at"])

    def add(self, item: dict[str, Any]) -> None:
        self._list(item, type="delta", changes=[{"op": "upsert", "identity": item["identity"], "item": item}])

    async def is_lost(self) -> None:
        """Until the page has made another one."""
        self._is_there.clear()
        await self._line.close()
        await asyncio.wait_for(self._is_there.wait(), PATIENCE)

    def _list(self, item: dict[str, Any], **line: Any) -> None:
        self.tell(self._panes, "line", line={"emitted_at": item["updated_at"], "cursor": "x", **line})

    def _serve(self, line: WebSocketRoute) -> None:
        self._line = line
        self._is_there.set()
        line.on_message(self._hear)

    def _hear(self, text: str | bytes) -> None:
        wish = json.loads(text)
        self._wishes.put_nowait(wish)
        if wish.get("scope") == "panes":
            self._panes = wish["id"]
            self._list(self._items[0], type="snapshot", items=[])
            for item in self._items:
                self.add(item)


def known(home: Home) -> dict[str, Any]:
    """The one agent of a home, whose daemon is started."""
    pane = home.pane()
    home.start()
    return dict(wait_until(lambda: home.panes().get(pane), "the pane"))


def waiting(home: Home) -> int:
    """The daemon of a home with one who waits."""
    pane = home.pane()
    daemon = home.start()
    # Its screen says nothing; once that has been seen, it is not told again.
    wait_until(lambda: home.panes().get(pane, {}).get("reason_code") == "unread_screen", "the pane")
    home.ask("POST", "/v1/events", event(pane, "state.waiting_approval", raw_payload=WAITS))
    return daemon.pid


async def is_old(page: Page, limit: float = PATIENCE) -> None:
    """It is said to be, and nothing can be answered."""
    await page.locator("#link .off").wait_for(timeout=limit * 1_000)
    await page.locator("body.old").wait_for()
    assert await page.locator(".card .approve:not([disabled])").count() == 0


async def test_a_daemon_that_says_nothing_any_more_is_not_shown_as_live(browser: Browser, own_home: Home) -> None:
    """It hangs, or the network swallows all that is sent: no connection ends by that."""
    pid = waiting(own_home)
    async with visit(browser, Door(own_home, is_configured=True), is_troubled=True) as page:
        await page.locator(".card .approve:not([disabled])").wait_for()
        os.kill(pid, signal.SIGSTOP)
        try:
            await is_old(page, 40)
        finally:
            os.kill(pid, signal.SIGCONT)
        await page.locator("#link .on").wait_for()
        await page.locator(".card .approve:not([disabled])").wait_for()


async def test_what_was_known_before_a_sleep_is_not_shown_as_live(browser: Browser, own_home: Home) -> None:
    pid = waiting(own_home)
    async with visit(browser, Door(own_home, is_configured=True), is_troubled=True) as page:
        await page.locator(".card .approve:not([disabled])").wait_for()
        os.kill(pid, signal.SIGSTOP)
        try:
            await page.evaluate(LOOKS_AGAIN)
            await is_old(page, 4)
        finally:
            os.kill(pid, signal.SIGCONT)
        await page.locator("#link .on").wait_for()


async def connected_by_the_network(page: Page) -> None:
    """A daemon listens for pages a moment after it answers, so the first try on a busy machine may come too early. Here
    no look whether it is back is answered, so nothing but the network leads to another try."""
    deadline = asyncio.get_running_loop().time() + 60
    while True:
        await page.evaluate("dispatchEvent(new Event('online'))")
        try:
            return await page.locator("#link .on").wait_for(timeout=5_000)
        except NotThere:
            if asyncio.get_running_loop().time() > deadline:
                raise


async def test_a_page_has_one_connection_whatever_is_tried_at_once(browser: Browser, own_home: Home) -> None:
    """A look whether the daemon is back is under way when the network returns, and fails when all is well again."""
    pane = own_home.pane()
    daemon = own_home.start()
    wait_until(lambda: pane in own_home.panes(), "the pane")
    sockets: list[WebSocket] = []
    is_back, failed = asyncio.Event(), 0

    async def fail(route: Route) -> None:
        nonlocal failed
        await is_back.wait()
        failed += 1
        await route.abort()

    async with visit(browser, Door(own_home, is_configured=True), is_troubled=True) as page:
        page.on("websocket", lambda socket: sockets.append(socket))
        await page.route("**/v1/board", fail)
        async with page.expect_request("**/v1/board"):
            own_home.end(daemon)
        own_home.start()
        await connected_by_the_network(page)
        is_back.set()
        # It is asked three times, before it counts as lost.
        await asyncio.to_thread(wait_until, lambda: failed >= 3, "the failures")
        other = own_home.pane()
        wait_until(lambda: other in own_home.panes(), "the other pane")
        await page.locator(".row").nth(1).wait_for()
        assert await page.locator("#link .on").count() == 1
        assert sum(not each.is_closed() for each in sockets) == 1


async def test_who_is_to_sign_in_is_left_to_it(browser: Browser, own_home: Home) -> None:
    """They go to look for the token, and come back."""
    own_home.start()
    door = Door(own_home, is_configured=True)
    context = await browser.new_context()
    try:
        page = await context.new_page()
        sockets: list[WebSocket] = []
        page.on("websocket", lambda socket: sockets.append(socket))
        await come(page, door.origin)
        await page.fill("#secret", "half a tok")
        await page.evaluate(LOOKS_AGAIN)
        await page.evaluate("dispatchEvent(new Event('online'))")
        # Later than whatever these have begun.
        await page.evaluate("fetch('/', {cache: 'no-store'}).then(() => new Promise(requestAnimationFrame))")
        assert await page.input_value("#secret") == "half a tok"
        assert sockets == []
    finally:
        await context.close()


async def test_an_agent_that_is_known_late_is_followed_then(browser: Browser, own_home: Home) -> None:
    """The page is there before a new daemon has looked at its panes."""
    item = known(own_home)
    async with visit(browser, Door(own_home, is_configured=True), is_troubled=True) as page:
        line = await Line.of(page, item)
        await go(page, f"#/pane/{item['runtime_id']}")
        await come_again(page)
        await line.follow(item)


async def test_what_is_still_on_its_way_for_one_agent_is_not_shown_as_anothers(
    browser: Browser, own_home: Home
) -> None:
    one = known(own_home)
    two = one | {"runtime_id": "two", "name": "two", "identity": one["identity"] | {"pane_id": "%2"}}
    async with visit(browser, Door(own_home, is_configured=True), is_troubled=True) as page:
        line = await Line.of(page, one, two)
        screen, aside = page.locator(".screen"), page.locator(".screen-part .aside")
        await go(page, f"#/pane/{one['runtime_id']}")
        await come_again(page)
        first = await line.follow(one)
        line.show(first, one, "of one")
        await expect(screen).to_have_text("of one")
        await expect(aside).to_have_text("live")
        await go(page, "#/pane/two")
        second = await line.follow(two)
        line.show(first, one, "later of one")
        line.tell(first, "error", error={"code": "E_RUNTIME_STALE", "message": "one has ended"})
        line.show(second, one, "of one again")
        # Told after all that.
        line.add(two | {"name": "two by now"})
        await page.get_by_role("heading", name="two by now").wait_for()
        assert [await screen.text_content(), await aside.text_content()] == ["", "…"]
        line.show(second, two, "of two")
        await expect(screen).to_have_text("of two")
        await expect(aside).to_have_text("live")


async def test_a_screen_is_old_until_it_is_told_again(browser: Browser, own_home: Home) -> None:
    """Somebody has looked at something else, or the connection was lost."""
    item = known(own_home)
    async with visit(browser, Door(own_home, is_configured=True), is_troubled=True) as page:
        line = await Line.of(page, item)
        screen, aside = page.locator(".screen"), page.locator(".screen-part .aside")

        async def told(text: str) -> None:
            line.show(await line.follow(item), item, text)
            await expect(screen).to_have_text(text)
            await expect(aside).to_have_text("live")
            await expect(screen).to_have_class("screen")

        async def is_marked() -> None:
            await page.locator("#link .on").wait_for()
            await expect(aside).to_contain_text("as of")
            await expect(screen).to_have_class("screen old")

        await go(page, f"#/pane/{item['runtime_id']}")
        await come_again(page)
        await told("at first")
        assert "as of" in await page.evaluate(LOOKS_ELSEWHERE)
        await is_marked()
        await told("then")
        await line.is_lost()
        await is_marked()
        await told("at last")
