"""No secret of a message is ever in the database; its receiver gets it all the same, once, also after a crash."""

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest

from agtmux.domain.durations import SECOND
from agtmux.domain.mail import Message, Party, Reason, Status
from agtmux.domain.timestamps import Timestamp
from agtmux.messages.cleartexts import LONGEST_KEPT, READ_AGAIN
from agtmux.messages.directory import USER
from agtmux.messages.gate import Outcome
from agtmux.messages.letters import Letter, message_of
from agtmux.messages.mailbox import Mailbox, Wanted
from agtmux.store.database import DATABASE_FILE
from unit.builders import T0, a_core
from unit.messages.test_postman import PATIENCE, a_round

SECRET = "sk-ant-api03-" + "Qm7Zr4Kd9Xw2Lp6Tn8Vb3Hs5" * 2
TEXT = f"deploy with {SECRET} and tell nobody"
THINKING = f"it needs {SECRET}"
DAY = 24 * 3_600 * SECOND


def holders(directory: Path, secret: str = SECRET) -> set[str]:
    """Every file below the state directory that has the bytes of the secret."""
    needle = secret.encode()
    return {
        str(path.relative_to(directory))
        for path in directory.rglob("*")
        if path.is_file() and needle in path.read_bytes()
    }


def letter(text: str = TEXT) -> Letter:
    return Letter(text, thinking=THINKING)


def to_user(now: Timestamp = T0) -> Message:
    return message_of(Party("a"), Party(USER), letter(), now, 30 * DAY)


async def test_a_message_that_is_typed_leaves_its_secret_nowhere(tmp_path: Path) -> None:
    """NFR-9: at every step the database, its log and its index are free of it."""
    async with a_round(tmp_path) as work:
        message = message_of(Party(USER), work.receiver, letter(), work.core.clock.now(), 7 * DAY)
        [accepted] = await work.mailbox.put([message])
        own = f"messages/{accepted.message_id}"
        assert accepted.content == TEXT and holders(tmp_path) == {own}
        assert (tmp_path / own).stat().st_mode & 0o777 == 0o600
        for step in (work.mailbox.begin, work.mailbox.stay, work.mailbox.enter):
            at = await step(accepted)
            assert at is not None and at.content == TEXT and holders(tmp_path) == {own}
        back = await work.mailbox.back(accepted, Reason.BUSY)
        noted = await work.mailbox.note(accepted, Reason.DIALOG_OPEN)
        assert back is not None and noted is not None and (back.content, noted.content) == (TEXT, TEXT)
        done = await work.mailbox.settle(accepted, work.core.clock.now(), Status.DELIVERED)
        assert done is not None and done.is_redacted and SECRET not in (done.content or "")
        assert done.size == len(TEXT)
        assert holders(tmp_path) == set()
        assert not (tmp_path / "messages").exists()


@pytest.mark.parametrize("status", [Status.DELIVERED, Status.UNCERTAIN, Status.EXPIRED, Status.REFUSED])
async def test_however_it_ends_its_secret_is_gone(tmp_path: Path, status: Status) -> None:
    async with a_core(tmp_path) as core:
        mailbox = Mailbox(core.database)
        [accepted] = await mailbox.put([to_user()])
        assert await mailbox.settle(accepted, T0, status) is not None
        assert holders(tmp_path) == set()


