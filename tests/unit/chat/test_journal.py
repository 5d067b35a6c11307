"""What has happened is numbered, kept as far as there is room, and read from anywhere in it."""

from __future__ import annotations

import asyncio
import json

from agtmux.chat.journal import Journal


def texts(journal: Journal, after: int, most: int = 100) -> list[str]:
    return [json.loads(kept.line)["text"] for kept in journal.after(after, most)]


def filled(count: int, **limits: int) -> Journal:
    journal = Journal(**limits)
    for number in range(1, count + 1):
        journal.add({"type": "text_delta", "text": str(number)})
    return journal


async def test_events_are_numbered_from_one_and_read_from_any_of_them():
    journal = filled(5)
    assert (journal.first_seq, journal.last_seq) == (1, 5)
    assert texts(journal, 0) == ["1", "2", "3", "4", "5"]
    assert texts(journal, 3) == ["4", "5"]
    assert texts(journal, 0, most=2) == ["1", "2"]
    assert texts(journal, 5) == []


async def test_what_is_too_much_goes_from_the_front():
    journal = filled(100, most_lines=10)
    assert (journal.first_seq, journal.last_seq) == (91, 100)
    assert texts(journal, 0)[0] == "91"
    assert filled(100, most_bytes=200).first_seq > 90


async def test_the_last_one_is_kept_however_large_it_is():
    journal = Journal(most_bytes=10)
    journal.add({"type": "text_delta", "text": "x" * 100})
    assert journal.first_seq == journal.last_seq == 1


async def test_an_empty_one_begins_with_the_next():
    assert (Journal().first_seq, Journal().last_seq) == (1, 0)


async def test_a_reader_waits_for_what_comes_and_for_its_place_to_be_moved():
    journal, place = filled(3), 3
    waiting = asyncio.create_task(journal.wait(lambda: place))
    await asyncio.sleep(0)
    assert not waiting.done()
    place = 1
    journal.stir()
    await asyncio.wait_for(waiting, 5)
