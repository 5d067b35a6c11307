"""Conversations in the page: each message once and in its order, whatever was missed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from board.browser import go, picture, visit
from support.door import Door
from support.home import PATIENCE, Home, shared_home, wait_until
from support.parrots import git
from support.talking import Talker, turns

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Somebody looks at something else, and at the page again.
HIDES = """(hidden) => {
    Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


# A conversation of nobody, which is told what a daemon would tell.
TELL = """async (told) => {
    const { Talk } = await import("/js/talk.js");
    window.talk ??= new Talk({ ref: "x" }, () => {});
    window.talk.told(told);
}"""
SHOWS = """async (wanted) => {
    const shown = () => window.talk.messages.map(({ message_id, content }) => `${message_id} ${content}`).join(", ");
    while (shown() !== wanted) await new Promise(requestAnimationFrame);
}"""


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with shared_home() as made:
        yield made


def settled(home: Home, folder: Path) -> Talker:
    """One who works in a repository of that name, and has said something."""
    folder.mkdir()
    git(folder, "init", "-q")
    talker = Talker(home, cwd=folder)
    talker.turn(1)
    return talker


@pytest.fixture(scope="module")
def talkers(home: Home) -> tuple[Talker, Talker]:
    """In two work trees, of which each has something to show."""
    both = settled(home, home.folder / "labels"), settled(home, home.folder / "prints")
    home.start()
    wait_until(lambda: {each.pane for each in both} <= set(home.panes()), "the panes")
    for each in both:
        each.stir()
        each.hears(*turns(1, 1))
    return both


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, home: Home, talkers: tuple[Talker, Talker]) -> AsyncIterator[Page]:
    async with visit(browser, Door(home, "--port", "0")) as made:
        yield made


async def shows(page: Page, texts: list[str]) -> None:
    """These and nothing else, in their order."""
    await expect(page.locator(".messages .message-text")).to_have_text(texts, timeout=PATIENCE * 1_000)


async def test_what_was_said_while_nobody_looked_is_all_there(
    page: Page, home: Home, talkers: tuple[Talker, Talker]
) -> None:
    talker = talkers[0]
    await go(page, f"#/pane/{home.panes()[talker.pane]['runtime_id']}")
    await shows(page, turns(1, 1))
    await page.evaluate(HIDES, True)
    for number in range(2, 62):
        talker.turn(number)
    await asyncio.to_thread(talker.hears, *turns(1, 61))
    held: asyncio.Future[Route] = asyncio.get_running_loop().create_future()
    await page.route("**/v1/conversations/messages?*", lambda route: held.set_result(route), times=1)
    await page.evaluate(HIDES, False)
    await held
    # Something new comes before what was missed.
    talker.turn(62)
    await page.locator(".messages li").get_by_text("answer 62").wait_for()
    await (await held).continue_()
    await shows(page, turns(1, 62))
    # So much that it would not be shown: it begins anew, without a hole.
    await page.evaluate(HIDES, True)
    for number in range(63, 301):
        talker.turn(number)
    await asyncio.to_thread(talker.hears, *turns(1, 300))
    await page.evaluate(HIDES, False)
    await shows(page, turns(276, 300))


async def test_a_work_tree_that_is_open_is_followed_and_no_other(
    page: Page, home: Home, talkers: tuple[Talker, Talker]
) -> None:
    other = talkers[1]
    held: asyncio.Future[Route] = asyncio.get_running_loop().create_future()
    await page.route("**/v1/worktrees/diff?*labels", lambda route: held.set_result(route), times=1)
    await go(page, "#/worktrees")
    trees = page.locator(".tree")
    await trees.filter(has_text="labels").get_by_role("button", name="Changes").click()
    await held
    await trees.filter(has_text="prints").get_by_role("button", name="Changes").click()
    await shows(page, turns(1, 1))
    # The answer about the first comes when the second is open.
    async with page.expect_response("**/v1/worktrees/diff?*labels"):
        await (await held).continue_()
    other.turn(2)
    await shows(page, turns(1, 2))
    await page.evaluate(HIDES, True)
    other.turn(3)
    await asyncio.to_thread(other.hears, *turns(1, 3))
    await page.evaluate(HIDES, False)
    await shows(page, turns(1, 3))
    other.turn(4)
    await shows(page, turns(1, 4))


