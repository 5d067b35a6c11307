"""What is read on the page is what is meant: commands in the order in which they run, and panes by their own names."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route

from agtmux.domain.legible import in_order
from board.browser import come, go, picture, visit
from support.door import Door
from support.home import Home, home_in

pytestmark = pytest.mark.asyncio(loop_scope="session")
RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff]+")
WORDS = ["שלום", "עולם", "مرحبا", "بالعالم", "ملف", "١٢٣", "שָׁלוֹם", "echo", "rm", "a", "12", "f.txt"]
JOINTS = [
    " ",
    " > ",
    " < ",
    " | ",
    " && ",
    "/",
    ".",
    "=",
    " -",
    "(",
    ")",
    "'",
    '"',
    ":",
    ",",
    " >> ",
    "[",
    "]",
    "+",
    "\u200f",
]
# Draws texts as the board draws them, and tells for each where each of its characters stands.
PLACES = """async ([texts, tag, name]) => {
  const { patch, h } = await import(new URL("js/dom.js", location.href.replace(/#.*/, "")).href);
  const stage = document.createElement("div");
  stage.style.cssText = "position: fixed; left: 0; top: 0; width: 9000px";
  document.body.append(stage);
  const told = [];
  for (const text of texts) {
    if (tag) patch(stage, h(tag, { key: Math.random(), class: name }, text));
    else stage.replaceChildren(Object.assign(document.createElement("p"), { textContent: text }));
    stage.firstChild.style.cssText = "white-space: pre; max-height: none";
    const walker = document.createTreeWalker(stage, NodeFilter.SHOW_TEXT);
    const places = [];
    while (walker.nextNode()) {
      for (let at = 0; at < walker.currentNode.data.length; at += 1) {
        const range = document.createRange();
        range.setStart(walker.currentNode, at);
        range.setEnd(walker.currentNode, at + 1);
        const box = range.getBoundingClientRect();
        places.push([walker.currentNode.data[at], box.left, box.right]);
      }
    }
    told.push(places);
  }
  stage.remove();
  return told;
}"""


@pytest.fixture
def own_home(short_tmp: Path) -> Iterator[Home]:
    with home_in(short_tmp) as made:
        yield made


def commands(seed: int, count: int) -> list[str]:
    chance = random.Random(seed)
    made = ["echo 'مرحبا بالعالم' > שלום.txt"]
    for _ in range(count):
        parts = [chance.choice(WORDS)]
        for _ in range(chance.randint(1, 6)):
            parts += [chance.choice(JOINTS), chance.choice(WORDS)]
        made.append("".join(parts))
    return made


def tokens(places: list[list[Any]]) -> list[tuple[str, float, float]]:
    """Each run of letters that are read from right to left as one, and every other character for itself."""
    found: list[tuple[str, float, float]] = []
    was_turned = False
    for char, left, right in places:
        is_turned = RIGHT_TO_LEFT.match(char) is not None or char == "\u200f"
        if is_turned and was_turned:
            text, first, last = found[-1]
            found[-1] = (text + char, min(first, left), max(last, right))
        else:
            found.append((char, left, right))
        was_turned = is_turned
    return [each for each in found if each[2] > each[1]]


async def drawn(page: Page, texts: list[str], tag: str, name: str) -> list[list[list[Any]]]:
    return list(await page.evaluate(PLACES, [texts, tag, name]))


@pytest.mark.parametrize(("tag", "name"), [("p", "asks command"), ("pre", "detail"), ("span", "log-place")])
async def test_commands_are_drawn_in_the_order_in_which_they_run(
    browser: Browser, door: Door, tag: str, name: str
) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    texts = commands(seed, 150)
    async with visit(browser, door) as page:
        for text, places in zip(texts, await drawn(page, texts, tag, name), strict=True):
            assert "".join(char for char, _, _ in places) == text, "what is copied is what was written"
            lefts = [(left, right) for _, left, right in tokens(places)]
            ordered = all(before[1] <= after[0] + 0.5 for before, after in pairwise(lefts))
            assert ordered, (seed, text, tokens(places))


async def test_menus_and_terminals_are_given_marks_that_keep_the_order(browser: Browser, door: Door) -> None:
    """They draw text alone. Chromium orders it by the same rules as they do."""
    seed = random.randrange(10**6)
    print("seed", seed)
    texts = [in_order(text) for text in commands(seed, 150)]
    async with visit(browser, door) as page:
        for text, places in zip(texts, await drawn(page, texts, "", ""), strict=True):
            lefts = [(left, right) for _, left, right in tokens(places)]
            ordered = all(before[1] <= after[0] + 0.5 for before, after in pairwise(lefts))
            assert ordered, (seed, text, tokens(places))


async def test_the_log_names_the_pane_and_what_was_answered(browser: Browser, door: Door) -> None:
    question = "echo one && " * 20 + "rm -r labels"
    item = {
        "action_id": "1" * 32,
        "action_type": "approve",
        "ref": "pane:host/my%20project%2Fx/@41/%41",
        "target": "host",
        "pane_id": "%41",
        "runtime_id": "r" * 20,
        "agent_type": "claude",
        "requested_at": "2026-11-18T10:00:00Z",
        "completed_at": "2026-11-18T10:00:01Z",
        "result_code": "delivered",
        "error_code": None,
        "about": {"actor": "board", "question": question},
    }

    async def told(route: Route) -> None:
        await route.fulfill(status=200, content_type="application/json", body=json.dumps({"items": [item]}))

    async with visit(browser, door) as page:
        await page.route("**/v1/actions?*", told)
        await go(page, "#/log")
        place = page.locator(".log-place")
        await place.wait_for()
        assert await place.inner_text() == "host / my project/x %41"
        about = page.locator(".log-about")
        assert await about.inner_text() == question
        whole = (
            "element => element.scrollWidth <= element.clientWidth && element.scrollHeight <= element.clientHeight + 1"
        )
        assert await about.evaluate(whole), "nothing of it is cut off"
        await picture(page, "log-question")


async def test_a_sign_in_link_that_is_pasted_into_an_open_page_signs_in(browser: Browser, door: Door) -> None:
    context = await browser.new_context()
    try:
        page = await context.new_page()
        await come(page, f"{door.origin}/")
        await page.locator("form.sign-in").wait_for()
        # Only what stands behind the # differs, so the page is not loaded again.
        await page.evaluate("() => { window.isTheSame = true }")
        await page.goto(f"{door.origin}/#code={door.code()}")
        await page.wait_for_selector("#link .on")
        assert await page.evaluate("() => window.isTheSame && location.hash") == "#/"
    finally:
        await context.close()


async def test_a_second_link_in_a_page_that_is_signed_in_changes_nothing_to_see(browser: Browser, door: Door) -> None:
    async with visit(browser, door) as page:
        await page.goto(f"{door.origin}/#code={door.code()}")
        await page.wait_for_function("() => location.hash === '#/'")
        await page.wait_for_selector("#link .on")


async def test_the_board_opens_in_a_browser_on_a_machine_without_a_keyring(browser: Browser, own_home: Home) -> None:
    own_home.start()
    done = own_home.run("board", "--no-open", "--port", "0")
    assert done.returncode == 0, done.stderr
    assert "until the daemon ends" in done.stderr
    address = done.stdout.split()[-1]
    context = await browser.new_context()
    try:
        page = await context.new_page()
        await come(page, address)
        await page.wait_for_selector("#link .on")
        # The code is used up, and a browser without it is outside.
        other = await (await browser.new_context()).new_page()
        await come(other, address)
        await other.locator("form.sign-in").wait_for()
        await other.context.close()
    finally:
        await context.close()
