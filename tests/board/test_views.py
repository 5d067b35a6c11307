"""The page as people see it: every state, at a desk and in a hand, by day and by night, and when things fail."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route

from agtmux.domain.states import State
from board import axe
from board.browser import DESK, PHONE, come, come_again, go, picture, visit
from support.door import Door
from support.home import Home, home_in, shared_home, wait_until
from support.talking import Talker

pytestmark = pytest.mark.asyncio(loop_scope="session")
SMALLEST_TARGET = 40


@pytest.fixture(scope="module")
def demo() -> Iterator[Home]:
    """A home with the scripted agents, and one that works in a repository."""
    with shared_home() as made:
        repository = made.folder / "src" / "labels"
        repository.mkdir(parents=True)
        git(repository, "init", "--quiet", "--initial-branch", "main")
        (repository / "label.py").write_text("def label(text):\n    return text\n")
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "--message", "Begin")
        git(repository, "worktree", "add", "--quiet", "-b", "feature/rounded", str(made.folder / "src" / "rounded"))
        (repository / "label.py").write_text("def label(text):\n    return text.strip()  # <b>not bold</b>\n")
        (repository / "notes.txt").write_text("later\n")
        made.pane(command=f"cd {repository} && exec sleep 3600")
        made.start()
        assert made.run("demo", "--json").returncode == 0
        wait_until(lambda: {each["state"] for each in shown(made)} == set(State), "every state")
        # Something for the log: one that is done, and one that is refused.
        idle = next(each for each in shown(made) if each["state"] == "idle")
        for name in ("view-output", "approve"):
            made.ask("POST", f"/v1/actions/{name}", {"request_ref": name, "ref": idle["ref"], "actor": "cli"})
        yield made
        made.run("demo", "--stop")


@pytest.fixture(scope="module")
def demo_door(demo: Home) -> Door:
    return Door(demo, "--port", "0")


@pytest.fixture
def own_home(short_tmp: Path) -> Iterator[Home]:
    with home_in(short_tmp) as made:
        yield made


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, timeout=20)


def shown(home: Home) -> list[dict[str, Any]]:
    return list(home.ask("GET", "/v1/panes").json["items"])


async def examined(page: Page) -> None:
    """Nothing that axe knows of is wrong, and nothing is wider than the window."""
    await page.evaluate(axe.source())
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    told = [f"{each['id']}: {each['help']} ({each['nodes'][0]['html'][:200]})" for each in found["violations"]]
    assert told == []
    assert await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


async def test_the_overview_shows_everybody_and_follows(browser: Browser, demo: Home, demo_door: Door) -> None:
    async with visit(browser, demo_door) as page:
        await page.locator(".row").first.wait_for()
        for state in State:
            assert await page.locator(f".counts [data-shape={state}]").count() == 1
        assert await page.get_by_role("heading", name="storefront").count() == 1
        assert await page.locator(".row").count() == len(shown(demo))
        # A pane that ends goes, without anybody asking.
        server = json.loads(demo.run("demo", "--json").stdout)["tmux_socket"]
        unknown = next(each for each in shown(demo) if each["state"] == "idle" and each["identity"]["target"] == "demo")
        row = page.locator(f'.row[href="#/pane/{unknown["runtime_id"]}"]')
        assert await row.count() == 1
        demo.tmux("-L", server, "kill-pane", "-t", unknown["identity"]["pane_id"])
        await row.wait_for(state="detached")
        assert await page.title() != "agtmux"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["desk", "phone"])
async def test_every_view_is_fit_for_all(
    browser: Browser, demo: Home, demo_door: Door, phone: bool, scheme: Any
) -> None:
    name = f"{'phone' if phone else 'desk'}-{scheme}"
    async with visit(browser, demo_door, phone=phone, color_scheme=scheme, bypass_csp=True) as page:
        await page.locator(".card").first.wait_for()
        await picture(page, f"overview-{name}")
        await examined(page)
        if phone:
            targets = "button, nav a, .row, .card-head"
            sizes = await page.locator(targets).evaluate_all("found => found.map(each => each.offsetHeight)")
            assert min(sizes) >= SMALLEST_TARGET
        await page.locator(".card .card-head").first.click()
        await page.locator(".screen div").first.wait_for()
        await picture(page, f"pane-{name}")
        await examined(page)
        await go(page, "#/worktrees")
        await page.get_by_role("button", name="Changes: main").click()
        await page.locator(".diff .added").get_by_text("# <b>not bold</b>").wait_for()
        assert await page.get_by_text("Not in git: notes.txt").count() == 1
        await picture(page, f"worktrees-{name}")
        await examined(page)
        await go(page, "#/log")
        await page.locator(".log .refused").wait_for()
        await picture(page, f"log-{name}")
        await examined(page)
        await page.keyboard.press("?")
        await page.get_by_role("dialog").wait_for()
        await picture(page, f"keys-{name}")
        await examined(page)


async def test_a_conversation_is_drawn_and_goes_on(browser: Browser) -> None:
    with shared_home() as home:
        talker = Talker(home)
        talker.prompt("Why is the index\nrebuilt <b>twice</b>?")
        home.start()
        await asyncio.to_thread(wait_until, lambda: talker.pane in home.panes(), "the pane")
        talker.stir()
        await asyncio.to_thread(talker.hears, "Why is the index\nrebuilt <b>twice</b>?")
        async with visit(browser, Door(home, "--port", "0")) as page:
            await go(page, f"#/pane/{home.panes()[talker.pane]['runtime_id']}")
            await page.locator(".messages .user").get_by_text("rebuilt <b>twice</b>?").wait_for()
            # Told before it is whole, and again when it is.
            half = talker.answer("Once at start, once")
            await page.locator(".messages li").get_by_text("Once at start, once").wait_for()
            talker.answer("Once at start, once at the end. " + "word " * 60, uuid=half["uuid"])
            await page.locator(".messages li").get_by_text("once at the end.").wait_for()
            assert await page.locator(".messages li").count() == 2
            await picture(page, "conversation")
            await examined(page)


async def test_colours_of_a_screen_become_elements_and_nothing_else_does(browser: Browser, demo_door: Door) -> None:
    parts = ("[1;31mred", "[0m ", "[38;5;208morange", "[39m ", "[48;2;1;2;3mback", "[m ", "[7minverse", "[27m <i>x</i>")
    text = "".join(f"\x1b{part}" for part in parts) + "\nplain"
    async with visit(browser, demo_door) as page:
        drawn = await page.evaluate(
            """async (text) => {
                const { draw } = await import("/js/sgr.js");
                const element = document.createElement("div");
                const columns = draw(element, text);
                const first = element.children[0];
                draw(element, text + "!");
                const spans = [...element.querySelectorAll("span")];
                const looks = spans.map((span) => [span.textContent, span.className, span.style.cssText]);
                return { looks, columns, kept: element.children[0] === first, text: element.textContent };
            }""",
            text,
        )
    assert drawn["looks"] == [
        ["red", "bold f-1", ""],
        ["orange", "", "color: rgb(255, 135, 0);"],
        ["back", "", "background-color: rgb(1, 2, 3);"],
        ["inverse", "inverse f-back b-front", ""],
    ]
    assert drawn["columns"] == len("red orange back inverse <i>x</i>")
    assert drawn["kept"] and drawn["text"] == "red orange back inverse <i>x</i>plain!"


# When things fail


async def test_reload_and_a_daemon_that_is_started_again_recover(browser: Browser, own_home: Home) -> None:
    home = own_home
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    home.configure(f'[board]\nopen = true\nport = {port}\ntoken_file = "{home.folder}/token"\n')
    pane = home.pane()
    daemon = home.start()
    wait_until(lambda: pane in home.panes(), "the pane")
    async with visit(browser, Door(home, is_configured=True), is_troubled=True) as page:
        await page.locator(".row").wait_for()
        await come_again(page)
        await page.locator("#link .on").wait_for()
        await page.locator(".row").wait_for()
        home.end(daemon)
        await page.locator("#link .off").get_by_text("not connected").wait_for()
        assert await page.locator(".row").count() == 1, "what was known stays"
        await picture(page, "not-connected")
        await page.set_viewport_size(PHONE)
        await picture(page, "not-connected-phone")
        await page.set_viewport_size(DESK)
        daemon = home.start()
        await page.locator("#link .on").wait_for()
        # And it follows again.
        other = home.pane()
        wait_until(lambda: other in home.panes(), "the other pane")
        await page.locator(".row").nth(1).wait_for()
        # After a long sleep a socket may be dead without knowing it; once somebody looks again, there is a new one.
        async with page.expect_websocket():
            await page.evaluate(
                """() => {
                    const now = Date.now;
                    let hidden = true;
                    Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
                    document.dispatchEvent(new Event("visibilitychange"));
                    hidden = false;
                    Date.now = () => now() + 60_000;
                    document.dispatchEvent(new Event("visibilitychange"));
                }"""
            )
        await page.locator("#link .on").wait_for()


async def test_who_is_not_signed_in_is_told_how(browser: Browser, demo_door: Door) -> None:
    context = await browser.new_context(bypass_csp=True)
    try:
        page = await context.new_page()
        await come(page, demo_door.origin)
        await page.get_by_role("heading", name="This browser is not signed in").wait_for()
        await picture(page, "signed-out")
        await examined(page)
        await page.fill("#secret", "a guess")
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_text("that is not the token").wait_for()
        # The whole address that a terminal has printed does as well.
        await page.fill("#secret", demo_door.open("--port", str(demo_door.port))["login_url"])
        await page.get_by_role("button", name="Sign in").click()
        await page.locator("#link .on").wait_for()
        used = demo_door.code()
        await come(page, f"{demo_door.origin}/?again#code={used}")
        await page.locator("#link .on").wait_for()
        assert "code" not in await page.evaluate("location.href")
        await page.keyboard.press("?")
        await page.get_by_role("button", name="Sign this browser out").click()
        await page.get_by_role("heading", name="This browser is not signed in").wait_for()
        await come_again(page)
        await page.get_by_role("heading", name="This browser is not signed in").wait_for()
    finally:
        await context.close()


@pytest.mark.parametrize("lost", ["/board.css", "/js/app.js", "/js/parts.js", "/v1/board/login", "/v1/targets"])
@pytest.mark.parametrize("is_answered", [False, True])
async def test_what_gets_lost_on_the_way_is_asked_for_again(
    browser: Browser, demo_door: Door, lost: str, is_answered: bool
) -> None:
    """As when the network changes while the page is loaded: the request does not arrive, or its answer does not."""
    context = await browser.new_context(viewport=DESK)
    left = 2

    async def lose(route: Route) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            await route.continue_()
            return
        if is_answered:
            await route.fetch()
        await route.abort("connectionreset")

    try:
        page = await context.new_page()
        await page.route(f"**{lost}", lose)
        await come(page, f"{demo_door.origin}/#code={demo_door.code()}")
        await page.locator("#link .on").wait_for()
        await page.get_by_role("heading", name="Waiting for you").wait_for()
        await page.locator(".target h3", has_text="host").first.wait_for()
        assert await page.evaluate("getComputedStyle(document.querySelector('.cards')).display") == "grid"
        await asyncio.to_thread(wait_until, lambda: left < 0, "the request that got through")
    finally:
        await context.close()


async def test_where_there_is_nobody_it_says_so(browser: Browser, own_home: Home) -> None:
    own_home.start()
    door = Door(own_home, "--port", "0")
    async with visit(browser, door) as page:
        await page.get_by_role("heading", name="No agent is running").wait_for()
        await picture(page, "empty")
        await go(page, "#/worktrees")
        await page.get_by_text("No agent works in a git repository").wait_for()
        await go(page, "#/log")
        await page.get_by_text("Nothing was done to any agent yet.").wait_for()
        await go(page, "#/pane/nobody")
        await page.get_by_text("That agent has ended").wait_for()
        await picture(page, "ended")