async def test_work_trees_that_could_not_be_looked_at_again_are_said_to_be_old(
    browser: Browser, home: Home, talkers: tuple[Talker, Talker]
) -> None:
    async def fail(route: Route) -> None:
        await route.fulfill(status=500, json={"error": {"code": "E_INTERNAL", "message": "git is not there"}})

    async with visit(browser, Door(home, "--port", "0"), is_troubled=True) as page:
        await go(page, "#/worktrees")
        await expect(page.locator(".tree")).to_have_count(2)
        await page.route("**/v1/worktrees", fail, times=1)
        await page.get_by_role("button", name="Look again").click()
        await expect(page.locator(".trouble")).to_have_text("Not as it is now: git is not there")
        await expect(page.locator(".tree")).to_have_count(2)
        await picture(page, "worktrees-old")
        await page.get_by_role("button", name="Look again").click()
        await expect(page.locator(".trouble")).to_have_count(0)


async def test_what_was_read_off_a_screen_gives_way_to_what_the_agent_wrote(page: Page) -> None:
    """The one conversation is then kept in place of the other, which says the same."""
    kept: list[dict[str, Any]] = [{"message_id": "s1", "conversation_id": "screen", "seq": 1, "content": "x"}]

    async def answer(route: Route) -> None:
        await route.fulfill(json={"has_more": False, "items": kept})

    await page.route("**/v1/conversations/messages?*", answer)
    async with asyncio.timeout(PATIENCE):
        await page.evaluate(TELL, {"type": "pong"})
        await page.evaluate(SHOWS, "s1 x")
        about = {"conversation_id": "file", "content": "x"}
        kept[:] = [{"message_id": f"f{seq}", "seq": seq, **about} for seq in (2, 3)]
        await page.evaluate(TELL, {"type": "message", "message": kept[1]})
        await page.evaluate(SHOWS, "f2 x, f3 x")


async def test_what_gave_way_while_it_was_asked_for_does_not_come_back(page: Page) -> None:
    asked: asyncio.Queue[Route] = asyncio.Queue()
    await page.route("**/v1/conversations/messages?*", asked.put_nowait)
    screen = {"message_id": "s1", "conversation_id": "screen", "seq": 1, "content": "x"}
    async with asyncio.timeout(PATIENCE):
        await page.evaluate(TELL, {"type": "pong"})
        route = await asked.get()
        await page.evaluate(TELL, {"type": "message", "message": screen})
        written = screen | {"message_id": "f2", "conversation_id": "file", "seq": 2}
        await route.fulfill(json={"has_more": False, "items": [written]})
        await page.evaluate(SHOWS, "f2 x")


@pytest.mark.parametrize("seq", [2, 3])
async def test_half_an_answer_that_comes_late_does_not_stand_for_the_whole(page: Page, seq: int) -> None:
    """What was asked for was read before the answer was whole, and arrives after that was told. The last one of all has
    another number by then, and one further up the same."""
    prompt = {"message_id": "p", "conversation_id": "file", "seq": 1, "content": "why"}
    half = prompt | {"message_id": "a", "seq": 2, "content": "half"}
    whole = half | {"seq": seq, "content": "whole"}
    asked: asyncio.Queue[Route] = asyncio.Queue()
    await page.route("**/v1/conversations/messages?*", asked.put_nowait)
    async with asyncio.timeout(PATIENCE):
        await page.evaluate(TELL, {"type": "pong"})
        route = await asked.get()
        await page.evaluate(TELL, {"type": "message", "message": whole})
        await page.evaluate(SHOWS, "a whole")
        await route.fulfill(json={"has_more": False, "items": [prompt, half]})
        await page.evaluate(SHOWS, "p why, a whole")
        # What is asked for later than it was told knows better.
        await page.evaluate(TELL, {"type": "pong"})
        route = await asked.get()
        assert f"after={seq - 1}" in route.request.url
        await route.fulfill(json={"has_more": False, "items": [whole | {"content": "more"}]})
        await page.evaluate(SHOWS, "p why, a more")
