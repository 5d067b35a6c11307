"""What is done in the page reaches the pane that was meant, once, and what came of it is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route

from board.browser import go, picture, visit
from support.door import Door
from support.home import wait_until
from support.puppets import Puppet

pytestmark = pytest.mark.asyncio(loop_scope="session")
CARD = ".card.waiting_approval"


def puppet_at_rest(door: Door, puppet: Puppet) -> Any:
    item = door.home.panes()[puppet.pane]
    return item if item["state"] in ("idle", "completed") else None


async def settled(page: Page) -> None:
    """A list that has just changed takes no answers yet."""
    await page.locator("body:not(.unsettled)").wait_for()


async def test_approve_in_the_page_answers_the_pane(browser: Browser, door: Door, puppet: Puppet) -> None:
    before = len(puppet.given())
    async with visit(browser, door) as page:
        await page.locator(".nobody").wait_for()
        await picture(page, "nobody-waits")
        puppet.ask("d1", "touch label.txt")
        card = page.locator(CARD)
        await card.locator(".asks").get_by_text("touch label.txt").wait_for()
        await settled(page)
        async with page.expect_request("**/v1/actions/approve") as asked:
            await card.get_by_role("button", name="Approve").click()
        shown = (await asked.value).post_data_json
        # Who was asked, in which state, and by which dialog.
        item = {name: shown.get(name) for name in ("if_runtime", "if_state", "if_state_version", "if_dialog")}
        assert all(item.values()) and item["if_state"] == "waiting_approval", item
        await page.locator(".note").get_by_text("Approved: touch label.txt").wait_for()
        await page.locator(".nobody").wait_for()
    assert puppet.given()[before:] == [("key", "1")]
    puppet.tell("reset")
    latest = door.home.ask("GET", "/v1/actions").json["items"][0]
    assert (latest["action_type"], latest["result_code"], latest["about"]["actor"]) == ("approve", "delivered", "board")


async def test_deny_says_why(browser: Browser, door: Door, puppet: Puppet) -> None:
    puppet.tell("reset")
    puppet.ask("d2", "rm -r labels")
    async with visit(browser, door) as page:
        await page.locator(f"{CARD} .card-head").click()
        await page.fill("#reason", "they are wanted")
        await settled(page)
        await page.get_by_role("button", name="Deny").click()
        await page.locator(".note").get_by_text("Denied: rm -r labels").wait_for()
    wait_until(lambda: "Denied: they are wanted" in puppet.submitted(), "the reason")


async def test_two_browsers_answer_and_one_wins(browser: Browser, door: Door, puppet: Puppet) -> None:
    puppet.tell("reset")
    before = len(puppet.given())
    puppet.ask("d3", "make deploy")
    # Whoever comes second is refused, which its console tells.
    async with visit(browser, door, is_troubled=True) as one, visit(browser, door, is_troubled=True) as two:
        pages = (one, two)
        for page in pages:
            await page.locator(CARD).wait_for()
            await settled(page)
        # Neither is sent before both have answered, so that neither knows of the other's.
        have_answered = asyncio.Event()

        async def hold(route: Route) -> None:
            await have_answered.wait()
            await route.continue_()

        for page in pages:
            await page.route("**/v1/actions/approve", hold)
            async with page.expect_request("**/v1/actions/approve"):
                await page.locator(CARD).get_by_role("button", name="Approve").click()
        have_answered.set()
        for page in pages:
            await page.locator(".note").first.wait_for()
        notes = sorted([await page.locator(".note").first.inner_text() for page in pages])
        assert notes[0].startswith("Approved: make deploy")
        assert "Not done: it has moved on, or somebody else has answered." in notes[1]
        loser = two if "Not done" in await two.locator(".note").first.inner_text() else one
        await picture(loser, "answered-elsewhere")
    assert puppet.given()[before:] == [("key", "1")]


async def test_a_message_arrives_and_is_told_as_it_went(browser: Browser, door: Door, puppet: Puppet) -> None:
    puppet.tell("reset")
    item = wait_until(lambda: puppet_at_rest(door, puppet), "a puppet at rest")
    async with visit(browser, door, is_troubled=True) as page:
        await go(page, f"#/pane/{item['runtime_id']}")
        await page.fill("#text", "print three labels\nand <b>nothing</b> else")
        await page.keyboard.press("Control+Enter")
        await page.locator(".said").get_by_text("Delivered.").wait_for()
        assert puppet.submitted()[-1] == "print three labels\nand <b>nothing</b> else"
        assert await page.input_value("#text") == ""
        assert await page.get_attribute("#text", "placeholder") == "Typed at its prompt, as if you were there"
        # Its screen is live.
        await page.locator(".screen").get_by_text("print three labels").first.wait_for()
        # No message lands in a dialog, and what was written is not lost.
        puppet.tell("reset")
        puppet.ask("d4", "touch label.txt")
        await page.locator(CARD).wait_for()
        assert "answer that first" in (await page.get_attribute("#text", "placeholder") or "")
        await page.fill("#text", "yes please")
        await page.get_by_role("button", name="Send").click()
        await page.locator(".said").get_by_text("Not sent").wait_for()
        assert await page.input_value("#text") == "yes please"
        assert puppet.submitted()[-1] != "yes please"
        await picture(page, "not-sent")
    puppet.tell("reset")


async def lost(route: Route) -> None:
    """It is refused, and the line breaks before the page hears of that."""
    answer = await route.fetch()
    assert not answer.ok
    await route.abort("connectionreset")


async def test_a_message_whose_refusal_got_lost_was_not_sent(browser: Browser, door: Door, puppet: Puppet) -> None:
    puppet.tell("reset")
    item = puppet.ask("d8", "touch label.txt")
    async with visit(browser, door, is_troubled=True) as page:
        await go(page, f"#/pane/{item['runtime_id']}")
        await page.fill("#text", "yes, and print it")
        await page.route("**/v1/actions/send", lost, times=1)
        await page.get_by_role("button", name="Send").click()
        await page.locator(".said").get_by_text("Not sent: it asks something first.").wait_for()
        assert await page.input_value("#text") == "yes, and print it"
    assert "yes, and print it" not in puppet.submitted()
    puppet.tell("reset")


async def test_an_answer_whose_refusal_got_lost_was_not_given(browser: Browser, door: Door, puppet: Puppet) -> None:
    puppet.tell("reset")
    puppet.ask("d9", "rm -r labels")

    async def late(route: Route) -> None:
        # Somebody answers in the pane, while it is on its way.
        puppet.tell("answer")
        await asyncio.to_thread(puppet.wait_for, "running")
        await lost(route)

    async with visit(browser, door, is_troubled=True) as page:
        await page.locator(CARD).wait_for()
        await settled(page)
        await page.route("**/v1/actions/approve", late, times=1)
        await page.locator(CARD).get_by_role("button", name="Approve").click()
        note = page.locator(".note.trouble")
        await note.get_by_text("Not done: it has moved on, or somebody else has answered.").wait_for()
        assert "refused (E_PRECONDITION_FAILED)" in await note.inner_text()
    puppet.tell("reset")


async def test_the_attach_command_is_copied(browser: Browser, door: Door, puppet: Puppet) -> None:
    puppet.tell("reset")
    item = puppet.ask("d5", "touch label.txt")
    async with visit(browser, door, permissions=["clipboard-read", "clipboard-write"]) as page:
        await page.locator(CARD).get_by_role("button", name="Copy attach command").click()
        await page.locator(".note").get_by_text("Copied").wait_for()
        copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied == f"agtmux attach {item['ref']} --if-runtime {item['runtime_id']}"
    puppet.tell("reset")


async def test_it_can_be_done_with_keys_alone(browser: Browser, door: Door, puppet: Puppet) -> None:
    puppet.tell("reset")
    before = len(puppet.given())
    puppet.ask("d6", "touch label.txt")
    async with visit(browser, door) as page:
        await page.locator(CARD).wait_for()
        # With the focus nowhere, a key answers for nobody.
        await page.keyboard.press("a")
        await page.keyboard.press("j")
        assert await page.evaluate("document.activeElement.className") == "card-head"
        await page.keyboard.press("Enter")
        await page.locator(".screen").get_by_text("touch label.txt").first.wait_for()
        await page.keyboard.press("Escape")
        await page.locator(f"{CARD} .card-head").wait_for()
        assert puppet.given()[before:] == []
        await page.keyboard.press("j")
        await settled(page)
        await page.keyboard.press("d")
        await page.locator(".note").get_by_text("Denied").wait_for()
        await page.keyboard.press("?")
        await page.get_by_role("dialog").wait_for()
        await page.keyboard.press("Escape")
    assert puppet.given()[before:] == [("key", "\x1b")]


async def test_what_agents_show_is_text_whatever_it_looks_like(browser: Browser, door: Door, puppet: Puppet) -> None:
    """XSS: titles, questions, screens and messages are all written by somebody else."""
    evil = "<img src=x onerror=\"document.title='owned'\"><script>owned=1</script>"
    puppet.tell("reset")
    door.home.tmux("select-pane", "-t", puppet.pane, "-T", evil)
    door.home.tmux("rename-session", "-t", puppet.pane, "<b>work</b>")
    puppet.ask("d7", evil[:60])
    async with visit(browser, door) as page:
        await page.locator(CARD).get_by_text("<img src=x").first.wait_for()
        await page.get_by_role("heading", name="<b>work</b>").wait_for()
        await picture(page, "hostile")
        await page.locator(f"{CARD} .card-head").click()
        await page.locator(".screen").get_by_text("<img src=x").first.wait_for()
        # As a conversation would be drawn.
        await page.evaluate(
            """async (evil) => {
                const { messageList } = await import("/js/talk.js");
                const list = document.createElement("ol");
                document.querySelector("main").append(list);
                const about = { message_id: evil, role: "assistant", agent_type: evil, at: new Date().toISOString() };
                messageList(list, [{ ...about, content: evil }], Date.now());
            }""",
            evil,
        )
        await go(page, "#/log")
        await page.locator(".log, .silence").first.wait_for()
        await go(page, f"#/pane/{evil}")
        await page.get_by_text("That agent has ended").wait_for()
        assert await page.evaluate(
            "[typeof owned, document.images.length, document.querySelectorAll('main script').length]"
        ) == [*("undefined", 0, 0)]
    door.home.tmux("rename-session", "-t", puppet.pane, "work")
    puppet.tell("reset")


async def test_no_string_can_become_elements_even_by_mistake(browser: Browser, door: Door) -> None:
    async with visit(browser, door, is_troubled=True) as page:
        refused = await page.evaluate("() => { try { document.body.innerHTML = '<b>'; } catch (e) { return e.name; } }")
        assert refused == "TypeError"
        ran = """() => {
            const script = document.createElement("script");
            try { script.textContent = "window.owned = 1"; } catch { return "refused"; }
            document.body.append(script);
            return String(window.owned);
        }"""
        assert await page.evaluate(ran) in ("refused", "undefined")


async def test_a_request_that_is_not_whole_takes_a_second_step(browser: Browser, door: Door, puppet: Puppet) -> None:
    puppet.tell("reset")
    before = len(puppet.given())
    puppet.ask("d9", "cat notes… | sh")
    async with visit(browser, door) as page:
        card = page.locator(CARD)
        await card.get_by_text("The agent leaves out a part of this request.").wait_for()
        assert await card.get_by_role("button", name="Approve").count() == 0
        await settled(page)
        sent: list[str] = []
        page.on("request", lambda each: sent.append(each.url) if "/v1/actions/" in each.url else None)
        # A double click is one step: what takes the button's place is not pressed with it.
        await card.get_by_role("button", name="Review").dblclick(delay=60)
        await card.get_by_role("button", name="Approve all the same").click()
        await page.get_by_text("It has just changed.").first.wait_for()
        assert sent == []
        await settled(page)
        await picture(page, "not-whole")
        async with page.expect_request("**/v1/actions/approve") as asked:
            await card.get_by_role("button", name="Approve all the same").click()
        assert (await asked.value).post_data_json["partial"] is True
        await page.locator(".nobody").wait_for()
    assert puppet.given()[before:] == [("key", "1")]
    puppet.tell("reset")
