"""What hands do by accident does nothing: a second click, a key too many, an address that is none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, Route, expect

from board.browser import go, visit
from support.door import Door
from support.home import PATIENCE, Home, event, shared_home, wait_until
from support.puppets import Puppet

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Than whatever the page has begun to ask for.
LATER = "fetch('/', {cache: 'no-store'}).then(() => new Promise(requestAnimationFrame))"


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with shared_home() as made:
        yield made


@pytest.fixture
def other(home: Home, door: Door) -> str:
    """A pane that does what events say."""
    pane = home.pane()
    # Its screen says nothing; once that has been seen, it is not told again.
    wait_until(lambda: home.panes().get(pane, {}).get("reason_code") == "unread_screen", "the pane")
    return pane


def waits(home: Home, pane: str, summary: str) -> None:
    """It asks that, and nothing else any more."""
    attention = {"kind": "approval", "summary": summary}
    told = event(pane, "state.waiting_approval", raw_payload={"attention": attention})
    assert home.ask("POST", "/v1/events", told).status == 200


async def test_what_has_just_come_up_takes_no_answer(browser: Browser, door: Door, puppet: Puppet) -> None:
    """The second of two clicks on a card, whose page has come up in between."""
    puppet.tell("reset")
    before = len(puppet.given())
    item = puppet.ask("h1", "touch label.txt")
    # In the same breath as it is drawn. No time goes by until then, however long that takes.
    click = """(view) => new Promise((resolve) => {
        const { now } = Date;
        const began = now();
        Date.now = () => began;
        const observer = new MutationObserver(() => {
            const button = document.querySelector(".pane-head ~ .card .approve");
            if (!button) return;
            observer.disconnect();
            button.click();
            Date.now = now;
            resolve();
        });
        observer.observe(document.getElementById("main"), { childList: true, subtree: true });
        location.hash = view;
    })"""
    async with visit(browser, door) as page:
        await page.locator(".card .approve").wait_for()
        await page.evaluate(click, f"#/pane/{item['runtime_id']}")
        await page.locator(".note").get_by_text("It has just changed").wait_for()
        await page.locator("body:not(.unsettled)").wait_for()
        assert puppet.given()[before:] == []
        await page.get_by_role("button", name="Deny").click()
        await page.locator(".note").get_by_text("Denied").wait_for()
    puppet.tell("reset")


async def test_keys_are_for_the_window_in_front_and_for_who_writes(browser: Browser, door: Door, other: str) -> None:
    view = f"#/pane/{door.home.panes()[other]['runtime_id']}"
    async with visit(browser, door) as page:
        await go(page, view)
        await page.locator("#text").wait_for()
        await page.keyboard.press("?")
        await page.get_by_role("dialog").wait_for()
        await page.keyboard.press("3")
        await page.keyboard.press("Escape")
        await page.get_by_role("dialog").wait_for(state="hidden")
        assert await page.evaluate("location.hash") == view
        # While an input method offers characters, Escape takes back what it offers, and is nobody else's.
        await page.focus("#text")
        composing = "new KeyboardEvent('keydown', {key: 'Escape', isComposing: true, bubbles: true})"
        await page.evaluate(f"document.activeElement.dispatchEvent({composing})")
        assert await page.evaluate("document.activeElement.id") == "text"


async def test_a_key_that_is_held_answers_once(browser: Browser, door: Door, other: str) -> None:
    """The agent asks the next thing while the key is still down."""
    asked: list[str] = []

    async def answer(route: Route) -> None:
        asked.append(route.request.url.rpartition("/")[2])
        await route.fulfill(json={"result_code": "delivered", "error_code": None})

    async with visit(browser, door) as page:
        await page.route("**/v1/actions/*", answer)
        card = page.locator(".card")
        for key, name in (("a", "approve"), ("d", "deny")):
            asked.clear()
            waits(door.home, other, f"{name} one")
            await card.locator(".asks").get_by_text(f"{name} one").wait_for()
            await page.locator("body:not(.unsettled)").wait_for()
            await card.locator(".card-head").focus()
            # Without an end of it, each further one is a repetition.
            await page.keyboard.down(key)
            await expect(page.locator(".note").get_by_text(f"{name} one")).to_have_count(1)
            waits(door.home, other, f"{name} two")
            await card.locator(".asks").get_by_text(f"{name} two").wait_for()
            await page.locator("body:not(.unsettled)").wait_for()
            for _ in range(3):
                await page.keyboard.down(key)
            await page.keyboard.up(key)
            await page.evaluate(LATER)
            assert asked == [name]
            await page.keyboard.press(key)
            await expect(page.locator(".note").get_by_text(f"{name} two")).to_have_count(1)
            assert asked == [name, name]


async def test_a_key_that_is_held_sends_once(browser: Browser, door: Door, other: str) -> None:
    """What was refused stays in the box, and is not sent to whatever the agent does by then."""
    asked = 0

    async def refuse(route: Route) -> None:
        nonlocal asked
        asked += 1
        await route.fulfill(status=409, json={"error": {"code": "E_DRAFT_PRESENT", "message": "it has a draft"}})

    async with visit(browser, door, is_troubled=True) as page:
        await go(page, f"#/pane/{door.home.panes()[other]['runtime_id']}")
        await page.route("**/v1/actions/send", refuse)
        await page.fill("#text", "print one label")
        await page.keyboard.down("Control")
        for _ in range(3):
            await page.keyboard.down("Enter")
            await page.locator(".said").get_by_text("Not sent").wait_for()
        await page.evaluate(LATER)
        assert asked == 1
        await page.keyboard.up("Enter")
        await page.keyboard.press("Enter")
        await asyncio.to_thread(wait_until, lambda: asked == 2, "the second one")
        # One Escape leaves the field, and the next one the agent.
        for _ in range(3):
            await page.keyboard.down("Escape")
        assert await page.evaluate("[document.activeElement.id, location.hash.slice(0, 7)]") == ["", "#/pane/"]


async def test_a_reason_is_for_the_question_it_was_written_for(browser: Browser, door: Door, other: str) -> None:
    waits(door.home, other, "touch label.txt")
    async with visit(browser, door) as page:
        await go(page, f"#/pane/{door.home.panes()[other]['runtime_id']}")
        await page.fill("#reason", "use git mv instead")
        waits(door.home, other, "make deploy")
        await page.locator(".card .asks").get_by_text("make deploy").wait_for()
        assert await page.input_value("#reason") == ""


async def test_an_address_that_is_none_is_nobody(browser: Browser, door: Door) -> None:
    async with visit(browser, door) as page:
        await go(page, "#/pane/%")
        await page.get_by_text("That agent has ended").wait_for()


async def test_what_is_asked_reads_as_it_is_written(browser: Browser, door: Door, other: str) -> None:
    """Signs that turn the order of letters around would show another command than the one that is approved."""
    attention = {"kind": "approval", "summary": "rm \u202etxt.a\u202c b\nls", "detail": "\u2066rm b\u2069"}
    told = event(other, "state.waiting_approval", raw_payload={"attention": attention})
    assert door.home.ask("POST", "/v1/events", told).status == 200
    async with visit(browser, door) as page:
        card = page.locator(".card").filter(has=page.locator(".detail"))
        await expect(card.locator(".asks")).to_have_text("rm \ufffdtxt.a\ufffd b ls")
        assert await card.locator(".asks").inner_text() == "rm \ufffdtxt.a\ufffd b\nls", "two lines look like one"
        # Where a request is shown whole, what stands in its summary is there as well.
        await expect(card.locator(".detail")).to_have_text("rm \ufffdtxt.a\ufffd b ls \ufffdrm b\ufffd")
        # What cannot be shown as it is, is not approved with one step.
        label = await card.get_by_role("button", name="Review").get_attribute("aria-label")
        assert label is not None and "rm \ufffdtxt.a\ufffd b" in label


async def test_approve_stands_below_all_of_a_long_request(browser: Browser, door: Door, other: str) -> None:
    """Nothing of it has to be scrolled within its card."""
    attention = {"kind": "approval", "summary": "sh", "detail": "\n".join(f"echo {row}" for row in range(60))}
    told = event(other, "state.waiting_approval", raw_payload={"attention": attention})
    assert door.home.ask("POST", "/v1/events", told).status == 200
    async with visit(browser, door) as page:
        detail = page.locator(".card .detail").filter(has_text="echo 59")
        await detail.wait_for()
        assert await detail.evaluate("each => each.scrollHeight <= each.clientHeight + 1")
        await go(page, f"#/pane/{door.home.panes()[other]['runtime_id']}")
        await detail.wait_for()
        assert await detail.evaluate("each => each.scrollHeight <= each.clientHeight + 1")


async def test_the_log_goes_on_however_busy_agents_are(browser: Browser, door: Door, other: str) -> None:
    home = door.home
    async with visit(browser, door) as page:
        await go(page, "#/log")
        await page.locator(".log, .silence").first.wait_for()
        asked = {"request_ref": "busy", "ref": home.panes()[other]["ref"], "actor": "a busy one"}
        home.ask("POST", "/v1/actions/view-output", asked)
        async with asyncio.timeout(PATIENCE):
            while not await page.locator(".log").get_by_text("by a busy one").count():
                for state in ("running", "idle"):
                    await asyncio.to_thread(home.ask, "POST", "/v1/events", event(other, f"state.{state}"))


async def test_who_leaves_while_a_message_is_on_its_way_cannot_send_it_twice(
    browser: Browser, door: Door, puppet: Puppet
) -> None:
    puppet.tell("reset")
    at_rest = ("idle", "completed")
    await asyncio.to_thread(wait_until, lambda: door.home.state_of(puppet.pane) in at_rest, "a puppet at rest")
    item = door.home.panes()[puppet.pane]
    held: asyncio.Future[Route] = asyncio.get_running_loop().create_future()
    async with visit(browser, door) as page:
        await go(page, f"#/pane/{item['runtime_id']}")
        await page.fill("#text", "print one label")
        await page.route("**/v1/actions/send", lambda route: held.set_result(route), times=1)
        await page.get_by_role("button", name="Send").click()
        route = await held
        await go(page, "#/")
        await page.locator(".row").first.wait_for()
        await go(page, f"#/pane/{item['runtime_id']}")
        await expect(page.locator("#text")).to_have_value("print one label")
        await expect(page.get_by_role("button", name="Send")).to_be_disabled()
        await route.continue_()
        await page.locator(".said").get_by_text("Delivered.").wait_for()
        await expect(page.locator("#text")).to_have_value("")
    assert puppet.submitted().count("print one label") == 1


async def test_who_signs_out_does_so_in_every_window(browser: Browser, door: Door) -> None:
    async with visit(browser, door) as page:
        second = await page.context.new_page()
        await second.goto(door.origin)
        await second.locator("#link .on").wait_for()
        await page.keyboard.press("?")
        await page.get_by_role("button", name="Sign this browser out").click()
        await second.get_by_role("heading", name="This browser is not signed in").wait_for()
        await second.fill("#secret", door.token)
        await second.get_by_role("button", name="Sign in").click()
        await page.locator("#link .on").wait_for()
        await page.locator(".row").first.wait_for()


async def test_who_listens_to_the_page_hears_who_waits(browser: Browser, door: Door, other: str) -> None:
    home = door.home
    attention = {"kind": "approval", "summary": "touch label.txt"}
    async with visit(browser, door) as page:
        await page.locator(".row").nth(1).wait_for()
        await expect(page.locator("#heard")).to_have_text("")
        home.ask("POST", "/v1/events", event(other, "state.waiting_approval", raw_payload={"attention": attention}))
        name = home.panes()[other]["name"]
        await expect(page.locator("#heard[role=status]")).to_have_text(f"{name}, waiting for approval: touch label.txt")
