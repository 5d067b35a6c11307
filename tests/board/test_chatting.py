"""Chat sessions in the page: their questions can be answered there, and nothing else answers them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Route

from board.browser import go, picture, visit
from support.chat import sitting
from support.door import Door
from support.home import Home, home_in, wait_until

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def home(short_tmp: Path) -> Iterator[Home]:
    with home_in(short_tmp) as made:
        made.start()
        yield made


async def shown(home: Home, state: str) -> dict[str, Any]:
    """The session, once it is in that state."""

    def find() -> Any:
        return next((item for item in home.panes().values() if item["state"] == state), None)

    return dict(await asyncio.to_thread(wait_until, find, state))


async def test_a_text_answers_the_question_that_was_shown_and_no_other(browser: Browser, home: Home) -> None:
    async with sitting(home.folder, daemon=home.socket) as here:
        item = await shown(home, "idle")
        async with visit(browser, Door(home, "--port", "0"), is_troubled=True) as page:
            await go(page, f"#/pane/{item['runtime_id']}")
            # It is on its way when the session comes to ask something.
            held: asyncio.Future[Route] = asyncio.get_running_loop().create_future()
            await page.route("**/v1/actions/send", lambda route: held.set_result(route), times=1)
            await page.fill("#text", "go on as you like")
            await page.get_by_role("button", name="Send").click()
            route = await held
            here.session.say("question Delete them?")
            asked = await shown(home, "waiting_input")
            await route.continue_()
            await page.locator(".said").get_by_text("does something else by now").wait_for()
            assert await page.input_value("#text") == "go on as you like"
            assert list(here.session.pending) == ["q1"]
            await page.locator(".card .asks").get_by_text("Delete them?").wait_for()
            await page.locator(".hint").get_by_text("Write the answer below").wait_for()
            await picture(page, "question")
            await page.fill("#text", "Blue")
            await page.locator("body:not(.unsettled)").wait_for()
            async with page.expect_request("**/v1/actions/send") as sent:
                await page.get_by_role("button", name="Send").click()
            # For this question, and not for one that stands there a moment later.
            said = (await sent.value).post_data_json
            assert (said["if_state"], said["if_state_version"]) == ("waiting_input", asked["state_version"])
            await page.locator(".said").get_by_text("Delivered.").wait_for()
            await shown(home, "completed")


async def test_a_session_that_a_new_daemon_knows_by_another_name_is_found(browser: Browser, short_tmp: Path) -> None:
    with home_in(short_tmp) as home:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        home.configure(f'[board]\nopen = true\nport = {port}\ntoken_file = "{home.folder}/token"\n')
        daemon = home.start()
        async with sitting(home.folder, daemon=home.socket) as here:
            item = await shown(home, "idle")
            async with visit(browser, Door(home, is_configured=True), is_troubled=True) as page:
                await go(page, f"#/pane/{item['runtime_id']}")
                await page.locator(".screen-part .aside").get_by_text("live").wait_for()
                await asyncio.to_thread(home.end, daemon)
                await page.locator("#link .off").wait_for()
                await asyncio.to_thread(home.start)
                await page.locator("#link .on").wait_for()
                again = await shown(home, "idle")
                # Whether it is the same is not for the page to say; who is there now is.
                await page.get_by_role("link", name=again["name"]).click()
                await page.locator(".screen-part .aside").get_by_text("live").wait_for()
                here.session.say("say all is well")
                await page.locator(".screen").get_by_text("all is well").first.wait_for()
