"""The daemon's end of a line: an answer fits its question, and one that nobody waits for any more is let go."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.probe.frames import Frames, decode, encode
from agtmux.targets.link import Line, Link
from agtmux.targets.messages import Folder

Answer = Callable[[dict[str, Any]], list[dict[str, Any]]]


class Other:
    """The other end, which says what a function makes of each question."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._frames = Frames()
        self._said: asyncio.Queue[bytes] = asyncio.Queue()
        self.refused: list[AgtmuxError] = []
        self.link = Link(
            Line(lambda _: self._said.get(), self._hear, lambda: None),
            on_notice=self._ignore,
            on_refusal=self.refused.append,
            on_end=lambda: None,
        )

    def say(self, message: dict[str, Any]) -> None:
        self._said.put_nowait(encode(message))

    def _hear(self, raw: bytes) -> None:
        for frame in self._frames.feed(raw):
            for message in self._answer(decode(frame)):
                self.say(message)

    def _ignore(self, _: object) -> Awaitable[None]:
        return asyncio.sleep(0)


async def test_an_answer_that_comes_late_is_let_go() -> None:
    other = Other(lambda asked: [{"id": asked["id"], "done": {"is_folder": True}}] if asked["id"] > 1 else [])
    with pytest.raises(TimeoutError):
        await other.link.run({"do": "is_folder"}, Folder, 0.01)
    other.say({"id": 1, "done": {"is_folder": True}})
    assert (await other.link.run({"do": "is_folder"}, Folder, 5)).is_folder
    # But once only.
    other.say({"id": 1, "done": {"is_folder": True}})
    with pytest.raises(AgtmuxError, match="nobody asked"):
        for _ in range(5):
            await other.link.run({"do": "is_folder"}, Folder, 5)
    assert other.refused
    await other.link.close()


async def test_a_line_on_which_too_much_is_given_up_is_ended() -> None:
    other = Other(lambda asked: [])
    for _ in range(17):
        with pytest.raises(TimeoutError):
            await other.link.run({"do": "is_folder"}, Folder, 0.001)
    assert not other.link.is_open
    await other.link.close()


@pytest.mark.parametrize(
    "said",
    [
        {"looked": {"server": "", "now": 0, "panes": [], "gone": [], "screens": [], "is_metered": False}},
        {"failed": "no"},
        {"done": {"is_folder": "yes"}},
        {"done": None},
        {"declined": {"code": "E_NONSENSE", "message": "no"}},
        {"done": {"is_folder": True}, "declined": {"code": "E_CONFIG", "message": "no"}},
    ],
)
async def test_an_answer_to_another_question_ends_the_line(said: dict[str, Any]) -> None:
    other = Other(lambda asked: [{"id": asked["id"], **said}])
    with pytest.raises(AgtmuxError) as caught:
        await other.link.run({"do": "is_folder"}, Folder, 5)
    assert caught.value.code is ErrorCode.TARGET_UNREACHABLE
    assert [error.code for error in other.refused] == [ErrorCode.FORBIDDEN]
    assert not other.link.is_open
    await other.link.close()


async def test_a_look_is_not_answered_by_anything_else() -> None:
    other = Other(lambda asked: [{"id": asked["id"], "declined": {"code": "E_CONFIG", "message": "no"}}])
    with pytest.raises(AgtmuxError, match="another question"):
        await other.link.look([], [], 1.0)
    await other.link.close()


async def test_a_refusal_says_why_and_cannot_move_a_terminal() -> None:
    why = {"code": "E_PRECONDITION_FAILED", "message": "changed\x1b[2J"}
    other = Other(lambda asked: [{"id": asked["id"], "declined": why}])
    with pytest.raises(AgtmuxError, match="changed") as caught:
        await other.link.run({"do": "replace"}, Folder, 5)
    assert caught.value.code is ErrorCode.PRECONDITION_FAILED
    assert caught.value.message.isprintable()
    assert other.link.is_open
    await other.link.close()