async def test_a_message_without_a_secret_is_in_no_file_and_shown_as_it_was_sent(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        mailbox = Mailbox(core.database)
        [accepted] = await mailbox.put([message_of(Party("a"), Party(USER), Letter("hello"), T0, DAY)])
        assert not (tmp_path / "messages").exists()
        assert not (await mailbox.find(accepted.message_id)).is_redacted


async def test_nobody_but_its_receiver_is_shown_the_secret_while_it_waits(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        mailbox = Mailbox(core.database)
        [accepted] = await mailbox.put([to_user()])
        for told in (await mailbox.find(accepted.message_id), *await mailbox.listing(Wanted(), 9)):
            assert told.is_redacted and SECRET not in f"{told.content}{told.thinking}"
        [taken] = await mailbox.take(Party(USER), T0, 9)
        assert taken.content == TEXT and SECRET not in (taken.thinking or "")


async def test_the_next_daemon_has_the_text_of_what_waits_and_types_it(tmp_path: Path) -> None:
    async with a_round(tmp_path) as work:
        message = message_of(Party(USER), work.receiver, letter(), work.core.clock.now(), DAY)
        await work.mailbox.put([message])
    async with a_round(tmp_path) as work:
        # Its receiver is the same: the database knows it.
        trying, outcome = await work.tries.next()
        assert trying.content == TEXT
        outcome.set_result(Outcome(trying, is_delivered=True))
        async with asyncio.timeout(PATIENCE):
            while not (await work.mailbox.find(message.message_id)).status.is_over:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await work.core.database.writer.write(lambda tx: None)
        assert holders(tmp_path) == set()


async def test_a_text_that_is_gone_is_never_replaced_by_its_redacted_form(tmp_path: Path) -> None:
    async with a_round(tmp_path) as work:
        message = message_of(Party(USER), work.receiver, letter(), work.core.clock.now(), DAY)
        await work.mailbox.put([message])
        (tmp_path / "messages" / message.message_id).unlink()
        for each in await work.mailbox.open():
            work.postman.hand(each)
        async with asyncio.timeout(PATIENCE):
            while not (found := await work.mailbox.find(message.message_id)).status.is_over:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (found.status, found.reason) == (Status.REFUSED, Reason.CONTENT_LOST)
        assert work.tries.under_way.empty()


async def test_what_was_fetched_can_be_read_again_for_a_while_and_is_gone_then(tmp_path: Path) -> None:
    """A daemon killed over the answer has handed over nothing."""
    async with a_core(tmp_path) as core:
        mailbox = Mailbox(core.database)
        [accepted] = await mailbox.put([to_user()])
        await mailbox.take(Party(USER), T0, 9)
        [earlier] = await mailbox.listing(Wanted(status=Status.DELIVERED), 9)
        await mailbox.sweep(Timestamp(T0 + READ_AGAIN - 1))
        assert mailbox.whole(earlier).content == TEXT and holders(tmp_path) == {f"messages/{accepted.message_id}"}
        await mailbox.sweep(Timestamp(T0 + READ_AGAIN))
        assert mailbox.whole(earlier).is_redacted and holders(tmp_path) == set()


async def test_who_asks_for_messages_again_and_again_sets_no_timer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret may wait for a day; an agent that looks for messages every second is not to cost a write each time."""
    async with a_core(tmp_path) as core:
        mailbox, loop, delays = Mailbox(core.database), asyncio.get_running_loop(), []
        await mailbox.put([to_user()])
        set_timer = loop.call_later
        monkeypatch.setattr(loop, "call_later", lambda delay, *more: delays.append(delay) or set_timer(delay, *more))
        for _ in range(3):
            assert await mailbox.take(Party("b"), T0, 10) == []
        assert READ_AGAIN / SECOND not in delays
        assert len(await mailbox.take(Party(USER), T0, 10)) == 1
        assert delays.count(READ_AGAIN / SECOND) == 1


async def test_what_was_given_back_keeps_its_text(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        mailbox = Mailbox(core.database)
        await mailbox.put([to_user()])
        [back] = await mailbox.give_back(await mailbox.take(Party(USER), T0, 9))
        await mailbox.sweep(Timestamp(T0 + READ_AGAIN))
        assert back.content == TEXT
        assert [each.content for each in await mailbox.take(Party(USER), T0, 9)] == [TEXT]


async def test_no_secret_waits_longer_than_a_day(tmp_path: Path) -> None:
    async with a_round(tmp_path) as work:
        long = message_of(Party(USER), work.receiver, letter(), T0, 7 * DAY)
        [for_agent, for_user] = await work.mailbox.put([long, to_user()])
        assert for_agent.expires_at == T0 + LONGEST_KEPT
        assert for_user.expires_at == T0 + 30 * DAY
        await work.mailbox.settle(for_agent, T0, Status.EXPIRED)
        await work.mailbox.sweep(Timestamp(T0 + LONGEST_KEPT))
        assert holders(tmp_path) == set()
        # What is left for the user says that something was left out.
        [taken] = await work.mailbox.take(Party(USER), T0, 9)
        assert taken.is_redacted and taken.content == (await work.mailbox.find(taken.message_id)).content


async def test_a_text_whose_message_was_never_accepted_is_removed(tmp_path: Path) -> None:
    """As after a daemon that was killed between the two."""
    async with a_core(tmp_path) as core:
        mailbox = Mailbox(core.database)
        (tmp_path / "messages").mkdir()
        (tmp_path / "messages" / "0123456789abcdef").write_text(TEXT)
        await mailbox.sweep(T0)
        assert holders(tmp_path) == set()


async def test_a_text_that_outlived_its_message_is_removed(tmp_path: Path) -> None:
    """As after a daemon that was killed between the commit and the removal."""
    async with a_core(tmp_path) as core:
        mailbox = Mailbox(core.database)
        [accepted] = await mailbox.put([to_user()])
        kept = (tmp_path / "messages" / accepted.message_id).read_bytes()
        await mailbox.settle(accepted, T0, Status.REFUSED)
        (tmp_path / "messages").mkdir()
        (tmp_path / "messages" / accepted.message_id).write_bytes(kept)
        await mailbox.sweep(T0)
        assert holders(tmp_path) == set()


async def test_the_same_request_again_is_the_same_message(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        mailbox = Mailbox(core.database)
        first, second = (message_of(Party("a"), Party(USER), Letter(TEXT, request_ref="r1"), T0, DAY) for _ in range(2))
        [one] = await mailbox.put([first])
        [again] = await mailbox.put([second])
        assert again.message_id == one.message_id
        assert holders(tmp_path) == {f"messages/{one.message_id}"}


async def test_what_an_earlier_agtmux_wrote_is_redacted_and_what_waits_still_comes(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        mailbox = Mailbox(core.database)
        over, waiting = (message_of(Party("a"), Party(USER), Letter("x"), T0, DAY) for _ in range(2))
        await mailbox.put([over, waiting])
        await mailbox.settle(over, T0, Status.DELIVERED)
    # As it was written before.
    with contextlib.closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as connection, connection:
        connection.execute(
            "UPDATE messages SET content = ?, thinking = ?, is_redacted = NULL, size = ?", (TEXT, THINKING, len(TEXT))
        )
    assert holders(tmp_path) & {DATABASE_FILE, f"{DATABASE_FILE}-wal"}
    async with a_core(tmp_path) as core:
        mailbox = Mailbox(core.database)
        await mailbox.redact_old()
        assert holders(tmp_path) == {f"messages/{waiting.message_id}"}
        assert SECRET not in ((await mailbox.find(over.message_id)).content or "")
        assert [each.content for each in await mailbox.take(Party(USER), T0, 9)] == [TEXT]
        await mailbox.sweep(Timestamp(T0 + READ_AGAIN))
        assert holders(tmp_path) == set()
